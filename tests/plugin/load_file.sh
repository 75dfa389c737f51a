# shellcheck shell=bash
# load_file.sh: sourced by the tests of the file that users load: check.sh, and the file, or the test is skipped.
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck disable=SC2034  # used by the tests, as much of what follows
build=$1 plugin=$1/lib/libnccl-net-weft.so

need_program() {
    command -v "$1" >/dev/null || skip "needs the program $1"
}

[[ -z ${WEFT_TEST_MISSING-} ]] || skip "the plugin is not built: $WEFT_TEST_MISSING"
unset WEFT_TEST_MISSING # no setting of the plugin

# Without caches of threads, which would look like a leak.
settings=(GLIBC_TUNABLES=glibc.malloc.tcache_count=0)

# make_key FILE: and with it OpenSSL inside has something to do.
make_key() {
    (umask 077 && od -An -vtx1 -N32 /dev/urandom | tr -d ' \n' >"$1")
    settings+=(WEFT_ENCRYPT=on)
}
