#!/usr/bin/env bash
# With what the scripts of deploy/ start a mesh: the launchers are played, so this needs none of them.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
unset MASTER_PORT WEFT

# Slurm's, which has PMIx. The script does not ask for it: a Weft without libpmix has to meet, too.
program "$scratch/slurm" srun <<<'[[ $* == *list* ]] && echo "none pmix" && exit; printf "<%s>" "$@"'
sbatch() {
    run env PATH="$scratch/slurm:$PATH" SLURM_SUBMIT_DIR=/shared/runs SLURM_JOB_ID=7 SLURM_CPUS_ON_NODE=64 "$@" \
        bash "$root/deploy/slurm/weft-mesh.sbatch" --size 64M
}
sbatch
expect_status 0 'sbatch'
expect_text '<--mpi=none>' 'sbatch'
expect_text '<weft><mesh><--rendezvous><file:/shared/runs/weft-mesh-7.meeting><--size><64M>' 'sbatch'
sbatch MASTER_PORT=29500 WEFT=/opt/weft/bin/weft
expect_text '</opt/weft/bin/weft><mesh><--size><64M>' 'sbatch with MASTER_PORT'

# Open MPI's mpirun hands on what it is told to.
printf 'n%d\n' 0 1 2 3 >"$scratch/hosts"
program "$scratch/openmpi" mpirun <<<'[[ $* == --version ]] && echo "mpirun (Open MPI) 4.1.4" && exit; printf "<%s>" "$@"'
run env PATH="$scratch/openmpi:$PATH" WEFT_KEY_FILE='/home/me/a key' WEFT_RAILS=eth1 OTHER=1 \
    "$root/deploy/mpi/weft-mesh.sh" "$scratch/hosts" --size 64M
expect_status 0 mpirun
expect_text "<--hostfile><$scratch/hosts><-n><4>" mpirun
expect_text '<-x><WEFT_KEY_FILE>' 'mpirun: the key'
expect_text '<-x><WEFT_RAILS>' 'mpirun: another setting'
expect_no_text OTHER 'mpirun: what is no setting'
expect_text '<weft><mesh><--size><64M>' mpirun
run env PATH="$scratch/openmpi:$PATH" "$root/deploy/mpi/weft-mesh.sh" "$scratch/hosts"
expect_status 0 'mpirun without settings'

finish
