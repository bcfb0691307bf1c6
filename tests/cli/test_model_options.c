/* SPDX-License-Identifier: Apache-2.0
 *
 * --mesh, --devices, --ranks and --rules of the commands that run a model: the answer is that of
 * one rank, and what makes no sense ends in one line.
 */
#include "process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RUN(...) OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", "abc", "-n", "8", __VA_ARGS__)

/* Expects this exit status and an error line with `part`, and no result. */
static void expect(process_result result, int status, const char *part) {
    assert_true(process_says(&result, part));
    if (result.status != status) fail_msg("status %d: %s", result.status, result.err);
    assert_int_equal(result.out_bytes, 0);
    process_free(&result);
}

static char path[] = "/tmp/octavo-rules-XXXXXX";
static char ids_path[] = "/tmp/octavo-ids-XXXXXX";
static char logits_path[] = "/tmp/octavo-logits-XXXXXX";

static void write_text(const char *to, const char *text) {
    FILE *file = fopen(to, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const char *write_rules(const char *text) {
    write_text(path, text);
    return path;
}

static int setup(void **state) {
    char *const paths[] = {path, ids_path, logits_path};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const int file = mkstemp(paths[i]);
        if (file < 0 || close(file)) return 1;
    }
    write_text(ids_path, "[1, 5, 9, 20, 33, 7, 8]");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return unlink(path) || unlink(ids_path) || unlink(logits_path);
}

/* ---- what runs ---- */

static void same(process_result split, const char *want) {
    if (split.status != 0) fail_msg("status %d: %s", split.status, split.err);
    assert_string_equal(split.out, want);
    process_free(&split);
}

static void test_same_text(void **state) {
    static const char *const meshes[] = {"model=2", "seq=2", "data=2", "expert=2",
                                         "data=2,model=2"};
    (void)state;
    process_result one = RUN("--threads", "1");
    assert_int_equal(one.status, 0);
    assert_true(one.out_bytes > 0);
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++)
        same(RUN("--threads", "1", "--mesh", meshes[i]), one.out);
    same(RUN("--threads", "1", "--mesh", "model=-1", "--devices", "2", "--ranks", "thread"),
         one.out);
    const char *rules = write_rules("{\"sharding\": {"
                                    "\"sharding_strategy\": {\"tensor_parallelism\": 2},"
                                    "\"logical_rules\": {\"all\": {\"logits_tv\": null}}}}");
    same(RUN("--threads", "1", "--rules", rules), one.out);
    /* --mesh wins over the file */
    same(RUN("--threads", "1", "--rules", rules, "--mesh", "seq=2", "--devices", "2"), one.out);
    process_free(&one);
}

/* Logits of a few ids, as the file has them; the caller's. */
static float *logits_of(const char *model, const char *mesh, const char *rules, size_t *n) {
    enum { HEADER = 128, MOST = 1 << 20 };
    process_result result =
        OCTAVO("", "logits", model, "--ids", ids_path, "--out", logits_path, "--precision", "exact",
               "--threads", "1", "--mesh", mesh, "--rules", write_rules(rules));
    if (result.status != 0) fail_msg("%s %s: %s", model, mesh, result.err);
    process_free(&result);
    FILE *npy = fopen(logits_path, "rb");
    float *all = malloc(MOST);
    assert_non_null(npy);
    assert_non_null(all);
    *n = fread(all, 1, MOST, npy);
    assert_true(*n > HEADER && *n < MOST);
    assert_int_equal(fclose(npy), 0);
    *n = (*n - HEADER) / sizeof *all;
    memmove(all, (const char *)all + HEADER, *n * sizeof *all);
    return all;
}

static void same_logits(const char *model, const char *mesh, const char *rules) {
    size_t n, m;
    float *one = logits_of(model, "model=1", "{}", &n), *split = logits_of(model, mesh, rules, &m);
    float top = 0.0f, off = 0.0f;
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        top = fmaxf(top, fabsf(one[i]));
        if (!(fabsf(one[i] - split[i]) <= off)) off = fabsf(one[i] - split[i]);
    }
    if (!(off < 1e-5f * top))
        fail_msg("%s over %s with %s: off by %g of %g", model, mesh, rules, (double)off,
                 (double)top);
    free(one);
    free(split);
}

/* Biases of latents have one axis, where the keys have two. */
static void test_latent_biases(void **state) {
    (void)state;
    same_logits(TEST_DATA "/models/deepseek_v3", "data=2", "{}");
    same_logits(TEST_DATA "/models/deepseek_v3", "model=2", "{}");
}

/* Experts are where their weights are, for the tokens of all those ranks, whatever is asked for. */
static void test_split_choices(void **state) {
    static const char choice[] = "{\"sharding\": {\"logical_rules\": {\"all\": {"
                                 "\"router_choice_tc\": [\"expert\", null]}}}}";
    (void)state;
    same_logits(TEST_DATA "/models/qwen2_moe", "expert=2", choice);
    same_logits(TEST_DATA "/models/deepseek_v3", "expert=2,model=2", choice);
}

/* ---- what does not ---- */

static void test_meshes(void **state) {
    static const struct {
        const char *mesh, *devices, *says;
    } wrong[] = {
        {"model=0", "2", "model has degree 0"},
        {"model=-2", "2", "model has degree -2"},
        {"model=-1,seq=-1", "2", "both seq and model are -1"},
        {"tensor=2", "2", "unknown axis \"tensor\"; axes are data, expert, seq and model"},
        {"model", "2", "is not of the form AXIS=DEGREE"},
        {"model=2", "3", "the product of the degrees is 2, but the devices are 3"},
        {"data=2,model=-1", "3", "does not divide the devices, 3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect(RUN("--mesh", wrong[i].mesh, "--devices", wrong[i].devices), 2, wrong[i].says);
    expect(RUN("--devices", "2"), 2, "the product of the degrees is 1, but the devices are 2");
    expect(RUN("--devices", "0"), 2, "option --devices (0)");
}

static void test_rules(void **state) {
#define ALL(text) "{\"sharding\": {\"logical_rules\": {\"all\": {" text "}}}}"
    static const struct {
        const char *rules, *says;
        int status;
    } wrong[] = {
        {"[]", "this is no object", 2},
        {"{", "no legal JSON", 1},
        {"{\"a\": 1, \"a\": 2}", "duplicate", 1},
        {"{\"shards\": {}}", "shards: there is no such key", 2},
        {ALL("\"ffw_weight_dff\": null"), "there is no tensor \"ffw_weight_dff\"", 2},
        {ALL("\"logits_tv\": [\"data\"]"), "give one for each", 2},
        {ALL("\"logits_tv\": [\"model\", \"model\"]"), "mesh axis \"model\" splits axis 1", 2},
        {ALL("\"logits_tv\": [\"tensor\", null]"), "unknown mesh axis \"tensor\"", 2},
        {ALL("\"logits_tv\": 3"), "logits_tv", 2},
        {"{\"sharding\": {\"sharding_strategy\": {\"tensor_parallelism\": 0}}}",
         "sharding_strategy.tensor_parallelism: this is no degree", 2},
        /* what only the model shows */
        {"{\"sharding\": {\"logical_rules\": {\"parts\": [{\"layers\": \"99\", \"all\": "
         "{\"activation_td\": null}}]}}}",
         "layer 99", 1},
        {ALL("\"attn_q_weight_dnh\": [null, null, \"model\"]"), "a head's width is not split", 1},
        {ALL("\"keyvalue_skh\": [null, null, \"model\"]"), "a head's width is not split", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect(RUN("--mesh", "model=2", "--rules", write_rules(wrong[i].rules)), wrong[i].status,
               wrong[i].says);
    expect(RUN("--rules", "/no/rules.json"), 1, "/no/rules.json");
}

/* A launcher is seen in the environment alone. */
static void test_jobs(void **state) {
    static const char *const launched[] = {
        "OMPI_COMM_WORLD_SIZE", "PMI_RANK",      "PMI_SIZE", "PMIX_RANK",
        "SLURM_STEP_ID",        "PMIX_NAMESPACE"};
    (void)state;
    for (size_t i = 0; i < sizeof launched / sizeof *launched; i++)
        unsetenv(launched[i]);
    expect(RUN("--ranks", "mpi"), 1, "was not started by mpirun or srun");
    expect(RUN("--ranks", "mpi", "--mesh", "model=2"), 1, "was not started by mpirun or srun");
    expect(RUN("--ranks", "process"), 2, "auto|thread|mpi");
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    expect(RUN("--devices", "3"), 2, "the job has 2 processes; leave it out");
    expect(RUN("--mesh", "model=3"), 2, "the devices are 2");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_text),     cmocka_unit_test(test_latent_biases),
        cmocka_unit_test(test_split_choices), cmocka_unit_test(test_meshes),
        cmocka_unit_test(test_rules),         cmocka_unit_test(test_jobs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
