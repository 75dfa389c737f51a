/* Ways and probes as JSON: node1 asks node0 to try the way back. */
#include <errno.h>
#include <string.h>

#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "parts.h"

json_t *doctor_way_to_json(const struct doctor_way *way)
{
    return json_pack("{s:s, s:o, s:s, s:i, s:b}", "from", way->from, "interface", bench_heard_string(way->interface),
                     "to", way->to, "port", way->port, "direct", (int)way->direct);
}

int doctor_way_from_json(const json_t *json, struct doctor_way *way)
{
    const char *from = json_string_value(json_object_get(json, "from"));
    const char *to = json_string_value(json_object_get(json, "to"));
    json_int_t port = json_integer_value(json_object_get(json, "port"));

    if (!from || !to || port < 0 || port > 65535)
        return -EINVAL;
    *way = (struct doctor_way){.port = (int)port, .direct = json_is_true(json_object_get(json, "direct"))};
    bench_copy_text(way->from, sizeof way->from, from);
    bench_copy_text(way->to, sizeof way->to, to);
    return 0;
}

json_t *doctor_probe_to_json(const struct doctor_probe *probe)
{
    return json_pack("{s:i, s:o, s:i, s:i, s:i}", "route", probe->route, "leaves", bench_heard_string(probe->leaves),
                     "connected", probe->connected, "packet", probe->packet, "passed", probe->passed);
}

void doctor_probe_from_json(const json_t *json, struct doctor_probe *probe)
{
    const char *leaves = json_string_value(json_object_get(json, "leaves"));

    *probe = (struct doctor_probe){
        .route = (int)json_integer_value(json_object_get(json, "route")),
        .connected = (int)json_integer_value(json_object_get(json, "connected")),
        .packet = (int)json_integer_value(json_object_get(json, "packet")),
        .passed = (int)json_integer_value(json_object_get(json, "passed")),
    };
    bench_copy_text(probe->leaves, sizeof probe->leaves, leaves ? leaves : "");
}
