/* SPDX-License-Identifier: Apache-2.0
 *
 * The command under mpirun: the same results as alone, one message whatever fails, an end when a
 * process dies. Skipped for each MPI that is not there.
 */
#include "../sharding/job.h"
#include "process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const JOB_ENV_ROOT = "OMPI_ALLOW_RUN_AS_ROOT";

/* The command in n processes. */
static process_result run_job(const job_mpi *mpi, const char *n, const char *const *arguments) {
    const char *argv[32];
    int at = 0;
    argv[at++] = "/usr/bin/env"; /* which looks for it */
    argv[at++] = mpi->launcher;
    if (strcmp(mpi->name, "openmpi") == 0) {
        argv[at++] = "--oversubscribe";
        argv[at++] = "--allow-run-as-root";
    }
    argv[at++] = "-n";
    argv[at++] = n;
    argv[at++] = OCTAVO_COMMAND;
    for (int i = 0; arguments[i]; i++)
        argv[at++] = arguments[i];
    argv[at] = NULL;
    return process_run(argv, "", 0);
}

#define JOB(mpi, n, ...) run_job(mpi, n, (const char *const[]){__VA_ARGS__, NULL})

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static bytes read_file(const char *path) {
    bytes file = {0};
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    file.data = malloc(1 << 20);
    assert_non_null(file.data);
    file.size = fread(file.data, 1, 1 << 20, stream);
    fclose(stream);
    return file;
}

static void write_ids(const char *path) {
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    fputs("[1, 5, 9, 200, 17, 3, 3, 8, 44, 100, 7]", stream);
    fclose(stream);
}

static double furthest(const bytes *a, const bytes *b) {
    double most = 0.0;
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, 128); /* the head of the format */
    for (size_t i = 128; i + 4 <= a->size; i += 4) {
        float x, y;
        memcpy(&x, a->data + i, 4);
        memcpy(&y, b->data + i, 4);
        const double off = x > y ? (double)(x - y) : (double)(y - x);
        if (!(off <= most)) most = off;
    }
    return most;
}

static void test_logits(void **state) {
    static const struct {
        const char *processes, *mesh;
    } cases[] = {
        {"2", "model=-1"}, {"4", "data=2,model=2"}, {"3", "seq=3"}, {"2", "model=2,seq=2"}};
    const char *model = TEST_DATA "/models/llama3-f16.gguf";
    job_mpi mpis[JOB_MPIS];
    char ids[64], alone[64], split[64];
    (void)state;
    snprintf(ids, sizeof ids, "/tmp/octavo-job-%d.json", (int)getpid());
    snprintf(alone, sizeof alone, "/tmp/octavo-job-%d.1.npy", (int)getpid());
    snprintf(split, sizeof split, "/tmp/octavo-job-%d.n.npy", (int)getpid());
    write_ids(ids);
    process_result one = OCTAVO("", "logits", model, "--ids", ids, "--out", alone, "--precision",
                                "exact", "--threads", "1");
    assert_int_equal(one.status, 0);
    process_free(&one);
    const bytes expected = read_file(alone);
    if (job_find(mpis, OCTAVO_MODULES) == 0) skip();
    for (int m = 0; m < JOB_MPIS; m++) {
        for (size_t i = 0; mpis[m].is_here && i < sizeof cases / sizeof *cases; i++) {
            remove(split);
            process_result done =
                JOB(&mpis[m], cases[i].processes, "logits", model, "--ids", ids, "--out", split,
                    "--precision", "exact", "--threads", "1", "--mesh", cases[i].mesh);
            if (done.status != 0) print_message("%s\n", done.err);
            assert_int_equal(done.status, 0);
            process_free(&done);
            const bytes got = read_file(split);
            assert_true(furthest(&expected, &got) < 1e-4);
            free(got.data);
        }
    }
    free(expected.data);
    remove(ids);
    remove(alone);
    remove(split);
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

/* Text comes from the process that leads, once; the others neither read nor write. */
static void test_text(void **state) {
    job_mpi mpis[JOB_MPIS];
    (void)state;
    process_result one = OCTAVO("a b c", "run", TINY_LLAMA, "--raw", "-n", "8", "--temperature",
                                "0", "--json", "--threads", "1");
    assert_int_equal(one.status, 0);
    json_t *expected = process_json(&one);
    process_free(&one);
    if (job_find(mpis, OCTAVO_MODULES) == 0) skip();
    for (int m = 0; m < JOB_MPIS; m++) {
        if (!mpis[m].is_here) continue;
        process_result done =
            JOB(&mpis[m], "2", "run", TINY_LLAMA, "-p", "a b c", "--raw", "-n", "8",
                "--temperature", "0", "--json", "--mesh", "model=2", "--threads", "1");
        if (done.status != 0) print_message("%s\n", done.err);
        assert_int_equal(done.status, 0);
        json_t *got = process_json(&done);
        assert_true(json_equal(json_object_get(expected, "ids"), json_object_get(got, "ids")));
        json_decref(got);
        process_free(&done);
    }
    json_decref(expected);
}

static void test_errors(void **state) {
    job_mpi mpis[JOB_MPIS];
    (void)state;
    if (job_find(mpis, OCTAVO_MODULES) == 0) skip();
    for (int m = 0; m < JOB_MPIS; m++) {
        if (!mpis[m].is_here) continue;
        process_result done =
            JOB(&mpis[m], "2", "run", "/nowhere/model.gguf", "-p", "a", "--mesh", "model=2");
        assert_int_not_equal(done.status, 0);
        assert_int_equal(count(done.err, "octavo: error: "), 1);
        assert_non_null(strstr(done.err, "/nowhere/model.gguf"));
        process_free(&done);
        done = JOB(&mpis[m], "2", "run", TINY_LLAMA, "-p", "a", "--mesh", "model=3");
        assert_int_not_equal(done.status, 0);
        assert_int_equal(count(done.err, "octavo: error: "), 1);
        process_free(&done);
        done = JOB(&mpis[m], "2", "run", TINY_LLAMA, "-p", "a", "--devices", "3");
        assert_int_not_equal(done.status, 0);
        assert_int_equal(count(done.err, "the job has 2 processes"), 1);
        process_free(&done);
        /* what is no job of a model are so many commands, each for itself */
        done = JOB(&mpis[m], "2", "inspect", "/nowhere/model.gguf");
        assert_int_not_equal(done.status, 0);
        assert_true(count(done.err, "octavo: error: ") >= 1);
        process_free(&done);
        done = JOB(&mpis[m], "2", "run", TINY_LLAMA, "-p", "a", "--raw", "-n", "1", "--ranks",
                   "thread", "--json", "--threads", "1");
        assert_int_equal(done.status, 0);
        assert_int_equal(count(done.out, "\"finish_reason\""), 2);
        process_free(&done);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_errors),
    };
    setenv(JOB_ENV_ROOT, "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
