#!/usr/bin/env bash
# load_selfcontained_test.sh BUILD: the plugin asks for the C library and for nothing else, of a version that containers
# have; shows what NCCL looks for and nothing else; and nothing in it keeps it loaded.
set -u
# shellcheck source=tests/plugin/load_file.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/load_file.sh"
newest=2.35

for tool in readelf objdump; do
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

versions=$(objdump -T "$plugin" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV)
youngest=$(tail -n 1 <<<"$versions")
if [[ $(printf '%s\n' "$youngest" "$newest" | sort -V | tail -n 1) != "$newest" ]]; then
    own=$(getconf GNU_LIBC_VERSION | sed 's/.* //')
    fail "it asks for glibc $youngest, where $newest is the newest that may be (here it is $own)"
fi
printf 'it asks for glibc %s\n' "$youngest"

finish
