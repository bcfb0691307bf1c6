/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules from JSON: which override holds where, and what the program's replace.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "rule_text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RULES(logical_rules) "{\"sharding\": {\"logical_rules\": " logical_rules "}}"

static const octavo_phase prefill = OCTAVO_PHASE_PREFILL, generate = OCTAVO_PHASE_GENERATE;
static const octavo_block_kind none = OCTAVO_BLOCK_ANY, attention = OCTAVO_BLOCK_ATTENTION,
                               dense = OCTAVO_BLOCK_DENSE, moe = OCTAVO_BLOCK_MOE;

static void init(octavo_rules *rules, const char *json) {
    octavo_error error = {0};
    octavo_rules_init(rules);
    if (octavo_rules_parse(rules, json, strlen(json), "a.json", &error))
        fail_msg("%s: %s", json, error.message);
}

#define assert_rule(phase, tensor, layer, kind, expected)                                          \
    assert_string_equal(rule_of(&rules, phase, tensor, layer, kind).text, expected)

/* `all` first, then the phase, whatever their order in the file. */
static void test_order(void **unused) {
    (void)unused;
    octavo_rules rules;
    init(&rules,
         RULES("{\"generate\": {\"activation_td\": [\"model\", null]},"
               " \"prefill\": {\"logits_tv\": [null, \"model\"]},"
               " \"all\": {\"activation_td\": [\"seq\", null], \"logits_tv\": [\"seq\", null]}}"));
    assert_rule(prefill, "activation_td", 3, dense, "(seq, -) *");
    assert_rule(generate, "activation_td", 3, dense, "(model, -) *");
    assert_rule(prefill, "logits_tv", -1, none, "(-, model) *");
    assert_rule(generate, "logits_tv", -1, none, "(seq, -) *");
    assert_rule(generate, "prelogit_td", -1, none, "(data, -)");
    octavo_rules_deinit(&rules);
}

/* A weight lies as generate says; an override for prefill moves it in that phase. */
static void test_weights(void **unused) {
    (void)unused;
    octavo_rules rules;
    init(&rules, RULES("{\"prefill\": {\"ffw_weight_df\": null},"
                       " \"generate\": {\"ffw_weight_fd\": [\"expert\", \"model\"]},"
                       " \"all\": {\"attn_o_weight_nhd\": [null, null, \"model\"]}}"));
    assert_rule(prefill, "ffw_weight_df", 0, dense, "(-, -) *");
    assert_rule(generate, "ffw_weight_df", 0, dense, "(-, model+expert)");
    assert_rule(prefill, "ffw_weight_fd", 0, dense, "(expert, model) *");
    assert_rule(generate, "ffw_weight_fd", 0, dense, "(expert, model) *");
    assert_rule(prefill, "attn_o_weight_nhd", 0, attention, "(-, -, model) *");
    assert_rule(generate, "attn_o_weight_nhd", 0, attention, "(-, -, model) *");
    octavo_rules_deinit(&rules);
}

static void test_parts(void **unused) {
    (void)unused;
    octavo_rules rules;
    init(&rules, RULES("{\"all\": {\"activation_td\": [\"seq\", null]}, \"parts\": ["
                       "{\"layers\": \"0-3,8\", \"all\": {\"activation_td\": [null, \"model\"]}},"
                       "{\"layers\": \"2\", \"block\": \"moe\","
                       " \"generate\": {\"activation_td\": [\"expert\", null]}},"
                       "{\"block\": \"dense\", \"prefill\": {\"ffw_hidden_tf\": [null, \"seq\"]}},"
                       "{\"all\": {\"logits_tv\": [null, \"seq\"]}}]}"));
    assert_rule(prefill, "activation_td", 0, dense, "(-, model) *");
    assert_rule(prefill, "activation_td", 3, none, "(-, model) *");
    assert_rule(prefill, "activation_td", 4, dense, "(seq, -) *");
    assert_rule(prefill, "activation_td", 8, moe, "(-, model) *");
    assert_rule(prefill, "activation_td", 9, moe, "(seq, -) *");
    assert_rule(prefill, "activation_td", -1, none, "(seq, -) *");
    assert_rule(prefill, "activation_td", 2, moe, "(-, model) *");
    assert_rule(generate, "activation_td", 2, moe, "(expert, -) *");
    assert_rule(generate, "activation_td", 2, dense, "(-, model) *");
    assert_rule(generate, "activation_td", 1, moe, "(-, model) *");
    assert_rule(prefill, "ffw_hidden_tf", 7, dense, "(-, seq) *");
    assert_rule(generate, "ffw_hidden_tf", 7, dense, "(data, model+expert)");
    assert_rule(generate, "logits_tv", -1, none, "(-, seq) *");
    octavo_error error = {0};
    assert_int_equal(octavo_rules_check_layers(&rules, 9, &error), OCTAVO_OK);
    assert_int_equal(octavo_rules_check_layers(&rules, 8, &error), OCTAVO_ERROR_INVALID);
    assert_string_equal(error.message,
                        "rules (sharding.logical_rules.parts): layer 8 for \"activation_td\" is "
                        "not there; the model's are 0 to 7");
    octavo_rules_deinit(&rules);
}

static void test_strategy(void **unused) {
    (void)unused;
    octavo_rules rules;
    init(&rules, "{}");
    assert_false(rules.has_strategy);
    octavo_rules_deinit(&rules);
    init(&rules, "{\"sharding\": {\"sharding_strategy\": {\"tensor_parallelism\": 4, "
                 "\"sequence_parallelism\": -1, \"data_parallelism\": 2}}}");
    assert_true(rules.has_strategy);
    assert_int_equal(rules.degrees[OCTAVO_MESH_MODEL], 4);
    assert_int_equal(rules.degrees[OCTAVO_MESH_SEQ], -1);
    assert_int_equal(rules.degrees[OCTAVO_MESH_DATA], 2);
    assert_int_equal(rules.degrees[OCTAVO_MESH_EXPERT], 1);
    octavo_rules_deinit(&rules);
}

/* A base table given for a phase has what it names; the rest is whole, and obliges nobody. */
static void test_default_rules(void **unused) {
    (void)unused;
    octavo_rules rules;
    init(&rules, "{\"sharding\": {\"default_rules\": {\"generate\": "
                 "{\"activation_td\": [\"seq\", null]}},"
                 " \"logical_rules\": {\"all\": {\"query_tnh\": [null, \"seq\", null]}}}}");
    assert_rule(generate, "activation_td", 0, dense, "(seq, -)");
    assert_rule(generate, "ffw_weight_df", 0, dense, "(-, -)");
    assert_rule(generate, "query_tnh", 0, attention, "(-, seq, -) *");
    assert_rule(prefill, "attn_o_tnh", 0, attention, "(data, model, -)");
    octavo_rules_deinit(&rules);
}

static void replace(octavo_rules *rules, const char *all, const char *for_prefill,
                    const char *for_generate) {
    octavo_error error = {0};
    init(rules, RULES("{\"all\": {\"activation_td\": [\"seq\", null], \"logits_tv\": null},"
                      " \"parts\": [{\"layers\": \"1\", \"prefill\": {\"query_tnh\": null}}]}"));
    if (octavo_rules_replace(rules, all, for_prefill, for_generate, &error))
        fail_msg("%s", error.message);
}

/* In a phase that the program speaks of, nothing of the file is left. */
static void test_replace(void **unused) {
    (void)unused;
    octavo_rules rules;
    replace(&rules, NULL, NULL, NULL);
    assert_rule(prefill, "activation_td", 0, dense, "(seq, -) *");
    assert_rule(prefill, "query_tnh", 1, attention, "(-, -, -) *");
    octavo_rules_deinit(&rules);

    replace(&rules, NULL, "{\"logits_tv\": [null, \"model\"]}", NULL);
    assert_rule(prefill, "activation_td", 0, dense, "(-, -)");
    assert_rule(prefill, "logits_tv", -1, none, "(-, model) *");
    assert_rule(prefill, "query_tnh", 1, attention, "(data, model, -)");
    assert_rule(generate, "activation_td", 0, dense, "(seq, -) *");
    assert_rule(generate, "logits_tv", -1, none, "(-, -) *");
    octavo_rules_deinit(&rules);

    replace(&rules, NULL, NULL, "{}");
    assert_rule(generate, "activation_td", 0, dense, "(data, -)");
    assert_rule(prefill, "query_tnh", 1, attention, "(-, -, -) *");
    octavo_rules_deinit(&rules);

    replace(&rules, "{\"logits_tv\": [\"model\", null]}", NULL, "{\"logits_tv\": [\"seq\", null]}");
    assert_rule(prefill, "activation_td", 0, dense, "(-, -)");
    assert_rule(prefill, "logits_tv", -1, none, "(model, -) *");
    assert_rule(generate, "logits_tv", -1, none, "(seq, -) *");
    assert_rule(prefill, "query_tnh", 1, attention, "(data, model, -)");
    octavo_rules_deinit(&rules);
}

static void test_read(void **unused) {
    (void)unused;
    char path[] = "/tmp/octavo_rules_XXXXXX", missing[64];
    const char text[] = RULES("{\"all\": {\"norm_scale\": [\"seq\"]}}");
    octavo_rules rules;
    octavo_error error = {0};
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    octavo_rules_init(&rules);
    assert_int_equal(octavo_rules_read(&rules, path, &error), OCTAVO_OK);
    assert_rule(generate, "norm_scale", 0, attention, "(seq) *");
    octavo_rules_deinit(&rules);

    /* a gigabyte, of holes */
    assert_int_equal(ftruncate(file, (off_t)1 << 30), 0);
    octavo_rules_init(&rules);
    assert_int_equal(octavo_rules_read(&rules, path, &error), OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, path));
    assert_non_null(strstr(error.message, "1073741824 bytes are more than rules may have"));
    close(file);
    unlink(path);
    snprintf(missing, sizeof missing, "%s.json", path);
    assert_int_equal(octavo_rules_read(&rules, missing, &error), OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, missing));
    assert_int_equal(octavo_rules_read(&rules, "/", &error), OCTAVO_ERROR_IO);
    octavo_rules_deinit(&rules);
}

static uint32_t drawn(uint32_t *seed, uint32_t n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % n;
}

/* Random legal overrides: what is found is what was written, in any phase. */
static void test_random(void **unused) {
    (void)unused;
    uint32_t seed = 2;
    for (int round = 0; round < 500; round++) {
        static const char *const groups[] = {"all", "prefill", "generate"};
        const int tensor = (int)drawn(&seed, OCTAVO_NAMED_TENSORS);
        const octavo_named_tensor *named = octavo_named_tensor_at(tensor);
        char json[1024], expected[2][OCTAVO_SPEC_TEXT + 8] = {"", ""};
        size_t at = (size_t)snprintf(json, sizeof json, "{\"sharding\": {\"logical_rules\": {");
        octavo_rules rules;
        octavo_rules_init(&rules);
        for (int phase = 0; phase < 2; phase++)
            snprintf(expected[phase], sizeof expected[phase], "%s",
                     rule_of(&rules, (octavo_phase)phase, named->name, 0, none).text);
        octavo_rules_deinit(&rules);
        for (int group = 0; group < 3; group++) {
            char rule[OCTAVO_SPEC_TEXT + 8] = "(";
            at += (size_t)snprintf(json + at, sizeof json - at, "%s\"%s\": {\"%s\": [",
                                   group ? ", " : "", groups[group], named->name);
            const uint32_t first = drawn(&seed, OCTAVO_MESH_AXES);
            for (size_t i = 0; named->axes[i]; i++) {
                const char *name = octavo_mesh_axis_name((int)((first + i) % OCTAVO_MESH_AXES));
                const bool is_split = drawn(&seed, 2) == 1;
                at += (size_t)snprintf(json + at, sizeof json - at,
                                       is_split ? "%s\"%s\"" : "%snull", i ? ", " : "", name);
                snprintf(rule + strlen(rule), sizeof rule - strlen(rule), "%s%s", i ? ", " : "",
                         is_split ? name : "-");
            }
            at += (size_t)snprintf(json + at, sizeof json - at, "]}");
            strcat(rule, ") *");
            if (group != 2) memcpy(expected[prefill], rule, sizeof rule);
            if (group != 1) memcpy(expected[generate], rule, sizeof rule);
        }
        snprintf(json + at, sizeof json - at, "}}}");
        init(&rules, json);
        for (int phase = 0; phase < 2; phase++)
            assert_rule((octavo_phase)phase, named->name, 0, none, expected[phase]);
        octavo_rules_deinit(&rules);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),         cmocka_unit_test(test_weights),
        cmocka_unit_test(test_parts),         cmocka_unit_test(test_strategy),
        cmocka_unit_test(test_default_rules), cmocka_unit_test(test_replace),
        cmocka_unit_test(test_read),          cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
