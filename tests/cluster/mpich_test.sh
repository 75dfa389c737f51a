#!/usr/bin/env bash
# MPICH's mpiexec: PMI-1 tells the ranks, and where they meet.
set -u
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
needs mpiexec.hydra

for size in 2 5; do
    run mpiexec.hydra -n "$size" "$rank"
    expect_status 0 "mpiexec -n $size"
    expect_ranks "$size" 'PMI-1, meeting by PMI_FD' "mpiexec -n $size"
done
run mpiexec.hydra -n 3 "$rank" 127.0.1.1 "file:$scratch/meeting"
expect_status 0 'mpiexec, and a file'
expect_ranks 3 'PMI-1, meeting at file:' 'mpiexec, and a file'
finish
