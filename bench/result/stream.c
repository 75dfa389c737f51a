#include "stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *stream_path(const struct bench_result *result)
{
    return wf_config_text(result->options->config, WF_SET_JSON_STREAM);
}

int bench_stream_open(struct bench_result *result, struct wf_status *status)
{
    const char *path = stream_path(result);

    if (!path[0])
        return 0;
    result->stream = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (!result->stream)
        return wf_fail(status, -errno, "--json-stream %.150s: cannot write there: %s", path, wf_strerror(errno));
    return 0;
}

void bench_stream_add(struct bench_result *result, const struct bench_sample *sample)
{
    int receiver = sample->latency ? sample->pair.src_node : sample->pair.dst_node;

    if (!result->stream || result->stream_error)
        return;
    json_t *json = bench_sample_to_json(sample, result->plan->pattern, &result->rails[receiver]);
    errno = 0;
    if (json_dumpf(json, result->stream, JSON_COMPACT) != 0 || fputc('\n', result->stream) == EOF ||
        fflush(result->stream) != 0)
        result->stream_error = errno ? -errno : -EIO;
    json_decref(json);
}

int bench_stream_close(struct bench_result *result, struct wf_status *status)
{
    errno = 0;
    if (result->stream && result->stream != stdout && fclose(result->stream) != 0 && result->stream_error == 0)
        result->stream_error = errno ? -errno : -EIO;
    result->stream = NULL;
    if (result->stream_error == 0)
        return 0;
    return wf_fail(status, result->stream_error, "cannot write %.150s: %s", stream_path(result),
                   wf_strerror(-result->stream_error));
}
