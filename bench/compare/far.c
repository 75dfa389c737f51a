/* node1 of weft peers: asks the other node for servers. */
#include "far.h"

#include <errno.h>
#include <string.h>

#include "bench/nodes/hello.h"
#include "bench/words/words.h"
#include "peers/question.h"

static int lost_step(struct wf_status *status)
{
    return wf_fail(status, -EPROTO, "the other node's answer is none to weft peers: use the same build on both");
}

/* --- joining --- */

/* The n-th rail of one node is taken to lead to the n-th of the other. */
static int take_rails(struct bench_far *far, const json_t *answer, struct peer_place *place, struct wf_status *status)
{
    const json_t *rails = json_object_get(answer, "rails");
    int count = (int)json_array_size(rails);

    if (count < 1 || count > PEER_RAILS_MAX)
        return lost_step(status);
    for (int i = 0; i < count; i++) {
        const char *address = json_string_value(json_array_get(rails, (size_t)i));
        if (!address || strlen(address) >= sizeof far->addresses[i] || !peers_is_address(address))
            return lost_step(status);
        bench_copy_text(far->addresses[i], sizeof far->addresses[i], address);
    }
    place->rail_count = count < place->rail_count ? count : place->rail_count;
    for (int i = 0; i < place->rail_count; i++)
        place->rails[i] = far->addresses[i];
    return 0;
}

static int join(struct bench_far *far, struct peers_plan *plan, struct wf_status *status)
{
    json_t *hello = json_pack("{s:s, s:i}", "hello", BENCH_HELLO_PEERS, "rails", plan->place.rail_count),
           *answer = NULL;
    int result = bench_asking_hello(&far->asking, "peers", hello, &answer, status);

    if (result == 0)
        result = take_rails(far, answer, &plan->place, status);
    json_decref(answer);
    return result;
}

int bench_far_connect(struct bench_far *far, const struct bench_options *options, struct peers_plan *plan,
                      struct wf_status *status)
{
    int result = bench_asking_connect(&far->asking, options, status);

    if (result == 0)
        result = join(far, plan, status);
    plan->far = &bench_far_ops;
    plan->far_context = far;
    return result;
}

void bench_far_close(struct bench_far *far, const char *failed)
{
    bench_asking_close(&far->asking, failed);
    json_decref(far->begun);
    json_decref(far->ended);
    far->begun = far->ended = NULL;
}

/* --- a measurement --- */

static int begin_far(void *context, const struct peer_tool *tool, const struct peer_case *asked, int variant, int *port,
                     struct wf_status *status)
{
    struct bench_far *far = context;
    const struct peers_question question = {tool, variant, *asked};
    int result = bench_asking_ask(&far->asking, peers_question_to_json(&question), &far->begun, status);

    if (result)
        return result;
    *port = (int)json_integer_value(json_object_get(far->begun, "port"));
    return *port > 0 && *port < 65536 ? 0 : lost_step(status);
}

static void tell_command(void *context, struct peer_command *server)
{
    const struct bench_far *far = context;
    const json_t *words = json_object_get(far->begun, "words"), *settings = json_object_get(far->begun, "settings");
    size_t index;
    json_t *word;

    json_array_foreach(words, index, word) if (json_is_string(word)) peer_word(server, "%s", json_string_value(word));
    json_array_foreach(settings, index, word) if (json_is_string(word))
        peer_setting(server, "%s", json_string_value(word));
}

static int end_far(void *context, bool worked, struct peer_output *server, struct wf_status *status)
{
    struct bench_far *far = context;
    int result = bench_asking_ask(&far->asking, json_pack("{s:b}", "collect", worked), &far->ended, status);
    const json_t *cpu = json_object_get(far->ended, "cpu_s"), *elapsed = json_object_get(far->ended, "elapsed_s");

    if (result)
        return result;
    server->text = json_string_value(json_object_get(far->ended, "text"));
    server->cpu_s = json_is_number(cpu) ? json_number_value(cpu) : -1;
    server->elapsed_s = json_is_number(elapsed) ? json_number_value(elapsed) : -1;
    return 0;
}

const struct peers_far bench_far_ops = {begin_far, tell_command, end_far};
