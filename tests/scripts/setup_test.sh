#!/usr/bin/env bash
# setup.sh on made-up machines: PATH holds a few real commands and programs that stand for the rest.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

machine=$scratch/machine

# A machine that has everything, whose user is $1 and whose package manager is $2.
make_machine() {
    local name
    rm -rf -- "$machine"
    mkdir -p -- "$machine"
    for name in bash env rm mktemp tail cat touch grep; do
        ln -s -- "$(type -P "$name")" "$machine/$name"
    done
    for name in gcc make ninja npm ip tc clang c++ readelf strace jq python3 unshare nsenter setpriv taskset \
        hostname qemu-system-x86_64 busybox cpio modprobe depmod xz bzip2 nasm; do
        program "$machine" "$name" <<<'exit 0'
    done
    program "$machine" cmake <<<'echo "cmake version 3.22.1"'
    program "$machine" pkg-config <<<"[[ ! -e '$scratch/lacks_'\${2%% *} ]]"
    program "$machine" id <<<"echo $1"
    # Installs libisal only; fails, like the real one, as long as its lists are too old.
    program "$machine" "$2" <<EOF
echo "$2 \$*" >>'$scratch/calls'
case "\$*" in
*update*) rm -f '$scratch/old_lists' ;;
*install*)
    [[ ! -e '$scratch/old_lists' ]] || exit 100
    for package; do
        [[ ! -e '$scratch/no_'\$package ]] || exit 100
    done
    case "\$*" in *isal* | *isa-l*) rm -f '$scratch/lacks_libisal' ;; esac ;;
esac
EOF
    # The sanitizers that a dnf machine is asked for cannot be made up here: they are files of the system.
    rm -f -- "$scratch"/lacks_* "$scratch"/no_* "$scratch/old_lists"
    : >"$scratch/calls"
}

setup() { run env PATH="$machine" "$@"; }
calls() { cat -- "$scratch/calls"; }

make_machine 1000 apt-get
setup bash "$root/setup.sh"
expect_status 0 'nothing missing'
expect_lines 0 'nothing missing: silence'
setup bash "$root/setup.sh" --tests
expect_status 0 'nothing missing for the tests'
expect_lines 0 'nothing missing for the tests: silence'

make_machine 0 apt-get
touch "$scratch/lacks_libisal" "$scratch/lacks_libssl"
setup WEFT_SETUP=print bash "$root/setup.sh"
expect_status 1 'print'
expect_text 'ISA-L, OpenSSL' 'print: what'
expect_text 'libisal-dev libssl-dev' 'print: apt names'
expect_text 'isa-l-devel openssl-devel' 'print: dnf names'
expect_no_text 'jansson' 'print: only what is missing'
[[ -z $(calls) ]] || fail "print installed something: $(calls)"

setup WEFT_SETUP=off bash "$root/setup.sh"
expect_status 0 'off'
expect_lines 0 'off: silence'

make_machine 0 apt-get
touch "$scratch/lacks_libisal" "$scratch/old_lists"
setup bash "$root/setup.sh"
expect_status 0 'root installs'
[[ $(calls) == *install*update*install* ]] || fail "lists are fetched when the first try fails: $(calls)"
[[ $(calls) == *--no-install-recommends* && $(calls) == *--no-upgrade* ]] || fail "careful options: $(calls)"

make_machine 0 apt-get
touch "$scratch/lacks_libisal"
setup bash "$root/setup.sh"
expect_status 0 'root installs, lists fresh'
[[ $(calls) != *update* ]] || fail "lists fetched without need: $(calls)"
[[ $(calls) == *' libisal-dev' ]] || fail "one package only: $(calls)"

make_machine 0 apt-get
touch "$scratch/lacks_jansson"
setup bash "$root/setup.sh"
expect_status 1 'an installation that did not help'
expect_text 'still missing' 'an installation that did not help'

make_machine 1000 apt-get
touch "$scratch/lacks_libisal"
setup bash "$root/setup.sh"
expect_status 1 'no root, no terminal'
[[ -z $(calls) ]] || fail "no root, no terminal, yet: $(calls)"
setup CI=true bash "$root/setup.sh"
expect_status 1 'no root in CI'

make_machine 0 dnf
touch "$scratch/lacks_libisal"
setup bash "$root/setup.sh"
expect_status 0 'dnf'
[[ $(calls) == *' isa-l-devel' ]] || fail "dnf installs: $(calls)"

make_machine 0 apt-get
program "$machine" cmake <<<'echo "cmake version 3.18.4"'
setup WEFT_SETUP=print bash "$root/setup.sh"
expect_status 1 'old cmake'
expect_text 'cmake 3.22 or newer' 'old cmake'

make_machine 0 apt-get
rm -f -- "$machine/make" "$machine/ninja"
setup WEFT_SETUP=print bash "$root/setup.sh"
expect_text 'make or ninja' 'no make'
program "$machine" ninja <<<'exit 0'
setup WEFT_SETUP=print bash "$root/setup.sh"
expect_status 0 'ninja will do'

# ---- what is done without where it cannot be had: nobody to ask
make_machine 1000 apt-get
rm -f -- "$machine/clang"
setup bash "$root/setup.sh" --tests
expect_status 0 'clang can be done without'
expect_text 'clang (second compiler' 'its absence is told'
[[ $(env PATH="$machine" bash "$root/setup.sh" --tests 2>/dev/null </dev/null) == $'clang\nlibFuzzer' ]] ||
    fail "standard output has the names of what is done without: $output"
setup bash "$root/setup.sh"
expect_lines 0 'without --tests nobody asks for it'
program "$machine" clang <<<'[[ $* != *fuzzer* ]]'
setup bash "$root/setup.sh" --tests
expect_status 0 'libFuzzer can be done without'
expect_text 'libclang-rt-dev' 'its package is told'
touch "$scratch/lacks_liburing"
setup bash "$root/setup.sh"
expect_status 0 'liburing can be done without'
expect_text 'liburing-dev' 'its package is told'
rm -f -- "$machine/npm"
setup bash "$root/setup.sh"
expect_status 0 'npm can be done without'
expect_text 'npm (the charts of weft report)' 'its absence is told'
rm -f -- "$machine/nasm"
setup bash "$root/setup.sh"
expect_status 0 'nasm can be done without'
[[ $HOSTTYPE != x86_64 ]] || expect_text 'nasm (the plugin for NCCL)' 'its absence is told'
touch "$scratch/lacks_libmnl"
setup bash "$root/setup.sh"
expect_status 0 'libmnl can be done without'
expect_text 'libmnl-dev' 'its package is told'
touch "$scratch/lacks_pmix"
setup bash "$root/setup.sh"
expect_status 0 'libpmix can be done without'
expect_text 'libpmix-dev' 'its package is told'
expect_text 'pmix-devel' 'its package is told, that of dnf, too'
touch "$scratch/lacks_libisal"
setup bash "$root/setup.sh"
expect_status 1 'but not ISA-L'
[[ -z $(calls) ]] || fail "installed without root: $(calls)"

# ---- root, with and without CI: the same
for ci in '' 1; do
    make_machine 0 apt-get
    rm -f -- "$machine/strace" "$machine/qemu-system-x86_64" "$machine/jq"
    touch "$scratch/lacks_liburing"
    setup CI=$ci bash "$root/setup.sh"
    expect_status 0 "CI=$ci: liburing"
    [[ $(calls) == *' liburing-dev' ]] || fail "CI=$ci: liburing is installed, and nothing else: $(calls)"
    : >"$scratch/calls"
    touch "$scratch/no_jq"
    setup CI=$ci bash "$root/setup.sh" --tests
    [[ $(calls) == *' liburing-dev strace jq'* && $(calls) != *qemu* ]] || fail "CI=$ci: the tests of core: $(calls)"
    [[ $(calls) == *' strace'$'\n'*' jq'* ]] || fail "CI=$ci: one by one where they cannot be had together: $(calls)"
    expect_status 0 "CI=$ci: what the distribution lacks"
    expect_text 'done without: liburing strace jq' "CI=$ci: what the distribution lacks is named"
    : >"$scratch/calls"
    setup CI=$ci bash "$root/setup.sh" --tests=vm
    [[ $(calls) == *' qemu-system-x86'* && $(calls) != *strace* ]] || fail "CI=$ci: the tests of vm: $(calls)"
    [[ $(calls) != *chromium* ]] || fail "CI=$ci: the tests of report were not asked for: $(calls)"
    : >"$scratch/calls"
    setup CI=$ci bash "$root/setup.sh" --tests=report
    [[ $(calls) == *' chromium nodejs gnuplot-nox'* && $(calls) != *strace* ]] || fail "CI=$ci: the tests of report: $(calls)"
    : >"$scratch/calls"
    setup CI=$ci bash "$root/setup.sh" --tests=cluster
    [[ $(calls) == *' slurm-client'*' openmpi-bin mpich'* && $(calls) != *chromium* ]] ||
        fail "CI=$ci: the tests of cluster: $(calls)"
    [[ $(calls) != *iperf* && $(calls) != *ucx* ]] || fail "CI=$ci: tools to compare with: $(calls)"
done
make_machine 0 apt-get
touch "$scratch/lacks_liburing" "$scratch/lacks_libisal"
setup bash "$root/setup.sh"
expect_status 0 'both kinds'
[[ $(calls) == *' libisal-dev'$'\n'*' liburing-dev'* ]] || fail "first what nothing goes without: $(calls)"
make_machine 0 apt-get
touch "$scratch/lacks_pmix" "$scratch/no_libpmix-dev"
setup bash "$root/setup.sh"
expect_status 0 'a distribution that has no libpmix'
[[ $(calls) == *' libpmix-dev' ]] || fail "libpmix is asked for without --tests, too: $(calls)"
expect_text 'done without: libpmix' 'a distribution that has no libpmix'
make_machine 0 dnf
rm -f -- "$machine/qemu-system-x86_64"
setup bash "$root/setup.sh" --tests=vm
[[ $(calls) != *qemu* ]] || fail "QEMU is asked for where its guests cannot be had: $(calls)"

setup bash "$root/setup.sh" --tests=core,some
expect_status 2 'unknown area'
expect_text "'some'" 'unknown area'
setup bash "$root/setup.sh" --wrong
expect_status 2 'unknown option'
expect_lines 1 'unknown option'
setup WEFT_SETUP=maybe bash "$root/setup.sh"
expect_status 2 'unknown WEFT_SETUP'
expect_text 'maybe' 'unknown WEFT_SETUP'
setup bash "$root/setup.sh" --help
expect_status 0 'help'
expect_text 'usage: setup.sh' 'help'

finish
