/* SPDX-License-Identifier: Apache-2.0
 *
 * Launchers tell a process its place by environment variables, each its own. mpirun and mpiexec of
 * Open MPI set OMPI_COMM_WORLD_*; Hydra (MPICH and its kin) and `srun --mpi=pmi2` set PMI_*; `srun
 * --mpi=pmix` sets PMIX_RANK beside Slurm's own SLURM_*. The last alone, of more than one task,
 * means `srun --mpi=none`: nothing that an MPI could use.
 */
#include "sharding/comm_launch.h"

#include "sharding/comm.h"

#include <math.h>
#include <stdlib.h>

/* A whole number of at least `least`, or `otherwise`. */
static int read_number(const char *name, int least, int otherwise) {
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') return otherwise;
    char *end = NULL;
    long value = strtol(text, &end, 10);
    return *end != '\0' || value < least || value > 1 << 20 ? otherwise : (int)value;
}

octavo_launch octavo_launch_read(void) {
    octavo_launch launch = {.processes = 1};
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL) {
        launch.launcher = "mpirun of Open MPI";
        launch.first = "openmpi";
        launch.processes = read_number("OMPI_COMM_WORLD_SIZE", 1, 1);
        launch.process = read_number("OMPI_COMM_WORLD_RANK", 0, 0);
    } else if (getenv("PMI_SIZE") != NULL && getenv("PMI_RANK") != NULL) {
        launch.launcher = getenv("SLURM_STEP_ID") != NULL ? "srun with PMI" : "mpirun of MPICH";
        launch.first = "mpich";
        launch.processes = read_number("PMI_SIZE", 1, 1);
        launch.process = read_number("PMI_RANK", 0, 0);
    } else if (getenv("SLURM_STEP_ID") != NULL) {
        launch.launcher = "srun";
        launch.processes = read_number("SLURM_STEP_NUM_TASKS", 1, 1);
        launch.process = read_number("SLURM_PROCID", 0, 0);
        if (getenv("PMIX_RANK") != NULL)
            launch.first = "openmpi";
        else if (getenv("PMI_FD") != NULL)
            launch.first = "mpich";
    }
    if (launch.process >= launch.processes) launch.process = 0;
    return launch;
}

const char *octavo_launch_module(void) {
    const char *path = getenv("OCTAVO_MPI_MODULE");
    return path == NULL || *path == '\0' ? NULL : path;
}

double octavo_launch_stall_seconds(void) {
    const char *text = getenv("OCTAVO_STALL_SECONDS");
    if (text == NULL || *text == '\0') return 0;
    char *end = NULL;
    double value = strtod(text, &end);
    return *end == '\0' && isfinite(value) && value > 0 ? value : -1;
}

int octavo_comm_launched(int *process) {
    const octavo_launch launch = octavo_launch_read();
    if (process != NULL) *process = launch.process;
    return launch.processes;
}
