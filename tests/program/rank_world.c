/* SPDX-License-Identifier: Apache-2.0 */
#include "rank_world.h"

#include "base/compiler.h"
#include "kernels/weight_quantize.h"
#include "program/build.h"

#include <math.h>
#include <string.h>

static uint32_t state = 1;

void world_seed(uint32_t seed) {
    state = seed * 2654435761u + 1;
}

uint32_t world_random(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static float uniform(void) {
    return (float)world_random() / 8388608.0f - 1.0f;
}

static void *must(void *p) {
    assert_non_null(p);
    return p;
}

/* ---- weights ---- */

void world_pack(octavo_weight *weight, uint8_t *data, const uint8_t *blocks, size_t row_bytes) {
    const size_t bytes = octavo_weight_bytes(weight->type, weight->n, weight->k);
    const size_t panel = octavo_weight_panel_bytes(weight->type, weight->k);
    for (int64_t e = 0; e < (weight->stack ? weight->stack : 1); e++)
        for (int64_t r = 0; r < weight->n; r += OCTAVO_PANEL)
            octavo_weight_pack(
                weight->type, data + (size_t)e * bytes + (size_t)(r / OCTAVO_PANEL) * panel,
                blocks + (size_t)(e * weight->n + r) * row_bytes, row_bytes,
                weight->n - r < OCTAVO_PANEL ? (int)(weight->n - r) : OCTAVO_PANEL, weight->k);
    weight->data = data;
}

static size_t bytes_of_inputs(octavo_weight_type type, int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    return (size_t)(k / info->source_inputs) * (size_t)info->source_bytes;
}

static size_t packed_bytes(const octavo_weight *w) {
    return octavo_weight_bytes(w->type, w->n, w->k) * (size_t)(w->stack ? w->stack : 1) + 1;
}

static const octavo_weight *add_matrix(world *w, octavo_weight_type type, int64_t stack, int64_t n,
                                       int64_t k) {
    assert_true(w->n_matrices < WORLD_MATRICES);
    world_matrix *m = &w->matrices[w->n_matrices++];
    const int64_t rows = n * (stack ? stack : 1);
    const float scale = 1.0f / sqrtf((float)k);
    m->weight = (octavo_weight){.type = type, .n = n, .k = k, .stack = stack};
    m->row_bytes = bytes_of_inputs(type, k);
    m->blocks = must(octavo_alloc_zero((size_t)rows, m->row_bytes));
    float *row = must(octavo_alloc_zero((size_t)k, sizeof *row));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < k; i++)
            row[i] = 1.7f * scale * uniform();
        if (type == OCTAVO_WEIGHT_F32)
            memcpy(m->blocks + (size_t)r * m->row_bytes, row, m->row_bytes);
        else
            octavo_weight_quantize(type, m->blocks + (size_t)r * m->row_bytes, row, k);
    }
    octavo_free(row);
    m->data = must(octavo_alloc_aligned(packed_bytes(&m->weight)));
    world_pack(&m->weight, m->data, m->blocks, m->row_bytes);
    return &m->weight;
}

static const float *add_vector(world *w, int64_t n, float around) {
    assert_true(w->n_vectors < WORLD_VECTORS);
    float *v = must(octavo_alloc_zero((size_t)n, sizeof *v));
    for (int64_t i = 0; i < n; i++)
        v[i] = around + 0.3f * uniform();
    return w->vectors[w->n_vectors++] = v;
}

/* ---- the program ---- */

static int build_matrix(world *w, octavo_builder *b, const char *name, int64_t stack, int64_t n,
                        int64_t k, int64_t e0, int64_t e1, int64_t e2) {
    const int64_t extent[] = {e0, e1, e2};
    return octavo_build_weight(b, name, add_matrix(w, w->desc.type, stack, n, k), extent);
}

static int build_bias(world *w, octavo_builder *b, const char *name, const char *axes, int64_t e0,
                      int64_t e1) {
    const int64_t extent[] = {e0, e1};
    if (!w->desc.has_bias) return OCTAVO_NO_TENSOR;
    return octavo_build_vector(b, name, axes, add_vector(w, e0 * e1, 0.0f), extent);
}

static octavo_slices slices_of(const world *w, int64_t extent, int64_t unit) {
    const int64_t block = octavo_weight_info_of(w->desc.type)->record_inputs;
    return octavo_slices_make(extent, octavo_slices_unit(unit, block));
}

static int build_norm(world *w, octavo_builder *b, const char *name, int x) {
    const world_desc *desc = &w->desc;
    const octavo_norm_desc norm = {
        .kind = desc->is_layer_norm ? OCTAVO_NORM_LAYER : OCTAVO_NORM_RMS,
        .scale = octavo_build_vector(b, "norm_scale", "d", add_vector(w, desc->d, 1.0f),
                                     (int64_t[]){desc->d}),
        .bias = desc->is_layer_norm
                    ? octavo_build_vector(b, "norm_bias", "d", add_vector(w, desc->d, 0.0f),
                                          (int64_t[]){desc->d})
                    : OCTAVO_NO_TENSOR,
        .eps = 1e-5f};
    return octavo_build_norm(b, name, x, &norm, slices_of(w, desc->d, 1));
}

static int build_qk_norm(world *w, octavo_builder *b, const char *name, const char *axes, int x,
                         int heads) {
    const world_desc *desc = &w->desc;
    const int64_t extent[] = {heads, desc->head_dim};
    if (desc->has_head_norm)
        return octavo_build_head_norm(b, x,
                                      octavo_build_vector(b, "attn_head_norm_scale_h", "h",
                                                          add_vector(w, desc->head_dim, 1.0f),
                                                          (int64_t[]){desc->head_dim}),
                                      1e-5f);
    if (!desc->has_whole_qk_norm) return x;
    const octavo_norm_desc norm = {
        .kind = OCTAVO_NORM_RMS,
        .scale = octavo_build_vector(b, "norm_scale", axes,
                                     add_vector(w, extent[0] * extent[1], 1.0f), extent),
        .bias = OCTAVO_NO_TENSOR,
        .eps = 1e-5f};
    return octavo_build_norm(b, name, x, &norm,
                             octavo_slices_make(extent[0] * extent[1], desc->head_dim));
}

static int build_attention(world *w, octavo_builder *b, int x, int table) {
    const world_desc *s = &w->desc;
    const int64_t n = s->n_heads, k = s->n_kv_heads, h = s->head_dim, d = s->d;
    const octavo_slices slices = slices_of(w, d, 1);
    int weights[] = {build_matrix(w, b, "attn_q_weight_dnh", 0, n * h, d, d, n, h),
                     build_matrix(w, b, "attn_k_weight_dkh", 0, k * h, d, d, k, h),
                     build_matrix(w, b, "attn_v_weight_dkh", 0, k * h, d, d, k, h)};
    int in[3];
    octavo_build_operands(b, "activation_q_td", x, weights, in, 3);
    int q = octavo_build_matmul(b, "query_tnh", in[0], weights[0],
                                build_bias(w, b, "attn_q_bias_nh", "nh", n, h), slices, "nh", n, h);
    int key =
        octavo_build_matmul(b, "keyvalue_skh", in[1], weights[1],
                            build_bias(w, b, "attn_k_bias_kh", "kh", k, h), slices, "kh", k, h);
    int value =
        octavo_build_matmul(b, "keyvalue_skh", in[2], weights[2],
                            build_bias(w, b, "attn_v_bias_kh", "kh", k, h), slices, "kh", k, h);
    q = build_qk_norm(w, b, "query_tnh", "nh", q, (int)n);
    key = build_qk_norm(w, b, "keyvalue_skh", "kh", key, (int)k);
    q = octavo_build_rope(b, q, table, OCTAVO_ROPE_HALF, 0);
    key = octavo_build_rope(b, key, table, OCTAVO_ROPE_HALF, 0);
    int a = octavo_build_attention(
        b, "attn_o_tnh",
        &(octavo_attention_desc){.query = q,
                                 .key = key,
                                 .value = value,
                                 .cache = octavo_build_cache(b, "keyvalue_skh", k, h),
                                 .sink = build_bias(w, b, "attn_sinks_n", "n", n, 1),
                                 .scale = 0.25f,
                                 .window = b->layer == 1 ? 9 : 0});
    int o = build_matrix(w, b, "attn_o_weight_nhd", 0, d, n * h, n, h, d), operand;
    octavo_build_operands(b, "attn_o_tnh", a, &o, &operand, 1);
    return octavo_build_matmul(b, "activation_attention_out_td", operand, o,
                               build_bias(w, b, "attn_o_bias_d", "d", d, 1), slices_of(w, n * h, h),
                               "d", d, 1);
}

static int build_dense(world *w, octavo_builder *b, int x) {
    const int64_t d = w->desc.d, f = w->desc.ffw;
    const octavo_slices slices = slices_of(w, d, 1);
    int weights[] = {build_matrix(w, b, "ffw_weight_df", 0, f, d, d, f, 0),
                     build_matrix(w, b, "ffw_weight_df", 0, f, d, d, f, 0)};
    int down = build_matrix(w, b, "ffw_weight_fd", 0, d, f, f, d, 0), in[2], operand;
    octavo_build_operands(b, "activation_ffw_td", x, weights, in, 2);
    int gate = octavo_build_matmul(b, "ffw_hidden_tf", in[0], weights[0],
                                   build_bias(w, b, "ffw_bias_f", "f", f, 1), slices, "f", f, 1);
    int up = octavo_build_matmul(b, "ffw_hidden_tf", in[1], weights[1],
                                 build_bias(w, b, "ffw_bias_f", "f", f, 1), slices, "f", f, 1);
    int hidden = octavo_build_gate(b, "ffw_hidden_tf", gate, up, OCTAVO_ACTIVATION_SILU, 0.0f);
    octavo_build_operands(b, "ffw_hidden_tf", hidden, &down, &operand, 1);
    return octavo_build_matmul(b, "activation_ffw_out_td", operand, down,
                               build_bias(w, b, "ffw_bias_d", "d", d, 1), slices_of(w, f, 1), "d",
                               d, 1);
}

static int build_experts(world *w, octavo_builder *b, int x) {
    const int64_t d = w->desc.d, f = w->desc.ffw, e = w->desc.n_experts;
    const octavo_slices slices = slices_of(w, d, 1);
    const octavo_router router = {
        .is_normalised = true, .scale = 1.0f, .n_chosen = w->desc.n_chosen};
    int by = build_matrix(w, b, "moe_router_de", 0, e, d, d, e, 0), operand, in[2];
    int weights[] = {build_matrix(w, b, "moe_weights_edf", e, f, d, e, d, f),
                     build_matrix(w, b, "moe_weights_edf", e, f, d, e, d, f)};
    int down = build_matrix(w, b, "moe_weights_efd", e, d, f, e, f, d);
    octavo_build_operands(b, "activation_ffw_td", x, &by, &operand, 1);
    int logits =
        octavo_build_matmul(b, "router_logits_te", operand, by,
                            build_bias(w, b, "moe_router_bias_e", "e", e, 1), slices, "e", e, 1);
    int route = octavo_build_route(b, "router_choice_tc", logits, OCTAVO_NO_TENSOR, &router);
    octavo_build_operands(b, "activation_ffw_td", x, weights, in, 2);
    int rows = octavo_build_gather(b, "activation_ffw_ted", in[0], route, &router);
    int gate =
        octavo_build_expert_matmul(b, "moe_hidden_tef", rows, weights[0],
                                   build_bias(w, b, "moe_bias_ef", "ef", e, f), route, slices, 'f');
    int up =
        octavo_build_expert_matmul(b, "moe_hidden_tef", rows, weights[1],
                                   build_bias(w, b, "moe_bias_ef", "ef", e, f), route, slices, 'f');
    int hidden = octavo_build_gate(b, "moe_hidden_tef", gate, up, OCTAVO_ACTIVATION_SILU, 0.0f);
    octavo_build_operands(b, "moe_hidden_tef", hidden, &down, &operand, 1);
    int out = octavo_build_expert_matmul(b, "moe_out_ted", operand, down,
                                         build_bias(w, b, "moe_bias_ed", "ed", e, d), route,
                                         slices_of(w, f, 1), 'd');
    return octavo_build_combine(b, "activation_ffw_out_td", out, route, &router);
}

static int build_layer(world *w, octavo_builder *b, int x, int table) {
    int a = build_norm(w, b, "activation_attention_td", x);
    x = octavo_build_add(b, "activation_td", x, build_attention(w, b, a, table), 1.0f);
    a = build_norm(w, b, "activation_ffw_td", x);
    a = w->desc.n_experts > 0 && b->layer > 0 ? build_experts(w, b, a) : build_dense(w, b, a);
    return octavo_build_add(b, "activation_td", x, a, 1.0f);
}

static void build(world *w) {
    static float frequencies[64];
    const world_desc *desc = &w->desc;
    const int64_t vd[] = {desc->vocab, desc->d};
    octavo_builder b;
    octavo_error error;
    int operand;
    for (int i = 0; i < desc->head_dim / 2; i++)
        frequencies[i] = powf(0.1f, (float)i / (float)desc->head_dim);
    octavo_build_start(&b, &w->program, WORLD_TOKENS, WORLD_ROWS, desc->is_exact);
    int embed = octavo_build_weight(&b, desc->is_tied ? "vocab_vd" : "emb_weight_vd",
                                    add_matrix(w, desc->type, 0, desc->vocab, desc->d), vd);
    const octavo_rope_speeds speeds = {.frequencies = frequencies, .scale = 1.0f};
    int table = octavo_build_rope_table(&b, "rope_table_th", &speeds, desc->head_dim / 2);
    int x = octavo_build_embed(&b, "activation_td", b.program->ids, embed, 1.0f);
    if (desc->has_positions) {
        const int64_t position[] = {WORLD_POSITIONS, desc->d}, type[] = {3, desc->d};
        int table0 =
            octavo_build_weight(&b, "position_weight_vd",
                                add_matrix(w, desc->type, 0, WORLD_POSITIONS, desc->d), position);
        int table1 = octavo_build_weight(&b, "type_weight_vd",
                                         add_matrix(w, desc->type, 0, 3, desc->d), type);
        int row = octavo_build_embed(&b, "activation_td", b.program->positions, table0, 1.0f);
        x = octavo_build_add(&b, "activation_td", x, row, 1.0f);
        row = octavo_build_embed(&b, "activation_td", b.program->types, table1, 1.0f);
        x = octavo_build_add(&b, "activation_td", x, row, 1.0f);
    }
    for (b.layer = 0; b.layer < WORLD_LAYERS; b.layer++) {
        octavo_build_trace(&b, x);
        x = build_layer(w, &b, x, table);
    }
    b.layer = OCTAVO_NO_LAYER;
    x = octavo_build_select(&b, "activation_rd", x);
    x = build_norm(w, &b, "prelogit_td", x);
    octavo_build_hidden(&b, x);
    int output = desc->is_tied ? embed
                               : build_matrix(w, &b, "vocab_dv", 0, desc->vocab, desc->d, desc->d,
                                              desc->vocab, 0);
    octavo_build_operands(&b, "prelogit_td", x, &output, &operand, 1);
    int logits = octavo_build_matmul(&b, "logits_tv", operand, output, OCTAVO_NO_TENSOR,
                                     slices_of(w, desc->d, 1), "v", desc->vocab, 1);
    logits = octavo_build_scale(&b, logits, 0.5f, 30.0f);
    if (octavo_build_finish(&b, logits, &error) != OCTAVO_OK) fail_msg("%s", error.message);
}

void world_make(world *w, const world_desc *desc) {
    *w = (world){.desc = *desc};
    build(w);
    assert_true(octavo_program_axes_init(&w->axes, &w->program));
}

void world_free(world *w) {
    for (int i = 0; i < w->n_matrices; i++) {
        octavo_free(w->matrices[i].blocks);
        octavo_free_aligned(w->matrices[i].data);
    }
    for (int i = 0; i < w->n_vectors; i++)
        octavo_free(w->vectors[i]);
    octavo_program_axes_deinit(&w->axes);
    octavo_program_deinit(&w->program);
}

void world_results_free(world_results *results) {
    octavo_free(results->logits);
    octavo_free(results->hidden);
    octavo_free(results->traces);
    *results = (world_results){0};
}
