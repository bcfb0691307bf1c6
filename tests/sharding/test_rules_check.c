/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules that would split a norm's sum wrongly; and the dumps.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "sharding/rules.h"

#include <string.h>

#define RULES(logical_rules) "{\"sharding\": {\"logical_rules\": " logical_rules "}}"

static void init(octavo_rules *rules, const char *json) {
    octavo_error error = {0};
    octavo_rules_init(rules);
    if (octavo_rules_parse(rules, json, strlen(json), "a.json", &error))
        fail_msg("%s: %s", json, error.message);
}

static const octavo_mesh twos = {{2, 2, 2, 2}};

static void assert_norms(const char *json, const octavo_mesh *mesh, const char *message) {
    octavo_rules rules;
    octavo_error error = {0};
    init(&rules, json);
    octavo_status status = octavo_rules_check_norms(&rules, mesh, &error);
    assert_string_equal(error.message, message);
    assert_int_equal(status, *message ? OCTAVO_ERROR_INVALID : OCTAVO_OK);
    octavo_rules_deinit(&rules);
}

#define BECAUSE(axis, tokens)                                                                      \
    " cuts a norm's sum over \"" axis "\", which already splits the tokens of " tokens             \
    ", so that ranks with different tokens would be added; split norm_scale over another axis or " \
    "leave it whole (null)"

static void test_norms(void **unused) {
    (void)unused;
    assert_norms("{}", &twos, "");
    assert_norms(RULES("{\"all\": {\"norm_scale\": [\"model\"]}}"), &twos, "");
    assert_norms(
        RULES("{\"all\": {\"norm_scale\": [\"data\"]}}"), &twos,
        "rules (prefill): norm_scale (data)" BECAUSE("data", "activation_attention_td (data, -)"));
    assert_norms(RULES("{\"prefill\": {\"norm_scale\": [[\"model\", \"data\"]]}}"), &twos,
                 "rules (prefill): norm_scale (model+data)" BECAUSE(
                     "data", "activation_attention_td (data, -)"));
    /* by the tokens of one phase only */
    assert_norms(RULES("{\"all\": {\"norm_scale\": [\"seq\"]}}"), &twos, "");
    assert_norms(
        RULES("{\"all\": {\"norm_scale\": [\"seq\"]},"
              " \"generate\": {\"activation_td\": [[\"data\", \"seq\"], null]}}"),
        &twos, "rules (generate): norm_scale (seq)" BECAUSE("seq", "activation_td (data+seq, -)"));
    assert_norms(RULES("{\"all\": {\"norm_scale\": [\"seq\"]},"
                       " \"prefill\": {\"prelogit_td\": [\"seq\", null]}}"),
                 &twos, "rules (prefill): norm_scale (seq)" BECAUSE("seq", "prelogit_td (seq, -)"));
    /* the scale lies where generate puts it: in prefill too */
    assert_norms(RULES("{\"generate\": {\"norm_scale\": [\"seq\"]},"
                       " \"prefill\": {\"activation_ffw_td\": [\"seq\", null]}}"),
                 &twos,
                 "rules (prefill): norm_scale (seq)" BECAUSE("seq", "activation_ffw_td (seq, -)"));
    /* an axis of one rank splits nothing */
    assert_norms(RULES("{\"all\": {\"norm_scale\": [\"data\"]}}"), &(octavo_mesh){{1, 2, 2, 2}},
                 "");
    assert_norms(RULES("{\"all\": {\"norm_scale\": [[\"model\", \"data\"]]}}"),
                 &(octavo_mesh){{1, 2, 2, 2}}, "");
}

static void test_norms_of_parts(void **unused) {
    (void)unused;
    assert_norms(RULES("{\"parts\": [{\"layers\": \"2-5\", \"all\": {\"norm_scale\": [\"seq\"]}},"
                       "{\"layers\": \"6-9\", \"all\": {\"activation_td\": [\"seq\", null]}}]}"),
                 &twos, "");
    assert_norms(
        RULES("{\"parts\": [{\"layers\": \"2-6\", \"all\": {\"norm_scale\": [\"seq\"]}},"
              "{\"layers\": \"6-9\", \"all\": {\"activation_td\": [\"seq\", null]}}]}"),
        &twos,
        "rules (prefill, layer 6): norm_scale (seq)" BECAUSE("seq", "activation_td (seq, -)"));
    /* mended in layer 0 only */
    assert_norms(RULES("{\"all\": {\"norm_scale\": [\"seq\"], \"activation_td\": [\"seq\", null]},"
                       " \"parts\": [{\"layers\": \"0\", \"all\": {\"norm_scale\": null}},"
                       " {\"layers\": \"2-4095\", \"all\": {\"norm_scale\": null}}]}"),
                 &twos,
                 "rules (prefill): norm_scale (seq)" BECAUSE("seq", "activation_td (seq, -)"));
    assert_norms(RULES("{\"all\": {\"norm_scale\": [\"seq\"]},"
                       " \"parts\": [{\"block\": \"moe\", \"generate\":"
                       " {\"activation_ffw_td\": [\"seq\", null]}}]}"),
                 &twos,
                 "rules (generate): norm_scale (seq)" BECAUSE("seq", "activation_ffw_td (seq, -)"));
}

static void assert_dump(const octavo_rules *rules, bool whole, const char *expected) {
    octavo_buffer out = {0};
    if (whole)
        octavo_rules_dump_table(rules, &out);
    else
        octavo_rules_dump_overrides(rules, &out);
    assert_false(out.failed);
    if (whole && !strstr(out.data, expected)) fail_msg("%s is not in %s", expected, out.data);
    if (!whole) assert_string_equal(out.data, expected);
    octavo_buffer_deinit(&out);
}

static void test_dump(void **unused) {
    (void)unused;
    octavo_rules rules;
    init(&rules, "{}");
    assert_dump(&rules, false, "no overrides\n");
    octavo_rules_deinit(&rules);

    init(&rules,
         RULES("{\"all\": {\"activation_td\": [\"seq\", null]},"
               " \"prefill\": {\"ffw_weight_df\": null},"
               " \"parts\": [{\"layers\": \"0-3,8\", \"block\": \"moe\","
               " \"generate\": {\"moe_weights_edf\": [[\"expert\", \"model\"], null, null]}},"
               " {\"block\": \"attention\", \"all\": {\"query_tnh\": null}}]}"));
    assert_int_equal(
        octavo_rules_replace(&rules, NULL, "{\"logits_tv\": [null, \"model\"]}", NULL, NULL),
        OCTAVO_OK);
    assert_dump(&rules, false,
                "phase     tensor                       override                 from\n"
                "generate  activation_td                (seq, -)                 file\n"
                "generate  moe_weights_edf              (expert+model, -, -)     file: layers "
                "0-3,8, moe blocks\n"
                "generate  query_tnh                    (-, -, -)                file: attention "
                "blocks\n"
                "prefill   logits_tv                    (-, model)               program\n");
    assert_dump(&rules, true,
                "tensor                       kind       prefill                  generate\n"
                "activation_attention_td      activation (data, -)                (data, -)\n");
    assert_dump(&rules, true,
                "activation_td                activation (-, -)                   (seq, -) *\n");
    assert_dump(&rules, true,
                "logits_tv                    activation (-, model) *             (data, "
                "model+expert)\n");
    assert_dump(&rules, true,
                "ffw_weight_df                weight     (-, model+expert)        (-, "
                "model+expert)\n");
    assert_dump(&rules, true,
                "\nphase     tensor                       override                 from\n"
                "generate  moe_weights_edf              (expert+model, -, -)     file: layers ");
    octavo_rules_deinit(&rules);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_norms_of_parts),
        cmocka_unit_test(test_dump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
