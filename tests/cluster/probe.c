// probe RAILS EACH: what a launcher has to give to a process of a mesh. It finds its rank, and meets all processes of
// other nodes over every rail of scripts/cluster_net.sh: each connects to each, and both say their rank.
//
// Prints "rank 1 of 4 on n1 by torchrun: met 3 over 2 rails", and ends with 1 where it is not so within 30 seconds.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RAILS_MAX = 16, FIRST_PORT = 7000, LIMIT_S = 30 };

// Where launchers say the rank and the number of ranks. What hands PMIx's out has the number only behind PMIx's calls:
// for these it comes from a variable of its own.
static const struct launcher {
    const char *name, *rank, *size;
} launchers[] = {
    {"pmix", "PMIX_RANK", "SLURM_NTASKS"},     {"pmix", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE"},        {"pmi", "PMI_RANK", "PMI_SIZE"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS"},
};

static _Noreturn void give_up(const char *what, const char *where)
{
    fprintf(stderr, "probe: %s %s: %s\n", what, where, strerror(errno));
    exit(1);
}

static const struct launcher *find_launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (getenv(launchers[i].rank) && getenv(launchers[i].size))
            return &launchers[i];
    }
    fprintf(stderr, "probe: no launcher says the rank\n");
    exit(1);
}

static struct sockaddr_in place(int node, int rail, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(10u << 24 | 77u << 16 | (uint32_t)rail << 8 | (uint32_t)(node + 1));
    return a;
}

// Both send first, four bytes.
static uint32_t exchange(int fd, uint32_t rank)
{
    uint32_t other;
    if (write(fd, &rank, sizeof rank) != sizeof rank || recv(fd, &other, sizeof other, MSG_WAITALL) != sizeof other)
        give_up("exchange with", "another rank");
    close(fd);
    return other;
}

static void serve(struct pollfd *fds, int rails, int count, uint32_t rank)
{
    while (count > 0) {
        poll(fds, (nfds_t)rails, -1);
        for (int i = 0; i < rails; i++) {
            if (fds[i].revents & POLLIN) {
                exchange(accept(fds[i].fd, NULL, NULL), rank);
                count--;
            }
        }
    }
}

// Until the other one listens.
static void meet(struct sockaddr_in to, uint32_t rank, uint32_t other)
{
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (!connect(fd, (struct sockaddr *)&to, sizeof to)) {
            if (exchange(fd, rank) != other) {
                fprintf(stderr, "probe: not rank %u is at %s\n", other, inet_ntoa(to.sin_addr));
                exit(1);
            }
            return;
        }
        if (errno != ECONNREFUSED)
            give_up("connect to", inet_ntoa(to.sin_addr));
        close(fd);
        usleep(10000);
    }
}

int main(int argc, char **argv)
{
    int rails = argc == 3 ? atoi(argv[1]) : 0, each = argc == 3 ? atoi(argv[2]) : 0, node;
    char host[64];
    struct pollfd fds[RAILS_MAX];
    if (rails < 1 || rails > RAILS_MAX || each < 1 || gethostname(host, sizeof host) ||
        sscanf(host, "n%d", &node) != 1) {
        fprintf(stderr, "usage: probe RAILS EACH, in a node of a cluster\n");
        return 2;
    }
    const struct launcher *by = find_launcher();
    int rank = atoi(getenv(by->rank)), size = atoi(getenv(by->size));

    alarm(LIMIT_S);
    for (int i = 0; i < rails; i++) {
        struct sockaddr_in here = place(node, i, FIRST_PORT + rank % each);
        fds[i] = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN};
        if (bind(fds[i].fd, (struct sockaddr *)&here, sizeof here) || listen(fds[i].fd, size))
            give_up("listen at", inet_ntoa(here.sin_addr));
    }
    pid_t server = fork();
    if (!server) {
        alarm(LIMIT_S);
        serve(fds, rails, (size - each) * rails, (uint32_t)rank);
        return 0;
    }
    for (int i = 0; i < size; i++) {
        for (int rail = 0; rail < rails && i / each != rank / each; rail++)
            meet(place(i / each, rail, FIRST_PORT + i % each), (uint32_t)rank, (uint32_t)i);
    }
    int status;
    if (waitpid(server, &status, 0) != server || status)
        give_up("connections from", "all others");
    printf("rank %d of %d on %s by %s: met %d over %d rails\n", rank, size, host, by->name, size - each, rails);
    return 0;
}
