#!/usr/bin/env bash
# The commands of README.md that compile an example work as they stand there, and every link of the pages leads to a file
# that is there, and to a heading in it.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

# --- the example, compiled in a folder that looks like this one after the build ---

bin=$(cd -- "$(dirname -- "${WEFT_TEST_PROGRAM:?}")" && pwd)
mkdir -p -- "$scratch/root/build"
ln -s -- "$root/transport" "$root/examples" "$scratch/root/"
ln -s -- "${bin%/*}/lib" "$scratch/root/build/lib"
command=$(grep -m 1 '^cc ' -- "$root/README.md") || fail 'README.md compiles no example'
cd -- "$scratch/root" || exit 1
run bash -c "$command"
expect_status 0 "README.md: $command"
run bash "$root/tests/examples/one_message_test.sh" ./one_message
expect_status 0 'what README.md compiles'
# The port there is one that the reader may choose; the words around it are what the example understands.
for words in './one_message listen ' './one_message connect 127.0.0.1:'; do
    grep -q -F -- "$words" "$root/README.md" || fail "README.md does not say '$words'"
done

# --- the plugin, which run_p2p_fullmesh.sh does not build: the commands that do, which installing.md has as well ---

for page in README.md docs/nccl.md docs/installing.md; do
    for words in './setup.sh' 'cmake -S . -B build -DWEFT_TESTS=OFF && cmake --build build'; do
        grep -q -F -- "$words" <(awk '/^```/ { code = !code } code' "$root/$page") || fail "$page has no command '$words'"
    done
done

# --- links ---

# anchors FILE: what its headings are called in a link.
anchors() {
    awk '/^```/ { code = !code } !code && /^#+ / { sub(/^#+ */, ""); print tolower($0) }' "$1" |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

count=0
while read -r page; do
    while read -r link; do
        count=$((count + 1))
        file=${link%%#*} anchor=''
        [[ $link != *'#'* ]] || anchor=${link#*#}
        [[ -n $file ]] && file=$(dirname -- "$page")/$file || file=$page
        if [[ ! -e $root/$file ]]; then
            fail "$page links to $link, which is not there"
        elif [[ -n $anchor ]]; then
            anchors "$root/$file" | grep -q -x -e "$anchor" || fail "$page links to $link, which is no heading there"
        fi
    done < <(grep -o '](\([^) ]*\))' "$root/$page" | sed 's/](\(.*\))/\1/' | grep -v '://' | sort -u)
done < <(cd -- "$root" && find . -name '*.md' -not -path './build*' -not -path './.*' -printf '%P\n')
((count > 50)) || fail 'the pages have hardly any links'

finish
