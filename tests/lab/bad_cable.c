/*
 * bad_cable.c: joins two interfaces, as a cable would, and damages what goes through, or holds it back.
 *
 *     bad_cable INTERFACE INTERFACE EVERY LEAST SEED [DELAY_US]
 *
 * In each EVERY bytes of TCP payload, on average, one segment of at least LEAST bytes is damaged, so that no checksum
 * of TCP can see it: in two of the words that it adds up, the same bit changes, up in the one and down in the other.
 * EVERY 0 is a good cable. DELAY_US is how long it is, in microseconds one way. Prints how many it has damaged when it
 * is told to stop by SIGTERM.
 *
 * What the kernel hands over may be far longer than a packet, and without its checksum yet: it travels with the
 * kernel's own note about that (struct virtio_net_hdr), for the other side to do the rest.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX (1u << 17)
#define BUFFER (64 << 20)
#define HELD_MOST (256u << 20) /* bytes in a direction; more is lost */

static volatile sig_atomic_t stopped;

struct damage {
    uint64_t every, least;
    uint64_t random;
    uint64_t left; /* payload bytes until the next */
    uint64_t done;
};

static uint64_t next_random(struct damage *damage)
{
    uint64_t x = damage->random += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Finds the payload of a TCP segment in a frame; its length, or 0. */
static size_t find_payload(uint8_t *frame, size_t length, uint8_t **payload)
{
    const struct ether_header *ether = (const void *)frame;
    size_t at = sizeof(*ether), end = length;

    if (length < at + sizeof(struct ip6_hdr) + sizeof(struct tcphdr))
        return 0;
    if (ntohs(ether->ether_type) == ETHERTYPE_IP) {
        const struct iphdr *ip = (const void *)(frame + at);
        if (ip->protocol != IPPROTO_TCP || at + ntohs(ip->tot_len) > length)
            return 0;
        end = at + ntohs(ip->tot_len);
        at += ip->ihl * 4u;
    } else if (ntohs(ether->ether_type) == ETHERTYPE_IPV6) {
        const struct ip6_hdr *ip = (const void *)(frame + at);
        if (ip->ip6_nxt != IPPROTO_TCP)
            return 0;
        at += sizeof(*ip);
    } else {
        return 0;
    }
    if (at + sizeof(struct tcphdr) > end)
        return 0;
    at += ((const struct tcphdr *)(const void *)(frame + at))->doff * 4u;
    *payload = frame + at;
    return at < end ? end - at : 0;
}

/* Changes a bit in a word and the same bit, the other way, in the next word that has it the other way. */
static bool change_bits(uint8_t *payload, size_t length, uint64_t random)
{
    size_t first = (random >> 8) % (length / 2) * 2;
    size_t byte = random & 1;
    uint8_t bit = (uint8_t)(1u << ((random >> 1) & 7));

    for (size_t i = first + 2; i + 2 <= length; i += 2) {
        if ((payload[first + byte] ^ payload[i + byte]) & bit) {
            payload[first + byte] ^= bit;
            payload[i + byte] ^= bit;
            return true;
        }
    }
    return false;
}

static void pass(struct damage *damage, uint8_t *frame, size_t length)
{
    uint8_t *payload = NULL;
    size_t size = find_payload(frame, length, &payload);

    if (damage->every == 0)
        return;
    if (damage->left > size) {
        damage->left -= size;
        return;
    }
    damage->left = 0; /* due, until it has been done */
    if (size >= damage->least && size >= 4 && change_bits(payload, size, next_random(damage))) {
        damage->done++;
        damage->left = 1 + next_random(damage) % (2 * damage->every);
    }
}

static int open_end(const char *interface)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    int fd = socket(AF_PACKET, SOCK_RAW, 0), yes = 1, bytes = BUFFER;

    address.sll_ifindex = (int)if_nametoindex(interface);
    if (fd < 0 || address.sll_ifindex == 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof(yes)) < 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)) < 0 ||
        (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0 &&
         setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0) ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        fprintf(stderr, "bad_cable: %s: %s\n", interface, strerror(errno));
        return -1;
    }
    return fd;
}

/* --- a long cable --- */

struct held {
    struct held *next;
    int64_t due_ns;
    size_t length;
    uint8_t frame[];
};

/* One direction. */
struct way {
    int64_t delay_ns;
    struct held *first, **last;
    size_t bytes;
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* What the other end does not take is lost, as on any cable. */
static void deliver(int to, const uint8_t *frame, size_t length)
{
    if (send(to, frame, length, 0) < 0 && errno != ENOBUFS && errno != ENETDOWN && errno != ENXIO)
        fprintf(stderr, "bad_cable: %zu bytes: %s\n", length, strerror(errno));
}

static void hold(struct way *way, const uint8_t *frame, size_t length)
{
    struct held *held = way->bytes + length <= HELD_MOST ? malloc(sizeof(*held) + length) : NULL;

    if (!held)
        return;
    held->next = NULL;
    held->due_ns = now_ns() + way->delay_ns;
    held->length = length;
    memcpy(held->frame, frame, length);
    *way->last = held;
    way->last = &held->next;
    way->bytes += length;
}

/* What has been held back long enough. */
static void let_go(struct way *way, int to)
{
    while (way->first && way->first->due_ns <= now_ns()) {
        struct held *held = way->first;
        deliver(to, held->frame, held->length);
        way->first = held->next;
        if (!way->first)
            way->last = &way->first;
        way->bytes -= held->length;
        free(held);
    }
}

/* Until the next frame is due; NULL: there is none. */
static const struct timespec *patience(const struct way ways[2], struct timespec *wait)
{
    int64_t due = INT64_MAX, left;

    for (int i = 0; i < 2; i++)
        if (ways[i].first && ways[i].first->due_ns < due)
            due = ways[i].first->due_ns;
    if (due == INT64_MAX)
        return NULL;
    left = due - now_ns();
    left = left < 0 ? 0 : left;
    *wait = (struct timespec){left / 1000000000, left % 1000000000};
    return wait;
}

/* All that is there now. */
static void forward(int from, int to, struct damage *damage, struct way *way)
{
    static uint8_t room[sizeof(struct virtio_net_hdr) + FRAME_MAX];
    const size_t note = sizeof(struct virtio_net_hdr);
    ssize_t length;

    while ((length = recv(from, room, sizeof(room), MSG_DONTWAIT)) > (ssize_t)note) {
        pass(damage, room + note, (size_t)length - note);
        if (way->delay_ns)
            hold(way, room, (size_t)length);
        else
            deliver(to, room, (size_t)length);
    }
}

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

int main(int argc, char **argv)
{
    if (argc != 6 && argc != 7) {
        fprintf(stderr, "usage: bad_cable INTERFACE INTERFACE EVERY LEAST SEED [DELAY_US]\n");
        return 2;
    }
    struct damage damage = {.every = strtoull(argv[3], NULL, 10),
                            .least = strtoull(argv[4], NULL, 10),
                            .random = strtoull(argv[5], NULL, 10)};
    damage.left = 2 * damage.every; /* let the two sides greet each other */
    struct pollfd ends[2] = {{.events = POLLIN}, {.events = POLLIN}};
    struct way ways[2] = {{0}, {0}};
    struct timespec wait;
    sigset_t term, none;

    for (int i = 0; i < 2; i++)
        ways[i] = (struct way){.delay_ns = argc == 7 ? strtoll(argv[6], NULL, 10) * 1000 : 0, .last = &ways[i].first};
    sigemptyset(&none);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop}, NULL);
    for (int i = 0; i < 2; i++)
        if ((ends[i].fd = open_end(argv[1 + i])) < 0)
            return 1;
    puts("joined");
    fflush(stdout);
    while (!stopped) {
        if (ppoll(ends, 2, patience(ways, &wait), &none) < 0)
            continue;
        for (int i = 0; i < 2; i++) {
            if (ends[i].revents)
                forward(ends[i].fd, ends[1 - i].fd, &damage, &ways[i]);
            let_go(&ways[i], ends[1 - i].fd);
        }
    }
    printf("%" PRIu64 " segments damaged\n", damage.done);
    return 0;
}
