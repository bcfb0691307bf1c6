/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms) {
    struct timespec pause = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&pause, NULL);
}

static bool in_path(const char *program) {
    const char *path = getenv("PATH");
    char file[4096];
    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");
        (void)snprintf(file, sizeof(file), "%.*s/%s", (int)length, path, program);
        if (access(file, X_OK) == 0) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static void add_option(const char *name, const char *option) {
    const char *before = getenv(name);
    char options[512];
    (void)snprintf(options, sizeof(options), "%s%s%s", before != NULL ? before : "",
                   before != NULL ? ":" : "", option);
    (void)setenv(name, options, 1);
}

/* MPI libraries leave memory behind, in modules that are gone when leaks are looked for, and take
 * their own locks in either order. */
static void ignore_libraries(void) {
    add_option("ASAN_OPTIONS", "detect_leaks=0");
    add_option("TSAN_OPTIONS", "detect_deadlocks=0:ignore_noninstrumented_modules=1");
}

int job_find(job_mpi mpis[JOB_MPIS], const char *modules) {
    static const char *const names[JOB_MPIS] = {"openmpi", "mpich"};
    static const char *const launchers[JOB_MPIS] = {"mpirun.openmpi", "mpirun.mpich"};
    int found = 0;
    for (int i = 0; i < JOB_MPIS; i++) {
        char path[4096];
        (void)snprintf(path, sizeof(path), "%s/octavo_%s.so", modules, names[i]);
        const bool has_module = access(path, R_OK) == 0;
        const bool has_launcher = in_path(launchers[i]);
        mpis[i] = (job_mpi){names[i], launchers[i], has_module && has_launcher};
        found += mpis[i].is_here;
        if (!mpis[i].is_here) {
            print_message("skipped: %s: no %s\n", names[i],
                          has_launcher ? "module in this build" : launchers[i]);
        }
    }
    (void)setenv("OCTAVO_MPI_MODULE", modules, 1);
    ignore_libraries();
    return found;
}

void job_start(job *j, const job_mpi *mpi, int n, const char *program, const char *mode,
               const char *argument, const char *stall) {
    char count[16];
    int ends[2];
    memset(j, 0, sizeof(*j));
    j->n = n;
    (void)snprintf(j->prefix, sizeof(j->prefix), "/tmp/octavo-job-XXXXXX");
    assert_non_null(mkdtemp(j->prefix));
    strcat(j->prefix, "/pid");
    (void)snprintf(count, sizeof(count), "%d", n);
    const bool is_open = strcmp(mpi->name, "openmpi") == 0;
    const char *argv[] = {
        mpi->launcher, "-n", count, is_open ? "--oversubscribe" : NULL, "--allow-run-as-root", NULL,
        NULL,          NULL, NULL};
    int at = is_open ? 5 : 3;
    argv[at++] = program;
    argv[at++] = mode;
    argv[at++] = argument != NULL ? argument : j->prefix;
    argv[at] = NULL;
    assert_int_equal(pipe(ends), 0);
    j->begin_ns = octavo_clock_ns();
    j->launcher = fork();
    assert_true(j->launcher >= 0);
    if (j->launcher == 0) {
        (void)setpgid(0, 0);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        int null = open("/dev/null", O_RDONLY);
        (void)dup2(null, STDIN_FILENO);
        if (stall != NULL) (void)setenv("OCTAVO_STALL_SECONDS", stall, 1);
#if defined(__SANITIZE_THREAD__)
        (void)setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1); /* they patch code under its feet */
#endif
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    (void)close(ends[1]);
    j->out = ends[0];
}

pid_t job_pid(const job *j, int i) {
    char path[80];
    long pid = 0;
    (void)snprintf(path, sizeof(path), "%s.%d", j->prefix, i);
    for (int tries = 0; tries < 3000; tries++) {
        FILE *file = fopen(path, "r");
        if (file != NULL) {
            int read = fscanf(file, "%ld", &pid);
            (void)fclose(file);
            assert_int_equal(read, 1);
            return (pid_t)pid;
        }
        pause_ms(10);
    }
    fail_msg("process %d has not started: %s", i, j->text);
    return 0;
}

/* False at the end of the output, which all processes have closed by then. */
static bool read_more(job *j, int64_t deadline) {
    int64_t left = deadline - octavo_clock_ns();
    struct pollfd poller = {.fd = j->out, .events = POLLIN};
    if (left <= 0 || poll(&poller, 1, (int)(left / 1000000) + 1) <= 0) {
        (void)kill(-j->launcher, SIGKILL);
        for (int i = 0; i < j->n; i++) {
            char path[80];
            (void)snprintf(path, sizeof(path), "%s.%d", j->prefix, i);
            if (access(path, R_OK) == 0) (void)kill(job_pid(j, i), SIGKILL);
        }
        fail_msg("a job of %d processes takes too long; it said:\n%s", j->n, j->text);
    }
    char dropped[4096];
    const size_t room = sizeof(j->text) - 1 - j->text_bytes;
    ssize_t n = room > 0 ? read(j->out, j->text + j->text_bytes, room)
                         : read(j->out, dropped, sizeof(dropped));
    if (n <= 0) return false;
    if (room > 0) j->text_bytes += (size_t)n;
    j->text[j->text_bytes] = '\0';
    return true;
}

void job_wait_for(job *j, const char *part, double most_seconds) {
    const int64_t deadline = octavo_clock_ns() + (int64_t)(most_seconds * 1e9);
    while (strstr(j->text, part) == NULL) {
        if (!read_more(j, deadline)) fail_msg("not said: %s\n%s", part, j->text);
    }
}

static void remove_files(job *j) {
    char path[80];
    for (int i = 0; i < j->n; i++) {
        (void)snprintf(path, sizeof(path), "%s.%d", j->prefix, i);
        (void)unlink(path);
    }
    *strrchr(j->prefix, '/') = '\0';
    (void)rmdir(j->prefix);
}

void job_wait(job *j, double most_seconds) {
    const int64_t deadline = octavo_clock_ns() + (int64_t)(most_seconds * 1e9);
    int status = 0;
    while (read_more(j, deadline)) {
    }
    (void)close(j->out);
    assert_int_equal(waitpid(j->launcher, &status, 0), j->launcher);
    j->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    j->seconds = (double)(octavo_clock_ns() - j->begin_ns) * 1e-9;
    remove_files(j);
}

int job_count(const job *j, const char *part) {
    int count = 0;
    for (const char *at = strstr(j->text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}
