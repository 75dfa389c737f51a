#!/usr/bin/env bash
# Nothing of a cluster is left, whenever and however nodes.sh is ended: no process, namespace, mount or file. Skipped where
# there can be no cluster.
# shellcheck disable=SC2317  # functions are called by name
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/cluster/cluster_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/cluster_lib.sh"

run "$net" true
skip_if_unavailable
export TMPDIR=$scratch/tmp
mkdir -- "$TMPDIR"
mark=''

# ours: the processes of the cluster under test, by what their environment says.
ours() {
    local entry
    for entry in /proc/[0-9]*; do
        grep -qsza "^CLUSTER_MARK=$mark\$" "$entry/environ" 2>/dev/null && printf '%s\n' "${entry#/proc/}"
    done
}

# namespaces: theirs, but not this process's.
namespaces() {
    local process kind
    for process in $(ours); do
        for kind in net uts mnt pid; do
            readlink "/proc/$process/ns/$kind"
        done
    done 2>/dev/null | sort -u | grep -vxF "$(for kind in net uts mnt pid; do readlink "/proc/$$/ns/$kind"; done)"
}

# holders NAMESPACE...: of any other process.
holders() {
    local name
    for name in "$@"; do
        find /proc/[0-9]*/ns /proc/[0-9]*/fd -lname "$name" 2>/dev/null
    done
}

# What the system has of files that clusters could leave, of mounts and of interfaces. Others may have some of /tmp meanwhile.
traces() {
    cut -d' ' -f3- /proc/self/mountinfo
    ls -A /run /run/slurm /run/munge /run/netns /dev/shm "$TMPDIR" 2>&1
    sed 's/:.*//' /proc/net/dev
    find /tmp -maxdepth 1 \( -name 'ompi.*' -o -name 'prte*' -o -name 'pmix*' -o -name 'spmix*' \)
    hostname
}

# wait_for WHAT COMMAND...: for 30 seconds at most.
wait_for() {
    local what=$1 late=$((SECONDS + 30))
    shift
    until "$@"; do
        ((SECONDS < late)) || { fail "$what: not within 30 s" && return 1; }
        sleep 0.02
    done
}
all_sleep() { (($(ours | xargs -I{} cat /proc/{}/comm 2>/dev/null | grep -cx sleep) >= 4)); }
nothing_runs() { [[ -z $(ours) && -z $(holders "${names[@]}") ]]; }
seconds_since() { ((${EPOCHREALTIME/[.,]/} - started >= $1 * 1000)); }

# start WHAT COMMAND...: sets process and started.
start() {
    mark=mark$$.$1
    : >"$scratch/said"
    CLUSTER_MARK=$mark "${@:2}" >"$scratch/said" 2>&1 </dev/null &
    process=$! started=${EPOCHREALTIME/[.,]/}
}

# end WHAT SIGNAL
end() {
    mapfile -t names < <(namespaces)
    kill "-$2" "$process"
    wait "$process" 2>/dev/null
    wait_for "$1: left are: $(ours)" nothing_runs
    [[ $(traces) == "$before" ]] || fail "$1: $(diff <(echo "$before") <(traces))"
}

before=$(traces)
signals=(KILL TERM)
for launcher in slurm slurm-pmix openmpi mpich torchrun; do
    run "$here/nodes.sh" "$launcher" true
    if ((status == 77)); then
        echo "left out: $launcher: $output"
        continue
    fi
    for signal in "${signals[@]}"; do
        start "$launcher.$signal" "$here/nodes.sh" "$launcher" sleep 1000
        wait_for "$launcher: four nodes sleep: $(cat -- "$scratch/said")" all_sleep
        end "$launcher, $signal" "$signal"
    done
done

# At moments of the start.
for milliseconds in 10 30 60 100 150 200 300 450 650 900 1200; do
    start "early.$milliseconds" "$here/nodes.sh" slurm sleep 1000
    wait_for 'time passes' seconds_since "$milliseconds"
    end "killed after $milliseconds ms" KILL
done

# What has started it, in its place.
# shellcheck disable=SC2016  # expanded inside
start parent bash -c '"$1" torchrun sleep 1000; true' bash "$here/nodes.sh"
wait_for "four nodes sleep: $(cat -- "$scratch/said")" all_sleep
end 'its parent, KILL' KILL

# By itself, with processes that go on.
# shellcheck disable=SC2016  # expanded inside
start alone "$net" bash -c 'for node in n0 n1; do setsid "$1" --on $node sleep 1000 & done; exit 4' bash "$net"
wait "$process"
status=$? output=$(cat -- "$scratch/said")
expect_status 4 'with processes that go on'
names=()
[[ -z $(ours) ]] || fail "processes that went on: $(ours)"
[[ $(traces) == "$before" ]] || fail "processes that went on: $(diff <(echo "$before") <(traces))"

finish
