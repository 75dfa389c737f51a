/* A rank's execution trace. */
#include "trace_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "1.1.1-chakra.0.0.4"
#define ROOT 1
#define PROCESS "[pytorch|profiler|execution_trace|process]"
#define THREAD "[pytorch|profiler|execution_trace|thread]"

/* The nodes around the one that is looked at. */
struct walk {
    const json_t *nodes;
    size_t index;
    json_int_t last;
    const struct check_row *row; /* the message whose nodes come; NULL: none yet */
    int side;
    json_int_t message, call; /* ids of its annotation and of its operator */
};

static json_int_t number_of(const json_t *node, const char *name)
{
    return json_integer_value(json_object_get(node, name));
}

static const char *name_of(const json_t *node)
{
    return json_string_value(json_object_get(node, "name"));
}

/* --- what every node has --- */

static int check_values(struct check *check, const json_t *node, const char *name)
{
    static const char *const lists[] = {"values", "shapes", "types", "strides"};
    const json_t *values = check_member(check, node, name_of(node), name, JSON_OBJECT);
    size_t length = json_array_size(json_object_get(values, "values"));

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const json_t *list = values ? check_member(check, values, name_of(node), lists[i], JSON_ARRAY) : NULL;
        if (!list)
            return -1;
        if (json_array_size(list) != length)
            return check_refuse(check, "%.100s: %s has %zu values and %zu %s", name_of(node), name, length,
                                json_array_size(list), lists[i]);
    }
    return 0;
}

static const json_t *attribute(const json_t *node, const char *name)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(node, "attrs"), i, entry)
    {
        const char *other = name_of(entry);
        if (other && strcmp(other, name) == 0 && json_is_string(json_object_get(entry, "type")))
            return json_object_get(entry, "value");
    }
    return NULL;
}

static int check_attributes(struct check *check, const json_t *node, const char *const *names, size_t count,
                            size_t texts)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = attribute(node, names[i]);
        if (i < texts ? !json_is_string(value) : !json_is_integer(value))
            return check_refuse(check, "%.100s: the attribute '%s' has to be %s", name_of(node), names[i],
                                i < texts ? "a text" : "an integer");
    }
    return 0;
}

/* Nodes stand in the order of their ids. */
static bool stands_before(const struct walk *walk, json_int_t id)
{
    size_t low = 0, high = walk->index;

    while (low < high) {
        size_t middle = (low + high) / 2;
        json_int_t found = number_of(json_array_get(walk->nodes, middle), "id");
        if (found == id)
            return true;
        if (found < id)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static int check_place(struct check *check, struct walk *walk, const json_t *node)
{
    json_int_t id = number_of(node, "id"), parent = number_of(node, "ctrl_deps");

    if (id <= walk->last)
        return check_refuse(check, "%.100s: its id %" JSON_INTEGER_FORMAT " is not above the last one", name_of(node),
                            id);
    walk->last = id;
    if (walk->index == 0)
        return id == ROOT && parent == ROOT && strcmp(name_of(node), PROCESS) == 0
                   ? 0
                   : check_refuse(check, "the first node has to be " PROCESS " with the id 1");
    if (!stands_before(walk, parent))
        return check_refuse(check, "%.100s: its parent %" JSON_INTEGER_FORMAT " does not stand before it",
                            name_of(node), parent);
    return 0;
}

/* --- a message --- */

static int check_annotation(struct check *check, struct walk *walk, const json_t *node)
{
    int side;
    struct check_row *row = check_find(check, name_of(node), &side);

    if (!row)
        return -1;
    if (row->graphed[side])
        return check_refuse(check, "%.100s is there twice", name_of(node));
    row->graphed[side] = true;
    if (json_integer_value(attribute(node, "rf_id")) != row->record[side])
        return check_refuse(check, "%.100s: its rf_id is not the 'Record function id' of the trace", name_of(node));
    walk->row = row;
    walk->side = side;
    walk->message = number_of(node, "id");
    walk->call = 0;
    return 0;
}

static int check_call(struct check *check, struct walk *walk, const json_t *node)
{
    const char *wanted = walk->side ? "c10d::recv_" : "c10d::send";

    if (!walk->row || walk->call != 0 || number_of(node, "ctrl_deps") != walk->message ||
        strcmp(name_of(node), wanted) != 0)
        return check_refuse(check, "%.100s does not belong to the message before it", name_of(node));
    walk->call = number_of(node, "id");
    return 0;
}

static int check_comms(struct check *check, struct walk *walk, const json_t *node)
{
    static const char *const names[] = {
        "collective_name", "dtype",          "in_split_size", "out_split_size",    "pg_name",           "pg_desc",
        "in_msg_nelems",   "out_msg_nelems", "pg_size",       "global_rank_start", "global_rank_stride"};

    if (!walk->row || walk->call == 0 || number_of(node, "ctrl_deps") != walk->call)
        return check_refuse(check, "record_param_comms does not belong to the call before it");
    if (check_attributes(check, node, names, sizeof names / sizeof names[0], 6) < 0)
        return -1;
    if ((unsigned long long)json_integer_value(attribute(node, "in_msg_nelems")) != walk->row->size ||
        strcmp(json_string_value(attribute(node, "collective_name")), walk->side ? "recv" : "send") != 0)
        return check_refuse(check, "record_param_comms tells of another message than the one before it");
    walk->row = NULL;
    return 0;
}

static int check_node(struct check *check, struct walk *walk, const json_t *node)
{
    static const char *const names[] = {"op_schema", "kernel_backend", "kernel_file", "rf_id", "fw_parent",
                                        "seq_id",    "scope",          "tid",         "fw_tid"};
    const json_t *name = check_member(check, node, "a node", "name", JSON_STRING);

    if (!name || !check_member(check, node, json_string_value(name), "id", JSON_INTEGER) ||
        !check_member(check, node, json_string_value(name), "ctrl_deps", JSON_INTEGER) ||
        !check_member(check, node, json_string_value(name), "attrs", JSON_ARRAY))
        return -1;
    if (check_place(check, walk, node) < 0 || check_values(check, node, "inputs") < 0 ||
        check_values(check, node, "outputs") < 0 ||
        check_attributes(check, node, names, sizeof names / sizeof names[0], 3) < 0)
        return -1;
    if (strncmp(name_of(node), "p2p_", 4) == 0)
        return check_annotation(check, walk, node);
    if (strncmp(name_of(node), "c10d::", 6) == 0)
        return check_call(check, walk, node);
    return strcmp(name_of(node), "record_param_comms") == 0 ? check_comms(check, walk, node) : 0;
}

int check_graph(struct check *check, const json_t *root)
{
    const json_t *schema = check_member(check, root, "the graph", "schema", JSON_STRING);
    const json_t *start = schema ? check_member(check, root, "the graph", "start_ts", JSON_INTEGER) : NULL;
    const json_t *finish = start ? check_member(check, root, "the graph", "finish_ts", JSON_INTEGER) : NULL;
    struct walk walk = {.nodes = finish ? check_member(check, root, "the graph", "nodes", JSON_ARRAY) : NULL};
    const json_t *node;
    int result = 0;

    if (!walk.nodes || !check_member(check, root, "the graph", "pid", JSON_INTEGER) ||
        !check_member(check, root, "the graph", "time", JSON_STRING))
        return -1;
    if (strcmp(json_string_value(schema), SCHEMA) != 0)
        return check_refuse(check, "its schema is %.60s, and has to be " SCHEMA, json_string_value(schema));
    if (json_integer_value(finish) < json_integer_value(start))
        return check_refuse(check, "it ends before it starts");
    json_array_foreach(walk.nodes, walk.index, node)
    {
        if (result == 0)
            result = check_node(check, &walk, node);
    }
    return result;
}
