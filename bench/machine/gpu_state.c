/* What the driver's management library says of the GPUs in use, before and after a run: a figure of a GPU that was hot
 * or held back is another one. */
#include "gpus.h"

#include "mem/nvml.h"

static json_t *number(int value, double unit)
{
    return value == WF_NVML_UNKNOWN ? json_null() : json_real(value * unit);
}

static json_t *count(int value)
{
    return value == WF_NVML_UNKNOWN ? json_null() : json_integer(value);
}

static json_t *state_to_json(const struct wf_nvml_state *state)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "temperature_c", count(state->celsius), "sm_clock_mhz",
                     count(state->sm_mhz), "memory_clock_mhz", count(state->memory_mhz), "power_w",
                     number(state->power_mw, 1e-3), "throttling",
                     state->throttling[0] ? json_string(state->throttling) : json_null());
}

json_t *bench_gpu_states(const struct bench_gpus *gpus, uint32_t endpoints)
{
    json_t *all = json_array(), *driver = json_null();
    struct wf_nvml *nvml = NULL;
    struct wf_status status;
    bool there = gpus->count && wf_nvml_open(&nvml, &status) == 0;

    if (there && wf_nvml_driver(nvml)[0])
        driver = json_string(wf_nvml_driver(nvml));
    for (uint32_t i = 0; i < gpus->count && i < endpoints; i++) {
        struct wf_nvml_state state;
        bool known = there && wf_nvml_read(nvml, gpus->infos[i].pci, &state, &status) == 0;
        json_array_append_new(all, known ? state_to_json(&state) : json_null());
    }
    wf_nvml_close(nvml);
    return json_pack("{s:o, s:o}", "driver", driver, "gpus", all);
}

void bench_gpu_states_into(json_t *host, const json_t *states, const char *when)
{
    json_t *gpus = json_object_get(host, "gpus");

    if (json_is_string(json_object_get(states, "driver")))
        json_object_set(host, "gpu_driver", json_object_get(states, "driver"));
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        json_t *state = json_array_get(json_object_get(states, "gpus"), i);
        if (state)
            json_object_set(json_array_get(gpus, i), when, state);
    }
}
