/* Network interfaces, and TCP of the machine. */
#include <stdlib.h>
#include <string.h>

#include "bench/words/words.h"
#include "sense_parts.h"

static const char *const files[BENCH_SENSE_NIC_COUNTS] = {
    [BENCH_SENSE_RX_BYTES] = "rx_bytes",     [BENCH_SENSE_TX_BYTES] = "tx_bytes",
    [BENCH_SENSE_RX_ERRORS] = "rx_errors",   [BENCH_SENSE_TX_ERRORS] = "tx_errors",
    [BENCH_SENSE_RX_DROPPED] = "rx_dropped", [BENCH_SENSE_TX_DROPPED] = "tx_dropped",
};

void bench_sense_net_init(struct bench_sense_net *net, const char *root, const char *const *names, int count)
{
    net->count = count;
    net->snmp_fd = bench_sense_open(root, "/proc/net/snmp");
    for (int i = 0; i < count; i++) {
        struct bench_sense_interface *interface = &net->interfaces[i];
        bench_copy_text(interface->name, sizeof interface->name, names[i]);
        for (int which = 0; which < BENCH_SENSE_NIC_COUNTS; which++)
            interface->fds[which] = bench_sense_open(root, "/sys/class/net/%s/statistics/%s", names[i], files[which]);
    }
}

void bench_sense_net_fini(struct bench_sense_net *net)
{
    bench_sense_close(&net->snmp_fd);
    for (int i = 0; i < net->count; i++)
        for (int which = 0; which < BENCH_SENSE_NIC_COUNTS; which++)
            bench_sense_close(&net->interfaces[i].fds[which]);
}

/* A line of names, "Tcp: RtoAlgorithm ... RetransSegs ...", has a line of numbers behind it. */
static uint64_t retransmits_in(char *text)
{
    char *names = strstr(text, "Tcp: "), *numbers = names ? strstr(names + 1, "\nTcp: ") : NULL;
    char *name, *number, *end;

    if (!numbers)
        return BENCH_SENSE_COUNT_UNKNOWN;
    *numbers++ = '\0';
    numbers[strcspn(numbers, "\n")] = '\0';
    while ((name = bench_next_word(&names, ' ')) != NULL && (number = bench_next_word(&numbers, ' ')) != NULL)
        if (strcmp(name, "RetransSegs") == 0) {
            uint64_t value = strtoull(number, &end, 10);
            return end == number ? BENCH_SENSE_COUNT_UNKNOWN : value;
        }
    return BENCH_SENSE_COUNT_UNKNOWN;
}

void bench_sense_net_read(struct bench_sense_net *net, struct bench_sense_reading *now)
{
    char text[8192];

    for (int i = 0; i < net->count; i++)
        for (int which = 0; which < BENCH_SENSE_NIC_COUNTS; which++)
            now->nics[i].counts[which] = bench_sense_count(net->interfaces[i].fds[which]);
    now->sample->retransmits =
        bench_sense_text(net->snmp_fd, text, sizeof text) > 0 ? retransmits_in(text) : BENCH_SENSE_COUNT_UNKNOWN;
}
