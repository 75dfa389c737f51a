/* Slurm's variables. It gives no port: one comes from the user, or from --resv-ports. */
#include "collective/rendezvous/source.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool wf_slurm_first_host(const char *list, char *out, uint32_t room)
{
    uint32_t length = 0;
    for (const char *at = list; *at && *at != ','; at++) {
        if (*at == '[') { /* the first number of the brackets */
            const char *close = strchr(at, ']');
            if (!close)
                return false;
            for (at++; isdigit((unsigned char)*at) && length + 1 < room; at++)
                out[length++] = *at;
            if (*at != '-' && *at != ',' && *at != ']')
                return false;
            at = close;
        } else if (*at == ']' || isspace((unsigned char)*at) || length + 1 >= room) {
            return false;
        } else {
            out[length++] = *at;
        }
    }
    out[length] = '\0';
    return length > 0;
}

/* Rank 0 runs on the first node of the step. */
static bool first_node(const struct wf_meet_env *env, char *out, uint32_t room, const char **variable)
{
    static const char *const lists[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const char *list = wf_meet_get(env, lists[i]);
        *variable = lists[i];
        if (list && wf_slurm_first_host(list, out, room))
            return true;
    }
    const char *launcher = wf_meet_get(env, "SLURM_LAUNCH_NODE_IPADDR");
    *variable = "SLURM_LAUNCH_NODE_IPADDR";
    if (launcher)
        snprintf(out, room, "%s", launcher);
    return launcher != NULL;
}

/* 1 and the port; 0: nobody has set one. */
static int port_of(const struct wf_meet_env *env, uint32_t *port, const char **variable, struct weft_error *err)
{
    *variable = "MASTER_PORT";
    int result = wf_meet_number(env, "MASTER_PORT", 65535, port, err);
    if (result != 0)
        return result < 0 ? result : *port > 0;
    const char *reserved = wf_meet_get(env, "SLURM_STEP_RESV_PORTS");
    *variable = "SLURM_STEP_RESV_PORTS";
    *port = reserved ? (uint32_t)strtoul(reserved, NULL, 10) : 0; /* "12000-12003", "12000,12007" */
    return *port > 0 && *port < 65536;
}

int wf_find_slurm(struct wf_meet *meet, const struct wf_meet_env *env, struct wf_found *found, struct weft_error *err)
{
    (void)meet;
    const char *size = wf_meet_get(env, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    int result = wf_meet_numbers(env, "SLURM_PROCID", size, "SLURM_LOCALID", found, err);
    if (result <= 0)
        return result;
    char node[256];
    const char *by = "MASTER_ADDR", *port_by, *host = wf_meet_get(env, by);
    uint32_t port = 0;
    if (!host && first_node(env, node, sizeof node, &by))
        host = node;
    result = port_of(env, &port, &port_by, err);
    if (result < 0)
        return result;
    if (host && result == 1 && wf_meet_place(found, host, port)) {
        found->way = WF_MEET_HOST;
        snprintf(found->where, sizeof found->where, "%s and %s", by, port_by);
    } else {
        snprintf(
            found->lacks, sizeof found->lacks,
            "Slurm gives no port: set MASTER_PORT, start with srun --mpi=pmix, --mpi=pmi2 or --resv-ports, or name a "
            "rendezvous: HOST:PORT or file:PATH");
    }
    return 1;
}
