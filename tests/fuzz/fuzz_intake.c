/* What a kernel may say of device memory, and a peer of its chunks: whatever it is, bytes come from the pool and from
 * the buffer, and a token that is out goes back once. The input is a list of steps, each with its length. */
#include "devmem/intake.h"
#include "fuzz.h"

#define DMABUF 7
#define POOL_BYTES 65536
#define HOST_BYTES 4096
#define FRAGMENTS 64
#define LIST 16

struct steps {
    const uint8_t *at;
    size_t left;
    struct wf_devmem_intake *intake;
    uint64_t taken, given, batches; /* tokens; batches so far */
    uint64_t position;              /* bytes of the stream */
};

static void take(struct steps *steps, const uint8_t *bytes, size_t size)
{
    static uint8_t host[HOST_BYTES];
    uint16_t received = 0;
    struct iovec iov = {.iov_base = host, .iov_len = sizeof host};
    uint32_t held = wf_devmem_intake_held(steps->intake), room = wf_devmem_intake_room(steps->intake);
    struct wf_status status;

    if (size < sizeof received)
        return;
    memcpy(&received, bytes, sizeof received);
    /* On the heap with nothing behind its end, for the sanitizer to see who reads on. */
    size_t control_bytes = size - sizeof received;
    uint8_t *control = malloc(control_bytes + 1);
    FUZZ_CHECK(control);
    memcpy(control + 1, bytes + sizeof received, control_bytes); /* and aligned to nothing */
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control + 1, .msg_controllen = control_bytes};
    int result = wf_devmem_intake_take(steps->intake, &message, received, &status);
    free(control);
    if (result == 0)
        steps->position += received;
    else
        FUZZ_CHECK(held == wf_devmem_intake_held(steps->intake) && room == wf_devmem_intake_room(steps->intake));
    steps->taken += wf_devmem_intake_held(steps->intake) - held;
}

static void expect(struct steps *steps, const uint8_t *bytes, size_t size)
{
    struct wf_devmem_chunk chunk = {0};
    struct wf_status status;

    memcpy(&chunk, bytes, size < sizeof chunk ? size : sizeof chunk);
    wf_devmem_intake_expect(steps->intake, &chunk, &status);
}

static void place(struct steps *steps)
{
    struct wf_devmem_gather gathers[LIST];
    struct wf_devmem_copy copies[LIST];
    struct wf_devmem_batch batch = {.gathers = gathers, .copies = copies, .gathers_max = LIST, .copies_max = LIST};

    if (!wf_devmem_intake_place(steps->intake, &batch))
        return;
    FUZZ_CHECK(batch.number == ++steps->batches && batch.position <= steps->position);
    FUZZ_CHECK(batch.gather_count <= LIST && batch.copy_count <= LIST);
    for (uint32_t i = 0; i < batch.gather_count; i++)
        FUZZ_CHECK(gathers[i].bytes > 0 && gathers[i].from < POOL_BYTES &&
                   gathers[i].bytes <= POOL_BYTES - gathers[i].from &&
                   gathers[i].to + gathers[i].bytes > gathers[i].to);
    for (uint32_t i = 0; i < batch.copy_count; i++)
        FUZZ_CHECK(copies[i].bytes > 0 && copies[i].bytes <= HOST_BYTES &&
                   copies[i].to + copies[i].bytes > copies[i].to);
}

static void give_back(struct steps *steps)
{
    struct wf_devmem_tokens ranges[WF_DEVMEM_RANGES_MAX];
    uint32_t fragments, sum = 0, count = wf_devmem_intake_give_back(steps->intake, ranges, &fragments);

    FUZZ_CHECK(count <= WF_DEVMEM_RANGES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        FUZZ_CHECK(ranges[i].count > 0);
        sum += ranges[i].count;
    }
    FUZZ_CHECK(sum == fragments && fragments <= WF_DEVMEM_GIVEN_MAX);
    steps->given += fragments;
}

static void one(struct steps *steps, uint8_t what, const uint8_t *bytes, size_t size)
{
    switch (what % 5) {
    case 0:
        take(steps, bytes, size);
        break;
    case 1:
        expect(steps, bytes, size);
        break;
    case 2:
        place(steps);
        break;
    case 3:
        wf_devmem_intake_done(steps->intake, size ? bytes[0] : steps->batches);
        break;
    default:
        give_back(steps);
    }
    uint32_t held = wf_devmem_intake_held(steps->intake);
    FUZZ_CHECK(held == steps->taken - steps->given && held + wf_devmem_intake_room(steps->intake) <= FRAGMENTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wf_devmem_intake_setup setup = {
        .dmabuf = DMABUF, .dmabuf_bytes = POOL_BYTES, .fragments_max = FRAGMENTS, .chunks_max = 8};
    struct steps steps = {.at = data, .left = size};
    struct wf_status status;

    FUZZ_CHECK(wf_devmem_intake_create(&setup, &steps.intake, &status) == 0);
    while (steps.left >= 2) {
        size_t length = steps.at[1] < steps.left - 2 ? steps.at[1] : steps.left - 2;
        one(&steps, steps.at[0], steps.at + 2, length);
        steps.at += 2 + length;
        steps.left -= 2 + length;
    }
    wf_devmem_intake_destroy(steps.intake);
    return 0;
}
