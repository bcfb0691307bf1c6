/* SPDX-License-Identifier: Apache-2.0
 *
 * What a transport module (src/sharding/mpi) offers: the few MPI calls that the library needs, as a
 * table. A module is compiled by the MPI's own compiler and shares nothing else with the library,
 * not even an allocator: its caller keeps its state and its slots. One request lies in each slot.
 */
#ifndef OCTAVO_SHARDING_COMM_MODULE_H
#define OCTAVO_SHARDING_COMM_MODULE_H

#include <stddef.h>
#include <stdint.h>

/* Raised whenever the table changes. */
#define OCTAVO_MPI_MODULE_VERSION 1
/* The one symbol of a module, an octavo_mpi_module. */
#define OCTAVO_MPI_MODULE_SYMBOL  "octavo_mpi_module_table"

#define OCTAVO_MPI_SLOT_SLACK 64

/* The most bytes of one message. */
#define OCTAVO_MPI_MOST_BYTES (1 << 26)

typedef struct octavo_mpi_done {
    int slot;
    int code;      /* 0, or MPI's error for this request */
    int tag;       /* of what was received */
    int64_t bytes; /* received; 0 of a send */
} octavo_mpi_done;

/* Functions return 0 or an MPI error, which `describe` explains. */
typedef struct octavo_mpi_module {
    int version;
    size_t state_bytes;
    size_t slot_bytes; /* n slots take n * slot_bytes + OCTAVO_MPI_SLOT_SLACK, aligned to 16 */

    /* Joins the job's world. `name` gets the MPI's name and version. */
    int (*start)(void *state, int *process, int *processes, int *most_tag, char *name,
                 size_t name_bytes);
    /* Leaves it, together with all others. */
    int (*stop)(void *state);
    /* Empties n slots, which are at `slots`. */
    void (*clear)(void *slots, int n);
    int (*send)(void *state, void *slots, int slot, const void *data, int bytes, int process,
                int tag);
    int (*receive)(void *state, void *slots, int slot, void *data, int bytes, int process);
    /* Those of the first n slots that are done since the last call, in done[0 .. *n_done). With
     * n = 0 it only helps earlier messages on their way. */
    int (*test)(void *state, void *slots, int n, octavo_mpi_done *done, int *n_done);
    void (*describe)(int code, char *text, size_t bytes);
} octavo_mpi_module;

#endif
