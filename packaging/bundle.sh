#!/usr/bin/env bash
# bundle.sh CMAKE BUILD SOURCE NAME: packs the build into BUILD/NAME.tar.gz, for machines where nothing can be
# installed: the program, the script that runs it, and the libraries that it needs beyond those of the C library.
set -eu
cmake=$1 build=$2 source=$3 name=$4

say() { printf 'bundle: %s\n' "$*" >&2; }

stage=$(mktemp -d "$build/bundle.XXXXXX")
trap 'rm -rf -- "$stage"' EXIT
bundle=$stage/$name

# These belong to the C library and only work with the loader they came with: the machine's own are taken.
of_libc() {
    case $1 in
    linux-vdso.so* | linux-gate.so* | ld-linux*.so* | ld64.so* | libc.so* | libm.so* | libmvec.so* | libdl.so* | \
        libpthread.so* | librt.so* | libresolv.so* | libutil.so* | libanl.so* | libnss_*.so*) return 0 ;;
    esac
    return 1
}

# libraries FILE: "NAME PATH" of each library that FILE is loaded with.
libraries() {
    ldd "$1" | sed -n 's/ (0x[0-9a-f]*)$//; s/^[[:space:]]*\([^ ]*\) => /\1 /p'
}

# The terms under which a library may be passed on, where the package that it came with says them.
copy_terms() {
    local path package
    path=$(readlink -f -- "$1")
    if command -v dpkg >/dev/null; then
        package=$(dpkg -S "$path" 2>/dev/null || dpkg -S "${path#/usr}" 2>/dev/null) || return 0
        package=${package%%:*}
        [[ -r /usr/share/doc/$package/copyright ]] && cp -L -- "/usr/share/doc/$package/copyright" "$2/$package"
    elif command -v rpm >/dev/null; then
        package=$(rpm -qf --qf '%{NAME}\n' "$path" 2>/dev/null | head -n 1) || return 0
        [[ -d /usr/share/licenses/$package ]] && cp -RL -- "/usr/share/licenses/$package" "$2/$package"
    fi
    return 0
}

DESTDIR='' "$cmake" --install "$build" --prefix "$stage/install" --component runtime --strip >/dev/null
mkdir -p -- "$bundle/bin" "$bundle/lib" "$bundle/licenses"
cp -- "$stage"/install/bin/weft "$bundle/bin/"
cp -R -- "$stage/install/share" "$bundle/"
cp -- "$source/run_p2p_fullmesh.sh" "$bundle/"
cp -- "$source/LICENSE" "$bundle/licenses/weft"
[[ ! -d $source/scripts ]] || cp -R -- "$source/scripts" "$bundle/"

while read -r library path; do
    of_libc "$library" && continue
    if [[ ! -e $path ]]; then
        say "$library is not here"
        exit 1
    fi
    cp -L -- "$path" "$bundle/lib/$library"
    copy_terms "$path" "$bundle/licenses"
done < <(libraries "$stage/install/bin/weft")

# Whatever is loaded now must come from the bundle.
while read -r library path; do
    of_libc "$library" && continue
    [[ $(readlink -f -- "$path") == "$(readlink -f -- "$bundle/lib/$library")" ]] && continue
    say "$library comes from $path, not from the bundle"
    exit 1
done < <(libraries "$bundle/bin/weft")

oldest=$(objdump -T "$bundle/bin/weft" "$bundle"/lib/* | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
cat >"$bundle/README" <<TEXT
Weft, to run from this folder, wherever it lies: nothing is installed. It needs the GNU C library ${oldest#GLIBC_} or
newer; run_p2p_fullmesh.sh also needs bash and the usual small tools.

    ./run_p2p_fullmesh.sh              measure between two nodes on this machine
    ./run_p2p_fullmesh.sh server       measure between two machines: says what to run on the other one
    bin/weft --help                    the program itself; share/man has its manual page

Results and logs go into results/ and logs/ in this folder. licenses/ has the terms of Weft and of what lies in lib/,
share/doc/weft those of other libraries that the program has inside.
TEXT

tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner -czf "$stage/bundle.tar.gz" "$name"
mv -- "$stage/bundle.tar.gz" "$build/$name.tar.gz"
say "$build/$name.tar.gz"
