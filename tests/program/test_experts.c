/* SPDX-License-Identifier: Apache-2.0
 *
 * The ops of experts against a plain computation in double precision, without a model: what comes
 * out, that experts which nobody chose are not read, and the same bits for other threads and alone.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "program/build.h"
#include "program/run.h"

#include <math.h>
#include <string.h>

enum { D = 48, FFW = 40, EXPERTS = 20, CHOSEN = 3, TOKENS = 13, MAX_TOKENS = 16 };

typedef struct matrices {
    float embed[TOKENS][D], router[EXPERTS][D], identity[D][D];
    float gate[EXPERTS][FFW][D], up[EXPERTS][FFW][D], down[EXPERTS][D][FFW];
    float bias[EXPERTS];
} matrices;

static matrices m;
static uint32_t seed = 1;

static float uniform(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 8388608.0f - 1.0f;
}

static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = uniform();
}

static void make_matrices(void) {
    fill(&m.embed[0][0], TOKENS * D);
    fill(&m.router[0][0], EXPERTS * D);
    fill(&m.gate[0][0][0], EXPERTS * FFW * D);
    fill(&m.up[0][0][0], EXPERTS * FFW * D);
    fill(&m.down[0][0][0], EXPERTS * D * FFW);
    for (int i = 0; i < D; i++)
        m.identity[i][i] = 1.0f;
}

/* ---- the plain computation ---- */

static double dot(const float *a, const double *b, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static void add_expert(int e, double weight, bool is_for_input, const double *from, double *out) {
    double x[D], hidden[FFW];
    for (int i = 0; i < D; i++)
        x[i] = from[i] * (is_for_input ? weight : 1.0);
    if (is_for_input) weight = 1.0;
    for (int i = 0; i < FFW; i++) {
        double g = dot(m.gate[e][i], x, D);
        hidden[i] = g / (1.0 + exp(-g)) * dot(m.up[e][i], x, D);
    }
    for (int i = 0; i < D; i++)
        out[i] += weight * dot(m.down[e][i], hidden, FFW);
}

/* Groups by their best score, or the sum of their two best. */
static void choose_groups(const octavo_router *router, const double *scores, bool *is_open) {
    double groups[EXPERTS];
    const int n = router->n_groups, size = EXPERTS / n;
    for (int g = 0; g < n; g++) {
        double best = -1e9, second = -1e9;
        for (int e = g * size; e < (g + 1) * size; e++) {
            is_open[e] = false;
            if (scores[e] > best) {
                second = best;
                best = scores[e];
            } else if (scores[e] > second) {
                second = scores[e];
            }
        }
        groups[g] = router->is_sigmoid && size > 1 ? best + second : best;
    }
    for (int c = 0; c < router->n_chosen_groups; c++) {
        int best = 0;
        for (int g = 0; g < n; g++)
            if (groups[g] > groups[best]) best = g;
        groups[best] = -1e9;
        for (int e = best * size; e < (best + 1) * size; e++)
            is_open[e] = true;
    }
}

/* Result of a token; marks the experts it chooses. */
static void expect(int token, const octavo_router *router, bool has_bias, double *out,
                   bool *is_chosen) {
    double x[D], scores[EXPERTS], ranks[EXPERTS], sum = 0.0, all = 0.0;
    bool mine[EXPERTS] = {false}, is_open[EXPERTS];
    for (int i = 0; i < D; i++) {
        x[i] = (double)m.embed[token][i];
        out[i] = 0.0;
    }
    for (int e = 0; e < EXPERTS; e++) {
        const double logit = dot(m.router[e], x, D);
        scores[e] = router->is_sigmoid ? 1.0 / (1.0 + exp(-logit)) : exp(logit);
        all += scores[e];
        is_open[e] = true;
    }
    for (int e = 0; e < EXPERTS; e++)
        ranks[e] =
            scores[e] / (router->is_sigmoid ? 1.0 : all) + (has_bias ? (double)m.bias[e] : 0.0);
    if (router->n_groups > 0) choose_groups(router, ranks, is_open);
    for (int c = 0; c < CHOSEN; c++) {
        int best = -1;
        for (int e = 0; e < EXPERTS; e++)
            if (!mine[e] && is_open[e] && (best < 0 || ranks[e] > ranks[best])) best = e;
        mine[best] = is_chosen[best] = true;
        sum += scores[best];
    }
    for (int e = 0; e < EXPERTS; e++) {
        if (!mine[e]) continue;
        double weight = scores[e] / (router->is_sigmoid ? 1.0 : all);
        if (router->is_normalised) weight = scores[e] / sum;
        add_expert(e, weight * (double)router->scale, router->is_for_input, x, out);
    }
}

/* ---- the program ---- */

typedef struct packed {
    octavo_weight weight;
    uint8_t *data;
} packed;

static packed pack(const void *from, int64_t stack, int64_t n, int64_t k) {
    const size_t bytes = octavo_weight_bytes(OCTAVO_WEIGHT_F32, n, k);
    const size_t panel = octavo_weight_panel_bytes(OCTAVO_WEIGHT_F32, k), row = (size_t)k * 4;
    packed p = {.weight = {.type = OCTAVO_WEIGHT_F32, .n = n, .k = k, .stack = stack}};
    const int64_t matrices_in_it = stack ? stack : 1;
    p.data = octavo_alloc_aligned(bytes * (size_t)matrices_in_it);
    assert_non_null(p.data);
    for (int64_t e = 0; e < matrices_in_it; e++)
        for (int64_t r = 0; r < n; r += OCTAVO_PANEL)
            octavo_weight_pack(OCTAVO_WEIGHT_F32,
                               p.data + (size_t)e * bytes + (size_t)(r / OCTAVO_PANEL) * panel,
                               (const uint8_t *)from + (size_t)(e * n + r) * row, row,
                               n - r < OCTAVO_PANEL ? (int)(n - r) : OCTAVO_PANEL, k);
    p.weight.data = p.data;
    return p;
}

typedef struct weights {
    packed embed, router, gate, up, down, output;
} weights;

static weights pack_all(void) {
    return (weights){.embed = pack(m.embed, 0, TOKENS, D),
                     .router = pack(m.router, 0, EXPERTS, D),
                     .gate = pack(m.gate, EXPERTS, FFW, D),
                     .up = pack(m.up, EXPERTS, FFW, D),
                     .down = pack(m.down, EXPERTS, D, FFW),
                     .output = pack(m.identity, 0, D, D)};
}

static void free_all(weights *w) {
    packed *list[] = {&w->embed, &w->router, &w->gate, &w->up, &w->down, &w->output};
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++)
        octavo_free_aligned(list[i]->data);
}

/* What the experts give, times the identity. */
static void build(octavo_program *program, const weights *w, const octavo_router *router,
                  bool has_bias) {
    const int64_t vd[] = {TOKENS, D}, de[] = {D, EXPERTS}, edf[] = {EXPERTS, D, FFW};
    const int64_t efd[] = {EXPERTS, FFW, D}, dv[] = {D, D};
    const octavo_slices d = octavo_slices_make(D, 1), f = octavo_slices_make(FFW, 1);
    const int none = OCTAVO_NO_TENSOR;
    octavo_builder b;
    octavo_error error;
    octavo_build_start(&b, program, MAX_TOKENS, MAX_TOKENS, true);
    int embed = octavo_build_weight(&b, "emb_weight_vd", &w->embed.weight, vd);
    int route = octavo_build_weight(&b, "moe_router_de", &w->router.weight, de);
    int gate = octavo_build_weight(&b, "moe_weights_edf", &w->gate.weight, edf);
    int up = octavo_build_weight(&b, "moe_weights_edf", &w->up.weight, edf);
    int down = octavo_build_weight(&b, "moe_weights_efd", &w->down.weight, efd);
    int output = octavo_build_weight(&b, "vocab_dv", &w->output.weight, dv);
    int bias =
        has_bias ? octavo_build_vector(&b, "router_choice_bias_e", "e", m.bias, &(int64_t){EXPERTS})
                 : none;
    int x = octavo_build_embed(&b, "activation_td", b.program->ids, embed, 1.0f);
    int logits = octavo_build_matmul(&b, "router_logits_te", x, route, none, d, "e", EXPERTS, 1);
    int chosen = octavo_build_route(&b, "router_choice_tc", logits, bias, router);
    int rows = octavo_build_gather(&b, "activation_ffw_ted", x, chosen, router);
    int g = octavo_build_expert_matmul(&b, "moe_hidden_tef", rows, gate, none, chosen, d, 'f');
    int u = octavo_build_expert_matmul(&b, "moe_hidden_tef", rows, up, none, chosen, d, 'f');
    int hidden = octavo_build_gate(&b, "moe_hidden_tef", g, u, OCTAVO_ACTIVATION_SILU, 0.0f);
    int out = octavo_build_expert_matmul(&b, "moe_out_ted", hidden, down, none, chosen, f, 'd');
    x = octavo_build_combine(&b, "activation_td", out, chosen, router);
    x = octavo_build_select(&b, "activation_rd", x);
    x = octavo_build_matmul(&b, "logits_tv", x, output, none, d, "v", D, 1);
    if (octavo_build_finish(&b, x, &error) != OCTAVO_OK) fail_msg("%s", error.message);
}

/* Rows of the tokens [first, first + n) in one step. */
static void run(const octavo_program *program, int threads, int first, int n, float (*out)[D]) {
    octavo_run state;
    octavo_pool *pool = NULL;
    octavo_kv_cache cache = {.shape = {.page_size = 16}};
    octavo_error error;
    int32_t ids[TOKENS], positions[TOKENS], start[] = {0, n}, lens[] = {n}, pages[] = {0};
    float *rows[TOKENS];
    for (int i = 0; i < n; i++) {
        ids[i] = first + i;
        positions[i] = i;
        rows[i] = out[i];
    }
    if (octavo_pool_create(&pool, threads, false, &error) ||
        octavo_run_init(&state, program, pool, &cache,
                        &(octavo_run_options){.cpu = octavo_cpu_detect(), .max_sequences = 1},
                        &error))
        fail_msg("%s", error.message);
    octavo_run_step(&state, &(octavo_step){.n_tokens = n,
                                           .ids = ids,
                                           .positions = positions,
                                           .n_sequences = 1,
                                           .query_start_loc = start,
                                           .kv_lens = lens,
                                           .lengths = lens,
                                           .block_tables = pages,
                                           .pages_per_sequence = 1,
                                           .n_rows = n,
                                           .logit_rows = positions,
                                           .logits = rows});
    octavo_run_deinit(&state);
    octavo_pool_destroy(&pool);
}

/* A NaN in every weight of the experts that nobody chose. */
static void spoil(const weights *w, const bool *is_chosen) {
    const packed *stacks[] = {&w->gate, &w->up, &w->down};
    for (size_t s = 0; s < OCTAVO_COUNT(stacks); s++) {
        const octavo_weight *weight = &stacks[s]->weight;
        const size_t bytes = octavo_weight_bytes(weight->type, weight->n, weight->k);
        for (int e = 0; e < EXPERTS; e++)
            if (!is_chosen[e]) memset(stacks[s]->data + (size_t)e * bytes, 0xff, bytes);
    }
}

static void check_router(const octavo_router *router, bool has_bias) {
    static float got[TOKENS][D], again[TOKENS][D];
    double want[TOKENS][D];
    bool is_chosen[EXPERTS] = {false};
    octavo_program program;
    int n_chosen = 0;
    weights w = pack_all();
    for (int t = 0; t < TOKENS; t++)
        expect(t, router, has_bias, want[t], is_chosen);
    for (int e = 0; e < EXPERTS; e++)
        n_chosen += is_chosen[e];
    assert_in_range(n_chosen, CHOSEN, EXPERTS - 1);
    spoil(&w, is_chosen);
    build(&program, &w, router, has_bias);
    run(&program, 1, 0, TOKENS, got);
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < D; i++)
            if (!(fabs((double)got[t][i] - want[t][i]) < 1e-3))
                fail_msg("token %d, %d: %g, not %g", t, i, (double)got[t][i], want[t][i]);
    for (int threads = 2; threads <= 5; threads++) {
        run(&program, threads, 0, TOKENS, again);
        assert_memory_equal(again, got, sizeof got);
    }
    for (int t = 0; t < TOKENS; t++) {
        run(&program, 1 + t % 3, t, 1, again);
        assert_memory_equal(again, got[t], sizeof got[t]);
    }
    octavo_program_deinit(&program);
    free_all(&w);
}

static void test_routers(void **state) {
    (void)state;
    make_matrices();
    for (int e = 0; e < 4; e++) /* some experts that hardly anyone wants */
        memset(m.router[e], 0, sizeof m.router[e]);
    check_router(&(octavo_router){.scale = 1.0f, .n_chosen = CHOSEN}, false);
    check_router(&(octavo_router){.is_normalised = true, .scale = 1.0f, .n_chosen = CHOSEN}, false);
    check_router(
        &(octavo_router){
            .is_sigmoid = true, .is_normalised = true, .scale = 2.5f, .n_chosen = CHOSEN},
        false);
    check_router(
        &(octavo_router){
            .is_sigmoid = true, .is_for_input = true, .scale = 1.0f, .n_chosen = CHOSEN},
        false);
}

/* A bias makes an expert chosen, or not, but weighs nothing. */
static void test_choice(void **state) {
    octavo_router router = {.is_sigmoid = true, .scale = 1.0f, .n_chosen = CHOSEN};
    (void)state;
    make_matrices();
    for (int e = 0; e < EXPERTS; e++)
        m.bias[e] = e == 3 ? 1.0f : e % 4 ? 0.3f * uniform() : -2.0f;
    check_router(&router, true);
    router.is_normalised = true;
    check_router(&router, true);
    router.n_groups = 5;
    router.n_chosen_groups = 2;
    check_router(&router, true);
    check_router(&router, false);
    router.is_sigmoid = false;
    check_router(&router, false);
    router.n_groups = EXPERTS;
    router.n_chosen_groups = CHOSEN;
    check_router(&router, false);
}

/* Groups that do not divide the experts, or are too few for the choice. */
static void test_bad_groups(void **state) {
    static const int bad[][2] = {{3, 2}, {4, 0}, {4, 5}, {-4, 1}, {10, 1}, {40, 3}};
    (void)state;
    make_matrices();
    weights w = pack_all();
    for (size_t i = 0; i < OCTAVO_COUNT(bad); i++) {
        const int64_t vd[] = {TOKENS, D}, de[] = {D, EXPERTS};
        const octavo_router router = {
            .scale = 1.0f, .n_chosen = CHOSEN, .n_groups = bad[i][0], .n_chosen_groups = bad[i][1]};
        octavo_program program;
        octavo_builder b;
        octavo_error error;
        octavo_build_start(&b, &program, MAX_TOKENS, MAX_TOKENS, true);
        int embed = octavo_build_weight(&b, "emb_weight_vd", &w.embed.weight, vd);
        int route = octavo_build_weight(&b, "moe_router_de", &w.router.weight, de);
        int x = octavo_build_embed(&b, "activation_td", b.program->ids, embed, 1.0f);
        int logits = octavo_build_matmul(&b, "router_logits_te", x, route, OCTAVO_NO_TENSOR,
                                         octavo_slices_make(D, 1), "e", EXPERTS, 1);
        octavo_build_route(&b, "router_choice_tc", logits, OCTAVO_NO_TENSOR, &router);
        x = octavo_build_select(&b, "activation_rd", x);
        assert_int_equal(octavo_build_finish(&b, x, &error), OCTAVO_ERROR_INVALID);
        assert_non_null(strstr(error.message, "router_choice_tc"));
    }
    free_all(&w);
}

/* Equal scores: the first experts. Rows of NaN choose someone, and stay NaN. */
static void test_ties(void **state) {
    static float got[TOKENS][D], want[TOKENS][D];
    const octavo_router router = {.is_normalised = true, .scale = 1.0f, .n_chosen = CHOSEN};
    bool first[EXPERTS] = {true, true, true};
    octavo_program program;
    (void)state;
    make_matrices();
    memset(m.router, 0, sizeof m.router);
    weights w = pack_all();
    build(&program, &w, &router, false);
    run(&program, 2, 0, TOKENS, want);
    spoil(&w, first);
    run(&program, 2, 0, TOKENS, got);
    assert_memory_equal(got, want, sizeof got);
    memset(w.router.data, 0xff, octavo_weight_bytes(OCTAVO_WEIGHT_F32, EXPERTS, D));
    run(&program, 2, 0, TOKENS, got);
    for (int t = 0; t < TOKENS; t++)
        assert_true(isnan(got[t][0]));
    octavo_program_deinit(&program);
    free_all(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routers),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_bad_groups),
        cmocka_unit_test(test_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
