/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of a job and how they talk: bytes from one to another, nothing is ever added here.
 * The transport is a module for each MPI, loaded when a launcher started the job; without a
 * launcher there is one process and all of this costs nothing.
 *
 * A process that dies, stops, hangs or does something else than the others never leaves them
 * waiting or with wrong data: each watches each over a connection of its own (comm_watch.h), and
 * when one is lost the job ends: one of them says which and why through `log`, or on standard error
 * without one, and all leave with exit status 1. Failures that a process survives go through
 * octavo_comm_agree.
 *
 * One thread of a process calls these functions.
 */
#ifndef OCTAVO_SHARDING_COMM_H
#define OCTAVO_SHARDING_COMM_H

#include "sharding/link.h"

#include "octavo/log.h"
#include "octavo/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct octavo_comm octavo_comm;

typedef enum octavo_comm_kind {
    OCTAVO_COMM_AUTO, /* MPI when a launcher started more than one process */
    OCTAVO_COMM_NONE, /* this process alone, whatever the environment says */
    OCTAVO_COMM_MPI,  /* a launcher must be there */
} octavo_comm_kind;

/* All zero is the default. */
typedef struct octavo_comm_options {
    octavo_comm_kind kind;
    int max_messages;     /* of one exchange, to make room for at once; more come when needed */
    double stall_seconds; /* a process silent for so long ends the job; 0: OCTAVO_STALL_SECONDS,
                             and without that 60 */
    octavo_log log;       /* warnings about who is waited for, and the last word */
} octavo_comm_options;

/* Data of one process for another. Messages between the same two arrive in the order of the arrays.
 */
typedef struct octavo_message {
    int process; /* the other one, never oneself */
    void *data;  /* read when sending, written when receiving */
    size_t bytes;
} octavo_message;

/* How many processes the launcher's environment tells of, 1 without one, and which of them this is.
 * Needs no open comm: for those that must know early who may speak. */
int octavo_comm_launched(int *process);

/* Called by all processes of the job. Options may be NULL. Where several processes of a machine
 * were left on the same cores by the launcher, each is bound to its share of them, if there are
 * enough. Statuses: OCTAVO_ERROR_INVALID (MPI asked for without a launcher),
 * OCTAVO_ERROR_UNSUPPORTED (no module for this launcher's MPI), OCTAVO_ERROR_IO (no way to another
 * process), OCTAVO_ERROR_MEMORY.
 */
OCTAVO_MUST_CHECK octavo_status octavo_comm_open(octavo_comm **comm,
                                                 const octavo_comm_options *options,
                                                 octavo_error *error);
/* Waits until all processes have called it. Takes NULL handles; *comm is NULL afterwards. */
void octavo_comm_close(octavo_comm **comm);

int octavo_comm_process(const octavo_comm *comm);
int octavo_comm_processes(const octavo_comm *comm);
/* Processes, this one included, that run on the very cores of this one: more than 1 only where a
 * machine has fewer cores than processes. */
int octavo_comm_crowd(const octavo_comm *comm);
/* The library that moves the bytes, such as "Open MPI v4.1.4"; "none" for one process. */
const char *octavo_comm_transport(const octavo_comm *comm);

/* All processes call these in the same order, with sizes that agree on both sides; empty messages
 * are skipped. Whoever does otherwise is found out and ends the job. Nothing is allocated unless
 * there are more messages than ever before. After a failure that is returned (OCTAVO_ERROR_INVALID:
 * a message for nobody; OCTAVO_ERROR_MEMORY: no room for so many) the others wait: the caller tells
 * them by octavo_comm_abort.
 *
 * begin starts to move the data, which must be left alone until finish has returned; between them
 * there is no other call. exchange is both. */
OCTAVO_MUST_CHECK octavo_status octavo_comm_begin(octavo_comm *comm, const octavo_message *sends,
                                                  int n_sends, const octavo_message *receives,
                                                  int n_receives, octavo_error *error);
/* Lets the transport work a little, without waiting. */
void octavo_comm_progress(octavo_comm *comm);
OCTAVO_MUST_CHECK octavo_status octavo_comm_finish(octavo_comm *comm, octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_comm_exchange(octavo_comm *comm, const octavo_message *sends,
                                                     int n_sends, const octavo_message *receives,
                                                     int n_receives, octavo_error *error);
/* From process `root` to all others. */
OCTAVO_MUST_CHECK octavo_status octavo_comm_broadcast(octavo_comm *comm, int root, void *data,
                                                      size_t bytes, octavo_error *error);
/* All get the failure of the first process that has one, with its message and who it was, or
 * OCTAVO_OK. `error` is the caller's own on entry where `mine` is a failure, the common one on
 * return; it may be NULL. */
OCTAVO_MUST_CHECK octavo_status octavo_comm_agree(octavo_comm *comm, octavo_status mine,
                                                  octavo_error *error);
/* Mixes a number of the caller's (the op it is at, a plan's checksum) into all that follows: where
 * processes disagree about it their messages are refused. */
void octavo_comm_mark(octavo_comm *comm, uint64_t mark);

/* Ends the whole job with one line that names this process and says why. Does not return. */
void octavo_comm_abort(octavo_comm *comm, const char *message);

/* Measures an exchange of all with all; bytes are what one process sends in it. Everybody gets the
 * same numbers. With one process: latency 0, an infinite rate. Takes a part of a second. */
OCTAVO_MUST_CHECK octavo_status octavo_comm_measure(octavo_comm *comm, octavo_link *link,
                                                    octavo_error *error);

#endif
