#!/usr/bin/env bash
# mps.sh: starts and stops NVIDIA's MPS for measurements in which two processes share a GPU. Without it their kernels take
# turns, and neither's speed says anything.
set -u

usage() {
    cat <<'END'
usage: mps.sh start|stop|status

start   starts the control daemon, unless one answers already, and waits until it does
stop    asks it to end, and waits until it has; clients that are still running keep it
status  says whether one answers

The daemon and everything that shall go through it need the same CUDA_MPS_PIPE_DIRECTORY (default /tmp/nvidia-mps) and
user. CUDA programs that run already are not affected. Its logs go to CUDA_MPS_LOG_DIRECTORY (default: log in the other
folder).

Exit status: 0 done, or on; 1 it failed, with what the daemon said; 2 wrong usage; 3 status: off; 77 not available here.
END
}

say() { printf 'mps.sh: %s\n' "$*" >&2; }

export CUDA_MPS_PIPE_DIRECTORY=${CUDA_MPS_PIPE_DIRECTORY:-/tmp/nvidia-mps}
export CUDA_MPS_LOG_DIRECTORY=${CUDA_MPS_LOG_DIRECTORY:-$CUDA_MPS_PIPE_DIRECTORY/log}
control=nvidia-cuda-mps-control
patience=${WEFT_TEST_MPS_PATIENCE:-100} # tenths of a second

# A daemon that is gone leaves its pipe behind, at which a question would wait for ever.
answers() {
    [[ -e $CUDA_MPS_PIPE_DIRECTORY/control ]] &&
        timeout 5 "$control" <<<get_server_list >/dev/null 2>&1
}

# until_it ANSWERS...: waits for the command to succeed.
until_it() {
    local tries
    for ((tries = 0; tries < patience; tries++)); do
        "$@" && return 0
        sleep 0.1
    done
    return 1
}

is_silent() { ! answers; }

last_words() {
    local log=$CUDA_MPS_LOG_DIRECTORY/control.log
    [[ -s $log ]] && say "$log ends: $(tail -n 3 -- "$log" | tr '\n' ' ')"
}

start() {
    local told
    if answers; then
        echo "MPS: on already, in $CUDA_MPS_PIPE_DIRECTORY"
        return 0
    fi
    if ! mkdir -p -- "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"; then
        say "cannot make these folders: set CUDA_MPS_PIPE_DIRECTORY to one of yours, here and for what is measured"
        return 1
    fi
    # The daemon keeps what it inherits: nobody must wait for its end of a pipe.
    told=$CUDA_MPS_LOG_DIRECTORY/start.log
    if ! "$control" -d >"$told" 2>&1 </dev/null; then
        say "$control -d failed: $(tail -n 3 -- "$told" | tr '\n' ' ')"
        last_words
        return 1
    fi
    if ! until_it answers; then
        say "$control was started and does not answer in $CUDA_MPS_PIPE_DIRECTORY"
        last_words
        return 1
    fi
    echo "MPS: on, in $CUDA_MPS_PIPE_DIRECTORY"
    if [[ $CUDA_MPS_PIPE_DIRECTORY != /tmp/nvidia-mps ]]; then
        echo "for what is measured: export CUDA_MPS_PIPE_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY"
    fi
}

stop() {
    if ! answers; then
        echo "MPS: off, in $CUDA_MPS_PIPE_DIRECTORY"
        return 0
    fi
    timeout 30 "$control" <<<quit >/dev/null 2>&1
    if ! until_it is_silent; then
        say "it still answers: end what runs through it (echo get_client_list SERVER | $control), then stop it again"
        return 1
    fi
    echo "MPS: off, in $CUDA_MPS_PIPE_DIRECTORY"
}

status() {
    if answers; then
        echo "MPS: on, in $CUDA_MPS_PIPE_DIRECTORY"
        return 0
    fi
    if [[ -e $CUDA_MPS_PIPE_DIRECTORY/control ]]; then
        echo "MPS: off, but $CUDA_MPS_PIPE_DIRECTORY/control is left of one: CUDA programs may fail until it is removed"
    else
        echo "MPS: off, in $CUDA_MPS_PIPE_DIRECTORY"
    fi
    return 3
}

if (($# != 1)); then
    usage >&2
    exit 2
fi
case $1 in
--help) usage && exit 0 ;;
start | stop | status) ;;
*)
    say "unknown word '$1': see --help"
    exit 2
    ;;
esac
if ! command -v "$control" >/dev/null; then
    say "$control is not here: it comes with NVIDIA's driver"
    exit 77
fi
"$1"
