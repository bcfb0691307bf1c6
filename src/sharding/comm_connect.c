/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/comm_connect.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a caller says first. */
typedef struct hello {
    uint64_t token;
    int32_t process;
    int32_t zero;
} hello;

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

static uint64_t checksum(uint64_t sum, const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) {
        sum = (sum ^ p[i]) * 0x100000001b3u;
    }
    return sum;
}

/* The host's name and the number that its kernel drew when it started. */
static uint64_t machine_checksum(const char *host) {
    char boot[64] = "";
    uint64_t sum = checksum(0xcbf29ce484222325u, host, strlen(host));
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0) return sum;
    ssize_t n = read(file, boot, sizeof(boot));
    (void)close(file);
    return n > 0 ? checksum(sum, boot, (size_t)n) : sum;
}

static uint64_t cores_checksum(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    (void)sched_getaffinity(0, sizeof(set), &set);
    return checksum(0xcbf29ce484222325u, &set, sizeof(set));
}

/* This machine's addresses towards others; none of those that hold for a single link only. */
static void list_addresses(octavo_card *card) {
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0) return;
    for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        if (i->ifa_addr == NULL || (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP)) {
            continue;
        }
        if (card->n_addresses == OCTAVO_CARD_ADDRESSES) break;
        const int n = card->n_addresses;
        const any_address *a = (const any_address *)(const void *)i->ifa_addr;
        if (a->any.sa_family == AF_INET) {
            card->family[n] = 4;
            memcpy(card->address[n], &a->v4.sin_addr, sizeof(a->v4.sin_addr));
            card->n_addresses++;
        } else if (a->any.sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr)) {
            card->family[n] = 6;
            memcpy(card->address[n], &a->v6.sin6_addr, sizeof(a->v6.sin6_addr));
            card->n_addresses++;
        }
    }
    freeifaddrs(list);
}

/* One connection to each process, beside all other files. */
static void allow_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* A socket for both families where there is IPv6, or else for IPv4. */
static int listen_anywhere(uint16_t *port) {
    static const int families[] = {AF_INET6, AF_INET};
    for (size_t i = 0; i < OCTAVO_COUNT(families); i++) {
        int s = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s < 0) continue;
        any_address address;
        memset(&address, 0, sizeof(address));
        address.any.sa_family = (sa_family_t)families[i];
        socklen_t bytes = families[i] == AF_INET6 ? sizeof(address.v6) : sizeof(address.v4);
        const int off = 0;
        if (families[i] == AF_INET6) {
            (void)setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        }
        if (bind(s, &address.any, bytes) == 0 && listen(s, SOMAXCONN) == 0 &&
            getsockname(s, &address.any, &bytes) == 0) {
            *port = families[i] == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port;
            return s;
        }
        (void)close(s);
    }
    return -1;
}

octavo_status octavo_connect_listen(octavo_card *card, int *listener, octavo_error *error) {
    memset(card, 0, sizeof(*card));
    allow_files();
    if (gethostname(card->host, sizeof(card->host) - 1) != 0) card->host[0] = '\0';
    card->machine = machine_checksum(card->host);
    card->cores = cores_checksum();
    card->pid = getpid();
    if (getrandom(&card->token, sizeof(card->token), 0) != (ssize_t)sizeof(card->token)) {
        card->token = (uint64_t)octavo_clock_ns() ^ (uint64_t)card->pid << 40;
    }
    list_addresses(card);
    int s = listen_anywhere(&card->port);
    if (s < 0) {
        return octavo_fail(error, OCTAVO_ERROR_IO, "MPI (%s): no socket to listen at: %s",
                           card->host, strerror(errno));
    }
    *listener = s;
    return OCTAVO_OK;
}

/* Waits until `s` is ready for `events`. */
static bool wait_for(int s, short events, int64_t deadline) {
    for (;;) {
        int64_t left = deadline - octavo_clock_ns();
        if (left <= 0) return false;
        struct pollfd poller = {.fd = s, .events = events};
        int n = poll(&poller, 1, (int)(left / 1000000) + 1);
        if (n > 0) return true;
        if (n < 0 && errno != EINTR) return false;
    }
}

/* A connection to one address, or -1 with errno. */
static int call(int family, const uint8_t *address, uint16_t port, int64_t deadline) {
    any_address to;
    memset(&to, 0, sizeof(to));
    socklen_t bytes = sizeof(to.v4);
    if (family == 4) {
        to.v4.sin_family = AF_INET;
        to.v4.sin_port = port;
        memcpy(&to.v4.sin_addr, address, sizeof(to.v4.sin_addr));
    } else {
        to.v6.sin6_family = AF_INET6;
        to.v6.sin6_port = port;
        memcpy(&to.v6.sin6_addr, address, sizeof(to.v6.sin6_addr));
        bytes = sizeof(to.v6);
    }
    int s = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0) return -1;
    int code = connect(s, &to.any, bytes) == 0 ? 0 : errno;
    if (code == EINPROGRESS) {
        socklen_t size = sizeof(code);
        if (!wait_for(s, POLLOUT, deadline))
            code = ETIMEDOUT;
        else if (getsockopt(s, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
            code = errno;
    }
    if (code == 0) return s;
    (void)close(s);
    errno = code;
    return -1;
}

/* By loopback on one machine, or else by the first of its addresses that answers. */
static int call_process(const octavo_card *to, const octavo_card *from, int64_t deadline) {
    static const uint8_t loopback[16] = {127, 0, 0, 1};
    const int64_t each = (int64_t)3e9;
    errno = EHOSTUNREACH;
    if (to->machine == from->machine) {
        int s = call(4, loopback, to->port, deadline);
        if (s >= 0) return s;
    }
    for (int i = 0; i < to->n_addresses && i < OCTAVO_CARD_ADDRESSES; i++) {
        int64_t now = octavo_clock_ns();
        int s = call(to->family[i], to->address[i], to->port,
                     now + each < deadline ? now + each : deadline);
        if (s >= 0) return s;
    }
    return -1;
}

/* Lets one caller in. Strangers are turned away, and cost at most a second. */
static void answer(int listener, const octavo_card *cards, int process, int processes,
                   int *sockets) {
    int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (s < 0) return;
    hello h = {0};
    if (wait_for(s, POLLIN, octavo_clock_ns() + (int64_t)1e9) &&
        recv(s, &h, sizeof(h), 0) == (ssize_t)sizeof(h) && h.token == cards[0].token &&
        h.process > process && h.process < processes && sockets[h.process] < 0) {
        sockets[h.process] = s;
        return;
    }
    (void)close(s);
}

octavo_status octavo_connect_all(const octavo_card *cards, int process, int processes, int listener,
                                 double seconds, int *sockets, octavo_error *error) {
    const int64_t deadline = octavo_clock_ns() + (int64_t)(seconds * 1e9);
    const int on = 1;
    for (int i = 0; i < processes; i++) {
        sockets[i] = -1;
    }
    for (int i = 0; i < process; i++) {
        const hello h = {.token = cards[0].token, .process = process};
        sockets[i] = call_process(&cards[i], &cards[process], deadline);
        if (sockets[i] < 0 || send(sockets[i], &h, sizeof(h), MSG_NOSIGNAL) != (ssize_t)sizeof(h)) {
            return octavo_fail(error, OCTAVO_ERROR_IO,
                               "MPI (process %d on %s): cannot reach process %d on %s by TCP: %s; "
                               "machines of a job must be let through to one another",
                               process, cards[process].host, i, cards[i].host, strerror(errno));
        }
    }
    for (int i = process + 1; i < processes; i++) {
        while (sockets[i] < 0) {
            if (!wait_for(listener, POLLIN, deadline)) {
                return octavo_fail(
                    error, OCTAVO_ERROR_IO,
                    "MPI (process %d on %s): process %d on %s has not called by TCP "
                    "in %.0f s; machines of a job must be let through to one another",
                    process, cards[process].host, i, cards[i].host, seconds);
            }
            answer(listener, cards, process, processes, sockets);
        }
    }
    for (int i = 0; i < processes; i++) {
        if (sockets[i] < 0) continue;
        (void)setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    return OCTAVO_OK;
}
