#!/usr/bin/env bash
# load_root_test.sh BUILD LOADER: the plugin where there is nothing else: in a root folder of its own with the loader and
# the C library.
set -u
# shellcheck source=tests/plugin/load_file.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/load_file.sh"
loader=$2
PATH=$PATH:/usr/sbin:/sbin

need_program unshare
need_program ldd
as_root=()
[[ $(id -u) == 0 ]] || as_root=(--user --map-root-user)
unshare "${as_root[@]}" --mount --pid --fork true 2>/dev/null || skip 'namespaces are not allowed here'

jail=$scratch/jail
mkdir -p -- "$jail"/{proc,plugin}
cp -- "$loader" "$plugin" "$jail/plugin/"
make_key "$jail/plugin/key"
# What the loader says they need from the system, to the places where it looks.
while read -r path; do
    [[ -e $jail$path ]] || install -D -- "$(readlink -f -- "$path")" "$jail$path"
done < <(ldd "$loader" "$plugin" | sed -n 's/ (0x[0-9a-f]*)$//; s/^.* => //; s/^[[:space:]]*\//\//p')
foreign=$(cd -- "$jail" && find . -path ./plugin -prune -o -type f -print |
    grep -v -e '/ld-linux[^/]*$' -e '/libc\.so\.6$' -e '/libm\.so\.6$')
[[ -z $foreign ]] || fail "it needs more than the C library: $foreign"

# shellcheck disable=SC2016  # for the inner shell
run timeout -k 5 60 unshare "${as_root[@]}" --mount --pid --fork --kill-child bash -c '
    mount -t proc proc "$0/proc" && exec env -i "${@:3}" "$(type -P chroot)" "$0" "/plugin/$1" "/plugin/$2" 100' \
    "$jail" "${loader##*/}" "${plugin##*/}" "${settings[@]}" WEFT_KEY_FILE=/plugin/key
expect_status 0 'in a root with the C library alone'
printf '%s\n' "$output"

finish
