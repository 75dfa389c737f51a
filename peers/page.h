/*
 * page.h: lines for people that are never wider than their page, and numbers in units that fit.
 */
#ifndef WF_PEERS_PAGE_H
#define WF_PEERS_PAGE_H

#include "peers.h"
#include "report.h"

/* Prints `text` and ends the line; the first word stands at `column`, where the line has come to, and so do those of
 * the lines that it has to be broken into. What a terminal would obey is printed as '?'. */
void peers_put_text(const struct peers_page *page, int column, const char *text);

/* The same with a format, for texts up to 1023 bytes. */
void peers_put_line(const struct peers_page *page, int column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A unit in which all values of a table can be read, and compared with each other. */
struct peers_unit {
    const char *name; /* "us", "GB/s", "million/s" */
    double size;      /* in the units of peers_value() */
    int digits;       /* behind the point */
};

/* The one that suits `smallest`, a value of peers_value(). */
struct peers_unit peers_choose_unit(enum peer_metric metric, double smallest);

/* "12.3 us"; "-" where the value is negative. Returns `text`. */
char *peers_value_text(double value, const struct peers_unit *unit, char *text, size_t room);

/* "bandwidth", "half round trip", "message rate": what people call a metric. */
const char *peers_metric_title(enum peer_metric metric);

/* "64K", "8 bytes". Returns `text`. */
char *peers_size_text(uint64_t size, char *text, size_t room);

/* Whether no byte leaves the machine. */
bool peers_on_loopback(const struct peer_place *place);

/* What there is where no other tool is measured, for that reason, and which packages would bring one. */
void peers_put_no_rival(const struct peers_plan *plan, const char *reason, const struct peers_page *page);

#endif
