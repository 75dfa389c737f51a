#include "graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SCHEMA "1.1.1-chakra.0.0.4"
#define ROOT 1
#define THREAD 1 /* as PyTorch counts them */

/* PyTorch's at::RecordScope. */
#define SCOPE_FUNCTION 0
#define SCOPE_USER 7

#define GROUP_CLASS "__torch__.torch.classes.c10d.ProcessGroup"
#define WORK_CLASS "__torch__.torch.classes.c10d.Work"
#define SEND_SCHEMA "c10d::send(Tensor[] tensors, " GROUP_CLASS " process_group, int dst, int tag) -> " WORK_CLASS
#define RECV_SCHEMA "c10d::recv_(Tensor[] tensors, " GROUP_CLASS " process_group, int src, int tag) -> " WORK_CLASS

/* What a node takes or gives: four lists of the same length, as JSON. */
struct values {
    const char *values, *shapes, *types, *strides;
};

static const struct values nothing = {"[]", "[]", "[]", "[]"};

struct node {
    const char *name;
    uint64_t id, parent, record;
    int64_t sequence; /* -1: none */
    int scope;
    const struct values *inputs, *outputs;
    const char *schema;  /* of an operator; "": none */
    const char *further; /* attributes, each after a comma; "": none */
};

/* --- a node --- */

static void put_values(FILE *file, const char *name, const struct values *values)
{
    fprintf(file, "\n      \"%s\": {\"values\": %s, \"shapes\": %s, \"types\": %s, \"strides\": %s},", name,
            values->values, values->shapes, values->types, values->strides);
}

static void put_attribute(FILE *file, const char *name, const char *type, int64_t value)
{
    fprintf(file, "{\"name\": \"%s\", \"type\": \"%s\", \"value\": %" PRId64 "}, ", name, type, value);
}

static void put_node(struct bench_graph *graph, const struct node *node)
{
    FILE *file = graph->whole.file;

    fprintf(file, "%s\n    {\n      \"id\": %" PRIu64 ", \"name\": \"%s\", \"ctrl_deps\": %" PRIu64 ",",
            graph->nodes++ ? "," : "", node->id, node->name, node->parent);
    put_values(file, "inputs", node->inputs ? node->inputs : &nothing);
    put_values(file, "outputs", node->outputs ? node->outputs : &nothing);
    fputs("\n      \"attrs\": [", file);
    put_attribute(file, "rf_id", "uint64", (int64_t)node->record);
    put_attribute(file, "fw_parent", "uint64", 0);
    put_attribute(file, "seq_id", "int64", node->sequence);
    put_attribute(file, "scope", "uint64", node->scope);
    put_attribute(file, "tid", "uint64", node->id == ROOT ? 0 : THREAD);
    put_attribute(file, "fw_tid", "uint64", 0);
    fprintf(file,
            "{\"name\": \"op_schema\", \"type\": \"string\", \"value\": \"%s\"}, "
            "{\"name\": \"kernel_backend\", \"type\": \"string\", \"value\": \"\"}, "
            "{\"name\": \"kernel_file\", \"type\": \"string\", \"value\": \"\"}%s]\n    }",
            node->schema ? node->schema : "", node->further ? node->further : "");
    if (ferror(file) && graph->error == 0)
        graph->error = errno ? -errno : -EIO;
}

/* --- a message --- */

/* The tensor that is sent or lands, as it stands in lists: a list of tensors with this one in it. */
struct tensor {
    char value[160], shape[48];
};

static void describe_tensor(const struct bench_graph *graph, uint64_t id, uint64_t size, struct tensor *tensor)
{
    snprintf(tensor->value, sizeof tensor->value, "[[%" PRIu64 ",%" PRIu64 ",0,%" PRIu64 ",1,\"%.64s\"]]", id,
             graph->store, size, graph->rank->device);
    snprintf(tensor->shape, sizeof tensor->shape, "[[%" PRIu64 "]]", size);
}

#define TENSORS "\"GenericList[Tensor(unsigned char)]\""

/* Returns its id. */
static uint64_t put_operator(struct bench_graph *graph, const struct node *above, const struct tensor *tensor,
                             bool sends, uint32_t peer)
{
    char values[256], shapes[80];
    const struct values outputs = {"[\"<Object>\"]", "[[]]", "[\"Object\"]", "[[]]"};
    const struct values inputs = {values, shapes, "[" TENSORS ",\"Object\",\"Int\",\"Int\"]", "[[[1]],[],[],[]]"};

    snprintf(values, sizeof values, "[%s,\"<Object>\",%" PRIu32 ",0]", tensor->value, peer);
    snprintf(shapes, sizeof shapes, "[%s,[],[],[]]", tensor->shape);
    put_node(graph, &(struct node){
                        .name = sends ? "c10d::send" : "c10d::recv_",
                        .id = ++graph->id,
                        .parent = above->id,
                        .record = above->record + 1,
                        .sequence = -1,
                        .scope = SCOPE_FUNCTION,
                        .inputs = &inputs,
                        .outputs = &outputs,
                        .schema = sends ? SEND_SCHEMA : RECV_SCHEMA,
                    });
    return graph->id;
}

static void describe_comms(const struct bench_graph *graph, const char *collective, uint64_t size, char *text,
                           size_t room)
{
    snprintf(text, room,
             ", {\"name\": \"collective_name\", \"type\": \"string\", \"value\": \"%s\"}"
             ", {\"name\": \"dtype\", \"type\": \"string\", \"value\": \"Byte\"}"
             ", {\"name\": \"in_msg_nelems\", \"type\": \"uint64\", \"value\": %" PRIu64 "}"
             ", {\"name\": \"out_msg_nelems\", \"type\": \"uint64\", \"value\": %" PRIu64 "}"
             ", {\"name\": \"in_split_size\", \"type\": \"string\", \"value\": \"[]\"}"
             ", {\"name\": \"out_split_size\", \"type\": \"string\", \"value\": \"[]\"}"
             ", {\"name\": \"global_rank_start\", \"type\": \"uint64\", \"value\": 0}"
             ", {\"name\": \"global_rank_stride\", \"type\": \"uint64\", \"value\": 1}"
             ", {\"name\": \"pg_name\", \"type\": \"string\", \"value\": \"0\"}"
             ", {\"name\": \"pg_desc\", \"type\": \"string\", \"value\": \"default_pg\"}"
             ", {\"name\": \"pg_size\", \"type\": \"uint64\", \"value\": %" PRIu32 "}",
             collective, size, size, graph->rank->world);
}

static void put_comms(struct bench_graph *graph, uint64_t above, const struct tensor *tensor, bool sends, uint32_t peer,
                      uint64_t size)
{
    char values[320], shapes[96], tensors[168], tensor_shapes[56], comms[1024];
    const struct values inputs = {values, shapes,
                                  "[" TENSORS ",\"Tuple[Int,Bool]\",\"Tuple[String,String]\",\"Int\",\"String\","
                                  "\"GenericList[]\",\"GenericList[]\",\"Int\",\"Int\",\"Int\"]",
                                  "[[[1]],[[],[]],[[],[]],[],[],[],[],[],[],[]]"};
    const struct values outputs = {tensors, tensor_shapes, "[" TENSORS "]", "[[[1]]]"};
    const char *collective = sends ? "send" : "recv";

    snprintf(values, sizeof values,
             "[%s,[%" PRIu64 ",true],[\"0\",\"default_pg\"],%" PRIu32 ",\"%s\",[],[],0,1,%" PRIu32 "]", tensor->value,
             graph->messages + 1, peer, collective, graph->rank->world);
    snprintf(shapes, sizeof shapes, "[%s,[[],[]],[[],[]],[],[],[],[],[],[],[]]", tensor->shape);
    snprintf(tensors, sizeof tensors, "[%s]", tensor->value);
    snprintf(tensor_shapes, sizeof tensor_shapes, "[%s]", tensor->shape);
    describe_comms(graph, collective, size, comms, sizeof comms);
    put_node(graph, &(struct node){
                        .name = "record_param_comms",
                        .id = ++graph->id,
                        .parent = above,
                        .record = bench_trace_record(graph->messages) + 2,
                        .sequence = -1,
                        .scope = SCOPE_FUNCTION,
                        .inputs = &inputs,
                        .outputs = &outputs,
                        .further = comms,
                    });
}

void bench_graph_message(struct bench_graph *graph, const struct bench_profile_row *row)
{
    char name[BENCH_PROFILE_NAME];
    bool sends = row->src == graph->rank->rank;
    uint32_t peer = sends ? row->dst : row->src;
    struct tensor tensor;

    if ((!sends && row->dst != graph->rank->rank) || graph->error < 0)
        return;
    describe_tensor(graph, ++graph->id, row->size, &tensor);
    const struct node annotation = {
        .name = bench_profile_name(row, name, sizeof name),
        .id = ++graph->id,
        .parent = graph->thread,
        .record = bench_trace_record(graph->messages),
        .sequence = -1,
        .scope = SCOPE_USER,
    };
    put_node(graph, &annotation);
    uint64_t above = put_operator(graph, &annotation, &tensor, sends, peer);
    put_comms(graph, above, &tensor, sends, peer, row->size);
    graph->messages++;
}

/* --- the file --- */

/* A string of JSON within one, as PyTorch writes it. */
static void put_group(struct bench_graph *graph)
{
    json_t *group =
        json_pack("[{s:s, s:s, s:s, s:[], s:i, s:i}]", "pg_name", "0", "pg_desc", "default_pg", "backend_config",
                  graph->rank->backend, "ranks", "group_size", (int)graph->rank->world, "group_count", 1);
    char *text = json_dumps(group, 0);
    json_t *list = json_pack("[s]", text ? text : "");
    char *value = json_dumps(list, 0);

    if (value)
        put_node(graph, &(struct node){
                            .name = "## process_group:init ##",
                            .id = ++graph->id,
                            .parent = graph->thread,
                            .sequence = -1,
                            .scope = SCOPE_USER,
                            .inputs = &(struct values){value, "[[]]", "[\"String\"]", "[[]]"},
                        });
    else if (graph->error == 0)
        graph->error = -ENOMEM;
    free(value);
    free(text);
    json_decref(list);
    json_decref(group);
}

static void put_head(struct bench_graph *graph, int64_t start_ns)
{
    const struct bench_trace_rank *rank = graph->rank;
    time_t seconds = (time_t)((rank->base_unix_ns + (start_ns - rank->base_ns)) / 1000000000);
    struct tm parts;
    char text[32] = "";

    if (localtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    fprintf(graph->whole.file,
            "{\n  \"schema\": \"" SCHEMA "\", \"pid\": %" PRId64 ", \"time\": \"%s\", \"start_ts\": %" PRId64
            ",\n  \"nodes\": [",
            rank->pid, text, start_ns / 1000000);
}

int bench_graph_open(struct bench_graph *graph, const char *path, const struct bench_trace_rank *rank, int64_t start_ns,
                     struct wf_status *status)
{
    *graph = (struct bench_graph){.rank = rank};
    int result = bench_whole_open(&graph->whole, path, status);
    if (result < 0)
        return result;
    put_head(graph, start_ns);
    graph->id = ROOT;
    put_node(graph, &(struct node){.name = "[pytorch|profiler|execution_trace|process]",
                                   .id = ROOT,
                                   .parent = ROOT,
                                   .sequence = -1,
                                   .scope = SCOPE_USER});
    graph->thread = ++graph->id;
    put_node(graph, &(struct node){.name = "[pytorch|profiler|execution_trace|thread]",
                                   .id = graph->thread,
                                   .parent = ROOT,
                                   .sequence = -1,
                                   .scope = SCOPE_USER});
    put_group(graph);
    graph->store = ++graph->id;
    return 0;
}

int bench_graph_close(struct bench_graph *graph, int64_t finish_ns, struct wf_status *status)
{
    if (graph->whole.file)
        fprintf(graph->whole.file, "\n  ],\n  \"finish_ts\": %" PRId64 "\n}\n", finish_ns / 1000000);
    return bench_whole_close(&graph->whole, graph->error, status);
}
