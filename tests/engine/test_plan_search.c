/* SPDX-License-Identifier: Apache-2.0
 *
 * The search of rules: what it finds is in order, is what its rules cost when they are planned, and
 * is no worse than the rules at hand.
 */
#include "plan_config.h"

static char llama[] = PLAN_PATH, deepseek[] = PLAN_PATH;

static int setup(void **unused) {
    (void)unused;
    return plan_write(llama, PLAN_LLAMA) || plan_write(deepseek, PLAN_DEEPSEEK);
}

static int teardown(void **unused) {
    (void)unused;
    return unlink(llama) || unlink(deepseek);
}

static octavo_plan_options options_of(const char *mesh, int search) {
    octavo_plan_options options;
    octavo_plan_options_init(&options);
    options.mesh = mesh;
    options.tokens = 64;
    options.search = search;
    return options;
}

/* Of the phases that are there. */
static double total_of(const json_t *plan) {
    static const char *const phases[] = {"prefill", "generate"};
    double total = 0.0;
    for (int p = 0; p < 2; p++) {
        const json_t *time = json_object_get(json_object_get(plan, phases[p]), "time");
        total += json_number_value(json_object_get(time, "total_s"));
    }
    assert_true(total > 0.0);
    return total;
}

static const json_t *found_of(const json_t *document, int most) {
    const json_t *found = json_object_get(document, "search");
    assert_in_range(json_array_size(found), 1, most);
    return found;
}

static void assert_same(const json_t *plan, const json_t *summary, const char *phase) {
    const json_t *a = json_object_get(plan, phase), *b = json_object_get(summary, phase);
    assert_int_equal(a != NULL, b != NULL);
    if (!a) return;
    assert_true(json_equal(json_object_get(a, "time"), json_object_get(b, "time")));
    assert_true(json_equal(json_object_get(a, "wire_bytes_per_rank"),
                           json_object_get(b, "wire_bytes_per_rank")));
}

/* A plan with the rules that were found, read from a file. */
static void assert_reproduced(const char *path, octavo_plan_options options, const json_t *found) {
    char rules[] = PLAN_PATH;
    json_t *file =
        json_pack("{s:{s:O}}", "sharding", "logical_rules", json_object_get(found, "rules"));
    char *text = json_dumps(file, 0);
    assert_int_equal(plan_write(rules, text), 0);
    options.search = 0;
    options.rules = rules;
    json_t *plan = plan_make(path, &options);
    const json_t *summary = json_object_get(found, "summary");
    assert_true(json_equal(json_object_get(plan, "memory_per_rank"),
                           json_object_get(summary, "memory_per_rank")));
    assert_same(plan, summary, "prefill");
    assert_same(plan, summary, "generate");
    json_decref(plan);
    json_decref(file);
    free(text);
    unlink(rules);
}

/* True: the rules at hand are among what was found. */
static bool check(const char *path, octavo_plan_options options) {
    json_t *document = plan_make(path, &options), *one;
    const json_t *found = found_of(document, options.search);
    octavo_plan_options plain = options;
    plain.search = 0;
    json_t *plan = plan_make(path, &plain);
    const double given = total_of(plan);
    double last = 0.0;
    bool has_given = false;
    size_t i;
    json_array_foreach(found, i, one) {
        const double total = total_of(json_object_get(one, "summary"));
        if (i == 0) assert_true(total <= given * (1.0 + 1e-6));
        assert_true(total >= last * (1.0 - 1e-6)); /* as many digits as are written */
        last = total;
        has_given |= json_object_size(json_object_get(one, "rules")) == 0;
        for (size_t k = 0; k < i; k++)
            assert_false(json_equal(json_object_get(one, "rules"),
                                    json_object_get(json_array_get(found, k), "rules")));
        assert_reproduced(path, options, one);
    }
    assert_true(json_equal(json_object_get(document, "mesh"), json_object_get(plan, "mesh")));
    assert_true(
        json_equal(json_object_get(document, "link_gbps"), json_object_get(plan, "link_gbps")));
    json_decref(plan);
    json_decref(document);
    return has_given;
}

static void test_llama(void **unused) {
    (void)unused;
    static const char *const meshes[] = {"model=4", "data=2,model=2", "seq=2,model=2",
                                         "data=2,seq=2,model=2"};
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++)
        check(llama, options_of(meshes[m], 3));
    assert_true(check(llama, options_of("model=4", 100)));
    octavo_plan_options one_phase = options_of("model=4", 2);
    one_phase.phases = OCTAVO_PLAN_GENERATE;
    check(llama, one_phase);
}

static void test_experts(void **unused) {
    (void)unused;
    check(deepseek, options_of("expert=8,model=4", 2));
}

/* One rank: nothing to choose. */
static void test_one_rank(void **unused) {
    (void)unused;
    const octavo_plan_options options = options_of("model=1", 5);
    json_t *document = plan_make(llama, &options);
    const json_t *found = json_object_get(document, "search");
    assert_int_equal(json_array_size(found), 1);
    assert_int_equal(json_object_size(json_object_get(json_array_get(found, 0), "rules")), 0);
    json_decref(document);
}

/* In prefill whole residuals are costly: there is something better. */
static void test_finds_better(void **unused) {
    (void)unused;
    octavo_plan_options options = options_of("data=2,model=2", 1);
    json_t *document = plan_make(llama, &options);
    options.search = 0;
    json_t *plan = plan_make(llama, &options);
    const json_t *best = json_array_get(found_of(document, 1), 0);
    assert_true(total_of(json_object_get(best, "summary")) < 0.95 * total_of(plan));
    json_decref(plan);
    json_decref(document);
}

/* What the caller's rules say is not up for choice. */
static void test_given_rules(void **unused) {
    (void)unused;
    static const char given[] =
        "{\"activation_td\": [null, null], \"logits_tv\": [null, \"model\"]}";
    octavo_plan_options options = options_of("data=2,model=2", 5);
    options.all = given;
    json_t *rules = json_loads(given, 0, NULL), *document = plan_make(llama, &options), *one;
    size_t i;
    json_array_foreach(found_of(document, 5), i, one) {
        const json_t *object = json_object_get(one, "rules");
        const json_t *all = json_object_get(object, "all");
        static const char *const names[] = {"activation_td", "logits_tv"};
        for (int k = 0; k < 2; k++) {
            assert_true(
                json_equal(json_object_get(all, names[k]), json_object_get(rules, names[k])));
            assert_null(json_object_get(json_object_get(object, "prefill"), names[k]));
            assert_null(json_object_get(json_object_get(object, "generate"), names[k]));
        }
    }
    json_decref(document);
    json_decref(rules);
}

static void assert_refused(const octavo_plan_options *options, const char *message) {
    octavo_error error = {0};
    char *text = NULL;
    assert_int_not_equal(octavo_plan(llama, options, &text, &error), OCTAVO_OK);
    assert_null(text);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
}

static void test_errors(void **unused) {
    (void)unused;
    octavo_plan_options options = options_of("model=2", 101);
    assert_refused(&options, "option search (101): give 1 to 100");
    options.search = -1;
    assert_refused(&options, "option search (-1)");
    /* rules at hand that cannot be honoured */
    options.search = 3;
    options.all = "{\"norm_scale\": [\"data\"]}";
    options.mesh = "data=2";
    assert_refused(&options, "norm_scale");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama),       cmocka_unit_test(test_experts),
        cmocka_unit_test(test_one_rank),    cmocka_unit_test(test_finds_better),
        cmocka_unit_test(test_given_rules), cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
