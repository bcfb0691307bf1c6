/* SPDX-License-Identifier: Apache-2.0
 *
 * One process of a job, for test_comm.c to start under mpirun: check_comm MODE [ARGUMENT]. It exits
 * with 0 when all it saw was right, and says on standard error what was not.
 */
#include "base/memory.h"
#include "sharding/comm.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PROCESSES = 16, MOST_MESSAGES = 64 };

/* For sanitizers: MPI libraries leave memory behind, and what their threads do is not seen. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "fast_unwind_on_malloc=0";
}
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libmpi\nleak:libopen\nleak:libpmix\nleak:libuc\nleak:libfabric\nleak:libhwloc\n"
           "leak:mca_\nleak:libevent\n";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "detect_deadlocks=0 report_mutex_bugs=0 ignore_noninstrumented_modules=1";
}

static void write_line(void *cookie, octavo_log_level level, const char *line) {
    (void)cookie;
    (void)fprintf(stderr, "LOG %d %s\n", (int)level, line);
}

static void fail(const char *what) {
    (void)fprintf(stderr, "WRONG %s\n", what);
    exit(3);
}

static void check(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail(error->message);
}

static uint64_t next(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void pause_ms(int64_t ms) {
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&pause, NULL);
}

/* What message `serial` from one process to another holds at byte i. */
static unsigned char content(int from, int to, uint64_t serial, size_t i) {
    return (unsigned char)((size_t)from * 71 + (size_t)to * 13 + serial * 7 + i * 31 + (i >> 8));
}

typedef struct batch {
    octavo_message sends[MOST_MESSAGES];
    octavo_message receives[MOST_MESSAGES];
    uint64_t received[MOST_MESSAGES]; /* serials */
    int n_sends, n_receives;
    char *data;
} batch;

/* Everybody draws the same messages, and takes part in those that concern it. */
static void draw(batch *b, int self, int n, uint64_t *random) {
    const int count = (int)(next(random) % 24);
    size_t at = 0;
    b->n_sends = b->n_receives = 0;
    for (int i = 0; i < count; i++) {
        const int from = (int)(next(random) % (uint64_t)n);
        const int to = (int)(next(random) % (uint64_t)n);
        const uint64_t serial = next(random);
        const uint64_t scale = next(random) % 18;
        const size_t bytes = (size_t)(next(random) % (2u << scale)) * (serial % 5 != 0);
        if (from == to || (from != self && to != self)) continue;
        char *data = b->data + at;
        at += bytes;
        if (from == self) {
            for (size_t j = 0; j < bytes; j++) {
                data[j] = (char)content(from, to, serial, j);
            }
            b->sends[b->n_sends++] = (octavo_message){to, data, bytes};
        } else {
            memset(data, 0xee, bytes);
            b->received[b->n_receives] = serial;
            b->receives[b->n_receives++] = (octavo_message){from, data, bytes};
        }
    }
}

static void look(const batch *b, int self) {
    for (int i = 0; i < b->n_receives; i++) {
        const octavo_message *m = &b->receives[i];
        const unsigned char *data = m->data;
        for (size_t j = 0; j < m->bytes; j++) {
            if (data[j] != content(m->process, self, b->received[i], j)) fail("received bytes");
        }
    }
}

static void try_exchanges(octavo_comm *c, uint64_t seed, int rounds) {
    octavo_error error = {0};
    batch b = {.data = octavo_alloc_aligned((size_t)24 << 19)};
    const int self = octavo_comm_process(c);
    for (int round = 0; round < rounds; round++) {
        draw(&b, self, octavo_comm_processes(c), &seed);
        if (next(&seed) % 2 == 0) {
            check(octavo_comm_exchange(c, b.sends, b.n_sends, b.receives, b.n_receives, &error),
                  &error);
        } else {
            check(octavo_comm_begin(c, b.sends, b.n_sends, b.receives, b.n_receives, &error),
                  &error);
            octavo_comm_progress(c);
            check(octavo_comm_finish(c, &error), &error);
        }
        look(&b, self);
        if (next(&seed) % 16 == 0) octavo_comm_mark(c, next(&seed));
    }
    octavo_free_aligned(b.data);
}

static void try_broadcasts(octavo_comm *c) {
    octavo_error error = {0};
    unsigned char data[3000];
    for (int root = 0; root < octavo_comm_processes(c); root++) {
        for (size_t bytes = 0; bytes <= sizeof(data); bytes = bytes * 3 + 1) {
            for (size_t i = 0; i < bytes; i++) {
                data[i] = octavo_comm_process(c) == root ? content(root, 0, bytes, i) : 0;
            }
            check(octavo_comm_broadcast(c, root, data, bytes, &error), &error);
            for (size_t i = 0; i < bytes; i++) {
                if (data[i] != content(root, 0, bytes, i)) fail("broadcast bytes");
            }
        }
    }
    if (octavo_comm_broadcast(c, -1, data, 1, &error) != OCTAVO_ERROR_INVALID) fail("root");
}

/* Every set of processes that fail: the first of them is named to all. */
static void try_agreement(octavo_comm *c) {
    const int n = octavo_comm_processes(c);
    const int self = octavo_comm_process(c);
    for (int set = 0; set < 1 << n; set++) {
        octavo_error error = {.offset = -1};
        octavo_status mine = OCTAVO_OK;
        if (set >> self & 1) {
            mine = OCTAVO_ERROR_LIMIT;
            error.status = mine;
            error.offset = self + 5;
            (void)snprintf(error.message, sizeof(error.message), "reason %d", self);
        }
        octavo_status all = octavo_comm_agree(c, mine, &error);
        if (set == 0) {
            if (all != OCTAVO_OK || error.message[0] != '\0') fail("agreement of all");
            continue;
        }
        int first = 0;
        while (!(set >> first & 1))
            first++;
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "rank %d of %d: reason %d", first, n, first);
        if (n == 1) (void)snprintf(expected, sizeof(expected), "reason 0");
        if (all != OCTAVO_ERROR_LIMIT || error.status != all || error.offset != first + 5 ||
            strcmp(error.message, expected) != 0) {
            fail(error.message);
        }
    }
    if (octavo_comm_agree(c, self == n - 1 ? OCTAVO_ERROR_IO : OCTAVO_OK, NULL) !=
        OCTAVO_ERROR_IO) {
        fail("agreement without a message");
    }
}

static void try_refusals(octavo_comm *c) {
    octavo_error error = {0};
    char byte = 0;
    const octavo_message to_self = {octavo_comm_process(c), &byte, 1};
    const octavo_message to_nobody = {octavo_comm_processes(c), &byte, 1};
    if (octavo_comm_exchange(c, &to_self, 1, NULL, 0, &error) != OCTAVO_ERROR_INVALID ||
        octavo_comm_exchange(c, NULL, 0, &to_nobody, 1, &error) != OCTAVO_ERROR_INVALID) {
        fail("a message to oneself or nobody was taken");
    }
}

/* More than one piece. */
static void try_large(octavo_comm *c) {
    const size_t bytes = ((size_t)1 << 26) + 12345;
    octavo_error error = {0};
    const int self = octavo_comm_process(c);
    unsigned char *data = octavo_alloc_aligned(bytes);
    if (data == NULL) fail("no memory");
    memset(data, self == 0 ? 0x5a : 0, bytes);
    data[bytes - 1] = self == 0 ? 77 : 0;
    const octavo_message m = {1 - self, data, bytes};
    if (self < 2) {
        check(octavo_comm_exchange(c, &m, self == 0, &m, self == 1, &error), &error);
    }
    if (self < 2 && (data[0] != 0x5a || data[1 << 26] != 0x5a || data[bytes - 1] != 77)) {
        fail("bytes of a large message");
    }
    octavo_free_aligned(data);
}

/* Exchanges with pauses until something happens from outside. */
static void go_on(octavo_comm *c, uint64_t seed) {
    for (;;) {
        try_exchanges(c, next(&seed), 20);
        if (next(&seed) % 4 == 0) pause_ms((int64_t)(next(&seed) % 40));
    }
}

/* Process 1 does something else than the others. */
static void diverge(octavo_comm *c, const char *how) {
    octavo_error error = {0};
    char data[256] = {0};
    const int self = octavo_comm_process(c);
    const bool odd = self == 1;
    const octavo_message with = {self == 0 ? 1 : 0, data, odd ? 17 : 16};
    const octavo_message right = {self == 0 ? 1 : 0, data, 16};
    try_exchanges(c, 5, 30);
    if (strcmp(how, "sizes") == 0) {
        if (self < 2) check(octavo_comm_exchange(c, &with, odd, &with, !odd, &error), &error);
    } else if (strcmp(how, "marks") == 0) {
        octavo_comm_mark(c, odd ? 1 : 2);
        if (self < 2) check(octavo_comm_exchange(c, &right, odd, &right, !odd, &error), &error);
    } else if (strcmp(how, "order") == 0) {
        if (odd) check(octavo_comm_agree(c, OCTAVO_OK, &error), &error);
        check(octavo_comm_broadcast(c, 1, data, 8, &error), &error);
        if (!odd) check(octavo_comm_agree(c, OCTAVO_OK, &error), &error);
    } else if (strcmp(how, "leave") == 0) {
        if (self == 0) check(octavo_comm_exchange(c, NULL, 0, &right, 1, &error), &error);
    } else if (strcmp(how, "each_other") == 0) {
        if (self < 2) check(octavo_comm_exchange(c, NULL, 0, &right, 1, &error), &error);
    } else {
        fail("no such mode");
    }
    octavo_comm_close(&c);
}

static void print_link(octavo_comm *c) {
    octavo_link link = {0};
    octavo_error error = {0};
    check(octavo_comm_measure(c, &link, &error), &error);
    if (!(link.latency_s >= 0) || !(link.bytes_per_s > 0)) fail("link");
    if (octavo_comm_process(c) != 0) return;
    (void)printf("link %s: %.1f us + bytes / %.2f GB/s, crowd %d\n", octavo_comm_transport(c),
                 link.latency_s * 1e6, link.bytes_per_s * 1e-9, octavo_comm_crowd(c));
}

/* Their numbers, to be killed by: one file a process, PREFIX.NUMBER. */
static void leave_pid(const octavo_comm *c, const char *prefix) {
    char path[600];
    char temporary[610];
    (void)snprintf(path, sizeof(path), "%s.%d", prefix, octavo_comm_process(c));
    (void)snprintf(temporary, sizeof(temporary), "%s.new", path);
    FILE *file = fopen(temporary, "w");
    if (file == NULL) fail("pid file");
    (void)fprintf(file, "%ld\n", (long)getpid());
    (void)fclose(file);
    if (rename(temporary, path) != 0) fail("pid file");
}

int main(int argc, char **argv) {
    octavo_comm *c = NULL;
    octavo_error error = {0};
    const char *mode = argc > 1 ? argv[1] : "right";
    const char *argument = argc > 2 ? argv[2] : "1";
    int launched = 0;
    octavo_comm_options options = {.log = {OCTAVO_LOG_WARN, write_line, NULL}};
    if (strcmp(mode, "asked") == 0) options.kind = OCTAVO_COMM_MPI;
    if (strcmp(mode, "absent") == 0 && octavo_comm_launched(&launched) > 1 && launched == 1) {
        pause_ms(20000); /* the others wait for it in vain */
        return 0;
    }
    if (octavo_comm_open(&c, &options, &error) != OCTAVO_OK) {
        (void)fprintf(stderr, "REFUSED %s\n", error.message);
        return 2;
    }
    if (octavo_comm_launched(&launched) != octavo_comm_processes(c) ||
        launched != octavo_comm_process(c)) {
        fail("what the launcher tells");
    }
    if (strcmp(mode, "right") == 0) {
        try_exchanges(c, (uint64_t)atoi(argument), 400);
        try_broadcasts(c);
        try_agreement(c);
        try_refusals(c);
        print_link(c);
    } else if (strcmp(mode, "large") == 0) {
        try_large(c);
    } else if (strcmp(mode, "exchange") == 0) {
        leave_pid(c, argument);
        go_on(c, 3);
    } else if (strcmp(mode, "compute") == 0) {
        leave_pid(c, argument);
        pause_ms(100000);
    } else if (strcmp(mode, "abort") == 0) {
        if (octavo_comm_process(c) == 1) octavo_comm_abort(c, "there is a reason");
        go_on(c, 4);
    } else if (strcmp(mode, "vanish") == 0) {
        try_exchanges(c, 6, 20);
        if (octavo_comm_process(c) == 1) _exit(0);
        go_on(c, 7);
    } else if (strcmp(mode, "late") == 0) {
        if (octavo_comm_process(c) == 1) pause_ms(2500);
        check(octavo_comm_agree(c, OCTAVO_OK, &error), &error);
    } else if (strcmp(mode, "diverge") == 0) {
        diverge(c, argument);
        return 0;
    }
    octavo_comm_close(&c);
    return 0;
}
