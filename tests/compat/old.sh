#!/usr/bin/env bash
# old.sh ROOT CMAKE COMPILER: builds the version of Weft that the file `reference` names, once, from the history of the
# sources, and prints the folder of that build. Where it cannot: a line "skipped: REASON", and status 77.
set -u
root=$1 cmake=$2 compiler=$3
reference=$(<"$(dirname -- "${BASH_SOURCE[0]}")/reference")
place=$root/build-compat/$reference

skip() {
    echo "skipped: $*"
    exit 77
}

history() { git -c safe.directory="$root" -C "$root" "$@"; }

command -v git >/dev/null || skip 'needs the program git'
history rev-parse --verify --quiet "$reference^{commit}" >/dev/null 2>&1 ||
    skip "the history of the sources is not here (an archive, or a shallow clone): no commit $reference"

build() {
    [[ ! -e $place/complete ]] || return 0
    rm -rf -- "$place/source" "$place/build"
    mkdir -- "$place/source" || return
    history archive "$reference" | tar -x -C "$place/source" || return
    # It is built to talk, not to be measured: less optimisation takes half the time.
    "$cmake" -S "$place/source" -B "$place/build" -DWEFT_TESTS=OFF -DWEFT_NVCC=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_FLAGS=-O1 -DCMAKE_C_COMPILER="$compiler" || return
    "$cmake" --build "$place/build" --parallel "$(nproc)" --target weft weft_bin || return
    touch -- "$place/complete"
}

# The tests that need it may run at the same time: one of them builds.
mkdir -p -- "$place" || exit 1
(
    flock 9
    build
) 9>"$place/lock" >"$place/log" 2>&1 </dev/null || {
    tail -n 30 -- "$place/log" >&2
    echo "old.sh: the version $reference does not build: $place/log" >&2
    exit 1
}
echo "$place/build"
