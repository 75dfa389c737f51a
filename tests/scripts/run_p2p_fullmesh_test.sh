#!/usr/bin/env bash
# run_p2p_fullmesh.sh with a program that only prints its arguments: what the script adds, and what it leaves alone.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

mkdir -- "$scratch/scripts" || exit 1
cp -- "$root/run_p2p_fullmesh.sh" "$scratch/" && cp -- "$root/scripts/program.sh" "$scratch/scripts/" || exit 1
script=$scratch/run_p2p_fullmesh.sh
program "$scratch/made/bin" weft <<'EOF'
printf '<%s>' "$@"
printf '\n'
while (($#)); do
    case $1 in
    --out) out=$2 ;;
    --latest) latest=$2 ;;
    esac
    shift
done
if [[ -z ${PROGRAM_STATUS-} && -n ${latest-} ]]; then # the real one's part
    mkdir -p -- "$out"
    ln -sfn -- "$out" "$latest"
fi
exit "${PROGRAM_STATUS:-0}"
EOF
export WEFT_BUILD=$scratch/made
unset NCCL_SOCKET_IFNAME
cd / || exit 1

run "$script"
expect_status 0 'local is the default'
expect_text '<mesh><--local>' 'local'
for preset in begin=1K end=64M factor=4 warmup=1 iters=auto duration=10 mode=both "log_dir=$scratch/logs"; do
    expect_text "<--preset><$preset>" 'defaults, which give way'
done
expect_no_text 'rails' 'local: the rails are those of --local'
expect_text "<--out><$scratch/results/" 'results'
expect_text "<--latest><$scratch/results/latest>" 'the link to the results'
[[ -d $scratch/results/latest/ ]] || fail 'results/latest leads nowhere'
[[ -L $scratch/results/latest ]] || fail 'results/latest is no link'

latest=$(readlink -- "$scratch/results/latest")
run "$script" local
[[ $(readlink -- "$scratch/results/latest") != "$latest" ]] || fail 'two runs share a folder'

run "$script" local -b 4K --seed 7 'a b'
[[ $output == *'<-b><4K><--seed><7><a b>' ]] || fail "the user's options come last and whole: $output"

# What goes before these defaults is the program's business: it is asked by what the script starts it with.
program "$scratch/asked/bin" weft <<'EOF'
words=()
for word in "${@:2}"; do
    [[ $word == --local || $word == --report || $word == --latest || ${last-} == --latest || $word == --out || ${last-} == --out ]] ||
        words+=("$word")
    last=$word
done
exec "$WEFT_TEST_PROGRAM" config "${words[@]}"
EOF
# expect_setting NAME VALUE ORIGIN WHAT
expect_setting() {
    grep -Eq "^$1 +$2 +$3 " <<<"$output" || fail "$4: $(grep "^$1 " <<<"$output")"
}
asked=$scratch/asked
run env WEFT_BUILD="$asked" "$script"
expect_setting begin 1K preset 'a preset'
expect_setting log_dir "$scratch/logs" preset 'a folder'
run env WEFT_BUILD="$asked" WEFT_RAILS=lo WEFT_BEGIN=2K "$script"
expect_setting rails lo 'environment WEFT_RAILS' 'WEFT_RAILS wins'
expect_setting begin 2K 'environment WEFT_BEGIN' 'WEFT_BEGIN wins'
expect_setting end 64M preset 'the others stay'
run env WEFT_BUILD="$asked" UCCL_TCPX_PERF_ITERS=3 LOG_DIR=/tmp "$script"
expect_setting iters 3 'environment UCCL_TCPX_PERF_ITERS .*' 'an alias wins'
expect_setting log_dir /tmp 'environment LOG_DIR .*' 'LOG_DIR wins'
printf '# comment\nend = 1M\nlog-dir=/tmp # why\nport = 20001\n' >"$scratch/my settings.conf"
run env WEFT_BUILD="$asked" WEFT_CONFIG="$scratch/my settings.conf" "$script"
expect_setting end 1M 'file .*' 'the settings file wins'
expect_setting log_dir /tmp 'file .*' 'the settings file wins, with a dash'
expect_setting begin 1K preset 'what the file does not name stays'
run env WEFT_BUILD="$asked" "$script" local --config "$scratch/my settings.conf"
expect_setting end 1M 'file .*' '--config wins'
run env WEFT_BUILD="$asked" "$script" local -e 2M
expect_setting end 2M 'command line' 'an option wins'

count=$(find "$scratch/results" -mindepth 1 | wc -l)
run "$script" local --out /tmp
expect_no_text "<--out><$scratch" '--out wins'
[[ $(find "$scratch/results" -mindepth 1 | wc -l) == "$count" ]] || fail '--out, yet a folder in results/'

run env PROGRAM_STATUS=77 "$script"
expect_status 77 "the program's status"
[[ $(find "$scratch/results" -mindepth 1 | wc -l) == "$count" ]] || fail 'a run that never started left a folder'

run "$script" server
expect_text '<mesh><--listen><--invite=./run_p2p_fullmesh.sh client>' 'server: the program chooses the port, and says what to start'
expect_no_text 'rails' 'server: all rails'
run "$script" server --port 19000 --rails eth9
[[ $output == *'<--port><19000><--rails><eth9>' ]] || fail "server: options: $output"

latest=$(readlink -- "$scratch/results/latest")
while read -r given meant; do
    run "$script" client "$given" -e 1M
    expect_text "<--connect=$meant>" "client $given"
    expect_text '-client>' 'client: its results'
    [[ $output == *'<-e><1M>' ]] || fail "client: options: $output"
done <<'EOF'
10.0.0.5 10.0.0.5
10.0.0.5:99 10.0.0.5:99
node7 node7
fd00::1 fd00::1
[fd00::1] [fd00::1]
[fd00::1]:99 [fd00::1]:99
EOF
[[ $(readlink -- "$scratch/results/latest") == "$latest" ]] || fail 'a client moved results/latest'
run "$script" client 10.0.0.5 --port=19000
expect_text '<--connect=10.0.0.5>' 'client: --port is the program'"'"'s business'

# What the lab does is tested with the lab; here, what it is told.
program "$scratch/scripts" lab_net.sh <<'EOF'
case $1 in
--address) echo 10.77.0.1 ;;
true) exit "${LAB_STATUS:-0}" ;;
*) printf '[%s]' "$@" && exit 3 ;;
esac
EOF
run "$script" lab -e 1M --json=- --open --json-stream=s
expect_status 3 "lab: its status"
latest=${output#*'[--out]['}
latest=${latest%%']'*}
expect_text "[--counters][$latest/interfaces.csv][$scratch/made/bin/weft][mesh][--listen][--invite=]" 'lab: server'
expect_text "[--latest][$scratch/results/latest]" 'lab: the link'
expect_text '[-e][1M][--json=-][--open][--json-stream=s][:]' "lab: the server's options"
expect_text "[$scratch/made/bin/weft][mesh][--connect=10.77.0.1]" 'lab: client'
expect_text '[--preset][rails=lab*]' 'lab: its rails'
expect_text '[--preset][endpoints=2]' 'lab: its endpoints'
client="[-e][1M][--json=-][--json-stream=s][--out][$latest-client][--json=][--csv=][--json-stream=][--quiet]"
[[ $output == *"$client" ]] || fail "lab: client: $output"
run "$script" lab --out /tmp --port 19000
expect_text '[--counters][/tmp/interfaces.csv]' 'lab: --out'
expect_text '[--port][19000]' 'lab: --port'
run "$script" lab --out ''
expect_no_text '--counters' 'lab: no folder, no counters'
expect_text '[--out][][--json=]' 'lab: no folder, for the client, too'
printf 'out = /tmp\nout = /data/my lab \t # of ours\r\n' >"$scratch/blank.conf"
run env WEFT_CONFIG="$scratch/blank.conf" "$script" lab
expect_text '[--counters][/data/my lab/interfaces.csv]' 'lab: a folder with a blank, in a settings file'
expect_text '[--out][/data/my lab-client]' 'lab: a folder with a blank, for the client, too'
count=$(find "$scratch/results" -mindepth 1 | wc -l)
run env LAB_STATUS=77 "$script" lab
expect_status 77 'no lab here'
[[ $(find "$scratch/results" -mindepth 1 | wc -l) == "$count" ]] || fail 'no lab, yet a folder in results/'

for wrong in client serve 'client --port 1'; do
    # shellcheck disable=SC2086  # several words
    run "$script" $wrong
    expect_status 2 "wrong usage: $wrong"
    expect_lines 1 "wrong usage: $wrong"
done
run env WEFT_BUILD=/nowhere "$script"
expect_status 2 'a build that is not there'
expect_text '/nowhere' 'a build that is not there'
run "$script" --help
expect_status 0 'help'
expect_text 'usage: run_p2p_fullmesh.sh' 'help'

program "$scratch/versioned/bin" weft <<<'echo "weft 9.8.7 ($*)"'
for word in -V --version; do
    run env WEFT_BUILD="$scratch/versioned" "$script" $word
    expect_status 0 "$word"
    [[ $output == 'weft 9.8.7 (--version)' ]] || fail "$word is the program's: $output"
    run env WEFT_BUILD="$scratch/versioned" "$script" client 10.0.0.5 $word
    [[ $output == 'weft 9.8.7 (--version)' ]] || fail "client ADDR $word: $output"
done
# Of sources nothing is built for it.
run env -u WEFT_BUILD "$root/run_p2p_fullmesh.sh" --version
expect_status 0 'the version of the sources'
[[ $output == "$("$WEFT_TEST_PROGRAM" --version)" ]] || fail "the version of the sources: $output"

# Without WEFT_BUILD it sets up and builds, and says so when that fails.
unset WEFT_BUILD
# shellcheck disable=SC2016  # expanded by the program
program "$scratch" setup.sh <<<'echo "set up" >&2; exit ${SETUP_STATUS:-0}'
program "$scratch/fake" cmake <<<'echo "no such compiler" >&2; exit 1'
run env SETUP_STATUS=1 "$script"
expect_status 1 'set-up failed'
expect_text 'set up' 'setup.sh was asked'
run env PATH="$scratch/fake:$PATH" "$script"
expect_status 1 'build failed'
expect_text 'no such compiler' 'build failed: the reason'
expect_text 'build/build.log' 'build failed: where the rest is'

# Interrupted while it builds, it leaves no build behind.
mkfifo -- "$scratch/building"
program "$scratch/fake" cmake <<EOF
echo \$\$ >"$scratch/building"
exec sleep 1000
EOF
for signal in TERM INT; do
    # A shell lets what it starts in the background ignore SIGINT.
    PATH="$scratch/fake:$PATH" env --default-signal=INT "$script" >"$scratch/said" 2>&1 </dev/null &
    process=$!
    read -r builder <"$scratch/building"
    kill "-$signal" "$process"
    wait "$process"
    status=$? output=$(<"$scratch/said")
    expect_status 1 "SIG$signal while building"
    for ((tries = 0; tries < 50; tries++)); do
        kill -0 "$builder" 2>/dev/null || break
        sleep 0.1
    done
    kill -0 "$builder" 2>/dev/null && fail "SIG$signal: the build goes on" && kill "$builder"
done

finish
