#!/usr/bin/env bash
# run_p2p_fullmesh.sh: sets up, builds, and starts `weft mesh`. What is measured, and how, is the program's business;
# its exit status is this script's.
set -u

here=$(readlink -f -- "${BASH_SOURCE[0]}")
root=${here%/*}
lab=$root/scripts/lab_net.sh

usage() {
    cat <<'EOF'
usage: run_p2p_fullmesh.sh [local | lab | server | client ADDR[:PORT]] [option of `weft mesh`]...

Measures every directed pair of endpoints between two nodes, sends what was measured again and verifies it, prints the
matrix; the last line says how much was measured, and how much of it verified.

  local         (default) both nodes on this machine, over two loopback rails
  lab           both nodes on this machine, in network namespaces of their own that rate-limited rails join:
                LAB_RAILS=1gbit,1gbit,500mbit (default four times 1gbit). As root, or where user namespaces are allowed.
                Two endpoints per node unless you say otherwise
  server        this node waits for the other one; prints the command to run there
  client ADDR   the other node; ADDR may be a name, an IPv4 or an IPv6 address, with a port as ADDR:PORT or [ADDR]:PORT;
                its options decide what is measured, and the server adopts them

Unless you say otherwise: -b 1K -e 64M -f 4 --warmup 1 --mode both, and as many messages as fit into --duration 10 (seconds),
at least 8 a pair and size.
Options, WEFT_ variables and a settings file (WEFT_CONFIG) all go before these defaults: see `weft config`.
Where memory does not suffice, --end gives way, then the endpoints, unless you name them; the output says so.

  --port N      the TCP port (default 18555)
  --rails LIST  the NICs or local addresses to use (default: all that are usable)
  --out DIR     where the results go (default results/<time>.<process>; a client adds -client; in the lab the client's
                go to DIR-client, and DIR/interfaces.csv says what went through each interface)
  --log-dir DIR where the logs go (default logs)
  --open        show the report in a browser when the run has ended
  --keep        the server stays: one client after the other, each with a folder of results of its own (DIR-1, DIR-2, ...).
                A client that finds it busy waits its turn. SIGINT or SIGTERM end it, with status 0 unless a run failed
                for a reason of its own
  --idle-timeout S  the server ends when no client has come for so many seconds

  -h, --help    this text
  -V, --version the version of weft

  WEFT_SETUP=auto|print|off  may missing packages be installed: see setup.sh --help
  WEFT_BUILD=DIR             use the build in DIR as it is, instead of building into build/

A program in build/ that is newer than the sources is used as it is, and so is any where build/ cannot be written. Where
there is none, it is built in ~/.cache/weft (XDG_CACHE_HOME).

Results: results/latest/report.html for people, mesh.json and .csv for programs; a log per endpoint in logs/. Both are beside this script, or in the current
folder where that cannot be written.
Exit status: 0 every pair ran, and what was verified was right; 1 a run or check failed; 2 wrong usage; 77 not available here.
EOF
}

say() { printf 'run_p2p_fullmesh.sh: %s\n' "$*" >&2; }
wrong_usage() {
    say "$*"
    exit 2
}

# option NAME: the value of --NAME (or --set NAME=) among the user's options, the last one if there are several; 1 where
# it is not.
option() {
    local i value='' found=1
    for ((i = 0; i < ${#user[@]}; i++)); do
        case ${user[i]} in
        "--$1") value=${user[i + 1]-} found=0 ;;
        "--$1="*) value=${user[i]#*=} found=0 ;;
        "--set=$1="*) value=${user[i]#--set=*=} found=0 ;;
        --set) [[ ${user[i + 1]-} == "$1="* ]] && value=${user[i + 1]#*=} found=0 ;;
        esac
    done
    printf '%s\n' "$value"
    return "$found"
}

# elsewhere NAME: what the environment or the settings file says.
elsewhere() {
    local variable=WEFT_${1^^}
    if [[ -n ${!variable-} ]]; then
        printf '%s\n' "${!variable}"
    else
        [[ -n $config ]] && sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\([^#[:space:]]*\).*/\1/p" \
            -- "$config" 2>/dev/null | tail -n 1 | grep .
    fi
}

# can_write FOLDER: there, or to be made.
can_write() {
    if [[ -e $1 ]]; then
        [[ -d $1 && -w $1 && -x $1 ]]
    else
        [[ -w ${1%/*} && -x ${1%/*} ]]
    fi
}

# build FOLDER
build() {
    local folder=$1 shown=$1 status builder
    [[ $folder == "$root/build" ]] && shown=build
    mkdir -p -- "$folder" || return 1
    if [[ ! -f $folder/build.ninja && ! -f $folder/Makefile ]]; then
        say "building into $shown/ (the first time takes a minute)"
    fi
    # Two terminals may start a server and a client at once: one of them builds. It is a process group of its own, so
    # that a signal ends all of it.
    set -m
    (
        command -v flock >/dev/null && flock 9
        make_anew "$folder" "$shown"
        if [[ ! -f $folder/CMakeCache.txt || (! -f $folder/build.ninja && ! -f $folder/Makefile) ]]; then
            cmake -S "$root" -B "$folder" -DWEFT_TESTS=OFF || exit 1
        fi
        cmake --build "$folder" --target weft_bin --parallel "$(nproc)"
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

# is_current PROGRAM: no source is newer.
is_current() {
    local -a sources=()
    local part
    for part in CMakeLists.txt cmake affinity bench peers transport; do
        [[ -e $root/$part ]] && sources+=("$root/$part")
    done
    ((${#sources[@]})) && [[ -z $(find "${sources[@]}" -type f -newer "$1" -print -quit 2>&1) ]]
}

# runs PROGRAM: on this machine, for this user.
# An empty one, as a full disk leaves behind, would run as a script that does nothing.
runs() { [[ -f $1 && -s $1 && -x $1 ]] && "$1" --version >/dev/null 2>&1 </dev/null; }

# Sets `weft` to the program, which it builds where there is none that is current.
find_program() {
    local folder=$root/build cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}
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
    if ! can_write "$folder"; then
        if runs "$weft"; then
            is_current "$weft" || say 'build/bin/weft is older than its sources, and build/ cannot be written: it is used as it is'
            return
        fi
        [[ $cache == /* ]] && folder=$cache/weft/build-$(cksum <<<"$root" | tr ' ' -)
        mkdir -p -- "$folder" 2>/dev/null
        if [[ ! -d $folder ]] || ! can_write "$folder"; then
            say "there is no program in build/, and it can be built neither there nor in $cache/weft: set XDG_CACHE_HOME to a" \
                'folder that you can write to, or WEFT_BUILD to a build'
            exit 1
        fi
        say "build/ cannot be written: the program is built in $folder"
        weft=$folder/bin/weft
    fi
    ! is_moved "$folder" && runs "$weft" && is_current "$weft" && return
    "$root/setup.sh" || exit 1
    command -v make >/dev/null || export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
    build "$folder" || exit 1
}

# Nothing is built for that.
print_version() {
    if [[ -z ${WEFT_BUILD-} && -e $root/CMakeLists.txt ]]; then
        sed -n 's/^#define WEFT_VERSION_[MP][A-Z]* \([0-9]*\)$/\1/p' -- "$root/transport/weft.h" | paste -sd. | sed 's/^/weft /'
        exit
    fi
    find_program
    exec "$weft" --version
}

mode=local
case ${1-} in
'' | -h | --help | -*) ;;
*)
    mode=$1
    shift
    ;;
esac
peer=''
case $mode in
local | lab | server) ;;
client)
    peer=${1-}
    [[ -n $peer && $peer != -* ]] || wrong_usage 'client needs the address of the server: client ADDR[:PORT]'
    shift
    ;;
*) wrong_usage "unknown mode '$mode': local, lab, server or client ADDR" ;;
esac
user=("$@")
version=''
for argument in "$@"; do
    case $argument in
    -h | --help)
        usage
        exit 0
        ;;
    -V | --version) version=1 ;;
    esac
done
[[ -z $version ]] || print_version

config=$(option config) || config=${WEFT_CONFIG-}

# Where results and logs go: beside this script, or where that cannot be, into the current folder.
base=$root
if ! can_write "$root/results" || ! can_write "$root/logs"; then
    base=.
    if ! option out >/dev/null && ! elsewhere out >/dev/null && ! { can_write ./results && can_write ./logs; }; then
        say 'results and logs can be written neither beside this script nor into the current folder: go to one that you' \
            'can write to, or name others with --out and --log-dir'
        exit 1
    fi
fi

# Defaults of this script: what environment, file and options say goes before them.
presets=(--preset begin=1K --preset end=64M --preset factor=4 --preset warmup=1 --preset iters=auto --preset duration=10
    --preset mode=both
    --preset "log_dir=$base/logs")
case $mode in
local) role=(--local) ;;
lab)
    presets+=(--preset 'rails=lab*' --preset endpoints=2) # 8 would be minutes at these rates
    "$lab" true || exit
    role=(--listen --invite=)
    peer=$("$lab" --address) || exit
    ;;
server) role=(--listen '--invite=./run_p2p_fullmesh.sh client') ;;
client) role=("--connect=$peer") ;;
esac

find_program
if ! out=$(option out) && ! out=$(elsewhere out); then
    suffix=''
    [[ $mode == client ]] && suffix=-client
    # The program makes the folder when there is something to start, and moves the link when there are results.
    out=$base/results/$(date +%Y%m%d-%H%M%S).$$$suffix
    presets+=(--out "$out")
    [[ $mode == client ]] || role+=(--latest "$base/results/latest")
fi
[[ -z $out ]] || role+=(--report)
# Both nodes are told the same, but only one of them may speak, and write where the user says.
[[ $mode == lab ]] && exec "$lab" ${out:+--counters "$out/interfaces.csv"} \
    "$weft" mesh "${role[@]}" "${presets[@]}" "${user[@]}" : \
    "$weft" mesh "--connect=$peer" "${presets[@]}" "${user[@]}" --out "${out:+$out-client}" --json= --csv= --quiet
exec "$weft" mesh "${role[@]}" "${presets[@]}" "${user[@]}"
