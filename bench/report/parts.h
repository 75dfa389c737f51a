/*
 * parts.h: the files of the page (bench/report/page) as texts inside of the program, which needs no other file to write
 * a page.
 */
#ifndef WF_REPORT_PARTS_H
#define WF_REPORT_PARTS_H

#include <stddef.h>

/* A text is also ended by a zero byte, which `length` does not count. */
struct report_part {
    const char *name; /* of the file; NULL: the end of the list */
    const char *text;
    size_t length; /* 0: this build has none, which only echarts.min.js may be */
};

/* report.css, echarts.min.js, and our scripts in the order in which they stand in the page. None has the end of a
 * <style> or <script> in it. */
extern const struct report_part report_parts[];

#endif
