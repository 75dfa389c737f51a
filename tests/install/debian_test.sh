#!/usr/bin/env bash
# debian_test.sh BUILD CMAKE NAME: the bundle on a Debian (or Ubuntu) that has its essential packages and nothing else,
# fetched from the archive that this machine gets its own from. In a home folder there, by a user without rights, and by
# root; without any network but its own loopback.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
build=$1 cmake=$2 name=$3
PATH=$PATH:/usr/sbin:/sbin

[[ $(id -u) == 0 ]] || skip 'debootstrap needs root'
for tool in debootstrap apt-get ip; do
    command -v "$tool" >/dev/null || skip "needs the program $tool"
done
unshare --mount --pid --net --fork true 2>/dev/null || skip 'namespaces are not allowed here'

# The archive of this machine's first source, its proxy and its keys, as apt knows them.
# shellcheck disable=SC2016  # the variables are apt's
read -r archive release keys < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(SIGNED_BY)' \
    'Created-By: Packages' 'Component: main' 2>/dev/null)
[[ -n ${release-} ]] || skip 'apt names no archive here'
[[ -e /usr/share/debootstrap/scripts/$release ]] || skip "debootstrap knows no '$release'"
eval "$(apt-config shell proxy Acquire::http::Proxy)"
[[ -z ${proxy-} || $proxy == DIRECT ]] || export http_proxy=$proxy https_proxy=$proxy
run timeout 60 /usr/lib/apt/apt-helper download-file "${archive%/}/dists/$release/Release" "$scratch/Release"
((status == 0)) || skip "the archive cannot be reached: ${output##*$'\n'}"

run "$cmake" --build "$build" --target bundle
expect_status 0 'building the target bundle'
((failures == 0)) || finish

# Whatever is mounted for it is gone with the namespace, before the folder is removed.
jail=$scratch/jail
options=(--variant=minbase)
[[ ${keys-} != /* ]] || options+=("--keyring=$keys")
ln -s -- "$scratch" "${TMPDIR:-/tmp}/weft_debian.$$" # debootstrap does not take spaces
trap 'rm -f -- "${TMPDIR:-/tmp}/weft_debian.$$"; rm -rf --one-file-system -- "$scratch"' EXIT
run timeout -k 5 600 unshare --mount --pid --fork --kill-child \
    debootstrap "${options[@]}" "$release" "${TMPDIR:-/tmp}/weft_debian.$$/jail" "${archive%/}"
expect_status 0 'debootstrap'
((failures == 0)) || finish

# inside USER COMMAND...: there, with an empty environment, a network that has loopback alone, and nothing left behind.
inside() {
    # shellcheck disable=SC2016,SC2317  # for the inner shell; called through run
    timeout -k 5 120 unshare --mount --pid --net --fork --kill-child bash -c '
        mount -t proc proc "$0/proc" && ip link set lo up && user=$1 && shift &&
            exec env -i PATH=/usr/bin:/bin HOME=/home/user LANG=C.UTF-8 "$(type -P chroot)" --userspec="$user" "$0" "$@"' \
        "$jail" "$@"
}

run chroot "$jail" useradd --create-home --shell /bin/bash user
expect_status 0 'a user'
run find "$jail" -name 'libjansson*' -o -name 'libisal*'
[[ -z $output ]] || fail "it has what the bundle brings: $output"
tar -C "$jail/home/user" -xzf "$build/$name.tar.gz" || fail 'unpacking'
chown -R --reference="$jail/home/user" -- "$jail/home/user"

here=/home/user/$name
small=(-b 1K -e 1M -f 32 --endpoints 2 -w 1 -n 5)
for user in user root; do
    run inside "$user" "$here/bin/weft" --version
    expect_status 0 "$user: the program"
    run inside "$user" "$here/run_p2p_fullmesh.sh" local "${small[@]}"
    expect_status 0 "$user: the script"
    expect_text ' 0 wrong of ' "$user: the script"
    grep -q '"wrong_bytes": 0' "$jail$here/results/latest/mesh.json" || fail "$user: no results"
    printf '%s: %s\n' "$user" "$(tail -n 2 <<<"$output" | head -n 1)"
done
printf '%s, %s packages\n' "$release" "$(chroot "$jail" dpkg-query -W | wc -l)"

finish
