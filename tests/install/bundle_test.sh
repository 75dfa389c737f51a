#!/usr/bin/env bash
# bundle_test.sh BUILD CMAKE NAME: makes the bundle and runs it where there is nothing else: in a root folder of its own
# that holds the bundle, the loader and the C library. Then its script, which needs bash and some tools beside them.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
build=$1 cmake=$2 name=$3
PATH=$PATH:/usr/sbin:/sbin

run "$cmake" --build "$build" --target bundle
expect_status 0 'building the target bundle'
[[ -s $build/$name.tar.gz ]] || {
    fail "there is no $name.tar.gz"
    finish
}
((failures == 0)) || finish

run tar -tzf "$build/$name.tar.gz"
expect_text "$name/bin/weft" 'the list of files'
expect_text "$name/run_p2p_fullmesh.sh" 'the list of files'
expect_text "$name/share/bash-completion/completions/weft" 'the list of files'
expect_text "$name/share/zsh/site-functions/_weft" 'the list of files'
[[ $(grep -cv "^$name/" <<<"$output") == 0 ]] || fail "the bundle has files outside of $name/"

[[ $(id -u) == 0 ]] || skip 'a root folder of its own needs root'
unshare --mount --pid --fork true 2>/dev/null || skip 'namespaces are not allowed here'

jail=$scratch/jail
mkdir -p -- "$jail"/{dev,proc,tmp,bin}
tar -C "$jail" -xzf "$build/$name.tar.gz" || exit 1
: >"$jail/dev/null"

# with_libraries FILE: what the loader says it needs from the system, to the places where it looks.
with_libraries() {
    local path
    while read -r path; do
        [[ $path == "$jail"/* || -e $jail$path ]] || install -D -- "$(readlink -f -- "$path")" "$jail$path"
    done < <(ldd "$1" | sed -n 's/ (0x[0-9a-f]*)$//; s/^.* => //; s/^[[:space:]]*\//\//p')
}

# inside COMMAND...: in the jail, with an empty environment, a /proc of its own and nothing left behind.
inside() {
    # shellcheck disable=SC2016,SC2317  # for the inner shell; called through run
    timeout -k 5 60 unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" &&
            exec env -i PATH=/bin "$(type -P chroot)" "$0" "$@"' "$jail" "$@"
}

with_libraries "$jail/$name/bin/weft"
foreign=$(cd -- "$jail" && find . -path "./$name" -prune -o -type f -print |
    grep -v -e '/ld-linux[^/]*$' -e '/libc\.so\.6$' -e '/libm\.so\.6$' -e '^./dev/null$')
[[ -z $foreign ]] || fail "the bundle takes more than the C library from the machine: $foreign"

small=(-b 1K -e 64K -f 8 --endpoints 2 -w 1 -n 5)
run inside "/$name/bin/weft" mesh --local "${small[@]}" --json /tmp/mesh.json --log-dir /tmp/logs
expect_status 0 'the program in an empty root'
grep -q '"wrong_bytes": 0' "$jail/tmp/mesh.json" || fail 'nothing was measured in the empty root'

for tool in bash env readlink mkdir ln date sed tail grep cat; do
    cp -L -- "$(type -P "$tool")" "$jail/bin/$tool"
    with_libraries "$jail/bin/$tool"
done
if compgen -G "$jail/lib/*/libjansson*" >/dev/null || compgen -G "$jail/usr/lib/*/libjansson*" >/dev/null; then
    skip 'the tools of this machine bring the libraries of the bundle with them'
fi
mkdir -p -- "$jail/usr/bin" && ln -s ../../bin/env "$jail/usr/bin/env"
run inside "/$name/run_p2p_fullmesh.sh" local "${small[@]}"
expect_status 0 'the script in an empty root'
[[ -s $jail/$name/results/latest/mesh.json ]] || fail 'the script left no results'

finish
