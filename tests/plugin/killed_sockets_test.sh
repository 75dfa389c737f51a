#!/usr/bin/env bash
# killed_sockets_test.sh CONFORM PLUGIN: while messages move, every second TCP socket is destroyed again and again (`ss -K`), of
# one end or of both, in a network namespace of the test's own. No message is lost, none comes twice, every byte is right.
set -u
if [[ ${1-} != --inside ]] && unshare --net true 2>/dev/null; then
    exec unshare --net bash "${BASH_SOURCE[0]}" --inside "$@"
fi
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"

[[ $1 == --inside ]] || skip 'no network namespace can be made'
command -v ss >/dev/null || skip 'needs the program ss'
conform=$2 plugin=$3 destroyed=0
export WEFT_RAILS=127.0.1.1,127.0.2.1
ip link set lo up || skip 'no loopback in a network namespace'

# destroy_half: every second one of those that are established.
destroy_half() {
    local odd=0 from to
    while read -r _ _ from to; do
        odd=$((1 - odd))
        ((odd)) || continue
        [[ $(ss -HKtn state established sport = ":${from##*:}" dport = ":${to##*:}" 2>/dev/null) ]] &&
            destroyed=$((destroyed + 1)) # it names those that it has closed
    done < <(ss -Htn state established)
}

# Until enough were destroyed to mean something.
for ((run = 1; run <= 20 && destroyed < 50 && failures == 0 && (run == 1 || destroyed > 0); run++)); do
    "$conform" --plugin "$plugin" --case transfer --rounds 20 --seed "$run" >"$scratch/out" 2>&1 &
    driver=$!
    while kill -0 "$driver" 2>/dev/null; do
        destroy_half
        sleep 0.05 # so often, not a wait
    done
    wait "$driver"
    status=$?
    output=$(tail -n 30 "$scratch/out")
    expect_status 0 "run $run, $destroyed sockets destroyed"
    expect_text ' 0 failed' "run $run, $destroyed sockets destroyed"
done
((destroyed > 0 || failures > 0)) || skip 'this kernel destroys no sockets'
((destroyed >= 50)) || fail "only $destroyed sockets were destroyed in $((run - 1)) runs"
echo "$destroyed sockets were destroyed in $((run - 1)) runs; $(tail -n 1 "$scratch/out")"
finish
