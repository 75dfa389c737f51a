#include "topo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/discover.h"
#include "affinity/show/show.h"
#include "bench/words/whole.h"

#define HOST_ENDPOINTS 8 /* as 'weft mesh' takes where there is no GPU */

/* Too large for a stack. */
struct topo {
    struct wf_machine machine;
    struct wf_plan plan;
    struct wf_show show;
    struct wf_plan_request request;
    char why[512], gpu_path[2048];
    struct wf_left_out left_out[WF_LEFT_OUT_MAX];
    int left_count;
    int gpu_count; /* that a run could take */
    char all_gpus[16];
};

/* --- what is asked --- */

/* The value of a setting whose words are in the order of an enum. */
static int word_of(const struct wf_config *config, enum wf_setting_id id, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(wf_config_text(config, id), words[i]) == 0)
            return i;
    return 0;
}

static int make_request(const struct bench_options *options, struct topo *topo, struct wf_status *status)
{
    static const char *const pins[] = {[WF_PIN_OFF] = "off", [WF_PIN_AUTO] = "auto", [WF_PIN_REQUIRE] = "require"};
    static const char *const policies[] = {
        [WF_POLICY_AUTO] = "auto", [WF_POLICY_NEAR] = "near", [WF_POLICY_NODE] = "node", [WF_POLICY_ALL] = "all"};
    static const char *const irqs[] = {[WF_IRQ_AVOID] = "avoid", [WF_IRQ_USE] = "use", [WF_IRQ_ANY] = "any"};
    const struct wf_config *config = options->config;
    struct wf_plan_request *request = &topo->request;
    int64_t endpoints = wf_config_number(config, WF_SET_ENDPOINTS);
    const char *gpus = wf_config_text(config, WF_SET_GPUS);
    bool named = gpus[0] && strcmp(gpus, "all") != 0;
    bool host = strcmp(wf_config_text(config, WF_SET_MEMORY), "host") == 0;
    /* A GPU that is named in vain is for the plan to refuse. */
    bool on_gpus = topo->gpu_count > 0 || (named && !host && topo->machine.foreign);

    request->pin = (enum wf_pin)word_of(config, WF_SET_PIN, pins, 3);
    request->rail_policy = (enum wf_rail_policy)word_of(config, WF_SET_RAIL_POLICY, policies, 4);
    request->irq_policy = (enum wf_irq_policy)word_of(config, WF_SET_IRQ_POLICY, irqs, 3);
    request->tx_bindings = wf_config_text(config, WF_SET_TX_BINDINGS);
    request->rx_bindings = wf_config_text(config, WF_SET_RX_BINDINGS);
    request->is_here = topo->machine.foreign ? NULL : wf_address_is_here;
    request->tx_lenient = wf_config_is_alias(config, WF_SET_TX_BINDINGS);
    request->rx_lenient = wf_config_is_alias(config, WF_SET_RX_BINDINGS);
    if (!on_gpus && endpoints > WF_PLAN_ENDPOINTS)
        return wf_fail(status, -EINVAL, "endpoints = %lld: a plan has at most %d in host memory", (long long)endpoints,
                       WF_PLAN_ENDPOINTS);
    snprintf(topo->all_gpus, sizeof topo->all_gpus, "0-%d", topo->gpu_count - 1);
    if (on_gpus) {
        request->gpus = named ? gpus : topo->all_gpus;
        request->gpu_endpoints = (int)endpoints;
    } else {
        request->host_endpoints = endpoints ? (int)endpoints : HOST_ENDPOINTS;
    }
    return bench_topo_rails(&topo->machine, wf_config_text(config, WF_SET_RAILS), request, topo->left_out,
                            &topo->left_count, status);
}

static int make(const struct bench_options *options, struct topo *topo, struct wf_status *status)
{
    int result = wf_machine_discover(options->xml, &topo->machine, topo->why, sizeof topo->why);
    if (result)
        return wf_fail(status, result, "%s", topo->why);
    result = bench_topo_gpus(&topo->machine, options, topo->gpu_path, sizeof topo->gpu_path, status);
    if (result < 0)
        return result;
    topo->gpu_count = result;
    result = make_request(options, topo, status);
    if (result)
        return result;
    result = wf_plan_make(&topo->machine, &topo->request, &topo->plan, topo->why, sizeof topo->why);
    if (result)
        return wf_fail(status, result, "%s", topo->why);
    topo->show = (struct wf_show){.machine = &topo->machine,
                                  .plan = &topo->plan,
                                  .gpu_path = topo->gpu_path,
                                  .left_out = topo->left_out,
                                  .left_count = topo->left_count};
    struct bench_topo_cards cards = {0};
    wf_show_gather(&topo->show, wf_config_number(options->config, WF_SET_ZERO_COPY), bench_topo_ask_card, &cards);
    bench_topo_cards_fini(&cards);
    bench_topo_ask_gpus(&topo->show, topo->gpu_count);
    return 0;
}

/* --- what is shown --- */

static int put_svg(const void *show, FILE *out)
{
    wf_show_svg(out, show);
    return 0;
}

static int write_svg(const char *path, const struct wf_show *show, struct wf_status *status)
{
    return bench_write_whole(path, put_svg, show, status);
}

static bool takes_output(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static int show_all(const struct bench_options *options, const struct wf_show *show)
{
    struct wf_status status = {0};
    bool told = takes_output(wf_config_text(options->config, WF_SET_JSON)) || takes_output(options->svg);

    if (options->svg)
        write_svg(options->svg, show, &status);
    int exit_status = bench_topo_leave(options, wf_show_json(show), &status, status.code ? BENCH_FAILED : BENCH_PASSED);
    if (exit_status == BENCH_PASSED && !told)
        wf_show_text(stdout, show);
    return exit_status;
}

static int check_usage(const struct bench_options *options, struct wf_status *status)
{
    if (options->in_force && (options->svg || options->xml))
        return wf_fail(status, -EINVAL, "--in-force tells of a process, and --%s of a machine: leave one of them out",
                       options->svg ? "svg" : "xml");
    if (takes_output(options->svg) && takes_output(wf_config_text(options->config, WF_SET_JSON)))
        return wf_fail(status, -EINVAL, "--json - and --svg - are both standard output: give one of them a file");
    return 0;
}

int bench_topo_draw(const struct bench_options *options, const char *path, struct wf_status *status)
{
    struct topo *topo = calloc(1, sizeof *topo);
    int result = topo ? make(options, topo, status) : wf_fail(status, -ENOMEM, "no memory for the machine");

    if (result == 0)
        result = write_svg(path, &topo->show, status);
    free(topo);
    return result;
}

int bench_topo(struct bench_options *options)
{
    struct topo *topo;
    struct wf_status status = {0};
    int result = check_usage(options, &status);

    if (result == 0 && options->in_force)
        return bench_topo_in_force(options);
    topo = calloc(1, sizeof *topo);
    if (result == 0)
        result = topo ? make(options, topo, &status) : wf_fail(&status, -ENOMEM, "no memory for the machine");
    int exit_status = result ? bench_topo_refused(options, &status) : show_all(options, &topo->show);
    free(topo);
    return exit_status;
}
