#!/usr/bin/env bash
# run_tests.sh: builds Weft in each variant, runs the tests, and closes with one line:
#
#     N passed, N failed, N skipped
set -u

here=$(readlink -f -- "${BASH_SOURCE[0]}")
root=${here%/*}

usage() {
    cat <<'EOF'
usage: run_tests.sh [--full] [--area AREA,...] [--only VARIANT] [--ci] [--help]

Builds and tests Weft: the quick tests, in each variant. Under 10 minutes on two cores that are otherwise idle; what
setup.sh may have to install first is not counted.

  --full           all tests, hours
  --area AREA,...  the tests of: core     (default) all that are in no other area
                                 vm       guests with several NUMA nodes or newer kernels, in variant gcc
                                 install  the installed library and the bundle, in variant gcc
                                 compat   this version beside an older one, and its interface, in variant gcc
                                 report   what weft report writes, in a browser, in variant gcc
                                 plugin   the plugin for NCCL, in variants gcc, asan and tsan
                                 cluster  four nodes under Slurm, MPI and torchrun's variables, in variant gcc
  --only VARIANT   one of: gcc       plain build, in build/
                           asan      address and undefined behaviour sanitizers, in build-asan/
                           tsan      thread sanitizer, in build-tsan/
                           clang     compiles with clang, in build-clang/ (counts as one test), and fuzzes: what is fuzzed, with
                             --ci all of the program, with --full everything
                           no_uring  without io_uring and libmnl, in build-no_uring/, some tests; only with this option or --ci
  --ci             as .ci/run does: also the tests of tier ci, a test of each other area, and variant no_uring; 20 to 30 minutes

  WEFT_SETUP=auto|print|off  may missing packages be installed: see setup.sh --help

A test that is skipped for want of a program or library has failed where setup.sh had it or could have it. What else is
skipped is listed with its reason, before the last line. `off` believes the tests.

Exit status: 0 something ran and nothing failed; 1 otherwise; 2 wrong usage.
EOF
}

say() { printf 'run_tests.sh: %s\n' "$*" >&2; }
wrong_usage() {
    say "$*"
    exit 2
}

# build FOLDER OPTION...: quiet unless it fails. All targets, or those of the array `targets`. Warnings are errors in a new
# folder; one in which run_p2p_fullmesh.sh has built without stays so, or all of it would be compiled a second time.
build() {
    local folder=$root/$1 status
    local -a new=()
    shift
    mkdir -p -- "$folder" || return 1
    if [[ ! -e $folder/CMakeCache.txt ]]; then
        new=(-DWEFT_WERROR=ON)
        ! command -v ninja >/dev/null || new+=(-G Ninja)
    fi
    (
        command -v flock >/dev/null && flock 9
        cmake "${new[@]}" -S "$root" -B "$folder" -DWEFT_TESTS=ON "$@" &&
            cmake --build "$folder" --parallel "$(nproc)" ${targets[@]:+--target "${targets[@]}"}
    ) 9>"$folder/.lock" >"$folder/build.log" 2>&1 </dev/null
    status=$?
    if ((status)); then
        tail -n 60 -- "$folder/build.log" >&2
        say "the build failed: all of its output is in $folder/build.log"
    fi
    return "$status"
}

# skipped_tests FILE: "NAME<tab>REASON" of each test that ctest's report calls skipped.
skipped_tests() {
    awk '/<testcase / { name = $0; sub(/.* name="/, "", name); sub(/".*/, "", name); left_out = /status="disabled"/; why = "" }
        /<skipped message="SKIP_/ { left_out = 1 }
        match($0, /(skipped|not available here): /) {
            why = substr($0, RSTART + RLENGTH)
            sub(/.*not available here: /, "", why)
        }
        /<\/testcase>/ && left_out {
            gsub(/&quot;/, "\"", why); gsub(/&apos;/, "\047", why); gsub(/&lt;/, "<", why); gsub(/&gt;/, ">", why)
            gsub(/&amp;/, "\\&", why)
            print name "\t" (why == "" ? "no reason given" : why)
        }' "$1"
}

# leave_out NAME REASON: counts it as skipped, or as failed when set-up had what it lacks.
leave_out() {
    local want=''
    [[ $2 =~ needs\ the\ (program|library)\ ([^ ,:;]+) ]] && want=${BASH_REMATCH[2]}
    [[ $2 == *'this build has no io_uring'* ]] && want=liburing
    [[ $2 == *'built without libmnl'* ]] && want=libmnl
    if [[ ${WEFT_SETUP-} != off && $want && " $lacking " != *" $want "* ]]; then
        say "FAILED: $1 is skipped for want of $want, which set-up found or installed"
        failed=$((failed + 1))
        return
    fi
    skipped=$((skipped + 1))
    reasons[$2]+=" $1"
}

# Adds up what ctest wrote. A test whose program is missing is "skipped" to ctest, and failed here.
count() {
    local file=$1 ran ok before=$((skipped + failed)) name why
    ran=$(grep -c '<testcase ' -- "$file")
    ok=$(grep -c '<testcase .* status="run"' -- "$file")
    while IFS=$'\t' read -r name why; do
        leave_out "$name" "$why"
    done < <(skipped_tests "$file")
    passed=$((passed + ok)) failed=$((failed + ran - ok - (skipped + failed - before)))
}

# run VARIANT FOLDER CTEST-OPTION...: tests of a build. Four at a time are two cores' worth: most of them wait more than
# they work.
run() {
    local folder=$root/$2 junit=$root/$2/junit.xml before=$failed status
    rm -f -- "$junit"
    "${prefix[@]}" ctest --test-dir "$folder" --output-on-failure --no-tests=error -j 4 --timeout "$timeout" \
        "${@:3}" --output-junit "$junit" </dev/null
    status=$?
    [[ -f $junit ]] && count "$junit"
    if ((status && failed == before)); then
        say "$1: ctest ended with status $status"
        failed=$((failed + 1))
    fi
}

# build_and_run VARIANT FOLDER LEFT_OUT OPTION...: the tests of the areas, without those that carry the label LEFT_OUT.
build_and_run() {
    printf '== %s\n' "$1"
    if ! build "$2" "${@:4}"; then
        failed=$((failed + 1))
        return
    fi
    run "$1" "$2" -L "$labels" ${3:+-LE "^$3\$"} "${of_areas[@]}"
}

compile_and_fuzz() {
    printf '== clang\n'
    if ! command -v clang >/dev/null; then
        leave_out 'variant clang' 'needs the program clang'
    elif CC=clang build build-clang -DWEFT_NVCC=OFF -DWEFT_NCCL_PLUGIN=OFF -UWEFT_HAS_LIBFUZZER \
        "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O0 -DNDEBUG"; then
        passed=$((passed + 1))
        run clang build-clang -L "$labels" -R '^fuzz[.]' # the other tests are the other compiler's
        grep -q '^WEFT_HAS_LIBFUZZER:.*=1$' "$root/build-clang/CMakeCache.txt" ||
            leave_out 'fuzz.*' 'needs the library libFuzzer'
    else
        failed=$((failed + 1))
    fi
}

variant() {
    local -a prefix=() targets=()
    case $1 in
    gcc)
        build_and_run gcc build '' -DWEFT_SANITIZE=
        ((ci == 0)) || run gcc build -L '^smoke$'
        ;;
    asan) build_and_run asan build-asan noasan -DWEFT_SANITIZE=address,undefined -DWEFT_NVCC=OFF ;;
    tsan)
        # Address layouts of newer kernels are more random than older thread sanitizers can map.
        setarch -R true 2>/dev/null && prefix=(setarch -R)
        build_and_run tsan build-tsan notsan -DWEFT_SANITIZE=thread -DWEFT_NVCC=OFF
        ;;
    clang)
        ((full)) || targets=(fuzz)
        ((ci == 0)) || targets+=(weft_bin)
        compile_and_fuzz
        ;;
    no_uring)
        targets=(no_uring)
        labels='^no_uring$' build_and_run no_uring build-no_uring '' -DWEFT_URING=OFF -DWEFT_MNL=OFF -DWEFT_NVCC=OFF -DWEFT_NCCL_PLUGIN=OFF
        ;;
    esac
}

# What was skipped, by reason.
tell_skipped() {
    local why
    ((${#reasons[@]} == 0)) || printf 'skipped:\n'
    for why in "${!reasons[@]}"; do
        printf '  %s:%s\n' "$why" "${reasons[$why]}"
    done | sort
}

# choose_areas LIST: sets areas, and of_areas, by which ctest finds their tests: those of an area have its name before a
# dot, all others are of area core.
others=(vm install compat report plugin cluster)
choose_areas() {
    local area pattern=''
    IFS=, read -r -a areas <<<"$1"
    for area in "${areas[@]}"; do
        [[ " core ${others[*]} " == *" $area "* ]] || wrong_usage "--area '$area': must be core, vm, install, compat, report, plugin or cluster"
    done
    ((${#areas[@]})) || wrong_usage "--area '$1': must be core, vm, install, compat, report, plugin or cluster"
    of_areas=()
    if [[ " ${areas[*]} " == *' core '* ]]; then
        for area in "${others[@]}"; do
            [[ " ${areas[*]} " == *" $area "* ]] || pattern+="${pattern:+|}$area"
        done
        [[ ! $pattern ]] || of_areas=(-E "^($pattern)[.]")
    else
        printf -v pattern '|%s' "${areas[@]}"
        of_areas=(-R "^(${pattern#|})[.]")
        variants=(gcc)
        [[ " ${areas[*]} " != *' plugin '* ]] || variants+=(asan tsan)
    fi
}

timeout=300
ci=0 full=0
variants=(gcc asan tsan clang)
choose_areas core
while (($#)); do
    case $1 in
    --full)
        full=1
        timeout=1800
        ;;
    --ci) ci=1 ;;
    --only | --only=* | --area | --area=*)
        option=${1%%=*}
        if [[ $1 == *=* ]]; then
            value=${1#*=}
        else
            shift
            value=${1-}
        fi
        if [[ $option == --area ]]; then
            choose_areas "$value"
        else
            case $value in
            gcc | asan | tsan | clang | no_uring) only=$value ;;
            *) wrong_usage "--only '$value': must be gcc, asan, tsan, clang or no_uring" ;;
            esac
        fi
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) wrong_usage "unknown option '$1' (--full, --area AREA, --only VARIANT, --ci, --help)" ;;
    esac
    shift
done
labels='^quick$'
((ci == 0)) || labels='^(quick|ci)$'
((full == 0)) || labels='^(quick|ci|full)$'
if ((ci)); then
    areas=(core) # set-up's: what clusters are made of is large, and the smoke test of that area needs none of it
    for area in "${others[@]}"; do
        [[ $area == cluster ]] || areas+=("$area")
    done
    variants+=(no_uring)
fi
[[ ${only-} ]] && variants=("$only")

export PATH=$PATH:/usr/sbin:/sbin # users other than root often have none of them
lacking=$("$root/setup.sh" --tests="$(IFS=, && echo "${areas[*]}")") || exit 1
lacking=${lacking//$'\n'/ }
command -v make >/dev/null || export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja} # also of tests that build

declare -A reasons=()
passed=0 failed=0 skipped=0
for name in "${variants[@]}"; do
    variant "$name"
done
tell_skipped
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0 && passed > 0))
