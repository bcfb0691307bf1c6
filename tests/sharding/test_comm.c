/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes under each MPI that is here: what they send arrives, what they agree on is common.
 * Without MPI: one process alone, and what is refused.
 */
#include "job.h"
#include "sharding/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static job_mpi mpis[JOB_MPIS];

static void check_right(const char *mode, const char *argument, int n) {
    if (!mpis[0].is_here && !mpis[1].is_here) skip();
    for (int i = 0; i < JOB_MPIS; i++) {
        job j;
        if (!mpis[i].is_here) continue;
        job_start(&j, &mpis[i], n, CHECK_COMM, mode, argument, NULL);
        job_wait(&j, 120);
        if (j.status != 0) fail_msg("%s, %d processes: %s", mpis[i].name, n, j.text);
        assert_int_equal(job_count(&j, "WRONG"), 0);
        assert_int_equal(job_count(&j, "LOG 0"), 0);
        const char *link = strstr(j.text, "link ");
        if (link != NULL) print_message("%d processes, %s", n, link);
    }
}

static void test_exchanges(void **unused) {
    (void)unused;
    for (int n = 1; n <= JOB_MOST; n++) {
        char seed[16];
        (void)snprintf(seed, sizeof(seed), "%d", 1000 + n);
        check_right("right", seed, n);
    }
}

static void test_large_message(void **unused) {
    (void)unused;
    check_right("large", "", 2);
}

/* Each launcher with the other's module: it finds a world of one, and must not run alone. */
static void test_wrong_module(void **unused) {
    (void)unused;
    for (int i = 0; i < JOB_MPIS; i++) {
        job j;
        char path[4096];
        if (!mpis[0].is_here || !mpis[1].is_here) skip();
        (void)snprintf(path, sizeof(path), OCTAVO_MODULES "/octavo_%s.so", mpis[1 - i].name);
        assert_int_equal(setenv("OCTAVO_MPI_MODULE", path, 1), 0);
        job_start(&j, &mpis[i], 2, CHECK_COMM, "right", "1", NULL);
        job_wait(&j, 60);
        assert_int_not_equal(j.status, 0);
        assert_true(job_count(&j, "REFUSED MPI (2 processes, started by mpirun of ") >= 1);
        assert_true(job_count(&j, "world of 1") >= 1);
        assert_int_equal(setenv("OCTAVO_MPI_MODULE", OCTAVO_MODULES, 1), 0);
    }
}

static void clear_launchers(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "PMI_SIZE",
                                        "PMI_RANK",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_PROCID",
                                        "PMIX_RANK",
                                        "PMI_FD",
                                        "OCTAVO_MPI_MODULE",
                                        "OCTAVO_STALL_SECONDS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(unsetenv(names[i]), 0);
    }
}

static void refuse(octavo_status expected, octavo_comm_kind kind, const char *part) {
    octavo_comm *c = NULL;
    octavo_error error = {0};
    const octavo_comm_options options = {.kind = kind};
    octavo_status status = octavo_comm_open(&c, &options, &error);
    if (status != expected || c != NULL || strstr(error.message, part) == NULL) {
        fail_msg("%d, not %d: %s", (int)status, (int)expected, error.message);
    }
}

static void test_refusals(void **unused) {
    (void)unused;
    clear_launchers();
    refuse(OCTAVO_ERROR_INVALID, OCTAVO_COMM_MPI, "not started by mpirun or srun");
    (void)setenv("OCTAVO_STALL_SECONDS", "soon", 1);
    refuse(OCTAVO_ERROR_INVALID, OCTAVO_COMM_AUTO, "OCTAVO_STALL_SECONDS");
    clear_launchers();
    (void)setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    (void)setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    (void)setenv("OCTAVO_MPI_MODULE", "/no/such/module.so", 1);
    refuse(OCTAVO_ERROR_UNSUPPORTED, OCTAVO_COMM_AUTO, "/no/such/module.so");
    (void)setenv("OCTAVO_MPI_MODULE", "/", 1);
    refuse(OCTAVO_ERROR_UNSUPPORTED, OCTAVO_COMM_MPI,
           "octavo_openmpi.so: not found; octavo_mpich.so: not found");
    clear_launchers();
    (void)setenv("SLURM_STEP_ID", "0", 1);
    (void)setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    refuse(OCTAVO_ERROR_UNSUPPORTED, OCTAVO_COMM_AUTO, "--mpi=pmix");
    clear_launchers();
}

/* Whatever the environment says, or with a launcher of one process. */
static void test_alone(void **unused) {
    (void)unused;
    octavo_error error = {0};
    for (int i = 0; i < 3; i++) {
        octavo_comm *c = NULL;
        octavo_link link = {0};
        int process = -1;
        octavo_comm_options options = {.kind = i == 1 ? OCTAVO_COMM_NONE : OCTAVO_COMM_AUTO};
        clear_launchers();
        if (i > 0) (void)setenv("PMI_RANK", "0", 1);
        if (i > 0) (void)setenv("PMI_SIZE", i == 1 ? "3" : "1", 1);
        if (i == 1) assert_int_equal(octavo_comm_launched(&process), 3);
        assert_int_equal(octavo_comm_open(&c, &options, &error), OCTAVO_OK);
        assert_int_equal(octavo_comm_processes(c), 1);
        assert_int_equal(octavo_comm_process(c), 0);
        assert_int_equal(octavo_comm_crowd(c), 1);
        assert_string_equal(octavo_comm_transport(c), "none");
        assert_int_equal(octavo_comm_exchange(c, NULL, 0, NULL, 0, &error), OCTAVO_OK);
        assert_int_equal(octavo_comm_broadcast(c, 0, NULL, 0, &error), OCTAVO_OK);
        assert_int_equal(octavo_comm_broadcast(c, 1, NULL, 0, &error), OCTAVO_ERROR_INVALID);
        assert_int_equal(octavo_comm_agree(c, OCTAVO_ERROR_LIMIT, &error), OCTAVO_ERROR_LIMIT);
        assert_int_equal(octavo_comm_agree(c, OCTAVO_OK, NULL), OCTAVO_OK);
        assert_int_equal(octavo_comm_measure(c, &link, &error), OCTAVO_OK);
        assert_true(link.latency_s == 0 && link.bytes_per_s > 1e30);
        octavo_comm_close(&c);
        assert_null(c);
    }
    clear_launchers();
    octavo_comm_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanges),    cmocka_unit_test(test_large_message),
        cmocka_unit_test(test_wrong_module), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_alone),
    };
    (void)job_find(mpis, OCTAVO_MODULES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
