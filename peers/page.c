#include "page.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "base/config.h"
#include "report.h"

/* --- lines --- */

/* How much of `text` fits into `room`, broken between words where that can be. */
static size_t fitting(const char *text, size_t room)
{
    size_t cut = room;

    if (strlen(text) <= room)
        return strlen(text);
    while (cut > 0 && text[cut] != ' ')
        cut--;
    return cut > 0 ? cut : room;
}

static void put_plain(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        fputc(iscntrl((unsigned char)text[i]) ? '?' : text[i], out);
}

void peers_put_text(const struct peers_page *page, int column, const char *text)
{
    size_t room = page->width > column + 20 ? (size_t)(page->width - column) : 20;
    size_t length = fitting(text, room);

    put_plain(page->out, text, length);
    for (text += length; *text; text += length) {
        text += *text == ' ';
        length = fitting(text, room);
        fprintf(page->out, "\n%*s", column, "");
        put_plain(page->out, text, length);
    }
    fputc('\n', page->out);
}

void peers_put_line(const struct peers_page *page, int column, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    peers_put_text(page, column, text);
}

/* --- numbers --- */

struct peers_unit peers_choose_unit(enum peer_metric metric, double smallest)
{
    static const struct peers_unit units[][3] = {
        [PEER_BANDWIDTH] = {{"GB/s", 1, 0}},
        [PEER_LATENCY] = {{"s", 1e6, 0}, {"ms", 1e3, 0}, {"us", 1, 0}},
        [PEER_RATE] = {{"million/s", 1e6, 0}, {"thousand/s", 1e3, 0}, {"/s", 1, 0}},
    };
    int count = metric == PEER_BANDWIDTH ? 1 : 3, index = 0;

    while (index + 1 < count && smallest < units[metric][index].size)
        index++;
    struct peers_unit unit = units[metric][index];
    for (double value = smallest / unit.size; value < 99.95 && unit.digits < 4; value *= 10)
        unit.digits++;
    return unit;
}

char *peers_value_text(double value, const struct peers_unit *unit, char *text, size_t room)
{
    if (value < 0)
        snprintf(text, room, "-");
    else
        snprintf(text, room, "%.*f %s", value < 1000 * unit->size ? unit->digits : 0, value / unit->size, unit->name);
    return text;
}

char *peers_duration(double seconds, char *text, size_t room)
{
    double minutes = seconds / 60;

    if (seconds < 119.5)
        snprintf(text, room, "%.0f s", seconds < 1 ? 1 : seconds);
    else if (minutes < 89.5)
        snprintf(text, room, "%.0f minutes", minutes);
    else
        snprintf(text, room, "%d h %d min", (int)(minutes + 0.5) / 60, (int)(minutes + 0.5) % 60);
    return text;
}

char *peers_size_text(uint64_t size, char *text, size_t room)
{
    char number[32];

    snprintf(text, room, "%s%s", wf_format_size(size, number, sizeof number),
             size % 1024 ? size == 1 ? " byte" : " bytes" : "");
    return text;
}

const char *peers_metric_title(enum peer_metric metric)
{
    static const char *const titles[] = {
        [PEER_BANDWIDTH] = "bandwidth", [PEER_LATENCY] = "half round trip", [PEER_RATE] = "message rate"};

    return titles[metric];
}

/* --- the place --- */

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 || strncmp(address, "::ffff:127.", 11) == 0;
}

/* Between two addresses of one machine its kernel takes the loopback interface, whatever card has them. */
bool peers_on_loopback(const struct peer_place *place)
{
    bool all = place->rail_count > 0;

    for (int i = 0; i < place->rail_count; i++)
        all = all && is_loopback(place->rails[i]);
    return all || place->one_machine;
}
