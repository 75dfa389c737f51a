/* conform_transfer.c: cases of isend, irecv and test. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "conform.h"

static void with_links(int each, const struct flow *flow)
{
    ranks_begin(1);
    if (flow->slots > ranks[0].properties.max_recvs)
        conform_skip("receives have %d slots at most", ranks[0].properties.max_recvs);
    links_ring(each);
    links_open();
    flows_everywhere(flow);
    links_close();
    ranks_end();
}

static const size_t edges[] = {0,    1,     2,     7,     8,      63,     64,      65,      127,     128,    129,
                               4095, 4096,  4097,  65535, 65536,  65537,  131072,  524287,  524288,  524289, 1048576,
                               3,    99999, 12345, 1,     262144, 262145, 2097152, 3000001, 4194304, 0};
#define EDGES (int)(sizeof edges / sizeof edges[0])

static void sizes(void)
{
    with_links(
        1, &(struct flow){.messages = EDGES, .largest = 4194304, .sizes = edges, .size_count = EDGES, .exact = true});
}

static void larger_receives(void)
{
    with_links(1, &(struct flow){.messages = 64, .largest = 1000000, .window = 4});
}

static void zero(void)
{
    static const size_t nothing[] = {0};
    with_links(2, &(struct flow){.messages = 200, .window = 32, .largest = 64, .sizes = nothing, .size_count = 1});
}

static void youngest_first(void)
{
    with_links(2,
               &(struct flow){.messages = 200, .window = 32, .largest = 40000, .order = YOUNGEST, .all_posted = true});
}

static void any_order(void)
{
    with_links(2, &(struct flow){.messages = 200, .window = 32, .largest = 40000, .order = ANY});
}

static void requests_32(void)
{
    with_links(1, &(struct flow){.messages = 128, .window = 32, .largest = 65536, .all_posted = true});
}

/* NCCL's pieces: 1 MiB x 4 of a ring, 128 KiB x 8 from point to point. */
static void nccl_sizes(void)
{
    static const size_t slice[] = {1 << 20}, chunk[] = {128 << 10};
    ranks_begin(1);
    links_ring(1);
    links_open();
    flows_everywhere(&(struct flow){
        .messages = 40, .window = 4, .largest = 1 << 20, .sizes = slice, .size_count = 1, .exact = true});
    flows_everywhere(
        &(struct flow){.messages = 200, .window = 8, .largest = 128 << 10, .sizes = chunk, .size_count = 1});
    links_close();
    ranks_end();
}

static void optional_receives(void)
{
    with_links(2, &(struct flow){.messages = 200, .window = 8, .largest = 40000, .optional = true});
}

/* ------------------------------------------------------------------------------------------- groups */

static void groups(void)
{
    with_links(2, &(struct flow){.messages = 60, .slots = 8, .window = 4, .largest = 20000, .order = ANY});
}

static void groups_of_3(void)
{
    with_links(1, &(struct flow){.messages = 60, .slots = 3, .window = 8, .largest = 20000});
}

static void groups_32x8(void)
{
    with_links(1, &(struct flow){.messages = 64, .slots = 8, .window = 32, .largest = 4000, .all_posted = true});
}

static void twin_tags(void)
{
    with_links(1, &(struct flow){.messages = 60, .slots = 8, .window = 8, .largest = 10000, .twins = true});
}

/* ------------------------------------------------------------------------------------------- the call would block */

#define POSTS 400

static struct {
    void *request[POSTS];
    void *mhandle;
    unsigned char *memory;
    bool blocked;
} many;

static void register_many(void *arg)
{
    struct link *link = arg;
    MUST(net_reg(link->from == conform.me ? link->send : link->recv, many.memory, POSTS * 64, NCCL_PTR_HOST,
                 &many.mhandle));
}

static void deregister_many(void *arg)
{
    struct link *link = arg;
    MUST(net_dereg(link->from == conform.me ? link->send : link->recv, many.mhandle));
}

/* Posts without a test until NULL comes, or as many as there are. NULL is not the marker, and not what stood there. */
static void post_many(void *arg)
{
    struct link *link = arg;
    bool sending = link->from == conform.me;
    for (int i = 0; i < POSTS && !many.blocked; i++) {
        void *data = many.memory + i * 64, *request = NCCL_NET_OPTIONAL_RECV;
        size_t size = 64;
        int tag = 1;
        if (sending)
            MUST(net_isend(link->send, data, size, tag, many.mhandle, &request));
        else
            MUST(net_irecv(link->recv, 1, &data, &size, &tag, &many.mhandle, &request));
        CHECK(request != NCCL_NET_OPTIONAL_RECV, "post %d leaves the marker in the request", i);
        many.request[i] = request;
        many.blocked = !request;
    }
}

static void drain_many(void *arg)
{
    struct link *link = arg;
    bool sending = link->from == conform.me;
    int64_t limit = now_ms() + CONFORM_LIMIT_MS;
    int left = POSTS;
    while (left) {
        left = 0;
        for (int i = 0; i < POSTS; i++) {
            bool done = false;
            void *data = many.memory + i * 64;
            size_t size = 64;
            int tag = 1;
            if (many.request[i] == many.request) /* done */
                continue;
            left++;
            if (!many.request[i]) {
                if (sending)
                    MUST(net_isend(link->send, data, size, tag, many.mhandle, &many.request[i]));
                else
                    MUST(net_irecv(link->recv, 1, &data, &size, &tag, &many.mhandle, &many.request[i]));
                if (!many.request[i])
                    break; /* those after it have to wait */
            }
            MUST(net_test(many.request[i], &done, NULL));
            if (done)
                many.request[i] = many.request;
        }
        CHECK(now_ms() < limit, "%d of %d are left", left, POSTS);
        sched_yield();
    }
}

static void would_block(void)
{
    ranks_begin(1);
    links_ring(1);
    links_open();
    for (int turn = 0; turn < 2; turn++) { /* first those from 0 to 1, then back */
        struct link *link = &links[turn];
        if (link->from != conform.me && link->to != conform.me)
            continue;
        memset(&many, 0, sizeof many);
        many.memory = calloc(POSTS, 64);
        worker_run(&ranks[0].service, register_many, link);
        if (link->from == conform.me) {
            for (int i = 0; i < POSTS; i++)
                fill(many.memory + i * 64, 64, (uint64_t)i);
        }
        worker_run(&ranks[0].progress, post_many, link);
        worker_run(&ranks[0].progress, drain_many, link);
        worker_run(&ranks[0].service, deregister_many, link);
        if (link->to == conform.me) {
            for (int i = 0; i < POSTS; i++)
                CHECK(wrong(many.memory + i * 64, 64, (uint64_t)i) < 0, "message %d is not what was sent", i);
        }
        free(many.memory);
    }
    links_close();
    ranks_end();
}

/* ------------------------------------------------------------------------------------------- memory beside transfers
 */

static bool transfers_over;

static void register_beside(void *arg)
{
    struct link *link = arg;
    void *comm = link->from == conform.me ? link->send : link->recv;
    for (uint64_t i = 0; !__atomic_load_n(&transfers_over, __ATOMIC_RELAXED) || i < 20; i++) {
        size_t size = 4096 * (1 + mix(conform.seed, i) % 64);
        void *mhandle[3] = {NULL};
        unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED, "no %zu bytes", size);
        for (int j = 0; j < 3; j++)
            MUST(net_reg(comm, memory + 1000 * j, size - (size_t)(1000 * j), NCCL_PTR_HOST, &mhandle[j]));
        for (int j = 0; j < 3; j++)
            MUST(net_dereg(comm, mhandle[j]));
        munmap(memory, size);
        sched_yield();
    }
}

static void memory_beside(void)
{
    struct flow flows[CONFORM_LINKS_MAX];
    struct link *mine = NULL;
    ranks_begin(1);
    links_ring(2);
    links_open();
    for (int i = 0; i < link_count; i++) {
        flows[i] = (struct flow){.link = &links[i], .messages = 300, .window = 16, .largest = 50000};
        if (links[i].from == conform.me || links[i].to == conform.me)
            mine = &links[i];
    }
    __atomic_store_n(&transfers_over, false, __ATOMIC_RELAXED);
    flows_start(flows, link_count);
    worker_start(&ranks[0].service, register_beside, mine);
    worker_wait(&ranks[0].progress);
    __atomic_store_n(&transfers_over, true, __ATOMIC_RELAXED);
    worker_wait(&ranks[0].service);
    flows_wait();
    links_close();
    ranks_end();
}

const struct conform_case conform_transfer_cases[] = {
    {"sizes", "transfer", "sizes round every edge arrive whole", sizes, 0, 60, false},
    {"larger_receives", "transfer", "a receive may be larger than the send, and reports the send's size",
     larger_receives, 0, 60, false},
    {"zero", "transfer", "zero bytes are a message", zero, 0, 30, false},
    {"youngest_first", "transfer", "tests come in any order: the youngest first", youngest_first, 0, 60, false},
    {"any_order", "transfer", "tests come in any order: by chance", any_order, 0, 60, false},
    {"requests_32", "transfer", "32 requests of a comm are posted before the first test", requests_32, 0, 60, false},
    {"nccl_sizes", "transfer", "1 MiB x 4 and 128 KiB x 8", nccl_sizes, 0, 60, false},
    {"optional_receives", "transfer", "receives with the marker for optional completion", optional_receives, 9, 60,
     false},
    {"would_block", "transfer", "a post that would block gives NULL, never the marker", would_block, 0, 60, false},
    {"memory_beside", "transfer", "regMr and deregMr beside transfers of the same comm", memory_beside, 0, 60, false},
    {"groups", "transfer", "grouped receives: sends by tag in any order, sizes by slot", groups, 0, 60, false},
    {"groups_of_3", "transfer", "grouped receives with fewer slots than there may be", groups_of_3, 0, 60, false},
    {"groups_32x8", "transfer", "32 grouped receives, and 32 x 8 sends", groups_32x8, 0, 60, false},
    {"twin_tags", "transfer", "two slots with one tag are filled in order", twin_tags, 0, 60, false},
    {0},
};
