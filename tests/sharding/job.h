/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts check_comm under one MPI's mpirun and keeps what its processes said.
 */
#ifndef OCTAVO_TESTS_SHARDING_JOB_H
#define OCTAVO_TESTS_SHARDING_JOB_H

#include "../unit.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct job_mpi {
    const char *name;     /* "openmpi" */
    const char *launcher; /* "mpirun.openmpi" */
    bool is_here;         /* the launcher, and the module in this build */
} job_mpi;

enum { JOB_MPIS = 2, JOB_MOST = 4 };

/* What there is here; says on standard output what is missing. */
int job_find(job_mpi mpis[JOB_MPIS], const char *modules);

typedef struct job {
    int n;
    pid_t launcher;
    int out; /* a pipe */
    int64_t begin_ns;
    char prefix[64]; /* of the pid files */
    int status;      /* exit status, or 1000 + the signal */
    double seconds;  /* until the launcher ended */
    size_t text_bytes;
    char text[32768]; /* both streams of all */
} job;

/* `stall` is OCTAVO_STALL_SECONDS for it, NULL for none. The mode's argument is `argument`, NULL
 * for the prefix of the pid files. */
void job_start(job *j, const job_mpi *mpi, int n, const char *program, const char *mode,
               const char *argument, const char *stall);
/* The pid of process i, once it has said it. */
pid_t job_pid(const job *j, int i);
/* Until everything has ended; a job that takes longer is killed, and the test fails. */
void job_wait(job *j, double most_seconds);
/* Reads what is said until `part` is in it. */
void job_wait_for(job *j, const char *part, double most_seconds);
int job_count(const job *j, const char *part);

#endif
