# shellcheck shell=bash
# lab_lib.sh: sourced by the tests of this folder, after check.sh: what rails carry over time.
# All but enter_lab runs in node 0 of a lab.
# shellcheck disable=SC2154  # root, scratch and status are check.sh's

export WEFT_TEST_PROGRAM=${WEFT_TEST_PROGRAM:-$root/build/bin/weft}
[[ -x $WEFT_TEST_PROGRAM ]] || { echo "there is no $WEFT_TEST_PROGRAM: set WEFT_TEST_PROGRAM" && exit 1; }
net=$root/scripts/lab_net.sh
samples=$scratch/samples # lines "time, bytes of each rail", times in microseconds
events=$scratch/events   # lines "time, what happened"

# What a test leaves running writes into its folder.
leave() {
    local -a running
    ((BASHPID == $$)) || return
    mapfile -t running < <(jobs -p)
    ((${#running[@]})) && kill -KILL "${running[@]}" 2>/dev/null
    wait 2>/dev/null
    rm -rf -- "$scratch"
}
trap leave EXIT

# enter_lab SECONDS [ARGUMENT]...: goes on as this test with --inside in node 0. Does not return.
enter_lab() {
    local limit=$1
    shift
    run "$net" true
    ((status == 77)) && echo "skipped: $output" && exit 77
    expect_status 0 'the lab is made'
    TMPDIR=$scratch timeout --foreground -k 5 "$limit" "$net" bash "$0" --inside "$@" </dev/null
    exit
}

# ------------------------------------------------------------------------------------------------------- what rails carry

# now VARIABLE: microseconds.
now() { printf -v "$1" '%s' "${EPOCHREALTIME/[.,]/}"; }

# count_bytes: sets bytes, what went through each rail so far, both ways, as node 0's interfaces count it; and bytes_all.
count_bytes() {
    local name line
    local -a words
    bytes=() bytes_all=0
    while read -r line; do
        name=${line%%:*}
        [[ $name == lab* ]] || continue
        read -r -a words <<<"${line#*:}"
        bytes[${name#lab}]=$((words[0] + words[8]))
        bytes_all=$((bytes_all + words[0] + words[8]))
    done </proc/net/dev
}

sample() {
    local time
    now time
    count_bytes
    printf '%s %s\n' "$time" "${bytes[*]}" >>"$samples"
}

# sample_while PID
sample_while() {
    while kill -0 "$1" 2>/dev/null; do
        sample
        sleep 0.02
    done
}

# event TEXT
event() {
    local time
    now time
    printf '%s %s\n' "$time" "$*" >>"$events"
}

# show_table MILLISECONDS: the rates of all rails between the samples, in Mbit/s, about so long apart, and the events.
show_table() {
    awk -v step="$1" '
        function show(  i, text, sum) {
            for (i = 2; i <= NF; i++) {
                sum += ($i - last[i]) * 8 / ($1 - last[1])
                text = text sprintf(" %7.0f", ($i - last[i]) * 8 / ($1 - last[1]))
            }
            if (sum) printf "%7.0f ms %s %8.0f\n", ($1 - began) / 1000, text, sum
            else if (!still) print "       ..."
            still = !sum
        }
        function head(  i, text) {
            for (i = 2; i <= NF; i++) text = text sprintf(" %7s", "lab" (i - 2))
            print "      time " text "      all   (Mbit/s)"
        }
        NR == FNR { when[++count] = $1; $1 = ""; what[count] = $0; next }
        !begun { began = $1; begun = 1; head() }
        $1 >= last[1] + step * 1000 && last[1] { show() }
        { while (done < count && $1 >= when[done + 1]) printf "%7.0f ms  %s\n", (when[++done] - began) / 1000, what[done] }
        !last[1] || $1 >= last[1] + step * 1000 { for (i = 1; i <= NF; i++) last[i] = $i }' "$events" "$samples"
}

# rate FROM TO [RAIL]: Mbit/s between two times, of all rails or of one.
rate() {
    awk -v from="$1" -v to="$2" -v rail="${3:--1}" '
        { sum = 0; for (i = 2; i <= NF; i++) if (rail < 0 || i == rail + 2) sum += $i }
        $1 >= from && !begun { begun = $1; base = sum }
        $1 <= to { end = $1; last = sum }
        END { printf "%d\n", (end > begun) ? (last - base) * 8 / (end - begun) : 0 }' "$samples"
}

# have_passed RAIL|all BYTES
have_passed() {
    count_bytes
    if [[ $1 == all ]]; then ((bytes_all >= $2)); else ((bytes[$1] >= $2)); fi
}
