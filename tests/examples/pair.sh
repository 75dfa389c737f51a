# shellcheck shell=bash
# pair.sh: sourced by the tests of this folder: an example as two processes over loopback, the one that listens and the
# one that connects.
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
export WEFT_RAILS=127.0.0.1
listener=
trap 'kill $listener 2>/dev/null; rm -rf -- "$scratch"' EXIT

# listen PROGRAM: starts it, waits until it says at which port it waits, and sets `listener` and `port`. It ends by
# itself, since all its waits have an end.
listen() {
    : >"$scratch/listener" # what an earlier one said is not the port of this one
    "$1" listen 0 >"$scratch/listener" 2>&1 &
    listener=$!
    until port=$(sed -n 's/^port //p' "$scratch/listener") && [[ -n $port ]]; do
        kill -0 "$listener" 2>/dev/null || {
            fail "$1 waits on no port: $(<"$scratch/listener")"
            return 1
        }
        sleep 0.02
    done
}

# Sets status and output of the one that listens, once it has ended.
listened() {
    wait "$listener"
    status=$?
    listener=
    output=$(<"$scratch/listener")
}
