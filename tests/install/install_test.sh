#!/usr/bin/env bash
# install_test.sh BUILD CMAKE COMPILER: installs the build, moves the installation, and lets the examples that it has
# use it from outside in every way that is promised: with pkg-config and with find_package(), shared and static.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
build=$1 cmake=$2 compiler=$3

for tool in pkg-config nm readelf; do
    command -v "$tool" >/dev/null || {
        echo "skipped: needs the program $tool"
        exit 77
    }
done

# The folder that pkg-config and CMake are given has no space in its name: neither promises to cope with one.
prefix=$(mktemp -d) && work=$(mktemp -d) || exit 1
trap 'rm -rf -- "$scratch" "$prefix" "$work"' EXIT

run "$cmake" --install "$build" --prefix "$scratch/first"
expect_status 0 'cmake --install'
rmdir -- "$prefix" && mv -- "$scratch/first" "$prefix" || exit 1

libdir=$(find "$prefix" -name libweft.a -printf '%h\n')
export PKG_CONFIG_PATH=$libdir/pkgconfig
examples=$prefix/share/doc/weft/examples
cp -- "$examples/one_message.c" "$work/example.c"

# uses_shared PROGRAM: does it need the shared library?
uses_shared() { readelf -d "$1" | grep -q 'NEEDED.*libweft\.so\.0'; }

works() {
    run bash "$root/tests/examples/one_message_test.sh" "$1"
    expect_status 0 "running $1"
}

cat >"$work/group.c" <<'END'
#include <stdio.h>
#include <weft_coll.h>

int main(void)
{
    struct weft_config *config;
    struct weft_context *context = NULL;
    struct weft_group *group = NULL;
    struct weft_error err = {0};
    int result = weft_config_create(&config, &err);
    if (result == 0)
        result = weft_config_set(config, "rails", "127.0.0.1", &err);
    if (result == 0)
        result = weft_context_create(config, &context, &err);
    if (result == 0)
        result = weft_group_create(context, &(struct weft_group_options){.size = 1}, 1000, &group, &err);
    if (result == 0)
        result = weft_group_barrier(group, 1000, &err);
    float in = 3, out = 0;
    if (result == 0)
        result = weft_group_all_reduce(group, &in, &out, 1, WEFT_FLOAT32, WEFT_SUM, 1000, &err);
    if (result == 0 && out != in)
        return 1;
    puts(result == 0 ? weft_group_member_name(group, 0) : err.text);
    weft_group_destroy(group);
    weft_context_destroy(context);
    weft_config_destroy(config);
    return result != 0;
}
END

meets() {
    run "$1"
    expect_status 0 "running $1"
    expect_text 'rank 0 (' "running $1"
}

for file in include/weft.h include/weft_coll.h bin/weft share/man/man1/weft.1 share/man/man3/weft.3 share/man/man3/weft_coll.3 \
    share/doc/weft/examples/one_message.c share/doc/weft/examples/event_loop.c; do
    [[ -s $prefix/$file ]] || fail "$file is not installed"
done
if [[ -s $build/echarts/echarts.min.js ]]; then
    for file in LICENSE NOTICE licenses/LICENSE-d3 licenses/LICENSE-zrender licenses/LICENSE-tslib; do
        [[ -s $prefix/share/doc/weft/echarts/$file ]] || fail "the terms of the charts' library: $file is not installed"
    done
fi
if [[ -e $build/lib/libnccl-net-weft.so ]]; then
    for name in libnccl-net-weft.so libnccl-net.so; do
        [[ $libdir/$name -ef $(pkg-config --variable=plugin weft-nccl) ]] || fail "$name is not the installed plugin"
    done
fi
for shell in bash:bash-completion/completions/weft zsh:zsh/site-functions/_weft; do
    run "$prefix/bin/weft" completion "${shell%:*}"
    expect_status 0 "completions for ${shell%:*}"
    [[ $output == "$(<"$prefix/share/${shell#*:}")" ]] || fail "share/${shell#*:} is not what the installed weft prints"
done
run "$prefix/bin/weft" config
expect_status 0 'the installed binary'
run grep -rIl -e "$scratch" -e "$build" -- "$prefix"
expect_status 1 'names of folders of this machine in the installation'

exported=$(nm -D --defined-only "$libdir/libweft.so" | sed 's/.* //; s/@.*//' | grep -v '^weft_')
[[ $exported == WEFT_0 ]] || fail "libweft.so exports more than weft_ names and their version: $exported"
run bash -c "nm -D --defined-only '$libdir/libweft.so' | grep ' T ' | grep -v '@@WEFT_0\$'"
expect_status 1 'exported names without a version'
declared=$(sed -n 's/^WEFT_API.*[ *]\(weft_[a-z_]*\)(.*/\1/p' "$prefix/include/weft.h" | sort)
[[ $declared == "$(nm -D --defined-only "$libdir/libweft.so" | sed -n 's/.* T \(weft_[a-z_]*\)@.*/\1/p' | sort)" ]] ||
    fail 'libweft.so does not export exactly what weft.h declares'

exported=$(nm -D --defined-only "$libdir/libweft_coll.so" | sed 's/.* //; s/@@WEFT_COLL_0$//' | sort)
declared=$(sed -n 's/^WEFT_API.*[ *]\(weft_[a-z_]*\)(.*/\1/p' "$prefix/include/weft_coll.h" | sort)
[[ $exported == "$(printf '%s\n' WEFT_COLL_0 "$declared" | sort)" ]] ||
    fail "libweft_coll.so does not export exactly what weft_coll.h declares: $exported"

[[ $(pkg-config --modversion weft) == "$("$prefix/bin/weft" --version | grep -o '[0-9.]*$')" ]] ||
    fail 'pkg-config and the binary differ in the version'

cd -- "$work" || exit 1
# shellcheck disable=SC2046  # words are wanted
{
    run "$compiler" -std=c17 example.c -o shared $(pkg-config --cflags --libs weft)
    expect_status 0 'pkg-config, shared'
    run "$compiler" -std=c17 example.c -o static $(pkg-config --static --cflags --libs weft | sed 's/-lweft/-l:libweft.a/')
    expect_status 0 'pkg-config, static'
    run "$compiler" -Wall -Wextra -Werror "$examples/event_loop.c" -o event_loop $(pkg-config --cflags --libs weft)
    expect_status 0 'pkg-config, event_loop.c'
    run "$compiler" -std=c17 -Wall -Wextra -Werror group.c -o group $(pkg-config --cflags --libs weft-coll)
    expect_status 0 'pkg-config, weft-coll'
    run "$compiler" -std=c17 group.c -o group_static $(pkg-config --static --cflags --libs weft-coll |
        sed 's/-lweft_coll/-l:libweft_coll.a/; s/-lweft /-l:libweft.a /')
    expect_status 0 'pkg-config, weft-coll, static'
}
uses_shared shared || fail 'the shared program does not use libweft.so.0'
uses_shared static && fail 'the static program uses libweft.so.0'
LD_LIBRARY_PATH=$libdir works ./shared
LD_LIBRARY_PATH=$libdir run bash "$root/tests/examples/event_loop_test.sh" ./event_loop
expect_status 0 'running event_loop'
works ./static
LD_LIBRARY_PATH=$libdir meets ./group
meets ./group_static

mkdir project && cp -- example.c group.c project/ && cp -- "$root/tests/install/outside.cmake" project/CMakeLists.txt
run "$cmake" -S project -B project/build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$compiler"
expect_status 0 'find_package(weft)'
run "$cmake" --build project/build
expect_status 0 'building with find_package(weft)'
uses_shared project/build/outside_weft || fail 'weft::weft is not libweft.so.0'
uses_shared project/build/outside_weft_static && fail 'weft::weft_static is libweft.so.0'
works project/build/outside_weft
works project/build/outside_weft_static
meets project/build/outside_weft_coll
meets project/build/outside_weft_coll_static

# Without the library of groups, which is a component of its own.
for component in runtime development; do
    run "$cmake" --install "$build" --prefix "$work/without" --component "$component"
    expect_status 0 "cmake --install --component $component"
done
mkdir without_groups && cat >without_groups/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(without_groups LANGUAGES C)
find_package(weft REQUIRED COMPONENTS static)
if(NOT TARGET weft::weft OR NOT TARGET weft::weft_static OR TARGET weft::weft_coll OR TARGET weft::weft_coll_static)
  message(FATAL_ERROR "other targets than those that are installed")
endif()
EOF
run "$cmake" -S without_groups -B without_groups/build -DCMAKE_PREFIX_PATH="$work/without" -DCMAKE_C_COMPILER="$compiler"
expect_status 0 'find_package(weft) without the library of groups'

# As a part of another project, which has no tests of ours: no file is looked for in that project's folders.
mkdir part && cp -- example.c part/ && cat >part/CMakeLists.txt <<EOF
cmake_minimum_required(VERSION 3.22)
project(whole LANGUAGES C)
add_subdirectory("$root" weft EXCLUDE_FROM_ALL)
add_executable(example example.c)
target_link_libraries(example PRIVATE weft::weft_static)
EOF
run "$cmake" -S part -B part/build -DCMAKE_C_COMPILER="$compiler" -DWEFT_NVCC=OFF
expect_status 0 'add_subdirectory()'
run grep -n -e CMAKE_SOURCE_DIR -e CMAKE_BINARY_DIR -- "$root/CMakeLists.txt" "$root"/{affinity,bench,collective,packaging,peers}/CMakeLists.txt \
    "$root"/transport/*/CMakeLists.txt "$root/peers/mpi.cmake"
expect_status 1 'folders of the other project where ours are meant' # what only a build would find
[[ ! -e part/build/weft/tests ]] || fail 'the tests are a part of another project'

finish
