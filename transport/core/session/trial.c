#include "core/session/trial.h"

#include <errno.h>
#include <string.h>

#include "core/cards/cards.h"
#include "core/channel/payload.h"
#include "core/channel/work.h"
#include "core/device/device.h"
#include "core/device/transit.h"
#include "core/ground/reached.h"
#include "core/session/loss.h"
#include "core/session/session.h"
#include "wire/pattern.h"

/* Why the inlet is not to be used; NULL: all came as it was sent. */
static const char *find_fault(const struct wf_payload_trial *trial)
{
    if (trial->result < 0)
        return "what the card has put into its memory could not be read back";
    if (trial->device_bytes == 0)
        return "of a trial the card has put nothing into its memory";
    return memcmp(trial->pattern, trial->back, WF_PATTERN_BYTES) == 0 ? NULL
                                                                      : "of a trial the card has brought wrong bytes";
}

/* All of the pattern has been read back. 0; -EOPNOTSUPP: the channel is lost. */
static int judge(struct wf_channel *channel)
{
    struct wf_payload *payload = channel->payload;
    const char *fault = find_fault(&payload->trial);
    WF_REACHED_IF(!fault, "channel UP: its pattern has come");
    if (!fault) {
        wf_payload_passed(payload);
        return 0;
    }
    WF_REACHED("channel UP: its pattern has not come");
    wf_cards_leave(payload->cards, payload->inlet, fault);
    wf_channel_lost(channel, -EOPNOTSUPP, "its trial");
    return -EOPNOTSUPP;
}

/* --- reading back --- */

static int start(struct wf_transit *transit)
{
    const struct wf_landing *landing = transit->landing;
    const struct wf_devices *devices = transit->device->devices;
    struct wf_copy_piece pieces[WF_LANDING_PIECES];
    for (uint32_t i = 0; i < landing->batch.gather_count; i++)
        pieces[i] = (struct wf_copy_piece){.from = landing->payload->inlet->base + landing->gathers[i].from,
                                           .to = landing->payload->trial.back + (landing->gathers[i].to - 1),
                                           .bytes = landing->gathers[i].bytes};
    return devices->ops->copy_start(atomic_load(&devices->memory), &transit->copy, pieces,
                                    (int)landing->batch.gather_count, false);
}

static void ended(struct wf_transit *transit)
{
    struct wf_payload *payload = transit->landing->payload;
    struct wf_lines *lines = payload->lines;
    struct wf_channel *channel = lines->channels[payload->channel];
    bool joined = channel && channel->payload == payload && !channel->kill;
    if (transit->result < 0)
        payload->trial.result = transit->result;
    wf_landing_drop(transit->landing);
    if (!joined || !payload->trial.came || !wf_list_empty(&payload->under_way))
        return;
    (void)judge(channel);
    wf_kicks_all(lines->kicks, NULL); /* the half is held */
}

static const struct wf_transit_ops read_back = {.start = start, .ended = ended};

/* What the card has left in host memory is there already. */
static void take_host_bytes(struct wf_landing *landing)
{
    for (uint32_t i = 0; i < landing->batch.copy_count; i++)
        memcpy(landing->payload->trial.back + (landing->hosts[i].to - 1), landing->hosts[i].from,
               landing->hosts[i].bytes);
}

static int copy(struct wf_session *session, struct wf_landing *landing)
{
    struct wf_device *device = wf_devices_used(session->sessions->devices, landing->payload->inlet->device);
    struct wf_transit *transit = device ? wf_transit_take(&session->shares, device, WF_COPY_OUT, &read_back) : NULL;
    if (!transit)
        return -ENOMEM;
    transit->landing = landing;
    transit->end = landing->device_bytes;
    landing->copies += 1;
    wf_transit_queue(transit);
    return 0;
}

int wf_session_take_pattern(struct wf_channel *channel, bool all)
{
    struct wf_payload *payload = channel->payload;
    struct wf_landing *landing;
    int result;
    while ((landing = wf_payload_land(payload, &result))) {
        if (result == 0)
            take_host_bytes(landing);
        if (result == 0 && landing->device_bytes > 0)
            result = copy(wf_session_of(channel), landing);
        wf_landing_drop(landing);
        if (result < 0)
            break;
    }
    payload->trial.came = all;
    if (result < 0 || !all)
        return result;
    if (wf_list_empty(&payload->under_way))
        return judge(channel);
    wf_channel_hold(channel, true);
    return 0;
}
