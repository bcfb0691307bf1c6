/* SPDX-License-Identifier: Apache-2.0
 *
 * Models whose cache is split by positions: long texts give the bits of one rank, each rank has its
 * part of the cache alone, pages come and go, and what cannot be is refused.
 */
#include "../unit.h"
#include "engine/model.h"
#include "tiny_model.h"

#include "octavo/model.h"
#include "octavo/plan.h"
#include "octavo/sharding.h"

enum { CONTEXT = 8192, CHUNK = 512, VOCAB = TINY_VOCAB };

static char path[] = "/tmp/octavo-positions-XXXXXX";

static int write_model(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_F32, OCTAVO_GGML_Q8_0};
    (void)state;
    tiny_model_write(&(tiny_options){.architecture = "qwen2", /* of full attention */
                                     .n_layers = 2,
                                     .context = CONTEXT,
                                     .types = types,
                                     .n_types = 2},
                     path);
    return 0;
}

static int remove_model(void **state) {
    (void)state;
    return unlink(path);
}

static octavo_sharding *sharding_of(const char *mesh, const char *all) {
    octavo_sharding_options options;
    octavo_sharding *sharding = NULL;
    octavo_error error;
    octavo_sharding_options_init(&options);
    options.mesh = mesh;
    options.all = all;
    if (octavo_sharding_create(&options, &sharding, &error)) fail_msg("%s", error.message);
    return sharding;
}

static octavo_model_options options_of(const octavo_sharding *sharding) {
    octavo_model_options options;
    octavo_model_options_init(&options);
    options.sharding = sharding;
    options.threads = 1;
    options.pin = false;
    options.chunk = CHUNK;
    options.max_sequences = 4;
    return options;
}

static octavo_model *opened(const octavo_model_options *options) {
    octavo_model *model = NULL;
    octavo_error error;
    if (octavo_model_open(path, options, &model, &error)) fail_msg("%s", error.message);
    return model;
}

static int32_t id_of(int64_t i) {
    return (int32_t)((uint64_t)(i * 7919 + 13) % (uint64_t)VOCAB);
}

enum { LONG = 2500, SHORT = 1030, DECODED = 3 };

/* Logits [9][VOCAB]: a long and a short text, tokens of both at once, the end of the long one
 * again from before a split's edge. */
static void run(octavo_model *model, float *logits) {
    octavo_sequence *sequences[2];
    octavo_error error;
    int32_t ids[LONG], next[2];
    const int lengths[2] = {LONG, SHORT};
    for (int i = 0; i < LONG; i++)
        ids[i] = id_of(i);
    for (int s = 0; s < 2; s++) {
        assert_int_equal(octavo_sequence_create(model, &sequences[s], &error), OCTAVO_OK);
        if (octavo_sequence_feed(sequences[s], ids + s, (size_t)lengths[s], OCTAVO_LOGITS_LAST,
                                 logits, NULL, &error))
            fail_msg("%s", error.message);
        logits += VOCAB;
    }
    for (int i = 0; i < DECODED; i++) {
        octavo_step_input inputs[2] = {{0}};
        for (int s = 0; s < 2; s++, logits += VOCAB) {
            next[s] = id_of(100 * s + i);
            inputs[s] = (octavo_step_input){.sequence = sequences[s],
                                            .ids = &next[s],
                                            .n_ids = 1,
                                            .want = OCTAVO_LOGITS_LAST,
                                            .logits = logits};
        }
        if (octavo_model_step(model, inputs, 2, &error)) fail_msg("%s", error.message);
    }
    octavo_sequence_truncate(sequences[0], 1020);
    if (octavo_sequence_feed(sequences[0], ids + 7, 1100, OCTAVO_LOGITS_LAST, logits, NULL, &error))
        fail_msg("%s", error.message);
    for (int s = 0; s < 2; s++)
        octavo_sequence_destroy(&sequences[s]);
}

enum { LOGITS = (2 + 2 * DECODED + 1) * VOCAB };

static const char *const by_seq = "{\"keyvalue_skh\": [[\"data\", \"seq\"], \"model\", null]}";

static void test_bits(void **state) {
    static const char *const meshes[] = {"seq=2", "seq=4", "seq=2,data=2", "seq=2,model=2"};
    static float want[LOGITS], got[LOGITS];
    (void)state;
    octavo_model_options options = options_of(NULL);
    octavo_model *model = opened(&options);
    const octavo_model_facts whole = octavo_model_describe(model);
    run(model, want);
    octavo_model_close(&model);
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        octavo_sharding *sharding = sharding_of(meshes[i], by_seq);
        options = options_of(sharding);
        options.page_size = i % 2 == 0 ? 16 : 128;
        model = opened(&options);
        const octavo_model_facts facts = octavo_model_describe(model);
        const int groups = facts.groups;
        memset(got, 0, sizeof got);
        run(model, got);
        octavo_model_close(&model);
        octavo_sharding_destroy(&sharding);
        if (memcmp(want, got, sizeof want) != 0) fail_msg("%s: other bits", meshes[i]);
        assert_int_equal(facts.kv_bytes, whole.kv_bytes * (uint64_t)groups);
        assert_int_equal(facts.pages * facts.page_size, CONTEXT);
    }
}

/* Without any rule, ranks of an axis that splits nothing else so well share the positions of long
 * texts, if these are asked for. */
static void test_shared(void **state) {
    static float want[LOGITS], got[LOGITS];
    octavo_sharding *sharding = sharding_of("seq=4", NULL);
    (void)state;
    octavo_model_options options = options_of(NULL);
    octavo_model *model = opened(&options);
    run(model, want);
    octavo_model_close(&model);
    for (int is_long = 0; is_long < 2; is_long++) {
        int n_records = 0;
        options = options_of(sharding);
        options.context = is_long ? CONTEXT : 0;
        model = opened(&options);
        const octavo_partition *partition = &model->ranks.partitions[OCTAVO_PHASE_GENERATE];
        for (int i = 0; i < partition->n_values; i++)
            n_records += octavo_is_records(&model->program, partition->values[i].tensor,
                                           &partition->values[i].layout);
        assert_int_equal(n_records, is_long ? 2 : 0);
        run(model, got);
        octavo_model_close(&model);
        assert_memory_equal(want, got, sizeof want);
    }
    octavo_sharding_destroy(&sharding);
}

/* All positions that there are, twice over, and not one more. */
static void test_room(void **state) {
    octavo_sharding *sharding = sharding_of("seq=2", by_seq);
    octavo_sequence *sequence = NULL;
    octavo_error error;
    static int32_t ids[CONTEXT + 1];
    float logits[VOCAB];
    (void)state;
    octavo_model_options options = options_of(sharding);
    options.context = 1536; /* the second rank has half a split */
    octavo_model *model = opened(&options);
    assert_int_equal(octavo_sequence_create(model, &sequence, &error), OCTAVO_OK);
    for (int i = 0; i < 2; i++) {
        if (octavo_sequence_feed(sequence, ids, 1536, OCTAVO_LOGITS_LAST, logits, NULL, &error))
            fail_msg("%s", error.message);
        assert_int_equal(
            octavo_sequence_feed(sequence, ids, 1, OCTAVO_LOGITS_LAST, logits, NULL, &error),
            OCTAVO_ERROR_LIMIT);
        octavo_sequence_truncate(sequence, 0);
    }
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
    octavo_sharding_destroy(&sharding);
}

static void assert_refused(const char *all, int page_size, octavo_status status, const char *text) {
    octavo_sharding *sharding = sharding_of("seq=2", all);
    octavo_model_options options = options_of(sharding);
    octavo_model *model = NULL;
    octavo_error error = {0};
    options.page_size = page_size;
    assert_int_equal(octavo_model_open(path, &options, &model, &error), status);
    if (!strstr(error.message, text)) fail_msg("%s: not %s", error.message, text);
    octavo_sharding_destroy(&sharding);
}

static int write_parts(char *file) {
    static const char text[] =
        "{\"sharding\": {\"logical_rules\": {\"parts\": [{\"layers\": \"1\", \"all\": "
        "{\"keyvalue_skh\": [\"seq\", null, null]}}]}}}";
    const int to = mkstemp(file);
    assert_true(to >= 0 && write(to, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    return close(to);
}

static void test_refused(void **state) {
    char file[] = "/tmp/octavo-parts-XXXXXX";
    octavo_sharding_options sharding_options;
    octavo_sharding *sharding = NULL;
    octavo_model *model = NULL;
    octavo_error error = {0};
    (void)state;
    assert_refused(by_seq, 48, OCTAVO_ERROR_INVALID,
                   "option page size (48): where positions of the cache are split over ranks, it "
                   "has to divide 1024");
    write_parts(file);
    octavo_sharding_options_init(&sharding_options);
    sharding_options.mesh = "seq=2";
    sharding_options.rules = file;
    assert_int_equal(octavo_sharding_create(&sharding_options, &sharding, &error), OCTAVO_OK);
    const octavo_model_options options = options_of(sharding);
    assert_int_equal(octavo_model_open(path, &options, &model, &error), OCTAVO_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "degree 2): positions of all layers are split"));
    octavo_sharding_destroy(&sharding);
    octavo_plan_options plan;
    char *json = NULL;
    octavo_plan_options_init(&plan);
    plan.mesh = "seq=2";
    plan.rules = file;
    assert_int_equal(octavo_plan(path, &plan, &json, &error), OCTAVO_ERROR_UNSUPPORTED);
    unlink(file);
    plan.rules = NULL;
    plan.context = CONTEXT + 1;
    assert_int_equal(octavo_plan(path, &plan, &json, &error), OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "option context (8193)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
