#!/usr/bin/env bash
# setup.sh: finds what this machine lacks to build Weft, and installs exactly that where it may.
#
# What counts is whether a file or command is there, not which package brought it. With nothing missing it prints and
# does nothing. Everything it says goes to standard error, so that callers keep their standard output.
# shellcheck disable=SC2317  # the have_ and need_ functions are called by name
set -u

usage() {
    cat <<'EOF'
usage: setup.sh [--tests[=AREA,...]] [--help]

Checks that the compiler, tools and libraries for building Weft are here, and installs what is missing when it runs
as root, or when you say yes on a terminal (then with sudo). It never upgrades a package and never removes one.
What Weft can be built without (liburing, libmnl, libpmix, npm) and what single tests need is named and done without
where it cannot be had.

  --tests[=AREA,...]  also what the tests of these areas need: core (default), vm, install, compat, report,
                      plugin, cluster. Prints the names of what they have to do without, one a line, on standard output

Tools that `weft peers` and `weft collective` compare with (iperf3, UCX, MPI, Gloo, ...) are never installed: they use those
that are here.

  WEFT_SETUP=auto   (default) as above
  WEFT_SETUP=print  only print what is missing
  WEFT_SETUP=off    check nothing

Exit status: 0 Weft can be built, and its tests with --tests; 1 something for that is missing; 2 wrong usage.
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
have_admin() { have "$1" || [[ -x /usr/sbin/$1 || -x /sbin/$1 ]]; }

have_yaml() { python3 -c 'import yaml' >/dev/null 2>&1; }

have_sanitizer() {
    compgen -G "/usr/lib*/lib$1.so.*" >/dev/null || compgen -G "/usr/lib/*-linux-gnu/lib$1.so.*" >/dev/null
}

# Distributions pack the libraries of clang's sanitizers apart, libFuzzer among them.
have_libfuzzer() {
    printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const unsigned char *d, size_t n) { return d && n > 9; }\n' |
        clang -fsanitize=fuzzer,address -x c -o /dev/null - >/dev/null 2>&1
}

# need WHAT APT DNF CHECK...: adds what the check does not find to the lists of what is missing. An entry of a list is
# what brings one of them, so the lists are as long as each other.
need() {
    local what=$1 apt=$2 dnf=$3
    shift 3
    [[ " ${missing[*]} " == *" $what "* ]] || "$@" && return 0
    missing+=("$what")
    apt_missing+=("$apt")
    dnf_missing+=("$dnf")
}

# What can be done without comes behind the first `vital` of them.
find_missing() {
    local area
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
    ((${#areas[@]})) && need_to_build_tests
    vital=${#missing[@]}
    need 'liburing 2.1 or newer (the io_uring engine)' liburing-dev liburing-devel have_library 'liburing >= 2.1' liburing.h
    need 'libmnl (device-memory TCP)' libmnl-dev libmnl-devel have_library libmnl libmnl/libmnl.h
    need 'libpmix (ranks that mpirun and srun have started)' libpmix-dev pmix-devel have_library pmix pmix.h
    need 'npm (the charts of weft report)' npm npm have npm
    need_to_build_plugin
    for area in "${areas[@]}"; do
        "need_$area"
    done
}

# What goes into it comes from Debian's source packages.
need_to_build_plugin() {
    have apt-get || return 0
    need 'make (the plugin for NCCL)' make '' have make
    need 'bzip2 (the plugin for NCCL)' bzip2 '' have bzip2
    need 'xz (the plugin for NCCL)' xz-utils '' have xz
    [[ $HOSTTYPE != x86_64 ]] || need 'nasm (the plugin for NCCL)' nasm '' have nasm
}

need_to_build_tests() {
    need 'cmocka' libcmocka-dev libcmocka-devel have_library cmocka cmocka.h
    # On Debian and Ubuntu gcc brings them along.
    if have dnf && ! have apt-get; then
        need 'the address sanitizer' gcc libasan have_sanitizer asan
        need 'the undefined behaviour sanitizer' gcc libubsan have_sanitizer ubsan
        need 'the thread sanitizer' gcc libtsan have_sanitizer tsan
    fi
}

# The first word of each is what a test that is skipped for want of it says.
need_core() {
    local name
    need 'ninja (builds in less time than make)' ninja-build ninja-build have ninja
    need 'ip (makes networks for the tests)' iproute2 iproute have_admin ip
    need 'tc (gives them their rates)' iproute2 iproute-tc have_admin tc
    need 'clang (second compiler of the tests)' clang clang have clang
    need 'libFuzzer (fuzzes what strangers can say)' libclang-rt-dev compiler-rt have_libfuzzer
    need 'c++ (compiles the kernels of GPUs for the host)' g++ gcc-c++ have c++
    need 'readelf (which libraries a program asks for)' binutils binutils have readelf
    need 'strace (which engine runs)' strace strace have strace
    need 'jq (reads results)' jq jq have jq
    need 'python3 (reads topologies)' python3 python3 have python3
    for name in unshare nsenter setpriv taskset; do
        need "$name (namespaces, users and processors of tests)" util-linux util-linux have "$name"
    done
}

need_install() {
    need 'readelf (which libraries a program asks for)' binutils binutils have readelf
    ! have apt-get || need 'debootstrap (makes an empty Debian)' debootstrap '' have_admin debootstrap
}

need_compat() {
    need 'git (has the older versions)' git git have git
    need 'abidw (describes the interface of a library)' abigail-tools libabigail have abidw
    need 'abidiff (compares two such descriptions)' abigail-tools libabigail have abidiff
}

need_report() {
    need 'chromium (shows what weft report writes)' chromium chromium have chromium
    need 'node (leads it)' nodejs nodejs have node
    need 'gnuplot (draws the plots of weft report)' gnuplot-nox gnuplot have gnuplot
}

need_plugin() {
    need 'readelf (which libraries a program asks for)' binutils binutils have readelf
    need 'nm (which functions archives ask for)' binutils binutils have nm
    need 'python3 (has another OpenSSL)' python3 python3 have python3
    need 'unshare (namespaces, users and processors of tests)' util-linux util-linux have unshare
}

# Slurm without a cluster, for one that the tests make; programs by the names that Debian gives them.
need_cluster() {
    local name
    need 'ip (makes networks for the tests)' iproute2 iproute have_admin ip
    need 'tc (gives them their rates)' iproute2 iproute-tc have_admin tc
    need 'hostname (names them)' hostname hostname have hostname
    need 'jq (reads results)' jq jq have jq
    for name in unshare nsenter setpriv; do
        need "$name (namespaces, users and processors of tests)" util-linux util-linux have "$name"
    done
    need 'PyYAML of python3 (reads manifests)' python3-yaml python3-pyyaml have_yaml
    have apt-get || return 0
    need 'slurmctld (leads a Slurm of the tests)' slurmctld '' have_admin slurmctld
    need 'slurmd (is a node of it)' slurmd '' have_admin slurmd
    for name in srun sinfo; do
        need "$name (starts processes in it)" slurm-client '' have "$name"
    done
    need 'munged (knows its users)' munge '' have_admin munged
    need 'mpirun.openmpi (starts processes as Open MPI does)' openmpi-bin '' have mpirun.openmpi
    need 'mpiexec.mpich (starts processes as MPICH does)' mpich '' have mpiexec.mpich
}

# The guests boot Debian's kernels.
need_vm() {
    local name
    have apt-get || return 0
    need 'qemu-system-x86_64 (guests with several NUMA nodes)' qemu-system-x86 '' have qemu-system-x86_64
    need 'busybox (the shell of these guests)' busybox-static '' have busybox
    need 'cpio (packs their files)' cpio '' have cpio
    for name in modprobe depmod; do
        need "$name (finds their modules)" kmod '' have_admin "$name"
    done
    need 'xz (unpacks their modules)' xz-utils '' have xz
    need 'unshare (runs the compilers of newer kernels)' util-linux '' have unshare
}

print_missing() {
    local IFS=' '
    local list
    printf -v list '%s, ' "${missing[@]}"
    say "$1: ${list%, }"
    printf '  Debian, Ubuntu: apt-get install --no-install-recommends %s\n' "${apt_missing[*]}" >&2
    [[ ${dnf_missing[*]} == *[!\ ]* ]] &&
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

# install_packages SAID PACKAGE...: SAID is `loud` or `quiet`, of what a failed installation wrote.
install_packages() {
    local log said=$1 status=0
    shift
    log=$(mktemp) || return 1
    say "installing: $*"
    install "$@" >"$log" 2>&1 </dev/null || status=1
    [[ $status$said == 1loud ]] && tail -n 15 -- "$log" >&2
    rm -f -- "$log"
    return "$status"
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
        say 'not root, and nobody to ask: install the above by hand'
        return 1
    fi
    read -r -p 'setup.sh: install them now with sudo? [y/N] ' answer
    [[ $answer == [yY]* ]] || return 1
    as_root=(sudo)
}

# What cannot be done without, in one go; then the rest, one by one where not all of it can be had.
install_missing() {
    local package
    local -a all=("${apt_missing[@]}") first rest
    have apt-get || all=("${dnf_missing[@]}")
    read -r -d '' -a first <<<"${all[*]:0:vital}"
    read -r -d '' -a rest <<<"${all[*]:vital}"
    if ((${#first[@]})); then
        install_packages loud "${first[@]}" || return 1
    fi
    ((${#rest[@]} == 0)) || install_packages quiet "${rest[@]}" && return
    for package in "${rest[@]}"; do
        install_packages quiet "$package"
    done
}

# areas_of LIST: sets areas.
areas_of() {
    local area
    IFS=, read -r -a areas <<<"$1"
    for area in "${areas[@]}"; do
        [[ " core vm install compat report plugin cluster " == *" $area "* ]] && continue
        say "--tests '$area': must be core, vm, install, compat, report, plugin or cluster"
        exit 2
    done
}

areas=()
updated=0
for argument in "$@"; do
    case $argument in
    --tests) areas=(core) ;;
    --tests=*) areas_of "${argument#*=}" ;;
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
    if [[ $WEFT_SETUP == auto ]] && may_install; then
        install_missing
        find_missing
        ((vital == 0)) || print_missing 'still missing after the installation'
    fi
    ((vital == 0)) || exit 1
fi
if ((${#missing[@]})); then
    say "done without: ${missing[*]%% *}"
    ((${#areas[@]} == 0)) || printf '%s\n' "${missing[@]%% *}"
fi
exit 0
