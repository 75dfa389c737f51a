/*
 * weft-coll-gloo: Gloo as PyTorch's ProcessGroupGloo uses it. For comparison only: no part of Weft uses Gloo.
 *
 * Who it is comes from RANK and WORLD_SIZE, or what another launcher has for them, and the rest from --with: store=FOLDER that all ranks share, devices=A[,B...]
 * (addresses, or interfaces), and algorithm=ring|bcube|ring_chunked|halving_doubling of the all-reduce. With several
 * devices there is a context for each; an operation of 64 KiB and more is divided among them, each part in a thread.
 */
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include <arpa/inet.h>
#include <cerrno>
#include <climits>
#include <unistd.h>

extern "C" {
#include "base/status.h"
}
#include "rank.h"

namespace {

constexpr uint64_t DIVIDED_FROM = 64 << 10;

struct Part { // of an operation, on one device
    uint64_t first, count;
};

struct World {
    uint32_t rank, ranks;
    std::string algorithm, devices;
    std::vector<std::shared_ptr<gloo::rendezvous::Context>> contexts;
    std::unique_ptr<gloo::Algorithm> bound; // of the old interface: made for one operation on one memory
    void *bound_to;
    rank_call bound_call;
    uint64_t turn;
};

World world;

// --------------------------------------------------------------------------------------------------- elements

using Reduce = void (*)(void *, const void *, const void *, size_t);

template <typename T>
Reduce reduce_of(enum rank_redop redop)
{
    return redop == RANK_MIN ? Reduce(&gloo::min<T>) : redop == RANK_MAX ? Reduce(&gloo::max<T>) : Reduce(&gloo::sum<T>);
}

// ---------------------------------------------------------------------------------------------------- operations

template <typename T>
void all_reduce(const rank_call &call, const std::shared_ptr<gloo::Context> &context, Part part)
{
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(world.algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                                    : gloo::AllreduceOptions::Algorithm::RING);
    options.setReduceFunction(reduce_of<T>(call.redop));
    if (!call.in_place)
        options.setInput(static_cast<T *>(const_cast<void *>(call.send)) + part.first, part.count);
    options.setOutput(static_cast<T *>(call.recv) + part.first, part.count);
    gloo::allreduce(options);
}

template <typename T>
void all_gather(const rank_call &call, const std::shared_ptr<gloo::Context> &context)
{
    gloo::AllgatherOptions options(context);
    if (!call.in_place)
        options.setInput(static_cast<T *>(const_cast<void *>(call.send)), call.count);
    options.setOutput(static_cast<T *>(call.recv), call.count * world.ranks);
    gloo::allgather(options);
}

template <typename T>
void broadcast(const rank_call &call, const std::shared_ptr<gloo::Context> &context, Part part)
{
    gloo::BroadcastOptions options(context);
    options.setRoot(0);
    if (!call.in_place && world.rank == 0)
        options.setInput(static_cast<T *>(const_cast<void *>(call.send)) + part.first, part.count);
    options.setOutput(static_cast<T *>(call.recv) + part.first, part.count);
    gloo::broadcast(options);
}

template <typename T>
void all_to_all(const rank_call &call, const std::shared_ptr<gloo::Context> &context)
{
    gloo::AlltoallOptions options(context);
    options.setInput(static_cast<T *>(const_cast<void *>(call.send)), call.count * world.ranks);
    options.setOutput(static_cast<T *>(call.recv), call.count * world.ranks);
    gloo::alltoall(options);
}

void send_receive(const rank_call &call, const std::shared_ptr<gloo::Context> &context, Part part)
{
    uint64_t bytes = rank_type_bytes(call.type);
    auto out = context->createUnboundBuffer(static_cast<char *>(const_cast<void *>(call.send)) + part.first * bytes,
                                            part.count * bytes);
    auto in = context->createUnboundBuffer(static_cast<char *>(call.recv) + part.first * bytes, part.count * bytes);
    uint64_t slot = UINT64_C(1) << 40 | world.turn;
    in->recv(static_cast<int>((world.rank + world.ranks - 1) % world.ranks), slot);
    out->send(static_cast<int>((world.rank + 1) % world.ranks), slot);
    out->waitSend();
    in->waitRecv();
}

bool is_alike(const rank_call &a, const rank_call &b)
{
    return a.op == b.op && a.type == b.type && a.redop == b.redop && a.count == b.count;
}

// The algorithms of the old interface are classes; one is kept as long as operation and memory stay the same.
template <typename T>
void run_bound(const rank_call &call, const void *memory)
{
    T *data = static_cast<T *>(const_cast<void *>(memory));
    int count = static_cast<int>(call.count);
    const gloo::ReductionFunction<T> *function = call.redop == RANK_MIN   ? gloo::ReductionFunction<T>::min
                                                 : call.redop == RANK_MAX ? gloo::ReductionFunction<T>::max
                                                                          : gloo::ReductionFunction<T>::sum;
    std::shared_ptr<gloo::Context> context = world.contexts[0];
    std::vector<T *> all{data};
    if (!world.bound || world.bound_to != data || !is_alike(world.bound_call, call)) {
        world.bound.reset();
        if (call.op == BENCH_REDUCE_SCATTER)
            world.bound.reset(new gloo::ReduceScatterHalvingDoubling<T>(
                context, all, count * static_cast<int>(world.ranks), std::vector<int>(world.ranks, count), function));
        else if (world.algorithm == "halving_doubling")
            world.bound.reset(new gloo::AllreduceHalvingDoubling<T>(context, all, count, function));
        else
            world.bound.reset(new gloo::AllreduceRingChunked<T>(context, all, count, function));
        world.bound_to = data;
        world.bound_call = call;
    }
    world.bound->run();
}

bool is_bound(const rank_call &call)
{
    return call.op == BENCH_REDUCE_SCATTER ||
           (call.op == BENCH_ALL_REDUCE &&
            (world.algorithm == "halving_doubling" || world.algorithm == "ring_chunked"));
}

// Those that can be cut anywhere.
template <typename T>
void run_part(const rank_call &call, const std::shared_ptr<gloo::Context> &context, Part part)
{
    if (call.op == BENCH_ALL_REDUCE)
        all_reduce<T>(call, context, part);
    else if (call.op == BENCH_BROADCAST)
        broadcast<T>(call, context, part);
    else
        send_receive(call, context, part);
}

template <typename T>
void run_divided(const rank_call &call)
{
    uint64_t parts = world.contexts.size();
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failed(parts);

    for (uint64_t i = 0; i < parts; i++) {
        uint64_t first = call.count * i / parts;
        Part part{first, call.count * (i + 1) / parts - first};
        threads.emplace_back([&call, &failed, i, part] {
            try {
                run_part<T>(call, world.contexts[i], part);
            } catch (...) {
                failed[i] = std::current_exception();
            }
        });
    }
    for (auto &thread : threads)
        thread.join();
    for (auto &error : failed)
        if (error)
            std::rethrow_exception(error);
}

template <typename T>
void run(rank_call &call)
{
    bool cut = call.op == BENCH_ALL_REDUCE || call.op == BENCH_BROADCAST || call.op == BENCH_SEND_RECEIVE;

    world.turn++;
    if (is_bound(call)) { // in place; of a reduce-scatter the result is where the input begins
        run_bound<T>(call, call.op == BENCH_REDUCE_SCATTER ? call.send : call.recv);
        if (call.op == BENCH_REDUCE_SCATTER)
            call.result = call.send;
    } else if (call.op == BENCH_ALL_GATHER) {
        all_gather<T>(call, world.contexts[0]);
    } else if (call.op == BENCH_ALL_TO_ALL) {
        all_to_all<T>(call, world.contexts[0]);
    } else if (cut && world.contexts.size() > 1 && call.count * rank_type_bytes(call.type) >= DIVIDED_FROM) {
        run_divided<T>(call);
    } else {
        run_part<T>(call, world.contexts[0], Part{0, call.count});
    }
}

// ------------------------------------------------------------------------------------------------------ the seam

// Gloo throws.
int guarded(wf_status *status, const char *what, const std::function<void()> &call)
{
    try {
        call();
        return 0;
    } catch (const std::exception &error) {
        return wf_fail(status, -EIO, "%s: %.200s", what, error.what());
    }
}

// The first variable that is there: what `weft collective` or torchrun has set, or another launcher.
uint32_t number_of(std::initializer_list<const char *> names)
{
    for (const char *name : names)
        if (const char *text = getenv(name))
            return static_cast<uint32_t>(atoi(text));
    return UINT32_MAX;
}

std::shared_ptr<gloo::transport::Device> make_device(const std::string &name)
{
    gloo::transport::tcp::attr attr;
    unsigned char address[16];

    if (inet_pton(AF_INET, name.c_str(), address) == 1 || inet_pton(AF_INET6, name.c_str(), address) == 1)
        attr.hostname = name;
    else
        attr.iface = name;
    return gloo::transport::tcp::CreateDevice(attr);
}

void connect_all(const std::string &folder, const std::string &devices, uint64_t turn, uint64_t timeout_s)
{
    gloo::rendezvous::FileStore files(folder);
    gloo::rendezvous::PrefixStore store(std::to_string(turn), files); // names of an earlier turn lead nowhere
    size_t at = 0;

    while (at <= devices.size()) {
        size_t end = devices.find(',', at);
        std::string name = devices.substr(at, end == std::string::npos ? end : end - at);
        auto device = make_device(name);
        auto context = std::make_shared<gloo::rendezvous::Context>(world.rank, world.ranks);
        gloo::rendezvous::PrefixStore own(std::to_string(world.contexts.size()), store);
        context->setTimeout(std::chrono::seconds(timeout_s));
        context->connectFullMesh(own, device);
        world.contexts.push_back(context);
        if (end == std::string::npos)
            break;
        at = end + 1;
    }
}

int gloo_open(const rank_asked *asked, uint32_t *rank, uint32_t *ranks, wf_status *status)
{
    const char *store = rank_with(asked, "store"), *devices = rank_with(asked, "devices");
    const char *algorithm = rank_with(asked, "algorithm");

    world.rank = *rank = number_of({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"});
    world.ranks = *ranks = number_of({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
    if (world.ranks == UINT32_MAX || world.rank >= world.ranks || !store || !devices)
        return wf_fail(status, -EINVAL, "RANK, WORLD_SIZE, --with store= and --with devices= are needed");
    world.algorithm = algorithm ? algorithm : "ring";
    world.devices = devices;
    return guarded(status, "connecting", [&] { connect_all(store, devices, 0, asked->timeout_s); });
}

const char *const gloo_renewals[] = {"context", nullptr};

int gloo_renew(const rank_asked *asked, int, uint64_t turn, wf_status *status)
{
    return guarded(status, "connecting anew", [&] {
        world.bound.reset();
        world.bound_to = nullptr;
        world.contexts.clear();
        connect_all(rank_with(asked, "store"), world.devices, turn, asked->timeout_s);
    });
}

void gloo_facts(FILE *out)
{
    fprintf(out, "\"library\": \"Gloo %d.%d.%d\", \"devices\": \"%s\", \"algorithm\": \"%s\"", GLOO_VERSION_MAJOR,
            GLOO_VERSION_MINOR, GLOO_VERSION_PATCH, world.devices.c_str(), world.algorithm.c_str());
}

const char *gloo_lacks(const rank_call *call)
{
    if (call->type == RANK_BFLOAT16)
        return "Gloo has no bfloat16";
    if (rank_op_reduces(call->op) && call->redop == RANK_AVG)
        return "Gloo has no average";
    if (call->op == BENCH_ALL_GATHER && call->count == 0)
        return "Gloo's all-gather needs an element of each rank";
    if (call->op == BENCH_REDUCE_SCATTER && !call->in_place)
        return "Gloo's reduce-scatter (halving and doubling) works in place only";
    if (is_bound(*call) && !call->in_place)
        return "this algorithm works in place only";
    if (is_bound(*call) && call->count * world.ranks > INT_MAX)
        return "this algorithm counts elements in int";
    if (call->in_place && call->op == BENCH_ALL_TO_ALL)
        return "Gloo's all-to-all does not work in place";
    if (call->in_place && call->op == BENCH_SEND_RECEIVE)
        return "Gloo's send and receive do not work in place";
    return nullptr;
}

int gloo_run(rank_call *call, wf_status *status)
{
    return guarded(status, rank_op_name(call->op), [&] {
        switch (call->type) {
        case RANK_FLOAT64:
            return run<double>(*call);
        case RANK_FLOAT32:
            return run<float>(*call);
        case RANK_FLOAT16:
            return run<gloo::float16>(*call);
        case RANK_INT32:
            return run<int32_t>(*call);
        case RANK_INT64:
            return run<int64_t>(*call);
        default:
            return run<uint8_t>(*call);
        }
    });
}

int gloo_barrier(wf_status *status)
{
    return guarded(status, "barrier", [] {
        gloo::BarrierOptions options(world.contexts[0]);
        gloo::barrier(options);
    });
}

int gloo_gather(const double *own, int count, double *all, wf_status *status)
{
    return guarded(status, "all-gather", [&] {
        gloo::AllgatherOptions options(world.contexts[0]);
        options.setInput(const_cast<double *>(own), count);
        options.setOutput(all, count * world.ranks);
        gloo::allgather(options);
    });
}

// On the first device. Messages of two ranks are in order.
int gloo_message(uint32_t with, void *memory, uint64_t bytes, bool sends, wf_status *status)
{
    return guarded(status, sends ? "send" : "receive", [&] {
        auto buffer = world.contexts[0]->createUnboundBuffer(memory, bytes);
        uint64_t slot = UINT64_C(1) << 41;
        if (sends) {
            buffer->send(static_cast<int>(with), slot);
            buffer->waitSend();
        } else {
            buffer->recv(static_cast<int>(with), slot);
            buffer->waitRecv();
        }
    });
}

int gloo_send(uint32_t to, const void *memory, uint64_t bytes, wf_status *status)
{
    return gloo_message(to, const_cast<void *>(memory), bytes, true, status);
}

int gloo_receive(uint32_t from, void *memory, uint64_t bytes, wf_status *status)
{
    return gloo_message(from, memory, bytes, false, status);
}

void gloo_close()
{
    // Who has ended its part must not close what others still read from.
    wf_status ignored;
    gloo_barrier(&ignored);
    world.bound.reset();
}

} // namespace

int main(int argc, char **argv)
{
    rank_backend backend{};

    backend.name = "gloo";
    backend.open = gloo_open;
    backend.facts = gloo_facts;
    backend.lacks = gloo_lacks;
    backend.run = gloo_run;
    backend.barrier = gloo_barrier;
    backend.gather = gloo_gather;
    backend.send = gloo_send;
    backend.receive = gloo_receive;
    backend.close = gloo_close;
    backend.renewals = gloo_renewals;
    backend.renew = gloo_renew;
    int status = rank_main(&backend, argc, argv);
    fflush(stdout);
    _exit(status); // its threads would be destroyed in an order that it does not define
}
