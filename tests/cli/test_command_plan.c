/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo plan as it is called: its options, its formats, and what it says of what makes no sense.
 */
#include "markup.h"
#include "process.h"

#include <stdlib.h>
#include <unistd.h>

static char config[] = "/tmp/octavo-plan-config-XXXXXX.json";
static char rules[] = "/tmp/octavo-plan-rules-XXXXXX.json";
static char others[] = "/tmp/octavo-plan-others-XXXXXX.json";

static const char CONFIG[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 64,"
    " \"intermediate_size\": 256, \"num_hidden_layers\": 3, \"num_attention_heads\": 8,"
    " \"num_key_value_heads\": 4, \"head_dim\": 8, \"vocab_size\": 512,"
    " \"max_position_embeddings\": 1024, \"rms_norm_eps\": 1e-5, \"torch_dtype\": \"float32\","
    " \"tie_word_embeddings\": false, \"hidden_act\": \"silu\", \"rope_theta\": 10000.0}";

static int write_file(char *path, const char *text) {
    const int file = mkstemps(path, 5);
    const size_t length = strlen(text);
    if (file < 0 || write(file, text, length) != (ssize_t)length) return -1;
    return close(file);
}

static int setup(void **state) {
    (void)state;
    return write_file(config, CONFIG) ||
           write_file(rules, "{\"sharding\": {\"sharding_strategy\": {\"tensor_parallelism\": 2}, "
                             "\"logical_rules\": {\"generate\": {\"logits_tv\": "
                             "[\"data\", null]}}}}") ||
           write_file(others, "{\"sharding\": {\"sharding_strategy\": "
                              "{\"tensor_parallelism\": 2}}}");
}

static int teardown(void **state) {
    (void)state;
    return unlink(config) || unlink(rules) || unlink(others);
}

#define PLAN(...) OCTAVO("", "plan", __VA_ARGS__)

static process_result done(process_result result) {
    if (result.status != 0) fail_msg("status %d: %s", result.status, result.err);
    return result;
}

static json_int_t number(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

/* The tensor of a name. */
static const json_t *find(const json_t *plan, const char *name) {
    size_t i;
    json_t *tensor;
    json_array_foreach(json_object_get(plan, "tensors"), i,
                       tensor) if (strcmp(json_string_value(json_object_get(tensor, "name")),
                                          name) == 0) return tensor;
    fail_msg("no tensor %s", name);
    return NULL;
}

static void test_json(void **state) {
    static const char *const phases[] = {"prefill", "generate"};
    process_result result =
        done(PLAN(config, "--mesh", "data=2,model=2", "--tokens", "64", "--json"));
    json_t *plan = process_json(&result);
    (void)state;
    assert_int_equal(number(plan, "ranks"), 4);
    assert_int_equal(number(plan, "tokens"), 64);
    assert_int_equal(number(json_object_get(plan, "mesh"), "data"), 2);
    assert_int_equal(number(json_object_get(plan, "mesh"), "model"), 2);
    assert_int_equal(number(json_object_get(plan, "model"), "layers"), 3);
    const json_t *weight = find(plan, "ffw_weight_df");
    const json_t *shard = json_object_get(weight, "shard_shape");
    assert_int_equal(json_integer_value(json_array_get(shard, 0)), 64);
    assert_int_equal(json_integer_value(json_array_get(shard, 1)), 128);
    assert_int_equal(number(weight, "bytes_per_rank"), 64 * 128 * 4);
    /* the tensors make up the memory */
    json_int_t weights = 0;
    size_t t;
    json_t *tensor;
    json_array_foreach(
        json_object_get(plan, "tensors"), t,
        tensor) if (strcmp(json_string_value(json_object_get(tensor, "kind")), "weight") == 0)
        weights += number(tensor, "bytes_per_rank") * number(tensor, "count");
    assert_int_equal(weights, number(json_object_get(plan, "memory_per_rank"), "weights"));
    for (int i = 0; i < 2; i++) {
        const json_t *phase = json_object_get(plan, phases[i]);
        double sent = 0.0;
        size_t c;
        json_t *collective;
        json_array_foreach(json_object_get(phase, "collectives"), c, collective) {
            assert_true(number(collective, "group") > 1);
            assert_true(json_is_string(json_object_get(collective, "reason")));
            sent += json_number_value(json_object_get(collective, "wire_bytes"));
        }
        assert_true(c > 0);
        const double total = json_number_value(json_object_get(phase, "wire_bytes_per_rank"));
        assert_true(sent > total - (double)c && sent < total + (double)c);
        const json_t *time = json_object_get(phase, "time");
        assert_true(json_number_value(json_object_get(time, "total_s")) > 0.0);
        /* all layers are alike, so the first stands for them */
        json_int_t n_of_layers = 0;
        json_array_foreach(json_object_get(phase, "timeline"), t, tensor) {
            const json_t *layer = json_object_get(tensor, "layer");
            if (json_is_integer(layer)) assert_int_equal(json_integer_value(layer), 0);
            n_of_layers += json_is_integer(layer);
        }
        assert_in_range(n_of_layers, 5, 40);
    }
    json_decref(plan);
    process_free(&result);
}

/* A latent's row and the rope's lanes behind it are one axis of a weight. */
static void test_latent(void **state) {
    process_result result =
        done(PLAN(TEST_DATA "/models/deepseek_v3", "--mesh", "model=2", "--json"));
    json_t *plan = process_json(&result);
    json_t *config_json = json_load_file(TEST_DATA "/models/deepseek_v3/config.json", 0, NULL);
    const json_t *weight = find(plan, "attn_kv_a_weight_dl");
    const json_t *shape = json_object_get(weight, "shape");
    (void)state;
    assert_int_equal(json_integer_value(json_array_get(shape, 0)),
                     number(config_json, "hidden_size"));
    assert_int_equal(json_integer_value(json_array_get(shape, 1)),
                     number(config_json, "kv_lora_rank") + number(config_json, "qk_rope_head_dim"));
    json_decref(config_json);
    json_decref(plan);
    process_free(&result);
}

static void test_formats(void **state) {
    process_result text = done(PLAN(config, "--rules", rules));
    process_result svg = done(PLAN(config, "--rules", rules, "--format", "svg"));
    process_result html = done(PLAN(config, "--rules", rules, "--format=html"));
    (void)state;
    assert_non_null(strstr(text.out, "model 2 = 2 ranks"));
    assert_non_null(strstr(text.out, "logits_tv"));
    assert_non_null(strstr(text.out, "(data, -)"));
    assert_non_null(strstr(text.out, " layers 0-2: "));
    markup_check(svg.out);
    markup_check_alone(svg.out);
    markup_check(html.out);
    markup_check_alone(html.out);
    assert_non_null(strstr(html.out, "ffw_weight_df"));
    process_free(&text);
    process_free(&svg);
    process_free(&html);
}

static void test_phase(void **state) {
    process_result result =
        done(PLAN(config, "--mesh", "model=2", "--phase", "generate", "--json"));
    json_t *plan = process_json(&result);
    (void)state;
    assert_null(json_object_get(plan, "prefill"));
    assert_non_null(json_object_get(plan, "generate"));
    json_decref(plan);
    process_free(&result);
}

static void test_compare(void **state) {
    process_result result = done(PLAN(config, "--compare", others, rules, "--json"));
    json_t *document = process_json(&result);
    const json_t *difference = json_object_get(document, "difference");
    (void)state;
    /* whole logits in generate are gathered, in prefill nothing changes */
    assert_true(number(json_object_get(difference, "generate"), "wire_bytes_per_rank") > 0);
    assert_int_equal(number(json_object_get(difference, "prefill"), "wire_bytes_per_rank"), 0);
    const json_t *rows = json_object_get(json_object_get(difference, "generate"), "collectives");
    assert_true(json_array_size(rows) > 0);
    json_decref(document);
    process_free(&result);

    result = done(PLAN(config, "--compare", others, rules));
    assert_non_null(strstr(result.out, "A, /tmp/octavo-plan-others"));
    assert_non_null(strstr(result.out, "B, /tmp/octavo-plan-rules"));
    process_free(&result);
    result = done(PLAN(config, "--compare", others, rules, "--format", "html"));
    markup_check(result.out);
    markup_check_alone(result.out);
    process_free(&result);
}

static double total_of(const json_t *plan) {
    static const char *const phases[] = {"prefill", "generate"};
    double total = 0.0;
    for (int i = 0; i < 2; i++)
        total += json_number_value(
            json_object_get(json_object_get(json_object_get(plan, phases[i]), "time"), "total_s"));
    return total;
}

/* What is found is no slower than the default rules, the best comes first, and a plan with the
 * rules found says the same. */
static void test_search(void **state) {
    process_result result =
        done(PLAN(config, "--mesh", "model=4", "--tokens", "64", "--search", "--json"));
    process_result plain = done(PLAN(config, "--mesh", "model=4", "--tokens", "64", "--json"));
    json_t *document = process_json(&result), *without = process_json(&plain);
    const json_t *found = json_object_get(document, "search");
    double before = 0.0;
    size_t i;
    json_t *one;
    (void)state;
    assert_in_range(json_array_size(found), 2, 5);
    json_array_foreach(found, i, one) {
        char path[] = "/tmp/octavo-plan-found-XXXXXX.json";
        json_t *file =
            json_pack("{s:{s:O}}", "sharding", "logical_rules", json_object_get(one, "rules"));
        char *text = json_dumps(file, 0);
        assert_int_equal(write_file(path, text), 0);
        process_result again =
            done(PLAN(config, "--mesh", "model=4", "--tokens", "64", "--rules", path, "--json"));
        json_t *plan = process_json(&again);
        const double total = total_of(json_object_get(one, "summary"));
        assert_true(total == total_of(plan));
        assert_true(total >= before);
        before = total;
        json_decref(plan);
        json_decref(file);
        free(text);
        process_free(&again);
        unlink(path);
    }
    assert_true(total_of(json_object_get(json_array_get(found, 0), "summary")) < total_of(without));
    json_decref(without);
    json_decref(document);
    process_free(&plain);

    /* the same again */
    process_result same =
        done(PLAN(config, "--mesh", "model=4", "--tokens", "64", "--search", "--json"));
    assert_string_equal(same.out, result.out);
    process_free(&same);
    process_free(&result);
    result = done(PLAN(config, "--mesh", "model=4", "--search"));
    assert_non_null(strstr(result.out, "The best rules found"));
    process_free(&result);
    result = done(PLAN(config, "--mesh", "model=4", "--search", "--format", "html"));
    markup_check(result.out);
    markup_check_alone(result.out);
    process_free(&result);
}

static void expect(process_result result, int status, const char *part) {
    if (result.status != status) fail_msg("status %d: %s", result.status, result.err);
    assert_int_equal(result.out_bytes, 0);
    if (!process_says(&result, part)) fail_msg("%s", result.err);
    process_free(&result);
}

static void test_options(void **state) {
    (void)state;
    expect(PLAN(config, "--compare", rules), 2, "the second of its two values is missing");
    expect(PLAN(config, "--compare", rules, "--json"), 2, "the second of its two values");
    expect(PLAN(config, "--compare", rules, others, "--rules", rules), 2, "beside --rules");
    expect(PLAN(config, "--search", "--rules", rules), 2, "beside --rules");
    expect(PLAN(config, "--search", "--compare", rules, rules), 2, "beside --compare");
    expect(PLAN(config, "--search", "--format", "svg"), 2, "no drawing of many plans");
    expect(PLAN(config, "--json", "--format", "html"), 2, "two formats");
    expect(PLAN(config, "--format", "pdf"), 2, "text|json|svg|html");
    expect(PLAN(config, "--tokens", "0"), 2, "--tokens");
    expect(PLAN(config, "--phase", "decode"), 2, "both|prefill|generate");
    expect(PLAN(config, "--dtype", "q4"), 2, "file|f32|bf16");
    expect(PLAN(config, "--logits", "none"), 2, "last|all");
    expect(PLAN(config, "--link-gbps", "0"), 2, "--link-gbps");
    expect(PLAN(config, "--memory-gbps", "fast"), 2, "--memory-gbps");
    expect(PLAN(config, "--devices", "0"), 2, "--devices");
    expect(PLAN(config, config), 2, "one argument too many");
    expect(OCTAVO("", "plan"), 2, "MODEL is missing");
}

static void test_errors(void **state) {
    (void)state;
    expect(PLAN("/no/config.json"), 1, "/no/config.json");
    expect(PLAN(config, "--rules", "/no/rules.json"), 1, "/no/rules.json");
    expect(PLAN(config, "--compare", rules, "/no/rules.json"), 1, "/no/rules.json");
    expect(PLAN(config, "--mesh", "model=0"), 2, "model");
    expect(PLAN(config, "--mesh", "tensor=2"), 2, "tensor");
    expect(PLAN(config, "--mesh", "model=-1,data=-1", "--devices", "4"), 2, "-1");
    expect(PLAN(config, "--mesh", "model=2", "--devices", "3"), 2, "3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),    cmocka_unit_test(test_latent),
        cmocka_unit_test(test_formats), cmocka_unit_test(test_phase),
        cmocka_unit_test(test_compare), cmocka_unit_test(test_search),
        cmocka_unit_test(test_options), cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
