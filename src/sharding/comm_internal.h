/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of comm share.
 */
#ifndef OCTAVO_SHARDING_COMM_INTERNAL_H
#define OCTAVO_SHARDING_COMM_INTERNAL_H

#include "sharding/comm.h"
#include "sharding/comm_load.h"
#include "sharding/comm_watch.h"

/* One message, or a piece of one that is larger than OCTAVO_MPI_MOST_BYTES. */
typedef struct octavo_piece {
    int process;
    int bytes;
    int tag;
    bool is_receive;
    bool is_done;
} octavo_piece;

/* The main thread's, all of it. */
struct octavo_comm {
    octavo_transport transport;
    octavo_watch *watch; /* NULL while the job is put together, and with one process */
    octavo_log log;
    double stall_seconds;
    int process;
    int processes;
    int crowd;
    uint64_t op;   /* number of the last exchange that was begun */
    uint64_t mark; /* checksum of all marks */
    int depth;     /* of exchanges within one op, such as a broadcast */

    /* The exchange that goes on. */
    int n_pieces;
    int n_left;
    int room;              /* of these four */
    void *slots;           /* the module's requests */
    octavo_mpi_done *done; /* [room] */
    octavo_piece *pieces;  /* [room] */
    uint32_t *order;       /* [2 * processes]: messages so far to, then from each */
};

/* Exchanges until the matching close are one op to the others, who wait for it as a whole. */
void octavo_comm_op_open(octavo_comm *comm);
void octavo_comm_op_close(octavo_comm *comm);

/* Room for `pieces` at once; the old contents are lost. */
OCTAVO_MUST_CHECK octavo_status octavo_comm_make_room(octavo_comm *comm, int pieces,
                                                      octavo_error *error);

/* Waits until the pieces of the exchange are done (comm_wait.c). A process that cannot go on ends
 * the job, but before there is a watch the failure is returned. */
OCTAVO_MUST_CHECK octavo_status octavo_comm_wait(octavo_comm *comm, octavo_error *error);
/* One look at the transport; *moved tells whether any piece became done. */
OCTAVO_MUST_CHECK octavo_status octavo_comm_test(octavo_comm *comm, bool *moved,
                                                 octavo_error *error);
/* Ends the job because of what went wrong between this process and `other` (-1: nobody else), or
 * returns that before there is a watch. */
OCTAVO_MUST_CHECK octavo_status octavo_comm_give_up(octavo_comm *comm, int other,
                                                    const char *message, octavo_error *error);

#endif
