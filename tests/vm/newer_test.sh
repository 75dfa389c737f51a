#!/usr/bin/env bash
# tests/vm/newer.sh: whose mirror is asked, which kernel is taken, and what is said where one cannot be had or built for. The
# archive is made up here; tests that name a KERNEL show that the real one gives what they need.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"

vm=$root/tests/vm/run
export TMPDIR=$scratch/temporary WEFT_VM_KERNEL_DIR="$scratch/kernels" ARCHIVE=$scratch/archive
mkdir -- "$TMPDIR" "$ARCHIVE"

# make_test NAME LINE_OF_MACHINE...
make_test() {
    mkdir -p -- "$scratch/$1"
    printf '%s\n' "${@:2}" >"$scratch/$1/machine"
    echo 'exit 0' >"$scratch/$1/guest"
}

# What the archive has is in files of its folder.
program "$scratch/bin" apt-get <<'END'
case " $* " in
*' --no-release-info '*) cut -d ' ' -f 1 "$ARCHIVE/targets" ;;
*' indextargets '*) [[ -e $ARCHIVE/no-lists ]] || cat "$ARCHIVE/targets" ;;
*' update '*) [[ ! -e $ARCHIVE/down ]] || { echo 'E: the archive is down' >&2 && exit 100; } ;;
*' install '*) printf 'E: no such package: %s\n' "$@" | grep -m 1 ' linux-' >&2 && exit 100 ;;
esac
END
program "$scratch/bin" apt-cache <<'END'
case " $* " in
*' pkgnames '*) cat "$ARCHIVE/names" ;;
*' show '*) grep -qx "${!#}" "$ARCHIVE/names" ;;
esac
END
PATH=$scratch/bin:$PATH
printf '%s\n' linux-headers-7.{4.1,4.10,4.9,1.3}+deb13-cloud-amd64 linux-headers-7.5.1+deb13-amd64 \
    linux-headers-7.6.1+deb13-cloud-amd64 linux-binary-7.{4.1,4.10,4.9,1.3}+deb13-cloud-amd64 >"$ARCHIVE/names"
echo 'http://other.example/ubuntu/ Ubuntu Ubuntu' >"$ARCHIVE/targets"

make_test wrong 'SOURCES=tests/vm/shape'
run "$vm" "$scratch/wrong"
expect_status 2 'SOURCES without a KERNEL'
expect_text 'SOURCES and TOOLS need a KERNEL' 'SOURCES without a KERNEL'

make_test some KERNEL=7.2.12+deb13-cloud-amd64 SOURCES=tests/vm/shape
run "$vm" "$scratch/some"
[[ $output == *'needs the program'* ]] && echo "skipped: $output" && exit 77
expect_status 77 'no source of Debian'
expect_text 'apt has no source of Debian here' 'no source of Debian'

# The one that says it is Debian; before the first update, one that looks like it.
{
    echo 'http://secure.example/debian-security/ Debian Debian-Security'
    echo 'http://mirror.example/pub/debian-all/ Debian Debian'
} >>"$ARCHIVE/targets"
touch "$ARCHIVE/down"
run "$vm" "$scratch/some"
expect_status 77 'an archive that is down'
expect_text 'E: the archive is down' 'an archive that is down'
output=$(cat -- "$WEFT_VM_KERNEL_DIR/newer/.apt/sources.list")
expect_text ' http://mirror.example/pub/debian-all/ trixie-backports main' 'the mirror'
expect_lines 2 'the suites'
printf 'http://%s.example/debian/\n' near far >>"$ARCHIVE/targets"
touch "$ARCHIVE/no-lists"
run "$vm" "$scratch/some"
output=$(cat -- "$WEFT_VM_KERNEL_DIR/newer/.apt/sources.list")
expect_text ' http://near.example/debian/ trixie main' 'the mirror, without lists'

rm -- "$ARCHIVE/down"
run "$vm" "$scratch/some"
expect_status 1 'a version that is gone'
expect_text '7.2.12+deb13-cloud-amd64 is gone' 'a version that is gone'
expect_text 'name 7.4.10+deb13-cloud-amd64 instead' 'the one to name'
run "$vm" "$scratch/some" --kernel newest
expect_status 77 'the newest, which cannot be fetched'
expect_text 'Linux 7.4.10+deb13-cloud-amd64 cannot be fetched' 'the newest'
expect_text 'E: no such package: linux-binary-7.4.10' 'why it cannot be fetched'

# One that was fetched before is used without the archive.
kernel=7.2.12+deb13-cloud-amd64
touch "$ARCHIVE/down"
mkdir -p -- "$WEFT_VM_KERNEL_DIR/newer/$kernel"/{boot,lib/modules/$kernel}
touch "$WEFT_VM_KERNEL_DIR/newer/$kernel/boot/vmlinuz-$kernel"
program "$scratch/bin" unshare <<<'exit 1'
run "$vm" "$scratch/some"
expect_status 77 'no namespaces'
expect_text 'neither root nor user namespaces' 'no namespaces'
program "$scratch/bin" unshare <<<'[[ $* != *" make "* ]] || { echo "main.c: broken" && exit 2; }'
run "$vm" "$scratch/some" --kernel newest
expect_status 1 'a module that does not build'
expect_text 'main.c: broken' 'what the compiler said'
expect_text "tests/vm/shape does not build for Linux $kernel" 'what does not build'
[[ -z $(ls -A -- "$TMPDIR") ]] || fail "left behind: $(ls -A -- "$TMPDIR")"
finish
