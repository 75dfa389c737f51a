#!/bin/bash
# hw_devmem_test.sh: tests/hw/devmem.sh where there is no such card: what it says of itself, and what it refuses before it
# touches anything. tests/vm/devmem lets it do its work.
# shellcheck disable=SC2016 # a script in quotes
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

script=$root/tests/hw/devmem.sh
program "$scratch/bin" weft <<<'echo "$*" >>"$0.calls"'
program "$scratch/bin" ethtool <<<':'
export PATH=$scratch/bin:$PATH
cd -- "$scratch" || exit 1

run bash "$script" --help
expect_status 0 'help'
expect_text 'usage: devmem.sh RAIL GPU' 'help'

refused() { # STATUS TEXT ARGUMENT...
    local status_wanted=$1 text=$2
    shift 2
    run bash "$script" --weft "$scratch/bin/weft" "$@"
    expect_status "$status_wanted" "$*"
    expect_text "$text" "$*"
}
refused 2 'expected RAIL and GPU'
refused 2 'expected RAIL and GPU' lo --listen 127.0.0.1
refused 2 'either --listen ADDR or --connect ADDR' lo 0
refused 2 'either --listen ADDR or --connect ADDR' lo 0 --listen 127.0.0.1 --connect 127.0.0.1
refused 2 "GPU 'first': expected a number" lo first --listen 127.0.0.1
refused 2 "--rounds '0': expected a number" lo 0 --listen 127.0.0.1 --rounds 0
refused 2 '--port 65535: there are not so many ports above it' lo 0 --listen 127.0.0.1 --port 65535
refused 2 '--limit needs a value' lo 0 --limit
refused 2 "unknown option '--gpu'" lo 0 --gpu 1
refused 77 'there is no interface nonesuch0' nonesuch0 0 --listen 127.0.0.1
refused 77 'there is no program weft' lo 0 --listen 127.0.0.1 --weft "$scratch/nothing"
[[ ! -e $scratch/bin/weft.calls ]] || fail "it has called weft: $(cat "$scratch/bin/weft.calls")"
[[ -z $(find "$scratch" -name '*.tar.gz') ]] || fail 'it has left an archive'
finish
