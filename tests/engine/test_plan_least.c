/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the planner is from the fewest bytes that any way to run the ops sends.
 */
#include "least.h"
#include "plan_config.h"

static const least_dims DIMS = {.t = 64, .d = 64, .n = 16, .k = 8, .h = 16, .f = 256, .v = 512};

static char llama[] = PLAN_PATH;

static int setup(void **unused) {
    (void)unused;
    return plan_write(llama, PLAN_LLAMA);
}

static int teardown(void **unused) {
    (void)unused;
    return unlink(llama);
}

/* Of one case: a link so slow that nothing but bytes counts. */
static double planned(const char *mesh, const char *all, const char *phase) {
    octavo_plan_options options;
    octavo_plan_options_init(&options);
    options.mesh = mesh;
    options.all = all;
    options.tokens = 64;
    options.dtype = "f32";
    options.logits_all = true;
    options.link_gbps = 1e-6;
    json_t *plan = plan_make(llama, &options);
    const double bytes = plan_wire_bytes(plan, phase);
    json_decref(plan);
    return bytes;
}

static double least_of(const least_dims *dims, const octavo_mesh *mesh, const char *all,
                       const char *phase) {
    octavo_rules rules;
    octavo_error error = {0};
    octavo_rules_init(&rules);
    if (octavo_rules_replace(&rules, all, NULL, NULL, &error)) fail_msg("%s", error.message);
    const double bytes = least_wire_bytes(
        dims, mesh, strcmp(phase, "prefill") == 0 ? OCTAVO_PHASE_PREFILL : OCTAVO_PHASE_GENERATE,
        &rules);
    octavo_rules_deinit(&rules);
    return bytes;
}

/* All cases on up to three mesh axes: each within `most` times the least, all within 1%. */
static void check_cases(int panel, double most) {
    double ours = 0.0, least = 0.0;
    size_t i;
    json_t *cases = json_load_file(TEST_DATA "/sharding/xla.json", 0, NULL), *one;
    least_dims dims = DIMS;
    dims.panel = panel;
    assert_int_equal(json_array_size(cases), 64);
    json_array_foreach(cases, i, one) {
        const char *text = json_string_value(json_object_get(one, "mesh"));
        const char *phase = json_string_value(json_object_get(one, "phase"));
        octavo_mesh mesh;
        octavo_error error;
        int n_axes = 0;
        assert_int_equal(octavo_mesh_parse(text, 0, &mesh, &error), OCTAVO_OK);
        for (int a = 0; a < OCTAVO_MESH_AXES; a++)
            n_axes += mesh.degree[a] > 1;
        if (n_axes > 3) continue;
        char *all = json_dumps(json_object_get(one, "overrides"), 0);
        const double bytes = planned(text, all, phase);
        const double best = least_of(&dims, &mesh, all, phase);
        if (bytes > most * best || bytes < 0.999 * best)
            fail_msg("%s: %.0f bytes, least %.0f", json_string_value(json_object_get(one, "name")),
                     bytes, best);
        ours += bytes;
        least += best;
        free(all);
    }
    if (ours > 1.01 * least) fail_msg("%.0f bytes, least %.0f", ours, least);
    print_message("%.0f bytes, least %.0f\n", ours, least);
    json_decref(cases);
}

static void test_panels(void **unused) {
    (void)unused;
    check_cases(32, 1.05);
}

/* As if weights moved in any shape: what it costs these narrow models that they do not. */
static void test_any_shape(void **unused) {
    (void)unused;
    check_cases(1, 1.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_panels),
        cmocka_unit_test(test_any_shape),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
