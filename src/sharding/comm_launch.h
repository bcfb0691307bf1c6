/* SPDX-License-Identifier: Apache-2.0
 *
 * What the environment tells: who started this process, how many there are, where the modules lie.
 */
#ifndef OCTAVO_SHARDING_COMM_LAUNCH_H
#define OCTAVO_SHARDING_COMM_LAUNCH_H

typedef struct octavo_launch {
    int process;
    int processes;        /* 1: no launcher, or one that started one process */
    const char *launcher; /* for messages: "mpirun of Open MPI"; NULL without one */
    const char *first;    /* the MPI to try first, "openmpi" or "mpich"; NULL: cannot be told */
} octavo_launch;

octavo_launch octavo_launch_read(void);
/* OCTAVO_MPI_MODULE: a module, or a folder of modules; NULL when it is not set. */
const char *octavo_launch_module(void);
/* OCTAVO_STALL_SECONDS; 0 when it is not set, below 0 when it is no number above 0. */
double octavo_launch_stall_seconds(void);

#endif
