#!/bin/bash
# test_help.sh: what weft says about itself. The help of each command names the options that the command accepts and no
# others, fits 80 columns and has examples that can be typed; an option of another command is refused. With the word
# `every` all commands without an option refuse it, otherwise a quarter of them, in turn.
. "$(dirname "$0")/loop_lib.sh"
limit=20

# Checks what the last `weft` said: one line on standard error that has WORD in it, and nothing on standard output.
refused() { # STATUS WORD WHAT
    pass_if "$3: status $status, expected $1: $(<err)" [ "$status" -eq "$1" ]
    said=$(<err)
    pass_if "$3: not one line that says $2: $said" test "${said##*"$2"*}${said//[!$'\n']/}" = ""
    pass_if "$3: something on standard output" [ ! -s out ]
}

# Options of a help text, one a line: "b begin SIZE"; '-' for no letter, or no value.
options_of() { # FILE
    sed -nE 's/^  (-([a-zA-Z]), )?--([a-z-]+)( ([^ ]+))?.*/\2 \3 \5/p' "$1" | sed -E 's/^ /- /; s/ $/ -/'
}

# ---- the list of commands
weft help
pass_if "weft help: status $status" [ "$status" -eq 0 ]
cp out list
pass_if "weft help: nothing on standard error" [ ! -s err ]
for word in --help -h 'help --help' 'help help'; do
    # shellcheck disable=SC2086 # words
    weft $word
    pass_if "weft $word is weft help: $(diff out list)" cmp -s out list
done
commands=$(sed -nE 's/^  ([a-z-]+) +[a-z].*/\1/p' list)
pass_if "the commands: $commands" [ "$(wc -w <<<"$commands")" -ge 8 ]
pass_if "weft help is wider than 80 columns" awk 'length > 80 { wide = 1 } END { exit wide }' list
weft
pass_if "weft alone: status $status" [ "$status" -eq 2 ]
pass_if "weft alone: the list is on standard error" cmp -s err list
weft help msh
refused 2 "did you mean 'mesh'" "weft help of no command"
weft help mesh pair
refused 2 "'pair'" "weft help of two commands"
weft --version
cp out version
pass_if "weft --version: $(cat out)" grep -Eqx 'weft [0-9.]+' version
weft -V
pass_if "weft -V: $(cat out)" cmp -s out version
: >libc.so.6
weft -V
pass_if "a library in the folder in which it runs is none of its own: $(cat err)" cmp -s out version
rm libc.so.6

# ---- the help of each command
for command in $commands; do
    weft "$command" --help
    cp out "$command.help"
    pass_if "weft $command --help: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "weft $command --help: nothing on standard error: $(cat err)" [ ! -s err ]
    pass_if "weft $command --help: $(awk 'length > 80' out)" awk 'length > 80 { wide = 1 } END { exit wide }' out
    pass_if "weft $command --help: usage" grep -q "^usage: weft $command" out
    pass_if "weft $command --help: exit statuses" grep -q 'Exit' out
    pass_if "weft $command --help: no two blank lines" awk '/^$/ && before { twice = 1 } { before = /^$/ } END { exit twice }' out
    weft "$command" -h
    pass_if "weft $command -h" cmp -s out "$command.help"
    weft help "$command"
    pass_if "weft help $command" cmp -s out "$command.help"
    for word in -V --version; do
        weft "$command" $word
        pass_if "weft $command $word: $(cat out err)" cmp -s out version
    done
    WEFT_CHUNK=12Q weft "$command" --help
    pass_if "a wrong variable does not keep the help of $command back: $(cat err)" [ "$status" -eq 0 ]
    weft "$command" --frobnicate --help
    refused 2 --frobnicate "weft $command --frobnicate --help"

    # Lines that can be typed, without what a shell does around them.
    sed -n '/^Examples:/,$p' "$command.help" | grep -v '^  #' | grep -o 'weft [^>)]*' >examples
    pass_if "weft $command --help: examples" [ -s examples ]
    pass_if "weft $command --help: an example of its own: $(cat examples)" grep -q "^weft $command\( \|\$\)" examples
    while IFS= read -r line; do
        eval "set -- ${line#weft }"
        weft "$@" --help
        pass_if "$line: status $status: $(cat err)" [ "$status" -eq 0 ]
    done <examples
done

# ---- every option that is accepted is named, and no other
# Defaults are values that settings take.
weft config --markdown
sed -nE 's/^\| `([a-z_]+)` \| `WEFT_[A-Z_]+` \| (none|`([^`]*)`) \|.*/\1 \3/p' out | tr _ - >defaults
declare -A default # default[NAME]
while read -r name value; do
    default[$name]=$value
done <defaults
pass_if "settings with their defaults: ${#default[@]}" [ ${#default[@]} -gt 60 ]
value_of() { # COMMAND NAME VALUE-NAME: sets `value`
    if [ "$1" != raw ] && [ -n "${default[$2]+set}" ]; then
        value=${default[$2]}
        return
    fi
    case $3 in
    NAME=VALUE) value=chunk=4K ;;
    '[[ADDR:]PORT]') value=18555 ;;
    N) value=1 ;;
    S) value=5 ;;
    SIZE) value=4K ;;
    *) [ "${2#--}" = congestion ] && value=reno || value=192.0.2.1 ;;
    esac
}
declare -A has # has[COMMAND NAME]: what stands for the value
for command in $commands; do
    options_of "$command.help" >"$command.options"
    while read -r letter name value; do
        has["$command $name"]=$value
    done <"$command.options"
done
sort -u -k2,2 ./*.options >all.options
pass_if "options of all commands: $(wc -l <all.options)" [ "$(wc -l <all.options)" -gt 75 ]
# The commands that a refusal names, but for the one that refuses, have the option.
names_owners() { # COMMAND NAME
    local rest=${said#*"'weft $1' but for "} other
    while [[ $rest == *"'weft "* ]]; do
        rest=${rest#*"'weft "}
        other=${rest%%"'"*}
        [ -n "${has["$other $2"]-}" ] || return 1
    done
}
# asked: whether it is this pair's turn.
every=4 turn=0
[ "${1-}" = every ] && every=1
asked() {
    [ $((turn = (turn + 1) % every)) -eq 0 ]
}
# Sets `option` to what is typed for it at the command; to nothing: that has none of this name.
type_option() { # COMMAND NAME
    option=${has["$1 $2"]-}
    if [ "$option" = - ]; then
        option=--$2
    elif [ -n "$option" ]; then
        value_of "$1" "$2" "$option"
        option=--$2=$value
    fi
}
for command in $commands; do
    accepted=()
    while read -r _ name _; do
        type_option "$command" "$name"
        if [[ " listen connect local " == *" $name "* ]] && [ -n "$option" ]; then # they exclude each other
            weft "$command" "$option" --help
            pass_if "weft $command $option: status $status: $(<err)" [ "$status" -eq 0 ]
        elif [ -n "$option" ]; then
            accepted+=("$option")
        elif asked; then
            weft "$command" "--$name=1"
            refused 2 "--$name is not for 'weft $command' but for 'weft " "weft $command --$name"
            pass_if "weft $command --$name: the commands that have it: $said" names_owners "$command" "$name"
        fi
    done <all.options
    pass_if "weft $command: options" [ ${#accepted[@]} -gt 0 ]
    weft "$command" "${accepted[@]}" --help
    pass_if "weft $command ${accepted[*]}: status $status: $(<err)" [ "$status" -eq 0 ]
done
awk '$1 != "-"' all.options | while read -r letter name _; do
    for command in $commands; do
        { [ -z "${has["$command $name"]-}" ] && asked; } || continue
        weft "$command" "-$letter"
        [[ $(<err) == *"-$letter (--$name) is not for 'weft $command' but for 'weft "* ]] || echo "weft $command -$letter: $(<err)"
    done
done >letters
pass_if "letters of other commands: $(cat letters)" [ ! -s letters ]

# ---- some that people type
weft topo --size 4K
refused 2 "--size is not for 'weft topo' but for 'weft mesh', 'weft pair', 'weft peers', 'weft sweep', 'weft profile', 'weft collective' and 'weft setup-cost'" "weft topo --size"
weft mesh --src node0:host0
refused 2 "--src is not for 'weft mesh' but for 'weft pair'" "weft mesh --src"
weft mesh --local --roounds 3
refused 2 "unknown option '--roounds'" "a typing error is not another command's option"
weft mesh --local --chanels 3
refused 2 "did you mean '--channels'" "a typing error of an option"
weft topo --chanels 3
pass_if "what is proposed can be typed: $(cat err)" [ "$(grep -c "'--channels'" err)" -eq 0 ]

# ---- but what is common to all commands is taken by all
machine='synthetic:numa:1 core:2 pu:1'
printf 'size = 4K\nrounds = 3\npattern = bidir\n' >all.conf
weft topo --xml "$machine" --config all.conf
pass_if "weft topo with a file for all: $(cat err)" [ "$status" -eq 0 ]
WEFT_SIZE=4K weft topo --xml "$machine" --set rounds=3 --preset mode=loaded
pass_if "weft topo with variables and --set: $(cat err)" [ "$status" -eq 0 ]
weft pair --local --config all.conf -n 1 -w 0 --set rounds=4 --log-dir logs
pass_if "weft pair with a file for all: $(cat err)" [ "$status" -eq 0 ]
weft mesh --local --endpoints 1 --config all.conf -n 1 -w 0 --set background=1K --log-dir logs
pass_if "weft mesh with --set: only a ping-pong has a background: $(cat err)" grep -q 'weft pair --lat' err
weft config --size 4K --rounds 3 --src node1:host0
pass_if "weft config takes all settings: $(cat err)" [ "$status" -eq 0 ]

# What a node proposes to its partner can be typed there.
WEFT_PATTERN=bidir timeout 20 "$WEFT" pair --listen 127.0.0.1:0 --rails 127.0.0.1 --config all.conf >server.out \
    2>server.err </dev/null &
server=$!
waiting $server server.out
kill $server
wait $server 2>/dev/null
proposed=$(grep -o 'weft pair --connect.*' server.out)
pass_if "a server proposes a command: $(cat server.out)" [ -n "$proposed" ]
eval "set -- ${proposed#weft }"
weft "$@" --help
pass_if "$proposed: status $status: $(cat err)" [ "$status" -eq 0 ]

# ---- weft config NAME
for name in chunk --chunk WEFT_CHUNK UCCL_TCPX_CHUNK_BYTES; do
    WEFT_CHUNK=1M weft config $name
    pass_if "weft config $name: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "weft config $name: the name: $(head -1 out)" [ "$(head -1 out)" = chunk ]
    for line in 'value +1M' 'origin +environment WEFT_CHUNK' 'default +512K' 'allowed +64\.\.64M bytes' \
        'option +--chunk SIZE .*mesh.*' 'environment +WEFT_CHUNK' 'aliases +UCCL_TCPX_CHUNK_BYTES'; do
        pass_if "weft config $name: $line: $(cat out)" grep -Eqx "  $line" out
    done
done
weft config call rails call
pass_if "two settings, each once: $(cat out)" [ "$(grep -xc 'call\|rails' out)" -eq 2 ]
pass_if "and the whole meaning: $(cat out)" grep -q 'io_uring' out
pass_if "in 80 columns: $(cat out)" awk 'length > 80 { wide = 1 } END { exit wide }' out
weft config rails --json -
pass_if "as JSON: $(cat out)" grep -q '"rails": {' out
pass_if "and nothing else: $(cat out)" [ "$(grep -c '": {$' out)" -eq 2 ]
weft config chnk
refused 2 "did you mean 'chunk'" "weft config chnk"
weft config NCCL_SOCKET_IFNAMES
refused 2 "did you mean 'NCCL_SOCKET_IFNAME'" "weft config NCCL_SOCKET_IFNAMES"
weft config chunk 12Q
refused 2 12Q "weft config with a second name that is none"
long=$(printf 'eth%03d,' $(seq 100))
weft config --rails "${long%,}"
pass_if "the table in 80 columns: $(awk 'length > 80' out)" awk 'length > 80 { wide = 1 } END { exit wide }' out
pass_if "has every setting: $(wc -l <out)" [ "$(cut -d ' ' -f 1 out | grep -cx '[a-z][a-z_]*')" -gt 60 ]
pass_if "and all of a long value" grep -q eth100 out

# ---- on and off are the same everywhere
# The value of a setting, as weft config says.
value() {
    sed -n 's/^  value  *//p' out
}
for setting in crc:off:on encrypt:off:on read_ahead:off:on quiet:0:1 check:0:1; do
    IFS=: read -r name off on <<<"$setting"
    for pair in 0:1 off:on no:yes false:true False:TRUE; do
        for word in "${pair%:*}" "${pair#*:}"; do
            want=$off
            [ "$word" = "${pair#*:}" ] && want=$on
            weft config "--${name/_/-}" "$word" "$name"
            pass_if "--$name $word: $(value)$(cat err)" [ "$(value)" = "$want" ]
            env "WEFT_${name^^}=$word" "$WEFT" config "$name" >out 2>err
            pass_if "WEFT_${name^^}=$word: $(value)$(cat err)" [ "$(value)" = "$want" ]
            echo "$name = $word" >switch.conf
            weft config --config switch.conf "$name"
            pass_if "$name = $word: $(value)$(cat err)" [ "$(value)" = "$want" ]
        done
    done
done
for name in crc encrypt read-ahead quiet; do
    weft config --$name
    pass_if "--$name alone: $(value)" grep -Eqx 'on|1' <<<"$(value)"
    weft mesh --$name --local --help
    pass_if "--$name alone before an option: $(cat err)" [ "$status" -eq 0 ]
    weft config --set $name=perhaps
    refused 2 "perhaps" "--set $name=perhaps"
done
weft config --pin no pin
pass_if "off of a choice that has no on: $(value)" [ "$(value)" = off ]
weft config --pin yes
refused 2 'auto|off|require' "on of a choice that has none"
weft pair --local --size 4K -n 2 --crc --quiet --json crc.json
pass_if "--crc alone is in force: status $status: $(grep -A1 '"crc"' crc.json)" grep -q '"value": "on"' <(grep -A1 '"crc": {' crc.json)

pass_if "nobody is left" nothing_left
finish
