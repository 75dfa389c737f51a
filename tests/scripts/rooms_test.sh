#!/usr/bin/env bash
# The configuration stops, with file and line, where a room includes what it may not; and rooms stay small enough to be
# read: their sources, their headers for others, and the struct that has a part for each.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

tree=$scratch/tree
mkdir -- "$tree"
for part in CMakeLists.txt cmake transport affinity collective peers bench plugins packaging scripts docs configs setup.sh; do
    cp -r -- "$root/$part" "$tree/" || fail "copy $part"
done
configure() { run cmake -S "$tree" -B "$scratch/build" -DWEFT_TESTS=OFF -DWEFT_NVCC=OFF -DWEFT_CHARTS=OFF -DWEFT_NCCL_PLUGIN=OFF; }

# refused FILE LINE REASON WHAT: with LINE as the third line of FILE; and the file is as before afterwards.
refused() {
    cp -- "$tree/$1" "$scratch/kept"
    sed -i "3i $2" "$tree/$1"
    configure
    cp -- "$scratch/kept" "$tree/$1"
    ((status != 0)) || fail "$4: the configuration went on"
    expect_text "$1:3: ${2//\\/}: $3" "$4"
}

configure
expect_status 0 'the tree as it is'

refused transport/base/log.c '#include \"core/calls/context.h\"' 'base does not use the room core/calls' 'a room above'
refused transport/wire/frame.h '#include \"io/engine.h\"' 'wire does not use the room io' 'a room beside, in a header'
refused transport/io/socket.c '#include \"base/config_parts.h\"' 'not a public header of base' "a used room's own header"
refused bench/machine/gpus.c '#include \"mem/nothing.h\"' 'not a public header of mem' 'a header that is not there'
refused affinity/pin.c '#include \"gone.h\"' 'affinity has no such header' 'a header of its own that is not there'
refused affinity/pin.c '#include \"../transport/core/calls/context.h\"' 'affinity does not use the room ../transport/core/calls' \
    'a path around the rule'

# A room can use only what stands before it, and a folder is not forgotten.
cp -- "$tree/transport/base/CMakeLists.txt" "$scratch/kept"
sed -i 's/weft_room(base /&USES wire /' "$tree/transport/base/CMakeLists.txt"
configure
cp -- "$scratch/kept" "$tree/transport/base/CMakeLists.txt"
((status != 0)) || fail 'base uses wire: the configuration went on'
expect_text 'the room base uses wire, which is not a room below it' 'base uses wire'

mkdir -- "$tree/transport/attic"
echo 'int attic;' >"$tree/transport/attic/attic.c"
configure
rm -r -- "$tree/transport/attic"
((status != 0)) || fail 'a folder without a room: the configuration went on'
expect_text 'transport/attic holds sources, but is no room' 'a folder without a room'

# What was configured before sees an include that came later.
configure
expect_status 0 'as it was'
sed -i '3i #include "io/engine.h"' "$tree/transport/base/clock.c"
run cmake --build "$scratch/build" --target weft_base
((status != 0)) || fail 'an include that came later: the build went on'
expect_text 'transport/base/clock.c:3: #include "io/engine.h": base does not use the room io' 'an include that came later'

# A room's part of a struct is written in that room alone. `calls` builds the context, and fills what is read only later.
# part PART ROOM...: nothing else assigns to a field of the part.
part() {
    local name=$1 rooms=$2 found
    found=$(cd "$root/transport/core" && grep -nE "\\b$name(\\.|->)[][a-z_.>-]*[]a-z_] *([-+|&]?=[^=]|\\+\\+[];,)]|--[];,)])" ./*/*.[ch] |
        grep -vE "^\\./($rooms)/")
    [[ -z $found ]] || fail "the part $name is written outside of $rooms: $found"
}
part guard ground
part terms ground
part world 'ground|calls'
part kicks drive
part crew 'drive|calls'
part book request
part waiting request
part shares device
part registry device
part lines channel
part tx channel
part rx channel
part desk message
part endpoints message
part loss session
part life session
part route session
part user session
part pulse session
part down session
part redial session
part channel channel

# --- what is read in one go stays short: where something has grown too long, an idea in it wants a file of its own ---

# short MOST FILE...: no file has more lines.
short() {
    local most=$1 file lines
    shift
    for file; do
        lines=$(wc -l <"$root/$file")
        ((lines <= most)) || fail "$file has $lines lines, more than $most"
    done
}

# Product sources. weft.h is the contract: one page.
mapfile -t sources < <(cd "$root" && find transport affinity peers bench plugins -type f \
    \( -name '*.[ch]' -o -name '*.cu' -o -name '*.js' \) ! -path transport/weft.h | sort)
((${#sources[@]} > 500)) || fail "only ${#sources[@]} sources were found"
short 500 "${sources[@]}"

# public FILE PREFIX: the headers for others of the rooms that FILE makes, each with its path.
public() {
    tr '\n' ' ' <"$root/$1/CMakeLists.txt" | grep -oE 'weft_room\([^)]*\)' | tr '()' '  ' |
        awk -v "prefix=$2" '{
            for (i = 3; i <= NF; i++)
                if ($i ~ /^(EXCEPT|USES|PUBLIC|INSIDE)$/)
                    kind = $i
                else if (kind == "PUBLIC")
                    print prefix $2 "/" $i
            kind = ""
        }'
}
for folder in 'transport/core transport/' 'bench '; do
    mapfile -t headers < <(public "${folder% *}" "${folder#* }")
    ((${#headers[@]} > 30)) || fail "only ${#headers[@]} headers for others were found in ${folder% *}"
    short 150 "${headers[@]}"
done

# A session is a part for each room, and little besides.
members=$(sed -n '/^struct wf_session {/,/^}/{s,/\*.*,,;p}' "$root/transport/core/session/session.h" |
    grep '^ .*;' | tr -cd ',;' | wc -c)
((members > 5 && members <= 20)) || fail "struct wf_session has $members members, not 6 to 20"

finish
