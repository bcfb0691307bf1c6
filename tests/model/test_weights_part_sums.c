/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of inputs add up to the whole's sums bit for bit; and parts that are none are refused.
 */
#include "../engine/tiny_model.h"
#include "kernels/matmul.h"
#include "weights_walk.h"

static octavo_pool *pool;

/* ---- sums ---- */

static void multiply(const octavo_weight *weight, const octavo_slices *slices, const float *x,
                     float *out) {
    octavo_matmul_kernels kernels;
    octavo_matmul_kernels_init(&kernels, octavo_cpu_detect());
    const octavo_matmul_args args = {.type = weight->type,
                                     .weight = weight->data,
                                     .n = weight->n,
                                     .k = weight->k,
                                     .slices = slices,
                                     .slice_end = slices->n,
                                     .x = x,
                                     .x_stride = (size_t)weight->k * sizeof *x,
                                     .n_rows = 1,
                                     .out = out,
                                     .out_stride = weight->n};
    octavo_matmul(&kernels, &args, 0, (weight->n + OCTAVO_PANEL - 1) / OCTAVO_PANEL);
}

/* Each of two ranks multiplies its half of the inputs, in half of the slices; the sums are added.
 */
static void check_sums(walk *w, const octavo_model_weights *whole) {
    static float x[1 << 12], want[1 << 12], sum[2][1 << 12];
    octavo_model_weights ranks[2];
    octavo_slices all[WALK_MEMBERS] = {{0}};
    octavo_error error;
    int n_sums = 0;
    for (size_t i = 0; i < OCTAVO_COUNT(x); i++)
        x[i] = (float)walk_random(w, 2001) / 1000.0f - 1.0f;
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < w->n; i++) {
            walk_member *m = &w->members[i];
            m->part = m->whole;
            if (!walk_is_matrix(m->at)) continue;
            const octavo_weight *weight = walk_weight(whole, m->at);
            all[i] =
                octavo_slices_make(weight->k, octavo_weight_info_of(weight->type)->record_inputs);
            *(r ? &m->part.k0 : &m->part.k1) = all[i].n > 1 ? all[i].cut[all[i].n / 2] : weight->k;
        }
        walk_must(walk_load(w, pool, OCTAVO_WEIGHTS_FILE, &ranks[r], &error), &error);
    }
    for (int i = 0; i < w->n; i++) {
        const octavo_weight_member at = w->members[i].at;
        if (!walk_is_matrix(at) || all[i].n < 2) continue;
        const octavo_weight *weight = walk_weight(whole, at);
        const int half = all[i].n / 2;
        multiply(weight, &all[i], x, want);
        for (int r = 0; r < 2; r++) {
            octavo_slices slices = {.n = half};
            const int64_t begin = all[i].cut[r * half];
            for (int s = 0; s <= half; s++)
                slices.cut[s] = all[i].cut[r * half + s] - begin;
            multiply(walk_weight(&ranks[r], at), &slices, x + begin, sum[r]);
        }
        octavo_tree_add(sum[0], 2, OCTAVO_COUNT(sum[0]), weight->n);
        if (memcmp(sum[0], want, (size_t)weight->n * sizeof *want) != 0)
            fail_msg("%s: the sums of %s are others in two parts", w->path,
                     octavo_weight_info_of(weight->type)->name);
        n_sums++;
    }
    assert_true(n_sums >= 20);
    for (int r = 0; r < 2; r++)
        octavo_weights_deinit(&ranks[r]);
}

static void test_sums(void **state) {
    const tiny_options options = {.architecture = "llama",
                                  .n_layers = 4,
                                  .context = 64,
                                  .types = tiny_all_types,
                                  .n_types = OCTAVO_COUNT(tiny_all_types)};
    static walk w;
    octavo_model_weights whole;
    char path[64], name[80];
    (void)state;
    tiny_model_write(&options, path);
    snprintf(name, sizeof name, "%s.gguf", path);
    assert_int_equal(rename(path, name), 0);
    assert_true(walk_open(&w, name));
    walk_load_whole(&w, pool, OCTAVO_WEIGHTS_FILE, &whole);
    check_sums(&w, &whole);
    octavo_weights_deinit(&whole);
    walk_close(&w);
    (void)unlink(name);
}

/* ---- refusals ---- */

static void refuse(walk *w, octavo_weight_member at, octavo_weight_part part, const char *message) {
    octavo_model_weights got;
    octavo_error error = {0};
    octavo_pool *const pools[] = {pool, NULL};
    for (int i = 0; i < w->n; i++)
        w->members[i].part = w->members[i].whole;
    walk_member_of(w, at)->part = part;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(walk_load(w, pools[i], OCTAVO_WEIGHTS_FILE, &got, &error),
                         OCTAVO_ERROR_INVALID);
        if (!strstr(error.message, message)) fail_msg("%s: not \"%s\"", error.message, message);
        assert_null(got.layers);
    }
}

static void test_refusals(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_Q4_K};
    const tiny_options options = {.architecture = "qwen3moe",
                                  .n_layers = 1,
                                  .context = 64,
                                  .types = types,
                                  .n_types = 1,
                                  .n_experts = 4};
    const octavo_weight_member q = {0, offsetof(octavo_layer_weights, attn_q)};
    const octavo_weight_member up = {0, offsetof(octavo_layer_weights, expert_up)};
    const octavo_weight_member norm = {0, offsetof(octavo_layer_weights, attn_norm)};
    static walk w;
    octavo_model_weights whole;
    char path[64], name[80];
    (void)state;
    tiny_model_write(&options, path);
    snprintf(name, sizeof name, "%s.gguf", path);
    assert_int_equal(rename(path, name), 0);
    assert_true(walk_open(&w, name));
    walk_load_whole(&w, NULL, OCTAVO_WEIGHTS_FILE, &whole);
    refuse(&w, q, (octavo_weight_part){0, 512, 0, 100, 0, 0}, "\"blk.0.attn_q.weight\"");
    refuse(&w, q, (octavo_weight_part){0, 512, 0, 100, 0, 0},
           "its 512 inputs cannot be cut at 100, which divides a block of 256 of type q4_k; the "
           "nearest cut is at 0");
    refuse(&w, q, (octavo_weight_part){0, 512, 200, 512, 0, 0},
           "cannot be cut at 200, which divides a block of 256 of type q4_k; the nearest cut is at "
           "256");
    refuse(&w, q, (octavo_weight_part){0, 513, 0, 512, 0, 0},
           "outputs 0 to 513 are no part of its 512; a part lies within the whole");
    refuse(&w, q, (octavo_weight_part){-1, 512, 0, 512, 0, 0}, "outputs -1 to 512");
    refuse(&w, q, (octavo_weight_part){3, 2, 0, 512, 0, 0}, "outputs 3 to 2");
    refuse(&w, q, (octavo_weight_part){0, 512, 0, 768, 0, 0}, "inputs 0 to 768");
    refuse(&w, q, (octavo_weight_part){0, 512, 0, 512, 0, 1},
           "matrices 0 to 1 are no part of its 0");
    refuse(&w, up, (octavo_weight_part){0, 256, 0, 512, 3, 5}, "\"blk.0.ffn_up_exps.weight\"");
    refuse(&w, up, (octavo_weight_part){0, 256, 0, 512, 3, 5},
           "matrices 3 to 5 are no part of its 4");
    refuse(&w, up, (octavo_weight_part){0, 256, 0, 130, 0, 4}, "nearest cut is at 256");
    refuse(&w, norm, (octavo_weight_part){0, 600, 0, 1, 0, 0}, "outputs 0 to 600");
    octavo_weights_deinit(&whole);
    walk_close(&w);
    (void)unlink(name);
}

static int set_up(void **state) {
    octavo_error error;
    (void)state;
    return octavo_pool_create(&pool, 3, false, &error) ? -1 : 0;
}

static int tear_down(void **state) {
    (void)state;
    octavo_pool_destroy(&pool);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
