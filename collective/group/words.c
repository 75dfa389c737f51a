#include "collective/group/words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int wf_coll_hello_write(const struct wf_coll_hello_words *words, char *text, size_t room)
{
    return snprintf(text, room, "weft-group %u %u %u %u %016llx %d %s %s %s %s", words->version, words->rank,
                    words->size, words->process, words->token, words->patience_ms, words->name, words->host,
                    words->weft, words->addresses);
}

bool wf_coll_hello_read(const char *text, struct wf_coll_hello_words *words)
{
    memset(words, 0, sizeof *words);
    if (sscanf(text, "weft-group %u", &words->version) != 1)
        return false;
    if (words->version != WF_COLL_VERSION)
        return true;
    return sscanf(text, "weft-group %*u %u %u %u %16llx %d %63s %64s %23s %899s", &words->rank, &words->size,
                  &words->process, &words->token, &words->patience_ms, words->name, words->host, words->weft,
                  words->addresses) == 9;
}

/* A message of control that is on its way. */
struct wf_coll_note {
    struct wf_coll_task task;
    struct wf_coll_note *next; /* unsent */
    struct wf_coll_session *session;
    enum wf_coll_kind kind;
    size_t length;
    char text[];
};

static void sent(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    (void)completion;
    hub->notes--;
    free((struct wf_coll_note *)task);
}

/* False: not now, the setting `requests` is in the way. */
static bool post(struct wf_coll_hub *hub, struct wf_coll_note *note)
{
    struct weft_options options = {.queue = hub->queue, .user_data = &note->task};
    struct weft_request *request;
    int result = weft_send(note->session->control, note->text, note->length, note->kind, &options, &request);
    if (result == -EAGAIN)
        return false;
    if (result < 0)
        sent(hub, &note->task, NULL);
    return true;
}

void wf_coll_say_again(struct wf_coll_hub *hub)
{
    while (hub->unsent) {
        struct wf_coll_note *note = hub->unsent, *next = note->next;
        if (!post(hub, note)) {
            hub->crowded = true;
            return;
        }
        hub->unsent = next;
    }
}

void wf_coll_unsay(struct wf_coll_hub *hub, const struct wf_coll_session *session)
{
    struct wf_coll_note **at = &hub->unsent;
    while (*at) {
        struct wf_coll_note *note = *at;
        if (note->session != session) {
            at = &note->next;
            continue;
        }
        *at = note->next;
        sent(hub, &note->task, NULL);
    }
}

void wf_coll_say_bytes(struct wf_coll_hub *hub, struct wf_coll_session *session, enum wf_coll_kind kind,
                       const char *text, size_t length)
{
    if (!session->control || session->state == WF_COLL_CLOSED)
        return;
    struct wf_coll_note *note = malloc(sizeof *note + length + 1), **last = &hub->unsent;
    if (!note) {
        wf_coll_fail_all(hub, -ENOMEM, "no memory for a message to rank %lld", (long long)session->rank);
        return;
    }
    *note = (struct wf_coll_note){.task.ended = sent, .session = session, .kind = kind, .length = length};
    memcpy(note->text, text, length);
    hub->notes++;
    while (*last)
        last = &(*last)->next;
    *last = note;
    wf_coll_say_again(hub);
}

void wf_coll_say(struct wf_coll_hub *hub, struct wf_coll_session *session, enum wf_coll_kind kind, const char *format,
                 ...)
{
    char text[WF_COLL_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wf_coll_say_bytes(hub, session, kind, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}
