/*
 * weft-coll-openmpi and weft-coll-mpich: the same source, compiled with the one and with the other. For comparison
 * only: no part of Weft uses MPI.
 */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "rank.h"

#define PIECE (UINT64_C(1) << 30)

static MPI_Comm comm; /* on which everything runs: all processes, or a duplicate of that */

static int fail(struct wf_status *status, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;

    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_string(code, text, &length);
    return wf_fail(status, -EIO, "%s: %s", what, text);
}

static int mpi_open(const struct rank_asked *asked, uint32_t *rank, uint32_t *ranks, struct wf_status *status)
{
    int own, all, level = MPI_THREAD_SINGLE;

    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS)
        return wf_fail(status, -EIO, "MPI_Init failed");
    if (level < MPI_THREAD_SERIALIZED && asked->overlap.layers)
        return wf_fail(status, -EOPNOTSUPP, "this MPI lets no other thread call it");
    comm = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    *rank = (uint32_t)own;
    *ranks = (uint32_t)all;
    return 0;
}

/* The variables of an MPI, UCX among them, that are set here: what was in force, as far as it was told. */
static void put_variables(FILE *out)
{
    static const char *const heads[] = {"OMPI_MCA_btl",       "OMPI_MCA_pml", "OMPI_MCA_coll",
                                        "OMPI_MCA_mpi_yield", "MPIR_CVAR_",   "UCX_"};
    const char *between = "";
    extern char **environ;

    fprintf(out, "\"variables\": {");
    for (char **entry = environ; *entry; entry++)
        for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
            const char *equals = strchr(*entry, '=');
            if (!equals || strncmp(*entry, heads[i], strlen(heads[i])) != 0 || strpbrk(equals, "\"\\"))
                continue;
            fprintf(out, "%s\"%.*s\": \"%s\"", between, (int)(equals - *entry), *entry, equals + 1);
            between = ", ";
        }
    fprintf(out, "}");
}

static void mpi_facts(FILE *out)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n,\"\\")] = '\0';
    for (char *at = text; *at; at++)
        if (*at == '\t')
            *at = ' ';
    fprintf(out, "\"library\": \"%s\", ", text);
    put_variables(out);
}

static MPI_Datatype type_of(enum rank_type type)
{
    switch (type) {
    case RANK_FLOAT64:
        return MPI_DOUBLE;
    case RANK_FLOAT32:
        return MPI_FLOAT;
    case RANK_INT32:
        return MPI_INT32_T;
    case RANK_INT64:
        return MPI_INT64_T;
    case RANK_UINT8:
        return MPI_UINT8_T;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static MPI_Op redop_of(enum rank_redop redop)
{
    return redop == RANK_MIN ? MPI_MIN : redop == RANK_MAX ? MPI_MAX : MPI_SUM;
}

static const char *mpi_lacks(const struct rank_call *call)
{
    if (type_of(call->type) == MPI_DATATYPE_NULL)
        return "MPI has no 16-bit floating-point type";
    if (rank_op_reduces(call->op) && call->redop == RANK_AVG)
        return "MPI has no average";
    if (call->op == BENCH_BROADCAST && !call->in_place)
        return "MPI_Bcast has one buffer: in place only";
    return call->count > INT_MAX ? "MPI counts elements in int" : NULL;
}

static int mpi_run(struct rank_call *call, struct wf_status *status)
{
    const void *send = call->in_place ? MPI_IN_PLACE : call->send;
    MPI_Datatype type = type_of(call->type);
    MPI_Comm world = comm;
    int count = (int)call->count, rank, ranks;

    switch (call->op) {
    case BENCH_ALL_REDUCE:
        return fail(status, "MPI_Allreduce",
                    MPI_Allreduce(send, call->recv, count, type, redop_of(call->redop), world));
    case BENCH_ALL_GATHER:
        return fail(status, "MPI_Allgather", MPI_Allgather(send, count, type, call->recv, count, type, world));
    case BENCH_REDUCE_SCATTER: /* in place, MPI has the result where the input begins */
        if (call->in_place)
            call->result = call->send;
        return fail(status, "MPI_Reduce_scatter_block",
                    MPI_Reduce_scatter_block(send, (void *)call->result, count, type, redop_of(call->redop), world));
    case BENCH_BROADCAST:
        return fail(status, "MPI_Bcast", MPI_Bcast(call->recv, count, type, 0, world));
    case BENCH_ALL_TO_ALL:
        return fail(status, "MPI_Alltoall", MPI_Alltoall(send, count, type, call->recv, count, type, world));
    case BENCH_SEND_RECEIVE:
        break;
    }
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    if (call->in_place)
        return fail(status, "MPI_Sendrecv_replace",
                    MPI_Sendrecv_replace(call->recv, count, type, right, 0, left, 0, world, MPI_STATUS_IGNORE));
    return fail(
        status, "MPI_Sendrecv",
        MPI_Sendrecv(call->send, count, type, right, 0, call->recv, count, type, left, 0, world, MPI_STATUS_IGNORE));
}

static int mpi_barrier(struct wf_status *status)
{
    return fail(status, "MPI_Barrier", MPI_Barrier(comm));
}

static int mpi_gather(const double *own, int count, double *all, struct wf_status *status)
{
    return fail(status, "MPI_Allgather", MPI_Allgather(own, count, MPI_DOUBLE, all, count, MPI_DOUBLE, comm));
}

/* MPI counts in int. */
static int in_pieces(int rank, char *memory, uint64_t bytes, bool sends, struct wf_status *status)
{
    int result = 0;

    for (uint64_t done = 0; done < bytes && result == 0; done += PIECE) {
        int piece = (int)(bytes - done < PIECE ? bytes - done : PIECE);
        result = sends ? fail(status, "MPI_Send", MPI_Send(memory + done, piece, MPI_BYTE, rank, 0, comm))
                       : fail(status, "MPI_Recv",
                              MPI_Recv(memory + done, piece, MPI_BYTE, rank, 0, comm, MPI_STATUS_IGNORE));
    }
    return result;
}

static int mpi_send(uint32_t to, const void *memory, uint64_t bytes, struct wf_status *status)
{
    return in_pieces((int)to, (char *)(uintptr_t)memory, bytes, true, status);
}

static int mpi_receive(uint32_t from, void *memory, uint64_t bytes, struct wf_status *status)
{
    return in_pieces((int)from, memory, bytes, false, status);
}

/* MPI is initialized once in a process: what can be made anew is a communicator, over the connections there are. */
static const char *const renewals[] = {"communicator", NULL};

static int mpi_renew(const struct rank_asked *asked, int which, uint64_t turn, struct wf_status *status)
{
    MPI_Comm fresh;

    (void)asked;
    (void)which;
    (void)turn;
    int result = fail(status, "MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &fresh));
    if (result == 0 && comm != MPI_COMM_WORLD)
        result = fail(status, "MPI_Comm_free", MPI_Comm_free(&comm));
    if (result == 0)
        comm = fresh;
    return result;
}

static void mpi_close(void)
{
    if (comm != MPI_COMM_WORLD)
        MPI_Comm_free(&comm);
    comm = MPI_COMM_WORLD;
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    static const struct rank_backend backend = {
        .name = RANK_BACKEND,
        .open = mpi_open,
        .facts = mpi_facts,
        .lacks = mpi_lacks,
        .run = mpi_run,
        .barrier = mpi_barrier,
        .gather = mpi_gather,
        .send = mpi_send,
        .receive = mpi_receive,
        .close = mpi_close,
        .renewals = renewals,
        .renew = mpi_renew,
    };
    int status = rank_main(&backend, argc, argv), running = 0, over = 0;

    MPI_Initialized(&running);
    MPI_Finalized(&over);
    if (status && running && !over)
        MPI_Abort(MPI_COMM_WORLD, status);
    return status;
}
