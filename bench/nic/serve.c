#include "serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devmem/helper.h"
#include "devmem/lend.h"

struct client {
    pid_t process; /* that serves it */
    uint32_t user;
};

struct house {
    struct serve_desk desk;
    int listener, signals; /* descriptors; -1: none */
    sigset_t before;       /* that were blocked */
    int count;
    struct client clients[SERVE_CLIENTS_MAX];
};

/* --- who comes --- */

static bool is_allowed(const struct serve_desk *desk, uint32_t user)
{
    for (int i = 0; i < desk->user_count; i++)
        if (desk->users[i] == user)
            return true;
    return user == 0;
}

static int count_of(const struct house *house, uint32_t user)
{
    int count = 0;

    for (int i = 0; i < house->count; i++)
        count += house->clients[i].user == user;
    return count;
}

static int check_guest(const struct house *house, const struct wf_lent_holder *guest, struct wf_status *status)
{
    if (!is_allowed(&house->desk, guest->user))
        return wf_fail(status, -EACCES,
                       "the helper 'weft nic serve' does not know user %u: its --allow names those who may ask",
                       guest->user);
    if (count_of(house, guest->user) >= SERVE_EACH_MAX)
        return wf_fail(status, -EDQUOT, "user %u has %d connections to the helper, and may have no more", guest->user,
                       SERVE_EACH_MAX);
    if (house->count == SERVE_CLIENTS_MAX)
        return wf_fail(status, -EBUSY, "the helper 'weft nic serve' has %d clients, and takes no more",
                       SERVE_CLIENTS_MAX);
    return 0;
}

/* The process of a client ends with it; what is to end the helper is not meant for that. */
static void be_client(struct house *house, int socket, const struct wf_lent_holder *guest)
{
    static const int others[] = {SIGINT, SIGTERM, SIGHUP};

    close(house->listener);
    close(house->signals);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        signal(others[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &house->before, NULL);
    serve_client(&house->desk, socket, guest);
    _exit(0);
}

static int start_client(struct house *house, int socket, const struct wf_lent_holder *guest, struct wf_status *status)
{
    pid_t process = fork();

    if (process == 0)
        be_client(house, socket, guest);
    if (process < 0)
        return wf_fail(status, -errno, "the helper cannot serve another client: %s", wf_strerror(errno));
    house->clients[house->count++] = (struct client){.process = process, .user = guest->user};
    return 0;
}

/* The first words go out before a process is there for the rest: a new socket has room for them. */
static void take_guest(struct house *house)
{
    struct wf_helper_reply greeting = {.version = WF_HELPER_VERSION};
    struct ucred who = {.uid = UINT32_MAX};
    socklen_t length = sizeof who;
    struct wf_lent_holder guest;
    struct wf_status status = {0};
    int socket = accept4(house->listener, NULL, NULL, SOCK_CLOEXEC);

    if (socket < 0)
        return;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0)
        greeting.result = wf_fail(&status, -errno, "the helper does not see who asks: %s", wf_strerror(errno));
    wf_lent_name_holder(&guest, who.uid, who.pid);
    if (greeting.result == 0)
        greeting.result = check_guest(house, &guest, &status);
    memcpy(greeting.words, status.text, sizeof greeting.words);
    if (wf_helper_send(socket, &greeting, sizeof greeting, -1) == 0 && greeting.result == 0)
        greeting.result = start_client(house, socket, &guest, &status);
    if (greeting.result)
        serve_log(&house->desk, &guest, "refused: %s", status.text);
    close(socket);
}

/* --- who goes --- */

static void see_ends(struct house *house)
{
    pid_t process;

    while ((process = waitpid(-1, NULL, WNOHANG)) > 0)
        for (int i = 0; i < house->count; i++)
            if (house->clients[i].process == process)
                house->clients[i--] = house->clients[--house->count];
}

/* False: it was asked to end. */
static bool see_signal(struct house *house)
{
    struct signalfd_siginfo signal;

    if (read(house->signals, &signal, sizeof signal) != (ssize_t)sizeof signal)
        return true;
    if (signal.ssi_signo == SIGCHLD) {
        see_ends(house);
        return true;
    }
    serve_log(&house->desk, NULL, "nic serve ends; what it has lent to %d client%s stays lent until they end",
              house->count, house->count == 1 ? "" : "s");
    return false;
}

/* --- the command --- */

static int read_signals(struct house *house, struct wf_status *status)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    signal(SIGPIPE, SIG_IGN); /* of a log that nobody reads any more */
    sigprocmask(SIG_BLOCK, &set, &house->before);
    house->signals = signalfd(-1, &set, SFD_CLOEXEC);
    return house->signals >= 0 ? 0 : wf_fail(status, -errno, "no descriptor for signals: %s", wf_strerror(errno));
}

/* All that are named have to be ready, also one whose queues are all taken now. */
static int check_cards(struct wf_devmem *devmem, const struct serve_desk *desk, struct wf_status *status)
{
    struct wf_lend_card *card = malloc(sizeof *card);
    int result = card ? 0 : wf_fail(status, -ENOMEM, "no memory to look at cards");

    for (int i = 0; i < desk->card_count && result == 0; i++) {
        result = wf_lend_look(devmem, desk->folder, desk->cards[i], card, status);
        if (result == -EBUSY)
            result = 0;
    }
    free(card);
    return result;
}

/* What clients have left that ended while no helper was there. */
static int sweep(struct wf_devmem *devmem, const struct serve_desk *desk, struct wf_status *status)
{
    struct wf_lent_folder held;
    int result = wf_lent_hold(desk->folder, &held, status);

    if (result)
        return result;
    int rules = wf_lent_sweep(devmem, held.folder, status);
    wf_lent_let_go(&held);
    if (rules > 0)
        serve_log(desk, NULL, "%d rule%s of programs that have ended taken away", rules, rules == 1 ? "" : "s");
    return rules < 0 ? rules : 0;
}

static int run(struct house *house)
{
    struct pollfd seen[] = {{.fd = house->listener, .events = POLLIN}, {.fd = house->signals, .events = POLLIN}};
    bool goes_on = true;

    serve_log(&house->desk, NULL, "nic serve listens at %s/" WF_HELPER_SOCKET, house->desk.folder);
    while (goes_on) {
        if (poll(seen, 2, -1) < 0)
            continue;
        if (seen[1].revents)
            goes_on = see_signal(house);
        if (goes_on && seen[0].revents)
            take_guest(house);
    }
    return BENCH_PASSED;
}

int serve_run(struct wf_devmem *devmem, const struct bench_options *options, struct wf_status *status)
{
    struct house house = {.desk = {.folder = WF_LENT_FOLDER,
                                   .cards = options->words + 1,
                                   .card_count = options->word_count - 1,
                                   .log = stderr},
                          .listener = -1,
                          .signals = -1};
    int result = serve_read_users(options->allow, &house.desk, status);

    if (result) {
        serve_log(&house.desk, NULL, "%s", status->text);
        return BENCH_USAGE;
    }
    if (!wf_devmem_may_change(devmem))
        return wf_fail(status, -EPERM,
                       "nic serve: this process has no CAP_NET_ADMIN, which binding queues needs: run it as root");
    result = check_cards(devmem, &house.desk, status);
    if (result == 0)
        result = house.listener = serve_open(house.desk.folder, status);
    if (house.listener >= 0) {
        result = sweep(devmem, &house.desk, status);
        if (result == 0)
            result = read_signals(&house, status);
        if (result == 0)
            result = run(&house);
        serve_close(house.desk.folder, house.listener);
    }
    if (house.signals >= 0)
        close(house.signals);
    return result;
}
