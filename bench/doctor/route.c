/* The kernel's own answer to which way a packet goes: one request of rtnetlink. */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"

struct question {
    struct nlmsghdr head;
    struct rtmsg route;
    char attributes[64];
};

static const void *bytes_of(const struct sockaddr_storage *address, size_t *length)
{
    bool six = address->ss_family == AF_INET6;

    *length = six ? sizeof(struct in6_addr) : sizeof(struct in_addr);
    return six ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
               : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
}

static void add_address(struct question *question, unsigned short type, const struct sockaddr_storage *address)
{
    struct rtattr *place = (struct rtattr *)((char *)question + NLMSG_ALIGN(question->head.nlmsg_len));
    size_t length;
    const void *bytes = bytes_of(address, &length);

    place->rta_type = type;
    place->rta_len = (unsigned short)RTA_LENGTH(length);
    memcpy(RTA_DATA(place), bytes, length);
    question->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(question->head.nlmsg_len) + RTA_ALIGN(place->rta_len));
}

static int read_answer(const char *bytes, size_t length, char leaves[32])
{
    const struct nlmsghdr *head = (const struct nlmsghdr *)bytes;

    if (!NLMSG_OK(head, length))
        return -EIO;
    if (head->nlmsg_type == NLMSG_ERROR)
        return ((const struct nlmsgerr *)NLMSG_DATA(head))->error;
    const struct rtattr *at = RTM_RTA(NLMSG_DATA(head));
    size_t left = RTM_PAYLOAD(head);
    for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
        if (at->rta_type == RTA_OIF) {
            char name[IF_NAMESIZE] = "";
            if_indextoname(*(const unsigned *)RTA_DATA(at), name);
            strcpy(leaves, name);
        }
    return 0;
}

int doctor_route(const struct sockaddr_storage *from, const struct sockaddr_storage *to, char leaves[32])
{
    struct question question = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                                         .nlmsg_type = RTM_GETROUTE,
                                         .nlmsg_flags = NLM_F_REQUEST},
                                .route = {.rtm_family = (unsigned char)from->ss_family}};
    char answer[4096] __attribute__((aligned(8)));
    size_t bytes;

    bytes_of(from, &bytes);
    leaves[0] = '\0';
    question.route.rtm_dst_len = question.route.rtm_src_len = (unsigned char)(8 * bytes);
    add_address(&question, RTA_SRC, from);
    add_address(&question, RTA_DST, to);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return -errno;
    ssize_t got = send(fd, &question, question.head.nlmsg_len, 0);
    if (got >= 0)
        got = recv(fd, answer, sizeof answer, 0);
    int result = got < 0 ? -errno : read_answer(answer, (size_t)got, leaves);
    close(fd);
    return result;
}
