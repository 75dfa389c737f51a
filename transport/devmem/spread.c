/* Tables by which packets are spread over queues, as numbers. */
#include "devmem.h"

void wf_devmem_rss_first(struct wf_devmem_rss *rss, uint32_t queues)
{
    rss->usual = false;
    for (uint32_t i = 0; i < rss->count; i++)
        rss->queue[i] = (uint16_t)(i % queues);
}

bool wf_devmem_rss_reaches(const struct wf_devmem_rss *rss, uint32_t first)
{
    for (uint32_t i = 0; i < rss->count; i++)
        if (rss->queue[i] >= first)
            return true;
    return false;
}
