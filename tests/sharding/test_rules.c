/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of named tensors and its lookup.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "base/map.h"
#include "rule_text.h"

#include <string.h>

/* Every rule of the table is legal and prints as it stands there; names end in their axes. */
static void test_table(void **unused) {
    (void)unused;
    for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++) {
        const octavo_named_tensor *tensor = octavo_named_tensor_at(i);
        const char *const rules[] = {tensor->prefill, tensor->generate};
        for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
            octavo_spec spec;
            octavo_error error = {0};
            char text[OCTAVO_SPEC_TEXT];
            if (octavo_spec_parse(rules[phase], tensor->axes, tensor->name, &spec, &error))
                fail_msg("%s", error.message);
            octavo_spec_print(&spec, text);
            assert_string_equal(text, rules[phase]);
        }
        if (strncmp(tensor->name, "norm_", 5) != 0)
            assert_string_equal(strrchr(tensor->name, '_') + 1, tensor->axes);
        assert_int_equal(octavo_named_tensor_find(tensor->name), i);
        int nearest[OCTAVO_NEAREST];
        octavo_named_tensor_nearest(tensor->name, nearest);
        assert_int_equal(nearest[0], i);
    }
    assert_int_equal(octavo_named_tensor_find("ffw_weight"), -1);
}

static void test_nearest(void **unused) {
    (void)unused;
    static const char *const pairs[][2] = {
        {"ffw_weight_dff", "ffw_weight_df"},
        {"activations_td", "activation_td"},
        {"moe_weight_edf", "moe_weights_edf"},
        {"logits_vt", "logits_tv"},
    };
    int nearest[OCTAVO_NEAREST];
    for (size_t i = 0; i < OCTAVO_COUNT(pairs); i++) {
        octavo_named_tensor_nearest(pairs[i][0], nearest);
        assert_string_equal(octavo_named_tensor_at(nearest[0])->name, pairs[i][1]);
    }
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    octavo_named_tensor_nearest(longest, nearest);
    for (int i = 0; i < OCTAVO_NEAREST; i++)
        assert_in_range(nearest[i], 0, OCTAVO_NAMED_TENSORS - 1);
    assert_true(nearest[0] != nearest[1] && nearest[1] != nearest[2]);
}

/* The names and rules that the format has always had, from its own file. */
static void test_golden(void **unused) {
    (void)unused;
    static const char *const phases[] = {"prefill", "generate"};
    json_t *golden = json_load_file(TEST_DATA "/sharding/rules.json", JSON_REJECT_DUPLICATES, NULL);
    octavo_rules rules;
    assert_non_null(golden);
    octavo_rules_init(&rules);
    for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
        const char *name;
        json_t *rule;
        json_t *all = json_object_get(golden, phases[phase]);
        assert_int_equal(json_object_size(all), 26);
        json_object_foreach(all, name, rule) {
            const int tensor = octavo_named_tensor_find(name);
            octavo_spec expected;
            octavo_error error = {0};
            if (tensor < 0) fail_msg("%s is not in the table", name);
            if (octavo_spec_from_json(rule, octavo_named_tensor_at(tensor)->axes, name, &expected,
                                      &error))
                fail_msg("%s", error.message);
            if (!octavo_spec_equal(&expected, &rules.base[phase][tensor]))
                fail_msg("%s of %s is another", phases[phase], name);
        }
    }
    octavo_rules_deinit(&rules);
    json_decref(golden);
}

/* docs/sharding.md has a line for each tensor, with these rules. */
static void test_documented(void **unused) {
    (void)unused;
    octavo_map page = {0};
    octavo_error error = {0};
    if (octavo_map_open(&page, TEST_DATA "/../../docs/sharding.md", &error))
        fail_msg("%s", error.message);
    char *text = octavo_strndup((const char *)page.data, page.size);
    octavo_map_close(&page);
    assert_non_null(text);
    for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++) {
        const octavo_named_tensor *tensor = octavo_named_tensor_at(i);
        char begin[80], end[160];
        snprintf(begin, sizeof begin, "\n| `%s` | %s | ", tensor->name,
                 tensor->is_weight ? "weight" : "activation");
        snprintf(end, sizeof end, " | %s | %s |", tensor->prefill, tensor->generate);
        const char *line = strstr(text, begin);
        if (!line) fail_msg("docs/sharding.md lacks %s", tensor->name);
        const size_t length = strcspn(line + 1, "\n") + 1, tail = strlen(end);
        if (length < tail || memcmp(line + length - tail, end, tail) != 0)
            fail_msg("docs/sharding.md has other rules for %s", tensor->name);
    }
    /* and its example of a file is one */
    const char *json = strstr(text, "```json\n");
    octavo_rules rules;
    octavo_rules_init(&rules);
    assert_non_null(json);
    json += strlen("```json\n");
    const char *end = strstr(json, "```");
    assert_non_null(end);
    if (octavo_rules_parse(&rules, json, (size_t)(end - json), "docs/sharding.md", &error))
        fail_msg("%s", error.message);
    assert_int_equal(rules.n_overrides, 6);
    octavo_rules_deinit(&rules);
    octavo_free(text);
}

/* Weights lie as the generate rule says, whatever the table says of prefill. */
static void test_find(void **unused) {
    (void)unused;
    const octavo_phase prefill = OCTAVO_PHASE_PREFILL, generate = OCTAVO_PHASE_GENERATE;
    const octavo_block_kind dense = OCTAVO_BLOCK_DENSE;
    octavo_rules rules;
    octavo_spec spec = {.n = -1};
    octavo_rules_init(&rules);
    assert_string_equal(rule_of(&rules, prefill, "ffw_hidden_tf", 0, dense).text, "(-, -)");
    assert_string_equal(rule_of(&rules, generate, "ffw_hidden_tf", 0, dense).text,
                        "(data, model+expert)");
    assert_string_equal(rule_of(&rules, prefill, "ffw_weight_df", 0, dense).text,
                        "(-, model+expert)");
    assert_string_equal(rule_of(&rules, generate, "ffw_weight_df", 0, dense).text,
                        "(-, model+expert)");
    assert_false(octavo_rules_find(&rules, prefill, "ffw", 0, dense, &spec, NULL));
    assert_int_equal(spec.n, -1);
    octavo_rules_deinit(&rules);
    octavo_rules_deinit(&rules);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),  cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_golden), cmocka_unit_test(test_documented),
        cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
