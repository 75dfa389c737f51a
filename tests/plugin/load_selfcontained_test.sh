#!/usr/bin/env bash
# load_selfcontained_test.sh BUILD: the plugin asks for the C library and for nothing else, of a version that containers
# have, as far as the machine that builds it lets it; shows what NCCL looks for and nothing else; and nothing in it keeps it
# loaded.
set -u
# shellcheck source=tests/plugin/load_file.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/load_file.sh"
newest=2.35

for tool in readelf nm; do
    need_program "$tool"
done

[[ $(readlink -- "$build/lib/libnccl-net.so") == libnccl-net-weft.so ]] || fail 'libnccl-net.so is not a link to the plugin'

foreign=$(readelf -dW "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE 'lib(c|m|pthread|dl)\.so\.[0-9]')
[[ -z $foreign ]] || fail "it asks for more than the C library: $foreign"
run readelf -dW "$plugin"
for word in NODELETE TEXTREL RPATH RUNPATH STATIC_TLS; do
    expect_no_text "$word" 'the dynamic section'
done

symbols=$(readelf -W --dyn-syms "$plugin")
shown=$(awk '$1 ~ /^[0-9]+:$/ && $7 != "UND" { print $8 }' <<<"$symbols" | sort)
[[ $shown == "$(printf 'ncclNetPlugin_v%d\n' 8 9 10 11 12 | sort)" ]] || fail "it shows: $shown"
! grep -q UNIQUE <<<"$symbols" || fail 'a unique symbol keeps it loaded for ever'
# The loader's own function of thread-local variables is the one name without a version.
nobodys=$(awk '$7 == "UND" && $5 == "GLOBAL" && $8 !~ /@GLIBC_/ && $8 != "__tls_get_addr" { print $8 }' <<<"$symbols")
[[ -z $nobodys ]] || fail "it asks for what the C library does not have: $nobodys"

# names FILE: "NAME VERSION" of what it asks for in the C library; names FILE has: of what it has.
names() {
    readelf -W --dyn-syms "$1" | awk -v has="${2-}" '$8 ~ /@GLIBC_[0-9]/ && ($7 != "UND") == (has != "") {
        split($8, part, /@+GLIBC_/)
        print part[1], part[2] }' | sort -u
}

# is_new VERSION: newer than the newest that may be.
is_new() { [[ $1 != "$newest" && $(printf '%s\n' "$1" "$newest" | sort -V | tail -n 1) == "$1" ]]; }

asked=$(names "$plugin")
youngest=$(cut -d ' ' -f 2 <<<"$asked" | sort -V | tail -n 1)
printf 'it asks for glibc %s\n' "$youngest"
is_new "$youngest" || finish

# A machine with a newer C library may leave no choice: its headers and its linker give a function that older ones have the
# newest name of it (__isoc23_strtol), and archives of the distribution ask for what their builder had. What is neither, we
# have asked for ourselves.
mapfile -t libraries < <(ldd "$plugin" | sed -n 's/.* => \(.*\/lib[cm]\.so\.6\) .*/\1/p')
mapfile -t archives < <(sed -n 's/^WEFT_ARCHIVE_[a-z]*:FILEPATH=//p' "$build/CMakeCache.txt")
had=$(for library in "${libraries[@]}"; do names "$library" has; done)
wanted=$(nm -u "${archives[@]}" 2>/dev/null | awk '$1 == "U" || $1 == "w" { print $2 }' | sort -u)
[[ $had && $wanted ]] || fail 'nothing is known of the libraries of this machine'
# is_old NAME: a C library that may be has it.
is_old() {
    local version
    while read -r version; do
        is_new "$version" || return 0
    done < <(awk -v name="${1#__isoc23_}" '$1 == name { print $2 }' <<<"$had")
    return 1
}
unavoidable=''
while read -r name version; do
    is_new "$version" || continue
    if is_old "$name" || grep -qxF -e "$name" <<<"$wanted"; then
        unavoidable+=" $name@$version"
    else
        fail "it asks for $name of glibc $version, where $newest is the newest that may be"
    fi
done <<<"$asked"
((failures)) || skip "built with $(getconf GNU_LIBC_VERSION), it has to have glibc $youngest, for$unavoidable: build on an older distribution"

finish
