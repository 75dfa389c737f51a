/*
 * library.h: NCCL as it is called here: one table of its functions, looked up in libnccl.so.2 at run time. No
 * header of NCCL's is needed to build, and no build depends on it: a unit test compares these declarations with nccl.h
 * where that is found.
 *
 *     a table is handed out only when every function of it was found
 */
#ifndef WF_BENCH_NCCL_LIBRARY_H
#define WF_BENCH_NCCL_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define NCCL_ID_BYTES 128

/* Values of NCCL's interface. They have not changed since there are some. */
enum { NCCL_SUCCESS = 0, NCCL_UNHANDLED_CUDA_ERROR = 1, NCCL_REMOTE_ERROR = 6, NCCL_IN_PROGRESS = 7 };
enum {
    NCCL_INT8 = 0,
    NCCL_UINT8 = 1,
    NCCL_INT32 = 2,
    NCCL_INT64 = 4,
    NCCL_FLOAT16 = 6,
    NCCL_FLOAT32 = 7,
    NCCL_FLOAT64 = 8,
    NCCL_BFLOAT16 = 9
};
enum { NCCL_SUM = 0, NCCL_MAX = 2, NCCL_MIN = 3, NCCL_AVG = 4 };

#ifndef NCCL_OWN_TYPES /* the test that compares with nccl.h brings the types of NCCL */
typedef int nccl_result, nccl_type, nccl_op;
typedef struct {
    char internal[NCCL_ID_BYTES];
} nccl_id;
typedef struct nccl_comm *nccl_comm; /* NCCL's own object */
typedef void *nccl_stream;           /* a CUstream */
#endif

/*
 * The functions, each as NCCL declares it, with int for its enumerations. `F(name, arguments)` is told each of them;
 * all return a result.
 */
#define NCCL_FUNCTIONS(F)                                                                                              \
    F(GetVersion, (int *version))                                                                                      \
    F(GetUniqueId, (nccl_id * id))                                                                                     \
    F(CommInitRank, (nccl_comm * comm, int ranks, nccl_id id, int rank))                                               \
    F(CommDestroy, (nccl_comm comm))                                                                                   \
    F(CommAbort, (nccl_comm comm))                                                                                     \
    F(CommGetAsyncError, (nccl_comm comm, nccl_result * result))                                                       \
    F(GroupStart, (void))                                                                                              \
    F(GroupEnd, (void))                                                                                                \
    F(Send, (const void *buffer, size_t count, nccl_type type, int peer, nccl_comm comm, nccl_stream stream))          \
    F(Recv, (void *buffer, size_t count, nccl_type type, int peer, nccl_comm comm, nccl_stream stream))                \
    F(AllReduce,                                                                                                       \
      (const void *from, void *to, size_t count, nccl_type type, nccl_op op, nccl_comm comm, nccl_stream stream))      \
    F(AllGather, (const void *from, void *to, size_t count, nccl_type type, nccl_comm comm, nccl_stream stream))       \
    F(ReduceScatter,                                                                                                   \
      (const void *from, void *to, size_t count, nccl_type type, nccl_op op, nccl_comm comm, nccl_stream stream))      \
    F(Broadcast,                                                                                                       \
      (const void *from, void *to, size_t count, nccl_type type, int root, nccl_comm comm, nccl_stream stream))

#define NCCL_POINTER(name, arguments) nccl_result(*name) arguments;

/* All zero is none. Owner: the measuring thread. */
struct nccl_library {
    NCCL_FUNCTIONS(NCCL_POINTER)
    const char *(*GetErrorString)(nccl_result result);
    const char *(*GetLastError)(nccl_comm comm); /* NULL: older than 2.13 */
    void *handle;
    char path[512];   /* the file it came from */
    char version[24]; /* "2.28.9" */
    bool emulated;    /* the stand-in of the tests */
};

#undef NCCL_POINTER

/*
 * Loads the library: `where`, a file or the folder of a libnccl.so.2, or where that is empty, the first that works of
 * the loader's own choice, the active Python environment (VIRTUAL_ENV, CONDA_PREFIX), the packages of the python3 on
 * PATH, and the system's folders. -EOPNOTSUPP says why there is none and where it was looked for. Once it was loaded it
 * stays in the process: threads of its own may outlive every communicator.
 */
int nccl_library_open(struct nccl_library *library, const char *where, struct wf_status *status);
void nccl_library_close(struct nccl_library *library);

/* "unhandled system error: ..." of a result, with what NCCL says last of it. Returns `buffer`. */
char *nccl_library_error(const struct nccl_library *library, nccl_result result, char *buffer, size_t room);

#endif
