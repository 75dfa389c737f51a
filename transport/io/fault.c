#include "io/fault.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* --- by bytes and chance --- */

/* splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
static uint64_t draw(struct wf_fault_dice *dice)
{
    uint64_t z = dice->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* From a half of `every` to half as much again, so that nothing gets into step with it. */
static uint64_t distance(struct wf_fault_dice *dice, uint64_t every)
{
    uint64_t bytes = every - every / 2 + draw(dice) % (every / 2 * 2 + 1);
    return every ? bytes : UINT64_MAX;
}

void wf_fault_dice_init(struct wf_fault_dice *dice, const struct wf_fault_spec *spec)
{
    *dice = (struct wf_fault_dice){.spec = spec, .state = spec->seed};
    dice->until_reset = distance(dice, spec->reset_every);
    dice->until_flip = distance(dice, spec->flip_every);
}

bool wf_fault_reset_due(struct wf_fault_dice *dice, uint64_t bytes)
{
    if (bytes >= dice->until_reset) {
        dice->until_reset = distance(dice, dice->spec->reset_every);
        return true;
    }
    if (dice->until_reset != UINT64_MAX)
        dice->until_reset -= bytes;
    return false;
}

uint64_t wf_fault_flip_due(struct wf_fault_dice *dice, uint64_t bytes, int *bit)
{
    uint64_t at = dice->until_flip;
    if (bytes >= at) {
        dice->until_flip = distance(dice, dice->spec->flip_every);
        *bit = (int)(draw(dice) % 8);
        return at;
    }
    if (at != UINT64_MAX)
        dice->until_flip -= bytes;
    return 0;
}

uint64_t wf_fault_piece(struct wf_fault_dice *dice, uint64_t bytes)
{
    if (bytes > dice->until_reset)
        bytes = dice->until_reset;
    if (!dice->spec->shorten || bytes < 2)
        return bytes;
    /* Few bytes as often as many: first the magnitude, then the value. */
    unsigned magnitudes = 64 - (unsigned)__builtin_clzll(bytes);
    uint64_t most = UINT64_C(1) << draw(dice) % magnitudes;
    return 1 + draw(dice) % most;
}

/* --- rails --- */

static struct sockaddr_storage unmapped(const struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return *address;
    struct sockaddr_storage plain = {.ss_family = AF_INET};
    memcpy(&((struct sockaddr_in *)&plain)->sin_addr, &v6->sin6_addr.s6_addr[12], 4);
    return plain;
}

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    struct sockaddr_storage left = unmapped(a), right = unmapped(b);
    if (left.ss_family != right.ss_family)
        return false;
    if (left.ss_family == AF_INET)
        return ((struct sockaddr_in *)&left)->sin_addr.s_addr == ((struct sockaddr_in *)&right)->sin_addr.s_addr;
    const struct sockaddr_in6 *one = (const struct sockaddr_in6 *)&left, *other = (const struct sockaddr_in6 *)&right;
    return left.ss_family == AF_INET6 && memcmp(&one->sin6_addr, &other->sin6_addr, 16) == 0 &&
           one->sin6_scope_id == other->sin6_scope_id;
}

int wf_fault_rail_of(const struct wf_fault_rail *rails, int rail_count, const struct sockaddr_storage *address)
{
    for (int i = 0; i < rail_count; i++)
        if (same_host(&rails[i].address, address))
            return i;
    return -1;
}

/* "127.0.0.1", "fe80::1%eth0"; without an interface the address of every link is meant. */
static bool has_address(const struct wf_fault_rail *rail, const char *text)
{
    char host[WF_FAULT_RAIL];
    struct sockaddr_storage address = {0};
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    size_t length = strcspn(text, "%");
    if (text[length] && strcmp(text + length + 1, rail->device) != 0)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)length, text);
    if (inet_pton(AF_INET, host, &((struct sockaddr_in *)&address)->sin_addr) == 1)
        address.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1)
        address.ss_family = AF_INET6;
    if (address.ss_family == AF_INET6 && rail->address.ss_family == AF_INET6)
        v6->sin6_scope_id = ((const struct sockaddr_in6 *)&rail->address)->sin6_scope_id;
    return address.ss_family && same_host(&rail->address, &address);
}

static uint64_t rails_called(const char *text, const struct wf_fault_rail *rails, int rail_count)
{
    uint64_t found = 0;
    char *end;
    unsigned long index = strtoul(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end)
        return index < (unsigned long)rail_count ? UINT64_C(1) << index : 0;
    for (int i = 0; i < rail_count; i++)
        if (strcmp(rails[i].name, text) == 0 || strcmp(rails[i].device, text) == 0 || has_address(&rails[i], text))
            found |= UINT64_C(1) << i;
    return found;
}

static int refuse(const struct wf_fault_window *window, const struct wf_fault_rail *rails, int rail_count,
                  struct wf_status *status)
{
    char names[160] = "";
    size_t used = 0;
    for (int i = 0; i < rail_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", rails[i].name);
    return wf_fail(status, -EINVAL, "fault: %s=%s: no rail is called that; there are %s, or by number 0 to %d",
                   window->drop ? "drop" : "stall", window->rail, names, rail_count - 1);
}

int wf_fault_plan_init(struct wf_fault_plan *plan, const struct wf_fault_spec *spec, const struct wf_fault_rail *rails,
                       int rail_count, struct wf_status *status)
{
    struct wf_fault_plan made = {.spec = *spec};
    if (rail_count > WF_FAULT_RAILS)
        return wf_fail(status, -EINVAL, "fault: %d rails are more than %d", rail_count, WF_FAULT_RAILS);
    for (int i = 0; i < spec->window_count; i++) {
        made.rails[i] = rails_called(spec->windows[i].rail, rails, rail_count);
        if (!made.rails[i])
            return refuse(&spec->windows[i], rails, rail_count, status);
    }
    *plan = made;
    return 0;
}

/* --- by time --- */

struct wf_fault_state wf_fault_state_at(const struct wf_fault_plan *plan, int64_t since_ns)
{
    struct wf_fault_state state = {.until_ns = WF_NEVER};
    for (int i = 0; i < plan->spec.window_count; i++) {
        const struct wf_fault_window *window = &plan->spec.windows[i];
        int64_t start = window->start_ms * WF_NS_PER_MS, end = start + window->length_ms * WF_NS_PER_MS;
        int64_t next = since_ns < start ? start : since_ns < end ? end : WF_NEVER;
        if (since_ns >= start && since_ns < end)
            *(window->drop ? &state.dropped : &state.stalled) |= plan->rails[i];
        if (next < state.until_ns)
            state.until_ns = next;
    }
    return state;
}

int64_t wf_fault_stall_end(const struct wf_fault_plan *plan, int rail, int64_t since_ns)
{
    struct wf_fault_state state = wf_fault_state_at(plan, since_ns);
    while (rail >= 0 && (state.stalled >> rail & 1)) { /* another one may begin before this one ends */
        since_ns = state.until_ns;
        state = wf_fault_state_at(plan, since_ns);
    }
    return since_ns;
}
