/*
 * sim_internal.h: what sim_net.c (the network: sockets, streams, time) and sim_engine.c (the seam on top) share.
 */
#ifndef WEFT_TESTS_SUPPORT_SIM_INTERNAL_H
#define WEFT_TESTS_SUPPORT_SIM_INTERNAL_H

#include <stdatomic.h>

#include "sim.h"

#define SIM_FLIGHT 8           /* arrivals told apart per stream; more are joined to the last */
#define SIM_RAILS 64           /* local addresses of one simulation */
#define SIM_SHARERS 4          /* engines one descriptor may be attached to */
#define SIM_FIRST_FD (1 << 20) /* out of the way of real descriptors */

struct sim_rail {
    struct sockaddr_storage local; /* port ignored */
    struct wf_sim_rail settings;
    int64_t busy_until_ns; /* when its last byte has left */
};

/*
 * One direction of a connection; belongs to the socket that reads it. Offsets count from the start of the stream:
 * read <= arrived <= written <= read + capacity.
 */
struct sim_stream {
    uint64_t number; /* as struct wf_sim_piece has it */
    uint8_t *ring;
    uint32_t capacity;
    uint64_t read, arrived, written;
    uint64_t acknowledged; /* of `arrived`, what the sender has heard of */
    struct {
        uint64_t end;
        int64_t at_ns;
    } flight[SIM_FLIGHT]; /* bytes up to `end` arrive at `at_ns`; ascending */
    int flight_first, flight_count;
    int64_t delay_ns;
    int64_t last_ns;    /* the latest arrival scheduled: nothing overtakes within a stream */
    int64_t end_ns;     /* when the end of the stream arrives; WF_NEVER: not sent */
    int64_t reset_ns;   /* when a reset arrives; WF_NEVER: none */
    bool frozen, ended; /* ended: the end has arrived */
    uint8_t flip_mask;  /* 0: none ahead */
    uint64_t flip_offset;
};

enum sim_side { SIM_READS, SIM_WRITES };

/* An operation that the engine holds, from post until poll returns it. */
struct sim_post {
    struct wf_link link; /* in its engine's `active` or `finished` */
    struct wf_op *op;    /* NULL: none */
    struct wf_op copy;   /* as the engine left it, to notice who else writes */
    struct iovec front;  /* the same for the vector's first entry */
    struct sim_engine *engine;
    struct sim_socket *socket;
};

enum sim_state {
    SIM_FRESH, /* made, perhaps bound */
    SIM_LISTENING,
    SIM_CONNECTING, /* waits for syn_ns, then for answer_ns */
    SIM_CONNECTED,  /* also after the peer has gone */
    SIM_KILLED,
};

struct sim_inlet;

struct sim_socket {
    struct wf_sim *sim;
    struct sim_inlet *inlet; /* that its payload is led to; NULL: none */
    uint64_t led_from;       /* bytes of it that had come before */
    int fd;
    enum sim_state state;
    struct sockaddr_storage local, remote;
    bool accepted;                    /* false: waits in a listener's queue, its descriptor not yet known to anybody */
    struct sim_rail *rail, *far_rail; /* of `local` and `remote`; NULL until known */
    struct sim_socket *peer;          /* NULL: none, or closed or killed */
    struct sim_stream in;
    struct sim_post posts[2]; /* by enum sim_side */
    struct sim_engine *engines[SIM_SHARERS];
    int error;   /* positive; the next call gets it, once */
    bool broken; /* was reset: after the error, reads give the end and sends EPIPE */
    bool end_sent;
    bool swallows; /* its stream was ended on the way: what it sends reaches nobody */
    uint64_t retransmits;
    int dscp;                /* as marked */
    uint64_t pace;           /* as set; the simulated network has no use for either */
    struct wf_progress left; /* how far a peer that has gone had got */
    uint64_t unheard; /* bytes sent to nobody, or to a peer that has closed; the "kernel" takes `in.capacity` of them */

    int tries;                 /* connects that a full backlog dropped */
    int64_t syn_ns, answer_ns; /* CONNECTING; WF_NEVER: past, not yet known */
    int answer;                /* of the last connect: 0 or positive errno */

    struct wf_list pending; /* LISTENING: sockets to accept */
    int pending_count, backlog;
    struct wf_link pending_link;
};

struct sim_engine {
    struct wf_engine base;
    struct wf_sim *sim;
    uint32_t call_bytes;
    int attached;
    int64_t due_ns; /* when the last poll would have ended by itself */
    bool stopped;
    struct wf_list active, finished; /* of struct sim_post */
    struct wf_link link;
    atomic_bool woken;
};

/* Something else that lives in the simulation's time (sim_memory.h). */
struct sim_extra {
    struct wf_link link;                         /* wf_sim.extras */
    int64_t (*next_ns)(struct sim_extra *extra); /* when something happens by itself; WF_NEVER: nothing does */
    void (*settle)(struct sim_extra *extra);     /* lets everything happen that is due */
};

struct wf_sim_cards;

struct wf_sim {
    struct wf_clock clock; /* first: the address of the simulation is that of its clock */
    int64_t now_ns;
    uint64_t random_state;
    struct wf_sim_options options;
    struct sim_socket **sockets; /* by descriptor - SIM_FIRST_FD; NULL: free */
    int socket_room, socket_end; /* entries; one past the last ever used */
    int open_sockets;
    uint16_t next_port;
    uint64_t streams; /* numbers given */
    wf_sim_watcher *watcher;
    void *watcher_context;
    struct wf_list engines;
    struct wf_list extras; /* of struct sim_extra */
    int rail_count;
    struct sim_rail rails[SIM_RAILS];
    struct wf_sim_cards *cards; /* NULL: none */
};

/* Ends the process: a contract was broken. */
_Noreturn void sim_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Never NULL: an unknown descriptor is a violation. */
struct sim_socket *sim_socket_of(struct wf_sim *sim, int fd);

/* A number below `bound` (at least 1). */
uint64_t sim_below(struct wf_sim *sim, uint64_t bound);
bool sim_chance(struct wf_sim *sim, uint32_t percent);

/* --- sim_net.c: sockets; a descriptor or 0, or -errno --- */
int sim_socket_new(struct wf_sim *sim, const struct sockaddr_storage *local);
int sim_listen(struct wf_sim *sim, const struct sockaddr_storage *local, int backlog);
int sim_connect(struct sim_socket *socket, const struct sockaddr_storage *remote);
int sim_accept(struct sim_socket *listener);
void sim_kill(struct sim_socket *socket);
void sim_close(struct sim_socket *socket);
/* The rail of an address, made if it is new. */
struct sim_rail *sim_rail_of(struct wf_sim *sim, const struct sockaddr_storage *local);
/* When a connect under way takes its next step; takes the steps that are due. */
int64_t sim_setup_next(const struct sim_socket *socket);
void sim_setup_settle(struct sim_socket *socket);

/* --- sim_stream.c --- */

/* A new stream towards `socket`. 0 or -ENOMEM. */
int sim_stream_open(struct sim_socket *socket);
/* How long a byte that leaves `from` now is under way to `to`, without queueing. */
int64_t sim_path_ns(const struct sim_socket *from, const struct sim_socket *to);
/* The end of the stream, or a reset, on its way to `to`, behind all bytes. */
void sim_send_end(struct sim_socket *to, int64_t path_ns);
void sim_send_reset(struct sim_socket *to, int64_t path_ns);
/* A reset arrives. */
void sim_take_reset(struct sim_socket *socket);
/* When something arrives here next, and taking in what is due. */
int64_t sim_stream_next(const struct sim_socket *socket);
void sim_stream_settle(struct sim_socket *socket);
/* What has arrived here is acknowledged to the sender, who may be deaf. */
void sim_stream_acknowledge(struct sim_socket *socket);
/* How far a stream has got, as its sender knows. */
struct wf_progress sim_progress(const struct sim_stream *stream);

/* Would a call do more than say "not now"? */
bool sim_can_read(const struct sim_socket *socket);
bool sim_can_write(const struct sim_socket *socket);
/* At most `bytes`, perhaps fewer, as the seed says; only when ready. A count, or -errno. */
int64_t sim_read(struct sim_socket *socket, const struct iovec *iov, size_t bytes);
int64_t sim_write(struct sim_socket *socket, const struct iovec *iov, size_t bytes);

/* --- sim_engine.c --- */

/* Could a poll of this engine do something now? */
bool sim_engine_busy(const struct sim_engine *engine);

#endif
