/* topo.h: the command `topo`: a machine, its plan, and what is in the way of faster paths. */
#ifndef WF_BENCH_TOPO_H
#define WF_BENCH_TOPO_H

#include <jansson.h>

#include "affinity/machine.h"
#include "affinity/plan.h"
#include "affinity/show/show.h"
#include "bench/plan/options.h"

struct wf_devmem;

/* Prints them as the options ask: text, JSON or a drawing. Returns an exit status. */
int bench_topo(struct bench_options *options);

/* Draws this machine and the plan of a run with these options into a file. */
int bench_topo_draw(const struct bench_options *options, const char *path, struct wf_status *status);

/* The end of the command, whatever came of it: tells what went wrong, if `status` has it, and writes what --json names:
 * `root`, which it takes over, with what went wrong and the exit status. Returns that; another where the file could not
 * be written. */
int bench_topo_leave(const struct bench_options *options, json_t *root, struct wf_status *status, int exit_status);

/* The same where there is nothing to show, as `status` says. leave.c */
int bench_topo_refused(const struct bench_options *options, struct wf_status *status);

/* Where the threads and memory of a running process (its number) are, or of the nodes of a run (the file of its result)
 * were. Returns an exit status. force.c */
int bench_topo_in_force(const struct bench_options *options);

/* The setting `rails` as rails of a plan: on this machine what the library would take, and what it leaves out (up to
 * WF_LEFT_OUT_MAX); for another machine interfaces that it has. rail_count stays 0 where the machine's own choice is to
 * stand. rails.c */
int bench_topo_rails(const struct wf_machine *machine, const char *setting, struct wf_plan_request *request,
                     struct wf_left_out *left_out, int *left_count, struct wf_status *status);

/* What the kernel is asked about cards through. Owner: who gathers what is shown. */
struct bench_topo_cards {
    struct wf_devmem *devmem; /* NULL: nothing was asked yet, or it cannot be */
    const char *folder;       /* of the records of queues; NULL: WF_LENT_FOLDER */
    bool tried;
};

/* What the card `name` has of device-memory TCP, and what is in the way. `data` is a struct bench_topo_cards, all
 * zero at first. A wf_show_ask_device. cards.c */
void bench_topo_ask_card(void *data, const char *name, struct wf_device_way *way);
void bench_topo_cards_fini(struct bench_topo_cards *cards);

/* How many GPUs a run could take, and a sentence about their memory; 0: it would lie in host memory. On this machine
 * that loads the driver, where there is one, and the machine's GPUs are put into the driver's order, so that --gpus
 * means the same as in a run; some may be among the driver's alone. As a run: -EOPNOTSUPP, GPU memory was asked for and
 * there is none; -EINVAL. gpus.c */
int bench_topo_gpus(struct wf_machine *machine, const struct bench_options *options, char *text, size_t room,
                    struct wf_status *status);

/* Asks the GPUs whether network cards could write to their memory, if a card here could; `count` of them a run could
 * take. gpus.c */
void bench_topo_ask_gpus(struct wf_show *show, int count);

#endif
