/*
 * parts.h: what the files of this room share: findings, rails, and probes of a way from one rail to another.
 */
#ifndef WF_BENCH_DOCTOR_PARTS_H
#define WF_BENCH_DOCTOR_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "bench/nodes/asking.h"
#include "bench/plan/options.h"
#include "weft.h"

#define DOCTOR_RAILS_MAX 64
#define DOCTOR_PATIENCE_MS 3000 /* for an answer to a packet: TCP has sent it four times by then */

/* Owner: bench_doctor(). */
struct doctor {
    const struct bench_options *options;
    int node;         /* which one this is; -1: no other node is asked about */
    json_t *findings; /* [{"node", "check", "ok", "text", "remedy"}]; node: null where it is -1 */
    int faults;       /* of these */
    FILE *people;     /* where findings are printed as they come; NULL: nowhere */
    int port;         /* where nodes listen: the setting's, or the address's */
    bool port_taken;  /* by a program of this machine */
    bool unusable;    /* the settings are wrong: there can be no session */
    struct weft_interface_info interfaces[DOCTOR_RAILS_MAX];
    int interface_count; /* of this machine: rails first */
};

/* --- findings.c --- */

/* A check that found nothing; `format` says what is there. */
void doctor_good(struct doctor *doctor, const char *check, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A fault; `remedy` is what to do. */
void doctor_fault(struct doctor *doctor, const char *check, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* What the other node has found of itself. */
void doctor_heard(struct doctor *doctor, const json_t *finding);
/* The last line, and the file of --json. Returns the exit status. */
int doctor_conclude(struct doctor *doctor);

/* --- this machine --- */

void doctor_check_limits(struct doctor *doctor);     /* limits.c: locked memory, descriptors, processors */
void doctor_check_disk(struct doctor *doctor);       /* disk.c: where results and logs go */
void doctor_check_interfaces(struct doctor *doctor); /* interfaces.c */
void doctor_check_port(struct doctor *doctor);       /* port.c */

/* How many processors a control group leaves, by the text of its cpu.max ("150000 100000"); negative: no limit. */
double doctor_quota(const char *text);

/* --- one way between two rails --- */

struct doctor_way {
    char from[64], interface[32], to[64]; /* numeric addresses */
    int port;
    bool direct; /* no other rail of this node is in the subnet of `to`: a route can tell which one is meant */
};

struct doctor_probe {
    int route;       /* 0, or what the kernel says of a route: -ENETUNREACH */
    char leaves[32]; /* the interface by which packets leave that are bound to the address alone; "": not known */
    int connected;   /* 0, -ETIMEDOUT no answer at all, -ECONNREFUSED, ... */
    int packet;      /* bytes of the largest packet, with headers of IP and TCP; 0: not connected */
    int passed;      /* bytes of the largest packet that came through; `packet`: there is no hole; 0: none did */
};

/* numeric address and port. 0 or -EINVAL. address.c */
int doctor_address(const char *text, int port, struct sockaddr_storage *out, socklen_t *length);
bool doctor_is_own(const struct sockaddr_storage *address, socklen_t length);

/* Equal for processes that share addresses and ports: of one machine and one network namespace. "": not known. */
#define DOCTOR_HOME 128
void doctor_home(char *text, size_t room);

/* By which interface packets leave from one address to another. 0, or -ENETUNREACH and the like. route.c */
int doctor_route(const struct sockaddr_storage *from, const struct sockaddr_storage *to, char leaves[32]);

/* Opens TCP connections on the way, and sends a packet of the largest size, and smaller ones where it gets lost. Takes
 * up to 3 times DOCTOR_PATIENCE_MS. probe.c */
void doctor_probe(const struct doctor_way *way, struct doctor_probe *probe);

/* For the other node, and back. way.c */
json_t *doctor_way_to_json(const struct doctor_way *way);
int doctor_way_from_json(const json_t *json, struct doctor_way *way);
json_t *doctor_probe_to_json(const struct doctor_probe *probe);
void doctor_probe_from_json(const json_t *json, struct doctor_probe *probe);

/* What a probe says, as findings. `from`, `to`: the nodes. judge.c */
void doctor_judge(struct doctor *doctor, const struct doctor_way *way, const struct doctor_probe *probe, int from,
                  int to);

/* --- the other node --- */

/* path.c: asks as node1. 0, or -EINVAL and why: the address is none. */
int doctor_check_path(struct doctor *doctor, struct wf_status *status);
/* serve.c: answers as node0, to one node */
int doctor_serve(struct doctor *doctor, struct wf_status *status);

/* Nanoseconds since 1970, as this machine's clock shows them. */
int64_t doctor_wall_ns(void);
/* What is wrong with another version than this one's and with the clocks; judge.c. */
void doctor_judge_version(struct doctor *doctor, const char *theirs);
void doctor_judge_clock(struct doctor *doctor, int64_t offset_ns, int64_t error_ns);

#endif
