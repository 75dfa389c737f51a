#!/usr/bin/env bash
# Open MPI's mpirun: PMIx tells the ranks, and where they meet.
set -u
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
needs mpirun.openmpi

# Nothing of it goes through a network, and more ranks than cores are wanted.
mpi=(mpirun.openmpi --allow-run-as-root --oversubscribe --host localhost:8 --mca plm isolated)
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none

if [[ $BUILT_WITH_PMIX == 1 ]]; then
    for size in 2 5; do
        run "${mpi[@]}" -n "$size" "$rank"
        expect_status 0 "mpirun -n $size"
        expect_ranks "$size" 'PMIx, meeting by PMIx' "mpirun -n $size"
    done
else
    run "${mpi[@]}" -n 2 "$rank"
    expect_text 'this build has no libpmix' 'mpirun without libpmix'
    echo 'not tested: this build has no libpmix'
fi

# Beside it, a meeting of the user's own.
run "${mpi[@]}" -n 3 "$rank" 127.0.1.1 "file:$scratch/meeting"
expect_status 0 'mpirun, and a file'
expect_ranks 3 'PMIx, meeting at file:' 'mpirun, and a file'
[[ ! -e $scratch/meeting ]] || fail 'the file is left behind'
finish
