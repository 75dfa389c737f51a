/*
 * replay.c: stands in for libFuzzer where that is not: gives a target every file of the folders it is called with, in
 * the order of their names.
 */
#include <dirent.h>
#include <errno.h>

#include "fuzz.h"

#define INPUT_MAX (1024 * 1024)

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "re");
    uint8_t *room = malloc(INPUT_MAX);
    FUZZ_CHECK(file && room);
    size_t size = fread(room, 1, INPUT_MAX, file);
    FUZZ_CHECK(!ferror(file) && feof(file));
    fclose(file);
    /* In memory of its own size: who reads behind it is seen. */
    uint8_t *input = malloc(size ? size : 1);
    FUZZ_CHECK(input);
    memcpy(input, room, size);
    free(room);
    fprintf(stderr, "%s: %zu bytes\n", path, size);
    LLVMFuzzerTestOneInput(input, size);
    free(input);
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay_folder(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_input, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        replay_file(path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    else
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
    return count;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);
        if (count <= 0)
            return EXIT_FAILURE; /* a corpus that is not there tests nothing */
        files += count;
    }
    printf("%d inputs\n", files);
    return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
