/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that lose a process: killed, stopped, gone astray. All end within seconds, nobody hangs, and
 * at most one line tells which process and why. Launchers see deaths too, and kill the others;
 * MPICH's is at times so quick that no process comes to say anything.
 */
#include "job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENDS "this ends the job"

static job_mpi mpis[JOB_MPIS];

static void pause_ms(int ms) {
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)nanosleep(&pause, NULL);
}

static void expect_end(job *j, double most_seconds, const char *part) {
    job_wait(j, most_seconds);
    assert_int_not_equal(j->status, 0);
    assert_int_equal(job_count(j, "WRONG"), 0);
    if (job_count(j, ENDS) != 1 || job_count(j, part) != 1) {
        fail_msg("not said once: %s\n%s", part, j->text);
    }
}

/* One of them is killed while they exchange, or while they compute. */
static void kill_one(const job_mpi *mpi, int n, int victim, const char *mode, int after_ms,
                     int *spoken) {
    job j;
    char part[32];
    job_start(&j, mpi, n, CHECK_COMM, mode, NULL, NULL);
    pid_t pid = 0;
    for (int i = 0; i < n; i++) {
        pid_t one = job_pid(&j, i);
        if (i == victim) pid = one;
    }
    pause_ms(after_ms);
    assert_int_equal(kill(pid, SIGKILL), 0);
    job_wait(&j, 5);
    assert_int_not_equal(j.status, 0);
    assert_int_equal(job_count(&j, "WRONG"), 0);
    (void)snprintf(part, sizeof(part), "rank %d (pid %ld ", victim, (long)pid);
    if (job_count(&j, ENDS) > 1 || job_count(&j, ENDS) != job_count(&j, part)) {
        fail_msg("killed %s\n%s", part, j.text);
    }
    *spoken += job_count(&j, ENDS);
}

static void test_killed(void **unused) {
    (void)unused;
    srand(20261201);
    for (int i = 0; i < JOB_MPIS; i++) {
        int spoken = 0;
        int killed = 0;
        if (!mpis[i].is_here) continue;
        for (int n = 2; n <= JOB_MOST; n++) {
            for (int victim = 0; victim < n; victim++) {
                const char *mode = (victim + n) % 3 == 0 ? "compute" : "exchange";
                kill_one(&mpis[i], n, victim, mode, rand() % 300, &spoken);
                killed++;
            }
        }
        print_message("%s: %d of %d kills were told of by a process\n", mpis[i].name, spoken,
                      killed);
        assert_true(spoken > 0);
    }
}

/* Stopped for a while: a warning, and nothing is lost. Stopped for longer: the end. */
static void test_stopped(void **unused) {
    (void)unused;
    for (int i = 0; i < JOB_MPIS; i++) {
        job j;
        if (!mpis[i].is_here) continue;
        job_start(&j, &mpis[i], 3, CHECK_COMM, "exchange", NULL, "5");
        pid_t pid = job_pid(&j, 1);
        (void)job_pid(&j, 0);
        (void)job_pid(&j, 2);
        pause_ms(200);
        assert_int_equal(kill(pid, SIGSTOP), 0);
        job_wait_for(&j, "has not been heard of for 2 s", 4);
        assert_int_equal(kill(pid, SIGCONT), 0);
        job_wait_for(&j, "is back", 4);
        pause_ms(300);
        assert_int_equal(kill(pid, SIGSTOP), 0);
        job_wait_for(&j, "has not been heard of for 5 s", 9);
        (void)kill(pid, SIGKILL); /* unless the launcher has done it */
        job_wait(&j, 5);
        assert_int_equal(job_count(&j, ENDS), 1);
        assert_int_equal(job_count(&j, "has not been heard of for 2 s"), 2);
        assert_int_equal(job_count(&j, "WRONG"), 0);
    }
}

static void test_astray(void **unused) {
    (void)unused;
    static const char *const ways[][2] = {
        {"sizes", "exchange 35"},
        {"marks", "they do different things in exchange 35"},
        {"order", "they do different things"},
        {"leave", "which has left"},
        {"each_other", "nothing has moved between them for 4 s in exchange 35"},
    };
    enum { WAYS = sizeof(ways) / sizeof(ways[0]) };
    for (int i = 0; i < JOB_MPIS; i++) {
        job jobs[WAYS]; /* at once: they mostly wait */
        if (!mpis[i].is_here) continue;
        for (int way = 0; way < WAYS; way++) {
            job_start(&jobs[way], &mpis[i], 3, CHECK_COMM, "diverge", ways[way][0], "4");
        }
        for (int way = 0; way < WAYS; way++) {
            job *j = &jobs[way];
            expect_end(j, 20, ways[way][1]);
            assert_true(job_count(j, "rank 0 (") >= 1 && job_count(j, "rank 1 (") >= 1);
        }
    }
}

static void test_abort(void **unused) {
    (void)unused;
    for (int i = 0; i < JOB_MPIS; i++) {
        job j;
        if (!mpis[i].is_here) continue;
        job_start(&j, &mpis[i], 3, CHECK_COMM, "abort", "", NULL);
        expect_end(&j, 15, "of 3: there is a reason; " ENDS);
        assert_int_equal(job_count(&j, "LOG 0 rank 1 ("), 1);
    }
}

/* Busy for longer than a moment: told once, by the first that waits, and all goes well. */
static void test_late(void **unused) {
    (void)unused;
    for (int i = 0; i < JOB_MPIS; i++) {
        job j;
        if (!mpis[i].is_here) continue;
        job_start(&j, &mpis[i], 3, CHECK_COMM, "late", "", NULL);
        job_wait(&j, 20);
        assert_int_equal(j.status, 0);
        assert_int_equal(job_count(&j, "LOG"), 1);
        assert_int_equal(job_count(&j, "which is busy"), 1);
        assert_int_equal(job_count(&j, "for rank 1 ("), 1);
    }
}

/* One never joins. */
static void test_absent(void **unused) {
    (void)unused;
    job jobs[JOB_MPIS];
    for (int i = 0; i < JOB_MPIS; i++) {
        if (mpis[i].is_here) job_start(&jobs[i], &mpis[i], 3, CHECK_COMM, "absent", "", "3");
    }
    for (int i = 0; i < JOB_MPIS; i++) {
        if (!mpis[i].is_here) continue;
        job *j = &jobs[i];
        job_wait(j, 18);
        assert_int_not_equal(j->status, 0);
        assert_int_equal(job_count(j, "rank 0 of 3 has waited 10 s for the others to start"), 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed), cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_astray), cmocka_unit_test(test_abort),
        cmocka_unit_test(test_late),   cmocka_unit_test(test_absent),
    };
    if (job_find(mpis, OCTAVO_MODULES) == 0) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
