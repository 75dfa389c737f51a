# shellcheck shell=bash
# newer.sh: sourced by run: a kernel of Debian's newer suites, with the compiler, headers and libraries to build for it.
# They are found by an apt root of our own, unpacked into one tree for each kernel, and used by chroot into it: nothing of
# the machine's apt changes, and nothing is installed.
# shellcheck disable=SC2154  # here, root, kernel_cache, SOURCES, TOOLS and KERNEL are run's, or a test's

newer_cache=$kernel_cache/newer
newer_suites=(trixie trixie-backports) # the first is a release, the last has the kernels
newer_flavour=cloud-amd64
newer_least=7.2 # the first whose queue operations the sources know
newer_packages=(binutils coreutils dash ethtool findutils grep libc6-dev libmnl-dev make mawk sed)
newer_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# debian_mirror: where this machine has Debian from, by its lists or, before any were fetched, by the look of its sources.
# shellcheck disable=SC2016  # the words of apt-get's format
debian_mirror() {
    apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 2>/dev/null |
        awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }' | grep . ||
        apt-get indextargets --no-release-info --format '$(REPO_URI)' 2>/dev/null | grep -m 1 '/debian/*$'
}

# private_apt COMMAND ARGUMENT...: apt-get or apt-cache with lists, archives and packages of our own. How the machine
# reaches its mirror (proxies, passwords) stays as it is.
private_apt() {
    local apt=$newer_cache/.apt command=$1
    shift
    "$command" -qq -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
        -o APT::Default-Release="${newer_suites[-1]}" -o Acquire::Languages=none -o Acquire::Retries=2 "$@"
}

# update_lists: 0, or reason is set.
update_lists() {
    local apt=$newer_cache/.apt mirror suite output
    mirror=$(debian_mirror)
    [[ -n $mirror ]] || { reason='apt has no source of Debian here' && return 1; }
    [[ -r $newer_keyring ]] || { reason="there is no $newer_keyring (package debian-archive-keyring)" && return 1; }
    mkdir -p -- "$apt/state/lists/partial" "$apt/cache/archives/partial" && : >"$apt/status" || return
    for suite in "${newer_suites[@]}"; do
        printf 'deb [arch=amd64 signed-by=%s] %s %s main\n' "$newer_keyring" "$mirror" "$suite"
    done >"$apt/sources.list"
    output=$(private_apt apt-get update -o APT::Update::Error-Mode=any 2>&1) && return
    reason=$(grep -m 1 '^E: ' <<<"$output") || reason='apt-get update failed'
    return 1
}

# newer_versions: those that the archive has with headers, oldest first. Old parts of a version outlive others there.
newer_versions() {
    local version
    private_apt apt-cache pkgnames linux-headers- | sed -n "s/^linux-headers-\(.*-$newer_flavour\)\$/\1/p" | sort -V |
        while read -r version; do
            dpkg --compare-versions "$version" ge "$newer_least" || continue
            private_apt apt-cache show "linux-binary-$version" >/dev/null 2>&1 && printf '%s\n' "$version"
        done
}

# unpack_newer VERSION FOLDER: FOLDER/tree is made.
unpack_newer() {
    local package name tree=$2/tree archives=$newer_cache/.apt/cache/archives
    local -a packages=("linux-binary-$1" "linux-headers-$1" "${newer_packages[@]}")
    [[ -z $MODULES ]] || packages+=("linux-modules-$1")
    rm -f -- "$archives"/*.deb
    private_apt apt-get install --yes --download-only "${packages[@]}" || return
    mkdir -- "$tree" || return
    for package in "$archives"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$tree" --no-same-owner --exclude='./usr/share/doc' \
            --exclude='./usr/share/man' --exclude='./usr/share/locale' --exclude='./usr/share/info' || return
    done
    rm -f -- "$archives"/*.deb
    # What scripts of the packages would have done.
    for name in bin sbin lib lib64; do
        [[ -e $tree/$name ]] || ln -s "usr/$name" "$tree/$name" || return
    done
    ln -sf dash "$tree/usr/bin/sh" && ln -sf mawk "$tree/usr/bin/awk" || return
    mkdir -p -- "$tree"/{dev,proc,tmp,work} || return
    mend_layout "$tree" && depmod -b "$tree" "$1"
}

# fetch_newer VERSION: as fetch_kernel.
fetch_newer() {
    local folder
    rm -rf -- "$newer_cache"/.fetch.*
    folder=$(mktemp -d "$newer_cache/.fetch.XXXXXX") || return
    chmod 755 "$folder"
    if unpack_newer "$1" "$folder" >"$folder/log" 2>&1; then
        rm -rf -- "${newer_cache:?}/$1"
        mv -T -- "$folder/tree" "$newer_cache/$1"
    else
        reason=$(grep -m 1 '^E: ' "$folder/log") || reason=$(tail -n 1 -- "$folder/log")
    fi
    rm -rf -- "$folder"
}

# have_newer VERSION: sets what look_for_kernel sets.
# shellcheck disable=SC2034  # for run and initramfs.sh
have_newer() {
    local wanted_kernel=$1
    look_for_kernel "$newer_cache/$1"
}

# choose_newest: sets wanted_kernel to the newest of the archive or, where that cannot be asked, of the cache.
choose_newest() {
    if update_lists; then
        wanted_kernel=$(newer_versions | tail -n 1)
        [[ -n $wanted_kernel ]] || unavailable "no kernel with headers, $newer_least or newer, is in ${newer_suites[*]}"
    else
        wanted_kernel=$(cached_newer | head -n 1)
        [[ -n $wanted_kernel ]] || unavailable "no lists of ${newer_suites[*]}: $reason"
    fi
}

cached_newer() { find "$newer_cache" -mindepth 1 -maxdepth 1 -type d ! -name '.*' -printf '%f\n' 2>/dev/null | sort -rV; }

# fetch_wanted: the lists are fetched anew, for what older ones name may be gone.
fetch_wanted() {
    local versions
    update_lists || unavailable "no lists of ${newer_suites[*]}: $reason"
    versions=$(newer_versions)
    grep -Fqx -- "$wanted_kernel" <<<"$versions" ||
        failed "Linux $wanted_kernel is gone from ${newer_suites[*]}: name $(tail -n 1 <<<"$versions") instead," \
            "in KERNEL of $test_folder/machine"
    reason=''
    fetch_newer "$wanted_kernel"
}

# find_newer: as find_kernel, for a test whose machine names one in KERNEL.
find_newer() {
    local lock tool
    for tool in apt-get apt-cache dpkg-deb tar unshare; do
        command -v "$tool" >/dev/null || unavailable "needs the program $tool"
    done
    { mkdir -p -- "$newer_cache" && exec {lock}>"$newer_cache/.lock" && flock "$lock"; } 2>/dev/null ||
        unavailable "a kernel cannot be kept in $newer_cache: set WEFT_VM_KERNEL_DIR"
    reason=''
    [[ $wanted_kernel != newest ]] || choose_newest
    have_newer "$wanted_kernel" || fetch_wanted
    exec {lock}>&-
    have_newer "$wanted_kernel" ||
        unavailable "Linux $wanted_kernel cannot be fetched, or lacks a module of: ${MODULES:-none}${reason:+; $reason}"
}

# ------------------------------------------------------------------------------------------------------- in the tree

# in_tree FOLDER COMMAND...: in the kernel's tree, with FOLDER as /work. Mounts are those of a namespace, which root may
# have, and others where the kernel lets users have their own.
in_tree() {
    local folder=$1 user=()
    shift
    [[ $(id -u) == 0 ]] && unshare --mount true 2>/dev/null || user=(--user --map-root-user)
    # shellcheck disable=SC2016  # of that shell
    unshare "${user[@]}" --mount sh -c 'tree=$1 folder=$2; shift 2
        mount --rbind /dev "$tree/dev" && mount --rbind /proc "$tree/proc" && mount --bind "$folder" "$tree/work" &&
            exec setpriv --pdeathsig KILL chroot "$tree" /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/tmp TMPDIR=/tmp "$@"' \
        sh "$kernel_tree" "$folder" "$@"
}

need_namespaces() {
    in_tree "$1" true 2>/dev/null ||
        unavailable 'the compiler of the newer suite runs by chroot: neither root nor user namespaces can do that here'
}

# build_sources FOLDER: each of SOURCES by its Makefile, which puts what it makes into OUT.
build_sources() {
    local source name
    mkdir -p -- "$1/built" && need_namespaces "$1"
    for source in $SOURCES; do
        name=${source##*/}
        cp -rL -- "$root/$source" "$1/$name" || return
        in_tree "$1" make -s -C "/work/$name" OUT=/work/built HEADERS="/usr/src/linux-headers-$kernel_version" \
            >"$1/log" 2>&1 || {
            tail -n 30 -- "$1/log" >&2
            failed "$source does not build for Linux $kernel_version"
        }
    done
}

# add_tool TREE FOLDER PROGRAM: of the kernel's suite, with libraries and a loader of its own, for the other programs have
# those of this machine.
add_tool() {
    local library loader=/lib64/ld-linux-x86-64.so.2 target=$1/usr/lib/newer
    mkdir -p -- "$target" && cp -L -- "$kernel_tree$loader" "$target/loader" &&
        cp -L -- "$kernel_tree/usr/sbin/$3" "$target/$3" || return
    while read -r library; do
        cp -L -- "$kernel_tree$library" "$target/" || return
    done < <(in_tree "$2" "$loader" --list "/usr/sbin/$3" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p')
    # shellcheck disable=SC2016  # of the guest
    printf '#!/usr/bin/busybox sh\nexec /usr/lib/newer/loader --library-path /usr/lib/newer /usr/lib/newer/%s "$@"\n' \
        "$3" >"$1/usr/bin/$3"
}

# add_newer TREE FOLDER: what is built, into /built, and TOOLS.
add_newer() {
    local tool
    mkdir -p -- "$2" || return
    build_sources "$2" && mkdir -p -- "$1/usr/bin" && cp -r -- "$2/built" "$1/built" || return
    for tool in $TOOLS; do
        add_tool "$1" "$2" "$tool" || return
    done
}
