#!/usr/bin/env bash
# setup.sh: finds what this machine lacks to build Weft, and installs exactly that where it may.
#
# What counts is whether a file or command is there, not which package brought it. With nothing missing it prints and
# does nothing. Everything it says goes to standard error, so that callers keep their standard output.
# shellcheck disable=SC2317  # the have_ functions are called through need()
set -u

usage() {
    cat <<'EOF'
usage: setup.sh [--tests] [--help]

Checks that the compiler, tools and libraries for building Weft are here, and installs what is missing when it runs
as root, or when you say yes on a terminal (then with sudo). It never upgrades a package and never removes one.

  --tests    also what the tests need

  WEFT_SETUP=auto   (default) as above
  WEFT_SETUP=print  only print what is missing
  WEFT_SETUP=off    check nothing

Exit status: 0 nothing is missing; 1 something still is; 2 wrong usage.
EOF
}

say() { printf 'setup.sh: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

have_compiler() { have cc || have gcc || have clang; }

have_libc_headers() {
    local compiler
    [[ -e /usr/include/stdio.h ]] && return 0
    for compiler in cc gcc clang; do
        have "$compiler" && printf '#include <stdio.h>\n' | "$compiler" -E - >/dev/null 2>&1 && return 0
    done
    return 1
}

have_cmake() {
    local version major minor
    have cmake || return 1
    version=$(cmake --version 2>/dev/null) || return 1
    [[ $version =~ ([0-9]+)\.([0-9]+) ]] || return 1
    major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]}
    ((major > 3 || (major == 3 && minor >= 22)))
}

have_builder() { have make || have ninja; }

# have_library MODULE HEADER: as CMake will look for it; by its header where pkg-config is missing as well.
have_library() {
    local folder
    if have pkg-config; then
        pkg-config --exists "$1"
        return
    fi
    for folder in /usr/include /usr/include/*-linux-gnu /usr/local/include; do
        [[ -e $folder/$2 ]] && return 0
    done
    return 1
}

# Users other than root often have no sbin in their PATH.
have_ip() { have ip || [[ -x /usr/sbin/ip || -x /sbin/ip ]]; }

have_tc() { have tc || [[ -x /usr/sbin/tc || -x /sbin/tc ]]; }

have_kmod() { have modprobe || [[ -x /usr/sbin/modprobe || -x /sbin/modprobe ]]; }

have_sanitizer() {
    compgen -G "/usr/lib*/lib$1.so.*" >/dev/null || compgen -G "/usr/lib/*-linux-gnu/lib$1.so.*" >/dev/null
}

# Distributions pack the libraries of clang's sanitizers apart, libFuzzer among them.
have_libfuzzer() {
    printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const unsigned char *d, size_t n) { return d && n > 9; }\n' |
        clang -fsanitize=fuzzer,address -x c -o /dev/null - >/dev/null 2>&1
}

# need WHAT APT DNF CHECK...: adds what the check does not find to the lists of what is missing.
need() {
    local what=$1 apt=$2 dnf=$3
    shift 3
    "$@" && return 0
    missing+=("$what")
    read -r -a packages <<<"$apt"
    apt_missing+=("${packages[@]}")
    read -r -a packages <<<"$dnf"
    dnf_missing+=("${packages[@]}")
}

find_missing() {
    missing=() apt_missing=() dnf_missing=()
    hash -r
    need 'a C compiler' gcc gcc have_compiler
    need 'the C library headers' libc6-dev glibc-devel have_libc_headers
    need 'cmake 3.22 or newer' cmake cmake have_cmake
    need 'make or ninja' make make have_builder
    need 'pkg-config' pkg-config pkgconf-pkg-config have pkg-config
    need 'ISA-L' libisal-dev isa-l-devel have_library libisal isa-l.h
    need 'OpenSSL' libssl-dev openssl-devel have_library libssl openssl/ssl.h
    need 'jansson' libjansson-dev jansson-devel have_library jansson jansson.h
    need 'hwloc' libhwloc-dev hwloc-devel have_library hwloc hwloc.h
    need 'libnuma' libnuma-dev numactl-devel have_library numa numa.h
    ((tests)) || return 0
    need 'cmocka' libcmocka-dev libcmocka-devel have_library cmocka cmocka.h
    need 'the ip command' iproute2 iproute have_ip
    need 'the tc command' iproute2 iproute-tc have_tc
    # On Debian and Ubuntu gcc brings them along.
    if have dnf && ! have apt-get; then
        need 'the address sanitizer' gcc libasan have_sanitizer asan
        need 'the undefined behaviour sanitizer' gcc libubsan have_sanitizer ubsan
        need 'the thread sanitizer' gcc libtsan have_sanitizer tsan
    fi
}

# What is used where it is there and done without where it is not.
find_optional() {
    missing=() apt_missing=() dnf_missing=()
    need 'liburing (the io_uring engine)' liburing-dev liburing-devel have_library liburing liburing.h
    ((tests)) || return 0
    need 'clang (second compiler of the tests)' 'clang libclang-rt-dev' 'clang compiler-rt' have clang
    have clang && need 'libFuzzer (fuzzes what strangers can say)' libclang-rt-dev compiler-rt have_libfuzzer
    need 'strace (a test that shows which engine runs)' strace strace have strace
    need 'jq (the test of weft peers)' jq jq have jq
    need 'iperf3 (weft peers compares with it)' iperf3 iperf3 have iperf3
    need 'ucx_perftest (weft peers compares with it)' ucx-utils ucx have ucx_perftest
    # The guests boot Debian's kernels.
    have apt-get || return 0
    need 'qemu-system-x86_64 (guests with several NUMA nodes)' qemu-system-x86 '' have qemu-system-x86_64
    need 'busybox (the shell of these guests)' busybox-static '' have busybox
    need 'cpio (packs their files)' cpio '' have cpio
    need 'modprobe (finds their modules)' kmod '' have_kmod
    need 'xz (unpacks their modules)' xz-utils '' have xz
}

print_missing() {
    local IFS=' '
    local list
    printf -v list '%s, ' "${missing[@]}"
    say "$1: ${list%, }"
    printf '  Debian, Ubuntu: apt-get install --no-install-recommends %s\n' "${apt_missing[*]}" >&2
    printf '  RHEL 9-likes:   dnf install %s   (repositories CRB and EPEL)\n' "${dnf_missing[*]}" >&2
}

# install_once PACKAGE...: packages that are here already are left at their version.
install_once() {
    if have apt-get; then
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends --no-upgrade \
            --no-remove -o DPkg::Lock::Timeout=120 "$@"
    else
        "${as_root[@]}" dnf install --assumeyes --setopt=install_weak_deps=False "$@"
    fi
}

# The package lists are fetched only when an installation fails without, and only once.
install() {
    install_once "$@" && return 0
    have apt-get && ((!updated)) || return 1
    updated=1
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -o DPkg::Lock::Timeout=120 && install_once "$@"
}

install_packages() {
    local log
    log=$(mktemp) || return 1
    say "installing: $*"
    if install "$@" >"$log" 2>&1 </dev/null; then
        rm -f -- "$log"
        return 0
    fi
    ((quiet_failure)) || tail -n 15 -- "$log" >&2
    rm -f -- "$log"
    return 1
}

# May it install, and how? Sets as_root.
may_install() {
    local answer
    as_root=()
    if ! have apt-get && ! have dnf; then
        say 'neither apt-get nor dnf is here: install the above by hand'
        return 1
    fi
    [[ $(id -u) == 0 ]] && return 0
    if [[ -n ${CI-} || ! -t 0 || ! -t 2 ]]; then
        say 'not root, and nobody to ask: install the above, then run this again'
        return 1
    fi
    read -r -p 'setup.sh: install them now with sudo? [y/N] ' answer
    [[ $answer == [yY]* ]] || return 1
    as_root=(sudo)
}

install_optional() {
    local package
    local -a wanted=("${apt_missing[@]}")
    have apt-get || wanted=("${dnf_missing[@]}")
    quiet_failure=1
    for package in "${wanted[@]}"; do
        install_packages "$package" || say "not available here, and not needed: $package"
    done
}

tests=0
updated=0
quiet_failure=0
for argument in "$@"; do
    case $argument in
    --tests) tests=1 ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        say "unknown option '$argument' (--tests, --help)"
        exit 2
        ;;
    esac
done

case ${WEFT_SETUP:=auto} in
off) exit 0 ;;
auto | print) ;;
*)
    say "WEFT_SETUP=$WEFT_SETUP: must be auto, print or off"
    exit 2
    ;;
esac

find_missing
if ((${#missing[@]})); then
    print_missing missing
    [[ $WEFT_SETUP == auto ]] && may_install || exit 1
    if have apt-get; then
        install_packages "${apt_missing[@]}" || exit 1
    else
        install_packages "${dnf_missing[@]}" || exit 1
    fi
    find_missing
    if ((${#missing[@]})); then
        print_missing 'still missing after the installation'
        exit 1
    fi
fi

find_optional
if ((${#missing[@]})); then
    if [[ $WEFT_SETUP == auto && -n ${CI-} && $(id -u) == 0 ]] && { have apt-get || have dnf; }; then
        as_root=()
        install_optional
    else
        print_missing 'not here, and done without'
    fi
fi
exit 0
