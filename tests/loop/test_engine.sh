#!/bin/bash
# test_engine.sh: the engine that was asked for is the one that runs: the kernel's side of it says so, and the report.
. "$(dirname "$0")/loop_lib.sh"
command -v strace >/dev/null || skip "needs the program strace"
strace -f -o trace -e trace=none true 2>err || skip "strace may not trace here: $(head -1 err)"

run="pair --local --endpoints 1 --size 64K,1M -n 5 -w 0 --rails $rails"

# The calls by which an engine waits, of all threads of both nodes.
traced() { # ENGINE
    rm -f trace
    timeout -k 5 60 strace -f -qq -o trace -e trace=epoll_ctl,epoll_wait,epoll_pwait2,io_uring_setup,io_uring_enter \
        "$WEFT" $run --engine "$1" >out 2>err </dev/null
    status=$?
    epolls=$(grep -c -E 'epoll_(wait|pwait2)\(' trace)
    enters=$(grep -c 'io_uring_enter(' trace)
    echo "$1: status $status, $epolls calls of epoll, $enters of io_uring"
}

traced epoll
pass_if "epoll: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "epoll: it waits with epoll" [ "$epolls" -gt 10 ]
pass_if "epoll: no ring is used" [ "$enters" -eq 0 ]
pass_if "epoll: the report names it" grep -q 'engine epoll$' out

traced uring
if [ "$status" -eq 77 ]; then
    pass_if "uring: the reason is told: $(cat err)" grep -q 'engine = uring: ' err
    echo "io_uring cannot be had here: $(head -1 err)"
    finish
fi
pass_if "uring: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "uring: it waits with io_uring" [ "$enters" -gt 10 ]
pass_if "uring: epoll is not used" [ "$epolls" -eq 0 ]
pass_if "uring: the report names it" grep -q 'engine uring$' out

# A kernel that refuses: what was asked for ends with the reason, what was left to us goes on and tells it.
strace -f -qq -o trace -e trace=io_uring_setup -e inject=io_uring_setup:error=EPERM \
    "$WEFT" $run --engine uring >out 2>err </dev/null
status=$?
pass_if "refused: status $status, expected 77" [ "$status" -eq 77 ]
pass_if "refused: the reason: $(cat err)" grep -q 'io_uring is forbidden' err
strace -f -qq -o trace -e trace=io_uring_setup -e inject=io_uring_setup:error=EPERM \
    "$WEFT" $run --engine auto >out 2>err </dev/null
status=$?
pass_if "refused, auto: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "refused, auto: epoll runs" grep -q 'engine epoll$' out
pass_if "refused, auto: and the reason is told: $(cat out)" grep -q 'fallback: node0: engine: epoll, io_uring is forbidden' <(flat out)

# Left to us: see docs/decisions/0004-engine-choice.md.
for workers in shared:epoll split:uring; do
    weft $run --engine auto --workers "${workers%:*}"
    pass_if "auto with ${workers%:*} workers: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "auto with ${workers%:*} workers takes ${workers#*:}" grep -q "engine ${workers#*:}\$" out
    pass_if "auto, where io_uring can be had, has nothing to tell" [ "$(grep -c 'engine: epoll,' out)" -eq 0 ]
done
finish
