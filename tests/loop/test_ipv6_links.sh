#!/bin/bash
# test_ipv6_links.sh: two machines that have IPv6 only: two network namespaces joined by two cables (veth pairs). First
# with global addresses, then with link-local ones alone, the same ones on both links, so that only the interface tells
# them apart. Interfaces have other numbers here than there. The namespaces are held by processes: nothing is left behind.
PATH=$PATH:/usr/sbin:/sbin
if [ "${1:-}" != inside ]; then
    . "$(dirname "$0")/loop_lib.sh"
    [ "$(id -u)" = 0 ] || skip "links between network namespaces need root"
    command -v ip >/dev/null || skip "needs the program ip"
    unshare --net --mount true 2>/dev/null || skip "no network namespaces here"
    cd / && rm -rf "$work"
    exec unshare --net --mount "$0" inside
fi
. "$(dirname "$0")/loop_lib.sh"

[ -e /proc/sys/net/ipv6 ] || skip "this kernel has no IPv6"

unshare --net sleep 600 &
there=$!
for _ in $(seq 100); do
    [ "$(readlink /proc/$there/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break
    sleep 0.05
done
on() { nsenter -t $there -n "$@"; }

# Here: left0, left1. There: right0, right1, with numbers of their own.
on ip link add spare0 type veth peer name spare1 || skip "no veth interfaces here"
for i in 0 1; do
    ip link add left$i type veth peer name right$i netns $there || skip "no veth interfaces here"
done
sysctl_all() { # FILE VALUE: here and there
    echo "$2" >/proc/sys/net/ipv6/conf/"$1" && on bash -c "echo $2 >/proc/sys/net/ipv6/conf/$1"
}
sysctl_all default/accept_dad 0 2>/dev/null
ip link set lo up && on ip link set lo up
for i in 0 1; do
    echo 1 >/proc/sys/net/ipv6/conf/left$i/addr_gen_mode # no address but those given below
    on bash -c "echo 1 >/proc/sys/net/ipv6/conf/right$i/addr_gen_mode"
    ip link set left$i up
    on ip link set right$i up
done
for i in 0 1; do
    has_carrier left$i
    has_carrier right$i on
done

# Each link gets its prefix and no other address: 1 is here, 2 there.
give() { # PREFIX-OF-LINK-0 PREFIX-OF-LINK-1
    local i=0 address
    for address in "$@"; do
        ip -6 addr flush dev left$i
        on ip -6 addr flush dev right$i
        ip -6 addr add "${address}1/64" dev left$i nodad
        on ip -6 addr add "${address}2/64" dev right$i nodad
        i=$((i + 1))
    done
}

sent() { # INTERFACE: bytes, here
    sed -n "s/^ *$1: *//p" /proc/net/dev | awk '{print $9}'
}

# A mesh between here (listening) and there. Two endpoints each way, 64 messages of 1 MiB for each of 8 pairs: 256 MiB
# go in each direction, a part of it over each link. (The first few milliseconds tell the links' rates, and may be uneven.)
mesh() { # WHAT LISTEN RAILS-HERE CONNECT RAILS-THERE
    local what=$1 before0 before1 after0 after1 port
    rm -f here.out
    before0=$(sent left0) before1=$(sent left1)
    timeout -k 5 30 "$WEFT" mesh --listen "${2//PORT/0}" ${3:+--rails "$3"} \
        --json here.json >here.out 2>here.err </dev/null &
    local listener=$!
    waiting $listener here.out
    on timeout -k 5 30 "$WEFT" mesh --connect "${4//PORT/$port}" ${5:+--rails "$5"} --quiet --endpoints 2 \
        --size 1M -n 64 -w 1 --mode isolated --json there.json >there.out 2>there.err </dev/null
    local dialled=$? listened
    wait $listener
    listened=$?
    after0=$(sent left0) after1=$(sent left1)
    pass_if "$what: status $listened here, $dialled there: $(cat here.err there.err)" [ $listened$dialled = 00 ]
    echo "$what: left0 sent $((after0 - before0)), left1 sent $((after1 - before1))"
    pass_if "$what: left0 carried a share" [ $((after0 - before0)) -gt 32000000 ]
    pass_if "$what: left1 carried a share" [ $((after1 - before1)) -gt 32000000 ]
    pass_if "$what: no rail of IPv4" sh -c '! grep -q "\"local\": \"[0-9.]*\"" here.json there.json'
    pass_if "$what: bound to their interfaces" sh -c '! grep -q "\"device_bound\": false" here.json there.json'
}

give fd00:a:: fd00:b::
mesh "IPv6 only, all that is usable" PORT "" "[fd00:a::1]:PORT" ""
mesh "IPv6 only, interfaces" "[fd00:b::1]:PORT" left0,left1 "[fd00:b::1]:PORT" "right*"
mesh "IPv6 only, addresses" "[::]:PORT" fd00:a::1,fd00:b::1 "[fd00:a::1]:PORT" "[fd00:a::2],[fd00:b::2]"
cat >hosts <<TEXT
fd00:a::2 several
fd00:b::1 several
TEXT
# Nobody listens on the address of the name that comes first: it is the dialler's own, and so the nearest.
mount --make-rprivate / && mount --bind hosts /etc/hosts &&
    mesh "a name with several addresses" PORT "" several:PORT ""

give fe80:: fe80::
mesh "link-local, interfaces" PORT left0,left1 "[fe80::1%right1]:PORT" right0,right1
pass_if "the peer's addresses are on the links of our rails" \
    sh -c 'grep -q "\"remote\": \"fe80::1%right0\"" there.json && grep -q "\"remote\": \"fe80::1%right1\"" there.json'
mesh "link-local, addresses" "[fe80::1%left0]:PORT" fe80::1%left0,fe80::1%left1 "[fe80::1%right0]:PORT" \
    "fe80::2%right0,[fe80::2%right1]"
mesh "link-local, numbers of interfaces" PORT left0,left1 "[fe80::1%$(on ip -o link show right0 | cut -d: -f1)]:PORT" \
    right0,right1

# Two nodes of one machine.
weft mesh --local --rails fe80::1%left0,fe80::1%left1 --endpoints 2 --size 64K -n 5
pass_if "link-local within a machine: $(cat err)" [ "$status" -eq 0 ]
# Without rails a node leaves interfaces alone that have nothing but a link-local address.
weft config --rails fe80::1%left9
pass_if "a setting is text until it is used" [ "$status" -eq 0 ]
weft mesh --listen --rails fe80::1%left9
pass_if "an interface that is not here" [ "$status" -ne 0 ]
pass_if "its error names what is here: $(cat err)" grep -q 'left0 (fe80::1%left0)' err

# One link with global addresses, the other link-local; each side names them in its own order.
give fd00:a:: fe80::
mesh "global and link-local" PORT left0,left1 "[fd00:a::1]:PORT" right1,right0
finish
