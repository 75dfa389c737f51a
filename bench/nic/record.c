#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/whole_file.h"

#define HEAD "weft-nic 1"
#define RECORD_BYTES (WF_DEVMEM_RSS_MAX * 6 + 1024)
#define BOOT_TEXT 40

/* --- the folder --- */

/* A file that others cannot open, so that they cannot hold it either. */
static int lock(int folder, const char *path, int *held, struct wf_status *status)
{
    int fd = openat(folder, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    int result = fd < 0 ? -errno : flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;

    if (result == -EWOULDBLOCK) {
        fprintf(stderr, "weft: waiting for another 'weft nic', which holds %s/.lock\n", path);
        do
            result = flock(fd, LOCK_EX) == 0 ? 0 : -errno;
        while (result == -EINTR);
    }
    if (result == 0) {
        *held = fd;
        return 0;
    }
    if (fd >= 0)
        close(fd);
    return wf_fail(status, result, "cannot hold %s: %s", path, wf_strerror(result));
}

int nic_records_hold(const char *path, int *held, struct wf_status *status)
{
    struct stat there;
    int result = mkdir(path, 0755) == 0 || errno == EEXIST ? 0 : -errno;
    int folder = result ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (result || folder < 0 || fstat(folder, &there) != 0)
        result = wf_fail(status, result ? result : -errno, "nothing is changed without a record in %s: %s", path,
                         wf_strerror(result ? result : errno));
    else if (there.st_uid != geteuid() || (there.st_mode & (S_IWGRP | S_IWOTH)))
        result = wf_fail(status, -EACCES, "%s is no place for records of cards: others can write there", path);
    if (result == 0)
        result = lock(folder, path, held, status);
    if (result && folder >= 0)
        close(folder);
    return result ? result : folder;
}

static uint64_t namespace_number(void)
{
    struct stat there;

    return stat("/proc/self/ns/net", &there) == 0 ? (uint64_t)there.st_ino : 0;
}

static char *boot_text(char text[BOOT_TEXT])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!file || !fgets(text, BOOT_TEXT, file))
        snprintf(text, BOOT_TEXT, "unknown");
    text[strcspn(text, "\n")] = '\0';
    if (file)
        fclose(file);
    return text;
}

static char *record_prefix(char name[NIC_RECORD_NAME])
{
    snprintf(name, NIC_RECORD_NAME, "nic.%" PRIu64 ".", namespace_number());
    return name;
}

char *nic_record_file(const char *interface, char name[NIC_RECORD_NAME])
{
    size_t used = strlen(record_prefix(name));

    snprintf(name + used, NIC_RECORD_NAME - used, "%.15s", interface);
    return name;
}

/* --- writing --- */

static int put_record(FILE *file, const void *what)
{
    const struct nic_record *record = what;
    char boot[BOOT_TEXT];

    fprintf(file, HEAD "\nboot %s\ninterface %d %s\nsplit %d\nhds_thresh %" PRId64 "\nntuple %d\nqueues %d\n",
            boot_text(boot), record->ifindex, record->name, (int)record->split, record->hds_thresh, record->ntuple,
            record->queues);
    fprintf(file, "rss %d %u", record->rss.usual, record->rss.count);
    for (uint32_t i = 0; i < record->rss.count; i++)
        fprintf(file, " %u", record->rss.queue[i]);
    fprintf(file, "\nend\n");
    return 0;
}

int nic_record_write(int folder, const struct nic_record *record, struct wf_status *status)
{
    char name[NIC_RECORD_NAME];
    struct wf_whole_file whole = {
        .folder = folder, .name = nic_record_file(record->name, name), .mode = 0600, .lasting = true};
    int result = wf_whole_file_write(&whole, put_record, record);

    if (result == 0)
        return 0;
    return wf_fail(status, result, "nothing is changed, as %s, the record of %s, cannot be written: %s", name,
                   record->name, wf_strerror(result));
}

int nic_record_remove(int folder, const char *name, struct wf_status *status)
{
    char file[NIC_RECORD_NAME];

    if (unlinkat(folder, nic_record_file(name, file), 0) == 0 || errno == ENOENT)
        return 0;
    return wf_fail(status, -errno, "%s, the record of %s, cannot be removed: %s", file, name, wf_strerror(errno));
}

/* --- reading --- */

/* "1 4 0 1 0 1" */
static bool read_rss(const char *text, struct wf_devmem_rss *rss)
{
    unsigned usual, count, queue;
    int used;

    if (sscanf(text, "%u %u%n", &usual, &count, &used) != 2 || usual > 1 || count > WF_DEVMEM_RSS_MAX)
        return false;
    rss->usual = usual;
    rss->count = count;
    for (unsigned i = 0; i < count; i++) {
        text += used;
        if (sscanf(text, " %u%n", &queue, &used) != 1 || queue > UINT16_MAX)
            return false;
        rss->queue[i] = (uint16_t)queue;
    }
    return text[used] == '\0';
}

/* All lines in their order, or it is none. `boot`: when it was written. */
static bool read_text(char *text, struct nic_record *record, char boot[BOOT_TEXT])
{
    char *head = strsep(&text, "\n"), *line[7], *end;
    int split;

    for (size_t i = 0; i < 7; i++)
        line[i] = text ? strsep(&text, "\n") : NULL;
    end = text ? strsep(&text, "\n") : NULL;
    if (strcmp(head, HEAD) != 0 || !end || strcmp(end, "end") != 0)
        return false;
    if (sscanf(line[0], "boot %39s", boot) != 1 ||
        sscanf(line[1], "interface %d %15s", &record->ifindex, record->name) != 2 ||
        sscanf(line[2], "split %d", &split) != 1 || sscanf(line[3], "hds_thresh %" SCNd64, &record->hds_thresh) != 1 ||
        sscanf(line[4], "ntuple %d", &record->ntuple) != 1 || sscanf(line[5], "queues %d", &record->queues) != 1 ||
        strncmp(line[6], "rss ", 4) != 0)
        return false;
    record->split = (enum wf_devmem_split)split;
    return split >= WF_DEVMEM_SPLIT_UNKNOWN && split <= WF_DEVMEM_SPLIT_ON && read_rss(line[6] + 4, &record->rss);
}

/* The caller frees the text. NULL: it is not this user's file. */
static char *load_text(int fd)
{
    struct stat there;
    char *text = calloc(1, RECORD_BYTES);
    bool own =
        fstat(fd, &there) == 0 && S_ISREG(there.st_mode) && there.st_uid == geteuid() && there.st_size < RECORD_BYTES;

    if (text && own && read(fd, text, RECORD_BYTES - 1) == there.st_size)
        return text;
    free(text);
    return NULL;
}

int nic_record_read(int folder, const char *name, struct nic_record *record, struct wf_status *status)
{
    char file[NIC_RECORD_NAME], boot[BOOT_TEXT], now[BOOT_TEXT];
    struct nic_record *found = calloc(1, sizeof *found);
    int fd = openat(folder, nic_record_file(name, file), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), result = 0;

    if (!found)
        result = wf_fail(status, -ENOMEM, "no memory for the record of %s", name);
    else if (fd < 0 && errno == ENOENT)
        result = -ENOENT;
    char *text = result == 0 && fd >= 0 ? load_text(fd) : NULL;
    if (fd >= 0)
        close(fd);
    if (result == 0 && (!text || !read_text(text, found, boot) || strcmp(found->name, name) != 0))
        result = wf_fail(status, -EINVAL, "%s is no record of %s: look at it, and remove it", file, name);
    if (result == 0 && strcmp(boot, boot_text(now)) != 0)
        result = -ESTALE;
    if (result == 0)
        *record = *found;
    free(text);
    free(found);
    return result;
}

int nic_record_list(int folder, char (*names)[IFNAMSIZ], int max)
{
    char prefix[NIC_RECORD_NAME];
    size_t length = strlen(record_prefix(prefix));
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
    DIR *all = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (all && count < max && (entry = readdir(all)) != NULL)
        if (strncmp(entry->d_name, prefix, length) == 0 && entry->d_name[length] &&
            strlen(entry->d_name + length) < IFNAMSIZ)
            snprintf(names[count++], IFNAMSIZ, "%.15s", entry->d_name + length);
    if (all)
        closedir(all);
    else if (fd >= 0)
        close(fd);
    return count;
}

char *nic_record_of(int folder, const struct wf_devmem_card *card, char name[IFNAMSIZ])
{
    char(*names)[IFNAMSIZ] = calloc(NIC_RECORDS_MAX, sizeof *names);
    struct nic_record *record = calloc(1, sizeof *record);
    int count = names && record ? nic_record_list(folder, names, NIC_RECORDS_MAX) : 0;
    struct wf_status ignored;

    snprintf(name, IFNAMSIZ, "%s", card->name);
    for (int i = 0; i < count; i++)
        if (nic_record_read(folder, names[i], record, &ignored) == 0 && record->ifindex == card->ifindex) {
            snprintf(name, IFNAMSIZ, "%s", names[i]);
            break;
        }
    free(names);
    free(record);
    return name;
}
