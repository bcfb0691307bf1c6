/* SPDX-License-Identifier: Apache-2.0
 *
 * Building a program and planning its memory, without a model.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "program/build.h"
#include "program/op.h"

#include <string.h>

enum { D = 64, HEADS = 4, KV_HEADS = 2, DIM = 16, FFW = 128, VOCAB = 100, LAYERS = 3 };

static octavo_weight weight_of(octavo_weight_type type, int64_t n, int64_t k) {
    return (octavo_weight){.type = type, .n = n, .k = k};
}

typedef struct weights {
    octavo_weight embed, q, k, v, o, gate, up, down;
} weights;

static weights make_weights(void) {
    return (weights){
        .embed = weight_of(OCTAVO_WEIGHT_Q8_0, VOCAB, D),
        .q = weight_of(OCTAVO_WEIGHT_Q4_0, HEADS * DIM, D),
        .k = weight_of(OCTAVO_WEIGHT_F16, KV_HEADS * DIM, D),
        .v = weight_of(OCTAVO_WEIGHT_Q4_0, KV_HEADS * DIM, D),
        .o = weight_of(OCTAVO_WEIGHT_F32, D, HEADS * DIM),
        .gate = weight_of(OCTAVO_WEIGHT_Q8_0, FFW, D),
        .up = weight_of(OCTAVO_WEIGHT_Q8_0, FFW, D),
        .down = weight_of(OCTAVO_WEIGHT_Q8_0, D, FFW),
    };
}

static int add_layer(octavo_builder *b, const weights *w, int x, int table) {
    static const float ones[FFW];
    const octavo_slices d = octavo_slices_make(D, 32), f = octavo_slices_make(FFW, 32);
    const int64_t dnh[] = {D, HEADS, DIM}, dkh[] = {D, KV_HEADS, DIM}, nhd[] = {HEADS, DIM, D};
    const int64_t df[] = {D, FFW}, fd[] = {FFW, D};
    int norm = octavo_build_vector(b, "norm_scale", "d", ones, &(int64_t){D});
    int qkv[3] = {octavo_build_weight(b, "attn_q_weight_dnh", &w->q, dnh),
                  octavo_build_weight(b, "attn_k_weight_dkh", &w->k, dkh),
                  octavo_build_weight(b, "attn_v_weight_dkh", &w->v, dkh)};
    int o = octavo_build_weight(b, "attn_o_weight_nhd", &w->o, nhd);
    int ffw[2] = {octavo_build_weight(b, "ffw_weight_df", &w->gate, df),
                  octavo_build_weight(b, "ffw_weight_df", &w->up, df)};
    int down = octavo_build_weight(b, "ffw_weight_fd", &w->down, fd);
    int cache = octavo_build_cache(b, "keyvalue_skh", KV_HEADS, DIM);
    int in[3], none = OCTAVO_NO_TENSOR;

    const octavo_norm_desc rms = {.scale = norm, .bias = OCTAVO_NO_TENSOR, .eps = 1e-5f};
    int a = octavo_build_norm(b, "activation_attention_td", x, &rms, d);
    octavo_build_operands(b, "activation_q_td", a, qkv, in, 3);
    int q = octavo_build_matmul(b, "query_tnh", in[0], qkv[0], none, d, "nh", HEADS, DIM);
    int k = octavo_build_matmul(b, "keyvalue_skh", in[1], qkv[1], none, d, "kh", KV_HEADS, DIM);
    int v = octavo_build_matmul(b, "keyvalue_skh", in[2], qkv[2], none, d, "kh", KV_HEADS, DIM);
    q = octavo_build_rope(b, q, table, OCTAVO_ROPE_HALF, 0);
    a = octavo_build_attention(
        b, "attn_o_tnh",
        &(octavo_attention_desc){
            .query = q, .key = k, .value = v, .cache = cache, .sink = none, .scale = 1.0f});
    a = octavo_build_matmul(b, "activation_attention_out_td", a, o, none,
                            octavo_slices_make(HEADS * DIM, DIM), "d", D, 1);
    x = octavo_build_add(b, "activation_td", x, a, 1.0f);
    octavo_build_operands(b, "activation_ffw_td", x, ffw, in, 2);
    int gate = octavo_build_matmul(b, "ffw_hidden_tf", in[0], ffw[0], none, d, "f", FFW, 1);
    int up = octavo_build_matmul(b, "ffw_hidden_tf", in[1], ffw[1], none, d, "f", FFW, 1);
    int hidden = octavo_build_gate(b, "ffw_hidden_tf", gate, up, OCTAVO_ACTIVATION_SILU, 0.0f);
    octavo_build_operands(b, "ffw_hidden_tf", hidden, &down, in, 1);
    int y = octavo_build_matmul(b, "activation_ffw_out_td", in[0], down, none, f, "d", D, 1);
    return octavo_build_add(b, "activation_td", x, y, 0.5f);
}

static void build(octavo_program *program, const weights *w, bool is_exact) {
    static const float frequencies[DIM / 2];
    octavo_builder b;
    octavo_error error;
    const int64_t vd[] = {VOCAB, D};
    int operand;
    octavo_build_start(&b, program, 10, 4, is_exact);
    int embed = octavo_build_weight(&b, "vocab_vd", &w->embed, vd);
    const octavo_rope_speeds speeds = {.frequencies = frequencies, .scale = 1.0f};
    int table = octavo_build_rope_table(&b, "rope_table_th", &speeds, DIM / 2);
    int x = octavo_build_embed(&b, "activation_td", b.program->ids, embed, 1.0f);
    for (b.layer = 0; b.layer < LAYERS; b.layer++) {
        octavo_build_trace(&b, x);
        x = add_layer(&b, w, x, table);
    }
    b.layer = OCTAVO_NO_LAYER;
    x = octavo_build_select(&b, "activation_rd", x);
    octavo_build_hidden(&b, x);
    octavo_build_operands(&b, "prelogit_td", x, &embed, &operand, 1);
    int logits = octavo_build_matmul(&b, "logits_tv", operand, embed, OCTAVO_NO_TENSOR,
                                     octavo_slices_make(D, 32), "v", VOCAB, 1);
    if (octavo_build_finish(&b, logits, &error) != OCTAVO_OK) fail_msg("%s", error.message);
}

static size_t bytes_of(const octavo_program *program, const octavo_tensor *tensor) {
    return tensor->row_bytes *
           (size_t)(tensor->axes[0] == 'r' ? program->max_rows : program->max_tokens);
}

/* No two tensors whose lives meet share a byte, and all lie inside the arena. */
static void test_places(void **state) {
    (void)state;
    weights w = make_weights();
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        octavo_program program;
        size_t sum = 0;
        build(&program, &w, is_exact);
        for (int i = 0; i < program.n_tensors; i++) {
            const octavo_tensor *a = &program.tensors[i];
            if (a->kind != OCTAVO_TENSOR_ACTIVATION) continue;
            assert_true(a->first_op <= a->last_op);
            assert_int_equal(a->offset % OCTAVO_ALIGN, 0);
            assert_true(a->offset + bytes_of(&program, a) <= program.arena_bytes);
            sum += bytes_of(&program, a);
            for (int j = 0; j < i; j++) {
                const octavo_tensor *b = &program.tensors[j];
                if (b->kind != OCTAVO_TENSOR_ACTIVATION || b->first_op > a->last_op ||
                    a->first_op > b->last_op)
                    continue;
                assert_true(a->offset + bytes_of(&program, a) <= b->offset ||
                            b->offset + bytes_of(&program, b) <= a->offset);
            }
        }
        assert_true(program.arena_bytes * 3 < sum); /* places are used again */
        octavo_program_deinit(&program);
    }
}

/* What the head reads of the body stays until the last group of rows has been through. */
static void test_head_input_lives_on(void **state) {
    (void)state;
    weights w = make_weights();
    octavo_program program;
    build(&program, &w, false);
    const octavo_op *select = &program.ops[program.head_begin];
    assert_int_equal(select->kind, OCTAVO_OP_SELECT);
    assert_int_equal(program.tensors[select->in[0]].last_op, program.n_ops - 1);
    octavo_program_deinit(&program);
}

/* What can be handed out is alive when it is: traces while the op runs that reads them, hidden rows
 * while the first op of the logits does. */
static void test_handed_out(void **state) {
    (void)state;
    weights w = make_weights();
    octavo_program program;
    build(&program, &w, false);
    assert_int_equal(program.n_traces, LAYERS);
    for (int i = 0; i < LAYERS; i++) {
        const octavo_tensor *x = &program.tensors[program.traces[i].tensor];
        assert_int_equal(program.ops[program.traces[i].op].layer, i);
        assert_true(x->first_op < program.traces[i].op && x->last_op >= program.traces[i].op);
    }
    const octavo_tensor *hidden = &program.tensors[program.hidden];
    assert_int_equal(hidden->axes[0], 'r');
    assert_true(program.logits_begin > program.head_begin && program.logits_begin < program.n_ops);
    assert_true(hidden->last_op >= program.logits_begin);
    octavo_program_deinit(&program);
    assert_null(program.traces);
}

/* q takes quantised rows, k (f16) the rows themselves; v shares q's; nothing is quantised in exact.
 */
static void test_operands(void **state) {
    (void)state;
    weights w = make_weights();
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        octavo_program program;
        int n_quantise = 0;
        build(&program, &w, is_exact);
        for (int i = 0; i < program.n_ops; i++) {
            const octavo_op *op = &program.ops[i];
            n_quantise += op->kind == OCTAVO_OP_QUANTISE;
            if (op->kind != OCTAVO_OP_MATMUL) continue;
            octavo_weight_type type = program.tensors[op->in[1]].weight->type;
            assert_int_equal(program.tensors[op->in[0]].is_q8,
                             !is_exact && octavo_weight_info_of(type)->is_quantised);
        }
        assert_int_equal(n_quantise, is_exact ? 0 : 3 * LAYERS + 1);
        octavo_program_deinit(&program);
    }
}

/* The table has a name, axes and a cost for every kind, and a matmul's cost is its weight's. */
static void test_table(void **state) {
    (void)state;
    weights w = make_weights();
    octavo_program program;
    double weight_bytes = 0.0;
    build(&program, &w, false);
    for (int kind = 0; kind < OCTAVO_OP_KINDS; kind++) {
        const octavo_op_info *info = octavo_op_info_of((octavo_op_kind)kind);
        assert_non_null(info->name);
        assert_non_null(strstr(info->axes, "->"));
        assert_non_null(info->run);
    }
    for (int i = 0; i < program.n_ops; i++) {
        const octavo_op *op = &program.ops[i];
        octavo_op_cost cost = octavo_op_info_of(op->kind)->cost(&program, op, 2);
        assert_true(cost.activation_bytes > 0.0);
        if (op->kind != OCTAVO_OP_MATMUL) continue;
        weight_bytes += cost.weight_bytes;
        const octavo_weight *weight = program.tensors[op->in[1]].weight;
        assert_true(cost.operations == 2.0 * 2.0 * (double)weight->n * (double)weight->k);
    }
    double layer = (double)(octavo_weight_bytes(w.q.type, w.q.n, w.q.k) +
                            octavo_weight_bytes(w.k.type, w.k.n, w.k.k) +
                            octavo_weight_bytes(w.v.type, w.v.n, w.v.k) +
                            octavo_weight_bytes(w.o.type, w.o.n, w.o.k) +
                            3 * octavo_weight_bytes(w.up.type, w.up.n, w.up.k));
    assert_true(weight_bytes ==
                LAYERS * layer + (double)octavo_weight_bytes(w.embed.type, VOCAB, D));
    octavo_program_deinit(&program);
}

/* A mistake in a description is reported by the finish, and nothing is left behind. */
static void test_mistakes(void **state) {
    (void)state;
    static const float ones[D];
    weights w = make_weights();
    for (int mistake = 0; mistake < 8; mistake++) {
        octavo_program program;
        octavo_builder b;
        octavo_error error;
        const int64_t vd[] = {VOCAB, D}, fd[] = {FFW, D}, wrong[] = {3, 5};
        octavo_build_start(&b, &program, 10, 4, true);
        int embed = octavo_build_weight(&b, "vocab_vd", &w.embed, mistake == 0 ? wrong : vd);
        int x = octavo_build_embed(&b, "activation_td", mistake == 5 ? embed : b.program->ids,
                                   embed, 1.0f);
        if (mistake == 6) octavo_build_trace(&b, b.program->ids);
        if (mistake == 7) octavo_build_hidden(&b, x);
        int norm =
            octavo_build_vector(&b, "norm_scale", "d", ones, &(int64_t){mistake == 1 ? D - 1 : D});
        const octavo_norm_desc rms = {.scale = norm,
                                      .bias = mistake == 4 ? norm : OCTAVO_NO_TENSOR};
        x = octavo_build_norm(&b, "prelogit_td", x, &rms, octavo_slices_make(D, 1));
        if (mistake == 2) {
            int down = octavo_build_weight(&b, "ffw_weight_fd", &w.down, fd);
            x = octavo_build_matmul(&b, "logits_tv", x, down, OCTAVO_NO_TENSOR,
                                    octavo_slices_make(FFW, 1), "d", D, 1);
        }
        if (mistake != 3) x = octavo_build_select(&b, "activation_rd", x);
        assert_int_equal(octavo_build_finish(&b, x, &error), OCTAVO_ERROR_INVALID);
        assert_int_equal(error.status, OCTAVO_ERROR_INVALID);
        assert_true(strlen(error.message) > 10);
        assert_null(program.ops);
        assert_null(program.tensors);
    }
}

/* Attention whose key or value is missing where the cache wants it, or there where it does not, and
 * heads that a matrix does not fit. */
static void test_head_mistakes(void **state) {
    enum { KINDS = 9 };
    (void)state;
    weights w = make_weights();
    const octavo_weight heads = {.type = OCTAVO_WEIGHT_F32, .n = 24, .k = DIM - 4, .stack = HEADS};
    for (int kind = 0; kind < KINDS; kind++) {
        octavo_program program;
        octavo_builder b;
        octavo_error error;
        const int none = OCTAVO_NO_TENSOR;
        const int64_t vd[] = {VOCAB, D}, dnh[] = {D, HEADS, DIM}, dkh[] = {D, KV_HEADS, DIM};
        const int64_t nhl[] = {HEADS, DIM - 4, 24};
        const octavo_slices d = octavo_slices_make(D, 32);
        octavo_build_start(&b, &program, 10, 4, true);
        b.layer = 1;
        int embed = octavo_build_weight(&b, "vocab_vd", &w.embed, vd);
        int wq = octavo_build_weight(&b, "attn_q_weight_dnh", &w.q, dnh);
        int wk = octavo_build_weight(&b, "attn_k_weight_dkh", &w.k, dkh);
        int wh = octavo_build_weight(&b, "attn_k_b_weight_nhl", &heads, nhl);
        int x = octavo_build_embed(&b, "activation_td", b.program->ids, embed, 1.0f);
        int q = octavo_build_matmul(&b, "query_tnh", x, wq, none, d, "nh", HEADS, DIM);
        int k = octavo_build_matmul(&b, "keyvalue_skh", x, wk, none, d, "kh", KV_HEADS, DIM);
        b.layer = kind == 1 ? 0 : 1;
        int cache = octavo_build_cache(&b, "keyvalue_skh", KV_HEADS, DIM);
        b.layer = 1;
        octavo_attention_desc attention = {
            .query = q, .key = k, .value = k, .cache = cache, .sink = none, .scale = 1.0f};
        if (kind <= 1 || kind == 3) attention.key = attention.value = none; /* 1: another layer's */
        if (kind == 3) attention.value = k;
        if (kind == 2 || kind == 4 || kind == 6) attention.value = none;
        if (kind == 2 || kind == 5) attention.value_lanes = DIM - 1;
        if (kind == 6) attention.value_lanes = DIM + 1;
        octavo_build_attention(&b, "attn_o_tnh", &attention);
        if (kind >= 7)
            octavo_build_head_matmul(&b, "query_tnh", kind == 7 ? k : q, wh,
                                     octavo_slices_make(kind == 8 ? DIM : DIM - 4, 1));
        x = octavo_build_select(&b, "activation_rd", x);
        octavo_status status = octavo_build_finish(&b, x, &error);
        assert_int_equal(status, kind == 1 || kind == 2 ? OCTAVO_OK : OCTAVO_ERROR_INVALID);
        octavo_program_deinit(&program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),        cmocka_unit_test(test_head_input_lives_on),
        cmocka_unit_test(test_operands),      cmocka_unit_test(test_table),
        cmocka_unit_test(test_mistakes),      cmocka_unit_test(test_handed_out),
        cmocka_unit_test(test_head_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
