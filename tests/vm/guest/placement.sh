#!/usr/bin/busybox sh
# shellcheck shell=dash
# placement.sh PID: where the threads of a process may run, and where its memory is, as lines:
#
#     thread NAME cpus LIST
#     memory ADDRESS POLICY node0 PAGES node1 PAGES...     each anonymous mapping that has pages
#     memory all node0 PAGES node1 PAGES...                all of them together
#
# A mapping's pages are those that have been touched; LIST and POLICY are as in /proc/PID/status and numa_maps. What is
# to be told apart from a thread that comes or goes meanwhile is stopped before (kill -STOP).
[ -d "/proc/$1/task" ] || { echo "placement.sh: there is no process '$1'" >&2 && exit 1; }

for task in "/proc/$1/task/"*; do
    awk -F'\t' '$1 == "Name:" { name = $2 }
        $1 == "Cpus_allowed_list:" { print "thread " name " cpus " $2 }' "$task/status"
done

set -- "$1" /sys/devices/system/node/node[0-9]*
awk -v nodes=$(($# - 1)) '
    function show(what, pages,  node, line) {
        for (node = 0; node < nodes; node++) line = line " node" node " " (pages[node] + 0)
        print "memory " what line
    }
    / anon=/ && !/ file=/ {
        split("", pages)
        for (i = 3; i <= NF; i++)
            if ($i ~ /^N[0-9]+=/) {
                split(substr($i, 2), part, "=")
                pages[part[1]] += part[2]
                all[part[1]] += part[2]
            }
        show($1 " " $2, pages)
    }
    END { show("all", all) }' "/proc/$1/numa_maps"
