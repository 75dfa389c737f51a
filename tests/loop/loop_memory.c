/* loop_memory.c: buffers of the processor's and of devices, and what stands in them. Device memory is looked at and
 * filled through copies: here nobody touches it either. */
#include "loop_support.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loop_world.h"

#define SLACK 0x5C
#define GRAIN 512               /* device memory is taken in multiples of it; the slack makes up for the rest */
#define BLOCK ((size_t)1 << 20) /* of what is copied from or to a device at a time */
#define CONTEXTS_MAX 16

/* --- who is there --- */

/* A buffer in device memory, registered with every context of the test's. */
struct device_buffer {
    struct device_buffer *next;
    unsigned char *base, *data; /* what was taken, and what of it is the buffer */
    size_t taken, size;
    int device;
    struct weft_registration *registrations[CONTEXTS_MAX]; /* by place in `contexts` */
};

/* Owner: `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_context *contexts[CONTEXTS_MAX];
static struct device_buffer *device_buffers;
static uint64_t buffers_made;

enum loop_memory_kind loop_memory(void)
{
    static const char *const names[] = {"host", "cuda", "send", "recv", "mixed"};
    const char *text = getenv("LOOP_MEMORY");
    for (int kind = LOOP_ALL_HOST; text && kind <= LOOP_MIXED; kind++)
        if (strcmp(text, names[kind]) == 0)
            return (enum loop_memory_kind)kind;
    LOOP_CHECK(!text || !text[0], "LOOP_MEMORY=%s: host, cuda, send, recv or mixed", text);
    return LOOP_ALL_HOST;
}

static void enter(struct device_buffer *buffer, int place)
{
    struct weft_error err = {0};
    if (buffer->size && contexts[place])
        LOOP_CALL(weft_register(contexts[place], buffer->data, buffer->size, &buffer->registrations[place], &err),
                  &err);
}

void loop_memory_join(struct weft_context *context)
{
    int place = 0;
    pthread_mutex_lock(&lock);
    while (place < CONTEXTS_MAX && contexts[place])
        place++;
    LOOP_CHECK(place < CONTEXTS_MAX, "more than %d contexts", CONTEXTS_MAX);
    contexts[place] = context;
    for (struct device_buffer *buffer = device_buffers; buffer; buffer = buffer->next)
        enter(buffer, place);
    pthread_mutex_unlock(&lock);
}

void loop_memory_leave(const struct weft_context *context)
{
    pthread_mutex_lock(&lock);
    for (int place = 0; place < CONTEXTS_MAX; place++) {
        if (contexts[place] != context)
            continue;
        contexts[place] = NULL;
        for (struct device_buffer *buffer = device_buffers; buffer; buffer = buffer->next)
            buffer->registrations[place] = NULL; /* the context takes them with it */
    }
    pthread_mutex_unlock(&lock);
}

static bool is_device(const void *data)
{
    const unsigned char *at = data;
    bool found = false;
    pthread_mutex_lock(&lock);
    for (struct device_buffer *buffer = device_buffers; buffer && !found; buffer = buffer->next)
        found = at >= buffer->base && at < buffer->base + buffer->taken;
    pthread_mutex_unlock(&lock);
    return found;
}

/* --- buffers --- */

/* Wherever LOOP_MEMORY puts it. */
static bool belongs_to_device(enum loop_side side, uint64_t number)
{
    switch (loop_memory()) {
    case LOOP_ALL_CUDA:
        return side != LOOP_HOST;
    case LOOP_SEND_CUDA:
        return side == LOOP_NEAR;
    case LOOP_RECV_CUDA:
        return side == LOOP_FAR;
    case LOOP_MIXED:
        return side != LOOP_HOST && (number * 0x9E3779B97F4A7C15u) >> 63;
    default:
        return false;
    }
}

static void create_host(struct loop_buffer *buffer, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (size + page - 1) / page * page;
    unsigned char *map;

    *buffer = (struct loop_buffer){.size = size, .mapped = usable + 2 * page, .device = LOOP_NO_DEVICE};
    map = mmap(NULL, buffer->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    LOOP_CHECK(map != MAP_FAILED, "mmap of %zu bytes: %s", buffer->mapped, strerror(errno));
    if (usable)
        LOOP_CHECK(mprotect(map + page, usable, PROT_READ | PROT_WRITE) == 0, "mprotect: %s", strerror(errno));
    buffer->map = map;
    buffer->data = map + page + (usable - size);
    memset(map + page, SLACK, usable - size);
}

void loop_buffer_create_on(struct loop_buffer *buffer, int device, size_t size)
{
    if (device == LOOP_NO_DEVICE) {
        create_host(buffer, size);
        return;
    }
    size_t taken = (size + GRAIN - 1) / GRAIN * GRAIN;
    taken = taken ? taken : GRAIN;
    struct device_buffer *record = calloc(1, sizeof *record);
    LOOP_CHECK(record, "memory");
    record->base = loop_world_take(device, taken);
    record->data = record->base + (taken - size);
    record->taken = taken;
    record->size = size;
    record->device = device;
    pthread_mutex_lock(&lock);
    record->next = device_buffers;
    device_buffers = record;
    for (int place = 0; place < CONTEXTS_MAX; place++)
        enter(record, place);
    pthread_mutex_unlock(&lock);
    *buffer = (struct loop_buffer){
        .data = record->data, .size = size, .map = record->base, .mapped = taken, .device = device};
    loop_set(record->base, taken - size, SLACK);
}

void loop_buffer_create(struct loop_buffer *buffer, enum loop_side side, size_t size)
{
    pthread_mutex_lock(&lock);
    uint64_t number = buffers_made++;
    pthread_mutex_unlock(&lock);
    bool on_device = belongs_to_device(side, number);
    loop_buffer_create_on(buffer, on_device ? (int)(number / 2 % (uint64_t)loop_world_devices()) : LOOP_NO_DEVICE,
                          size);
}

/* Out of the list, so that no context gets it any more. */
static struct device_buffer *take_out(const unsigned char *base)
{
    struct device_buffer *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct device_buffer **at = &device_buffers; *at; at = &(*at)->next) {
        if ((*at)->base != base)
            continue;
        found = *at;
        *at = found->next;
        break;
    }
    pthread_mutex_unlock(&lock);
    LOOP_CHECK(found, "a device buffer that nobody knows");
    return found;
}

static void give_back(struct loop_buffer *buffer)
{
    struct device_buffer *record = take_out(buffer->map);
    for (int place = 0; place < CONTEXTS_MAX; place++)
        if (record->registrations[place])
            loop_world_deregister(record->registrations[place]);
    loop_world_give(record->device, record->base);
    free(record);
}

void loop_buffer_unmap(struct loop_buffer *buffer)
{
    size_t page = buffer->device == LOOP_NO_DEVICE ? (size_t)sysconf(_SC_PAGESIZE) : 0;

    if (!buffer->map)
        return;
    int64_t at = loop_differs(buffer->map + page, (size_t)(buffer->data - buffer->map) - page, SLACK);
    LOOP_CHECK(at < 0, "the byte %td before a buffer of %zu was written",
               buffer->data - buffer->map - (ptrdiff_t)page - (ptrdiff_t)at, buffer->size);
    if (buffer->device == LOOP_NO_DEVICE)
        munmap(buffer->map, buffer->mapped);
    else
        give_back(buffer);
    buffer->map = NULL;
    buffer->data = NULL;
}

/* --- content --- */

static uint64_t pattern_word(uint64_t seed, uint64_t index)
{
    uint64_t word = (seed + index) * 0x9E3779B97F4A7C15u;

    word = (word ^ (word >> 29)) * 0xBF58476D1CE4E5B9u;
    return word ^ (word >> 32);
}

/* The pattern from word `first` on. */
static void fill(unsigned char *bytes, size_t size, uint64_t seed, uint64_t first)
{
    size_t offset = 0;

    for (; offset + 8 <= size; offset += 8) {
        uint64_t word = pattern_word(seed, first + offset / 8);
        memcpy(bytes + offset, &word, 8);
    }
    uint64_t last = pattern_word(seed, first + offset / 8);
    if (offset < size)
        memcpy(bytes + offset, &last, size - offset);
}

static int64_t wrong(const unsigned char *bytes, size_t size, uint64_t seed, uint64_t first)
{
    for (size_t offset = 0; offset < size; offset += 8) {
        uint64_t word = pattern_word(seed, first + offset / 8);
        size_t length = size - offset < 8 ? size - offset : 8;
        if (memcmp(bytes + offset, &word, length) == 0)
            continue;
        for (size_t i = 0; i < length; i++)
            if (bytes[offset + i] != ((unsigned char *)&word)[i])
                return (int64_t)(offset + i);
    }
    return -1;
}

static int64_t differs(const unsigned char *bytes, size_t size, int value)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (unsigned char)value)
            return (int64_t)i;
    return -1;
}

static unsigned char *shadow_of(size_t size)
{
    unsigned char *shadow = malloc(size < BLOCK ? size + 1 : BLOCK);
    LOOP_CHECK(shadow, "memory");
    return shadow;
}

void loop_fill(void *data, size_t size, uint64_t seed)
{
    unsigned char *bytes = data;

    if (!is_device(data)) {
        fill(bytes, size, seed, 0);
        return;
    }
    unsigned char *shadow = shadow_of(size);
    for (size_t at = 0; at < size; at += BLOCK) {
        size_t length = size - at < BLOCK ? size - at : BLOCK;
        fill(shadow, length, seed, at / 8);
        loop_world_copy(bytes + at, shadow, length);
    }
    free(shadow);
}

void loop_set(void *data, size_t size, int value)
{
    unsigned char *bytes = data;

    if (!is_device(data)) {
        memset(bytes, value, size);
        return;
    }
    unsigned char *shadow = shadow_of(size);
    memset(shadow, value, size < BLOCK ? size : BLOCK);
    for (size_t at = 0; at < size; at += BLOCK)
        loop_world_copy(bytes + at, shadow, size - at < BLOCK ? size - at : BLOCK);
    free(shadow);
}

/* The first offset where something is found, in memory of any kind; -1. */
static int64_t look(const void *data, size_t size, int64_t (*find)(const unsigned char *, size_t, size_t, const void *),
                    const void *argument)
{
    const unsigned char *bytes = data;
    int64_t found = -1;

    if (!is_device(data))
        return find(bytes, size, 0, argument);
    unsigned char *shadow = shadow_of(size);
    for (size_t at = 0; at < size && found < 0; at += BLOCK) {
        size_t length = size - at < BLOCK ? size - at : BLOCK;
        loop_world_copy(shadow, bytes + at, length);
        found = find(shadow, length, at, argument);
        found += found < 0 ? 0 : (int64_t)at;
    }
    free(shadow);
    return found;
}

static int64_t find_wrong(const unsigned char *bytes, size_t size, size_t at, const void *seed)
{
    return wrong(bytes, size, *(const uint64_t *)seed, at / 8);
}

int64_t loop_wrong(const void *data, size_t size, uint64_t seed)
{
    return look(data, size, find_wrong, &seed);
}

static int64_t find_differs(const unsigned char *bytes, size_t size, size_t at, const void *value)
{
    (void)at;
    return differs(bytes, size, *(const int *)value);
}

int64_t loop_differs(const void *data, size_t size, int value)
{
    return look(data, size, find_differs, &value);
}

/* `bytes` against what stands at the same place of other memory. */
static int64_t find_other(const unsigned char *bytes, size_t size, size_t at, const void *other)
{
    const unsigned char *of = *(const unsigned char *const *)other + at;
    unsigned char *copy = NULL;
    int64_t found = -1;

    if (is_device(of)) {
        copy = malloc(size + 1);
        LOOP_CHECK(copy, "memory");
        loop_world_copy(copy, of, size);
        of = copy;
    }
    if (size && memcmp(bytes, of, size) != 0)
        for (size_t i = 0; i < size && found < 0; i++)
            found = bytes[i] != of[i] ? (int64_t)i : -1;
    free(copy);
    return found;
}

bool loop_same(const void *a, const void *b, size_t size)
{
    return look(a, size, find_other, &b) < 0;
}

unsigned char loop_byte(const void *data)
{
    unsigned char byte = 0;

    if (is_device(data))
        loop_world_copy(&byte, data, 1);
    else
        byte = *(const unsigned char *)data;
    return byte;
}

/* --- messages --- */

void loop_message_create(struct loop_message *message, size_t size, uint64_t seed)
{
    *message = (struct loop_message){.seed = seed};
    loop_buffer_create(&message->source, LOOP_NEAR, size);
    loop_buffer_create(&message->sink, LOOP_FAR, size);
    loop_fill(message->source.data, size, seed);
    loop_set(message->sink.data, size, LOOP_POISON);
}

void loop_message_verify(struct loop_message *message)
{
    loop_set(message->source.data, message->source.size, 0x11);
    int64_t at = loop_wrong(message->sink.data, message->sink.size, message->seed);
    LOOP_CHECK(at < 0, "message of %zu bytes is wrong from offset %lld: 0x%02x stands there", message->sink.size,
               (long long)at, loop_byte(message->sink.data + at));
}

void loop_message_destroy(struct loop_message *message)
{
    loop_buffer_unmap(&message->source);
    loop_buffer_unmap(&message->sink);
}

void loop_message_finish(struct loop_message *message)
{
    loop_done(message->recv, 0, message->sink.size);
    loop_done(message->send, 0, message->source.size);
    loop_message_verify(message);
    loop_message_destroy(message);
}
