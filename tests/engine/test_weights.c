/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights requantised while they are loaded: what runs is what a file of that type would give, for
 * every family and every kind of layout; threads change no bit.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "tiny_model.h"

#include "octavo/inspect.h"
#include "octavo/model.h"
#include "octavo/quantize.h"
#include "octavo/template.h"

#include <dirent.h>

enum { MAX_VOCAB = 4096, N_IDS = 24 };

static void must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

/* Logits after a prompt; false for what is no model that answers. */
static bool run(const char *path, octavo_weights weights, int threads, float *logits,
                octavo_model_facts *facts) {
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_sequence *sequence = NULL;
    octavo_error error;
    int32_t ids[N_IDS];
    octavo_model_options_init(&options);
    options.precision = OCTAVO_PRECISION_EXACT;
    options.threads = threads;
    options.weights = weights;
    octavo_status status = octavo_model_open(path, &options, &model, &error);
    if (status) {
        if (weights == OCTAVO_WEIGHTS_FILE) return false;
        fail_msg("%s as %s: %s", path, octavo_weights_name(weights), error.message);
    }
    *facts = octavo_model_describe(model);
    assert_int_equal(facts->weights, weights);
    assert_in_range(facts->vocabulary, 1, MAX_VOCAB);
    for (int i = 0; i < N_IDS; i++)
        ids[i] = (i * 29 + 7) % facts->vocabulary;
    must(octavo_sequence_create(model, &sequence, &error), &error);
    status = octavo_sequence_feed(sequence, ids, N_IDS, OCTAVO_LOGITS_LAST, logits, NULL, &error);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
    if (weights != OCTAVO_WEIGHTS_FILE) must(status, &error);
    return status == OCTAVO_OK;
}

/* RMS of the difference as a share of the RMS. */
static double distance(const float *a, const float *b, int n) {
    double off = 0, size = 0;
    for (int i = 0; i < n; i++) {
        off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)a[i] * (double)a[i];
    }
    return sqrt(off / size);
}

/* ---- every family ---- */

/* Tiny models of random weights: four bits change their logits a lot. */
static const struct {
    octavo_weights weights;
    double away;
} KINDS[] = {
    {OCTAVO_WEIGHTS_F32, 1e-4},
    {OCTAVO_WEIGHTS_BF16, 0.03},
    {OCTAVO_WEIGHTS_Q8, 0.1},
    {OCTAVO_WEIGHTS_Q4, 1.2},
};

static bool check_kinds(const char *path) {
    static float before[MAX_VOCAB], after[2][MAX_VOCAB];
    octavo_model_facts file, facts;
    if (!run(path, OCTAVO_WEIGHTS_FILE, 1, before, &file)) return false;
    for (size_t i = 0; i < OCTAVO_COUNT(KINDS); i++) {
        run(path, KINDS[i].weights, 1, after[0], &facts);
        const double away = distance(before, after[0], facts.vocabulary);
        if (!(away <= KINDS[i].away))
            fail_msg("%s as %s: logits are %g away, at most %g", path,
                     octavo_weights_name(KINDS[i].weights), away, KINDS[i].away);
        run(path, KINDS[i].weights, 3, after[1], &facts);
        if (memcmp(after[0], after[1], (size_t)facts.vocabulary * sizeof(float)) != 0)
            fail_msg("%s as %s: not the same bits with three threads", path,
                     octavo_weights_name(KINDS[i].weights));
    }
    return true;
}

static int check_folder_of_models(const char *folder) {
    int n = 0;
    DIR *all = opendir(folder);
    if (!all) fail_msg("%s cannot be read", folder);
    for (struct dirent *one = readdir(all); one; one = readdir(all)) {
        char path[512];
        const char *end = strrchr(one->d_name, '.');
        if (end && strcmp(end, ".gguf") != 0) continue; /* folders have no dot */
        snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
        n += check_kinds(path);
    }
    closedir(all);
    return n;
}

static void test_every_family(void **state) {
    const char *oracle = getenv("OCTAVO_ORACLE");
    (void)state;
    assert_true(check_folder_of_models(TEST_DATA "/models") >= 12);
    if (!oracle) return;
    char path[512];
    snprintf(path, sizeof path, "%s/models", oracle);
    assert_true(check_folder_of_models(path) >= 20);
    snprintf(path, sizeof path, "%s/gguf", oracle);
    assert_true(check_folder_of_models(path) >= 8);
}

/* ---- the same as a file ---- */

static void write_tiny(const char *architecture, octavo_ggml_type type, int n_experts,
                       char path[64]) {
    const tiny_options options = {.architecture = architecture,
                                  .n_layers = 2,
                                  .context = 64,
                                  .types = &type,
                                  .n_types = 1,
                                  .n_experts = n_experts};
    tiny_model_write(&options, path);
}

static void check_as_file(const char *architecture, octavo_ggml_type type, int n_experts) {
    static const struct {
        octavo_weights weights;
        const char *type, *keep;
    } cases[] = {
        {OCTAVO_WEIGHTS_F32, "F32", NULL},
        {OCTAVO_WEIGHTS_BF16, "BF16", NULL},
        {OCTAVO_WEIGHTS_Q8, "Q8_0", NULL},
        {OCTAVO_WEIGHTS_Q4, "Q4_K", "^(token_embd|output)\\.=Q8_0"},
    };
    static float ours[MAX_VOCAB], theirs[MAX_VOCAB];
    octavo_model_facts facts, file;
    octavo_quantize_options options;
    octavo_error error;
    char in[64], out[80];
    write_tiny(architecture, type, n_experts, in);
    snprintf(out, sizeof out, "%s.out", in);
    for (size_t i = 0; i < OCTAVO_COUNT(cases); i++) {
        octavo_quantize_options_init(&options);
        options.type = cases[i].type;
        options.keep = &cases[i].keep;
        options.n_keep = cases[i].keep != NULL;
        must(octavo_quantize(in, out, &options, NULL, &error), &error);
        run(in, cases[i].weights, 2, ours, &facts);
        assert_true(run(out, OCTAVO_WEIGHTS_FILE, 1, theirs, &file));
        if (memcmp(ours, theirs, (size_t)facts.vocabulary * sizeof(float)) != 0)
            fail_msg("%s, %s as %s: not the bits of the file", architecture,
                     octavo_ggml_type_name(type), octavo_weights_name(cases[i].weights));
        assert_int_equal(facts.packed_bytes, file.packed_bytes);
        assert_int_equal(facts.step_bytes, file.step_bytes);
    }
    (void)unlink(in);
    (void)unlink(out);
}

static void test_as_file(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_F32,  OCTAVO_GGML_F16,  OCTAVO_GGML_BF16,
                                             OCTAVO_GGML_Q8_0, OCTAVO_GGML_Q6_K, OCTAVO_GGML_Q5_K};
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        check_as_file("llama", types[i], 0);
        check_as_file("qwen3moe", types[i], 4);
    }
}

static void test_four_bits_stay(void **state) {
    static const octavo_ggml_type types[] = {
        OCTAVO_GGML_Q4_0,   OCTAVO_GGML_Q4_1,   OCTAVO_GGML_Q4_K,
        OCTAVO_GGML_IQ4_NL, OCTAVO_GGML_IQ4_XS, OCTAVO_GGML_MXFP4,
        OCTAVO_GGML_TQ2_0,  OCTAVO_GGML_Q2_K,   OCTAVO_GGML_IQ3_S};
    static float before[MAX_VOCAB], after[MAX_VOCAB];
    octavo_model_facts facts;
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        char path[64];
        write_tiny("llama", types[i], 0, path);
        assert_true(run(path, OCTAVO_WEIGHTS_FILE, 2, before, &facts));
        run(path, OCTAVO_WEIGHTS_Q4, 2, after, &facts);
        assert_memory_equal(before, after, (size_t)facts.vocabulary * sizeof(float));
        (void)unlink(path);
    }
}

/* ---- what is told ---- */

static void test_inspect(void **state) {
    octavo_inspect_options options;
    octavo_error error;
    char path[64], *text = NULL;
    (void)state;
    write_tiny("llama", OCTAVO_GGML_F32, 0, path);
    octavo_inspect_options_init(&options);
    options.with_program = true;
    options.weights = OCTAVO_WEIGHTS_Q4;
    must(octavo_inspect(path, &options, &text, &error), &error);
    assert_non_null(strstr(text, "\"weights\":\"q4\""));
    assert_non_null(strstr(text, "\"type\":\"q4_k\""));
    assert_non_null(strstr(text, "\"type\":\"q8_0\""));
    octavo_text_free(text);
    options.weights = (octavo_weights)9;
    assert_int_equal(octavo_inspect(path, &options, &text, &error), OCTAVO_ERROR_INVALID);
    (void)unlink(path);
}

static void refused(const char *path, octavo_weights weights, octavo_status expected,
                    const char *part) {
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_error error;
    octavo_model_options_init(&options);
    options.weights = weights;
    octavo_status status = octavo_model_open(path, &options, &model, &error);
    if (status != expected || !strstr(error.message, part))
        fail_msg("status %d, wanted %d; \"%s\" should say \"%s\"", status, expected, error.message,
                 part);
}

/* Puts a value into the last matrix of the file. */
static void spoil(const char *path, float value) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -4 * TINY_D * 40, SEEK_END), 0);
    assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

static void test_bad(void **state) {
    static const float values[] = {NAN, INFINITY, -INFINITY, 1e30f};
    octavo_model_facts facts;
    float logits[MAX_VOCAB];
    char path[64];
    (void)state;
    write_tiny("llama", OCTAVO_GGML_F32, 0, path);
    refused(path, (octavo_weights)5, OCTAVO_ERROR_INVALID, "give file, f32, bf16, q8 or q4");
    refused(path, (octavo_weights)-1, OCTAVO_ERROR_INVALID, "option weights (-1)");
    for (size_t i = 0; i < OCTAVO_COUNT(values); i++) {
        spoil(path, values[i]);
        assert_true(run(path, OCTAVO_WEIGHTS_FILE, 1, logits, &facts));
        refused(path, OCTAVO_WEIGHTS_Q8, OCTAVO_ERROR_FORMAT, "too large for q8_0");
        refused(path, OCTAVO_WEIGHTS_Q4, OCTAVO_ERROR_FORMAT, path);
    }
    run(path, OCTAVO_WEIGHTS_BF16, 1, logits, &facts); /* 1e30 it can hold */
    (void)unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_family),
        cmocka_unit_test(test_as_file),
        cmocka_unit_test(test_four_bits_stay),
        cmocka_unit_test(test_inspect),
        cmocka_unit_test(test_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
