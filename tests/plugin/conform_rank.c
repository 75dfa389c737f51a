/* conform_rank.c: NCCL's threads, and the comms between ranks. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "conform.h"

struct rank ranks[CONFORM_RANKS_MAX];
int rank_count;
struct link links[CONFORM_LINKS_MAX];
int link_count;

/* ------------------------------------------------------------------------------------------- threads */

static void *work(void *arg)
{
    struct worker *worker = arg;
    pthread_mutex_lock(&worker->mutex);
    for (;;) {
        while (!worker->body && !worker->quit)
            pthread_cond_wait(&worker->changed, &worker->mutex);
        if (worker->quit)
            break;
        pthread_mutex_unlock(&worker->mutex);
        worker->body(worker->arg);
        pthread_mutex_lock(&worker->mutex);
        worker->body = NULL;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

static void worker_init(struct worker *worker)
{
    *worker = (struct worker){.body = NULL};
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->changed, NULL);
    CHECK(!pthread_create(&worker->thread, NULL, work, worker), "no thread");
}

static void worker_fini(struct worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->quit = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->mutex);
}

void worker_start(struct worker *worker, void (*body)(void *arg), void *arg)
{
    pthread_mutex_lock(&worker->mutex);
    worker->arg = arg;
    worker->body = body;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

void worker_wait(struct worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    while (worker->body)
        pthread_cond_wait(&worker->changed, &worker->mutex);
    pthread_mutex_unlock(&worker->mutex);
}

void worker_run(struct worker *worker, void (*body)(void *arg), void *arg)
{
    worker_start(worker, body, arg);
    worker_wait(worker);
}

/* The same body on the service threads of all ranks at once. */
static void on_services(void (*body)(void *arg))
{
    for (int i = 0; i < rank_count; i++)
        worker_start(&ranks[i].service, body, &ranks[i]);
    for (int i = 0; i < rank_count; i++)
        worker_wait(&ranks[i].service);
}

/* ------------------------------------------------------------------------------------------- ranks */

void rank_start(struct rank *rank, int dev)
{
    static uint64_t communicators;
    int ndev = 0;
    rank->context = NULL;
    MUST(net_init(&rank->context, mix(conform.seed, ++communicators)));
    MUST(net_devices(&ndev));
    CHECK(dev < ndev, "%d devices", ndev);
    rank->dev = dev;
    MUST(net_properties(dev, &rank->properties));
    worker_init(&rank->service);
    worker_init(&rank->progress);
}

void rank_stop(struct rank *rank)
{
    worker_fini(&rank->progress);
    worker_fini(&rank->service);
    MUST(net_finalize(rank->context));
}

static struct footprint before;

void ranks_begin(int count)
{
    footprint_take(&before);
    net_open();
    for (int i = 0; i < count; i++)
        rank_start(&ranks[i], 0);
    rank_count = count;
}

void ranks_end(void)
{
    for (int i = 0; i < rank_count; i++)
        rank_stop(&ranks[i]);
    rank_count = 0;
    net_close();
    footprint_check(&before, true, "after dlclose");
}

/* ------------------------------------------------------------------------------------------- comms */

static bool of_rank(const struct link *link, const struct rank *rank)
{
    return &ranks[link->rank] == rank;
}

int links_add(int from, int to, int rank)
{
    CHECK(link_count < CONFORM_LINKS_MAX, "too many links");
    links[link_count] = (struct link){.id = link_count, .from = from, .to = to, .rank = rank};
    return link_count++;
}

void links_ring(int each)
{
    for (int from = 0; from < conform.processes - (conform.processes == 2); from++) {
        int to = (from + 1) % conform.processes;
        for (int i = 0; i < each; i++) {
            links_add(from, to, i % rank_count);
            links_add(to, from, i % rank_count);
        }
    }
}

static void service_listen(void *arg)
{
    struct rank *rank = arg;
    for (int i = 0; i < link_count; i++) {
        if (links[i].to == conform.me && of_rank(&links[i], rank)) {
            MUST(net_listen(rank->context, rank->dev, links[i].handle, &links[i].listener));
            CHECK(links[i].listener, "listen succeeds without a comm");
        }
    }
}

void links_listen(void)
{
    on_services(service_listen);
    for (int i = 0; i < link_count; i++) {
        struct link *link = &links[i];
        if (link->from == link->to)
            continue;
        if (link->to == conform.me)
            boot_send(link->from, link->handle, sizeof link->handle);
        if (link->from == conform.me)
            boot_receive(link->to, link->handle, sizeof link->handle);
    }
}

/* NCCL's service thread has a list of what is not ready, and gives each of it one call in turn. */
static void service_join(void *arg)
{
    struct rank *rank = arg;
    int64_t limit = now_ms() + CONFORM_LIMIT_MS;
    int open;
    do {
        open = 0;
        for (int i = 0; i < link_count; i++) {
            struct link *link = &links[i];
            if (!of_rank(link, rank))
                continue;
            if (link->from == conform.me && !link->send) {
                MUST(net_connect(rank->context, rank->dev, link->handle, &link->send));
                open += !link->send;
            }
            if (link->to == conform.me && !link->recv) {
                MUST(net_accept(link->listener, &link->recv));
                open += !link->recv;
                if (link->recv) {
                    MUST(net_close_listen(link->listener));
                    link->listener = NULL;
                }
            }
        }
        CHECK(now_ms() < limit, "%d ends are not connected", open);
        sched_yield();
    } while (open);
}

void links_join(void)
{
    on_services(service_join);
}

void links_open(void)
{
    links_listen();
    links_join();
}

static void service_close(void *arg)
{
    struct link *link = arg;
    if (link->send)
        MUST(net_close_send(link->send));
    if (link->recv)
        MUST(net_close_recv(link->recv));
    if (link->listener)
        MUST(net_close_listen(link->listener));
    link->send = link->recv = link->listener = NULL;
}

static void service_close_all(void *arg)
{
    struct rank *rank = arg;
    for (int i = 0; i < link_count; i++) {
        if (of_rank(&links[i], rank))
            service_close(&links[i]);
    }
}

void link_close(struct link *link)
{
    worker_run(&ranks[link->rank].service, service_close, link);
}

void links_close(void)
{
    on_services(service_close_all);
    link_count = 0;
}
