/* The path to another node, as node1: a session first, then every pair of its rails, both ways. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/nodes/hello.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "parts.h"

#define CLOCK_ROUNDS 8
#define FINDINGS_MAX 64

/* Owner: doctor_check_path(). */
struct path {
    struct doctor *doctor;
    struct bench_asking asking;
    json_t *answer;
    int their_port;
    bool hello_said, same_machine;   /* same_machine: and the same network namespace */
    int listeners[DOCTOR_RAILS_MAX]; /* on the rails of this node, so that the other one can try the way back */
    int listener_count;
};

/* --- the session --- */

/* What ended the attempt is known by its code; the library's text has the rest. */
static void judge_session(struct path *path, const struct wf_status *status)
{
    static const struct {
        int code;
        const char *check, *remedy;
    } known[] = {
        {-EACCES, "key", "copy one key file to both nodes, with mode 600, and name it on both (--key-file)"},
        {-ENOENT, "key", "copy one key file to both nodes, with mode 600, and name it on both (--key-file)"},
        {-ECONNREFUSED, "listen",
         "start weft doctor --listen on the other node; if it runs, a firewall rejects the port"},
        {-ETIMEDOUT, "firewall",
         "start weft doctor --listen on the other node, let its TCP port in there (nft list ruleset, iptables -L -n, "
         "the "
         "provider's rules), or try another address of it"},
        {-EHOSTUNREACH, "reach", "compare cables, VLANs, addresses and subnet masks (ip addr, ip route get ADDRESS)"},
        {-ENETUNREACH, "route", "add a route to it (ip route add)"},
        {-ENOEXEC, "listen", "start weft doctor --listen on the other node"},
        {-EPROTO, "version", "use the same version of weft on both nodes, and weft doctor --listen on the other one"},
    };

    /* The connects were refused until the time was over. */
    int code = strstr(status->text, wf_strerror(ECONNREFUSED)) ? -ECONNREFUSED : status->code;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].code == code) {
            doctor_fault(path->doctor, known[i].check, known[i].remedy, "%s", status->text);
            return;
        }
    doctor_fault(path->doctor, "session", "start weft doctor --listen on the other node", "%s", status->text);
}

static int say_hello(struct path *path, struct wf_status *status)
{
    char home[DOCTOR_HOME];

    doctor_home(home, sizeof home);
    json_t *hello = json_pack("{s:s, s:s}", "hello", BENCH_HELLO_DOCTOR, "version", weft_version());
    int result = bench_asking_hello(&path->asking, "doctor", hello, &path->answer, status);
    const char *first = json_string_value(json_object_get(path->answer, "hello"));
    const char *theirs = json_string_value(json_object_get(path->answer, "home"));

    if (result == 0 && (!first || strcmp(first, BENCH_HELLO_DOCTOR) != 0))
        result = wf_fail(status, -EPROTO, "the other node speaks '%.40s', not " BENCH_HELLO_DOCTOR,
                         first ? first : "nothing known");
    if (result)
        return result;
    path->their_port = (int)json_integer_value(json_object_get(path->answer, "port"));
    path->same_machine = home[0] && theirs && strcmp(home, theirs) == 0;
    if (!path->same_machine)
        doctor_check_port(path->doctor);
    doctor_judge_version(path->doctor, bench_heard_text(path->answer, "version"));
    return 0;
}

static int ask(struct path *path, json_t *question, struct wf_status *status)
{
    return bench_asking_ask(&path->asking, question, &path->answer, status);
}

/* Of several readings the one with the shortest round trip is the most exact. */
static int compare_clocks(struct path *path, struct wf_status *status)
{
    int64_t best = INT64_MAX, offset = 0;

    for (int i = 0; i < CLOCK_ROUNDS; i++) {
        int64_t asked = doctor_wall_ns();
        int result = ask(path, json_pack("{s:b}", "clock", 1), status);
        int64_t back = doctor_wall_ns();
        if (result)
            return result;
        int64_t theirs = json_integer_value(json_object_get(path->answer, "wall_ns"));
        if (back - asked < best) {
            best = back - asked;
            offset = theirs - (asked + best / 2);
        }
    }
    doctor_judge_clock(path->doctor, offset, best / 2);
    return 0;
}

/* One at a time: where large packets get lost, small ones have to do. */
static int hear_findings(struct path *path, struct wf_status *status)
{
    int result = 0;

    for (int i = 0; result == 0 && i < FINDINGS_MAX; i++) {
        result = ask(path, json_pack("{s:i}", "finding", i), status);
        const json_t *finding = json_object_get(path->answer, "finding_is");
        if (result || !json_is_object(finding))
            break;
        doctor_heard(path->doctor, finding);
    }
    return result;
}

/* --- the rails --- */

/* Listens at the rail's address and interface, as the library would: where two rails are in one subnet, an answer would
 * else leave by the other one. The kernel answers; nobody accepts. Returns the port, or 0: the way back cannot be
 * tried. */
static int listen_at(struct path *path, const char *address, const char *interface)
{
    /* Both nodes cannot have the port on one machine. */
    int port = path->same_machine ? 0 : path->their_port, on = 1;
    struct sockaddr_storage local;
    socklen_t length;

    if (doctor_address(address, port, &local, &length) != 0 || path->listener_count == DOCTOR_RAILS_MAX)
        return 0;
    int fd = socket(local.ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!path->same_machine)
        (void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface));
    if (fd < 0 || bind(fd, (struct sockaddr *)&local, length) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&local, &length) != 0) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    path->listeners[path->listener_count++] = fd;
    return ntohs(((struct sockaddr_in *)&local)->sin_port); /* at the same place in both families */
}

static const char *interface_of(const struct doctor *doctor, const char *address)
{
    for (int i = 0; i < doctor->interface_count; i++)
        if (strcmp(doctor->interfaces[i].address, address) == 0)
            return doctor->interfaces[i].interface;
    return "";
}

static int try_back(struct path *path, const struct weft_rail_stats *rail, int port, bool direct,
                    struct wf_status *status)
{
    struct doctor_way way = {.port = port, .direct = direct};
    struct doctor_probe probe;

    bench_copy_text(way.from, sizeof way.from, rail->remote);
    bench_copy_text(way.to, sizeof way.to, rail->local);
    int result = ask(path, json_pack("{s:o}", "probe", doctor_way_to_json(&way)), status);
    const char *interface = json_string_value(json_object_get(path->answer, "interface"));
    if (result)
        return result;
    bench_copy_text(way.interface, sizeof way.interface, interface ? interface : "");
    doctor_probe_from_json(json_object_get(path->answer, "probed"), &probe);
    doctor_judge(path->doctor, &way, &probe, 0, 1);
    return 0;
}

static int check_pair(struct path *path, const struct weft_rail_stats *rail, bool direct, struct wf_status *status)
{
    struct doctor_way way = {.port = path->their_port, .direct = direct};
    struct doctor_probe probe;

    if (strcmp(rail->local, rail->remote) == 0 && !path->same_machine) {
        doctor_fault(path->doctor, "address", "give one of them another address, or leave that rail out (--rails ^...)",
                     "both nodes have a rail with the address %s, as each machine with Docker has 172.17.0.1",
                     rail->local);
        return 0;
    }
    bench_copy_text(way.from, sizeof way.from, rail->local);
    bench_copy_text(way.to, sizeof way.to, rail->remote);
    bench_copy_text(way.interface, sizeof way.interface, interface_of(path->doctor, rail->local));
    doctor_probe(&way, &probe);
    doctor_judge(path->doctor, &way, &probe, 1, 0);
    int port = listen_at(path, rail->local, way.interface);
    if (port == 0)
        return 0;
    return try_back(path, rail, port, direct, status);
}

/* Do several pairs of rails lie in one subnet? Then the kernel's routes name one interface for all, and Weft's sockets,
 * which are bound to theirs, do not mind. Compared is what the setting says that rails are for: the subnet of IPv4's
 * most common masks, 24 bits, and IPv6's 64. */
static bool in_one_subnet(const char *one, const char *other)
{
    struct sockaddr_storage a, b;
    socklen_t length;

    if (doctor_address(one, 0, &a, &length) != 0 || doctor_address(other, 0, &b, &length) != 0 ||
        a.ss_family != b.ss_family)
        return false;
    if (a.ss_family == AF_INET6)
        return memcmp(&((struct sockaddr_in6 *)&a)->sin6_addr, &((struct sockaddr_in6 *)&b)->sin6_addr, 8) == 0;
    return memcmp(&((struct sockaddr_in *)&a)->sin_addr, &((struct sockaddr_in *)&b)->sin_addr, 3) == 0;
}

static int check_pairs(struct path *path, struct wf_status *status)
{
    struct weft_rail_stats *rails = calloc(DOCTOR_RAILS_MAX, sizeof *rails);
    int count = rails ? weft_peer_rails(path->asking.link.peer, rails, DOCTOR_RAILS_MAX) : 0, result = 0;

    for (int i = 0; result == 0 && i < count && i < DOCTOR_RAILS_MAX; i++) {
        bool direct = true;
        for (int j = 0; j < count && j < DOCTOR_RAILS_MAX; j++)
            direct &= j == i || !in_one_subnet(rails[i].local, rails[j].local);
        result = bench_asking_check(&path->asking, status);
        if (result == 0)
            result = check_pair(path, &rails[i], direct, status);
    }
    free(rails);
    return result;
}

static int ask_all(struct path *path, struct wf_status *status)
{
    int result = say_hello(path, status);

    if (result == 0)
        result = compare_clocks(path, status);
    if (result == 0)
        result = hear_findings(path, status);
    if (result == 0)
        result = check_pairs(path, status);
    if (result == 0)
        result = ask(path, json_pack("{s:i}", "verdict", path->doctor->faults), status);
    return result;
}

int doctor_check_path(struct doctor *doctor, struct wf_status *status)
{
    struct path path = {.doctor = doctor};
    int result = bench_asking_connect(&path.asking, doctor->options, status);
    bool misused = result == -EINVAL;

    if (result == 0)
        result = ask_all(&path, status);
    if (result && !misused)
        judge_session(&path, status);
    for (int i = 0; i < path.listener_count; i++)
        close(path.listeners[i]);
    json_decref(path.answer);
    bench_asking_close(&path.asking, result ? status->text : NULL);
    return misused ? result : 0;
}
