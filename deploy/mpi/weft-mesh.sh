#!/usr/bin/env bash
# weft mesh with a process on each node, by the mpirun in PATH: weft-mesh.sh HOSTFILE [OPTION of weft mesh]...
# HOSTFILE has the name of a node in each line. WEFT says where the program is, if not in PATH. WEFT_ variables of the
# environment hold on all nodes.
set -u

if [[ $# == 0 || $1 == -* || ! -r $1 ]]; then
    echo "usage: weft-mesh.sh HOSTFILE [OPTION of weft mesh]..." >&2
    exit 2
fi
nodes=$(grep -c '^[^#]' -- "$1")
case $(mpirun --version 2>&1) in
*'Open MPI'* | *OpenRTE*)
    # It hands on only what it is told to; MPICH's hands on everything.
    settings=()
    for name in $(compgen -e WEFT_); do
        settings+=(-x "$name")
    done
    exec mpirun --hostfile "$1" -n "$nodes" --map-by ppr:1:node --bind-to none "${settings[@]}" "${WEFT:-weft}" mesh "${@:2}"
    ;;
*HYDRA* | *MPICH* | *Intel*)
    exec mpirun -f "$1" -n "$nodes" -ppn 1 "${WEFT:-weft}" mesh "${@:2}"
    ;;
esac
echo "weft-mesh.sh: neither Open MPI's mpirun nor MPICH's is in PATH" >&2
exit 2
