/* test_options.c: a program that was compiled with the first weft_options has a shorter one than later versions of
 * weft.h. It lies right before memory that nobody may touch: a field of later is read only where its flag is set. */
#include "loop_support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_BYTES (offsetof(struct weft_options, stream) + sizeof(void *)) /* the first one ended here */

static unsigned char *pages; /* two; the second one may not be touched */

/* The first weft_options with these values; each call has the one before no longer. */
static const struct weft_options *old_options(uint32_t flags, const char *note)
{
    unsigned char *place = pages + getpagesize() - FIRST_BYTES;
    struct weft_options options = {.flags = flags, .notify_data = note, .notify_length = note ? strlen(note) : 0};
    memcpy(place, &options, FIRST_BYTES);
    return (const struct weft_options *)(void *)place;
}

static struct weft_request *posted(int result, struct weft_request *request)
{
    LOOP_CHECK(result == 0, "%d", result);
    return request;
}

static void every_call_that_takes_them(void)
{
    struct loop_pair pair;
    struct weft_registration *memory;
    struct weft_error err = {0};
    struct weft_request *in, *out;
    struct weft_piece piece = {.length = 100};
    static unsigned char far[1000], near[1000];
    char note[16];

    pages = mmap(NULL, 2 * (size_t)getpagesize(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    LOOP_CHECK(pages != MAP_FAILED && mprotect(pages + getpagesize(), (size_t)getpagesize(), PROT_NONE) == 0, "mmap");
    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_connection *left = pair.node[0].connection, *right = pair.node[1].connection;
    LOOP_CALL(weft_register(pair.node[1].context, far, sizeof far, &memory, &err), &err);
    uint64_t key = weft_registration_key(memory);

    int result = weft_recv(right, near, sizeof near, 0, old_options(WEFT_ANY_TAG, NULL), &in);
    posted(result, in);
    result = weft_send(left, near, 0, 3, old_options(0, NULL), &out);
    loop_done(posted(result, out), 0, 0);
    loop_done(in, 0, 0);

    result = weft_recv_notification(right, note, sizeof note, old_options(0, NULL), &in);
    posted(result, in);
    result = weft_write(left, near, 1000, key, 0, old_options(WEFT_NOTIFY, "written"), &out);
    loop_done(posted(result, out), 0, 1000);
    loop_done(in, 0, 7);
    result = weft_read(left, near, 1000, key, 0, old_options(0, NULL), &out);
    loop_done(posted(result, out), 0, 1000);
    result = weft_write_list(left, near, &piece, 1, key, old_options(0, NULL), &out);
    loop_done(posted(result, out), 0, 100);
    result = weft_read_list(left, near, &piece, 1, key, old_options(0, NULL), &out);
    loop_done(posted(result, out), 0, 100);

    struct weft_message message;
    LOOP_CHECK(weft_probe(right, 0, old_options(WEFT_ANY_TAG, NULL), &message) == 0, "a message that nobody sent");
    result = weft_endpoint_recv(pair.node[1].endpoint, near, sizeof near, 0, old_options(WEFT_ANY_TAG, NULL), &in);
    posted(result, in);
    result = weft_send(left, near, 10, 4, old_options(WEFT_SYNC, NULL), &out);
    loop_done(posted(result, out), 0, 10);
    loop_done(in, 0, 10);
    result = weft_connect_start(pair.node[0].context, "127.0.0.1:1", old_options(0, NULL), &out, &err);
    weft_cancel(posted(result, out));
    LOOP_CHECK(loop_end(out).status < 0, "nobody listens there");
    result = weft_accept_start(pair.node[1].context, old_options(0, NULL), &in, &err);
    weft_cancel(posted(result, in));
    loop_done(in, -ECANCELED, 0);
    result = weft_connection_open_start(pair.node[0].endpoint, pair.node[0].peer, 0, old_options(0, NULL), &out, &err);
    LOOP_CHECK(loop_end(posted(result, out)).connection, "no connection");

    weft_deregister(memory);
    loop_pair_destroy(&pair);
    munmap(pages, 2 * (size_t)getpagesize());
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(every_call_that_takes_them, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
