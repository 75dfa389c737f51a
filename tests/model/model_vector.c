/*
 * Messages whose memory is in many places. The model keeps the bytes of every message in one place; a quarter of the
 * schedules send some from a vector, and receive some into one: memory of its own, with gaps between the entries that
 * nobody may write.
 */
#include <string.h>

#include "model.h"

#define POISON 0xA5
#define GAP 5

/* Bits for one message that no draw of other things sees. */
static uint64_t draw(struct model_world *world)
{
    return model_bits(world, 7000000 + world->vectors++);
}

/* Cuts `bytes` into entries, which lie backwards in memory, and some of which are empty. */
static bool lay_out(struct model_world *world, int node, uint32_t bytes, struct model_vector *vector)
{
    *vector = (struct model_vector){0};
    if (world->seed % 4 != 2 || draw(world) % 2)
        return false;
    int count = (int)(draw(world) % (MODEL_ENTRIES + 1));
    count += bytes > 0 && count == 0; /* no entries, no bytes */
    vector->room = bytes + (uint32_t)(count + 1) * GAP;
    vector->memory = model_memory_take(world, node, vector->room, &vector->view);
    uint32_t left = bytes, end = vector->room;
    for (int i = 0; i < count; i++) {
        uint32_t length = i == count - 1 ? left : (uint32_t)(draw(world) % (left + 1));
        end -= GAP + length;
        left -= length;
        vector->at[i] = end;
        vector->iov[i] = (struct iovec){length ? (uint8_t *)vector->memory + end : NULL, length};
    }
    vector->count = count;
    memset(vector->view, POISON, vector->room);
    return true;
}

/* Copies between the vector and the bytes in one place. */
static void copy(struct model_vector *vector, uint8_t *data, bool out)
{
    for (int i = 0; i < vector->count; i++) {
        if (out)
            memcpy(vector->view + vector->at[i], data, vector->iov[i].iov_len);
        else
            memcpy(data, vector->view + vector->at[i], vector->iov[i].iov_len);
        data += vector->iov[i].iov_len;
    }
}

int model_vector_send(struct model_world *world, int node, struct weft_connection *connection, struct model_send *send,
                      const struct weft_options *options)
{
    struct model_vector *vector = &send->vector;
    if (!lay_out(world, node, send->size, vector))
        return weft_send(connection, send->memory, send->size, send->tag, options, &send->request);
    copy(vector, send->data, true);
    return weft_sendv(connection, vector->iov, vector->count, send->tag, options, &send->request);
}

int model_vector_recv(struct model_world *world, int node, struct weft_connection *connection,
                      struct model_receive *receive, const struct weft_options *options)
{
    struct model_vector *vector = &receive->vector;
    if (!lay_out(world, node, receive->capacity, vector))
        return weft_recv(connection, receive->memory, receive->capacity, receive->tag, options, &receive->request);
    return weft_recvv(connection, vector->iov, vector->count, receive->tag, options, &receive->request);
}

void model_vector_landed(struct model_vector *vector, uint8_t *data)
{
    if (!vector->memory)
        return;
    copy(vector, data, false);
    model_vector_ruin(vector);
}

void model_vector_ruin(struct model_vector *vector)
{
    if (!vector->memory)
        return;
    for (int i = 0; i < vector->count; i++)
        memset(vector->view + vector->at[i], POISON, vector->iov[i].iov_len);
    model_vector_judge(vector); /* the gaps are as they were */
}

void model_vector_judge(const struct model_vector *vector)
{
    for (uint32_t at = 0; vector->memory && at < vector->room; at++)
        MODEL_CHECK(vector->view[at] == POISON, at);
}

void model_vector_free(struct model_world *world, struct model_vector *vector)
{
    if (vector->memory)
        model_memory_give(world, vector->memory);
}
