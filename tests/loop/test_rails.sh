#!/bin/bash
# test_rails.sh: which interfaces become rails when none is named, and what becomes of rails that do not meet. The
# machines are network namespaces, held by processes: nothing is left behind. Interfaces are known by their names here;
# tests/vm/rails has those that are known by their kind.
PATH=$PATH:/usr/sbin:/sbin
. "$(dirname "$0")/nodes_lib.sh"
command -v ip >/dev/null || skip "needs the program ip"

there=''
trap 'kill $there $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
on() { nsenter -t "$there" -n "$@"; }

# Another machine with nothing but loopback, in place of the one before.
new_machines() {
    [ -n "$there" ] && kill "$there" && wait "$there" 2>/dev/null
    for link in $(ip -o link show type veth | sed 's/^[0-9]*: \([^@:]*\).*/\1/'); do
        ip link del "$link" 2>/dev/null
    done
    unshare --net sleep 600 &
    there=$!
    until [ "$(readlink /proc/$there/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
        kill -0 "$there" || skip "no second network namespace"
    done
    ip link set lo up && on ip link set lo up
}

# cable HERE THERE [ADDRESS HERE, ADDRESS THERE]: both ends up; without addresses each has its link-local one.
cable() {
    ip link add "$1" type veth peer name "$2" netns "$there" || skip "no veth interfaces here"
    [ $# -eq 4 ] && ip addr add "$3" dev "$1" && on ip addr add "$4" dev "$2"
    ip link set "$1" up && on ip link set "$2" up
    has_carrier "$1" && has_carrier "$2" on
}

# Link-local addresses are tentative for a second or two.
settled() { [ -z "$(ip -6 addr show tentative)$(on ip -6 addr show tentative)" ]; }

# rails_are WHAT "eth0 eth1" [OPTION...]: so says weft topo, whose report is in the file `topo`.
rails_are() {
    local what=$1 wanted found
    wanted=$(tr ' ' '\n' <<<"$2" | sort | tr '\n' ' ')
    shift 2
    "$WEFT" topo --json - "$@" >topo 2>err
    found=$(grep -o '"rail": "[^"]*"' topo | sort -u | sed 's/.*: "\(.*\)"/\1/' | tr '\n' ' ')
    pass_if "$what: the rails are '$found': $(cat err)" [ "$found" = "$wanted" ]
}

left_out() { # INTERFACE RULE [REMEDY]
    tr '\n' ' ' <topo | grep -q "\"interface\": \"$1\",[^}]*\"why\": \"[^\"]*$2[^\"]*\",[^}]*\"remedy\": \"${3:-}"
}

# run RAILS-HERE RAILS-THERE ADDRESS [OPTION...]: a pair between the two; result.json has what both say of it.
run() {
    local here=$1 far=$2 address=$3 port server
    shift 3
    rm -f here.out # what is in it is of the run before
    timeout 60 "$WEFT" pair --listen 0 --rails "$here" --size 1M -n 32 >here.out 2>&1 </dev/null &
    server=$!
    until_true "no server" grep -qs 'waits on port [0-9]' here.out
    port=$(sed -n 's/.*waits on port \([0-9]*\).*/\1/p' here.out)
    timeout 60 nsenter -t "$there" -n "$@" "$WEFT" pair --connect "$address:$port" --rails "$far" --size 1M -n 32 \
        --connect-timeout 10 --json result.json >out 2>err </dev/null
    status=$?
    [ "$status" -eq 0 ] || kill "$server"
    wait "$server"
    pass_if "status $status and $? over $here and $far: $(cat err here.out)" [ "$status" -eq 0 ]
}

fallback() { grep -q "\"node[01]: rails: $1" result.json; }
peer_rails() { grep -c '"remote"' result.json; }

# --- what is taken ---

new_machines
rails_are "loopback alone" lo
run '' '' 127.0.0.1 nsenter -t $$ -n
pass_if "loopback alone is told of: $(grep -A4 fallbacks result.json)" fallback 'lo (127.0.0.1) is taken, no network card is usable'

cable veth0 peer0 10.77.0.1/24 10.77.0.2/24
rails_are "veth0 alone" veth0
run '' '' 10.77.0.1
pass_if "that it is the last resort is told" fallback 'veth0 (10.77.0.1) is taken, though'
pass_if "and of the other side not" [ "$(grep -c 'is taken' result.json)" = 1 ]

new_machines
cable wg0 peer0 10.77.0.1/24 10.77.0.2/24
rails_are "wg0 alone" wg0
for name in docker0 br-1234 vethab virbr0 cni0 flannel.1 cali12 tun0 tap0 tailscale0; do
    cable $name there 172.17.0.1/16 172.17.0.2/16
    cable eth7 peer7 10.77.1.1/24 10.77.1.2/24
    rails_are "$name beside a card" eth7
    pass_if "$name is told of" left_out "$name" 'is of containers' "--rails eth7,$name"
    rails_are "$name when it is named" "$name eth7" --rails "eth7,$name"
    ip link del $name && ip link del eth7
done
cable eth0 peer1 10.77.1.1/24 10.77.1.2/24
rails_are "excluding the card" wg0 --rails '^eth0'
pass_if "the card is told of" left_out eth0 'is excluded'
on ip link set peer1 down
no_carrier() { ip link show eth0 | grep -q NO-CARRIER; }
until_true "the carrier stays" no_carrier
rails_are "without carrier" wg0
pass_if "the card is told of" left_out eth0 'has no carrier' '--rails wg0,eth0'
rails_are "without carrier, but named" eth0 --rails eth0
ip link set eth0 down
rails_are "down" wg0
pass_if "the card is told of" left_out eth0 'is down' 'ip link set eth0 up'

# --- link-local addresses alone ---

new_machines
cable w0 x0
cable w1 x1
until_true "addresses stay tentative" settled
rails_are "cards with link-local addresses" "w0 w1"
run '' '' "[$(ip -6 -o addr show dev w0 scope link | sed 's/.*inet6 \([^/]*\).*/\1/')%x0]"
pass_if "it is told of: $(grep -A4 fallbacks result.json)" fallback 'x0 (fe80.*) is taken, by its link-local address'
pass_if "both carried: $(json_numbers result.json sent_bytes)" \
    [ "$(json_numbers result.json sent_bytes | awk '$1 > 1000000' | wc -l)" -eq 2 ]
ip addr add 10.77.0.1/24 dev w1
rails_are "a card with an address beside one without" w1
pass_if "the other is told of" left_out w0 'only a link-local' '--rails w1,w0'

# --- what does not meet ---

new_machines
cable e0 f0 10.77.0.1/24 10.77.0.2/24
cable e1 f1 10.77.1.1/24 10.77.1.2/24
cable e2 f2 10.77.2.1/24 10.77.2.2/24
on ip addr flush dev f1
on ip addr add 10.99.1.2/24 dev f1 # nobody answers it, on a cable that works
run e0,e1,e2 f0,f1,f2 10.77.0.1
pass_if "the rail is left out and named: $(grep -A4 fallbacks result.json)" fallback 'f1 (10.99.1.2) is left out until it meets 10.77.1.1:'
pass_if "no other is" [ "$(grep -c 'is left out' result.json)" = 1 ]
pass_if "both others carried: $(json_numbers result.json sent_bytes)" \
    [ "$(json_numbers result.json sent_bytes | awk '$1 > 1000000' | wc -l)" -eq 2 ]

# --- one address on both machines ---

new_machines
cable e0 f0 10.77.0.1/24 10.77.0.2/24
cable docker0 docker0 172.17.0.1/16 172.17.0.1/16
tr 0-9a-f 1-9a-f0 </proc/sys/kernel/random/boot_id >boot_id # no digit stays
cat >elsewhere <<END
#!/bin/bash
mount --bind "$PWD/boot_id" /proc/sys/kernel/random/boot_id && exec "\$@"
END
chmod +x elsewhere
if nsenter -t "$there" -n unshare --mount ./elsewhere true; then
    run e0,docker0 f0,docker0 10.77.0.1 unshare --mount ./elsewhere
    pass_if "what leads back here was dialled: $(grep -A4 fallbacks result.json)" [ "$(grep -c 'is left out' result.json)" = 0 ]
    pass_if "each side has one rail: $(grep '"remote"' result.json)" [ "$(grep -c '"remote": "10.77.0.' result.json)" = 2 ]
    pass_if "and no other: $(peer_rails)" [ "$(peer_rails)" = 2 ]
fi
finish
