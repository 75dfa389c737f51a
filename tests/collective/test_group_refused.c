/* test_group_refused.c: who does not come is named, and who is wrong is refused by name. */
#include "group_support.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT_MS = 2500 * LOOP_SLOWER };

static int pass(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    (void)process;
    return weft_group_barrier(group, GROUP_MS, err);
}

static void patience(struct group_world *world, int timeout_ms)
{
    for (int i = 0; i < world->count; i++)
        world->process[i].timeout_ms = timeout_ms;
}

static void never_started(uint32_t size, uint32_t missing)
{
    struct group_world world;
    char words[64];
    loop_note("rank %u of %u is missing", missing, size);
    group_world_create(&world, size, pass);
    patience(&world, SHORT_MS);
    for (uint32_t i = 0; i < size; i++)
        if (i != missing)
            group_start(&world.process[i]);
    group_join_all(&world);
    snprintf(words, sizeof words, "rank %u did not come within", missing);
    group_check_all(&world, (int)missing, -ETIMEDOUT, LOOP_SANITIZED ? "did not come within" : words);
    group_world_destroy(&world);
}

static void who_is_missing(void)
{
    never_started(3, 2);
    never_started(6, 1);
    never_started(3, 0);
}

/* The least patient member's time counts: the name is at every rank before it ends. */
static void the_least_patient(void)
{
    struct group_world world;
    group_world_create(&world, 4, pass);
    patience(&world, 60000 * LOOP_SLOWER);
    world.process[2].timeout_ms = SHORT_MS;
    for (int i = 0; i < 3; i++)
        group_start(&world.process[i]);
    group_join_all(&world);
    group_check_all(&world, 3, -ETIMEDOUT, "rank 3 did not come within");
    group_world_destroy(&world);
}

static int ended(struct group_world *world, int one, int other)
{
    int64_t limit_ms = loop_now_ms() + LOOP_WAIT_MS;
    for (;;) {
        int status, slot = waitpid(world->process[one].child.pid, &status, WNOHANG) > 0     ? one
                           : waitpid(world->process[other].child.pid, &status, WNOHANG) > 0 ? other
                                                                                            : -1;
        if (slot >= 0) {
            close(world->process[slot].child.in);
            close(world->process[slot].child.out);
            world->process[slot].child.pid = 0;
            return slot;
        }
        LOOP_CHECK(loop_now_ms() < limit_ms, "neither of the two has ended");
        loop_sleep_ms(5);
    }
}

static void started_twice(void)
{
    struct group_world world;
    group_world_create(&world, 3, pass);
    group_world_add(&world, 1);
    group_start(&world.process[0]);
    group_start(&world.process[1]);
    group_start(&world.process[3]);
    int refused = ended(&world, 1, 3);
    group_check(&world, refused, -EEXIST, "was it started twice?");
    group_check(&world, refused, -EEXIST, "rank 1 (");
    group_start(&world.process[2]);
    group_join_all(&world);
    group_check_all(&world, refused, 0, NULL);
    for (int i = 0; i < 4; i++)
        LOOP_CHECK(i == refused || strstr(world.shared->refused[i], "rank 1 ("), "rank %u knows of no refusal: '%s'",
                   world.process[i].rank, world.shared->refused[i]);
    group_world_destroy(&world);
}

/* Inherited by the processes that are started. */
static bool says_no_patience; /* in HELLO */
static pid_t stopped;         /* at the second HELLO, which says that the first one was refused; 0: none */

/* Stands before libweft's. HELLO is "weft-group VERSION RANK SIZE PROCESS TOKEN PATIENCE ...". */
int weft_send(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t tag,
              const struct weft_options *options, struct weft_request **out)
{
    int (*real)(struct weft_connection *, const void *, uint64_t, uint64_t, const struct weft_options *,
                struct weft_request **) = dlsym(RTLD_NEXT, "weft_send");
    LOOP_CHECK(real, "weft_send: %s", dlerror());
    bool hello = length > 11 && memcmp(buffer, "weft-group ", 11) == 0;
    static int hellos;
    if (hello && ++hellos == 2 && stopped > 0)
        kill(stopped, SIGSTOP);
    if (hello && says_no_patience) {
        char *at = (char *)buffer; /* ends in a zero */
        for (int word = 0; word < 6 && at; word++)
            at = strchr(at + 1, ' ');
        for (; at && isdigit((unsigned char)at[1]); at++)
            at[1] = '0';
    }
    return real(connection, buffer, length, tag, options, out);
}

/* All but `last` are started, with patience, and the wrong one ends. The last one has as much, but says that it has
 * none: so rank 0 ends the group when it comes. No time is told in which a process must have started, or in which rank
 * 0's word must have come. */
static void join_last(struct group_world *world, int last)
{
    says_no_patience = true;
    group_start(&world->process[last]);
    says_no_patience = false;
    group_join_all(world);
}

static void join_without(struct group_world *world, int wrong, int last)
{
    ended(world, wrong, wrong);
    join_last(world, last);
}

static void other_size(void)
{
    struct group_world world;
    group_world_create(&world, 3, pass);
    world.process[2].size = 4;
    group_start(&world.process[0]);
    group_start(&world.process[2]);
    join_without(&world, 2, 1);
    group_check(&world, 2, -EINVAL, "it has group size 4, this one 3");
    group_check_all(&world, 2, -ETIMEDOUT, "rank 2 did not come within");
    group_check_all(&world, 2, -ETIMEDOUT, "(refused: rank 2 (");
    group_world_destroy(&world);
}

static void other_name(void)
{
    struct group_world world;
    group_world_create(&world, 3, pass);
    world.process[1].name = "yours";
    world.process[1].timeout_ms = 2 * SHORT_MS; /* it goes on asking: that group may be about to end */
    group_start(&world.process[0]);
    group_start(&world.process[1]);
    join_without(&world, 1, 2);
    group_check(&world, 1, -ECONNREFUSED, "the group 'yours'");
    group_check_all(&world, 1, -ETIMEDOUT, "rank 1 did not come within");
    group_world_destroy(&world);
}

/* Rank 0 has refused it, and answers no more. */
static void refused_and_not_heard(void)
{
    struct group_world world;
    group_world_create(&world, 3, pass);
    world.process[1].name = "yours";
    world.process[1].timeout_ms = 2 * SHORT_MS;
    group_start(&world.process[0]);
    stopped = world.process[0].child.pid;
    group_start(&world.process[1]);
    stopped = 0;
    ended(&world, 1, 1);
    kill(world.process[0].child.pid, SIGCONT);
    join_last(&world, 2);
    group_check(&world, 1, -ECONNREFUSED, "the group 'yours'");
    group_check_all(&world, 1, -ETIMEDOUT, "rank 1 did not come within");
    group_world_destroy(&world);
}

static int play_version(int in, int out, void *arg)
{
    struct group_world *world = arg;
    char answer[512], words[80];
    (void)in, (void)out;
    struct weft_context *context = loop_context(NULL, 1);
    snprintf(words, sizeof words, "it has version %d of groups, this one %d", GROUP_VERSION + 3, GROUP_VERSION);
    int tag = group_play(world, context, GROUP_VERSION + 3, 2, 3, answer);
    LOOP_CHECK(tag == 3 && strstr(answer, words), "answer %d '%s'", tag, answer);
    loop_context_end(context);
    return 0;
}

static void other_version(void)
{
    struct group_world world;
    char words[64];
    snprintf(words, sizeof words, "it has version %d of groups", GROUP_VERSION + 3);
    group_world_create(&world, 3, pass);
    group_start(&world.process[0]);
    loop_child_start(&world.process[2].child, play_version, &world);
    join_without(&world, 2, 1);
    group_check_all(&world, 2, -ETIMEDOUT, "rank 2 did not come within");
    group_check_all(&world, 2, -ETIMEDOUT, words);
    group_world_destroy(&world);
}

static void write_key(struct group_world *world, const char *name, char digit, char *settings, size_t room)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", world->folder, name);
    FILE *file = fopen(path, "w");
    LOOP_CHECK(file, "%s: %s", path, strerror(errno));
    for (int i = 0; i < 64; i++)
        fputc(i % 2 ? digit : '5', file);
    fputc('\n', file);
    fclose(file);
    chmod(path, 0600);
    snprintf(settings, room, "key_file=%s", path);
}

static void remove_key(struct group_world *world, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", world->folder, name);
    unlink(path);
}

static void other_key(void)
{
    struct group_world world;
    char ours[200], theirs[200];
    int port, held = loop_hold_port(&port);
    group_world_create(&world, 3, pass);
    snprintf(world.rendezvous, sizeof world.rendezvous, "127.0.1.1:%d", port);
    write_key(&world, "ours", 'a', ours, sizeof ours);
    write_key(&world, "theirs", 'b', theirs, sizeof theirs);
    for (int i = 0; i < 3; i++)
        world.process[i].settings = i == 2 ? theirs : ours;
    group_start(&world.process[0]);
    group_start(&world.process[2]);
    join_without(&world, 2, 1);
    group_check(&world, 2, -EACCES, "key");
    group_check_all(&world, 2, -ETIMEDOUT, "rank 2 did not come within");
    world.process[2].settings = ours;
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    remove_key(&world, "ours");
    remove_key(&world, "theirs");
    close(held);
    group_world_destroy(&world);
}

/* A file that an earlier run has left behind, whose port is somebody else's now. */
static void an_old_file(void)
{
    struct group_world world;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("127.0.1.1")};
    socklen_t length = sizeof address;
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    LOOP_CHECK(bind(other, (struct sockaddr *)&address, length) == 0 && listen(other, 8) == 0 &&
                   getsockname(other, (struct sockaddr *)&address, &length) == 0,
               "a listener: %s", strerror(errno));
    group_world_create(&world, 3, pass);
    FILE *file = fopen(world.rendezvous + strlen("file:"), "w");
    fprintf(file, "weft-rendezvous 1 0123456789abcdef;127.0.1.1:%d\n", ntohs(address.sin_port));
    fclose(file);
    group_start(&world.process[1]);
    group_start(&world.process[2]);
    LOOP_CHECK(loop_readable(other, LOOP_WAIT_MS), "nobody takes the old file");
    close(accept(other, NULL, NULL));
    group_start(&world.process[0]);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    close(other);
    group_world_destroy(&world);
}

/* One whose address is that of another run of the same group, which still waits. */
static void an_old_run(void)
{
    struct group_world old, world;
    char line[256] = "";
    group_world_create(&old, 2, pass);
    group_start(&old.process[0]);
    int64_t limit_ms = loop_now_ms() + LOOP_WAIT_MS;
    while (!line[0]) {
        FILE *file = fopen(old.rendezvous + strlen("file:"), "r");
        if (file && !fgets(line, sizeof line, file))
            line[0] = '\0';
        if (file)
            fclose(file);
        LOOP_CHECK(loop_now_ms() < limit_ms, "no file");
        loop_sleep_ms(5);
    }
    group_world_create(&world, 2, pass);
    memcpy(strstr(line, " 1 ") + 3, "0123456789abcdef", 16); /* the port is the old run's again, the file older still */
    FILE *file = fopen(world.rendezvous + strlen("file:"), "w");
    fputs(line, file);
    fclose(file);
    group_start(&world.process[1]);
    group_start(&world.process[0]);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_start(&old.process[1]);
    group_join_all(&old);
    group_check_all(&old, -1, 0, NULL);
    group_world_destroy(&world);
    group_world_destroy(&old);
}

static void two_groups_of_a_context(void)
{
    struct weft_group_options options = {.size = 1};
    struct weft_group *one, *two;
    struct weft_error err = {0};
    struct weft_context *context = loop_context(NULL, 1);
    LOOP_CALL(weft_group_create(context, &options, 1000, &one, &err), &err);
    LOOP_CHECK(weft_group_create(context, &options, 1000, &two, &err) == -EBUSY && strstr(err.text, "has a group"),
               "'%s'", err.text);
    weft_group_destroy(one);
    LOOP_CALL(weft_group_create(context, &options, 1000, &two, &err), &err);
    weft_group_destroy(two);
    options = (struct weft_group_options){.size = 2};
    LOOP_CHECK(weft_group_create(context, &options, 1000, &two, &err) == -EINVAL &&
                   strstr(err.text, "give a rendezvous"),
               "'%s'", err.text);
    loop_context_end(context);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(who_is_missing, 30),
        LOOP_CASE(the_least_patient, 20),
        LOOP_CASE(started_twice, 20),
        LOOP_CASE(other_size, 20),
        LOOP_CASE(other_name, 20),
        LOOP_CASE(refused_and_not_heard, 20),
        LOOP_CASE(other_version, 20),
        LOOP_CASE(other_key, 40),
        LOOP_CASE(an_old_file, 40),
        LOOP_CASE(an_old_run, 40),
        LOOP_CASE(two_groups_of_a_context, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
