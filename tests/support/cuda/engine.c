/*
 * engine.c: the thread of a GPU. It carries out what waits in the streams of the GPU's context, by a book of times:
 * when an operation may begin, when its bytes move, when it ends. The thread itself is late now and then; the book is
 * not, so that a copy rate is kept to.
 */
#include "internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define POLL_NS 20000 /* between two looks at a word or event that a stream waits for */
#define STREAMS 512   /* of a GPU that are looked at */
#define SCRIBBLE 0xA5
#define SCRIBBLE_WHOLE 65536 /* bytes; beyond, SCRIBBLE_PART of the beginning, the end and somewhere */
#define SCRIBBLE_PART 4096

int64_t emu_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t emu_random(uint64_t *state)
{
    uint64_t value = *state += UINT64_C(0x9E3779B97F4A7C15);

    value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
    return value ^ value >> 31;
}

static int64_t draw_ns(struct emu_device *device, int64_t most)
{
    return most > 0 ? (int64_t)(emu_random(&device->random) % (uint64_t)(most + 1)) : 0;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Most records come with the operation before them; now and then one is late. */
static int64_t latency_ns(struct emu_device *device, enum emu_kind kind)
{
    int64_t average = (int64_t)emu.settings.latency_us * 1000;

    if (kind == EMU_RECORD && emu_random(&device->random) % 4 != 0)
        return 0;
    return draw_ns(device, 2 * average) + (emu_random(&device->random) % 32 == 0 ? 8 * average : 0);
}

/* The default stream's operations and those of the streams that heed it come one after another. */
static bool may_start_locked(const struct CUstream_st *stream, const struct emu_op *op)
{
    const struct CUctx_st *context = stream->context;

    if (stream != &context->legacy)
        return (stream->flags & EMU_STREAM_NON_BLOCKING) || !context->legacy.head ||
               context->legacy.head->sequence > op->sequence;
    for (const struct CUstream_st *other = context->others; other; other = other->next)
        if (!(other->flags & EMU_STREAM_NON_BLOCKING) && other->head && other->head->sequence < op->sequence)
            return false;
    return true;
}

/* --- bytes --- */

static char *reach(int device, uintptr_t address)
{
    return device == EMU_HOST ? (char *)address : emu_memory_content(device, address);
}

static uint64_t devices_of(const struct emu_op *op)
{
    uint64_t bits = 0;

    for (int i = 0; i < op->count; i++) {
        bits |= op->pieces[i].to_device != EMU_HOST ? UINT64_C(1) << op->pieces[i].to_device : 0;
        bits |= op->pieces[i].from_device != EMU_HOST ? UINT64_C(1) << op->pieces[i].from_device : 0;
    }
    return bits;
}

/* The code of a device that is lost, of those that the operation refers to. */
static emu_result lost_locked(const struct emu_op *op)
{
    uint64_t bits = devices_of(op);

    for (int i = 0; i < emu.device_count; i++)
        if ((bits >> i & 1) && emu.devices[i].lost)
            return emu.devices[i].lost_code;
    return EMU_OK;
}

static void scribble(const struct emu_piece *piece, uint64_t random)
{
    char *to = reach(piece->to_device, piece->to);

    if (piece->bytes <= SCRIBBLE_WHOLE) {
        memset(to, SCRIBBLE, piece->bytes);
        return;
    }
    memset(to, SCRIBBLE, SCRIBBLE_PART);
    memset(to + random % (piece->bytes - SCRIBBLE_PART), SCRIBBLE, SCRIBBLE_PART);
    memset(to + piece->bytes - SCRIBBLE_PART, SCRIBBLE, SCRIBBLE_PART);
}

/* The pieces of a batch in any order, as the driver says of them. A copy that is to fail gets half of it there. */
static void move(const struct emu_op *op, uint64_t random)
{
    int from = (int)(random % (uint64_t)op->count), step = random >> 32 & 1 ? 1 : op->count - 1;

    for (int i = 0, at = from; i < op->count; i++, at = (at + step) % op->count) {
        const struct emu_piece *piece = &op->pieces[at];
        memmove(reach(piece->to_device, piece->to), reach(piece->from_device, piece->from),
                op->fault_kind != EMU_FAULT_NONE ? piece->bytes / 2 : piece->bytes);
    }
}

/* With the lock let go: bytes take their time, and whoever asks how it stands gets an answer meanwhile. */
static void touch_locked(struct emu_device *device, const struct emu_op *op, bool only_scribble)
{
    uint64_t random = emu_random(&device->random);

    device->moving = devices_of(op) | UINT64_C(1) << device->index;
    pthread_mutex_unlock(&emu.lock);
    emu_memory_engine_touches(device->index);
    if (only_scribble) {
        for (int i = 0; i < op->count; i++)
            scribble(&op->pieces[i], random);
    } else {
        move(op, random);
    }
    emu_memory_engine_touches(EMU_HOST);
    pthread_mutex_lock(&emu.lock);
    device->moving = 0;
    pthread_cond_broadcast(&emu.changed);
}

static enum emu_way way_of(const struct emu_piece *piece)
{
    if (piece->from_device == EMU_HOST)
        return EMU_IN;
    return piece->to_device == EMU_HOST ? EMU_OUT : EMU_PEER;
}

/* --- one operation, one stage further: 0 where it came on, else when to look again --- */

static int64_t book_locked(struct emu_device *device, struct emu_op *op)
{
    struct emu_device *owner = &emu.devices[op->device];
    uint64_t bytes = 0;

    for (int i = 0; i < op->count; i++)
        bytes += op->pieces[i].bytes;
    int64_t length = emu.settings.rate > 0 ? (int64_t)((double)bytes * 1e9 / (double)emu.settings.rate) : 0;
    op->begin_ns = later(op->ready_ns, owner->free_ns[op->way]);
    owner->free_ns[op->way] = op->begin_ns + length;
    op->move_ns = op->begin_ns + draw_ns(device, length);
    op->end_ns = op->begin_ns + length;
    op->stage = EMU_BOOKED;
    return 0;
}

/* The bytes have moved, or half of them: its end is its own, its context's or its device's. */
static int64_t fail_locked(struct CUstream_st *stream, struct emu_op *op)
{
    struct CUctx_st *context = stream->context;
    struct emu_device *owner = &emu.devices[op->device];
    int kind = op->fault_kind;
    emu_result code = op->fault_code;

    if (kind == EMU_FAULT_LAUNCH)
        context->error = code;
    else
        stream->deferred = code;
    emu_op_end_locked(stream, code);
    /* Only now: while these wait, the lock is free, and the operation could be taken from under us. */
    if (kind == EMU_FAULT_LAUNCH)
        emu_context_drop_locked(context, code);
    else if (kind == EMU_FAULT_LOST)
        emu_lose_locked(owner, code);
    return 0;
}

static int64_t move_locked(struct emu_device *device, struct CUstream_st *stream, struct emu_op *op)
{
    emu_result lost = lost_locked(op);

    if (lost == EMU_OK) {
        touch_locked(device, op, false);
        lost = lost_locked(op);
    }
    if (lost != EMU_OK) {
        op->fault_kind = EMU_FAULT_COPY;
        op->fault_code = lost;
    }
    if (op->fault_kind != EMU_FAULT_NONE)
        return fail_locked(stream, op);
    for (int i = 0; i < op->count; i++) {
        emu.copies[way_of(&op->pieces[i])]++;
        emu.bytes[way_of(&op->pieces[i])] += op->pieces[i].bytes;
    }
    op->stage = EMU_MOVED;
    return 0;
}

static bool word_reached(uintptr_t address, uint32_t value, unsigned int flags)
{
    uint32_t word = __atomic_load_n((const uint32_t *)address, __ATOMIC_ACQUIRE);

    switch (flags) {
    case EMU_WAIT_GEQ:
        return (int32_t)(word - value) >= 0;
    case EMU_WAIT_EQ:
        return word == value;
    case EMU_WAIT_AND:
        return (word & value) != 0;
    default:
        return ~(word | value) != 0;
    }
}

static int64_t ready_locked(struct emu_device *device, struct CUstream_st *stream, struct emu_op *op, int64_t now)
{
    int owner = emu_memory_device(op->word);

    op->end_ns = op->ready_ns;
    switch (op->kind) {
    case EMU_COPY:
        return book_locked(device, op);
    case EMU_RECORD:
        break;
    case EMU_WAIT_VALUE:
        op->end_ns = now;
        if (!word_reached((uintptr_t)reach(owner, op->word), op->value, op->wait_flags))
            return now + POLL_NS;
        break;
    case EMU_WAIT_EVENT:
        op->end_ns = now;
        if (op->event->done < op->generation && op->event->context->retained > 0)
            return now + POLL_NS;
        break;
    }
    emu_op_end_locked(stream, EMU_OK);
    return 0;
}

static int64_t step_locked(struct emu_device *device, struct CUstream_st *stream, int64_t now)
{
    struct emu_op *op = stream->head;

    switch (op->stage) {
    case EMU_QUEUED:
        if (!may_start_locked(stream, op))
            return EMU_NEVER; /* what it waits for will come on, and then it is looked at again */
        op->ready_ns = later(op->queued_ns, stream->last_end_ns) + latency_ns(device, op->kind);
        op->stage = EMU_WAITING;
        return 0;
    case EMU_WAITING:
        return now < op->ready_ns ? op->ready_ns : ready_locked(device, stream, op, now);
    case EMU_BOOKED:
        if (now < op->begin_ns)
            return op->begin_ns;
        op->stage = EMU_MOVING;
        if ((emu_random(&device->random) & 1) && lost_locked(op) == EMU_OK)
            touch_locked(device, op, true);
        return 0;
    case EMU_MOVING:
        return now < op->move_ns ? op->move_ns : move_locked(device, stream, op);
    case EMU_MOVED:
        if (now < op->end_ns)
            return op->end_ns;
        emu_op_end_locked(stream, EMU_OK);
        return 0;
    }
    return EMU_NEVER;
}

/* --- the thread --- */

/* Comes on with one stream, any of those that can. 0: one did; else when to look again. */
static int64_t round_locked(struct emu_device *device)
{
    struct CUctx_st *context = &device->context;
    struct CUstream_st *busy[STREAMS];
    int count = 0;
    int64_t next = EMU_NEVER, now = emu_now_ns();

    if (device->paused)
        return EMU_NEVER;
    if (context->legacy.head)
        busy[count++] = &context->legacy;
    for (struct CUstream_st *stream = context->others; stream && count < STREAMS; stream = stream->next)
        if (stream->head)
            busy[count++] = stream;
    for (int left = count; left > 0; left--) {
        int chosen = (int)(emu_random(&device->random) % (uint64_t)left);
        int64_t when = step_locked(device, busy[chosen], now);
        if (when == 0)
            return 0;
        next = when < next ? when : next;
        busy[chosen] = busy[left - 1];
    }
    return next;
}

static void *run(void *argument)
{
    struct emu_device *device = argument;

    prctl(PR_SET_TIMERSLACK, 1UL); /* ns: the usual 50 us are more than a copy's latency */
    pthread_mutex_lock(&emu.lock);
    for (;;) {
        int64_t next = round_locked(device);
        struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        if (next == EMU_NEVER)
            pthread_cond_wait(&device->wake, &emu.lock);
        else if (next > 0)
            pthread_cond_timedwait(&device->wake, &emu.lock, &until);
    }
    return NULL;
}

void weft_emulated_pause(int device, int paused)
{
    pthread_mutex_lock(&emu.lock);
    if (device >= 0 && device < emu.device_count) {
        struct emu_device *stopped = &emu.devices[device];
        stopped->paused = paused != 0;
        while (stopped->paused && stopped->moving != 0)
            pthread_cond_wait(&emu.changed, &emu.lock);
        if (stopped->running)
            pthread_cond_signal(&stopped->wake);
    }
    pthread_mutex_unlock(&emu.lock);
}

/* The thread ends with the process: a driver's engines outlive every context, too. */
emu_result emu_engine_start_locked(struct emu_device *device)
{
    pthread_condattr_t attributes;
    pthread_attr_t thread_attributes;
    pthread_t thread;
    int error;

    if (device->running)
        return EMU_OK;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&device->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    device->random = emu.settings.seed + (uint64_t)device->index * UINT64_C(0xD1B54A32D192ED03);
    pthread_attr_init(&thread_attributes);
    pthread_attr_setdetachstate(&thread_attributes, PTHREAD_CREATE_DETACHED);
    error = pthread_create(&thread, &thread_attributes, run, device);
    pthread_attr_destroy(&thread_attributes);
    device->running = error == 0;
    return error == 0 ? EMU_OK : EMU_OUT_OF_MEMORY;
}
