#!/bin/bash
# mps_test.sh: scripts/mps.sh with a control program that only seems to be NVIDIA's.
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

script=$root/scripts/mps.sh
export CUDA_MPS_PIPE_DIRECTORY=$scratch/pipes
unset CUDA_MPS_LOG_DIRECTORY
export WEFT_TEST_MPS_PATIENCE=5
mkdir -- "$scratch/empty"
for tool in bash mkdir tail tr timeout sleep; do
    ln -s -- "$(command -v "$tool")" "$scratch/empty/$tool"
done

# ---- without it
run env PATH="$scratch/empty" bash "$script" status
expect_status 77 "no control program"
expect_text "comes with NVIDIA's driver" "the reason"
run bash "$script"
expect_status 2 "no word"
run bash "$script" restart
expect_status 2 "an unknown word"
run bash "$script" --help
expect_status 0 "help"

# ---- a daemon that starts, answers and ends: it lives as long as its file
program "$scratch/good" nvidia-cuda-mps-control <<'END'
state=$CUDA_MPS_PIPE_DIRECTORY/control
if [ "${1-}" = -d ]; then
    : >"$state"
    exit 0
fi
read -r question
case $question in
get_server_list) [ -s "$state.dead" ] && exit 1 || exit 0 ;;
quit) [ -e "$state.busy" ] || rm -f "$state" ;;
esac
END
export PATH=$scratch/good:$PATH
run bash "$script" status
expect_status 3 "before"
expect_text "MPS: off" "before"
run bash "$script" start
expect_status 0 "start"
expect_text "MPS: on, in $scratch/pipes" "start"
expect_text "export CUDA_MPS_PIPE_DIRECTORY=$scratch/pipes" "a folder of one's own has to be told"
run bash "$script" start
expect_status 0 "start again"
expect_text "on already" "start again"
run bash "$script" status
expect_status 0 "status"
: >"$scratch/pipes/control.busy"
run bash "$script" stop
expect_status 1 "stop with clients"
expect_text "it still answers" "stop with clients"
rm "$scratch/pipes/control.busy"
run bash "$script" stop
expect_status 0 "stop"
run bash "$script" stop
expect_status 0 "stop again"

# ---- one that was killed leaves its pipe
: >"$scratch/pipes/control"
echo dead >"$scratch/pipes/control.dead"
run bash "$script" status
expect_status 3 "a pipe with nobody behind it"
expect_text "CUDA programs may fail until it is removed" "a pipe with nobody behind it"
run bash "$script" start
expect_status 1 "one that does not answer"
expect_text "does not answer" "one that does not answer"
rm -r -- "$scratch/pipes"

# ---- one that cannot start
program "$scratch/bad" nvidia-cuda-mps-control <<'END'
echo "An instance of this daemon is already running"
exit 1
END
export PATH=$scratch/bad:$PATH
run bash "$script" start
expect_status 1 "a daemon that fails"
expect_text "already running" "with what it said"
: >"$scratch/file"
run env CUDA_MPS_PIPE_DIRECTORY="$scratch/file/pipes" bash "$script" start
expect_status 1 "no folder"
expect_text "cannot make these folders" "no folder"
finish
