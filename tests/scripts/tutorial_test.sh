#!/usr/bin/env bash
# The pages that people begin with: every command line of `weft` in docs/tutorial.md and docs/reporting.md names a command
# and options that there are, every script that a command line starts is here, and so is every picture, none of them large.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

# --- command lines ---

# commands PAGE: the lines of its shell examples; one that goes on behind a \ is one line.
commands() {
    awk '/^```/ { on = ($0 == "```sh"); next }
        on { line = line $0; if (sub(/\\$/, " ", line)) next; sub(/(^| )#.*/, "", line); if (line ~ /./) print line; line = "" }' \
        "$root/docs/$1"
}

# check_options PAGE COMMAND WORD...: the words that are options are in the command's help.
check_options() {
    local page=$1 command=$2 word
    shift 2
    "${WEFT_TEST_PROGRAM:?}" "$command" --help >"$scratch/help" 2>&1 || fail "$page: weft $command is no command"
    for word in "$@"; do
        [[ $word == -?* ]] || continue
        grep -q -e "^  \(-[a-zA-Z], \)\{0,1\}${word%%=*}\( \|,\|\$\)" -e "^  ${word%%=*}, " "$scratch/help" ||
            fail "$page: weft $command has no option ${word%%=*}"
    done
}

# check_line PAGE LINE: what runs `weft` or run_p2p_fullmesh.sh in it; ` : ` parts the two commands of a lab.
check_line() {
    local page=$1 part
    local -a words
    while read -r part; do
        read -r -a words <<<"${part//\'/}"
        while ((${#words[@]})); do
            case ${words[0]} in
            build/bin/weft)
                check_options "$page" "${words[@]:1}"
                lines=$((lines + 1))
                break
                ;;
            ./run_p2p_fullmesh.sh)
                [[ ${words[1]-} == -* || ${#words[@]} == 1 ]] || unset 'words[1]'
                check_options "$page" mesh "${words[@]:1}"
                lines=$((lines + 1))
                ;;&
            ./* | scripts/*) [[ -x $root/${words[0]} ]] || fail "$page: there is no ${words[0]}" ;;
            esac
            words=("${words[@]:1}")
        done
    done <<<"${2// : /$'\n'}"
}

lines=0
for page in tutorial.md reporting.md; do
    while read -r line; do
        check_line "$page" "$line"
    done < <(commands "$page")
done
((lines > 10)) || fail "the pages have hardly any command lines: $lines"

# What finds wrong lines finds them.
before=$failures
check_line nowhere.md './run_p2p_fullmesh.sh lab --no-such-option' >/dev/null
check_line nowhere.md "scripts/lab_net.sh build/bin/weft pair --listen : build/bin/weft pair --wrong" >/dev/null
found=$((failures - before)) failures=$before
((found == 2)) || fail 'a wrong option was not found'

# --- pictures ---

while read -r picture; do
    [[ -s $root/docs/$picture ]] || fail "a page of docs shows $picture, which is not there"
    (($(stat -c %s -- "$root/docs/$picture") < 40 * 1024)) || fail "docs/$picture is large"
    pictures+=" ${picture#pictures/}"
done < <(sed -n 's/^!\[[^]]*\](\(.*\))$/\1/p' "$root"/docs/*.md)
[[ -n ${pictures-} ]] || fail 'no page shows pictures'
for picture in "$root"/docs/pictures/*; do
    [[ " $pictures " == *" ${picture##*/} "* ]] || fail "no page shows ${picture#"$root"/}"
done

finish
