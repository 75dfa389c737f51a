#include "utf8.h"

#include <stdbool.h>

#include "base/status.h"

/* How many bytes follow the first one; -1: it is no first one. */
static int following(unsigned char first)
{
    return first < 0x80                    ? 0
           : first >= 0xC2 && first < 0xE0 ? 1
           : first >= 0xE0 && first < 0xF0 ? 2
           : first >= 0xF0 && first < 0xF5 ? 3
                                           : -1;
}

static bool is_letter(uint32_t letter, int more)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

    return letter >= least[more] && letter <= 0x10FFFF && (letter < 0xD800 || letter > 0xDFFF);
}

uint32_t report_utf8_next(const char **text)
{
    const unsigned char *at = (const unsigned char *)*text;
    int more = following(at[0]);
    uint32_t letter = more <= 0 ? at[0] : at[0] & (0x3Fu >> more);

    if (at[0] == 0)
        return 0;
    for (int i = 1; i <= more; i++) {
        if ((at[i] & 0xC0) != 0x80) {
            more = -1;
            break;
        }
        letter = letter << 6 | (at[i] & 0x3Fu);
    }
    if (more < 0 || !is_letter(letter, more)) {
        *text += 1;
        return REPORT_NO_LETTER;
    }
    *text += more + 1;
    return letter;
}

void report_utf8_plain(char *text)
{
    const char *next = text;

    wf_text_plain(text);
    for (char *at = text; *at; at = text + (next - text))
        if (report_utf8_next(&next) == REPORT_NO_LETTER && next == at + 1)
            *at = '?';
}

void report_utf8_put(FILE *out, uint32_t letter)
{
    if (letter < 0x80) {
        fputc((int)letter, out);
    } else if (letter < 0x800) {
        fputc((int)(0xC0 | letter >> 6), out);
        fputc((int)(0x80 | (letter & 0x3F)), out);
    } else {
        if (letter >= 0x10000)
            fputc((int)(0xF0 | letter >> 18), out);
        fputc((int)(letter >= 0x10000 ? 0x80 | (letter >> 12 & 0x3F) : 0xE0 | letter >> 12), out);
        fputc((int)(0x80 | (letter >> 6 & 0x3F)), out);
        fputc((int)(0x80 | (letter & 0x3F)), out);
    }
}
