#!/usr/bin/env bash
# run_p2p_fullmesh.sh: sets up, builds, and starts `weft mesh`. What is measured, and how, is the program's business;
# its exit status is this script's.
set -u

here=$(readlink -f -- "${BASH_SOURCE[0]}")
root=${here%/*}
lab=$root/scripts/lab_net.sh
# shellcheck source=scripts/program.sh
. "$root/scripts/program.sh" || exit 1

usage() {
    cat <<'EOF'
usage: run_p2p_fullmesh.sh [local | lab | server | client ADDR[:PORT]] [option of `weft mesh`]...

Measures every directed pair of endpoints between two nodes, sends what was measured again and verifies it, prints the
matrix; the last lines say how much was measured, how much of it verified, and where the results are.

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

A program in build/ that is newer than the sources is used as it is, and so is any where build/ cannot be written, or where
a launcher has started this as one of several ranks. Where there is none and build/ cannot be written, it is built in
~/.cache/weft (XDG_CACHE_HOME).

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
        [[ -n $config ]] && sed -n "s/#.*//; s/[[:space:]]*\$//; s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*//p" \
            -- "$config" 2>/dev/null | tail -n 1 | grep .
    fi
}

# Nothing is built for that.
print_version() {
    if [[ -z ${WEFT_BUILD-} && -e $root/CMakeLists.txt ]]; then
        sed -n 's/^#define WEFT_VERSION_[MP][A-Z]* \([0-9]*\)$/\1/p' -- "$root/transport/weft.h" | paste -sd. | sed 's/^/weft /'
        exit
    fi
    find_program weft_bin
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

find_program weft_bin
if ! out=$(option out) && ! out=$(elsewhere out); then
    suffix=''
    [[ $mode == client ]] && suffix=-client
    # The program makes the folder when there is something to start, and moves the link when there are results.
    out=$base/results/$(date +%Y%m%d-%H%M%S).$$$suffix
    presets+=(--out "$out")
    [[ $mode == client ]] || role+=(--latest "$base/results/latest")
fi
[[ -z $out ]] || role+=(--report)
# Both nodes are told the same, but only one of them may speak, open a browser, and write where the user says.
theirs=()
for argument in "${user[@]}"; do
    [[ $argument == --open ]] || theirs+=("$argument")
done
[[ $mode == lab ]] && exec "$lab" ${out:+--counters "$out/interfaces.csv"} \
    "$weft" mesh "${role[@]}" "${presets[@]}" "${user[@]}" : \
    "$weft" mesh "--connect=$peer" "${presets[@]}" "${theirs[@]}" --out "${out:+$out-client}" \
    --json= --csv= --json-stream= --quiet
exec "$weft" mesh "${role[@]}" "${presets[@]}" "${user[@]}"
