#!/usr/bin/env bash
# abi.sh BUILD [FILE]: writes what a program that was linked against the libweft.so of this build relies on: exported names,
# and the layouts of the types of weft.h. Without FILE: the baseline, tests/compat/libweft.abi, which compat.abi compares
# with. Make it anew when the interface is changed on purpose, and say so in the commit. Needs a build with debug
# information. The last line says what made it: other compilers and distributions describe the same types differently.
set -u
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=${here%/tests/compat}
build=$1 file=${2:-$here/libweft.abi}

# fact NAME: what CMake has found out about the compiler.
fact() { sed -n "s/^set($1 \"\(.*\)\")$/\1/p" "$build"/CMakeFiles/*/CMakeCCompiler.cmake | tail -n 1; }

version=$(fact CMAKE_C_COMPILER_VERSION)
# shellcheck source=/dev/null
maker="$(. /etc/os-release && echo "${ID-unknown} ${VERSION_ID-}"), $(uname -m), $(fact CMAKE_C_COMPILER_ID) ${version%%.*}"
text=$(abidw --no-comp-dir-path --no-corpus-path --no-show-locs --no-elf-needed --no-parameter-names \
    --exported-interfaces-only --drop-private-types --header-file "$root/transport/weft.h" "$build/lib/libweft.so") || exit 1
printf '%s\n<!-- %s -->\n' "$text" "$maker" | sed "s,path='$root/,path=',; s/ *$//" >"$file"
