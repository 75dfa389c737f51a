/* Compiled, never run: each prototype and value of mem/nvml_api.h is what nvml.h says. */
#include <nvml.h>

#include "mem/nvml_api.h"

/* Newer headers wrap the handle into a structure of that one pointer: it is passed the same way. */
_Static_assert(sizeof(nvmlDevice_t) == sizeof(wf_nvml_device), "a handle is a pointer");
#define wf_nvml_device nvmlDevice_t

#define CHECK(name, parameters)                                                                                        \
    void check_##name(void);                                                                                           \
    void check_##name(void)                                                                                            \
    {                                                                                                                  \
        wf_nvml_result(*ours) parameters = &name;                                                                      \
        (void)ours;                                                                                                    \
    }
WF_NVML_FUNCTIONS(CHECK)

void check_words(void);
void check_words(void)
{
    const char *(*ours)(wf_nvml_result) = &nvmlErrorString;
    (void)ours;
}

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(0, NVML_SUCCESS);
SAME(WF_NVML_SENSOR_GPU, NVML_TEMPERATURE_GPU);
SAME(WF_NVML_CLOCK_SM, NVML_CLOCK_SM);
SAME(WF_NVML_CLOCK_MEMORY, NVML_CLOCK_MEM);
