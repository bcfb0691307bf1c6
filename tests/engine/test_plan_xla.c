/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans against what XLA's partitioner does with the same rules, and against what rules must cost.
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

/* `all`: overrides, or NULL. */
static json_t *made(const char *mesh, const char *all) {
    octavo_plan_options options;
    octavo_plan_options_init(&options);
    options.mesh = mesh;
    options.all = all;
    options.tokens = 64;
    options.dtype = "f32";
    options.logits_all = true;
    return plan_make(llama, &options);
}

static void test_xla(void **unused) {
    (void)unused;
    double ours = 0.0, theirs = 0.0;
    size_t i;
    json_t *cases = json_load_file(TEST_DATA "/sharding/xla.json", 0, NULL), *one;
    assert_int_equal(json_array_size(cases), 64);
    json_array_foreach(cases, i, one) {
        const char *phase = json_string_value(json_object_get(one, "phase"));
        char *all = json_dumps(json_object_get(one, "overrides"), 0);
        json_t *plan = made(json_string_value(json_object_get(one, "mesh")), all);
        const double bytes = plan_wire_bytes(plan, phase);
        const double most = json_number_value(json_object_get(one, "wire_bytes"));
        if (bytes > most)
            fail_msg("%s: %.0f bytes, XLA %.0f", json_string_value(json_object_get(one, "name")),
                     bytes, most);
        ours += bytes;
        theirs += most;
        json_decref(plan);
        free(all);
    }
    if (ours > 0.8 * theirs) fail_msg("%.0f of %.0f bytes", ours, theirs);
    json_decref(cases);
}

/* What is asked for whole has to be brought together. */
static void test_whole(void **unused) {
    (void)unused;
    static const char *const meshes[] = {"model=2", "model=4", "expert=2,model=2",
                                         "data=2,model=2"};
    static const char hidden[] = "{\"ffw_hidden_tf\": null}", logits[] = "{\"logits_tv\": null}";
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++) {
        json_t *plain = made(meshes[m], NULL);
        json_t *whole = made(meshes[m], hidden), *gathered = made(meshes[m], logits);
        assert_true(plan_wire_bytes(whole, "prefill") > plan_wire_bytes(plain, "prefill"));
        assert_true(plan_wire_bytes(whole, "generate") > plan_wire_bytes(plain, "generate"));
        /* in prefill they are whole by default */
        assert_true(plan_wire_bytes(gathered, "prefill") == plan_wire_bytes(plain, "prefill"));
        assert_true(plan_wire_bytes(gathered, "generate") > plan_wire_bytes(plain, "generate"));
        json_decref(plain);
        json_decref(whole);
        json_decref(gathered);
    }
}

/* A mesh of tensor parallelism alone: the sum behind attention and the one behind feed-forward. */
static void check_tensor_mesh(const char *mesh, double ranks, const char *phase) {
    const double all_reduce = 2.0 * (ranks - 1.0) / ranks * 64.0 * 64.0 * sizeof(float);
    json_t *plan = made(mesh, NULL), *one;
    double bytes = 0.0;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(plan, phase), "collectives"), i, one) {
        if (json_is_null(json_object_get(one, "layer"))) continue;
        bytes += json_number_value(json_object_get(one, "wire_bytes"));
    }
    assert_true(bytes > 0.0);
    if (bytes > 2.0 * all_reduce) fail_msg("%s, %s: %.0f bytes", mesh, phase, bytes);
    json_decref(plan);
}

static void test_tensor_meshes(void **unused) {
    (void)unused;
    static const char *const phases[] = {"prefill", "generate"};
    for (int p = 0; p < 2; p++) {
        check_tensor_mesh("model=2", 2.0, phases[p]);
        check_tensor_mesh("model=4", 4.0, phases[p]);
        check_tensor_mesh("model=8", 8.0, phases[p]);
    }
}

static void test_thousand_ranks(void **unused) {
    (void)unused;
    octavo_plan_options options;
    octavo_plan_options_init(&options);
    options.mesh = "data=8,expert=16,model=8";
    options.tokens = 4096;
    json_t *plan = plan_make(deepseek, &options);
    const json_t *memory = json_object_get(plan, "memory_per_rank");
    const double weights = json_number_value(json_object_get(memory, "weights"));
    assert_int_equal(json_integer_value(json_object_get(plan, "ranks")), 1024);
    assert_true(plan_wire_bytes(plan, "prefill") > 0.0);
    assert_true(plan_wire_bytes(plan, "generate") > 0.0);
    /* 671e9 weights of a byte: the experts, most of them, on 128 ranks, the rest on 8 or on all */
    assert_true(weights > 671e9 / 1024 && weights < 671e9 / 8);
    json_decref(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xla),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_tensor_meshes),
        cmocka_unit_test(test_thousand_ranks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
