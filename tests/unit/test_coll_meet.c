/* test_coll_meet.c: rank, size and meeting from each source, in made-up environments. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "collective/rendezvous/rendezvous.h"
#include "collective/rendezvous/source.h"

/* --- made-up environments: "NAME=VALUE" --- */

static const char *get(void *user, const char *name)
{
    size_t length = strlen(name);
    for (const char *const *entry = user; *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

#define ENV(...) (&(struct wf_meet_env){get, (const char *[]){__VA_ARGS__, NULL}})

static struct wf_meet meet;
static struct weft_error err;

static int find(const struct wf_meet_env *env, struct weft_group_options options)
{
    memset(&err, 0, sizeof err);
    int result = wf_meet_init(&meet, &options, env, &err);
    wf_meet_fini(&meet);
    return result;
}

static void finds(const struct wf_meet_env *env, struct weft_group_options options, uint32_t rank, uint32_t size,
                  int local, enum wf_meet_way way, const char *place, const char *said)
{
    int result = find(env, options);
    if (result != 0)
        fail_msg("%s", err.text);
    assert_int_equal(meet.rank, rank);
    assert_int_equal(meet.size, size);
    assert_int_equal(meet.local_rank, local);
    assert_int_equal(meet.way, way);
    assert_string_equal(meet.place, place);
    assert_string_equal(meet.said, said);
}

static void refuses(const struct wf_meet_env *env, struct weft_group_options options, const char *words)
{
    assert_int_equal(find(env, options), -EINVAL);
    if (!strstr(err.text, words))
        fail_msg("'%s', and not '%s'", err.text, words);
}

#define NONE                                                                                                           \
    (struct weft_group_options)                                                                                        \
    {                                                                                                                  \
        0                                                                                                              \
    }

static void options(void **state)
{
    (void)state;
    struct weft_group_options given = {.size = 4, .rank = 3, .rendezvous = "node1:5000"};
    finds(ENV("RANK=0", "WORLD_SIZE=2"), given, 3, 4, -1, WF_MEET_HOST, "node1:5000",
          "rank 3 of 4 by options, meeting at node1:5000 (options)");
    given.rendezvous = "file:/shared/run 1";
    finds(ENV("A=b"), given, 3, 4, -1, WF_MEET_FILE, "/shared/run 1",
          "rank 3 of 4 by options, meeting at file:/shared/run 1 (options)");
    given.rank = 4;
    refuses(ENV("A=b"), given, "rank 4 of 4: ranks go from 0 to one less than the size");
    refuses(ENV("A=b"), (struct weft_group_options){.size = 2, .rank = 1},
            "but not where they meet: give a rendezvous");
    finds(ENV("A=b"), (struct weft_group_options){.size = 1}, 0, 1, -1, WF_MEET_NOWHERE, "", "rank 0 of 1 by options");
    refuses(ENV("A=b"), (struct weft_group_options){.size = 2, .rendezvous = "node1"},
            "must be HOST:PORT or file:PATH");
    refuses(ENV("A=b"), (struct weft_group_options){.size = 2, .rendezvous = ":5"}, "must be HOST:PORT or file:PATH");
    refuses(ENV("A=b"), (struct weft_group_options){.size = 2, .rendezvous = "file:"},
            "must be HOST:PORT or file:PATH");
    refuses(ENV("A=b"), (struct weft_group_options){.size = 1, .name = "two words"}, "no white space");
    refuses(ENV("A=b"), (struct weft_group_options){.size = 1, .reserved = {0, 1}}, "reserved");
    refuses(ENV("A=b"), (struct weft_group_options){.source = "mpi"}, "must be options, pmix, torchrun, slurm or pmi");
    refuses(ENV("A=b"), (struct weft_group_options){.source = "options"}, "give size and rank");
    refuses(ENV("A=b"), NONE, "nothing in the environment");
}

static void torchrun(void **state)
{
    (void)state;
    finds(ENV("RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "MASTER_ADDR=node0", "MASTER_PORT=29500"), NONE, 5, 8, 1,
          WF_MEET_HOST, "node0:29500",
          "rank 5 of 8 by torchrun's variables, meeting at node0:29500 (MASTER_ADDR and MASTER_PORT)");
    finds(ENV("RANK=5", "WORLD_SIZE=8", "MASTER_ADDR=fd00::1", "MASTER_PORT=1"), NONE, 5, 8, -1, WF_MEET_HOST,
          "[fd00::1]:1", "rank 5 of 8 by torchrun's variables, meeting at [fd00::1]:1 (MASTER_ADDR and MASTER_PORT)");
    finds(ENV("RANK=5", "WORLD_SIZE=8", "MASTER_ADDR=node0", "MASTER_PORT=29500"),
          (struct weft_group_options){.rendezvous = "file:/f"}, 5, 8, -1, WF_MEET_FILE, "/f",
          "rank 5 of 8 by torchrun's variables, meeting at file:/f (options)");
    refuses(ENV("RANK=5", "WORLD_SIZE=8"), NONE,
            "rank 5 of 8 by torchrun's variables, but not where they meet: set MASTER_ADDR");
    refuses(ENV("RANK=5", "WORLD_SIZE=8", "MASTER_ADDR=a", "MASTER_PORT=1", "TORCHELASTIC_USE_AGENT_STORE=True"), NONE,
            "MASTER_PORT is that of torchrun's own store");
    refuses(ENV("RANK=8", "WORLD_SIZE=8"), NONE, "RANK=8 and WORLD_SIZE=8 in the environment");
    refuses(ENV("RANK=one", "WORLD_SIZE=8"), NONE, "RANK='one' in the environment: must be a number");
    refuses(ENV("RANK=1", "WORLD_SIZE=-8"), NONE, "WORLD_SIZE='-8'");
    refuses(ENV("RANK=1", "WORLD_SIZE=2", "MASTER_PORT=70000"), NONE, "MASTER_PORT='70000'");
    refuses(ENV("RANK=1"), NONE, "nothing in the environment");
}

static void slurm(void **state)
{
    (void)state;
#define STEP "SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=4", "SLURM_NTASKS=9", "SLURM_LOCALID=0"
    finds(ENV(STEP, "MASTER_ADDR=a", "MASTER_PORT=7", "SLURM_STEP_NODELIST=n[1-4]"), NONE, 2, 4, 0, WF_MEET_HOST, "a:7",
          "rank 2 of 4 by Slurm's variables, meeting at a:7 (MASTER_ADDR and MASTER_PORT)");
    finds(ENV(STEP, "MASTER_PORT=7", "SLURM_STEP_NODELIST=n[03-04]", "SLURM_JOB_NODELIST=n[01-04]"), NONE, 2, 4, 0,
          WF_MEET_HOST, "n03:7",
          "rank 2 of 4 by Slurm's variables, meeting at n03:7 (SLURM_STEP_NODELIST and MASTER_PORT)");
    finds(ENV(STEP, "SLURM_STEP_RESV_PORTS=12000-12003", "SLURM_JOB_NODELIST=n1"), NONE, 2, 4, 0, WF_MEET_HOST,
          "n1:12000",
          "rank 2 of 4 by Slurm's variables, meeting at n1:12000 (SLURM_JOB_NODELIST and SLURM_STEP_RESV_PORTS)");
    finds(ENV("SLURM_PROCID=0", "SLURM_NTASKS=2", "MASTER_PORT=7", "SLURM_LAUNCH_NODE_IPADDR=10.0.0.1"), NONE, 0, 2, -1,
          WF_MEET_HOST, "10.0.0.1:7",
          "rank 0 of 2 by Slurm's variables, meeting at 10.0.0.1:7 (SLURM_LAUNCH_NODE_IPADDR and MASTER_PORT)");
    refuses(ENV(STEP, "SLURM_JOB_NODELIST=n1"), NONE, "Slurm gives no port: set MASTER_PORT");
    finds(ENV(STEP), (struct weft_group_options){.rendezvous = "file:/f"}, 2, 4, 0, WF_MEET_FILE, "/f",
          "rank 2 of 4 by Slurm's variables, meeting at file:/f (options)");
}

static void slurm_lists(void **state)
{
    (void)state;
    static const char *const lists[][2] = {
        {"node1", "node1"},
        {"node[01-04,07],other", "node01"},
        {"a,b", "a"},
        {"n[7]", "n7"},
        {"r[1-2]n[03-04]x", "r1n03x"},
        {"n[10,12-14]", "n10"},
        {"n[1", ""},
        {"n]", ""},
        {"n[a]", ""},
        {"", ""},
        {",b", ""},
        {"n[1-2", ""},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char host[16] = "";
        bool found = wf_slurm_first_host(lists[i][0], host, sizeof host);
        assert_int_equal(found, lists[i][1][0] != '\0');
        if (found)
            assert_string_equal(host, lists[i][1]);
    }
    char small[4];
    assert_false(wf_slurm_first_host("node1", small, sizeof small));
    assert_false(wf_slurm_first_host("n[0001]", small, sizeof small));
}

static void order(void **state)
{
    (void)state;
    const struct wf_meet_env *all = ENV("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=7", "SLURM_PROCID=2",
                                        "SLURM_NTASKS=4", "PMI_RANK=3", "PMI_SIZE=5");
    finds(all, NONE, 1, 2, -1, WF_MEET_HOST, "a:7",
          "rank 1 of 2 by torchrun's variables, meeting at a:7 (MASTER_ADDR and MASTER_PORT)");
    finds(all, (struct weft_group_options){.source = "slurm"}, 2, 4, -1, WF_MEET_HOST, "a:7",
          "rank 2 of 4 by Slurm's variables, meeting at a:7 (MASTER_ADDR and MASTER_PORT)");
    refuses(all, (struct weft_group_options){.source = "pmi"},
            "rank 3 of 5 by PMI-1, but not where they meet: PMI_FD is not set");
    /* The first that knows all of it, not the first that knows something. */
    finds(ENV("RANK=1", "WORLD_SIZE=2", "SLURM_PROCID=2", "SLURM_NTASKS=4", "SLURM_NODELIST=n1", "MASTER_PORT=7"), NONE,
          2, 4, -1, WF_MEET_HOST, "n1:7",
          "rank 2 of 4 by Slurm's variables, meeting at n1:7 (SLURM_NODELIST and MASTER_PORT)");
}

/* A launcher whose server is gone, as in a shell that was started by one: the next source is asked. */
static void pmix_gone(void **state)
{
    (void)state;
    refuses(ENV("PMIX_NAMESPACE=gone", "PMIX_RANK=1"), NONE, "PMIx has started this process");
    const struct wf_meet_env *no_port = ENV("PMIX_NAMESPACE=gone", "PMIX_RANK=2", STEP, "SLURM_JOB_NODELIST=n1");
    refuses(no_port, NONE, "rank 2 of 4 by Slurm's variables, but not where they meet: Slurm gives no port");
    refuses(no_port, NONE, "file:PATH; PMIx has started this process, ");
    finds(ENV("PMIX_NAMESPACE=gone", "PMIX_RANK=1", "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=7"), NONE,
          1, 2, -1, WF_MEET_HOST, "a:7",
          "rank 1 of 2 by torchrun's variables, meeting at a:7 (MASTER_ADDR and MASTER_PORT)");
}

/* --- PMI-1, with a server that is played --- */

struct server {
    int fd;
    const char *const *script; /* what it hears, what it answers (NULL: nothing, and closes), ... */
    char heard[1024];
};

static void *serve(void *user)
{
    struct server *server = user;
    for (const char *const *at = server->script; *at; at += 2) {
        char line[512];
        size_t length = 0;
        while (length + 1 < sizeof line && read(server->fd, line + length, 1) == 1 && line[length] != '\n')
            length++;
        line[length] = '\0';
        if (strcmp(line, at[0]) != 0) {
            snprintf(server->heard, sizeof server->heard, "'%s', not '%s'", line, at[0]);
            break;
        }
        if (!at[1])
            break;
        for (const char *byte = at[1]; *byte; byte++) /* in pieces: a line may come so */
            if (write(server->fd, byte, 1) != 1)
                break;
    }
    close(server->fd);
    return NULL;
}

static pthread_t thread;
static int pair[2];

static void start_server(struct server *server, const char *const *script)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    *server = (struct server){.fd = pair[1], .script = script};
    assert_int_equal(pthread_create(&thread, NULL, serve, server), 0);
}

static void stop_server(struct server *server)
{
    close(pair[0]);
    pthread_join(thread, NULL);
    if (server->heard[0])
        fail_msg("the server heard %s", server->heard);
}

#define INIT "cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
#define END "cmd=finalize", "cmd=finalize_ack\n"
#define SPACE "cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_1_0\n"

static int find_pmi(const char *rank, const char *name)
{
    char fd[32], variable[32];
    snprintf(fd, sizeof fd, "PMI_FD=%d", pair[0]);
    snprintf(variable, sizeof variable, "PMI_RANK=%s", rank);
    struct weft_group_options given = {.name = name};
    memset(&err, 0, sizeof err);
    return wf_meet_init(&meet, &given, ENV(fd, variable, "PMI_SIZE=2", "MPI_LOCALRANKID=1"), &err);
}

static void pmi_first(void **state)
{
    (void)state;
    static const char *const script[] = {INIT,
                                         SPACE,
                                         "cmd=put kvsname=kvs_1_0 key=weft.- value=77;10.0.0.1:5",
                                         "cmd=put_result rc=0 msg=success\n",
                                         "cmd=barrier_in",
                                         "cmd=barrier_out\n",
                                         END,
                                         NULL};
    struct server server;
    start_server(&server, script);
    assert_int_equal(find_pmi("0", NULL), 0);
    assert_string_equal(meet.said, "rank 0 of 2 by PMI-1, meeting by PMI_FD");
    assert_int_equal(meet.local_rank, 1);
    if (wf_meet_publish(&meet, "77;10.0.0.1:5", 5000, &err) != 0)
        fail_msg("%s", err.text);
    wf_meet_fini(&meet);
    stop_server(&server);
}

static void pmi_second(void **state)
{
    (void)state;
    static const char *const script[] = {INIT,
                                         SPACE,
                                         "cmd=barrier_in",
                                         "cmd=barrier_out\n",
                                         "cmd=get kvsname=kvs_1_0 key=weft.mine",
                                         "cmd=get_result rc=0 msg=success value=77;10.0.0.1:5\n",
                                         END,
                                         NULL};
    struct server server;
    char line[WF_MEET_LINE_BYTES];
    start_server(&server, script);
    assert_int_equal(find_pmi("1", "mine"), 0);
    if (wf_meet_look(&meet, 5000, line, &err) != 1)
        fail_msg("%s", err.text);
    assert_string_equal(line, "77;10.0.0.1:5");
    wf_meet_fini(&meet);
    stop_server(&server);
}

static void pmi_refuses(void **state)
{
    (void)state;
    static const char *const script[] = {INIT,
                                         SPACE,
                                         "cmd=barrier_in",
                                         "cmd=barrier_out\n",
                                         "cmd=get kvsname=kvs_1_0 key=weft.-",
                                         "cmd=get_result rc=-1 msg=key_not_found\n",
                                         NULL};
    struct server server;
    char line[WF_MEET_LINE_BYTES];
    start_server(&server, script);
    assert_int_equal(find_pmi("1", NULL), 0);
    assert_int_equal(wf_meet_look(&meet, 5000, line, &err), -EPROTO);
    assert_non_null(strstr(err.text, "key_not_found"));
    stop_server(&server);
}

/* The others do not come to the barrier; the server goes away. */
static void pmi_silent(void **state)
{
    (void)state;
    static const char *const script[] = {INIT, SPACE, "cmd=barrier_in", "", "cmd=barrier_in", NULL, NULL};
    struct server server;
    char line[WF_MEET_LINE_BYTES];
    start_server(&server, script);
    assert_int_equal(find_pmi("1", NULL), 0);
    assert_int_equal(wf_meet_look(&meet, 50, line, &err), -ETIMEDOUT);
    assert_string_equal(err.text, "not all processes have come to the barrier of PMI-1, which names none, for 50 ms");
    assert_int_equal(wf_meet_look(&meet, 5000, line, &err), -ECONNRESET);
    stop_server(&server);
}

static void pmi_no_server(void **state)
{
    (void)state;
    static const char *const script[] = {"cmd=init pmi_version=1 pmi_subversion=1",
                                         "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n", NULL};
    struct server server;
    start_server(&server, script);
    assert_int_equal(find_pmi("1", NULL), -EINVAL);
    assert_non_null(
        strstr(err.text, "rank 1 of 2 by PMI-1, but not where they meet: PMI-1 (PMI_FD): cmd=init was answered"));
    stop_server(&server);
}

/* --- files --- */

static void files(void **state)
{
    (void)state;
    char folder[] = "/tmp/weft-meet.XXXXXX", path[64], line[WF_MEET_LINE_BYTES], given[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/meeting", folder);
    snprintf(given, sizeof given, "file:%s", path);
    assert_int_equal(find(ENV("A=b"), (struct weft_group_options){.size = 2, .rank = 1, .rendezvous = given}), 0);
    assert_int_equal(wf_meet_look(&meet, 0, line, &err), 0); /* none yet */
    static const char *const wrong[] = {"", "half of a li", "weft-rendezvous 2 x\n", "weft-rendezvous 1 half"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(wrong[i], file);
        fclose(file);
        assert_int_equal(wf_meet_look(&meet, 0, line, &err), 0);
    }
    assert_int_equal(wf_meet_publish(&meet, "77;10.0.0.1:5", 0, &err), 0); /* in the place of the other */
    assert_int_equal(wf_meet_look(&meet, 0, line, &err), 1);
    assert_string_equal(line, "77;10.0.0.1:5");
    wf_meet_clear(&meet);
    assert_int_equal(wf_meet_look(&meet, 0, line, &err), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing is left beside it */
    assert_int_equal(wf_meet_publish(&meet, "x", 0, &err), -ENOENT);
    assert_non_null(strstr(err.text, "cannot be written"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),     cmocka_unit_test(torchrun),      cmocka_unit_test(slurm),
        cmocka_unit_test(slurm_lists), cmocka_unit_test(order),         cmocka_unit_test(pmix_gone),
        cmocka_unit_test(pmi_first),   cmocka_unit_test(pmi_second),    cmocka_unit_test(pmi_refuses),
        cmocka_unit_test(pmi_silent),  cmocka_unit_test(pmi_no_server), cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
