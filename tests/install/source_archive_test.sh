#!/usr/bin/env bash
# source_archive_test.sh BUILD CMAKE NAME: makes the source archive, and configures what is in it where npm fetches
# nothing: with the charts' library that it carries, and without.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
build=$1 cmake=$2 name=$3

command -v git >/dev/null || skip 'needs the program git'
git -C "$root" rev-parse --verify HEAD >/dev/null 2>&1 || skip 'these sources have no history'
[[ -s $build/echarts/echarts.min.js || -s $root/bench/report/page/echarts/echarts.min.js ]] ||
    skip 'this build has no charts: npm is not here, or could not fetch their library'

run "$cmake" --build "$build" --target source_archive
expect_status 0 'building the target source_archive'
tar -C "$scratch" -xzf "$build/$name.tar.gz" || fail 'unpacking'
((failures == 0)) || finish
tree=$scratch/$name
charts=$tree/bench/report/page/echarts
for file in echarts.min.js LICENSE NOTICE licenses/LICENSE-zrender; do
    [[ -s $charts/$file ]] || fail "the archive has no $file"
done
run git -C "$root" ls-files bench/report/page
for file in $output; do
    [[ -s $tree/$file ]] || fail "the archive has no $file"
done

# configure OPTION...: an npm that fails, as without a network, and says that it was asked.
program "$scratch/fake" npm <<<"echo asked >>'$scratch/asked'; echo 'npm error code ENOTFOUND' >&2; exit 1"
configure() {
    run "$cmake" -S "$tree" -B "$scratch/build" -DWEFT_TESTS=OFF -DWEFT_NVCC=OFF -DWEFT_NCCL_PLUGIN=OFF "-DWEFT_NPM=$scratch/fake/npm" "$@"
    expect_status 0 "configuring $*"
}
asked() { grep -c asked "$scratch/asked" 2>/dev/null || true; }

configure
expect_no_text 'without charts' 'with the library that the archive carries'
run "$cmake" --build "$scratch/build" --target weft_bench_report
expect_status 0 'building with the library that the archive carries'
[[ ! -e $scratch/asked ]] || fail 'npm was asked for what is there'

rm -r -- "$charts" "$scratch/build"
configure
expect_text 'weft report will write tables without charts' 'without the library'
expect_text 'ENOTFOUND' 'why npm failed'
configure
expect_text 'weft report will write tables without charts' 'without the library, again'
[[ $(asked) == 1 ]] || fail "npm was asked $(asked) times for the same"
configure -UWEFT_CHARTS_FAILED
[[ $(asked) == 2 ]] || fail 'npm is not asked again'
run "$cmake" --build "$scratch/build" --target weft_bench_report
expect_status 0 'building without charts'
run "$cmake" --build "$scratch/build" --target source_archive
expect_status 2 'an archive without charts'
configure -DWEFT_CHARTS=OFF
expect_no_text 'without charts' 'on purpose'

finish
