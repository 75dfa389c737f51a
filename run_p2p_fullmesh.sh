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

  -h, --help    this text
  -V, --version the version of weft

  WEFT_SETUP=auto|print|off  may missing packages be installed: see setup.sh --help
  WEFT_BUILD=DIR             use the build in DIR as it is, instead of building into build/

Results: results/latest/mesh.json and .csv; a log per endpoint in logs/.
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

build() {
    local status builder
    mkdir -p -- "$root/build" || return 1
    if [[ ! -f $root/build/build.ninja && ! -f $root/build/Makefile ]]; then
        say 'building into build/ (the first time takes a minute)'
    fi
    # Two terminals may start a server and a client at once: one of them builds. It is a process group of its own, so
    # that a signal ends all of it.
    set -m
    (
        command -v flock >/dev/null && flock 9
        if [[ ! -f $root/build/build.ninja && ! -f $root/build/Makefile ]]; then
            cmake -S "$root" -B "$root/build" -DWEFT_TESTS=OFF || exit 1
        fi
        cmake --build "$root/build" --target weft_bin --parallel "$(nproc)"
    ) 9>"$root/build/.lock" >"$root/build/build.log" 2>&1 </dev/null &
    builder=$!
    set +m
    trap 'kill -TERM -- "-$builder" 2>/dev/null; say "interrupted while building"; exit 1' INT TERM HUP
    wait "$builder"
    status=$?
    trap - INT TERM HUP
    if ((status)); then
        tail -n 40 -- "$root/build/build.log" >&2
        say 'the build failed: all of its output is in build/build.log'
    fi
    return "$status"
}

# Sets `weft` to the program.
find_program() {
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
    "$root/setup.sh" || exit 1
    command -v make >/dev/null || export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
    build || exit 1
    weft=$root/build/bin/weft
}

# Nothing is built for that.
print_version() {
    if [[ -z ${WEFT_BUILD-} && -e $root/CMakeLists.txt ]]; then
        sed -n 's/^project(weft VERSION \([0-9.]*\).*/weft \1/p' -- "$root/CMakeLists.txt"
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

# Defaults of this script: what environment, file and options say goes before them. 0 iterations: as suit the size.
presets=(--preset begin=1K --preset end=64M --preset factor=4 --preset warmup=1 --preset iters=auto --preset duration=10
    --preset mode=both
    --preset "log_dir=$root/logs")
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
mkdir -p -- "$root/logs" || exit 1
if ! out=$(option out) && ! out=$(elsewhere out); then
    suffix=''
    [[ $mode == client ]] && suffix=-client
    # The program makes the folder when there is something to start, and moves the link when there are results.
    out=$root/results/$(date +%Y%m%d-%H%M%S).$$$suffix
    presets+=(--out "$out")
    [[ $mode == client ]] || role+=(--latest "$root/results/latest")
fi
# Both nodes are told the same, but only one of them may speak, and write where the user says.
[[ $mode == lab ]] && exec "$lab" --counters "$out/interfaces.csv" \
    "$weft" mesh "${role[@]}" "${presets[@]}" "${user[@]}" : \
    "$weft" mesh "--connect=$peer" "${presets[@]}" "${user[@]}" --out "$out-client" --json= --csv= --quiet
exec "$weft" mesh "${role[@]}" "${presets[@]}" "${user[@]}"
