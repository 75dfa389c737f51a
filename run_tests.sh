#!/usr/bin/env bash
# run_tests.sh: builds Weft in each variant, runs the tests, and closes with one line:
#
#     N passed, N failed, N skipped
set -u

here=$(readlink -f -- "${BASH_SOURCE[0]}")
root=${here%/*}

usage() {
    cat <<'EOF'
usage: run_tests.sh [--full] [--only VARIANT] [--help]

Builds and tests Weft: the quick tests, a few minutes.

  --full          all tests, long
  --only VARIANT  one of: gcc    plain build, in build/
                          asan   address and undefined behaviour sanitizers, in build-asan/
                          tsan   thread sanitizer, in build-tsan/
                          clang  compiles everything with clang, in build-clang/ (counts as one test), and fuzzes

  WEFT_SETUP=auto|print|off  may missing packages be installed: see setup.sh --help

Exit status: 0 something ran and nothing failed; 1 otherwise; 2 wrong usage.
EOF
}

say() { printf 'run_tests.sh: %s\n' "$*" >&2; }
wrong_usage() {
    say "$*"
    exit 2
}

# build FOLDER OPTION...: quiet unless it fails.
build() {
    local folder=$root/$1 status
    shift
    mkdir -p -- "$folder" || return 1
    (
        command -v flock >/dev/null && flock 9
        cmake -S "$root" -B "$folder" -DWEFT_TESTS=ON -DWEFT_WERROR=ON "$@" &&
            cmake --build "$folder" --parallel "$(nproc)"
    ) 9>"$folder/.lock" >"$folder/build.log" 2>&1 </dev/null
    status=$?
    if ((status)); then
        tail -n 60 -- "$folder/build.log" >&2
        say "the build failed: all of its output is in $folder/build.log"
    fi
    return "$status"
}

# Adds up what ctest wrote. A test whose program is missing is "skipped" to ctest, and failed here.
count() {
    local file=$1 ran ok left_out
    ran=$(grep -c '<testcase ' -- "$file")
    ok=$(grep -c '<testcase .* status="run"' -- "$file")
    left_out=$(grep -c -e '<testcase .* status="disabled"' -e '<skipped message="SKIP_' -- "$file")
    passed=$((passed + ok)) skipped=$((skipped + left_out)) failed=$((failed + ran - ok - left_out))
}

# run VARIANT FOLDER LEFT_OUT ONLY: the tests of a build, without those that carry the label LEFT_OUT; with ONLY, a
# pattern, just those whose name it fits. Three at a time are two cores' worth: most of them wait more than they work.
run() {
    local folder=$root/$2 junit=$root/$2/junit.xml before=$failed status
    rm -f -- "$junit"
    "${prefix[@]}" ctest --test-dir "$folder" --output-on-failure --no-tests=error -j 3 --timeout "$timeout" \
        -L "$labels" ${3:+-LE "^$3\$"} ${4:+-R "$4"} --output-junit "$junit" </dev/null
    status=$?
    [[ -f $junit ]] && count "$junit"
    if ((status && failed == before)); then
        say "$1: ctest ended with status $status"
        failed=$((failed + 1))
    fi
}

# build_and_run VARIANT FOLDER LEFT_OUT OPTION...
build_and_run() {
    printf '== %s\n' "$1"
    if build "$2" "${@:4}"; then
        run "$1" "$2" "$3"
    else
        failed=$((failed + 1))
    fi
}

variant() {
    prefix=()
    case $1 in
    gcc) build_and_run gcc build '' -DWEFT_SANITIZE= ;;
    asan) build_and_run asan build-asan noasan -DWEFT_SANITIZE=address,undefined -DWEFT_NVCC=OFF ;;
    tsan)
        # Address layouts of newer kernels are more random than older thread sanitizers can map.
        setarch -R true 2>/dev/null && prefix=(setarch -R)
        build_and_run tsan build-tsan notsan -DWEFT_SANITIZE=thread -DWEFT_NVCC=OFF
        ;;
    clang)
        printf '== clang\n'
        if ! command -v clang >/dev/null; then
            say 'clang is not here: skipped'
            skipped=$((skipped + 1))
        elif CC=clang build build-clang -DWEFT_NVCC=OFF; then
            passed=$((passed + 1))
            run clang build-clang '' '^fuzz[.]' # the other tests are the other compiler's
        else
            failed=$((failed + 1))
        fi
        ;;
    esac
}

labels='^quick$'
timeout=300
variants=(gcc asan tsan clang)
while (($#)); do
    case $1 in
    --full)
        labels='^(quick|full)$'
        timeout=1800
        ;;
    --only | --only=*)
        if [[ $1 == --only ]]; then
            shift
            name=${1-}
        else
            name=${1#*=}
        fi
        case $name in
        gcc | asan | tsan | clang) variants=("$name") ;;
        *) wrong_usage "--only '$name': must be gcc, asan, tsan or clang" ;;
        esac
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) wrong_usage "unknown option '$1' (--full, --only VARIANT, --help)" ;;
    esac
    shift
done

"$root/setup.sh" --tests || exit 1
command -v make >/dev/null || export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}

passed=0 failed=0 skipped=0
for name in "${variants[@]}"; do
    variant "$name"
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0 && passed > 0))
