/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/comm_guard.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Constant while the thread runs. */
struct octavo_guard {
    pthread_t thread;
    int wake; /* an eventfd: written to when the guard may go */
    int launched;
    int processes;
    double seconds;
    octavo_log log;
};

void octavo_last_word(const octavo_log *log, const char *line) {
    char text[800];
    if (log->write != NULL) {
        octavo_log_write(log, OCTAVO_LOG_ERROR, "%s", line);
        return;
    }
    int length = snprintf(text, sizeof(text), "%.780s\n", line);
    ssize_t written = write(STDERR_FILENO, text, (size_t)length);
    (void)written;
}

static void *guard_main(void *arg) {
    const octavo_guard *g = arg;
    struct pollfd poller = {.fd = g->wake, .events = POLLIN};
    const int ms = g->seconds * 1e3 < INT_MAX ? (int)(g->seconds * 1e3) : -1;
    int n = 0;
    do {
        n = poll(&poller, 1, ms);
    } while (n < 0 && errno == EINTR);
    if (n != 0) return NULL;
    /* The first speaks, or the second where the first is the one that is missing. A launcher that
     * sees one end kills the rest: so who does not speak stays for a while. */
    const struct timespec pause = {.tv_nsec = g->launched == 0   ? 0
                                              : g->launched == 1 ? 200000000
                                                                 : 500000000};
    (void)nanosleep(&pause, NULL);
    if (g->launched < 2) {
        char line[200];
        (void)snprintf(
            line, sizeof(line),
            "rank %d of %d has waited %.0f s for the others to start: one was killed, or "
            "cannot be reached (OCTAVO_STALL_SECONDS)",
            g->launched, g->processes, g->seconds);
        octavo_last_word(&g->log, line);
    }
    _exit(1);
}

octavo_status octavo_guard_start(octavo_guard **guard, int launched, int processes, double seconds,
                                 const octavo_log *log, octavo_error *error) {
    octavo_guard *g = octavo_alloc_zero(1, sizeof(*g));
    if (g == NULL) return octavo_fail_memory(error, "MPI", sizeof(*g));
    g->launched = launched;
    g->processes = processes;
    g->seconds = seconds;
    g->log = *log;
    g->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (g->wake < 0) {
        octavo_free(g);
        return octavo_fail(error, OCTAVO_ERROR_IO, "MPI: no eventfd: %s", strerror(errno));
    }
    sigset_t all, previous;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &previous);
    int code = pthread_create(&g->thread, NULL, guard_main, g);
    (void)pthread_sigmask(SIG_SETMASK, &previous, NULL);
    if (code != 0) {
        (void)close(g->wake);
        octavo_free(g);
        return octavo_fail(error, OCTAVO_ERROR_MEMORY, "MPI: no thread: %s", strerror(code));
    }
    *guard = g;
    return OCTAVO_OK;
}

void octavo_guard_stop(octavo_guard **guard) {
    if (guard == NULL || *guard == NULL) return;
    octavo_guard *g = *guard;
    const uint64_t one = 1;
    ssize_t written = write(g->wake, &one, sizeof(one));
    (void)written;
    (void)pthread_join(g->thread, NULL);
    (void)close(g->wake);
    octavo_free(g);
    *guard = NULL;
}
