#!/usr/bin/env bash
# plugin_parts.sh fetch FOLDER | build FOLDER COMPILER: the libraries that go into the plugin for NCCL and of which the
# distribution has no archive, or none for a shared object, from its source packages:
#
#   FOLDER/sources/   fetched by an apt root of our own: nothing of the machine's apt changes, and nothing is installed
#   FOLDER/lib/       built from them, each once; several build folders may share FOLDER
#
# libmnl is done without where its sources cannot be had: there is no lib/libmnl.a then. Whatever fails is said in one
# line on standard output.
set -u

packages=(libisal hwloc numactl libmnl) # the last is optional
self=$(readlink -f -- "${BASH_SOURCE[0]}")

failed() {
    printf '%s\n' "$*"
    exit 1
}

# ------------------------------------------------------------------------------------------------------- the sources

# source_of PACKAGE: sets tarball to what was fetched.
source_of() {
    local found
    for found in "$folder/sources/$1"_*.orig.tar.*; do
        tarball=$found
        [[ -s $found ]] && return
    done
    return 1
}

# have_sources PACKAGE...
have_sources() {
    local package tarball
    for package in "$@"; do
        source_of "$package" || return
    done
}

# archives: "ADDRESS RELEASE COMPONENT" of those of the distribution, by apt's lists or, before any were fetched, by the
# look of its sources.
# shellcheck disable=SC2016  # the words of apt-get's format
archives() {
    local format='$(REPO_URI) $(RELEASE) $(COMPONENT)'
    apt-get indextargets --format "$format \$(ORIGIN)" 'Created-By: Packages' 2>/dev/null |
        awk -v id="$1" 'tolower($4) == id && !seen[$0]++ { print $1, $2, $3 }' | grep . ||
        apt-get indextargets --no-release-info --format "$format" 'Created-By: Packages' 2>/dev/null |
        awk -v id="$1" '$1 ~ "/" id && !seen[$0]++'
}

# private_apt COMMAND ARGUMENT...: with lists of our own. How the machine reaches its mirror stays as it is.
private_apt() {
    local apt=$work/apt command=$1
    shift
    "$command" -qq -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 "$@"
}

update_lists() {
    local apt=$work/apt id keyring output
    id=$(sed -n 's/^ID=//p' /etc/os-release 2>/dev/null)
    keyring=/usr/share/keyrings/$id-archive-keyring.gpg
    [[ -r $keyring ]] || failed "there is no $keyring"
    mkdir -p -- "$apt/state/lists/partial" "$apt/cache/archives/partial" && : >"$apt/status" || exit
    archives "$id" | sed "s|^|deb-src [signed-by=$keyring] |" >"$apt/sources.list"
    [[ -s $apt/sources.list ]] || failed "apt has no source of $id here"
    output=$(private_apt apt-get update -o APT::Update::Error-Mode=any 2>&1) && return
    failed "the lists of sources cannot be fetched: $(grep -m 1 '^E: ' <<<"$output" || echo 'apt-get update failed')"
}

# fetch_package PACKAGE: apt compares what it fetches with the signed lists, and what is there already, too.
fetch_package() {
    local output
    cd -- "$folder/sources" || exit
    output=$(private_apt apt-get source --download-only --tar-only "$1" 2>&1) && have_sources "$1" && return
    rm -f -- "$1"_*.orig.tar.*
    reason="the sources of $1 cannot be fetched: $(grep -m 1 '^E: ' <<<"$output" || echo 'apt-get source failed')"
    return 1
}

fetch() {
    local package reason
    have_sources "${packages[@]:0:3}" && return
    command -v apt-get >/dev/null || failed 'their sources are fetched with apt-get, which is not here'
    rm -rf -- "$folder"/.fetch.*
    work=$(mktemp -d "$folder/.fetch.XXXXXX") || exit
    trap 'rm -rf -- "$work"' EXIT
    update_lists
    for package in "${packages[@]}"; do
        fetch_package "$package" || [[ $package == libmnl ]] || failed "$reason"
    done
}

# ------------------------------------------------------------------------------------------------------------- built

# make_archive NAME OBJECT...
make_archive() {
    local name=$1
    shift
    ar rcs "$built/$name" "$@"
}

# The checksums, which is all that is used, by the file for systems without autoconf.
build_libisal() {
    make -s -j2 -f Makefile.unx units=crc CC="$compiler -fPIC" DEBUG= DEBUG_nasm= lib && cp bin/isa-l.a "$built/libisal.a"
}

# What finds processors, nodes and PCI devices in /sys; nothing that needs a library, and none that starts a driver.
build_hwloc() {
    ./configure CC="$compiler" CFLAGS='-O2 -fPIC' PKG_CONFIG=false ac_cv_header_pciaccess_h=no --enable-static \
        --disable-shared --with-pic --disable-cairo --disable-libxml2 --disable-opencl --disable-cuda --disable-nvml \
        --disable-rsmi --disable-levelzero --disable-gl --disable-libudev --disable-plugins --disable-doxygen \
        --disable-readme --disable-silent-rules &&
        grep -q '^#define HWLOC_HAVE_LINUXPCI 1' include/private/autogen/config.h &&
        make -j2 -C hwloc libhwloc.la && cp hwloc/.libs/libhwloc.a "$built/libhwloc.a"
}

# The system calls alone, without the versions of a shared libnuma.
build_numactl() {
    : >config.h
    sed -i '/^SYMVER(/d' syscall.c
    "$compiler" -O2 -fPIC -ffunction-sections -I. -c syscall.c && make_archive libnuma.a syscall.o
}

build_libmnl() {
    : >config.h
    "$compiler" -O2 -fPIC -DHAVE_VISIBILITY_HIDDEN -I. -Iinclude -c src/*.c && make_archive libmnl.a ./*.o
}

# build_package PACKAGE
build_package() {
    local tarball tree=$work/$1
    source_of "$1" || return
    mkdir -- "$tree" && tar -C "$tree" --strip-components 1 --no-same-owner -xf "$tarball" || return
    (cd -- "$tree" && "build_$1") >"$work/log" 2>&1 </dev/null && return
    cp -- "$work/log" "$folder/$1.log"
    tail -n 15 -- "$work/log" >&2
    failed "$1 does not build: its output is in $folder/$1.log"
}

# What the present libraries were built from. With which compiler does not matter.
stamp() { cat -- "$self" "$folder"/sources/*.orig.tar.* | sha256sum; }

build() {
    local package built
    if [[ $(stamp) != "$(cat -- "$folder/lib/stamp" 2>/dev/null)" ]]; then
        rm -rf -- "$folder"/.build.*
        work=$(mktemp -d "$folder/.build.XXXXXX") || exit
        trap 'rm -rf -- "$work"' EXIT
        built=$work/lib
        mkdir -- "$built" || exit
        for package in "${packages[@]}"; do
            build_package "$package" || [[ $package == libmnl ]] || failed "there are no sources of $package"
        done
        stamp >"$built/stamp"
        rm -rf -- "${folder:?}/lib" && mv -T -- "$built" "$folder/lib" || exit
    fi
    touch -- "$folder"/lib/*.a # newer than this file, for the build
}

usage() { failed 'usage: plugin_parts.sh fetch FOLDER | build FOLDER COMPILER'; }

(($# >= 2)) || usage
mkdir -p -- "$2/sources" && folder=$(cd -- "$2" && pwd) || exit
compiler=${3-}
exec 9>"$folder/.lock" && flock 9 || exit
export LC_ALL=C
case $#$1 in
2fetch) fetch ;;
3build) build ;;
*) usage ;;
esac
