#!/usr/bin/env bash
# random_kills_test.sh rails|processes: RUNS transfers (100 unless the environment says otherwise), in both directions, in
# each of which something is lost at random moments.
#
#   rails      up to all of them, several at once, in every way that there is, for good or for a while
#   processes  a node is killed, or stopped, or stopped and goes on
#
# Every transfer verifies, or both nodes end with status 1 and say why. It has to verify where a rail was spared, and
# where a stopped node went on before its peer's patience was over. None hangs. A run is repeated by its seed, as far as
# the kernel's own timing lets it: SEED=N RUNS=1. Skipped where there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"

timeout=4   # seconds until a node gives its peer up
patience=40 # seconds until a node that has not ended hangs

# pick NUMBER: sets picked, below it.
pick() { picked=$(((RANDOM << 15 | RANDOM) % $1)); }

nap() { [[ $1 == 0 ]] || sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }

# pick_settings: how threads, streams and the kernel are used has its own ways to lose something; on both nodes.
pick_settings() {
    local -a workers=(auto shared split)
    local engine=epoll
    pick 3
    settings=(--workers "${workers[picked]}")
    pick 2
    settings+=(--channels "$((picked + 1))")
    pick 3
    if ((picked == 0)); then
        run "$WEFT_TEST_PROGRAM" pair --local --engine uring --port 0 --size 8 --iters 1 --log-dir=
        ((status == 77)) || engine=uring
    fi
    settings+=(--engine "$engine")
}

# start BYTES: so many both ways, in four messages that are all verified.
start() {
    options=(--pattern bidir --endpoints 1 --mode loaded --size $(($1 / 4)) --inflight 4 --iters 4 --warmup 0)
    options+=(--check all)
    options+=(--rails 'lab*' --log-dir= --timeout "$timeout" --connect-timeout 5 --rail-timeout-ms 250 "${settings[@]}")
    "$WEFT_TEST_PROGRAM" mesh --listen "${options[@]}" --json "$scratch/result.json" >"$scratch/server" 2>&1 &
    server=$!
    start_client
}

start_client() {
    "$net" --node 1 "$WEFT_TEST_PROGRAM" mesh --connect="$(hosts 0 0 | head -n 1)" "${options[@]}" \
        >"$scratch/client" 2>&1 &
    client=$!
}

running() { kill -0 "$server" 2>/dev/null && kill -0 "$client" 2>/dev/null; }

# moved BYTES: waits until so much has been, or a node has ended.
moved() {
    until have_passed all "$1" || ! running; do
        sleep 0.01
    done
}

# end NODE: sets status and output, and what came of it there: verified, failed or killed.
end() {
    ended "${!1}" "$patience" || fail "the $1 hangs"
    wait "${!1}" 2>/dev/null
    status=$?
    output=$(cat -- "$scratch/$1")
    case $status in
    0)
        came=verified
        expect_text ' 0 wrong of ' "$1"
        ;;
    1)
        came=failed
        [[ $output == *'weft: '* ]] || fail "the $1 does not say why it failed: $output"
        ;;
    137) came=killed ;;
    *) fail "the $1 has status $status: $output" ;;
    esac
    [[ ! $output =~ [^0-9]([1-9][0-9]*)' wrong of ' ]] || fail "the $1 has wrong bytes: $output"
}

expect_verified() {
    end "$1"
    [[ $came == verified ]] || fail "the $1 $came: $output"
}

# A server that lost nobody, for nobody had got through to it yet, waits on and has taken no harm.
serve_another() {
    kill -0 "$server" 2>/dev/null || return
    end client
    start_client
    expect_verified server
    expect_verified client
    story+=', and another client is served'
}

# ------------------------------------------------------------------------------------------------------- rails

# hit RAIL: mends it if it is broken, else breaks it somehow.
hit() {
    local method node
    if [[ -n ${broken[$1]-} ]]; then
        # shellcheck disable=SC2086  # method, rail and node
        mend_rail ${broken[$1]}
        story+=" +$1"
        broken[$1]=''
        return
    fi
    pick "${#methods[@]}"
    method=${methods[picked]}
    pick 2
    node=$picked
    break_rail "$method" "$1" "$node"
    story+=" -$1:$method@$node"
    [[ $method == reset ]] || broken[$1]="$method $1 $node"
}

# hit_all SPARE: breaks what is not broken yet.
hit_all() {
    local rail
    for rail in 0 1 2 3; do
        ((rail == $1)) || [[ -n ${broken[rail]-} ]] || hit "$rail"
    done
}

mend_all() {
    local what
    for what in "${broken[@]}"; do
        # shellcheck disable=SC2086  # method, rail and node
        [[ -z $what ]] || mend_rail $what
    done
    story+=' mended'
}

lose_rails() {
    local spare early faults rail
    local -a broken=()
    pick 5
    early=$((picked == 0))
    pick 5 # 4: none is spared
    spare=$((early ? 4 : picked))
    pick 7
    faults=$((picked + 2))
    start $((128 << 20))
    ((early)) || moved $((1 << 20))
    for (( ; faults > 0; faults--)); do
        running || break
        pick 400
        nap "$picked"
        pick 8
        ((picked == 0)) && hit_all "$spare"
        while
            pick 4
            rail=$picked
            ((rail == spare)) || hit "$rail"
            pick 3
            ((picked == 0))
        do :; done
    done
    pick 3
    case $picked in
    0) mend_all ;;
    1) hit_all "$spare" ;; # for good
    esac
    if ((early)) && end client && ! ends "$server" 12; then
        mend_all
        wait_for_links
        serve_another
        story="verified:$story"
        return
    fi
    end server
    first=$came
    end client
    output=$(tail -n 20 -- "$scratch/server" "$scratch/client")
    [[ $spare == 4 || $came == verified ]] || fail "lab$spare was spared, but the client $came: $output"
    [[ $first == "$came" ]] || fail "the server $first, the client $came: $output"
    spare="spared lab$spare"
    story="$came, ${spare/spared lab4/none spared}, $(rail_sum failures) channels lost:$story"
}

# ------------------------------------------------------------------------------------------------------- processes

lose_process() {
    local -a signals=(KILL STOP CONT)
    local victim other signal moment early=0
    pick 2
    victim=server other=client
    ((picked)) && victim=client other=server
    pick 3
    signal=${signals[picked]}
    start $((96 << 20))
    pick 6
    if ((picked == 0)); then # while they set up
        pick 100
        moment="$picked ms" early=1
        nap "$picked"
    else
        pick 190
        moment="$((picked + 1)) MiB"
        moved $(((picked + 1) << 20))
    fi
    if running; then
        story=": $signal of the $victim after $moment"
        case $signal in
        KILL) lose_by_kill "$victim" "$other" ;;
        STOP) lose_by_stop "$victim" "$other" ;;
        CONT) lose_for_a_while "$victim" "$other" ;;
        esac
        serve_another
    else
        story=", was over before $moment"
        expect_verified server
        expect_verified client
    fi
    story="$came$story"
}

# expect_end NODE TIME: of the peer of one that is gone since TIME; says why. Before there is a session, the reason may be
# another one, and a server has lost nobody and waits on.
expect_end() {
    local time
    if ((early)) && [[ $1 == server ]] && ! ends "$server" 12; then
        came='waits on'
        story+=', the server waits on'
        return
    fi
    end "$1"
    now time
    story+=", the $1 $came after $(((time - $2) / 1000)) ms"
    [[ $came != failed || $early == 1 ]] ||
        [[ $output =~ 'does not answer'|'acknowledges nothing'|'is gone:'|'is out of reach:' ]] ||
        fail "another reason is told: $output"
}

lose_by_kill() {
    local time first
    now time
    kill -KILL "${!1}"
    expect_end "$2" "$time"
    first=$came
    end "$1"
    came=$first
}

# Until the other one has ended.
lose_by_stop() {
    local time first
    now time
    kill -STOP "${!1}"
    expect_end "$2" "$time"
    first=$came
    kill -CONT "${!1}"
    expect_end "$1" "$time"
    if [[ $first == 'waits on' && $came == verified ]]; then # it went on in time, and got through after all
        expect_verified server
        return
    fi
    came=$first
}

lose_for_a_while() {
    pick 1000
    kill -STOP "${!1}"
    nap "$picked"
    kill -CONT "${!1}"
    story+=" for $picked ms"
    expect_verified "$2"
    expect_verified "$1"
}

# ------------------------------------------------------------------------------------------------------- runs

if [[ ${1-} == --inside ]]; then
    RANDOM=$3
    for _ in 1 2 3 4 5; do pick 2; done # the first numbers of neighbouring seeds are neighbours
    story=''
    pick_settings
    if [[ $2 == rails ]]; then
        find_methods >"$scratch/left_out"
        [[ $4 == 0 ]] && cat -- "$scratch/left_out"
        lose_rails
    else
        lose_process
    fi
    echo "seed $3: $story (${settings[*]})"
    finish
fi

kind=${1:-rails}
runs=${RUNS:-100}
seed=${SEED:-$((EPOCHSECONDS % 1000000))}
export LAB_RAILS=250mbit,250mbit,250mbit,250mbit LAB_IP=${LAB_IP:-4}
[[ $kind == rails ]] || LAB_RAILS=500mbit,500mbit
run "$net" true
((status == 77)) && echo "skipped: $output" && exit 77
for ((i = 0; i < runs; i++)); do
    run env TMPDIR="$scratch" timeout --foreground -k 5 120 "$net" bash "$0" --inside "$kind" "$((seed + i))" "$i"
    echo "$output"
    echo "$output" >>"$scratch/all"
    ((status == 0)) || fail "seed $((seed + i)): status $status"
done
awk -v runs="$runs" '/^seed / { came[$3 ~ /^failed/ ? "failed" : "verified"]++ }
    END { printf "%d runs: %d verified, %d failed as they should\n", runs, came["verified"], came["failed"] }' "$scratch/all"
finish
