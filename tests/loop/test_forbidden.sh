#!/bin/bash
# test_forbidden.sh: where io_uring cannot be had a run goes on with epoll and says why; one that insists on io_uring ends.
. "$(dirname "$0")/loop_lib.sh"

run="pair --local --endpoints 1 --size 8,1M -n 5 -w 1 --rails $rails --workers split"

# Without a filter: is there anything to forbid? In some kernels, and some builds, there is not.
weft $run --engine uring
if [ "$status" -eq 77 ]; then
    reason=$(sed -n 's/^weft: engine = uring: //p' err)
    pass_if "no io_uring: the reason is told: $(cat err)" [ -n "$reason" ]
    weft $run --engine auto
    pass_if "no io_uring: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "no io_uring: epoll runs, and the reason is told: $(cat out)" \
        grep -Fqe "engine: epoll, ${reason%% (*}" <(flat out)
    finish
fi
pass_if "nothing forbidden: status $status: $(cat err)" [ "$status" -eq 0 ]

# denied NUMBER REASON: io_uring_setup fails with that error.
denied() {
    local engine
    for engine in auto uring; do
        # shellcheck disable=SC2086
        timeout -k 5 60 "$LOOP_TOOL" deny "$1" "$WEFT" $run --engine $engine >out 2>err </dev/null
        status=$?
        grep -q '^seccomp: ' err && skip "no filter can be set here: $(cat err)"
        if [ $engine = auto ]; then
            pass_if "error $1: status $status: $(cat err)" [ "$status" -eq 0 ]
            pass_if "error $1: epoll runs: $(cat out)" grep -q 'engine epoll$' out
            pass_if "error $1: the reason is told: $(cat out)" grep -q "fallback: node0: engine: epoll, $2" <(flat out)
            pass_if "error $1: once for each node: $(cat out)" [ "$(grep -c 'fallback.*engine: epoll' out)" -le 2 ]
        else
            pass_if "error $1, uring: status $status" [ "$status" -eq 77 ]
            pass_if "error $1, uring: the reason is told: $(cat err)" grep -q "engine = uring: $2" err
        fi
    done
}

denied 1 'io_uring is forbidden (.*): a seccomp filter' # EPERM
denied 13 'io_uring is forbidden (.*): a seccomp filter' # EACCES
denied 38 'io_uring is not in this kernel'              # ENOSYS
denied 12 'io_uring gets no memory: raise the limit of locked memory' # ENOMEM

# Sends without a copy are asked for: who copies all the same is named.
weft $run --engine epoll --zero-copy 64K
pass_if "zero-copy on epoll: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "zero-copy on epoll: the reason is told: $(cat out)" \
    grep -q 'fallback: node0: zero_copy: sends are copied, the engine epoll' <(flat out)
weft $run --engine uring --zero-copy 64K
pass_if "zero-copy: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "zero-copy: a word about it: $(cat out)" grep -q 'fallback: node0: zero_copy: sends' <(flat out)

# memlock KIB COMMAND...: as a user without rights, who may lock so much memory.
memlock() {
    local kib=$1
    shift
    if [ "$(id -u)" -eq 0 ]; then
        (ulimit -l "$kib" && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@")
    else
        (ulimit -l "$kib" && exec "$@")
    fi
}

chmod 755 . && mkdir free && chmod 777 free && cd free || exit 1
if ! memlock 0 test -x "$WEFT" 2>/dev/null; then
    echo "skipped: an unprivileged user (setpriv is missing, or $WEFT is out of such a user's reach)"
    finish
fi

# Some kernels count a ring as locked memory, so either engine may be right; silence is not. In 64 KiB there is room for
# a ring, but not for that of every worker.
for kib in 0 64; do
    # shellcheck disable=SC2086
    memlock $kib timeout -k 5 60 "$WEFT" $run --engine auto >../out 2>../err </dev/null
    status=$?
    pass_if "memlock $kib: status $status: $(cat ../err)" [ "$status" -eq 0 ]
    verdict=$(sed -n 's/.*, engine \(epoll\|uring\)$/\1/p' ../out | head -1)
    grep -q 'fallback: node0: engine: epoll, io_uring' <(flat ../out) && verdict="$verdict, told why"
    echo "memlock $kib, unprivileged: $verdict"
    pass_if "memlock $kib: $verdict: $(cat ../out)" [ "$verdict" = uring -o "$verdict" = "epoll, told why" ]
done

# Room for rings, but not for memory to lend: copied, and said (or lent, where that is not counted).
# shellcheck disable=SC2086
memlock 1000 timeout -k 5 60 "$WEFT" $run --workers shared --engine uring --zero-copy 64K \
    >../out 2>../err </dev/null
status=$?
pass_if "memlock 1000, zero-copy: status $status: $(cat ../err)" [ "$status" -eq 0 ]
sed -n 's/.*\(zero_copy: .*\)/memlock 1000, unprivileged: \1/p' ../out | head -1
pass_if "memlock 1000, zero-copy: a word about it: $(cat ../out)" grep -q 'fallback: node0: zero_copy: sends' <(flat ../out)
finish
