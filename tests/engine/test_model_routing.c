/* SPDX-License-Identifier: Apache-2.0
 *
 * Models whose tokens are split over the ranks of experts: rows go by the router's choices, as
 * their plan says, and the bits are those of one rank. Models of OCTAVO_ORACLE too, where it is.
 */
#include "ranks.h"

#include "octavo/plan.h"
#include "octavo/template.h"

/* Dense and shared feed-forwards stay whole: tiny ones have one slice. */
#define WHOLE                                                                                      \
    "\"moe_router_de\": [null, null], \"ffw_weight_df\": [null, null], \"ffw_weight_fd\": [null, " \
    "null]"
#define SPLIT "\"activation_td\": [[\"data\", \"expert\"], null], " WHOLE

static const char *const meshes[] = {"expert=2", "expert=4", "data=2,expert=2"};

static bool is_routed(const char *path, const ranks_setting *s) {
    octavo_plan_options options;
    octavo_error error;
    char *text = NULL;
    octavo_plan_options_init(&options);
    options.mesh = s->mesh;
    options.all = s->all;
    ranks_must(octavo_plan(path, &options, &text, &error), &error, path);
    const bool has_both = strstr(text, "dispatch: a token's row goes once to each rank") &&
                          strstr(text, "combine: a token gets one row from each rank");
    octavo_text_free(text);
    return has_both;
}

static void check_model(const char *path) {
    ranks_rows want = ranks_run_whole(path, OCTAVO_PRECISION_EXACT, true);
    int n_routed = 0;
    for (size_t i = 0; i < OCTAVO_COUNT(meshes); i++) {
        const ranks_setting s = {
            .mesh = meshes[i], .all = "{" SPLIT "}", .precision = OCTAVO_PRECISION_EXACT};
        octavo_model *model = NULL;
        octavo_error error;
        ranks_rows got;
        n_routed += is_routed(path, &s);
        ranks_must(ranks_open(path, &s, &model, &error), &error, path);
        ranks_run(model, true, &got, path);
        octavo_model_close(&model);
        if (ranks_difference(&want, &got) != 0.0) fail_msg("%s, %s: other bits", path, s.mesh);
        ranks_rows_deinit(&got);
    }
    if (n_routed == 0) fail_msg("%s: rows go nowhere by choices", path);
    ranks_rows_deinit(&want);
}

static void test_models(void **state) {
    static const char *const names[] = {"llama4_scout", "deepseek_v3", "gpt_oss_mxfp4",
                                        "qwen2_moe"};
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++) {
        char path[512];
        snprintf(path, sizeof path, TEST_DATA "/models/%s", names[i]);
        check_model(path);
    }
}

static void test_oracle(void **state) {
    static const char *const names[] = {"mixtral", "qwen3_moe", "llama4_maverick", "gpt_oss"};
    const char *oracle = getenv("OCTAVO_ORACLE");
    (void)state;
    if (!oracle) skip();
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/models/%s", oracle, names[i]);
        check_model(path);
    }
}

/* A shared expert needs the rows, too, that were sent to experts: those sent are not all of them.
 */
static void test_shared_expert(void **state) {
    static const char path[] = TEST_DATA "/models/deepseek_v3";
    const ranks_setting s = {.mesh = "data=4,expert=2",
                             .all = "{\"moe_router_de\": [\"data\", \"expert\"]}",
                             .generate = "{\"moe_router_de\": [\"data\", \"expert\"], "
                                         "\"activation_ffw_td\": [null, \"expert\"]}",
                             .precision = OCTAVO_PRECISION_EXACT};
    ranks_rows want = ranks_run_whole(path, OCTAVO_PRECISION_EXACT, true), got;
    octavo_model *model = NULL;
    octavo_error error;
    (void)state;
    ranks_must(ranks_open(path, &s, &model, &error), &error, path);
    ranks_run(model, true, &got, path);
    octavo_model_close(&model);
    const double difference = ranks_difference(&want, &got);
    if (!(difference <= 1e-5)) fail_msg("other by %g", difference);
    ranks_rows_deinit(&got);
    ranks_rows_deinit(&want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models), cmocka_unit_test(test_oracle),
                                       cmocka_unit_test(test_shared_expert)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
