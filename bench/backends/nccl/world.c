#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/machine/memory_limits.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"

#define ID_TEXT (2 * NCCL_ID_BYTES + 1)

static int set_variables(struct nccl_world *world, const struct bench_link *link, struct wf_status *status)
{
    char host[16];

    /* Two hosts, as far as NCCL knows: it would pass by the network otherwise, and refuse a GPU that both use. */
    snprintf(host, sizeof host, "weft-node%d", link->node);
    return nccl_variables_set(&world->variables, link->context, world->one_machine ? host : NULL, status);
}

/* --- the other node --- */

static void id_to_text(const nccl_id *id, char *text)
{
    for (int i = 0; i < NCCL_ID_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)id->internal[i]);
}

static bool id_from_json(const json_t *text, nccl_id *id)
{
    return bench_heard_bytes(text, (unsigned char *)id->internal, NCCL_ID_BYTES) == NCCL_ID_BYTES;
}

static json_t *introduction(const struct nccl_world *world, const struct nccl_library *library,
                            const struct bench_link *link, const struct nccl_ranks *ranks)
{
    json_t *gpus = json_array();
    char boot[64];

    bench_boot_id(boot, sizeof boot);
    for (uint32_t i = 0; i < ranks->own[link->node]; i++) {
        const struct weft_gpu_info *gpu = &link->gpus.infos[ranks->place[ranks->first[link->node] + i]];
        json_array_append_new(gpus, json_string(gpu->pci));
    }
    return json_pack("{s:s, s:b, s:s, s:s, s:o}", "nccl", library->version, "emulated", library->emulated, "boot_id",
                     boot, "mps", bench_mps_name(world->mps[link->node]), "gpus", gpus);
}

/* Texts travel in the same order at both nodes. */
static int swap(const struct bench_link *link, struct bench_control *control, const json_t *mine, json_t **theirs,
                struct wf_status *status)
{
    int result =
        link->node == 1 ? bench_control_say(control, mine, status) : bench_control_hear(control, theirs, status);

    if (result)
        return result;
    return link->node == 1 ? bench_control_hear(control, theirs, status) : bench_control_say(control, mine, status);
}

static int compare(struct nccl_world *world, int node, const json_t *mine, const json_t *theirs,
                   struct wf_status *status)
{
    const char *one = json_string_value(json_object_get(mine, "nccl"));
    const char *other = json_string_value(json_object_get(theirs, "nccl"));
    const char *mps = json_string_value(json_object_get(theirs, "mps"));
    const json_t *gpu, *known;
    size_t i, k;

    if (!one || !other || !mps)
        return wf_fail(status, -EPROTO, "the other node says nothing of its NCCL: use the same build on both");
    if (strcmp(one, other) != 0 ||
        json_is_true(json_object_get(mine, "emulated")) != json_is_true(json_object_get(theirs, "emulated")))
        return wf_fail(status, -EPROTO,
                       "NCCL is %.20s here and %.20s at the other node%s: use the same library on both", one, other,
                       strcmp(one, other) == 0 ? " (and one of them a stand-in)" : "");
    world->mps[1 - node] = strcmp(mps, "on") == 0     ? BENCH_MPS_ON
                           : strcmp(mps, "dead") == 0 ? BENCH_MPS_DEAD
                                                      : BENCH_MPS_OFF;
    if (world->mps[0] != world->mps[1])
        return wf_fail(status, -EINVAL,
                       "MPS is %s at node0 and %s at node1: unlike cannot be compared: start it on both or on neither",
                       bench_mps_name(world->mps[0]), bench_mps_name(world->mps[1]));
    json_array_foreach(json_object_get(mine, "gpus"), i, gpu)
        json_array_foreach(json_object_get(theirs, "gpus"), k, known)
            world->shared_gpus += world->one_machine && json_equal(gpu, known);
    return 0;
}

/* Node0 makes the id, once its variables are set: it names an address of an interface. */
static int share_id(struct nccl_world *world, const struct nccl_library *library, const struct bench_link *link,
                    struct bench_control *control, struct wf_status *status)
{
    char text[ID_TEXT], why[160];
    json_t *message = NULL;
    int result;

    if (link->node == 1) {
        result = bench_control_hear(control, &message, status);
        if (result == 0 && !id_from_json(json_object_get(message, "nccl_id"), &world->id))
            result = wf_fail(status, -EPROTO, "the other node sent no id for NCCL: use the same build on both");
        json_decref(message);
        return result;
    }
    result = library->GetUniqueId(&world->id);
    if (result != NCCL_SUCCESS)
        return wf_fail(status, -EIO, "NCCL makes no id: %s", nccl_library_error(library, result, why, sizeof why));
    id_to_text(&world->id, text);
    message = json_pack("{s:s}", "nccl_id", text);
    result = bench_control_say(control, message, status);
    json_decref(message);
    return result;
}

int nccl_world_join(struct nccl_world *world, const struct nccl_library *library, const struct bench_link *link,
                    const struct nccl_ranks *ranks, struct bench_control *control, struct wf_status *status)
{
    json_t *theirs = NULL;

    memset(world, 0, sizeof *world);
    world->mps[link->node] = bench_mps_look(world->mps_folder, sizeof world->mps_folder);
    json_t *mine = introduction(world, library, link, ranks);
    int result = swap(link, control, mine, &theirs, status);
    if (result == 0) {
        const char *boot = json_string_value(json_object_get(mine, "boot_id"));
        world->one_machine =
            boot && boot[0] && json_equal(json_object_get(mine, "boot_id"), json_object_get(theirs, "boot_id"));
        result = compare(world, link->node, mine, theirs, status);
    }
    json_decref(mine);
    json_decref(theirs);
    if (result == 0)
        result = set_variables(world, link, status);
    return result ? result : share_id(world, library, link, control, status);
}

/* --- for results --- */

json_t *nccl_world_to_json(const struct nccl_world *world, const struct nccl_library *library, int node)
{
    return json_pack("{s:s, s:s, s:o, s:b, s:o, s:s, s:o, s:b, s:i, s:b}", "backend",
                     library->emulated ? "nccl (emulated)" : "nccl", "version", library->version, "library",
                     bench_heard_string(library->path), "emulated", library->emulated, "variables",
                     nccl_variables_to_json(&world->variables), "mps", bench_mps_name(world->mps[node]), "mps_folder",
                     bench_heard_string(world->mps_folder), "one_machine", world->one_machine, "shared_gpus",
                     (int)world->shared_gpus, "time_sliced", (int)nccl_world_time_sliced(world));
}
