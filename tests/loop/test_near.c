/*
 * test_near.c: the large messages of an endpoint whose NUMA node is told leave on the rails of that node. Where rails
 * are is played: the machine of the test may have one node.
 */
#include "loop_support.h"

#include <errno.h>

#include "core/calls/context.h"

#define RAILS 2
#define BYTES 4000000

static struct loop_pair pair;

/* Rail i of this context is on node i. */
static void place(struct weft_context *context)
{
    context->crew.placement.rail_policy = WF_POLICY_NODE;
    for (int i = 0; i < RAILS; i++)
        context->crew.placement.rail_nodes[i] = (int16_t)i;
}

static void check_sent(const struct weft_peer *peer, int near, uint64_t least)
{
    struct weft_rail_stats rails[RAILS];
    LOOP_CHECK(weft_peer_rails(peer, rails, RAILS) == RAILS, "not %d rails", RAILS);
    for (int i = 0; i < RAILS; i++)
        LOOP_CHECK(i == near ? rails[i].sent_bytes >= least : rails[i].sent_bytes == 0,
                   "rail %s has sent %llu bytes, rail %d is the near one", rails[i].name,
                   (unsigned long long)rails[i].sent_bytes, near);
}

static void an_opened_connection_keeps_to_its_rails(void)
{
    struct weft_connection *ends[2];

    loop_pair_create(&pair, NULL, NULL, RAILS);
    place(pair.node[0].context);
    LOOP_CHECK(weft_endpoint_set_node(pair.node[0].endpoint, 1) == 0, "node 1");
    loop_connection(&pair, 0, ends);
    loop_exchange(ends[0], ends[1], BYTES, 1);
    check_sent(pair.node[0].peer, 1, BYTES);
    loop_connection_end(ends);
    loop_pair_destroy(&pair);
}

/* It is here before the node is told, which is before it is accepted: a peer may open at any time. */
static void a_connection_that_waited_keeps_to_its_rails(void)
{
    struct weft_connection *ends[2];
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, RAILS);
    struct loop_node *node = pair.node;
    place(node[1].context);
    LOOP_CALL(weft_connection_open(node[0].endpoint, node[0].peer, 0, LOOP_WAIT_MS, &ends[0], &err), &err);
    LOOP_CHECK(weft_endpoint_set_node(node[1].endpoint, 0) == 0, "node 0");
    LOOP_CALL(weft_connection_accept(node[1].endpoint, node[1].peer, 0, LOOP_WAIT_MS, &ends[1], &err), &err);
    loop_exchange(ends[0], ends[1], BYTES, 1);
    check_sent(node[1].peer, 0, BYTES);
    loop_connection_end(ends);
    loop_pair_destroy(&pair);
}

static void nonsense_is_no_place(void)
{
    struct weft_connection *ends[2];

    loop_pair_create(&pair, NULL, NULL, RAILS);
    place(pair.node[0].context);
    LOOP_CHECK(weft_endpoint_set_node(pair.node[0].endpoint, -2) == -EINVAL, "node -2");
    LOOP_CHECK(weft_endpoint_set_node(pair.node[0].endpoint, 1 << 30) == 0, "a node without a rail");
    loop_connection(&pair, 0, ends);
    loop_exchange(ends[0], ends[1], BYTES, 1);
    loop_connection_end(ends);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOOP_CASE(an_opened_connection_keeps_to_its_rails, 20),
        LOOP_CASE(a_connection_that_waited_keeps_to_its_rails, 20),
        LOOP_CASE(nonsense_is_no_place, 20),
    };
    loop_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
