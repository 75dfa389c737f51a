#!/usr/bin/env bash
# The tables of docs/protocol.md and the code's enumerations name the same things.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

page=$root/docs/protocol.md

# words FILE ENUM PREFIX: the names of an enumeration, and their numbers where it gives them.
words() {
    awk -v start="enum $2 {" 'index($0, start) { on = 1; sub(/.*\{/, "") } on { print } on && /\}/ { exit }' \
        "$root/$1" | sed 's,/\*.*,,; s/}.*//' | tr ',' '\n' | sed -n "s/^[[:space:]]*$3\([A-Z_]*\)\(.*\)/\1\2/p" |
        sed 's/[ =]\{1,\}/ /; s/ *$//'
}

# section TITLE: the lines below a heading up to the next one.
section() { awk -v title="$1" '/^#/ { on = ($0 ~ "^#+ " title "$"); next } on { print }' "$page"; }

# same WHAT CODE PAGE
same() {
    [[ -n $2 ]] || fail "$1: nothing found in the code"
    [[ $2 == "$3" ]] || fail "$1: code and page differ: $(diff <(echo "$2") <(echo "$3"))"
}

states() { section "$1" | sed -n 's/^| \([A-Z][A-Z_]*\) |.*/\1/p' | sort -u; }

same 'frames' "$(words transport/wire/frame.h wf_frame_type WF_)" \
    "$(section Frames | sed -n 's/^| \([A-Z]*\) | \([0-9]*\) |.*/\1 \2/p')"
same 'sequenced frames' "$(words transport/wire/frame.h wf_frame_type WF_ | awk '{ print $1, $2 < 16 ? "yes" : "no" }')" \
    "$(section Frames | sed -n 's/^| \([A-Z]*\) | [0-9]* | \([a-z]*\) |.*/\1 \2/p')"
same 'flags' "$(words transport/wire/frame.h wf_frame_flag WF_FLAG_ | awk '{ printf "%s 0x%02x\n", $1, 2 ^ $NF }')" \
    "$(section 'The header' | sed -n 's/^| \(0x[0-9]*\) | \([A-Z_]*\) |.*/\2 \1/p')"
same 'set-up messages' "$(words transport/wire/hello.h wf_setup_type WF_SETUP_)" \
    "$(section 'Setting up' | sed -n 's/^| \([0-9]*\) | \([A-Z]*\) |.*/\2 \1/p')"
same 'features' "$(sed -n 's/^#define WF_FEATURE_\([A-Z]*\) \([0-9]*\)u .*/\1 \2/p' "$root/transport/wire/hello.h")" \
    "$(section Versions | sed -n 's/^| \([0-9]*\) | \([A-Z]*\) |.*/\1 \2/p' | while read -r bit name; do echo "$name $((1 << bit))"; done)"
same 'session states' "$(words transport/core/ground/session_state.h wf_session_state WF_SESSION_ | sort)" "$(states Session)"
same 'connection states' "$(words transport/core/message/connection.h wf_connection_state WF_CONNECTION_ | sort)" \
    "$(states Connection)"
same 'incoming message states' "$(words transport/core/message/inbound.h wf_inbound_state WF_INBOUND_ | sort)" \
    "$(states 'Incoming message')"

# rows TITLE...: "title STATE: event" of each event that happens now.
rows() {
    local title
    for title in "$@"; do
        section "$title" | awk -v title="${title,,}" -F ' [|] ' '$4 ~ /^yes/ && $1 ~ /^[|] [A-Z]+$/ {
            count = split($2, events, "; ")
            for (i = 1; i <= count; i++) print title " " substr($1, 3) ": " events[i]
        }'
    done | tr -d '`' | sort
}

marks=$(cat -- "$root"/transport/core/*/*.c | tr -s '\n ' ' ' | grep -o 'WF_REACHED\(_IF([^"]*\|(\)"[^"]*"' |
    sed 's/^[^"]*"//; s/"$//' | sort -u)
same 'events of the states' "$marks" "$(rows Session Channel Connection 'Incoming message')"

finish
