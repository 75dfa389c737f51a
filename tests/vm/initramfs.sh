# shellcheck shell=bash
# initramfs.sh: sourced by run: the file system of the guest, all of it in memory.
# shellcheck disable=SC2154  # here, root and kernel_* are run's, FILES and MODULES those of a test

# add_program TREE FILE: into /usr/bin, its shared libraries into /lib, where LD_LIBRARY_PATH finds them, and the program
# that loads those to where it is here.
add_program() {
    local file=$2 line loader='^[[:space:]]*(/.*) \(0x[0-9a-f]*\)$' library='=> (/.*) \(0x[0-9a-f]*\)$'
    [[ $file == /* ]] || file=$root/$file
    [[ -r $file ]] || failed "$test_folder/machine: FILES names $file, which is not there: is it built?"
    cp -L -- "$file" "$1/usr/bin/" || return
    while read -r line; do
        if [[ $line =~ $library ]]; then
            cp -L -- "${BASH_REMATCH[1]}" "$1/lib/" || return
        elif [[ $line =~ $loader ]]; then
            mkdir -p -- "$1${BASH_REMATCH[1]%/*}" && cp -L -- "${BASH_REMATCH[1]}" "$1${BASH_REMATCH[1]}" || return
        fi
    done < <(ldd "$file" 2>/dev/null)
}

# add_module TREE NUMBER FILE
add_module() {
    local target
    printf -v target '%s/modules/%03d-%s' "$1" "$2" "${3##*/}"
    case $3 in
    *.ko) cp -- "$3" "$target" ;;
    *.ko.xz) xz -dc -- "$3" >"${target%.xz}" ;;
    *.ko.gz) gzip -dc -- "$3" >"${target%.gz}" ;;
    *.ko.zst) zstd -dcq -- "$3" >"${target%.zst}" ;;
    *) failed "$3: how is this module compressed?" ;;
    esac
}

add_modules() {
    local file number=0
    [[ -n $MODULES ]] || return 0
    while read -r file; do
        add_module "$1" "$((number++))" "$file" || return
    done < <(module_files "$kernel_tree" "$kernel_version")
}

# make_initramfs TREE FILE: not compressed, for the guest is slower at that than it is to read it.
make_initramfs() {
    local file
    mkdir -p -- "$1"/{dev,lib,modules,proc,sys,test,tmp,usr/bin} || return
    add_program "$1" "$(command -v busybox)" || return
    while read -r file; do
        [[ -z $file ]] || add_program "$1" "$file" || return
    done <<<"$FILES"
    add_modules "$1" || return
    cp -L -- "$here/guest/init" "$1/init" && cp -L -- "$here/guest/lib.sh" "$1/lib/vm.sh" || return
    cp -L -- "$here/guest/placement.sh" "$1/usr/bin/" && cp -rL -- "$test_folder/." "$1/test/" || return
    chmod -R u+rwX "$1" && chmod 755 "$1/init" "$1/usr/bin/"* || return
    (cd -- "$1" && find . -print0 | cpio --quiet --null -o -H newc -R 0:0) >"$2"
}
