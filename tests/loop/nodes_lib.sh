# nodes_lib.sh: what the tests of two separate nodes share; sourced before loop_lib.sh. The script starts again in a
# network namespace of its own, where nobody else's bytes count; where there may be none, it is skipped.
if [ "${1:-}" != inside ]; then
    for user in "" -r; do
        # shellcheck disable=SC2086
        if unshare $user -n true 2>/dev/null; then
            exec unshare $user -n "$(readlink -f "$0")" inside
        fi
    done
    echo "skipped: no network namespaces here"
    exit 77
fi
. "$(dirname "$0")/loop_lib.sh"
"$LOOP_TOOL" lo-up || skip "the loopback interface cannot be raised"

lo_received() {
    sed -n 's/^ *lo: *\([0-9]*\).*/\1/p' /proc/net/dev
}

# start_server COMMAND OPTION..., start_client COMMAND OPTION...: in the background. Sets server, client. Their results
# go to the folders s and c, what they say to s.out, s.err, c.out, c.err.
start_server() {
    rm -rf s s.out s.err
    before=$(lo_received)
    "$WEFT" "$1" --listen 127.0.0.1:18555 --rails $rails --out s --log-dir s/logs --timeout 2 --rail-timeout-ms 1000 \
        "${@:2}" >s.out 2>s.err </dev/null &
    server=$!
}

start_client() {
    rm -rf c c.out c.err
    "$WEFT" "$1" --connect 127.0.0.1:18555 --rails $rails --out c --log-dir c/logs --timeout 2 --rail-timeout-ms 1000 \
        "${@:2}" >c.out 2>c.err </dev/null &
    client=$!
}

start_both() {
    start_server "$@"
    start_client "$@"
}

alive() { # PID: zombies are not
    [ -e "/proc/$1" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

ended() { # PID
    ! alive "$1"
}

has_moved() { # BYTES
    [ $(($(lo_received) - before)) -ge "$1" ] || ended "$server" || ended "$client"
}

# moved BYTES: both are in the middle of it.
moved() {
    until_true "$1 bytes" has_moved "$1"
    pass_if "it runs: $(cat s.err c.err)" alive "$server"
    pass_if "it runs: $(cat s.err c.err)" alive "$client"
}

# ends PID: sets status; what does not end by itself is ended.
ends() {
    until_true "the end of process $1" ended "$1" || kill -KILL "$1"
    wait "$1" 2>/dev/null
    status=$?
}

# cut_short PID NODE-FOLDER COMMAND BY NODE: it ended with status 1, and its files say by what and at which node.
cut_short() {
    local what="node in $2 after $4 at $5" err
    ends "$1"
    err=$(cat "$2.err")
    pass_if "$what: status $status: $err" [ "$status" -eq 1 ]
    pass_if "$what: the JSON is whole" grep -q '^}' "$2/$3.json"
    pass_if "$what: by whom: $(grep -A 3 cut_short "$2/$3.json")" grep -q "\"by\": \"$4\"" "$2/$3.json"
    pass_if "$what: where: $(grep -A 3 cut_short "$2/$3.json")" \
        [ "$(grep -A 1 '"cut_short"' "$2/$3.json" | grep -c "\"node\": \"$5\"")" -eq 1 ]
    pass_if "$what: not passed" grep -q '"passed": false' "$2/$3.json"
    pass_if "$what: the CSV says so" [ "$(tail -n 1 "$2/$3.csv" | grep -c '^# cut short')" -eq 1 ]
    if [ "$3" = mesh ] && [ -d "$2/logs" ]; then
        pass_if "$what: the logs say so" [ "$(grep -l '^# cut short' "$2"/logs/*.log | wc -l)" -eq "${endpoints:-1}" ]
    fi
}

# kept_samples NODE-FOLDER COMMAND: what was measured before is there, in the files and on the terminal.
kept_samples() {
    local count
    count=$(json_numbers "$1/$2.json" samples | head -n 1)
    pass_if "$1: samples in the JSON" [ "${count:-0}" -gt 0 ]
    pass_if "$1: as many in the CSV" [ "$(grep -c '^weft,' "$1/$2.csv")" -eq "${count:-0}" ]
    pass_if "$1: and a table on the terminal, that says so: $(cat "$1.out")" grep -q 'FAILED, cut short' "$1.out"
}
