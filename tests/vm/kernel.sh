# shellcheck shell=bash
# kernel.sh: sourced by run: finds a stock kernel with its modules, on this machine, among those that were fetched
# before, or in the archive.
# shellcheck disable=SC2154  # root and wanted_kernel are run's, MODULES that of a test

kernel_cache=${WEFT_VM_KERNEL_DIR:-$root/build/vm-kernel}

# kernels TREE: the versions whose image and modules are there, newest first.
kernels() {
    local image version
    for image in "$1"/boot/vmlinuz-*; do
        version=${image##*/vmlinuz-}
        [[ -r $image && -d $1/lib/modules/$version ]] && printf '%s\n' "$version"
    done | sort -rV
}

# module_files TREE VERSION: those that the test's modules need, in the order to load them.
module_files() {
    # shellcheck disable=SC2086  # several
    modprobe -C /dev/null -d "$1/" -S "$2" --show-depends -a $MODULES 2>/dev/null |
        sed -n 's/^insmod \(.*[^ ]\) *$/\1/p' | awk '!seen[$0]++'
}

# has_modules TREE VERSION
has_modules() {
    local module
    for module in $MODULES; do
        modprobe -C /dev/null -d "$1/" -S "$2" --show-depends "$module" >/dev/null 2>&1 || return 1
    done
}

# look_for_kernel TREE...: sets kernel_tree, kernel_version and kernel_image.
# shellcheck disable=SC2034  # for run and initramfs.sh
look_for_kernel() {
    local tree version
    for tree in "$@"; do
        for version in $(kernels "$tree"); do
            [[ -z $wanted_kernel || $version == "$wanted_kernel" ]] || continue
            has_modules "$tree" "$version" || continue
            kernel_tree=$tree kernel_version=$version kernel_image=$tree/boot/vmlinuz-$version
            return 0
        done
    done
    return 1
}

# cached: the trees of the cache, newest first.
cached() { find "$kernel_cache" -mindepth 1 -maxdepth 1 -type d ! -name '.*' 2>/dev/null | sort -rV; }

look_everywhere() {
    local -a trees
    mapfile -t trees < <(cached)
    look_for_kernel '' "${trees[@]}"
}

# kernel_packages PACKAGE: it and the parts of a kernel that it depends on; newer ones come in several packages.
kernel_packages() {
    local package
    printf '%s\n' "$1"
    for package in $(apt-cache depends --important "$1" 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-\(image\|base\|binary\|modules\)-.*\)/\1/p'); do
        kernel_packages "$package"
    done
}

# mend_layout TREE: newer packages have all in /usr/lib/modules; on an installed system other packages make the rest.
mend_layout() {
    local image version
    [[ -e $1/lib ]] || ln -s usr/lib "$1/lib" || return
    for image in "$1"/lib/modules/*/vmlinuz; do
        [[ -e $image ]] || continue
        version=$(basename -- "${image%/vmlinuz}")
        mkdir -p -- "$1/boot" && ln -s "../lib/modules/$version/vmlinuz" "$1/boot/vmlinuz-$version" || return
    done
}

# unpack_kernel PACKAGE FOLDER: FOLDER/tree is made. Nothing is installed.
unpack_kernel() {
    local -a packages
    local package version
    mapfile -t packages < <(kernel_packages "$1")
    (cd -- "$2" && apt-get download -q -o APT::Sandbox::User=root "${packages[@]}") || return
    mkdir -- "$2/tree" || return
    for package in "$2"/*.deb; do
        dpkg -x "$package" "$2/tree" || return
    done
    rm -rf -- "$2/tree/usr/share"
    mend_layout "$2/tree" || return
    for version in $(kernels "$2/tree"); do
        depmod -b "$2/tree" "$version" || return
    done
}

# fetch_kernel PACKAGE: into the cache, where it appears whole or not at all. What lies there half done is nobody's, for
# whoever fetches has the lock.
fetch_kernel() {
    local folder version
    rm -rf -- "$kernel_cache"/.fetch.*
    folder=$(mktemp -d "$kernel_cache/.fetch.XXXXXX") || return
    chmod 755 "$folder"
    if unpack_kernel "$1" "$folder" >"$folder/log" 2>&1; then
        for version in $(kernels "$folder/tree"); do
            mv -T -- "$folder/tree" "$kernel_cache/$version"
        done
    else
        reason=$(grep -m 1 '^E: ' "$folder/log") || reason=$(tail -n 1 -- "$folder/log")
    fi
    rm -rf -- "$folder"
}

# find_kernel: as look_for_kernel; fetches one if need be. The one for virtual machines has all that is needed in a third
# of the size.
find_kernel() {
    local package=linux-image-${wanted_kernel:-cloud-amd64} lock
    look_everywhere && return
    { command -v apt-get && command -v dpkg; } >/dev/null ||
        unavailable "no kernel${wanted_kernel:+ $wanted_kernel} in /boot or $kernel_cache, and no apt-get to fetch one"
    { mkdir -p -- "$kernel_cache" && exec {lock}>"$kernel_cache/.lock" && flock "$lock"; } 2>/dev/null ||
        unavailable "a kernel cannot be kept in $kernel_cache: set WEFT_VM_KERNEL_DIR"
    reason=''
    look_everywhere || fetch_kernel "$package"
    exec {lock}>&-
    look_everywhere ||
        unavailable "$package cannot be fetched, or lacks a module of: ${MODULES:-none}${reason:+; $reason}"
}
