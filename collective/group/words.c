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
struct note {
    struct wf_coll_task task;
    char text[];
};

static void sent(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    (void)completion;
    hub->notes--;
    free((struct note *)task);
}

void wf_coll_say_bytes(struct wf_coll_hub *hub, struct wf_coll_session *session, enum wf_coll_kind kind,
                       const char *text, size_t length)
{
    if (!session->control || session->state == WF_COLL_CLOSED)
        return;
    struct note *note = malloc(sizeof *note + length + 1);
    if (!note) {
        wf_coll_fail_all(hub, -ENOMEM, "no memory for a message to rank %lld", (long long)session->rank);
        return;
    }
    note->task.ended = sent;
    memcpy(note->text, text, length);
    struct weft_options options = {.queue = hub->queue, .user_data = &note->task};
    struct weft_request *request;
    hub->notes++;
    if (weft_send(session->control, note->text, length, kind, &options, &request) < 0)
        sent(hub, &note->task, NULL);
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
