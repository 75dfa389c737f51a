#!/usr/bin/env bash
# What `weft topo` says of the machines in configs/topologies, against the files beside this test, and of this one.
# With WEFT_TEST_UPDATE=1 it writes these files: look at the difference before you keep it.
set -u

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/scripts/check.sh
. "$here/../scripts/check.sh"
update=${WEFT_TEST_UPDATE-}
unset WEFT_TEST_UPDATE
program=$(realpath -- "${WEFT_TEST_PROGRAM:?the weft program to test}") || exit 1
cd "$root/configs/topologies" || exit 1
LC_ALL=C
export LC_ALL

# golden NAME OPTIONS...: the text is the one in NAME.txt, no line too long; the JSON is of the same machine and plan.
golden() {
    local name=$1 wanted=$here/$1.txt
    shift
    run "$program" topo "$@"
    expect_status 0 "$name"
    if [[ $update ]]; then
        printf '%s\n' "$output" >"$wanted"
    elif ! printf '%s\n' "$output" | diff -u "$wanted" - >"$scratch/difference"; then
        fail "$name: weft topo $*: not as in ${wanted##*/} (see the head of this test)"
        cat "$scratch/difference"
    fi
    check_columns "$name"
    check_json "$name" "$@"
}

check_columns() {
    ! printf '%s\n' "$output" | grep -q '.\{101\}' || fail "$1: a line of more than 100 columns"
}

# check_json NAME OPTIONS...: every rail and endpoint of the plan has what programs count on, and units are in the keys.
check_json() {
    local name=$1
    shift
    command -v python3 >/dev/null || return 0
    "$program" topo "$@" --json - >"$scratch/topo.json" 2>"$scratch/err" || fail "$name: --json: $(cat "$scratch/err")"
    python3 - "$scratch/topo.json" <<'PYTHON' || fail "$name: the JSON is not as it should be"
import json, sys
topo = json.load(open(sys.argv[1]))
assert topo["schema"] == "weft.topo/1", topo["schema"]
plan, machine = topo["plan"], topo["machine"]
names = [rail["rail"] for rail in plan["rails"]]
for endpoint in plan["endpoints"]:
    assert set(endpoint["rails"]) | set(endpoint["other_rails"]) == set(names), endpoint
    assert set(endpoint["distances"]) == set(names), endpoint
for rail in plan["rails"]:
    assert {"tx_cores", "rx_cores", "numa_node"} <= set(rail), rail
for nic in machine["nics"]:
    assert {"speed_mbit_per_s", "mtu_bytes", "numa_node", "pcie_path"} <= set(nic), nic
for node in machine["nodes"]:
    assert node["memory_bytes"] >= 0 and "processors" in node, node
for obstacle in topo["obstacles"]:
    assert obstacle["rail"] in names and obstacle["why"] and "change" in obstacle, obstacle
device = topo["device_memory"]
assert (device is None) == machine["foreign"], device
for pair in device["pairs"] if device else []:
    assert pair["rail"] in names and {"distance", "why", "change"} <= set(pair), pair
for rail in device["rails"] if device else []:
    assert rail["why"] or rail["possible"], rail
PYTHON
}

golden a3-highgpu-8g --xml a3-highgpu-8g.xml --rails eth1,eth2,eth3,eth4
golden a3-highgpu-8g-host --xml a3-highgpu-8g.xml --rails '^eth0' --memory host --endpoints 4
golden a3-highgpu-8g-some --xml a3-highgpu-8g.xml --rails 'eth*' --gpus 0,5
golden dgx-8nic --xml dgx-8nic.xml
golden cloud-1nic --xml cloud-1nic.xml
golden local-2node-4nic --xml local-2node-4nic.xml
golden synthetic-8node --xml 'synthetic:pack:2 numa:4 core:8 pu:2'

golden a3-highgpu-8g-conf --xml a3-highgpu-8g.xml --config ../a3-highgpu-8g.conf
golden dgx-8nic-conf --xml dgx-8nic.xml --config ../dgx-8nic.conf
golden cloud-1nic-conf --xml cloud-1nic.xml --config ../cloud-1nic.conf
for settings in ../*.conf; do
    run "$program" config --config "$settings"
    expect_status 0 "${settings##*/}"
    expect_no_text 'weft[warn]' "${settings##*/}"
done

# As a run: endpoints are on the GPUs that there are, in turn.
# planned WHAT ENDPOINTS OPTIONS...: those that a plan has
planned() {
    local what=$1 endpoints=$2 found
    shift 2
    run "$program" topo --xml dgx-8nic.xml "$@" --json -
    expect_status 0 "$what"
    found=$(sed -n 's/^ *"endpoint": "\(.*\)",$/\1/p' <<<"$output" | tr '\n' ' ')
    [[ $found == "$endpoints " ]] || fail "$what: endpoints $found instead of $endpoints"
}
planned "fewer endpoints than GPUs" 'gpu0 gpu1 gpu2' --endpoints 3
planned "the first of a list" 'gpu5 gpu2' --gpus 5,2,7 --endpoints 2
planned "more endpoints than GPUs" 'gpu5 gpu2' --gpus 5,2 --endpoints 100
expect_text '100 endpoints on 2 GPUs in turn' "more endpoints than GPUs"
planned "endpoints in host memory" 'host0 host1' --endpoints 2 --memory host
planned "endpoints without CUDA" 'host0 host1' --endpoints 2 --set cuda=off
planned "GPUs that host memory has no use for" 'host0' --endpoints 1 --gpus 3 --memory host

run "$program" topo --xml dgx-8nic.xml --set cuda=off
expect_status 0 "cuda = off"
expect_text "host0" "cuda = off"

# The drawing is one of all devices, and a program that reads XML can read it.
run "$program" topo --xml a3-highgpu-8g.xml --svg "$scratch/drawing.svg"
expect_status 0 "--svg"
for device in gpu0 gpu7 eth0 eth4 'TX 52-77,156-181' 'to eth3'; do
    grep -q ">$device" "$scratch/drawing.svg" || fail "--svg: no $device in the drawing"
done
if command -v python3 >/dev/null; then
    sed 's/NVIDIA H100/\&lt;b\&gt; \&amp; \&quot;/' a3-highgpu-8g.xml >"$scratch/hostile.xml"
    "$program" topo --xml "$scratch/hostile.xml" --svg - >"$scratch/hostile.svg" || fail "--svg -"
    grep -q '&#60;b&#62; &#38;' "$scratch/hostile.svg" || fail "--svg: the model is not in the drawing"
    for drawing in "$scratch"/*.svg; do
        python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$drawing" || fail "$drawing: no XML"
    done
fi

# wrong STATUS TEXT OPTIONS...
wrong() {
    local status_wanted=$1 text=$2
    shift 2
    run "$program" topo "$@"
    expect_status "$status_wanted" "weft topo $*"
    expect_text "$text" "weft topo $*"
    (($(printf '%s\n' "$output" | wc -l) == 1)) || fail "weft topo $*: more than one line: $output"
}
printf '<topology version="2.0">\n' >"$scratch/cut.xml"
: >"$scratch/empty.xml"
wrong 2 "No such file" --xml "$scratch/missing.xml"
wrong 2 "empty" --xml "$scratch/empty.xml"
wrong 2 "cut.xml" --xml "$scratch/cut.xml"
wrong 2 "directory" --xml "$scratch"
wrong 2 "synthetic" --xml synthetic:nothing
wrong 2 "eth9" --xml dgx-8nic.xml --rails eth9
wrong 2 "10.0.0.1" --xml dgx-8nic.xml --rails 10.0.0.1
wrong 2 "twice" --xml dgx-8nic.xml --rails 'eth1,eth*'
wrong 2 "GPU 8" --xml dgx-8nic.xml --gpus 8
wrong 2 "'x'" --xml dgx-8nic.xml --gpus x
wrong 2 "64" --memory host --endpoints 65
wrong 2 "GPU 0 is not there" --xml cloud-1nic.xml --gpus 0 --endpoints 2
wrong 2 "300" --xml a3-highgpu-8g.xml --set tx_bindings=eth1:300
wrong 2 "eth1:x" --xml a3-highgpu-8g.xml --tx-bindings eth1:x
wrong 77 "cuda = require: no GPU memory there" --xml cloud-1nic.xml --set cuda=require
wrong 77 "memory = cuda: no GPU memory there" --xml cloud-1nic.xml --memory cuda
wrong 77 "memory = cuda: no GPU memory there: cuda = off" --xml dgx-8nic.xml --memory cuda --set cuda=off
wrong 77 "gpus: no GPU memory there: cuda = off" --xml dgx-8nic.xml --gpus 0 --set cuda=off
wrong 2 "needs a value" --xml
wrong 1 "cannot write" --json "$scratch/no/such/folder.json"

# Whatever --json names is written also where there is no plan, or no drawing, and says why.
# never STATUS CODE TEXT OPTIONS...
never() {
    local status_wanted=$1 code=$2 text=$3
    shift 3
    echo old >"$scratch/never.json"
    run "$program" topo "$@" --json "$scratch/never.json"
    expect_status "$status_wanted" "weft topo $* --json"
    expect_lines 1 "weft topo $* --json"
    output=$(cat "$scratch/never.json")
    for line in '"schema": "weft.topo/1"' "\"error_code\": \"$code\"" "\"exit_status\": $status_wanted" "$text"; do
        expect_text "$line" "weft topo $* --json"
    done
    [[ $output == '{'*'}' ]] || fail "weft topo $* --json: no whole object: $output"
}
never 2 ENOENT 'No such file' --xml "$scratch/missing.xml"
never 2 EINVAL '"machine": null' --xml "$scratch/cut.xml"
never 2 EINVAL 'GPU 8 is not there' --xml dgx-8nic.xml --gpus 8
never 2 EINVAL '65' --memory host --endpoints 65
never 2 EINVAL "'x'" --endpoints x
never 77 EOPNOTSUPP 'cuda = require: no GPU memory there' --xml cloud-1nic.xml --set cuda=require
never 2 ENOENT 'no such process' --in-force 999999999
never 2 EINVAL '"in_force": null' --in-force "$scratch/empty.xml"
never 1 ENOENT '"nic": "eth1"' --xml dgx-8nic.xml --svg "$scratch/no/such/folder.svg"
never 2 EINVAL "'a?z'" --gpus $'a\xffz' --xml dgx-8nic.xml
run "$program" topo --json - --svg -
expect_status 2 "two on standard output"
expect_text '"error_code": "EINVAL"' "two on standard output"
expect_text 'weft: --json - and --svg - are both standard output' "two on standard output"
run "$program" topo --json "$scratch/needs.json" --xml
output=$(cat "$scratch/needs.json")
expect_text 'needs a value' "an option without its value"
run "$program" topo --xml dgx-8nic.xml --json -
for line in '"error": null' '"error_code": null' '"exit_status": 0'; do
    expect_text "$line" "a plan"
done

# This machine, whatever it is.
for rails in '' lo 127.0.1.1,127.0.2.1; do
    run "$program" topo --rails="$rails"
    [[ $rails && ! -e /sys/class/net/lo ]] && continue
    expect_status 0 "this machine with rails '$rails'"
    expect_text "machine " "this machine with rails '$rails'"
    check_columns "this machine with rails '$rails'"
    check_json "this machine with rails '$rails'" --rails="$rails"
done
if [[ -e /sys/class/net/lo ]]; then
    run "$program" topo --rails 127.0.1.1,127.0.2.1
    expect_text "127.0.2.1 on lo" "addresses as rails"
    expect_text "loopback copies" "addresses as rails"
    run "$program" topo --rails 127.0.1.1,192.0.2.250
    expect_status 2 "an address that nobody has"
    expect_text 192.0.2.250 "an address that nobody has"
fi
if command -v taskset >/dev/null && (($(nproc) > 1)); then
    cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
    run taskset -c "$cpu" "$program" topo
    expect_text "may use processors $cpu only" "within an affinity"
fi
# What is in force: of a process, and of a run by its result.
run "$program" topo --in-force $$
expect_status 0 "a process"
expect_text "in force in process $$" "a process"
expect_text "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$$/status")" "a process"
"$program" pair --local --rails 127.0.0.1 --size 4K -n 2 --quiet --set workers=split --json "$scratch/run.json" </dev/null ||
    fail "a run for its result"
run "$program" topo --in-force "$scratch/run.json"
expect_status 0 "a result"
expect_text "in force at node0" "a result"
expect_text "weft-tx0" "a result"
expect_text "in force at node1" "a result"
wrong 2 "--in-force tells of a process, and --svg of a machine" --in-force $$ --svg "$scratch/force.svg"
wrong 2 "--in-force tells of a process, and --xml of a machine" --in-force $$ --xml dgx-8nic.xml
wrong 2 "no such process" --in-force 999999999
wrong 2 "missing.json" --in-force "$scratch/missing.json"
wrong 2 "neither" --in-force "$scratch/empty.xml"
echo '{"host": [{"name": "a", "affinity": null}]}' >"$scratch/early.json"
wrong 2 "no affinity" --in-force "$scratch/early.json"

# A container that hides /sys has no NICs to show, and that is no error.
if unshare -rm true 2>/dev/null; then
    # shellcheck disable=SC2016  # for the inner shell
    run unshare -rm sh -c 'mount -t tmpfs none /sys && exec "$0" topo --endpoints 2' "$program"
    expect_status 0 "without /sys"
    expect_text "0 NICs" "without /sys"
fi
finish
