#!/bin/bash
# test_invite.sh: what a waiting node says is to be started on the other one: with an address that reaches it, and with
# the options that both nodes need. In a network of its own.
PATH=$PATH:/usr/sbin:/sbin
. "$(dirname "$0")/nodes_lib.sh"
command -v ip >/dev/null || skip "needs the program ip"

for i in 0 1; do
    ip link add eth$i type veth peer name far$i && ip addr add 10.77.$i.1/24 dev eth$i || skip "no veth interfaces here"
    ip link set eth$i up && ip link set far$i up
done
ip link add docker0 type veth peer name far2 && ip addr add 172.17.0.1/16 dev docker0 && ip link set docker0 up
has_carrier eth0 && has_carrier eth1
ip route add default via 10.77.1.9

# invites COMMAND OPTION...: starts it, and takes what it says into the file `said`, the port left out.
invites() {
    local server
    rm -f said.raw err # what is in them is of the run before
    timeout 60 "$WEFT" "$@" --json= --log-dir= >said.raw 2>err </dev/null &
    server=$!
    until_true "weft $* waits" grep -qs 'waits on port' said.raw err
    kill "$server" || fail "weft $*: it has ended: $(cat err)"
    wait "$server"
    cat err said.raw | sed -e '/waits on port/,$!d' -e 's/:[0-9][0-9]*\( \|,\|$\)/:PORT\1/g' -e 's/port [0-9]*;/port;/' >said
}

says() { # WHAT TEXT
    pass_if "$1: $(cat said)" grep -qxF -- "$2" said
}

invites mesh --listen 0
says "the default route's address" '  weft mesh --connect 10.77.1.1:PORT'
says "other rails" 'or, where that does not reach this node, at 10.77.0.1:PORT'
invites pair --listen 10.77.0.1:0 --lat --size 8 --preset end=3M --rails eth0
says "an address that it was told, with options" '  weft pair --connect 10.77.0.1:PORT --lat --preset end=3M --size 8'
invites mesh --listen 0 --rails eth1 --channels 4 --crc on --log warn --port 20000 --invite './run_p2p_fullmesh.sh client' \
    --preset end=3M
says "in the words of a script, which has presets of its own" \
    '  ./run_p2p_fullmesh.sh client 10.77.1.1:PORT --channels 4 --crc on'
WEFT_END=2M invites mesh --listen 0
says "what the environment says of the measurement" '  weft mesh --connect 10.77.1.1:PORT --end 2M'
invites mesh --listen 0 --invite=
pass_if "nothing where it is known: $(cat said)" [ "$(wc -l <said)" -eq 1 ]
ip route del default
invites mesh --listen 0
says "without a default route a rail's" '  weft mesh --connect 10.77.0.1:PORT'
says "and the others" 'or, where that does not reach this node, at 10.77.1.1:PORT'
ip addr flush dev eth0 && ip addr add fd00:77::1/64 dev eth0 nodad && ip link set eth1 down
invites mesh --listen 0
says "IPv6 alone" '  weft mesh --connect [fd00:77::1]:PORT'
finish
