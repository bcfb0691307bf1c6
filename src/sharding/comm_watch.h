/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch of a job: a thread in each process that tells the others twice a second that it lives
 * and what its process is at, and that ends the process when another is lost. Of all processes that
 * notice, one speaks: the one that failed if it still can, or else the first that lives. Whatever
 * the main thread does - computes, reads, waits - the watch goes on beside it.
 */
#ifndef OCTAVO_SHARDING_COMM_WATCH_H
#define OCTAVO_SHARDING_COMM_WATCH_H

#include "sharding/comm_connect.h"

#include "octavo/log.h"
#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct octavo_watch octavo_watch;

/* Silence, or waiting in vain, that is worth a warning. */
#define OCTAVO_WATCH_WARN_NS ((int64_t)2000000000)

/* What one process knows of another. */
typedef struct octavo_watch_peer {
    uint64_t op;     /* number of the exchange that it is in or has last left */
    int waiting_for; /* the process that it waits for; -1: for none */
    bool is_silent;  /* not heard of for longer than OCTAVO_WATCH_WARN_NS */
    bool has_left;   /* by octavo_comm_close */
} octavo_watch_peer;

/* `cards` [processes] and `sockets` [processes] are copied; the sockets become the watch's own, on
 * success. */
OCTAVO_MUST_CHECK octavo_status octavo_watch_start(octavo_watch **watch, const octavo_card *cards,
                                                   const int *sockets, int process, int processes,
                                                   double stall_seconds, const octavo_log *log,
                                                   octavo_error *error);
/* Stops the thread and closes the connections. Takes NULL handles. */
void octavo_watch_stop(octavo_watch **watch);

/* For the main thread: where it is. */
void octavo_watch_tell(octavo_watch *watch, uint64_t op, int waiting_for);
octavo_watch_peer octavo_watch_look(const octavo_watch *watch, int process);

/* Tells the others that this process leaves; then asks whether all others do. */
void octavo_watch_leave(octavo_watch *watch);
bool octavo_watch_all_left(const octavo_watch *watch);
/* Tells the others that this process has left in good order: its connections may close now. */
void octavo_watch_finished(octavo_watch *watch);

/* Ends the job: `message` is what the one line says after the names of processes `first` and
 * `second` (-1: only one). Does not return. */
void octavo_watch_fail(octavo_watch *watch, int first, int second, const char *message);

/* "rank 2 (pid 71 on host)", terminated and cut to `bytes`. */
void octavo_watch_name(const octavo_watch *watch, int process, char *text, size_t bytes);

#endif
