#!/usr/bin/env bash
# abi.sh BUILD [FOLDER]: writes what a program that was linked against the libraries of this build relies on: exported
# names, and the layouts of the types of their headers, to libweft.abi and libweft_coll.abi. Without FOLDER: the
# baselines, in tests/compat, which compat.abi compares with. Make them anew when the interface is changed on purpose, and
# say so in the commit. Needs a build with debug information that names sources as they lie (ccache may change that). The
# last line says what made it: other compilers and distributions describe the same types differently.
set -u
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=${here%/tests/compat}
build=$1 folder=${2:-$here}

# fact NAME: what CMake has found out about the compiler.
fact() { sed -n "s/^set($1 \"\(.*\)\")$/\1/p" "$build"/CMakeFiles/*/CMakeCCompiler.cmake | tail -n 1; }

version=$(fact CMAKE_C_COMPILER_VERSION)
# shellcheck source=/dev/null
maker="$(. /etc/os-release && echo "${ID-unknown} ${VERSION_ID-}"), $(uname -m), $(fact CMAKE_C_COMPILER_ID) ${version%%.*}"
# describe LIBRARY HEADER
describe() {
    local text
    text=$(abidw --no-comp-dir-path --no-corpus-path --no-show-locs --no-elf-needed --no-parameter-names \
        --exported-interfaces-only --drop-private-types --header-file "$root/$2" "$build/lib/$1.so") || exit 1
    printf '%s\n<!-- %s -->\n' "$text" "$maker" | sed "s,path='$root/,path=',; s/ *$//" >"$folder/$1.abi"
}
describe libweft transport/weft.h
describe libweft_coll collective/weft_coll.h
