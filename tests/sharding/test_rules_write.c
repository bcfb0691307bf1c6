/* SPDX-License-Identifier: Apache-2.0
 *
 * Overrides as JSON again: read back, they hold for the same tensors, layers, blocks and phases.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "rule_text.h"

#include <string.h>

static void init(octavo_rules *rules, const char *json, size_t size) {
    octavo_error error = {0};
    octavo_rules_init(rules);
    if (octavo_rules_parse(rules, json, size, "a.json", &error))
        fail_msg("%.*s: %s", (int)size, json, error.message);
}

/* A file with the overrides of `rules`. */
static octavo_buffer written(const octavo_rules *rules) {
    octavo_buffer out = {0};
    octavo_buffer_puts(&out, "{\"sharding\": {\"logical_rules\": ");
    octavo_rules_dump_json(rules, &out);
    octavo_buffer_puts(&out, "}}");
    assert_false(out.failed);
    return out;
}

static void assert_written(const char *json, const char *prefill, const char *expected) {
    octavo_rules rules;
    init(&rules, json, strlen(json));
    assert_int_equal(octavo_rules_replace(&rules, NULL, prefill, NULL, NULL), OCTAVO_OK);
    octavo_buffer out = {0};
    octavo_rules_dump_json(&rules, &out);
    assert_string_equal(out.data, expected);
    octavo_buffer_deinit(&out);
    octavo_rules_deinit(&rules);
}

static void test_text(void **unused) {
    (void)unused;
    assert_written("{}", NULL, "{}");
    assert_written("{\"sharding\": {\"logical_rules\": {"
                   "\"all\": {\"logits_tv\": null, \"query_tnh\": [\"seq\", [\"model\", \"data\"], "
                   "[]]}, \"generate\": {\"logits_tv\": [\"seq\", null]},"
                   "\"parts\": [{}, {\"block\": \"moe\", \"layers\": \"1-1,3-4\", \"all\": "
                   "{\"norm_scale\": \"seq\"}}, {\"prefill\": {\"logits_tv\": null}}]}}}",
                   NULL,
                   "{\"all\": {\"query_tnh\": [\"seq\", [\"model\", \"data\"], null]}, "
                   "\"prefill\": {\"logits_tv\": [null, null]}, "
                   "\"generate\": {\"logits_tv\": [\"seq\", null]}, "
                   "\"parts\": [{\"layers\": \"1,3-4\", \"block\": \"moe\", "
                   "\"all\": {\"norm_scale\": [\"seq\"]}}, "
                   "{\"prefill\": {\"logits_tv\": [null, null]}}]}");
    assert_written("{\"sharding\": {\"logical_rules\": {\"all\": {\"logits_tv\": null},"
                   " \"parts\": [{\"layers\": \"2\", \"all\": {\"query_tnh\": null}}]}}}",
                   "{\"logits_tv\": [\"seq\", null]}",
                   "{\"prefill\": {\"logits_tv\": [\"seq\", null]}, "
                   "\"generate\": {\"logits_tv\": [null, null]}, "
                   "\"parts\": [{\"layers\": \"2\", \"generate\": {\"query_tnh\": "
                   "[null, null, null]}}]}");
}

static uint32_t drawn(uint32_t *seed, uint32_t n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % n;
}

/* {"TENSOR": RULE} for some tensors that may stand in these blocks; 0: in any. */
static void put_random(uint32_t *seed, int blocks, octavo_buffer *out) {
    bool is_first = true;
    octavo_buffer_putc(out, '{');
    for (int i = (int)drawn(seed, 8); i < OCTAVO_NAMED_TENSORS; i += 1 + (int)drawn(seed, 12)) {
        const octavo_named_tensor *tensor = octavo_named_tensor_at(i);
        if (blocks && !(tensor->blocks & blocks)) continue;
        const uint32_t first = drawn(seed, OCTAVO_MESH_AXES);
        octavo_buffer_printf(out, "%s\"%s\": [", is_first ? "" : ", ", tensor->name);
        is_first = false;
        for (uint32_t a = 0; tensor->axes[a]; a++) {
            const char *axis = octavo_mesh_axis_name((int)((first + a) % OCTAVO_MESH_AXES));
            octavo_buffer_printf(out, drawn(seed, 2) ? "%s\"%s\"" : "%snull", a ? ", " : "", axis);
        }
        octavo_buffer_putc(out, ']');
    }
    octavo_buffer_putc(out, '}');
}

static void put_random_groups(uint32_t *seed, int blocks, bool is_first, octavo_buffer *out) {
    static const char *const groups[] = {"all", "prefill", "generate"};
    for (size_t i = 0; i < OCTAVO_COUNT(groups); i++) {
        if (drawn(seed, 3) == 0) continue;
        octavo_buffer_printf(out, "%s\"%s\": ", is_first ? "" : ", ", groups[i]);
        put_random(seed, blocks, out);
        is_first = false;
    }
}

static void put_random_file(uint32_t *seed, octavo_buffer *out) {
    static const struct {
        const char *keys;
        int blocks;
    } parts[] = {
        {"\"layers\": \"0-2\"", OCTAVO_BLOCK_ATTENTION | OCTAVO_BLOCK_DENSE | OCTAVO_BLOCK_MOE},
        {"\"layers\": \"1,4-5\", \"block\": \"moe\"", OCTAVO_BLOCK_MOE},
        {"\"block\": \"attention\"", OCTAVO_BLOCK_ATTENTION},
        {"\"block\": \"dense\", \"layers\": \"5\"", OCTAVO_BLOCK_DENSE},
    };
    octavo_buffer_puts(out, "{\"sharding\": {\"logical_rules\": {\"parts\": [");
    for (size_t i = 0; i < OCTAVO_COUNT(parts); i++) {
        octavo_buffer_printf(out, "%s{%s", i ? ", " : "", parts[i].keys);
        put_random_groups(seed, parts[i].blocks, false, out);
        octavo_buffer_puts(out, "}");
    }
    octavo_buffer_puts(out, "]");
    put_random_groups(seed, 0, false, out);
    octavo_buffer_puts(out, "}}}");
}

static void assert_same(const octavo_rules *a, const octavo_rules *b) {
    static const octavo_block_kind kinds[] = {OCTAVO_BLOCK_ANY, OCTAVO_BLOCK_ATTENTION,
                                              OCTAVO_BLOCK_DENSE, OCTAVO_BLOCK_MOE};
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        for (int layer = -1; layer < 7; layer++)
            for (size_t kind = 0; kind < OCTAVO_COUNT(kinds); kind++)
                for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++) {
                    const char *name = octavo_named_tensor_at(i)->name;
                    assert_string_equal(
                        rule_of(a, (octavo_phase)phase, name, layer, kinds[kind]).text,
                        rule_of(b, (octavo_phase)phase, name, layer, kinds[kind]).text);
                }
}

static void test_round_trip(void **unused) {
    (void)unused;
    uint32_t seed = 3;
    for (int round = 0; round < 100; round++) {
        octavo_buffer json = {0}, program = {0};
        octavo_rules rules, again;
        octavo_error error = {0};
        put_random_file(&seed, &json);
        put_random(&seed, 0, &program);
        init(&rules, json.data, json.size);
        const uint32_t given = drawn(&seed, 4); /* of all, prefill, generate or none */
        if (octavo_rules_replace(&rules, given == 0 ? program.data : NULL,
                                 given == 1 ? program.data : NULL, given == 2 ? program.data : NULL,
                                 &error))
            fail_msg("%s: %s", program.data, error.message);
        octavo_buffer out = written(&rules);
        init(&again, out.data, out.size);
        assert_same(&rules, &again);
        octavo_buffer_deinit(&json);
        octavo_buffer_deinit(&program);
        octavo_buffer_deinit(&out);
        octavo_rules_deinit(&rules);
        octavo_rules_deinit(&again);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
