#!/usr/bin/env bash
# source_archive.sh BUILD SOURCE NAME CHARTS [ECHARTS]: packs what is committed in SOURCE into BUILD/NAME.tar.gz, with the
# library that draws charts, from the folder ECHARTS: a build of it needs neither npm nor a network. Of a build
# without charts on purpose (CHARTS is 0) it has none.
set -eu
build=$1 source=$2 name=$3 charts=$4 echarts=${5-}

say() { printf 'source_archive: %s\n' "$*" >&2; }

if [[ $charts == 1 && ! $echarts ]]; then
    say 'this build has no charts, for want of npm: see what the configuration says; -DWEFT_CHARTS=OFF is without on purpose'
    exit 1
fi
stage=$(mktemp -d "$build/archive.XXXXXX")
trap 'rm -rf -- "$stage"' EXIT

git -C "$source" archive --prefix="$name/" --output="$stage/source.tar" HEAD
tar -C "$stage" -xf "$stage/source.tar"
if [[ $echarts ]]; then
    place=$stage/$name/bench/report/page/echarts
    mkdir -p -- "$place"
    cp -R -- "$echarts"/{echarts.min.js,LICENSE,NOTICE,licenses} "$place/"
fi
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git -C "$source" log -1 --format=%ct)" \
    -cf - "$name" | gzip -n >"$stage/archive.tar.gz"
mv -- "$stage/archive.tar.gz" "$build/$name.tar.gz"
say "$build/$name.tar.gz"
