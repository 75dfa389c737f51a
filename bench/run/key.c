#include "key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/key_file.h"
#include "base/status.h"

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

int bench_key(struct bench_options *options)
{
    uint8_t key[WF_KEY_FILE_BYTES];
    char text[WF_KEY_FILE_DIGITS + 1];

    (void)options;
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
