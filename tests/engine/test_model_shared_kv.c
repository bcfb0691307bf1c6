/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that attend to the keys and values of earlier ones: Gemma 3's last three of six to those
 * of the last layer before them that slides, or sees all, as they do.
 */
#include "base/compiler.h"
#include "hf_bits.h"
#include "hf_maker.h"

#define S "\"sliding_attention\""
#define F "\"full_attention\""

static void start(hf_maker *maker) {
    hf_maker_start(maker, "gemma3");
    hf_maker_set(maker, "layer_types", "[" S "," S "," F "," S "," S "," F "]");
    hf_maker_set(maker, "num_kv_shared_layers", "3");
}

static void check(const char *path, int n_layers) {
    octavo_model *model = hf_open(path, (hf_setting){OCTAVO_PRECISION_EXACT, 1, 512, 16});
    const octavo_model_facts facts = octavo_model_describe(model);
    assert_int_equal(facts.layers, 6);
    assert_int_equal(facts.position_bytes, n_layers * 2 * 16 * 4);
    octavo_model_close(&model);
}

/* The last layers have neither the weights nor the memory for keys and values. */
static void test_golden(void **state) {
    char link[128], name[128];
    hf_maker maker;
    (void)state;
    start(&maker);
    for (int i = 3; i < 6; i++) {
        static const char *const parts[] = {"k_proj", "v_proj", "k_norm"};
        for (size_t p = 0; p < OCTAVO_COUNT(parts); p++) {
            snprintf(name, sizeof name, "model.layers.%d.self_attn.%s.weight", i, parts[p]);
            snprintf(link, sizeof link, "elsewhere.%d.%s", i, parts[p]);
            hf_maker_rename(&maker, name, link);
        }
    }
    hf_maker_write(&maker);
    snprintf(link, sizeof link, "%s/golden", maker.path);
    assert_int_equal(symlink(TEST_DATA "/models/gemma3/golden_shared", link), 0);
    hf_check_folder(maker.path);
    hf_check_bits(maker.path);
    check(maker.path, 3);
    check(TEST_DATA "/models/gemma3", 6);
    unlink(link);
    hf_maker_end(&maker);
}

static void refused(const char *from, const char *key, const char *json, octavo_status want,
                    const char *culprit) {
    octavo_model *model = NULL;
    octavo_error error;
    hf_maker maker;
    hf_maker_start(&maker, from);
    hf_maker_set(&maker, "num_kv_shared_layers", "2");
    hf_maker_set(&maker, key, json);
    hf_maker_write(&maker);
    octavo_status status = octavo_model_open(maker.path, NULL, &model, &error);
    if (status != want || !strstr(error.message, culprit) ||
        !strstr(error.message, "config.json") || !strstr(error.message, "num_kv_shared_layers"))
        fail_msg("status %s, message \"%s\"", octavo_status_name(status), error.message);
    assert_null(model);
    hf_maker_end(&maker);
}

static void test_errors(void **state) {
    (void)state;
    refused("gemma3", "layer_types", "[" S "," S "," S "," S "," S "," F "]", OCTAVO_ERROR_FORMAT,
            "layer 5");
    refused("gemma3", "num_kv_shared_layers", "6", OCTAVO_ERROR_FORMAT, "6");
    refused("gemma3", "num_kv_shared_layers", "-1", OCTAVO_ERROR_FORMAT, "-1");
    refused("phi3", "num_kv_shared_layers", "1", OCTAVO_ERROR_UNSUPPORTED, "cannot be shared");
    refused("deepseek_v3", "num_kv_shared_layers", "1", OCTAVO_ERROR_UNSUPPORTED,
            "cannot be shared");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
