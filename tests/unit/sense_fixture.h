/*
 * sense_fixture.h: a made-up /sys and /proc in a temporary folder, and a machine with four processors, two GPUs and an
 * interface in it. Paths begin with '/', as those of a machine.
 */
#ifndef WEFT_TESTS_SENSE_FIXTURE_H
#define WEFT_TESTS_SENSE_FIXTURE_H

#include <stdbool.h>

#include "base/clock.h"
#include "bench/sense/sense_parts.h"

#define S WF_NS_PER_S
#define MACHINE_CPUS 4

/* --- the tree --- */

extern char tree_root[64];

/* For cmocka. */
int tree_create(void **state);
int tree_remove(void **state);

/* Writes the text and an end of line to the file, in the place of what is there: a descriptor of it stays valid. */
void tree_put(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A thread's line: state, flags, ticks, and the processor where it ran last. Process 0 is the asking one. */
void tree_put_task(int process, int thread, char state, unsigned flags, unsigned ticks, int cpu);

/* --- the machine --- */

extern const char *const machine_pci[2], *const machine_interfaces[1];
extern struct wf_nvml_state machine_gpus[2]; /* what NVML says of them */
extern bool machine_gpus_answer;
/* Why a GPU's clocks are reduced from now on. */
void machine_throttle(int gpu, const char *words, bool held_back);

/* Instead of wf_nvml_read(). */
int machine_read_gpu(struct wf_nvml *nvml, const char *address, struct wf_nvml_state *out, struct wf_status *status);

/* Everything as it is at first. */
void machine_put(void);
/* A second goes by, in which a processor works for so many ticks of a hundred, and serves interrupts for others. */
void machine_pass_second(int cpu, unsigned ticks, unsigned interrupted);
void machine_put_retransmits(unsigned count);
void machine_put_nic(const char *which, unsigned count);

/* A sampler without a thread; processor 1 is ours. */
struct bench_sense *machine_sense(int gpu_count);

#endif
