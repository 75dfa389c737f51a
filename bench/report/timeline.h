/* timeline.h: a drawing of layers and buckets over time, as weft overlap has noted them. */
#ifndef WF_REPORT_TIMELINE_H
#define WF_REPORT_TIMELINE_H

#include <jansson.h>

/* SVG of a case of weft overlap, both modes one below the other on one scale; the caller's to free. NULL: there is
 * nothing to draw, or no memory. */
char *report_timeline(const json_t *one);

#endif
