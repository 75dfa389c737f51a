/*
 * loop_card.c: prints all that the kernel tells of the settings of an interface, as it tells them: the bytes of its
 * answers. Two outputs that are the same are of an interface that nobody has changed in between. Needs no ethtool.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAMILY_ID 1
#define FAMILY_NAME 2
#define HEADER 1
#define HEADER_NAME 2

/* Of the family "ethtool". */
static const struct question {
    const char *name;
    uint8_t command;
} questions[] = {{"features", 11},   {"private flags", 13}, {"rings", 15}, {"channels", 17},
                 {"coalescing", 19}, {"pause", 21},         {"rss", 38}};

struct message {
    union {
        struct nlmsghdr header;
        uint8_t bytes[65536];
    } at;
};

static void put(struct message *message, uint16_t type, const void *data, size_t bytes)
{
    struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + bytes), .nla_type = type};
    uint8_t *to = message->at.bytes + message->at.header.nlmsg_len;

    memcpy(to, &attribute, sizeof attribute);
    memcpy(to + NLA_HDRLEN, data, bytes);
    message->at.header.nlmsg_len += NLA_ALIGN(attribute.nla_len);
}

static void start(struct message *message, uint16_t type, uint8_t command)
{
    memset(message, 0, 256);
    message->at.header =
        (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST};
    *(struct genlmsghdr *)NLMSG_DATA(&message->at.header) = (struct genlmsghdr){.cmd = command, .version = 1};
}

/* How long what follows the headers is, or a negative errno. */
static int ask(int fd, struct message *message)
{
    if (send(fd, message->at.bytes, message->at.header.nlmsg_len, 0) < 0)
        return -errno;
    ssize_t bytes = recv(fd, message->at.bytes, sizeof message->at.bytes, 0);
    if (bytes < (ssize_t)NLMSG_LENGTH(GENL_HDRLEN))
        return -EBADMSG;
    if (message->at.header.nlmsg_type == NLMSG_ERROR)
        return ((struct nlmsgerr *)NLMSG_DATA(&message->at.header))->error;
    return (int)(message->at.header.nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN));
}

static int find_family(int fd, struct message *message)
{
    start(message, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
    put(message, FAMILY_NAME, "ethtool", sizeof "ethtool");
    int bytes = ask(fd, message);
    const uint8_t *at = message->at.bytes + NLMSG_LENGTH(GENL_HDRLEN), *end = at + bytes;
    while (bytes > 0 && at + NLA_HDRLEN < end) {
        const struct nlattr *attribute = (const struct nlattr *)at;
        if (attribute->nla_type == FAMILY_ID)
            return *(const uint16_t *)(at + NLA_HDRLEN);
        at += NLA_ALIGN(attribute->nla_len);
    }
    return -1;
}

static void print_answer(int fd, int family, const char *interface, const struct question *question)
{
    static struct message message;
    uint8_t nest[64] = {0};
    struct nlattr name = {.nla_len = (uint16_t)(NLA_HDRLEN + strlen(interface) + 1), .nla_type = HEADER_NAME};

    memcpy(nest, &name, sizeof name);
    memcpy(nest + NLA_HDRLEN, interface, strlen(interface) + 1);
    start(&message, (uint16_t)family, question->command);
    put(&message, HEADER | NLA_F_NESTED, nest, NLA_ALIGN(name.nla_len));
    int bytes = ask(fd, &message);
    printf("%s:", question->name);
    if (bytes < 0)
        printf(" %s", strerror(-bytes));
    for (int i = 0; i < bytes; i++)
        printf(" %02x", message.at.bytes[NLMSG_LENGTH(GENL_HDRLEN) + i]);
    printf("\n");
}

int main(int argc, char **argv)
{
    static struct message message;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);

    if (argc != 2 || strlen(argv[1]) > 15 || fd < 0 || connect(fd, (struct sockaddr *)&kernel, sizeof kernel) != 0)
        return 2;
    int family = find_family(fd, &message);
    if (family < 0)
        return 1;
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++)
        print_answer(fd, family, argv[1], &questions[i]);
    close(fd);
    return 0;
}
