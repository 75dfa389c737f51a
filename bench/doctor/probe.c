/*
 * One way between two rails, tried with TCP as Weft uses it: bound to the rail's address and interface, to the one
 * port. A packet has come through when the other kernel has acknowledged it, or has reset the connection because of it;
 * so nobody has to read it there.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "parts.h"

#define ESTABLISHED 1 /* of tcpi_state; the C library has a name for it, in a header that clashes with the kernel's */
#define SLICE_MS 5
#define HEADERS_4 40
#define HEADERS_6 60
#define SIZES 7

/* Packets that are tried where the largest one gets lost: jumbo frames, Ethernet, tunnels, the least of IPv6, of IPv4.
 */
static const int sizes[SIZES] = {8000, 4000, 1500, 1450, 1400, 1280, 576};

/* A connection of a probe. */
struct line {
    int fd, packet; /* -1: closed; bytes of the packet that it sends, with headers */
    bool came;
};

static int64_t now_ns(void)
{
    return wf_clock_now(&wf_clock_monotonic);
}

static int headers_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? HEADERS_6 : HEADERS_4;
}

/* 0 once it is connected; -ETIMEDOUT: nothing came back at all. */
static int wait_connected(int fd, int64_t deadline_ns)
{
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    int left_ms = (int)((deadline_ns - now_ns()) / WF_NS_PER_MS), code = 0;
    socklen_t length = sizeof code;

    if (poll(&entry, 1, left_ms > 0 ? left_ms : 0) <= 0)
        return -ETIMEDOUT;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length);
    return -code;
}

/* A socket as the library makes one for a channel; it leaves no trace in the kernel when it is closed. */
static int new_socket(const struct doctor_way *way, const struct sockaddr_storage *from, socklen_t length, bool own)
{
    struct linger at_once = {.l_onoff = 1};
    int fd = socket(from->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    /* A system that forbids it to users lets Weft do without, too. */
    if (!own && way->interface[0])
        (void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, way->interface, (socklen_t)strlen(way->interface));
    if (bind(fd, (const struct sockaddr *)from, length) == 0)
        return fd;
    int result = -errno;
    close(fd);
    return result;
}

/* Starts to connect. `packet`: of no more bytes than this; 0: as the interface has it. A descriptor or an error. */
static int call(const struct doctor_way *way, int packet)
{
    struct sockaddr_storage from, to;
    socklen_t from_length, to_length;

    if (doctor_address(way->from, 0, &from, &from_length) != 0 ||
        doctor_address(way->to, way->port, &to, &to_length) != 0)
        return -EINVAL;
    int fd = new_socket(way, &from, from_length, doctor_is_own(&to, to_length));
    int segment = packet - headers_of(&from);
    if (fd >= 0 && packet)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, to_length) == 0 || errno == EINPROGRESS)
        return fd;
    int result = -errno;
    close(fd);
    return result;
}

/* Sends as much as fits into one packet. */
static void send_packet(struct line *line, int headers)
{
    static const char bytes[65536];
    struct tcp_info info = {0};
    socklen_t length = sizeof info;

    getsockopt(line->fd, IPPROTO_TCP, TCP_INFO, &info, &length);
    /* Options of TCP are headers, too: what the kernel takes for payload leaves room for them. */
    size_t segment = info.tcpi_snd_mss < sizeof bytes ? info.tcpi_snd_mss : sizeof bytes;
    ssize_t sent = send(line->fd, bytes, segment, MSG_NOSIGNAL);
    line->packet = (int)segment + headers + (info.tcpi_options & TCPI_OPT_TIMESTAMPS ? 12 : 0);
    line->came = sent < 0 && (errno == ECONNRESET || errno == EPIPE);
}

static bool has_come(const struct line *line)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;

    if (getsockopt(line->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return false;
    return info.tcpi_state != ESTABLISHED || (info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0);
}

/* Waits until all have come, or the patience is over. */
static void watch(struct line *lines, int count)
{
    int64_t deadline_ns = now_ns() + DOCTOR_PATIENCE_MS * WF_NS_PER_MS;
    bool all;

    do {
        all = true;
        for (int i = 0; i < count; i++) {
            if (lines[i].fd >= 0 && !lines[i].came)
                lines[i].came = has_come(&lines[i]);
            all &= lines[i].fd < 0 || lines[i].came;
        }
        if (!all)
            poll(NULL, 0, SLICE_MS); /* the kernel tells of an acknowledgement only when it is asked */
    } while (!all && now_ns() < deadline_ns);
}

/* The largest of the smaller packets that comes through; 0: none does. They are tried at the same time. */
static int find_passing(const struct doctor_way *way, int packet, int headers)
{
    struct line lines[SIZES];
    int64_t deadline_ns = now_ns() + DOCTOR_PATIENCE_MS * WF_NS_PER_MS;
    int passed = 0;

    for (int i = 0; i < SIZES; i++)
        lines[i] = (struct line){.fd = sizes[i] < packet ? call(way, sizes[i]) : -1};
    for (int i = 0; i < SIZES; i++) {
        if (lines[i].fd >= 0 && wait_connected(lines[i].fd, deadline_ns) == 0) {
            send_packet(&lines[i], headers);
        } else if (lines[i].fd >= 0) {
            close(lines[i].fd);
            lines[i].fd = -1;
        }
    }
    watch(lines, SIZES);
    for (int i = 0; i < SIZES; i++) {
        if (lines[i].fd >= 0)
            close(lines[i].fd);
        if (lines[i].came && sizes[i] > passed)
            passed = sizes[i];
    }
    return passed;
}

static void probe_route(const struct doctor_way *way, struct doctor_probe *probe)
{
    struct sockaddr_storage from, to;
    socklen_t from_length, to_length;

    if (doctor_address(way->from, 0, &from, &from_length) == 0 && doctor_address(way->to, 0, &to, &to_length) == 0 &&
        !doctor_is_own(&to, to_length))
        probe->route = doctor_route(&from, &to, probe->leaves);
}

void doctor_probe(const struct doctor_way *way, struct doctor_probe *probe)
{
    struct line line = {.fd = call(way, 0)};
    struct sockaddr_storage from;
    socklen_t length;

    *probe = (struct doctor_probe){.connected = line.fd < 0 ? line.fd : 0};
    probe_route(way, probe);
    if (line.fd < 0)
        return;
    doctor_address(way->from, 0, &from, &length);
    probe->connected = wait_connected(line.fd, now_ns() + DOCTOR_PATIENCE_MS * WF_NS_PER_MS);
    if (probe->connected == 0) {
        send_packet(&line, headers_of(&from));
        watch(&line, 1);
        probe->packet = line.packet;
        probe->passed = line.came ? line.packet : find_passing(way, line.packet, headers_of(&from));
    }
    close(line.fd);
}
