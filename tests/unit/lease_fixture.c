#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lease_fixture.h"

struct fake_kernel fake;
struct wf_lease_place place;
struct wf_lease *lease;
struct wf_status status;
char folder[64];
int callers[LEASE_STREAMS], streams[LEASE_STREAMS];

void lease_set_card(void)
{
    fake_kernel_init(&fake);
    for (int i = 0; i < FAKE_RSS; i++)
        fake.rss[i] = (uint32_t)i % 2;
}

static void join_sockets(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, LEASE_STREAMS), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    for (int i = 0; i < LEASE_STREAMS; i++) {
        callers[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(callers[i], (struct sockaddr *)&at, sizeof at), 0);
        streams[i] = accept(listener, NULL, NULL);
    }
    close(listener);
}

int lease_start(void **state)
{
    (void)state;
    lease_set_card();
    lease = NULL;
    strcpy(folder, "/tmp/weft-lease.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    place = (struct wf_lease_place){.kernel = &fake.kernel, .folder = folder};
    join_sockets();
    return 0;
}

int lease_end(void **state)
{
    char command[96];

    (void)state;
    wf_lease_close(lease);
    for (int i = 0; i < LEASE_STREAMS; i++) {
        close(callers[i]);
        close(streams[i]);
    }
    snprintf(command, sizeof command, "rm -r -- '%s'", folder);
    return system(command) || fake.opened;
}

void must(int result)
{
    if (result < 0)
        fail_msg("%d: %s", result, status.text);
}

int rules(void)
{
    int count = 0;

    for (uint32_t i = 0; i < FAKE_RULES; i++)
        count += fake.used[i];
    return count;
}
