/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and loads the transport module that fits the launcher.
 */
#ifndef OCTAVO_SHARDING_COMM_LOAD_H
#define OCTAVO_SHARDING_COMM_LOAD_H

#include "sharding/comm_launch.h"
#include "sharding/comm_module.h"

#include "octavo/status.h"

typedef struct octavo_transport {
    void *library; /* from dlopen; never closed: an MPI does not survive that */
    const octavo_mpi_module *module;
    void *state; /* [module->state_bytes] */
    int process;
    int processes;
    int most_tag;
    char name[64];
} octavo_transport;

/* Loads and starts modules until one finds the world of which `launch` tells. A folder is searched
 * for octavo_openmpi.so and octavo_mpich.so: that in OCTAVO_MPI_MODULE, which may also be a module
 * itself, or else those where an installation or a build has them. */
OCTAVO_MUST_CHECK octavo_status octavo_transport_start(octavo_transport *transport,
                                                       const octavo_launch *launch,
                                                       octavo_error *error);
/* Leaves the world and frees; all zero: nothing. */
void octavo_transport_stop(octavo_transport *transport);

#endif
