/*
 * steps.c: vm_devmem: single steps of transport/devmem, for a guest with a card that can do them. Memory of a device is
 * played by udmabuf. Also runs a command without the right to change cards.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "devmem/devmem.h"

#define CAP_NET_ADMIN 12
#define MEMORY_BYTES (1 << 20)

static struct wf_devmem *devmem;
static struct wf_status status;

static int failed(const char *what, int result)
{
    printf("%s: %d: %s\n", what, result, status.text);
    return 1;
}

static int make_dmabuf(void)
{
    int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    int memory = memfd_create("device", MFD_ALLOW_SEALING | MFD_CLOEXEC);

    if (device < 0 || memory < 0 || ftruncate(memory, MEMORY_BYTES) != 0 || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK))
        return -1;
    struct udmabuf_create about = {.memfd = (uint32_t)memory, .flags = UDMABUF_FLAGS_CLOEXEC, .size = MEMORY_BYTES};
    return ioctl(device, UDMABUF_CREATE, &about);
}

static int bind_rx(const char *name, char **words, int count)
{
    uint32_t queues[8], id;

    for (int i = 0; i < count && i < 8; i++)
        queues[i] = (uint32_t)atoi(words[i]);
    struct wf_devmem_rx rx = {
        .ifindex = (int)if_nametoindex(name), .queues = queues, .count = (uint32_t)count, .dmabuf = make_dmabuf()};
    int result = wf_devmem_bind_rx(devmem, &rx, &id, &status);
    if (result)
        return failed("bind-rx", result);
    printf("bind-rx: bound as %u\n", id);
    return 0;
}

static int bind_tx(const char *name)
{
    uint32_t id;
    int result = wf_devmem_bind_tx(devmem, (int)if_nametoindex(name), make_dmabuf(), &id, &status);

    if (result)
        return failed("bind-tx", result);
    printf("bind-tx: bound as %u\n", id);
    return 0;
}

/* FROM PORT TO PORT QUEUE [PLACE] */
static int steer(const char *name, char **words, bool add)
{
    struct wf_devmem_flow flow = {0};
    struct sockaddr_in *from = (struct sockaddr_in *)&flow.from, *to = (struct sockaddr_in *)&flow.to;
    uint32_t queue = (uint32_t)atoi(words[4]), place;

    from->sin_family = to->sin_family = AF_INET;
    from->sin_port = htons((uint16_t)atoi(words[1]));
    to->sin_port = htons((uint16_t)atoi(words[3]));
    inet_pton(AF_INET, words[0], &from->sin_addr);
    inet_pton(AF_INET, words[2], &to->sin_addr);
    int result = add ? wf_devmem_steer(devmem, name, &flow, queue, &place, &status)
                     : wf_devmem_unsteer(devmem, name, &flow, queue, (uint32_t)atoi(words[5]), &status);
    if (result)
        return failed(add ? "steer" : "unsteer", result);
    if (add)
        printf("rule at %u\n", place);
    else
        printf("unsteer: done\n");
    return 0;
}

static int set_split(const char *name, char **words)
{
    enum wf_devmem_split split = strcmp(words[0], "on") == 0 ? WF_DEVMEM_SPLIT_ON : WF_DEVMEM_SPLIT_OFF;
    int result = wf_devmem_set_split(devmem, name, split, atoi(words[1]), &status);

    if (result)
        return failed("split", result);
    printf("split: done\n");
    return 0;
}

static int run_without_rights(char **command)
{
    if (prctl(PR_CAPBSET_DROP, CAP_NET_ADMIN) != 0)
        return 1;
    execvp(command[0], command);
    return 127;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    int result = 2;

    if (strcmp(what, "without-rights") == 0)
        return run_without_rights(argv + 2);
    if (wf_devmem_open(NULL, &devmem, &status) != 0)
        return failed("open", status.code);
    if (strcmp(what, "bind-rx") == 0 && argc > 3)
        result = bind_rx(argv[2], argv + 3, argc - 3);
    else if (strcmp(what, "bind-tx") == 0)
        result = bind_tx(argv[2]);
    else if (strcmp(what, "split") == 0 && argc == 5)
        result = set_split(argv[2], argv + 3);
    else if (strcmp(what, "steer") == 0 && argc == 8)
        result = steer(argv[2], argv + 3, true);
    else if (strcmp(what, "unsteer") == 0 && argc == 9)
        result = steer(argv[2], argv + 3, false);
    wf_devmem_close(devmem);
    return result;
}
