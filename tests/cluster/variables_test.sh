#!/usr/bin/env bash
# The variables of torchrun and of Slurm, set by a shell: with a file as the meeting, and without any.
set -u
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# start SIZE RANK_VARIABLE SIZE_VARIABLE LOCAL_VARIABLE: all ranks; their output.
# shellcheck disable=SC2317  # called by run
start() {
    local i status=0
    local -a pids=()
    for ((i = 0; i < $1; i++)); do
        env "$2=$i" "$3=$1" "$4=$i" "$rank" 127.0.1.1 "file:$scratch/the meeting" >"$scratch/out.$i" 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || status=1
    done
    cat -- "$scratch"/out.*
    return "$status"
}

run start 4 RANK WORLD_SIZE LOCAL_RANK
expect_status 0 "torchrun's variables"
expect_ranks 4 "torchrun's variables, meeting at file:" "torchrun's variables"
run start 3 SLURM_PROCID SLURM_NTASKS SLURM_LOCALID
expect_status 0 "Slurm's variables"
expect_ranks 3 "Slurm's variables, meeting at file:" "Slurm's variables"

run env RANK=0 WORLD_SIZE=2 "$rank"
expect_status 2 'rank and size alone'
expect_text 'but not where they meet: set MASTER_ADDR and MASTER_PORT' 'rank and size alone'
# srun --mpi=pmix without a libpmix that can be used: both reasons, the remedy first.
mkdir -- "$scratch/broken" && : >"$scratch/broken/libpmix.so.2" || exit 1
reason='this build has no libpmix'
[[ $BUILT_WITH_PMIX != 1 ]] || reason='its library cannot be loaded: '
run env LD_LIBRARY_PATH="$scratch/broken" PMIX_NAMESPACE=step PMIX_RANK=0 SLURM_PROCID=0 SLURM_NTASKS=2 "$rank"
expect_status 2 'PMIx that cannot be used'
expect_text 'but not where they meet: Slurm gives no port' 'PMIx that cannot be used'
expect_text 'or name a rendezvous: HOST:PORT or file:PATH; PMIx has started this process, ' 'PMIx that cannot be used'
expect_text "$reason" 'PMIx that cannot be used'
run "$rank"
expect_status 2 'nothing'
expect_text 'give size, rank and rendezvous' 'nothing'
finish
