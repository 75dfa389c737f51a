#include "affinity/show/ethtool_rings.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* From linux/ethtool_netlink.h, which older systems have without these. */
#define FAMILY "ethtool"
#define MESSAGE_RINGS_GET 15
#define RINGS_HEADER 1
#define HEADER_NAME 2
#define RINGS_TCP_DATA_SPLIT 11
#define SPLIT_OFF 1
#define SPLIT_ON 2

#define ANSWER_ROOM 8192

/* A request with one attribute at the most, and its answer. */
struct exchange {
    union {
        struct nlmsghdr header;
        uint8_t bytes[ANSWER_ROOM];
    } at;
};

static void start(struct exchange *exchange, uint16_t type, uint8_t command)
{
    struct genlmsghdr generic = {.cmd = command, .version = 1};
    memset(&exchange->at, 0, sizeof exchange->at);
    exchange->at.header.nlmsg_type = type;
    exchange->at.header.nlmsg_flags = NLM_F_REQUEST;
    exchange->at.header.nlmsg_len = NLMSG_LENGTH(sizeof generic);
    memcpy(NLMSG_DATA(&exchange->at.header), &generic, sizeof generic);
}

/* Returns where the attribute is, as an offset; names are short. */
static uint32_t put(struct exchange *exchange, uint16_t type, const void *data, size_t length)
{
    uint32_t offset = exchange->at.header.nlmsg_len;
    struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + length), .nla_type = type};
    memcpy(exchange->at.bytes + offset, &attribute, sizeof attribute);
    if (length)
        memcpy(exchange->at.bytes + offset + NLA_HDRLEN, data, length);
    exchange->at.header.nlmsg_len += NLA_ALIGN((uint32_t)NLA_HDRLEN + (uint32_t)length);
    return offset;
}

/* Sends, and waits for the answer, which takes the place of the request. False where there is none, or an error. */
static bool ask(int fd, struct exchange *exchange)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if (sendto(fd, exchange->at.bytes, exchange->at.header.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        return false;
    ssize_t length = recv(fd, exchange->at.bytes, sizeof exchange->at.bytes, 0);
    return length >= (ssize_t)NLMSG_LENGTH(GENL_HDRLEN) && exchange->at.header.nlmsg_len <= (size_t)length &&
           exchange->at.header.nlmsg_len >= NLMSG_LENGTH(GENL_HDRLEN) && exchange->at.header.nlmsg_type != NLMSG_ERROR;
}

/* The number in an attribute of one or two bytes; -1: it is not there. */
static int number(const struct exchange *exchange, uint16_t type)
{
    uint32_t offset = NLMSG_LENGTH(GENL_HDRLEN), end = exchange->at.header.nlmsg_len;
    while (offset + NLA_HDRLEN <= end) {
        struct nlattr attribute;
        memcpy(&attribute, exchange->at.bytes + offset, sizeof attribute);
        if (attribute.nla_len < NLA_HDRLEN || offset + attribute.nla_len > end)
            return -1;
        const uint8_t *data = exchange->at.bytes + offset + NLA_HDRLEN;
        uint16_t word;
        if ((attribute.nla_type & NLA_TYPE_MASK) == type && attribute.nla_len == NLA_HDRLEN + 1)
            return data[0];
        if ((attribute.nla_type & NLA_TYPE_MASK) == type && attribute.nla_len == NLA_HDRLEN + sizeof word) {
            memcpy(&word, data, sizeof word);
            return word;
        }
        offset += NLA_ALIGN(attribute.nla_len);
    }
    return -1;
}

static int ask_split(int fd, const char *name)
{
    struct exchange exchange;
    start(&exchange, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
    put(&exchange, CTRL_ATTR_FAMILY_NAME, FAMILY, sizeof FAMILY);
    int family = ask(fd, &exchange) ? number(&exchange, CTRL_ATTR_FAMILY_ID) : -1;
    if (family < 0)
        return -1;

    start(&exchange, (uint16_t)family, MESSAGE_RINGS_GET);
    uint32_t nest = put(&exchange, RINGS_HEADER | NLA_F_NESTED, NULL, 0);
    put(&exchange, HEADER_NAME, name, strlen(name) + 1);
    uint16_t nest_length = (uint16_t)(exchange.at.header.nlmsg_len - nest);
    memcpy(exchange.at.bytes + nest, &nest_length, sizeof nest_length);
    int split = ask(fd, &exchange) ? number(&exchange, RINGS_TCP_DATA_SPLIT) : -1;
    return split == SPLIT_ON ? 1 : split == SPLIT_OFF ? 0 : -1;
}

int wf_ethtool_header_split(const char *name)
{
    struct timeval patience = {.tv_sec = 1};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int split = strlen(name) < 32 ? ask_split(fd, name) : -1;
    close(fd);
    return split;
}
