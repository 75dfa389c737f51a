#!/usr/bin/env bash
# run_p2p_fullmesh.sh and run_collectives.sh in trees that are not as they were made: with a program that is current, moved
# to another place, half made, started by a launcher, and of another user.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"
[[ -n $scratch && -n $root ]] || exit 1
unset WORLD_SIZE SLURM_STEP_NUM_TASKS PMI_SIZE PMIX_NAMESPACE SLURM_PROCID PMIX_RANK PMI_RANK RANK CMAKE_GENERATOR

# The program of a build prints what it is, and with what it was started.
# shellcheck disable=SC2016  # expanded by the program
printf '%s\n' '#!/bin/bash' '[[ $1 == --version ]] || printf "<%s>" "$0" "$@"' >"$scratch/the program"
chmod +x -- "$scratch/the program"

# cmake makes it, unless it has NOTHING_TO_DO, and the file by which it knows its folder. It refuses what was made for
# another one.
asked=$scratch/asked.log
program "$scratch/fake" cmake <<'END'
echo "${CMAKE_GENERATOR:+$CMAKE_GENERATOR: }$*" >>"$ASKED"
builds=0
while (($#)); do
    case $1 in
    -B) folder=$2 ;;
    --build) folder=$2 builds=1 ;;
    esac
    shift
done
if ((builds)); then
    mkdir -p -- "$folder/bin"
    [[ ${NOTHING_TO_DO-} ]] || { cp -- "$MADE" "$folder/bin/new" && mv -f -- "$folder/bin/new" "$folder/bin/weft"; }
    sleep "${TAKES:-0}"
    echo 'the end' >>"$ASKED"
else
    grep -qsv "=$TREE$" "$folder/CMakeCache.txt" && exit 1
    printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\n' "$TREE" >"$folder/CMakeCache.txt"
    [[ ${NOT_CONFIGURED-} ]] && exit 1
    touch -- "$folder/Makefile"
fi
END
tree=$scratch/tree
script=$tree/run_p2p_fullmesh.sh suite=$tree/run_collectives.sh
export ASKED=$asked MADE="$scratch/the program" TREE=$tree PATH=$scratch/fake:$PATH

# A tree with a program that is newer than its sources; a folder to be in, and one for a cache.
make_tree() {
    chmod -R -- u+w "$tree" 2>/dev/null
    rm -rf -- "$tree" "$scratch/here" "$scratch/cache" "$asked"
    mkdir -p -- "$tree/transport" "$tree/build/bin" "$scratch/here" "$scratch/cache"
    cp -- "$root/run_p2p_fullmesh.sh" "$root/run_collectives.sh" "$root/CMakeLists.txt" "$tree/"
    cp -R -- "$root/scripts" "$tree/"
    program "$tree" setup.sh <<<'exit 0'
    touch -d '1 hour ago' -- "$tree/CMakeLists.txt" "$tree/transport/weft.c"
    printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\n' "$tree" >"$tree/build/CMakeCache.txt"
    touch -- "$tree/build/Makefile"
    cp -- "$MADE" "$tree/build/bin/weft"
    cd -- "$scratch/here" || exit 1
}

make_old() {
    touch -d '1 minute ago' -- "$tree/build/bin/weft"
    touch -- "$tree/transport/weft.c"
}

# ---- a program that is newer than its sources, or is not
make_tree
run "$script"
expect_status 0 'a current program'
expect_text "<$tree/build/bin/weft><mesh>" 'a current program'
[[ -e $asked ]] && fail "a current program is built again: $(<"$asked")"
make_old
run "$script"
expect_status 0 'an old program'
[[ -e $asked ]] || fail 'an old program is not built'
for part in affinity bench cmake collective peers plugins transport; do
    make_tree
    mkdir -p -- "$tree/$part/room"
    touch -d '1 minute' -- "$tree/$part/room/source.c"
    run "$script"
    [[ -e $asked ]] || fail "a newer source in $part/, and nothing is built"
done
# What is newer may be nothing to the program, which then stays as it is: it is built once.
make_tree
make_old
run env NOTHING_TO_DO=1 "$script"
rm -- "$asked"
run "$script"
[[ -e $asked ]] && fail "a current build is built again: $(<"$asked")"
touch -- "$tree/transport/weft.c"
run "$script"
[[ -e $asked ]] || fail 'a source that is newer than the build, and nothing is built'
make_tree
printf '#!/bin/bash\nexit 127\n' >"$tree/build/bin/weft"
run "$script"
expect_status 0 'a program of another machine'
[[ -e $asked ]] || fail 'a program of another machine is not built'

# ---- moved, or mounted somewhere else
make_tree
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else\n' >"$tree/build/CMakeCache.txt"
mkdir -- "$tree/build/CMakeFiles"
echo mine >"$tree/build/mine"
run "$script"
expect_status 0 'a moved tree'
expect_text 'build/ was made for another folder of sources: it is made anew' 'a moved tree'
expect_text "<$tree/build/bin/weft><mesh>" 'a moved tree'
[[ $(<"$tree/build/mine") == mine ]] || fail 'a moved tree: a file of the user is gone'
run "$script"
expect_no_text 'anew' 'a moved tree: once is enough'

# ---- the same of the suite, which needs more than the program
make_tree
run "$suite" profile
expect_status 0 'the suite'
expect_text "<$tree/build/bin/weft><collective>" 'the suite'
grep -q -- '--target all' "$asked" || fail "the suite: not all is built: $(<"$asked")"
rm -- "$asked"
run "$suite" profile
[[ -e $asked ]] && fail "the suite: a current build is built again: $(<"$asked")"
make_old
run "$suite" profile
[[ -e $asked ]] || fail 'the suite: an old build is not built'
make_tree
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else\n' >"$tree/build/CMakeCache.txt"
run "$suite" profile
expect_status 0 'the suite, moved'
expect_text 'build/ was made for another folder of sources: it is made anew' 'the suite, moved'
# A configuration that fails leaves nothing that the next one would believe.
make_tree
rm -r -- "$tree/build"
run env NOT_CONFIGURED=1 "$suite" profile
expect_status 1 'the suite, not configured'
[[ ! -e $tree/build/CMakeCache.txt ]] || fail 'the suite, not configured: its file is left'
# One by hand has left its file.
for started in "$script" "$suite"; do
    make_tree
    rm -- "$tree/build/Makefile" "$tree/build/bin/weft"
    run "$started" "$([[ $started == "$script" ]] && echo local || echo profile)"
    expect_status 0 "${started##*/}, half configured"
    grep -q -- '-DWEFT_TESTS=OFF' "$asked" || fail "${started##*/}, half configured: $(<"$asked")"
done

# ---- with ninja alone, which CMake has to be told
mkdir -- "$scratch/tools" || exit 1
for name in bash cat cksum cp date dirname env find flock grep head mkdir mktemp mv nproc readlink rm sed sleep sort tail touch tr; do
    ln -s -- "$(type -P "$name")" "$scratch/tools/$name"
done
for started in "$script" "$suite"; do
    make_tree
    rm -- "$tree/build/Makefile" "$tree/build/bin/weft" "$tree/build/CMakeCache.txt"
    run env PATH="$scratch/fake:$scratch/tools" "$started" "$([[ $started == "$script" ]] && echo local || echo profile)"
    expect_status 0 "${started##*/}, without make"
    grep -q '^Ninja: -S' "$asked" || fail "${started##*/}, without make: $(<"$asked")"
done

# ---- ranks that a launcher has started: they take what is there; where there is nothing, one of them builds at a time
for launcher in WORLD_SIZE=2 SLURM_STEP_NUM_TASKS=2 PMI_SIZE=2 PMIX_NAMESPACE=job; do
    make_tree
    make_old
    run env RANK=0 "$launcher" "$suite" profile
    expect_status 0 "an old program under $launcher"
    expect_text 'build/bin/weft is older than its sources, and a launcher has started this: it is used as it is' "$launcher"
    expect_text '<--processes><found>' "$launcher"
    [[ -e $asked ]] && fail "an old program under $launcher: it is built: $(<"$asked")"
done
make_tree
rm -- "$tree/build/bin/weft"
ranks=()
for rank in 0 1 2; do
    RANK=$rank WORLD_SIZE=3 TAKES=0.3 "$suite" profile >"$scratch/rank.$rank" 2>&1 </dev/null &
    ranks+=($!)
done
for rank in 0 1 2; do
    wait "${ranks[rank]}" || fail "rank $rank without a program: $(<"$scratch/rank.$rank")"
done
awk '/--build/ { n++ } /the end/ { n-- } n > 1 { exit 1 }' "$asked" || fail "ranks build at once: $(<"$asked")"

# ---- of another user: nothing is written into it. Who may write everywhere becomes somebody who may not.
other=()
if ((EUID == 0)); then
    command -v setpriv >/dev/null && id nobody >/dev/null 2>&1 &&
        other=(setpriv --reuid=nobody "--regid=$(id -g nobody)" --clear-groups)
    chmod -- a+rx "$scratch"
    if ((${#other[@]} == 0)) || ! "${other[@]}" test -x "$script"; then
        echo 'not tested: a tree of another user, for there is no user nobody who may come here'
        finish
    fi
fi

not_writable() {
    chmod -R -- a-w,a+rX "$tree"
    chmod -- 777 "$scratch/here" "$scratch/cache"
    : >"$asked"
    chmod -- 666 "$asked"
}

make_tree
not_writable
run "${other[@]}" "$script"
expect_status 0 'a tree of another user'
expect_text "<$tree/build/bin/weft><mesh>" 'a tree of another user: its program'
expect_text '<--preset><log_dir=./logs>' 'a tree of another user: logs'
expect_text '<--out><./results/' 'a tree of another user: results'
expect_text '<--latest><./results/latest>' 'a tree of another user: the link'
expect_lines 1 'a tree of another user: nothing to say'
run "${other[@]}" "$script" server --keep --out /elsewhere --log-dir /elsewhere/logs
expect_text '<--keep><--out></elsewhere><--log-dir></elsewhere/logs>' 'a tree of another user: where the user says'
[[ -s $asked ]] && fail "a tree of another user: it is built: $(<"$asked")"

make_tree
not_writable
run "${other[@]}" "$suite" profile
expect_status 0 'a suite of another user'
expect_text "<$tree/build/bin/weft><collective>" 'a suite of another user: its program'
expect_text '<--profile><./results/collectives>' 'a suite of another user: results'
[[ -s $asked ]] && fail "a suite of another user: it is built: $(<"$asked")"

make_tree
make_old
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else\n' >"$tree/build/CMakeCache.txt"
not_writable
run "${other[@]}" "$script"
expect_status 0 'an old program of another user'
expect_text 'build/bin/weft is older than its sources' 'an old program of another user'
expect_text "<$tree/build/bin/weft><mesh>" 'an old program of another user is used'
[[ -s $asked ]] && fail "an old program of another user: it is built: $(<"$asked")"

make_tree
rm -- "$tree/build/bin/weft"
not_writable
run "${other[@]}" env XDG_CACHE_HOME="$scratch/cache" "$script"
expect_status 0 'no program'
expect_text "build/ cannot be written: the program is built in $scratch/cache/weft/" 'no program: where it is built'
expect_text "<$scratch/cache/weft/" 'no program: what is built is used'
run "${other[@]}" env XDG_CACHE_HOME=/proc/nowhere "$script"
expect_status 1 'no program, and no place for one'
expect_lines 1 'no program, and no place for one'
expect_text 'set XDG_CACHE_HOME' 'no program, and no place for one'

# ---- the real one there, without any right: it measures
measures=false
if [[ -x ${WEFT_TEST_PROGRAM-} ]] && ((${#other[@]})); then
    make_tree
    cp -- "$WEFT_TEST_PROGRAM" "$tree/build/bin/weft"
    not_writable
    # Its library may lie in a folder that is closed to others, as a home is.
    "${other[@]}" "$tree/build/bin/weft" --version >/dev/null 2>&1 && measures=true
fi
if $measures; then
    run "${other[@]}" "$script" local --endpoints 1 --size 1K --iters 2 --port 0
    expect_status 0 'it measures'
    [[ -s $scratch/here/results/latest/mesh.json ]] || fail "it measures: no results: $output"
    compgen -G "$scratch/here/logs/fullmesh_server_gpu0_*.log" >/dev/null || fail "it measures: no logs: $output"
    chmod -- 755 "$scratch/here"
    rm -rf -- "${scratch:?}/here/"{results,logs}
    run "${other[@]}" "$script" local --endpoints 1 --size 1K --iters 2 --port 0
    expect_status 1 'no place for results'
    expect_lines 1 'no place for results'
    expect_text 'or name others with --out and --log-dir' 'no place for results'
fi
$measures || echo 'skipped: the real program for another user, who cannot run it here'
chmod -R -- u+w "$tree"
cd / || exit 1
finish
