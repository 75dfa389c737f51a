#include "local.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "bench/words/interrupt.h"
#include "bench/words/words.h"

#define LOCAL_RAILS "127.0.1.1,127.0.2.1" /* two rails without root: every 127.x address is this machine */
#define ARGUMENTS_MAX (2 * WF_SETTING_COUNT + 16)
#define ENVIRONMENT_MAX 4096

struct arguments {
    char *words[ARGUMENTS_MAX];
    int count;
    bool failed; /* no memory */
};

int bench_local_defaults(struct bench_options *options, struct wf_status *status)
{
    if (wf_config_text(options->config, WF_SET_RAILS)[0])
        return 0;
    return wf_config_set(options->config, WF_SET_RAILS, LOCAL_RAILS, WF_ORIGIN_DEFAULT, "default of --local", status);
}

static void add_argument(struct arguments *arguments, const char *word)
{
    char *copy = arguments->count < ARGUMENTS_MAX - 1 ? strdup(word) : NULL;

    if (copy)
        arguments->words[arguments->count++] = copy;
    else
        arguments->failed = true;
}

/* What belongs to node0 alone. */
static bool not_for_child(enum wf_setting_id id)
{
    return id == WF_SET_OUT || id == WF_SET_JSON || id == WF_SET_CSV || id == WF_SET_JSON_STREAM ||
           id == WF_SET_QUIET || id == WF_SET_WIDTH || id == WF_SET_PORT;
}

/* How the child finds this node. */
static void add_meeting(struct arguments *arguments, const struct bench_options *options, int node, int port)
{
    char text[64];

    if (!options->nodes) {
        snprintf(text, sizeof text, "--connect=127.0.0.1:%d", port);
        add_argument(arguments, text);
        return;
    }
    snprintf(text, sizeof text, "--nodes=%d",
             options->nodes / (int)wf_config_number(options->config, WF_SET_PROCESSES));
    add_argument(arguments, text);
    snprintf(text, sizeof text, "--rank=%d", node);
    add_argument(arguments, text);
    snprintf(text, sizeof text, "--rendezvous=127.0.0.1:%d", port);
    add_argument(arguments, text);
}

static void build_arguments(struct arguments *arguments, const struct bench_options *options, int node, int port)
{
    char text[WF_VALUE_MAX + 64];

    add_argument(arguments, "weft");
    add_argument(arguments, bench_command_name(options->command));
    add_meeting(arguments, options, node, port);
    add_argument(arguments, "--local-child");
    add_argument(arguments, "--quiet");
    if (options->latency)
        add_argument(arguments, "--lat");
    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        if (not_for_child(i) || (bench_is_default(options->config, i) && i != WF_SET_RAILS))
            continue;
        snprintf(text, sizeof text, "--%s=%s=%s", bench_is_said(options->config, i) ? "set" : "preset",
                 wf_setting(i)->name, wf_config_text(options->config, i));
        add_argument(arguments, text);
    }
}

/* Settings travel as arguments, so that nothing counts twice and no warning comes twice. */
static void child_environment(char **environment)
{
    size_t kept = 0;

    for (size_t i = 0; environ[i] && kept < ENVIRONMENT_MAX - 1; i++)
        if (!wf_environment_is_setting(environ[i]))
            environment[kept++] = environ[i];
    environment[kept] = NULL;
}

/* In the child, between fork and exec. */
static void become_child(char **words, char **environment, pid_t parent)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before the line above */
    bench_interrupt_reset_child();
    if (nowhere >= 0) {
        dup2(nowhere, STDIN_FILENO);
        dup2(nowhere, STDOUT_FILENO);
    }
    execve("/proc/self/exe", words, environment);
    _exit(BENCH_CHILD_UNSTARTED);
}

static int start_one(struct bench_child *child, const struct bench_options *options, int port, struct wf_status *status)
{
    struct arguments arguments = {.count = 0};
    char **environment = calloc(ENVIRONMENT_MAX, sizeof(char *));
    pid_t parent = getpid(), pid = -1;
    int result = 0;

    build_arguments(&arguments, options, child->node, port);
    if (environment && !arguments.failed) {
        child_environment(environment);
        pid = fork();
        if (pid == 0)
            become_child(arguments.words, environment, parent);
        if (pid < 0)
            result =
                wf_fail(status, -errno, "cannot start node%d: %s: %s", child->node, wf_strerror(errno),
                        errno == EAGAIN ? "allow more processes (ulimit -u, or the pids limit of the control group)"
                                        : "free some memory, or start node1 yourself with --connect");
    } else {
        result = wf_fail(status, -ENOMEM, "cannot start node%d: no memory for its arguments", child->node);
    }
    for (int i = 0; i < arguments.count; i++)
        free(arguments.words[i]);
    free(environment);
    child->pid = pid > 0 ? pid : 0;
    return result;
}

int bench_child_start(struct bench_child *child, const struct bench_options *options, int port,
                      struct wf_status *status)
{
    int result = 0;

    child->node = 1;
    for (int node = 1; result == 0; child = child->next) {
        result = start_one(child, options, port, status);
        if (result || ++node >= options->nodes)
            return result;
        child->next = calloc(1, sizeof *child->next);
        if (!child->next)
            return wf_fail(status, -ENOMEM, "cannot start node%d: no memory", node);
        child->next->node = node;
    }
    return result;
}

void bench_child_fini(struct bench_child *child)
{
    for (struct bench_child *at = child->next, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    child->next = NULL;
}

/* Collects the child if it has ended. */
static bool collect(struct bench_child *child)
{
    if (child->pid && waitpid(child->pid, &child->wait_status, WNOHANG) == child->pid) {
        child->pid = 0;
        child->ended = true;
    }
    return child->ended;
}

const struct bench_child *bench_child_failed(const struct bench_child *child)
{
    while (child && !(child->ended && child->wait_status != 0))
        child = child->next;
    return child;
}

int bench_child_check(struct bench_child *child, struct wf_status *status)
{
    const struct bench_child *ended = NULL, *failed;

    for (struct bench_child *at = child; at; at = at->next)
        if (collect(at))
            ended = at;
    failed = bench_child_failed(child);
    if (!ended)
        return 0;
    if (!failed)
        failed = ended;
    if (WIFSIGNALED(failed->wait_status))
        return wf_fail(status, -ECHILD, "node%d was ended by signal %d (%s)", failed->node,
                       WTERMSIG(failed->wait_status), strsignal(WTERMSIG(failed->wait_status)));
    return wf_fail(status, -ECHILD, "node%d ended with status %d", failed->node, WEXITSTATUS(failed->wait_status));
}

int bench_child_mourn(void *context, struct wf_status *status)
{
    struct bench_child *child = context;
    int result = bench_child_check(child, status);

    return result && bench_child_failed(child) ? result : 0;
}

static bool all_ended(struct bench_child *child)
{
    bool all = true;

    for (; child; child = child->next)
        if (child->pid)
            all &= collect(child);
    return all;
}

int bench_child_end(struct bench_child *child, int timeout_ms)
{
    struct timespec nap = {0, 5000000};

    for (int waited = 0; !all_ended(child) && waited < timeout_ms; waited += 5)
        nanosleep(&nap, NULL);
    for (struct bench_child *at = child; at; at = at->next) {
        if (!at->pid)
            continue;
        kill(at->pid, SIGKILL);
        waitpid(at->pid, &at->wait_status, 0);
        at->pid = 0;
        at->ended = true;
    }
    const struct bench_child *failed = bench_child_failed(child);
    if (!failed)
        return 0;
    return WIFSIGNALED(failed->wait_status) ? 128 + WTERMSIG(failed->wait_status) : WEXITSTATUS(failed->wait_status);
}

void bench_child_kill(const struct bench_child *child)
{
    for (; child; child = child->next)
        if (child->pid)
            kill(child->pid, SIGKILL);
}
