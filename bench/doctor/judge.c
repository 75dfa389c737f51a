/* What is wrong, in words, where both nodes have a part in it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parts.h"

#define CLOCK_MOST_NS 500000000ll /* of clocks that a service keeps, the worst are apart by a tenth of that */

static void judge_connect(struct doctor *doctor, const struct doctor_way *way, int result, const char *between, int to)
{
    char remedy[300];

    if (result == -ETIMEDOUT) {
        snprintf(remedy, sizeof remedy,
                 "let TCP port %d in at %s of node%d, and out here (nft list ruleset, iptables -L -n, the provider's "
                 "rules); else compare VLANs and cables, or leave the rail out (--rails)",
                 way->port, way->to, to);
        doctor_fault(doctor, "firewall", remedy,
                     "%s: no answer within %d s: a firewall drops the packets, or they lead nowhere", between,
                     DOCTOR_PATIENCE_MS / 1000);
    } else if (result == -ECONNREFUSED) {
        snprintf(
            remedy, sizeof remedy,
            "let TCP port %d in at %s of node%d; if nothing refuses it there, name the rails on both nodes (--rails)",
            way->port, way->to, to);
        doctor_fault(doctor, "firewall", remedy, "%s: refused: a firewall rejects it, or nothing listens there",
                     between);
    } else if (result == -ENETUNREACH) {
        doctor_fault(doctor, "route", "add the route (ip route add), or leave the rail out (--rails)",
                     "%s: there is no route", between);
    } else {
        doctor_fault(doctor, "reach", "compare cables, VLANs, addresses and subnet masks of both (ip addr, ip neigh)",
                     "%s: %s", between, wf_strerror(result));
    }
}

static bool is_asymmetric(const struct doctor_way *way, const struct doctor_probe *probe)
{
    return way->direct && way->interface[0] && probe->leaves[0] && strcmp(probe->leaves, way->interface) != 0;
}

static void judge_route(struct doctor *doctor, const struct doctor_way *way, const struct doctor_probe *probe,
                        const char *between, int from)
{
    char remedy[300];

    snprintf(remedy, sizeof remedy,
             "on node%d: ip route get %s from %s shows it; remove that route, or add one for the address: ip rule add "
             "from %s table 101; ip route add %s dev %s table 101",
             from, way->to, way->from, way->from, way->to, way->interface);
    doctor_fault(doctor, "route", remedy,
                 "%s: packets leave by %s instead of %s: the way there and the way back differ (asymmetric)", between,
                 probe->leaves, way->interface);
}

static void judge_packets(struct doctor *doctor, const struct doctor_way *way, const struct doctor_probe *probe,
                          const char *between)
{
    char remedy[300], passing[64] = "none of the smaller ones that were tried comes through";

    if (probe->passed > 0)
        snprintf(passing, sizeof passing, "those of %d come through", probe->passed);
    snprintf(remedy, sizeof remedy,
             "have the switches and tunnels between them pass %d, or give both ends what passes: ip link set %s mtu %d",
             probe->packet, way->interface[0] ? way->interface : "INTERFACE", probe->passed ? probe->passed : 1280);
    doctor_fault(doctor, "mtu", remedy, "%s: packets of %d bytes get lost without a word, %s", between, probe->packet,
                 passing);
}

void doctor_judge(struct doctor *doctor, const struct doctor_way *way, const struct doctor_probe *probe, int from,
                  int to)
{
    char between[256];

    snprintf(between, sizeof between, "%s (%s) of node%d to %s of node%d", way->from,
             way->interface[0] ? way->interface : "its interface", from, way->to, to);
    if (is_asymmetric(way, probe))
        judge_route(doctor, way, probe, between, from);
    if (probe->connected)
        judge_connect(doctor, way, probe->connected, between, to);
    else if (probe->passed < probe->packet)
        judge_packets(doctor, way, probe, between);
    else if (!is_asymmetric(way, probe))
        doctor_good(doctor, "way", "%s: connects, packets of %d bytes come through", between, probe->packet);
}

/* --- versions and clocks --- */

static int compare_versions(const char *one, const char *other)
{
    int a[3] = {0}, b[3] = {0};

    sscanf(one, "%d.%d.%d", &a[0], &a[1], &a[2]);
    sscanf(other, "%d.%d.%d", &b[0], &b[1], &b[2]);
    for (int i = 0; i < 3; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

void doctor_judge_version(struct doctor *doctor, const char *theirs)
{
    int order = compare_versions(theirs, weft_version());
    char remedy[80];

    if (strcmp(theirs, weft_version()) == 0) {
        doctor_good(doctor, "version", "both run weft %s", theirs);
        return;
    }
    snprintf(remedy, sizeof remedy, "install weft %.20s on node%d, too", order < 0 ? weft_version() : theirs,
             order < 0 ? 1 - doctor->node : doctor->node);
    doctor_fault(doctor, "version", remedy, "node%d runs weft %.20s, and node%d weft %.20s", 1 - doctor->node, theirs,
                 doctor->node, weft_version());
}

int64_t doctor_wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

void doctor_judge_clock(struct doctor *doctor, int64_t offset_ns, int64_t error_ns)
{
    int64_t apart = llabs(offset_ns);

    if (apart - error_ns <= CLOCK_MOST_NS)
        doctor_good(doctor, "clock", "the nodes' clocks are apart by %.3f s, to within %.3f s", (double)apart / 1e9,
                    (double)error_ns / 1e9);
    else
        doctor_fault(doctor, "clock", "have both set by NTP or PTP (timedatectl set-ntp true; chronyc tracking)",
                     "node%d's clock is %.1f s %s node%d's, so the times in their results and logs do not fit together",
                     1 - doctor->node, (double)apart / 1e9, offset_ns > 0 ? "ahead of" : "behind", doctor->node);
}
