# loop_lib.sh: what the shell tests share. Sourced with WEFT and LOOP_TOOL set by the test runner.
# A check that fails is told and counted; the test ends with the sum.

set -u
: "${WEFT:?the weft binary}" "${LOOP_TOOL:?the helper binary}"

failures=0
checks=0
rails=127.0.1.1,127.0.2.1

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
for name in $(env | sed -n 's/^\(WEFT_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
export WEFT_CUDA=off # endpoints are host memory, whatever GPUs are here; test_gpus.sh is about those

skip() { # REASON
    [ "${failures:-0}" -eq 0 ] || finish
    echo "skipped: $*"
    exit 77
}

fail() { # WHAT
    echo "FAILED: $*"
    failures=$((failures + 1))
}

pass_if() { # DESCRIPTION COMMAND...
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$what"
}

# Conditions of pass_if: `[ A ] && [ B ]` would leave B to the shell.
filled() { # FILE...: all are there, and have something in them
    local file
    for file in "$@"; do
        [ -s "$file" ] || return
    done
}
absent() { # FILE...: none is there
    local file
    for file in "$@"; do
        [ ! -e "$file" ] && [ ! -L "$file" ] || return
    done
}

finish() {
    echo "$checks checks, $failures failed"
    [ "$failures" -eq 0 ] && [ "$checks" -gt 0 ]
    exit
}

# LOOP_ENGINE=NAME: the same test on that engine, or skipped where it cannot be had.
if [ -n "${LOOP_ENGINE:-}" ]; then
    export WEFT_ENGINE=$LOOP_ENGINE
    timeout 30 "$WEFT" pair --local --endpoints 1 --size 8 -n 1 --port 0 >out 2>err </dev/null
    [ $? -eq 77 ] && skip "$(head -1 err)"
fi

# Is there a program that makes terminals?
has_terminal() { command -v script >/dev/null; }

# The command on a terminal of so many columns; `out` has what that showed.
on_terminal() { # COLUMNS COMMAND...
    timeout -k 5 60 script -qec "stty cols $1 -onlcr; $(printf '%q ' "${@:2}")" /dev/null >out 2>&1 </dev/null
}

# Until a node has said in one of the files, which are not those of an earlier one, at which port it waits. Sets port.
waiting() { # PID FILE...
    local pid=$1
    shift
    until port=$(sed -n 's/^node0 waits on port \([0-9]*\).*/\1/p' "$@" 2>/dev/null) && [ -n "$port" ]; do
        kill -0 "$pid" 2>/dev/null || {
            fail "it waits on no port: $(cat "$@")"
            return 1
        }
        sleep 0.02
    done
}

# The process that is rank RANK/SIZE/FILE once it has used some time: then it measures, and all have met.
rank_at_work() { # MEMBER [HUNDREDTHS]
    local tries process=''
    for ((tries = 0; tries < 1000; tries++)); do
        process=$(pgrep -f -- "--member $1" | head -1)
        [ -n "$process" ] && [ "$(awk '{ print $14 + $15 }' "/proc/$process/stat" 2>/dev/null || echo 0)" -gt "${2:-20}" ] && break
        sleep 0.02
    done
    echo "$process"
}

# Sets port to one that nobody listens on, and nobody gets as long as the test runs.
hold_port() {
    if [ ! -e held ]; then
        "$LOOP_TOOL" hold 0.0.0.0 0 >held &
    fi
    until port=$(cat held 2>/dev/null) && [ -n "$port" ]; do
        sleep 0.02
    done
}

# Runs weft with a limit; its status in $status, what it said in files `out` and `err`.
weft() { # ARGUMENTS...
    timeout -k 5 "${limit:-60}" "$WEFT" "$@" >out 2>err </dev/null
    status=$?
    if [ "$status" -ge 124 ]; then
        fail "weft $*: status $status (hangs or crashes)"
    fi
}

# Runs weft, and has the test's own `told` look at its status and what it said.
expect() { # STATUS WORD ARGUMENTS...
    local want=$1 word=$2
    shift 2
    weft "$@"
    told "$want" "$word" "weft $*"
}

# The values of a number in a JSON file, one a line.
json_numbers() { # FILE KEY
    grep -o "\"$2\": *-\{0,1\}[0-9][0-9.e+]*" "$1" | sed 's/.*: *//'
}

# No process of this test is left: all of them work in, or were started from, the test's own folder.
nothing_left() {
    local link tries left
    for ((tries = 0; tries < 50; tries++)); do
        left=""
        for link in $(find /proc/[0-9]*/cwd -maxdepth 0 -lname "$work" 2>/dev/null); do
            [ "${link%/cwd}/exe" -ef "$WEFT" ] && left="$left ${link//[!0-9]/}"
        done
        [ -z "$left" ] && return 0
        sleep 0.2
    done
    echo "left over:$left"
    return 1
}

# flat FILE: its text in one line, with a blank between words: lines for people are broken anywhere.
flat() { tr -s ' \n' ' ' <"$1"; }

patience=120 # seconds: what hangs is told from what is slow

# until_true WHAT COMMAND...: a condition that has to come.
until_true() {
    local what=$1 end=$((SECONDS + patience))
    shift
    until "$@"; do
        if [ $SECONDS -ge $end ]; then
            fail "$what: did not come within $patience s"
            return 1
        fi
        sleep 0.02
    done
}

# has_sent PID BYTES: whether the peers' kernels have acknowledged so many on the connections of the process.
has_sent() {
    ss -HtnipO state established | grep -a "pid=$1," | grep -ao 'bytes_acked:[0-9]*' |
        awk -F: -v least="$2" '{ sum += $2 } END { exit sum < least }'
}

# has_carrier INTERFACE [COMMAND...]: waits for it. The kernel tells of a carrier as late as a second after it has come. The
# command, if any, goes before `ip`: it leads to another machine.
has_carrier() { until_true "no carrier on $1" has_state UP "${@:2}" ip link show "$1"; }
has_state() { # STATE COMMAND...
    "${@:2}" | grep -q " state $1 "
}
