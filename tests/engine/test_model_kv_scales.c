/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales of an 8-bit cache that are known beforehand: those of a checkpoint, under every name they
 * go by, and those of a calibration; and files of either kind that are wrong.
 */
#include "engine/model.h"
#include "hf_maker.h"
#include "kv_models.h"

#include "octavo/calibrate.h"

static float want[KV_N_IDS * KV_MAX_VOCABULARY], got[KV_N_IDS * KV_MAX_VOCABULARY];
static char file[] = "/tmp/octavo-scales-XXXXXX";

static void put_file(const char *text) {
    FILE *out = fopen(file, "w");
    assert_true(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

static bool same(int32_t vocabulary) {
    return memcmp(got, want, sizeof *want * KV_N_IDS * (size_t)vocabulary) == 0;
}

static void refused(const char *path, const octavo_model_options *options, octavo_status status,
                    const char *culprit) {
    octavo_model *model = NULL;
    octavo_error error;
    assert_int_equal(octavo_model_open(path, options, &model, &error), status);
    assert_null(model);
    if (!strstr(error.message, culprit)) fail_msg("no %s in: %s", culprit, error.message);
}

/* ---- of a checkpoint ---- */

/* llama_tied has so many layers, and kv heads in each. */
enum { LAYERS = 3, HEADS = 2 };

static const float key_scale = 0.03125f, value_scale = 0.0078125f;

static void start(hf_maker *maker, const char *key, const char *value, int n_layers) {
    char name[128];
    hf_maker_start(maker, "llama_tied");
    for (int i = 0; i < n_layers; i++) {
        snprintf(name, sizeof name, "model.layers.%d.self_attn.%s", i, key);
        hf_maker_add(maker, name, "F32", "[]", &key_scale, sizeof key_scale);
        if (strcmp(key, value) == 0) continue;
        snprintf(name, sizeof name, "model.layers.%d.self_attn.%s", i, value);
        hf_maker_add(maker, name, "F32", "[1]", &value_scale, sizeof value_scale);
    }
}

/* A file of these magnitudes for all layers and heads; of the last layer, 0, or the last head of
 * each, 1, `changed` says of keys or (+ 2) values that they are eight times as large. */
static void use_file(octavo_model_options *options, double key, double value, int changed) {
    const octavo_model_options plain = kv_options(OCTAVO_DTYPE_F32);
    octavo_model *model = kv_open(TEST_DATA "/models/llama_tied", &plain);
    const octavo_model_facts facts = octavo_model_describe(model);
    json_t *lists[2] = {json_array(), json_array()};
    assert_int_equal(facts.layers, LAYERS);
    assert_int_equal(facts.kv_heads, HEADS);
    for (int i = 0; i < 2 * LAYERS; i++) {
        double tops[HEADS];
        for (int h = 0; h < HEADS; h++) {
            const bool is_last[] = {i / 2 == LAYERS - 1, h == HEADS - 1};
            tops[h] = i % 2 ? value : key;
            if (changed >= 0 && changed / 2 == i % 2 && is_last[changed % 2]) tops[h] *= 8.0;
        }
        (void)json_array_append_new(lists[i % 2], json_pack("[f, f]", tops[0], tops[1]));
    }
    json_t *json = json_pack(
        "{s:i, s:s, s:I, s:I, s:I, s:I, s:i, s:o, s:o}", "kv_scales", 1, "architecture",
        facts.architecture, "layers", (json_int_t)facts.layers, "width", (json_int_t)facts.width,
        "kv_heads", (json_int_t)facts.kv_heads, "head_width", (json_int_t)facts.head_width,
        "vocabulary", (int)facts.vocabulary, "keys", lists[0], "values", lists[1]);
    assert_true(json && json_dump_file(json, file, 0) == 0);
    json_decref(json);
    octavo_model_close(&model);
    options->kv_scales = file;
}

/* Every layer and head has its own. */
static void test_each(void **state) {
    octavo_model_options options = kv_options(OCTAVO_DTYPE_INT8);
    (void)state;
    use_file(&options, 8.0, 4.0, -1);
    const int32_t vocabulary = kv_run(TEST_DATA "/models/llama_tied", &options, want);
    for (int changed = 0; changed < 4; changed++) {
        use_file(&options, 8.0, 4.0, changed);
        kv_run(TEST_DATA "/models/llama_tied", &options, got);
        if (same(vocabulary)) fail_msg("change %d: not used", changed);
    }
}

static void test_checkpoint(void **state) {
    static const struct {
        const char *key, *value;
    } names[] = {
        {"k_scale", "v_scale"},
        {"attn.k_scale", "attn.v_scale"},
        {"k_proj.k_scale", "v_proj.v_scale"},
        {"qkv_proj.k_scale", "qkv_proj.v_scale"},
        {"k_proj.output_scale", "v_proj.output_scale"},
        {"kv_scale", "kv_scale"},
        {"attn.kv_scale", "attn.kv_scale"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bool is_one = strcmp(names[i].key, names[i].value) == 0;
        hf_maker maker;
        start(&maker, names[i].key, names[i].value, LAYERS);
        hf_maker_write(&maker);
        octavo_model_options options = kv_options(OCTAVO_DTYPE_FP8_E4M3);
        const int32_t vocabulary = kv_run(maker.path, &options, got);
        use_file(&options, 448.0 * (double)key_scale,
                 448.0 * (double)(is_one ? key_scale : value_scale), -1);
        kv_run(TEST_DATA "/models/llama_tied", &options, want);
        if (!same(vocabulary)) fail_msg("%s: not used as it is", names[i].key);
        options.kv_scales = NULL;
        kv_run(TEST_DATA "/models/llama_tied", &options, want);
        if (same(vocabulary)) fail_msg("%s: not used", names[i].key);

        options = kv_options(OCTAVO_DTYPE_INT8); /* they are made for fp8 */
        kv_run(maker.path, &options, got);
        kv_run(TEST_DATA "/models/llama_tied", &options, want);
        assert_true(same(vocabulary));
        options = kv_options(OCTAVO_DTYPE_F16);
        kv_run(maker.path, &options, got);
        hf_maker_end(&maker);
    }
}

/* One for each kv head, in another type. */
static void test_heads(void **state) {
    static const uint16_t halves[] = {0x3c00, 0x2c00}; /* 1 and 0.0625 */
    hf_maker maker;
    octavo_model_options options = kv_options(OCTAVO_DTYPE_FP8_E5M2);
    (void)state;
    start(&maker, "k_scale", "v_scale", 0);
    for (int i = 0; i < LAYERS; i++) {
        char name[64];
        snprintf(name, sizeof name, "model.layers.%d.self_attn.k_scale", i);
        hf_maker_add(&maker, name, "F16", "[2]", halves, sizeof halves);
        snprintf(name, sizeof name, "model.layers.%d.self_attn.v_scale", i);
        hf_maker_add(&maker, name, "BF16", "[1]", &(uint16_t){0x3f80}, 2);
    }
    hf_maker_write(&maker);
    octavo_model *model = kv_open(maker.path, &options);
    for (int i = 0; i < LAYERS; i++) {
        assert_true(model->cache.scales.key[i * HEADS] == 1.0f);
        assert_true(model->cache.scales.key[i * HEADS + 1] == 0.0625f);
        assert_true(model->cache.scales.value[i * HEADS + 1] == 1.0f);
    }
    octavo_model_close(&model);
    hf_maker_end(&maker);
}

static void test_bad_checkpoints(void **state) {
    static const float wrong[] = {0.0f, -1.0f, NAN, INFINITY};
    const octavo_model_options options = kv_options(OCTAVO_DTYPE_FP8_E4M3);
    hf_maker maker;
    (void)state;
    start(&maker, "k_scale", "v_scale", 1);
    hf_maker_write(&maker);
    refused(maker.path, &options, OCTAVO_ERROR_FORMAT, "model.layers.1.self_attn.k_scale");
    hf_maker_end(&maker);
    for (int i = 0; i < 6; i++) {
        start(&maker, "k_scale", "v_scale", 1);
        hf_maker_add(&maker, "model.layers.1.self_attn.k_scale", "F32", "[]", &key_scale, 4);
        if (i < 4)
            hf_maker_add(&maker, "model.layers.1.self_attn.v_scale", "F32", "[]", &wrong[i], 4);
        else if (i == 4)
            hf_maker_add(&maker, "model.layers.1.self_attn.v_scale", "F32", "[3]", wrong, 12);
        else
            hf_maker_add(&maker, "model.layers.1.self_attn.v_scale", "I32", "[]", wrong, 4);
        hf_maker_write(&maker);
        refused(maker.path, &options, OCTAVO_ERROR_FORMAT, "model.layers.1.self_attn.v_scale");
        hf_maker_end(&maker);
    }
}

/* ---- of a calibration ---- */

/* Measures a run of the ids; how they are cut does not matter. */
static void calibrate(const char *path, int chunk, int threads) {
    octavo_model_options options = kv_options(OCTAVO_DTYPE_F32);
    octavo_calibration *calibration = NULL, *second = NULL;
    octavo_sequence *sequence = NULL;
    octavo_error error;
    int32_t ids[KV_N_IDS];
    options.chunk = chunk;
    options.threads = threads;
    octavo_model *model = kv_open(path, &options);
    kv_make_ids(ids, octavo_model_describe(model).vocabulary);
    hf_must(octavo_calibration_create(model, &calibration, &error), &error);
    assert_int_equal(octavo_calibration_create(model, &second, &error), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_calibration_write(calibration, file, &error), OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "nothing"));
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    hf_must(octavo_sequence_feed(sequence, ids, KV_N_IDS, OCTAVO_LOGITS_NONE, NULL, NULL, &error),
            &error);
    assert_int_equal(octavo_calibration_write(calibration, "/no/such/folder/s.json", &error),
                     OCTAVO_ERROR_IO);
    hf_must(octavo_calibration_write(calibration, file, &error), &error);
    octavo_calibration_destroy(&calibration);
    octavo_calibration_destroy(&calibration);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
}

/* In the first layer a cache whose slots keep their scales tells the magnitudes as well. */
static void check_first_layer(const char *path) {
    octavo_model_options options = kv_options(OCTAVO_DTYPE_INT8);
    octavo_sequence *sequence = NULL;
    octavo_error error;
    int32_t ids[KV_N_IDS];
    octavo_model *model = kv_open(path, &options);
    const octavo_model_facts facts = octavo_model_describe(model);
    json_t *json = hf_load_json(file);
    kv_make_ids(ids, facts.vocabulary);
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    hf_must(octavo_sequence_feed(sequence, ids, KV_N_IDS, OCTAVO_LOGITS_NONE, NULL, NULL, &error),
            &error);
    const int64_t page_bytes = model->cache.shape.page_elements;
    const int64_t head_bytes = page_bytes / facts.kv_heads;
    for (int64_t h = 0; h < facts.kv_heads; h++) {
        float top[2] = {0};
        for (int p = 0; p < KV_N_IDS; p++) {
            const uint8_t *scales = (const uint8_t *)octavo_kv_cache_layer(&model->cache, 0) +
                                    sequence->row[p / 16] * page_bytes + h * head_bytes +
                                    2 * (int64_t)16 * facts.head_width;
            for (int i = 0; i < 2; i++) {
                float scale;
                memcpy(&scale, scales + (16 * i + p % 16) * 4, sizeof scale);
                top[i] = fmaxf(top[i], scale * 127.0f);
            }
        }
        for (int i = 0; i < 2; i++) {
            const double measured = json_number_value(json_array_get(
                json_array_get(json_object_get(json, i ? "values" : "keys"), 0), (size_t)h));
            assert_true(fabs(measured / (double)top[i] - 1.0) < 1e-5);
        }
    }
    json_decref(json);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
}

static void test_calibration(void **state) {
    static const char *const models[] = {TEST_DATA "/models/gemma3",
                                         TEST_DATA "/models/gpt_oss_mxfp4",
                                         TEST_DATA "/models/deepseek_v3"};
    static const double most[] = {0.6, 0.9, 0.12};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        calibrate(models[i], 512, 1);
        json_t *once = hf_load_json(file);
        calibrate(models[i], 7, 3);
        json_t *again = hf_load_json(file);
        assert_true(json_equal(once, again));
        json_decref(once);
        json_decref(again);
        if (i < 2) check_first_layer(models[i]); /* who have values beside their keys */
        octavo_model_options options = kv_options(OCTAVO_DTYPE_F32);
        const int32_t vocabulary = kv_run(models[i], &options, want);
        for (int t = 0; t < 3; t++) {
            options = kv_options(kv_dtypes[t]);
            options.kv_scales = file;
            kv_run(models[i], &options, got);
            const double divergence = kv_divergence(want, got, vocabulary);
            if (!(divergence > 0.0 && divergence < most[t]))
                fail_msg("%s, %s: %g from f32", models[i], octavo_dtype_name(kv_dtypes[t]),
                         divergence);
        }
    }
}

/* Layers that read another one's keys and values take its scales, and have none of their own. */
static void test_shared(void **state) {
    hf_maker maker;
    octavo_model_options options = kv_options(OCTAVO_DTYPE_INT8);
    (void)state;
    hf_maker_start(&maker, "llama_tied");
    hf_maker_set(&maker, "num_kv_shared_layers", "1");
    hf_maker_write(&maker);
    calibrate(maker.path, 512, 1);
    json_t *json = hf_load_json(file);
    options.kv_scales = file;
    octavo_model *model = kv_open(maker.path, &options);
    assert_int_equal(json_array_size(json_object_get(json, "keys")), LAYERS - 1);
    assert_int_equal(model->cache.scales.n_layers, LAYERS - 1);
    octavo_model_close(&model);
    json_decref(json);
    const int32_t vocabulary = kv_run(maker.path, &options, got);
    options = kv_options(OCTAVO_DTYPE_F32);
    kv_run(maker.path, &options, want);
    const double divergence = kv_divergence(want, got, vocabulary);
    assert_true(divergence > 0.0 && divergence < 0.05);
    hf_maker_end(&maker);
}

/* The same bits with scales that were known beforehand, too. */
static void test_same_bits(void **state) {
    static const struct {
        int threads, chunk, page_size;
    } settings[] = {{1, 1, 16}, {2, 7, 5}, {3, 64, 8}, {2, 50, 64}};
    const char *path = TEST_DATA "/models/gemma3";
    (void)state;
    calibrate(path, 512, 1);
    for (int t = 0; t < 3; t++) {
        octavo_model_options options = kv_options(kv_dtypes[t]);
        options.kv_scales = file;
        const int32_t vocabulary = kv_run(path, &options, want);
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            options.threads = settings[i].threads;
            options.chunk = settings[i].chunk;
            options.page_size = settings[i].page_size;
            kv_run(path, &options, got);
            assert_true(same(vocabulary));
        }
    }
}

#define HEADER(layers, rest)                                                                       \
    "{\"kv_scales\": 1, \"architecture\": \"llama\", \"layers\": " layers ", \"width\": 48, "      \
    "\"kv_heads\": 2, \"head_width\": 16, \"vocabulary\": 300" rest "}"

static void test_bad_files(void **state) {
    static const struct {
        const char *text;
        octavo_status status;
        const char *culprit;
    } cases[] = {
        {"", OCTAVO_ERROR_FORMAT, "empty"},
        {"{", OCTAVO_ERROR_FORMAT, "JSON"},
        {"[1]", OCTAVO_ERROR_FORMAT, "object"},
        {"{}", OCTAVO_ERROR_FORMAT, "\"kv_scales\""},
        {"{\"kv_scales\": 2}", OCTAVO_ERROR_FORMAT, "version"},
        {"{\"kv_scales\": 1}", OCTAVO_ERROR_FORMAT, "\"architecture\""},
        {"{\"kv_scales\": 1, \"architecture\": \"gemma3\"}", OCTAVO_ERROR_INVALID, "another model"},
        {"{\"kv_scales\": 1, \"architecture\": \"llama\"}", OCTAVO_ERROR_FORMAT, "\"layers\""},
        {HEADER("2", ""), OCTAVO_ERROR_INVALID, "\"layers\""},
        {HEADER("2.5", ""), OCTAVO_ERROR_FORMAT, "\"layers\""},
        {HEADER("3", ""), OCTAVO_ERROR_FORMAT, "\"keys\""},
        {HEADER("3", ", \"keys\": [[1, 2]]"), OCTAVO_ERROR_FORMAT, "\"keys\""},
        {HEADER("3", ", \"keys\": [[1, 2], [0, 0], [1]]"), OCTAVO_ERROR_FORMAT, "\"keys\""},
        {HEADER("3", ", \"keys\": [[1, 2], [0, 0], [1, \"2\"]]"), OCTAVO_ERROR_FORMAT, "\"keys\""},
        {HEADER("3", ", \"keys\": [[1, 2], [0, 0], [1, -2]]"), OCTAVO_ERROR_FORMAT, "magnitude"},
        {HEADER("3", ", \"keys\": [[1, 2], [0, 0], [1, 1e300]]"), OCTAVO_ERROR_FORMAT, "magnitude"},
        {HEADER("3", ", \"keys\": [[1, 2], [0, 0], [1, 0]]"), OCTAVO_ERROR_FORMAT, "\"values\""},
    };
    octavo_model_options options = kv_options(OCTAVO_DTYPE_INT8);
    (void)state;
    options.kv_scales = "/no/such/file.json";
    refused(TEST_DATA "/models/llama_tied", &options, OCTAVO_ERROR_NOT_FOUND, "/no/such/file.json");
    options.kv_scales = file;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(cases[i].text);
        refused(TEST_DATA "/models/llama_tied", &options, cases[i].status, cases[i].culprit);
        refused(TEST_DATA "/models/llama_tied", &options, cases[i].status, file);
    }
    put_file(
        HEADER("3", ", \"keys\": [[1, 2], [0, 0], [1, 0]], \"values\": [[1, 2], [0, 1], [3, 4]]"));
    octavo_model *model = kv_open(TEST_DATA "/models/llama_tied", &options);
    octavo_model_close(&model);
    options.kv_dtype = OCTAVO_DTYPE_BF16;
    refused(TEST_DATA "/models/llama_tied", &options, OCTAVO_ERROR_INVALID, "kv-scales");
    options.kv_dtype = OCTAVO_KV_DTYPE_AUTO;
    refused(TEST_DATA "/models/llama_tied", &options, OCTAVO_ERROR_INVALID, "kv-scales");
}

static int make_file(void **state) {
    const int descriptor = mkstemp(file);
    (void)state;
    return descriptor < 0 ? -1 : close(descriptor);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each),        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_heads),       cmocka_unit_test(test_bad_checkpoints),
        cmocka_unit_test(test_calibration), cmocka_unit_test(test_shared),
        cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
