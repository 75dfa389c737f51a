# shellcheck shell=bash
# compat_lib.sh ROOT BUILD CMAKE COMPILER: sourced by the tests of this folder. Sets old and new to the folders of the two
# builds, and works in a folder that is gone afterwards. Each test runs everything in both directions.
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"

# shellcheck disable=SC2034  # used by the tests
new=$2
old=$("$(dirname -- "${BASH_SOURCE[0]}")/old.sh" "$1" "$3" "$4") || {
    status=$?
    echo "$old"
    exit "$status"
}
cd -- "$scratch" || exit 1
trap 'kill $(jobs -p) 2>/dev/null; rm -rf -- "$scratch"' EXIT
export WEFT_CUDA=off # memory is host memory, whatever GPUs are here

# serve COMMAND...: starts a server, and sets server_pid, and port once it has said at which one it waits.
serve() {
    rm -f s.out s.err
    "$@" >s.out 2>s.err </dev/null &
    server_pid=$!
    until port=$(sed -n 's/.*\<port \([0-9]\{1,\}\)\>.*/\1/p' s.out s.err 2>/dev/null | head -n 1) && [[ $port ]]; do
        kill -0 "$server_pid" 2>/dev/null || {
            fail "the server waits on no port: $(cat s.out s.err)"
            return 1
        }
        sleep 0.02
    done
}

# call WHAT COMMAND...: runs the client, then waits for the server.
call() {
    local what=$1 status=0
    shift
    timeout 100 "$@" >c.out 2>c.err </dev/null || status=$?
    ((status == 0)) || fail "$what: the client ends with status $status: $(<c.err)"
    ((status == 0)) || kill "$server_pid" 2>/dev/null
    status=0
    wait "$server_pid" || status=$?
    ((status == 0)) || fail "$what: the server ends with status $status: $(<s.err)"
}

key_file=$scratch/key
(umask 077 && "$new/bin/weft" key >"$key_file") || fail 'weft key'
