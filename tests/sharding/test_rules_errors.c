/* SPDX-License-Identifier: Apache-2.0
 *
 * Each message of a rules file, word for word: one line with the file, the place, the culprit and
 * what would be legal.
 */
#include "../unit.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "sharding/rules.h"

#include <string.h>

#define IN(key, value) "{\"sharding\": {\"" key "\": " value "}}"
#define RULE_HINT                                                                                  \
    "a rule is null or an array with null, \"axis\" or [\"axis\", \"axis\"] for each axis"
#define AT_ALL "rules (a.json): sharding.logical_rules.all"

static const struct {
    const char *json, *message;
} cases[] = {
    {"", "rules (a.json): there is nothing in it; write at least {}"},
    {"[]", "rules (a.json): this is no object; write {\"KEY\": ...} with \"sharding\""},
    {"{\"sharding\": 3}", "rules (a.json): sharding: this is no object; write {\"KEY\": ...} with "
                          "\"sharding_strategy\", \"logical_rules\" and \"default_rules\""},
    {"{\"logical_rules\": {}}",
     "rules (a.json): logical_rules: there is no such key; here may be \"sharding\""},
    {IN("logical_ruls", "{}"),
     "rules (a.json): sharding.logical_ruls: there is no such key; here may be "
     "\"sharding_strategy\", \"logical_rules\" and \"default_rules\""},
    {IN("logical_rules", "[]"),
     "rules (a.json): sharding.logical_rules: this is no object; write {\"KEY\": ...} with "
     "\"all\", \"prefill\", \"generate\" and \"parts\""},
    {IN("logical_rules", "{\"decode\": {}}"),
     "rules (a.json): sharding.logical_rules.decode: there is no such key; here may be \"all\", "
     "\"prefill\", \"generate\" and \"parts\""},
    {IN("logical_rules", "{\"all\": [1]}"), AT_ALL ": this is no object; write {\"TENSOR\": RULE}"},
    {IN("logical_rules", "{\"all\": {\"ffw_weight_dff\": null}}"),
     AT_ALL ".ffw_weight_dff: there is no tensor \"ffw_weight_dff\"; the names most alike are "
            "\"ffw_weight_df\", \"ffw_weight_fd\" and \"moe_weights_edf\""},
    {IN("logical_rules", "{\"all\": {\"a\\u001b[31m\\nb\": null}}"),
     AT_ALL ".a [31m b: there is no tensor \"a [31m b\"; the names most alike are \"vocab_vd\", "
            "\"vocab_dv\" and \"attn_o_tnh\""},
    {IN("logical_rules", "{\"all\": {\"logits_tv\": [\"tensor\", null]}}"),
     AT_ALL ".logits_tv: unknown mesh axis \"tensor\" for t; axes are data, expert, seq and model"},
    {IN("logical_rules", "{\"all\": {\"logits_tv\": [\"seq\", [\"model\", \"seq\"]]}}"),
     AT_ALL ".logits_tv: mesh axis \"seq\" splits axis 1 (t) and again axis 2 (v); it may split "
            "one axis of a tensor, once"},
    {IN("logical_rules", "{\"all\": {\"logits_tv\": [null]}}"),
     AT_ALL ".logits_tv: the number of entries, 1, is not that of the tensor's axes, 2 (tv); give "
            "one for each, null for a whole one"},
    {IN("logical_rules", "{\"all\": {\"logits_tv\": true}}"),
     AT_ALL ".logits_tv: this is no rule; " RULE_HINT " (tv)"},
    {IN("logical_rules", "{\"all\": {\"logits_tv\": [null, 7]}}"),
     AT_ALL ".logits_tv: the entry for axis 2 (v) is not made of names; " RULE_HINT},
    {IN("logical_rules", "{\"parts\": {}}"),
     "rules (a.json): sharding.logical_rules.parts: this is no array; write [{\"layers\": \"0-3\", "
     "\"all\": {...}}]"},
    {IN("logical_rules", "{\"parts\": [{}, null]}"),
     "rules (a.json): sharding.logical_rules.parts[1]: this is no object; write {\"KEY\": ...} "
     "with \"layers\", \"block\", \"all\", \"prefill\" and \"generate\""},
    {IN("logical_rules", "{\"parts\": [{\"layer\": \"3\"}]}"),
     "rules (a.json): sharding.logical_rules.parts[0].layer: there is no such key; here may be "
     "\"layers\", \"block\", \"all\", \"prefill\" and \"generate\""},
    {IN("logical_rules", "{\"parts\": [{\"layers\": 3}]}"),
     "rules (a.json): sharding.logical_rules.parts[0].layers: this is no text; write layers as "
     "\"3\", \"0-3\" or \"0-3,8\""},
    {IN("logical_rules", "{\"parts\": [{\"layers\": \"3-1\"}]}"),
     "rules (a.json): sharding.logical_rules.parts[0].layers: \"3-1\" are no layers; write them as "
     "\"3\", \"0-3\" or \"0-3,8\", numbered from 0 and below 4096"},
    {IN("logical_rules", "{\"parts\": [{\"block\": \"ffw\"}]}"),
     "rules (a.json): sharding.logical_rules.parts[0].block: \"ffw\" is no kind of block; there "
     "are \"attention\", \"dense\" and \"moe\""},
    {IN("logical_rules", "{\"parts\": [{\"block\": null}]}"),
     "rules (a.json): sharding.logical_rules.parts[0].block: this is no kind of block; there are "
     "\"attention\", \"dense\" and \"moe\""},
    {IN("logical_rules", "{\"parts\": [{\"layers\": \"0\", \"all\": {\"logits_tv\": null}}]}"),
     "rules (a.json): sharding.logical_rules.parts[0].all.logits_tv: \"logits_tv\" is in no layer; "
     "give its rule in \"all\", \"prefill\" or \"generate\" of logical_rules"},
    {IN("logical_rules", "{\"parts\": [{\"block\": \"moe\", \"all\": {\"ffw_weight_df\": null}}]}"),
     "rules (a.json): sharding.logical_rules.parts[0].all.ffw_weight_df: \"ffw_weight_df\" is in "
     "no moe block; it is in dense blocks, as shared experts are"},
    {IN("logical_rules", "{\"parts\": [{\"block\": \"dense\", \"all\": {\"query_tnh\": null}}]}"),
     "rules (a.json): sharding.logical_rules.parts[0].all.query_tnh: \"query_tnh\" is in no dense "
     "block; it is in attention blocks"},
    {IN("default_rules", "{\"all\": {}}"), "rules (a.json): sharding.default_rules.all: there is "
                                           "no such key; here may be \"prefill\" and \"generate\""},
    {IN("default_rules", "{\"prefill\": null}"),
     "rules (a.json): sharding.default_rules.prefill: this is no object; write {\"TENSOR\": RULE}"},
    {IN("default_rules", "{\"prefill\": {\"logits_tv\": []}}"),
     "rules (a.json): sharding.default_rules.prefill.logits_tv: the number of entries, 0, is not "
     "that of the tensor's axes, 2 (tv); give one for each, null for a whole one"},
    {IN("default_rules", "{\"prefill\": {\"logits\": null}}"),
     "rules (a.json): sharding.default_rules.prefill.logits: there is no tensor \"logits\"; the "
     "names most alike are \"logits_tv\", \"prelogit_td\" and \"norm_bias\""},
    {IN("sharding_strategy", "{\"model_parallelism\": 4}"),
     "rules (a.json): sharding.sharding_strategy.model_parallelism: there is no such key; here may "
     "be \"data_parallelism\", \"expert_parallelism\", \"sequence_parallelism\" and "
     "\"tensor_parallelism\""},
    {IN("sharding_strategy", "{\"tensor_parallelism\": 0}"),
     "rules (a.json): sharding.sharding_strategy.tensor_parallelism: this is no degree; a degree "
     "is a whole number from 1, or -1 for as many as the devices leave over"},
    {IN("sharding_strategy", "{\"tensor_parallelism\": \"4\"}"),
     "rules (a.json): sharding.sharding_strategy.tensor_parallelism: this is no degree; a degree "
     "is a whole number from 1, or -1 for as many as the devices leave over"},
    {"{\n\"sharding\": {}, \"sharding\": {}}",
     "rules (a.json): line 2 has a key that was there before: duplicate object key near "
     "'\"sharding\"'; leave one of them out"},
    {IN("logical_rules", "{\"all\": {\"logits_tv\": null, \"logits_tv\": null}}"),
     "rules (a.json): line 1 has a key that was there before: duplicate object key near "
     "'\"logits_tv\"'; leave one of them out"},
    {"{\"sharding\": }", "rules (a.json): line 1 is no legal JSON: unexpected token near '}'; "
                         "rules are an object, as in {\"sharding\": {\"logical_rules\": {...}}}"},
    {"\"sharding\"",
     "rules (a.json): line 1 is no legal JSON: '[' or '{' expected near '\"sharding\"'; rules are "
     "an object, as in {\"sharding\": {\"logical_rules\": {...}}}"},
};

static octavo_status parsed(const char *json, size_t size, const char *name, octavo_error *error) {
    octavo_rules rules;
    *error = (octavo_error){0};
    octavo_rules_init(&rules);
    octavo_status status = octavo_rules_parse(&rules, json, size, name, error);
    octavo_rules_deinit(&rules);
    return status;
}

static void test_messages(void **unused) {
    (void)unused;
    for (size_t i = 0; i < OCTAVO_COUNT(cases); i++) {
        octavo_error error;
        if (parsed(cases[i].json, strlen(cases[i].json), "a.json", &error) == OCTAVO_OK)
            fail_msg("%s is taken", cases[i].json);
        assert_string_equal(error.message, cases[i].message);
    }
}

/* Of the longest names, paths and lists the reason still has room. */
static void test_long(void **unused) {
    (void)unused;
    octavo_buffer json = {0};
    octavo_error error;
    char name[4000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    octavo_buffer_printf(
        &json, "{\"sharding\": {\"logical_rules\": {\"parts\": [{\"generate\": {\"%s\": null}}]}}}",
        name);
    assert_int_equal(parsed(json.data, json.size, name, &error), OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "the names most alike are"));
    assert_int_equal(error.message[strlen(error.message) - 1], '"');
    octavo_buffer_deinit(&json);
}

/* Arrays in arrays, to a depth that no stack has. */
static void test_deep(void **unused) {
    (void)unused;
    static char json[OCTAVO_RULES_MAX_BYTES];
    octavo_error error;
    memset(json, '[', sizeof json);
    assert_int_equal(parsed(json, sizeof json, "a.json", &error), OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "maximum parsing depth reached"));
    memset(json, ' ', sizeof json);
    assert_int_equal(parsed(json, sizeof json, "a.json", &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(parsed(json, sizeof json + 1, "a.json", &error), OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "bytes are more than rules may have"));
}

static void test_many_parts(void **unused) {
    (void)unused;
    octavo_buffer json = {0};
    octavo_error error;
    octavo_buffer_puts(&json, "{\"sharding\": {\"logical_rules\": {\"parts\": [{}");
    for (int i = 0; i < OCTAVO_RULES_MAX_PARTS; i++)
        octavo_buffer_puts(&json, ",{}");
    octavo_buffer_puts(&json, "]}}}");
    assert_int_equal(parsed(json.data, json.size, "a.json", &error), OCTAVO_ERROR_INVALID);
    assert_string_equal(error.message,
                        "rules (a.json): sharding.logical_rules.parts: 257 are more than there may "
                        "be (256); name several ranges of layers in one, as in \"0-3,8\"");
    octavo_buffer_deinit(&json);
}

static void test_layers(void **unused) {
    (void)unused;
    static const char *const wrong[] = {"",     "-",    "1-",  "-1",    "1,",
                                        ",1",   "1--2", "a",   "1 - 2", "0-4096",
                                        "4096", "1.5",  "0x1", "0-3 ",  "99999999999999999999",
                                        "1;2"};
    for (size_t i = 0; i < OCTAVO_COUNT(wrong); i++) {
        char json[200];
        octavo_error error;
        snprintf(json, sizeof json,
                 "{\"sharding\": {\"logical_rules\": {\"parts\": [{\"layers\": \"%s\"}]}}}",
                 wrong[i]);
        assert_int_equal(parsed(json, strlen(json), "a.json", &error), OCTAVO_ERROR_INVALID);
        assert_non_null(strstr(error.message, "are no layers"));
    }
}

/* What the program gives is worded alike. */
static void test_program(void **unused) {
    (void)unused;
    static const struct {
        const char *all, *generate, *message;
    } given[] = {
        {"{\"a\": 1, \"a\": 2}", NULL,
         "rules (of the program): all: line 1 has a key that was there before: duplicate object "
         "key near '\"a\"'; leave one of them out"},
        {NULL, "[]",
         "rules (of the program): generate: this is no object; write {\"TENSOR\": RULE}"},
        {NULL, "{\"logits_tv\": [\"seq\", \"seq\"]}",
         "rules (of the program): generate.logits_tv: mesh axis \"seq\" splits axis 1 (t) and "
         "again axis 2 (v); it may split one axis of a tensor, once"},
        {"", NULL, "rules (of the program): all: there is nothing in it; write at least {}"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(given); i++) {
        octavo_rules rules;
        octavo_error error = {0};
        octavo_rules_init(&rules);
        assert_int_not_equal(
            octavo_rules_replace(&rules, given[i].all, NULL, given[i].generate, &error), OCTAVO_OK);
        assert_string_equal(error.message, given[i].message);
        octavo_rules_deinit(&rules);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages), cmocka_unit_test(test_long),
        cmocka_unit_test(test_deep),     cmocka_unit_test(test_many_parts),
        cmocka_unit_test(test_layers),   cmocka_unit_test(test_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
