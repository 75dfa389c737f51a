#include "question.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

#define SIZE_MOST (INT64_C(1) << 40)
#define MESSAGES_MOST INT64_C(1000000000)
#define AT_ONCE_MOST 65536 /* messages in flight, buffers */

json_t *peers_question_to_json(const struct peers_question *question)
{
    const struct peer_case *asked = &question->asked;

    return json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:I, s:I}", "run", question->tool->name, "variant",
                     question->variant, "metric", peers_metric_name(asked->metric), "size", (json_int_t)asked->size,
                     "messages", (json_int_t)asked->messages, "warmup", (json_int_t)asked->warmup, "inflight",
                     (json_int_t)asked->inflight, "buffers", (json_int_t)asked->buffers);
}

/* --- the other way --- */

static int not_ours(const char *name, struct wf_status *status)
{
    return wf_fail(status, -EINVAL, "the other node asks for a %s that there is not: use the same build on both", name);
}

static int take_number(const json_t *json, const char *name, int64_t least, int64_t most, int64_t *number,
                       struct wf_status *status)
{
    const json_t *value = json_object_get(json, name);

    *number = json_integer_value(value);
    return json_is_integer(value) && *number >= least && *number <= most ? 0 : not_ours(name, status);
}

static int take_metric(const json_t *json, enum peer_metric *metric, struct wf_status *status)
{
    const char *name = json_string_value(json_object_get(json, "metric"));

    for (int i = PEER_BANDWIDTH; name && i <= PEER_RATE; i++)
        if (strcmp(peers_metric_name((enum peer_metric)i), name) == 0) {
            *metric = (enum peer_metric)i;
            return 0;
        }
    return not_ours("metric", status);
}

static int take_case(const json_t *json, struct peer_case *asked, struct wf_status *status)
{
    int64_t size = 0, messages = 0, warmup = 0, inflight = 0, buffers = 0;
    int result = take_metric(json, &asked->metric, status);

    if (result == 0)
        result = take_number(json, "size", 1, SIZE_MOST, &size, status);
    if (result == 0)
        result = take_number(json, "messages", 1, MESSAGES_MOST, &messages, status);
    if (result == 0)
        result = take_number(json, "warmup", 0, MESSAGES_MOST, &warmup, status);
    if (result == 0)
        result = take_number(json, "inflight", 1, AT_ONCE_MOST, &inflight, status);
    if (result == 0)
        result = take_number(json, "buffers", 1, AT_ONCE_MOST, &buffers, status);
    asked->size = (uint64_t)size;
    asked->messages = (uint64_t)messages;
    asked->warmup = (uint64_t)warmup;
    asked->inflight = (uint32_t)inflight;
    asked->buffers = (uint32_t)buffers;
    return result;
}

/* One that is allowed, and here. */
static int take_tool(const json_t *json, const struct peers_plan *plan, const struct peer_place *place,
                     const struct peer_tool **tool, struct wf_status *status)
{
    const char *name = json_string_value(json_object_get(json, "run"));
    char path[PATH_MAX];

    *tool = NULL;
    for (int i = 0; name && i < plan->tool_count; i++)
        if (strcmp(plan->tools[i]->name, name) == 0)
            *tool = plan->tools[i];
    if (!*tool)
        return wf_fail(status, -EINVAL, "%.40s: there is no such tool, or --tools excludes it", name ? name : "?");
    if (!peer_find_program(*tool, place->folder, path, sizeof path))
        return wf_fail(status, -ENOENT, "not installed: %s%s", (*tool)->package ? "Debian package " : "",
                       (*tool)->package ? (*tool)->package : (*tool)->program);
    return 0;
}

int peers_question_from_json(const json_t *json, const struct peers_plan *plan, const struct peer_place *place,
                             struct peers_question *question, struct wf_status *status)
{
    char why[200] = "";
    int64_t variant;

    memset(question, 0, sizeof *question);
    int result = take_case(json, &question->asked, status);
    if (result == 0)
        result = take_tool(json, plan, place, &question->tool, status);
    if (result)
        return result;
    int count = question->tool->variants(&question->asked, place, why);
    if (count <= 0)
        return wf_fail(status, -EOPNOTSUPP, "%s", why);
    result = take_number(json, "variant", 0, count - 1, &variant, status);
    question->variant = (int)variant;
    return result;
}

bool peers_is_address(const char *text)
{
    static const char interface[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    unsigned char bytes[sizeof(struct in6_addr)];
    char plain[INET6_ADDRSTRLEN];
    size_t length = strcspn(text, "%");

    if (length >= sizeof plain)
        return false;
    memcpy(plain, text, length);
    plain[length] = '\0';
    if (text[length] == '\0')
        return inet_pton(AF_INET, plain, bytes) == 1 || inet_pton(AF_INET6, plain, bytes) == 1;
    text += length + 1;
    length = strlen(text);
    return length > 0 && length < 16 && strspn(text, interface) == length && inet_pton(AF_INET6, plain, bytes) == 1;
}
