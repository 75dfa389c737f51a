#!/bin/bash
# test_completion.sh: the completion for bash offers what the help of each command names; that for zsh can be read.
# shellcheck disable=SC1091 # the program prints it
. "$(dirname "$0")/loop_lib.sh"
limit=20

weft completion
pass_if "weft completion for no shell: status $status: $(cat err)" [ "$status" -eq 2 ]
weft completion fish
pass_if "weft completion fish: status $status: $(cat err)" [ "$status" -eq 2 ]
pass_if "and says which shells there are: $(cat err)" grep -q 'bash.*zsh' err
weft completion bash
pass_if "weft completion bash: status $status: $(cat err)" [ "$status" -eq 0 ]
cp out weft.bash
pass_if "bash can read it" bash -n weft.bash
. ./weft.bash

# The words, sorted, one a line.
lines() { # WORD...
    [ $# -eq 0 ] || printf '%s\n' "$@" | sort
}

# What completes the last word.
offered() { # WORD...
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _weft
    lines "${COMPREPLY[@]}"
}

# offers WHAT WORD...: exactly these words for the words in `typed`.
offers() {
    local got want
    want=$(lines "$@")
    got=$(offered "${typed[@]}")
    pass_if "${typed[*]}: offered ${got//$'\n'/ }, not ${want//$'\n'/ }" [ "$got" = "$want" ]
}

weft help
commands=$(sed -nE 's/^  ([a-z-]+) +[a-z].*/\1/p' out)
typed=(weft '')
# shellcheck disable=SC2086 # words
offers $commands help -h --help -V --version
typed=(weft pe)
offers peers
typed=(weft help ra)
offers raw
touch here.json hence.json
typed=(weft report he)
offers hence.json here.json

# ---- the options of each command, and their words, are those of the help
for command in $commands; do
    weft "$command" --help
    sed -nE 's/^  (-([a-zA-Z]), )?--([a-z-]+)( ([^ ]+))?.*/\2 \3 \5/p' out | sed -E 's/^ /- /' >options
    pass_if "weft $command has options" [ -s options ]
    typed=(weft "$command" -)
    # shellcheck disable=SC2046 # words
    offers $(awk '$1 != "-" { print "-" $1 } { print "--" $2 }' options)
    while read -r letter name value; do
        words=${value#'['}
        words=${words%']'}
        words=${words%'[,...]'}
        case $words in
        *[!a-z0-9\|]* | '') continue ;;
        *'|'*) ;;
        *) continue ;;
        esac
        IFS='|' read -ra each <<<"$words"
        typed=(weft "$command" "--$name" '')
        offers "${each[@]}"
        typed=(weft "$command" "--$name" "=" '')
        offers "${each[@]}"
        [ "$letter" = - ] && continue
        typed=(weft "$command" "-$letter" '')
        offers "${each[@]}"
    done <options
done

# ---- names of settings
weft config --json -
settings=$(sed -nE 's/^  "([a-z_]+)": \{$/\1/p' out)
pass_if "the settings: $settings" [ "$(wc -w <<<"$settings")" -gt 60 ]
typed=(weft config '')
# shellcheck disable=SC2086 # words
offers $settings
typed=(weft mesh --set '')
# shellcheck disable=SC2046 # words
offers $(printf '%s=\n' $settings)
typed=(weft mesh --set rail_policy "=" n)
offers near node
typed=(weft mesh --set=rail_policy=n)
offers --set=rail_policy=near --set=rail_policy=node
typed=(weft mesh --set "=" rail_policy "=" n)
offers near node
typed=(weft mesh --engine=u)
offers --engine=uring

# ---- files and folders
mkdir -p files/folder
: >'files/a file'
typed=(weft mesh --json files/)
offers 'files/a file' files/folder
typed=(weft mesh --out files/)
offers files/folder
typed=(weft mesh --out "=" files/)
offers files/folder
typed=(weft topo --xml files/a)
offers 'files/a file'

# ---- nothing where nothing can be known, and no noise
typed=(weft mesh --begin '')
offers
typed=(weft frobnicate '')
offers
typed=(weft mesh --crc --eng)
offers --engine
offered weft mesh --json files/ >/dev/null 2>noise
pass_if "it is quiet: $(cat noise)" [ ! -s noise ]

# ---- zsh
weft completion zsh
pass_if "weft completion zsh: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "the first line is for compinit" [ "$(head -1 out)" = '#compdef weft' ]
for command in $commands; do
    pass_if "zsh: $command" grep -q "^    $command)" out
done
if command -v zsh >/dev/null; then
    cp out _weft
    pass_if "zsh can read it" zsh -n _weft
else
    echo "what zsh makes of its file is not looked at: zsh is not here"
fi
finish
