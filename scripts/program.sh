# shellcheck shell=bash
# program.sh: finds the program `weft`, and builds it where there is none that is current. The scripts of the root folder
# source it; they have set `root`, and have the functions `say` and `wrong_usage`. A bundle has it, too.
# shellcheck disable=SC2154  # root is theirs

# can_write FOLDER: there, or to be made.
can_write() {
    if [[ -e $1 ]]; then
        [[ -d $1 && -w $1 && -x $1 ]]
    else
        [[ -w ${1%/*} && -x ${1%/*} ]]
    fi
}

# configure FOLDER: where nothing is to build with. A configuration that fails leaves a CMakeCache.txt with a compiler or a
# generator that may be the reason: it goes, unless it was there before, with what a user has chosen.
configure() {
    local made=''
    [[ -f $1/CMakeCache.txt ]] || made=1
    [[ $made || (! -f $1/build.ninja && ! -f $1/Makefile) ]] || return 0
    cmake -S "$root" -B "$1" -DWEFT_TESTS=OFF && return
    [[ ! $made ]] || rm -rf -- "$1/CMakeCache.txt" "$1/CMakeFiles"
    return 1
}

# build FOLDER TARGET
build() {
    local folder=$1 target=$2 shown=$1 status builder
    [[ $folder == "$root/build" ]] && shown=build
    mkdir -p -- "$folder" || return 1
    if [[ ! -f $folder/build.ninja && ! -f $folder/Makefile ]]; then
        say "building into $shown/ (the first time takes a minute)"
    fi
    # Two terminals may start a server and a client at once, a launcher many ranks: one of them builds. It is a process group
    # of its own, so that a signal ends all of it.
    set -m
    (
        command -v flock >/dev/null && flock 9
        make_anew "$folder" "$shown"
        touch -- "$folder/.built-$target.new" # before: a source may change meanwhile
        configure "$folder" || exit 1
        cmake --build "$folder" --target "$target" --parallel "$(nproc)" &&
            mv -f -- "$folder/.built-$target.new" "$folder/.built-$target"
    ) 9>"$folder/.lock" 8>&2 >"$folder/build.log" 2>&1 </dev/null &
    builder=$!
    set +m
    trap 'kill -TERM -- "-$builder" 2>/dev/null; say "interrupted while building"; exit 1' INT TERM HUP
    wait "$builder"
    status=$?
    trap - INT TERM HUP
    if ((status)); then
        tail -n 40 -- "$folder/build.log" >&2
        say "the build failed: all of its output is in $shown/build.log"
    fi
    return "$status"
}

# is_moved FOLDER: it was made for sources that are, or were, somewhere else: CMake refuses it.
is_moved() {
    local made_for
    made_for=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' -- "$1/CMakeCache.txt" 2>/dev/null) || return 1
    [[ -n $made_for && ! $made_for -ef $root ]]
}

# make_anew FOLDER SHOWN: what CMake remembers of another place goes, and nothing else.
make_anew() {
    is_moved "$1" || return 0
    say "$2/ was made for another folder of sources: it is made anew" 2>&8
    rm -rf -- "$1/CMakeCache.txt" "$1/CMakeFiles"
}

# is_current FOLDER TARGET: no source is newer than the last build of it, or than the program, where that is all of the
# target. The folders of the sources are those that CMakeLists.txt adds to every build.
is_current() {
    local -a sources=("$root/CMakeLists.txt") made=("$1/.built-all" "$1/.built-$2")
    local part
    [[ -e ${sources[0]} ]] || return
    for part in cmake $(sed -n 's/^add_subdirectory(\([^)/]*\).*/\1/p' -- "${sources[0]}" | sort -u); do
        [[ -e $root/$part ]] && sources+=("$root/$part")
    done
    [[ $2 != weft_bin ]] || made+=("$1/bin/weft")
    for part in "${made[@]}"; do
        [[ -e $part && -z $(find "${sources[@]}" -type f -newer "$part" -print -quit 2>&1) ]] && return
    done
    return 1
}

# runs PROGRAM: on this machine, for this user.
# An empty one, as a full disk leaves behind, would run as a script that does nothing.
runs() { [[ -f $1 && -s $1 && -x $1 ]] && "$1" --version >/dev/null 2>&1 </dev/null; }

# is_launched: as one of several ranks, as wf_meet_is_launched() of collective/rendezvous says it.
is_launched() {
    local size
    for size in "${WORLD_SIZE-}" "${SLURM_STEP_NUM_TASKS-}" "${PMI_SIZE-}"; do
        [[ $size =~ ^[0-9]+$ && $size != [01] ]] && return
    done
    [[ -n ${PMIX_NAMESPACE-} ]]
}

# wait_for_build FOLDER: of another rank, which may have the program and not yet the others.
wait_for_build() { [[ ! -e $1/.lock ]] || ! command -v flock >/dev/null || flock -s -- "$1/.lock" true; }

# find_program TARGET: sets `weft` to the program. The target, which has it, is built where it is not current.
find_program() {
    local folder=$root/build cache=${XDG_CACHE_HOME:-${HOME:-}/.cache} why=''
    if [[ -n ${WEFT_BUILD-} ]]; then
        weft=$WEFT_BUILD/bin/weft
        [[ -x $weft ]] || wrong_usage "WEFT_BUILD=$WEFT_BUILD: no program at bin/weft in there"
        return
    fi
    # A bundle has the program, and nothing to build it from.
    if [[ -x $root/bin/weft && ! -e $root/CMakeLists.txt ]]; then
        weft=$root/bin/weft
        return
    fi
    weft=$folder/bin/weft
    # Ranks are many, and on nodes that may have no compiler: they take what is there.
    is_launched && why='a launcher has started this'
    can_write "$folder" || why='build/ cannot be written'
    if [[ $why ]] && wait_for_build "$folder" && runs "$weft"; then
        if ! is_current "$folder" weft_bin; then
            say "build/bin/weft is older than its sources, and $why: it is used as it is"
        elif ! is_current "$folder" "$1"; then
            say "build/ may lack programs beside weft, and $why: it is used as it is"
        fi
        return
    fi
    if ! can_write "$folder"; then
        [[ $cache == /* ]] && folder=$cache/weft/build-$(cksum <<<"$root" | tr ' ' -)
        mkdir -p -- "$folder" 2>/dev/null
        if [[ ! -d $folder ]] || ! can_write "$folder"; then
            say "there is no program in build/, and it can be built neither there nor in $cache/weft: set XDG_CACHE_HOME to a" \
                'folder that you can write to, or WEFT_BUILD to a build'
            exit 1
        fi
        say "build/ cannot be written: the program is built in $folder"
        weft=$folder/bin/weft
        is_launched && runs "$weft" && return
    fi
    ! is_moved "$folder" && runs "$weft" && is_current "$folder" "$1" && return
    "$root/setup.sh" || exit 1
    command -v make >/dev/null || export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
    build "$folder" "$1" || exit 1
}
