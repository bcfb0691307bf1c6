/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad input to the model API: damaged files, wrong models, options out of range, steps that cannot
 * be. Each gives a status and a message that names the culprit; nothing crashes, and nothing that
 * was accepted is lost.
 */
#include "../unit.h"
#include "tiny_model.h"

#include "octavo/inspect.h"
#include "octavo/model.h"
#include "octavo/template.h"

#include <sys/stat.h>

static const octavo_ggml_type few_types[] = {OCTAVO_GGML_Q8_0, OCTAVO_GGML_Q4_0};
static char path[64];

static tiny_options small_model(const char *leave_out) {
    return (tiny_options){.architecture = "qwen2",
                          .n_layers = 1,
                          .context = 64,
                          .types = few_types,
                          .n_types = 2,
                          .leave_out = leave_out};
}

static octavo_status open_with(const char *file, const octavo_model_options *options,
                               octavo_error *error) {
    octavo_model *model = NULL;
    octavo_status status = octavo_model_open(file, options, &model, error);
    assert_true((status == OCTAVO_OK) == (model != NULL));
    octavo_model_close(&model);
    return status;
}

static void refused(octavo_status got, octavo_status want, const octavo_error *error,
                    const char *culprit) {
    if (got != want || !strstr(error->message, culprit))
        fail_msg("status %s, message \"%s\"; wanted %s and \"%s\"", octavo_status_name(got),
                 error->message, octavo_status_name(want), culprit);
    assert_null(strchr(error->message, '\n'));
}

static void test_wrong_paths(void **state) {
    octavo_error error;
    char folder[64] = "/tmp/octavo-folder-XXXXXX", config[96];
    (void)state;
    refused(open_with("/tmp/octavo-no-such-file.gguf", NULL, &error), OCTAVO_ERROR_NOT_FOUND,
            &error, "octavo-no-such-file");
    assert_non_null(mkdtemp(folder));
    refused(open_with(folder, NULL, &error), OCTAVO_ERROR_NOT_FOUND, &error, "config.json");
    snprintf(config, sizeof config, "%s/config.json", folder);
    FILE *file = fopen(config, "w");
    assert_non_null(file);
    fclose(file);
    refused(open_with(folder, NULL, &error), OCTAVO_ERROR_NOT_FOUND, &error, "safetensors");
    unlink(config);
    rmdir(folder);
    refused(open_with("/dev/null", NULL, &error), OCTAVO_ERROR_IO, &error, "/dev/null");
}

static void test_wrong_models(void **state) {
    static const char *const missing[] = {"blk.0.attn_norm.weight", "blk.0.attn_k.bias",
                                          "blk.0.ffn_down.weight"};
    char other[64];
    octavo_error error;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tiny_options options = small_model(missing[i]);
        tiny_model_write(&options, other);
        refused(open_with(other, NULL, &error), OCTAVO_ERROR_NOT_FOUND, &error, missing[i]);
        unlink(other);
    }
    tiny_options options = small_model(NULL);
    options.architecture = "nosuchmodel";
    tiny_model_write(&options, other);
    refused(open_with(other, NULL, &error), OCTAVO_ERROR_UNSUPPORTED, &error, "nosuchmodel");
    unlink(other);
}

static void test_wrong_types(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_Q8_0, OCTAVO_GGML_Q8_K};
    char other[64];
    octavo_error error;
    (void)state;
    tiny_options options = small_model(NULL);
    options.types = types;
    tiny_model_write(&options, other);
    refused(open_with(other, NULL, &error), OCTAVO_ERROR_UNSUPPORTED, &error, "type Q8_K");
    unlink(other);
}

static void test_wrong_options(void **state) {
    octavo_model_options o[9];
    octavo_error error;
    (void)state;
    for (int i = 0; i < 9; i++)
        octavo_model_options_init(&o[i]);
    o[0].threads = -1;
    o[1].page_size = 0;
    o[2].chunk = 0;
    o[3].context = 65;
    o[4].kv_dtype = OCTAVO_DTYPE_I32;
    o[5].size = 8;
    o[6].isa = "mmx";
    o[7].max_sequences = 0;
    o[8].kv_memory = 100;
    for (int i = 0; i < 8; i++)
        refused(open_with(path, &o[i], &error), OCTAVO_ERROR_INVALID, &error, "");
    refused(open_with(path, &o[8], &error), OCTAVO_ERROR_LIMIT, &error, "kv-memory");
}

static int stop_at_once(void *cookie, uint64_t done, uint64_t total) {
    ++*(int *)cookie;
    assert_true(done <= total);
    return 1;
}

static void test_cancelled_load(void **state) {
    octavo_model_options options;
    octavo_error error;
    int calls = 0;
    (void)state;
    octavo_model_options_init(&options);
    options.progress = stop_at_once;
    options.progress_cookie = &calls;
    refused(open_with(path, &options, &error), OCTAVO_ERROR_CANCELLED, &error, "loading");
    assert_int_equal(calls, 1);
}

/* ---- damaged files ---- */

static uint8_t *read_file(size_t *size) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    *size = (size_t)info.st_size;
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void write_file(const char *to, const uint8_t *bytes, size_t size) {
    FILE *file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* Opens; what opens must run a step too. */
static void try_damaged(const char *file) {
    static float logits[1 << 16];
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_sequence *sequence = NULL;
    octavo_error error;
    const int32_t ids[] = {1, 2, 3};
    octavo_model_options_init(&options);
    options.threads = 1;
    options.chunk = 8;
    options.max_sequences = 1;
    options.kv_memory = 1 << 20;
    octavo_status status = octavo_model_open(file, &options, &model, &error);
    if (status != OCTAVO_OK) {
        assert_true(error.message[0] != '\0');
        assert_int_equal(error.status, status);
        return;
    }
    if (octavo_model_describe(model).vocabulary <= 1 << 16 &&
        octavo_sequence_create(model, &sequence, &error) == OCTAVO_OK)
        status = octavo_sequence_feed(sequence, ids, 3, OCTAVO_LOGITS_LAST, logits, NULL, &error);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
}

static void test_damaged_files(void **state) {
    size_t size;
    uint8_t *bytes = read_file(&size);
    char other[64] = "/tmp/octavo-damaged-XXXXXX";
    uint64_t random = 5;
    int file = mkstemp(other);
    (void)state;
    assert_true(file >= 0);
    close(file);
    for (size_t cut = 0; cut < size; cut += cut < 8192 ? 331 : size / 5) {
        write_file(other, bytes, cut);
        octavo_error error;
        assert_true(open_with(other, NULL, &error) != OCTAVO_OK);
    }
    for (int i = 0; i < 150; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        size_t at = (size_t)(random >> 20) % (i % 3 ? 600 : 12000); /* mostly the model's numbers */
        uint8_t kept = bytes[at];
        bytes[at] = i % 2 ? 0xff : (uint8_t)(random >> 50);
        write_file(other, bytes, size);
        try_damaged(other);
        bytes[at] = kept;
    }
    unlink(other);
    free(bytes);
}

/* ---- steps ---- */

static size_t page_bytes(const octavo_model_options *options) {
    octavo_model *model = NULL;
    octavo_error error;
    assert_int_equal(octavo_model_open(path, options, &model, &error), OCTAVO_OK);
    const octavo_model_facts facts = octavo_model_describe(model);
    octavo_model_close(&model);
    return (size_t)(facts.kv_bytes / (uint64_t)facts.pages);
}

static void test_wrong_steps(void **state) {
    octavo_model_options options;
    octavo_model *model = NULL, *other = NULL;
    octavo_sequence *a = NULL, *b = NULL, *stranger = NULL;
    octavo_error error;
    static float logits[TINY_VOCAB], again[TINY_VOCAB];
    int32_t ids[80];
    (void)state;
    for (int i = 0; i < 80; i++)
        ids[i] = i;
    octavo_model_options_init(&options);
    options.chunk = 32;
    options.max_sequences = 2;
    options.kv_dtype = OCTAVO_DTYPE_F16;
    options.kv_memory = 5 * page_bytes(&options);
    assert_int_equal(octavo_model_open(path, &options, &model, &error), OCTAVO_OK);
    assert_int_equal(octavo_model_open(path, &options, &other, &error), OCTAVO_OK);
    assert_int_equal(octavo_model_describe(model).pages, 5);
    assert_int_equal(octavo_sequence_create(model, &a, &error), OCTAVO_OK);
    assert_int_equal(octavo_sequence_create(model, &b, &error), OCTAVO_OK);
    assert_int_equal(octavo_sequence_create(other, &stranger, &error), OCTAVO_OK);
    assert_int_equal(octavo_sequence_feed(a, ids, 30, OCTAVO_LOGITS_LAST, logits, NULL, &error),
                     OCTAVO_OK);

    const octavo_step_input good = {.sequence = a, .ids = ids, .n_ids = 1};
    octavo_step_input bad = good;
    refused(octavo_model_step(model, &good, 0, &error), OCTAVO_ERROR_LIMIT, &error, "step");
    bad.sequence = stranger;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_INVALID, &error, "input 0");
    bad = good;
    bad.n_ids = 33;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_LIMIT, &error, "chunk");
    bad = good;
    bad.want = OCTAVO_LOGITS_LAST;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_INVALID, &error, "logits");
    const octavo_step_input twice[] = {good, good};
    refused(octavo_model_step(model, twice, 2, &error), OCTAVO_ERROR_INVALID, &error, "input 1");
    const int32_t negative = -1, beyond = TINY_VOCAB;
    bad = good;
    bad.ids = &negative;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_INVALID, &error, "-1");
    bad.ids = &beyond;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_INVALID, &error, "300");
    refused(octavo_sequence_feed(a, ids, 35, OCTAVO_LOGITS_NONE, NULL, NULL, &error),
            OCTAVO_ERROR_LIMIT, &error, "context of 64");

    /* a holds 2 pages; b would need 4 of the 3 left: refused half-way, and b is as it was. */
    refused(octavo_sequence_feed(b, ids, 60, OCTAVO_LOGITS_NONE, NULL, NULL, &error),
            OCTAVO_ERROR_LIMIT, &error, "kv-memory");
    assert_int_equal(octavo_sequence_length(b), 0);
    assert_int_equal(octavo_sequence_length(a), 30);
    volatile int cancel = 1;
    refused(octavo_sequence_feed(b, ids, 20, OCTAVO_LOGITS_NONE, NULL, &cancel, &error),
            OCTAVO_ERROR_CANCELLED, &error, "stopped");

    /* None of that has left a trace: a goes on as if nothing had happened. */
    assert_int_equal(octavo_sequence_feed(a, ids, 3, OCTAVO_LOGITS_LAST, logits, NULL, &error),
                     OCTAVO_OK);
    octavo_sequence_truncate(b, 0);
    assert_int_equal(
        octavo_sequence_feed(stranger, ids, 30, OCTAVO_LOGITS_NONE, NULL, NULL, &error), OCTAVO_OK);
    assert_int_equal(
        octavo_sequence_feed(stranger, ids, 3, OCTAVO_LOGITS_LAST, again, NULL, &error), OCTAVO_OK);
    assert_memory_equal(logits, again, sizeof logits);
    octavo_sequence_destroy(&a);
    octavo_sequence_destroy(&b);
    octavo_sequence_destroy(&stranger);
    octavo_model_close(&model);
    octavo_model_close(&other);
}

static void test_inspect(void **state) {
    octavo_inspect_options options;
    octavo_error error;
    char *json = NULL;
    (void)state;
    octavo_inspect_options_init(&options);
    options.with_program = true;
    assert_int_equal(octavo_inspect(path, &options, &json, &error), OCTAVO_OK);
    assert_non_null(strstr(json, "\"query_tnh\""));
    assert_non_null(strstr(json, "\"blk.0.ffn_gate.weight\""));
    octavo_text_free(json);
    json = NULL;
    options.chunk = 0;
    refused(octavo_inspect(path, &options, &json, &error), OCTAVO_ERROR_INVALID, &error, "chunk");
    refused(octavo_inspect("/tmp/octavo-no-such-file.gguf", NULL, &json, &error),
            OCTAVO_ERROR_NOT_FOUND, &error, "octavo-no-such-file");
    assert_null(json);
    assert_int_equal(octavo_chat_template_open(path, &json, &error), OCTAVO_OK);
    assert_null(json);
}

static int write_model(void **state) {
    tiny_options options = small_model(NULL);
    (void)state;
    tiny_model_write(&options, path);
    return 0;
}

static int remove_model(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_paths),    cmocka_unit_test(test_wrong_models),
        cmocka_unit_test(test_wrong_types),    cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_cancelled_load), cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_wrong_steps),    cmocka_unit_test(test_inspect),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
