#include "version.h"

#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "program.h"

#define LIMIT_MS 2000
#define SLICE_MS 50 /* between two looks at `stop` */

static bool is_part(char letter)
{
    return isalnum((unsigned char)letter) || letter == '.' || letter == '-' || letter == '+';
}

bool peers_read_version(const char *text, char *version, size_t room)
{
    for (const char *at = text; *at; at++) {
        size_t length = strspn(at, "0123456789"), digits = length;
        if (digits == 0)
            continue;
        while (is_part(at[length]))
            length++;
        while (at[length - 1] == '.') /* the end of a sentence */
            length--;
        if (at[digits] == '.' && isdigit((unsigned char)at[digits + 1]) && length < room) {
            memcpy(version, at, length);
            version[length] = '\0';
            return true;
        }
        at += length - 1;
    }
    return false;
}

static int put_version_command(const struct peers_plan *plan, const struct peer_tool *tool,
                               struct peer_command *command)
{
    bool ours = strncmp(tool->version[0], "weft", 4) == 0;
    int result = peer_word(command, "%s%s%s", ours ? plan->place.folder : "", ours ? "/" : "", tool->version[0]);

    for (int i = 1; i < PEER_VERSION_WORDS && tool->version[i]; i++)
        result = peer_word(command, "%s", tool->version[i]);
    return result;
}

int peers_find_version(const struct peers_plan *plan, const struct peer_tool *tool, char *version, size_t room,
                       struct wf_status *status)
{
    struct peer_command command = {0};
    struct peer_program program, *one = &program;
    struct wf_status ignored;
    int result = 0;

    version[0] = '\0';
    if (!tool->version[0] || put_version_command(plan, tool, &command) != 0)
        return 0;
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), LIMIT_MS);
    if (peer_program_start(&program, &command, &ignored) == 0) {
        while (result == 0 && !program.ended && wf_clock_now(&wf_clock_monotonic) < deadline) {
            peer_program_pump(&one, 1, SLICE_MS);
            result = plan->stop ? plan->stop(plan->context, status) : 0;
        }
        if (program.ended && peer_program_verdict(&program, &ignored) == 0)
            peers_read_version(program.text ? program.text : "", version, room);
    }
    peer_program_fini(&program);
    return result;
}
