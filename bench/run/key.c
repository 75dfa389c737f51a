#include "key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/key_file.h"
#include "base/status.h"
#include "bench/plan/options.h"

static const char about[] = "usage: weft key >FILE\n\n"
                            "Prints a key file: a fresh key of 256 bits, as 64 hexadecimal digits. Whoever holds it "
                            "may connect to whoever has\n"
                            "it set. FILE must be readable by its owner alone, and the same on every node:\n\n"
                            "  (umask 077; weft key >weft.key)\n"
                            "  weft mesh --listen --set key_file=weft.key\n"
                            "  weft mesh --connect ADDRESS --set key_file=weft.key\n";

/* A file that others can read would have the key before anybody could change its mode. */
static bool others_can_read(int fd)
{
    struct stat there;

    if (fstat(fd, &there) != 0 || !S_ISREG(there.st_mode) || !(there.st_mode & (S_IRWXG | S_IRWXO)))
        return false;
    fprintf(stderr,
            "weft: no key is written into a file with mode %04o, where others may get at it: (umask 077; weft key "
            ">FILE) for a new file, chmod 600 for one that is there\n",
            (unsigned)there.st_mode & 07777);
    return true;
}

int bench_key(int argc, char **argv)
{
    uint8_t key[WF_KEY_FILE_BYTES];
    char text[WF_KEY_FILE_DIGITS + 1];
    bool help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

    if (help) {
        fputs(about, stdout);
        return BENCH_PASSED;
    }
    if (argc > 1) {
        fprintf(stderr, "weft: weft key takes nothing ('%.60s'): see 'weft key --help'\n", argv[1]);
        return BENCH_USAGE;
    }
    if (others_can_read(STDOUT_FILENO))
        return BENCH_FAILED;
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key) {
        fprintf(stderr, "weft: no random numbers for a key: %s\n", wf_strerror(errno));
        return BENCH_FAILED;
    }
    wf_key_file_text(key, text);
    printf("# A key of Weft: whoever has this line may connect. Keep it to yourself (chmod 600).\n%s\n", text);
    explicit_bzero(key, sizeof key);
    explicit_bzero(text, sizeof text);
    return BENCH_PASSED;
}
