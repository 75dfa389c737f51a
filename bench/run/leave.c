#include "leave.h"

#include <stdio.h>
#include <unistd.h>

#include "bench/report/report.h"
#include "bench/topo/topo.h"

void bench_leave_no_folder(const struct bench_options *options, bool made)
{
    if (made)
        rmdir(wf_config_text(options->config, WF_SET_OUT));
}

void bench_leave_page(const struct bench_result *result)
{
    const struct bench_options *options = result->options;
    const char *out = wf_config_text(options->config, WF_SET_OUT);
    char drawing[WF_VALUE_MAX + 32];
    struct wf_status status = {0};

    if (!options->report || options->child || !result->filed || !result->sample_count)
        return;
    snprintf(drawing, sizeof drawing, "%s/topo.svg", out);
    bench_topo_draw(options, drawing, &(struct wf_status){0});
    if (bench_report_folder(out, options->open, bench_quiet(options->config) ? NULL : bench_people(options->config),
                            &status))
        fprintf(stderr, "weft: no report: %s\n", status.text);
}
