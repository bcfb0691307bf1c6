/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of op kinds, and what each does. A run function walks its thread's share of rows (or
 * panels); arithmetic lives in the kernels.
 */
#include "program/op.h"

#include "program/operand.h"

#include <math.h>
#include <string.h>

/* ---- rows ---- */

/* Inputs [begin, begin + n) of one output, where the weight has more. */
static void unpack_part(const octavo_weight *weight, float *out, const uint8_t *panel, int row,
                        int64_t begin, int64_t n) {
    float block[OCTAVO_BLOCK][OCTAVO_PANEL];
    for (int64_t i = 0; i < n;) {
        const int64_t k0 = (begin + i) / OCTAVO_BLOCK * OCTAVO_BLOCK;
        const int64_t k1 = k0 + OCTAVO_BLOCK < weight->k ? k0 + OCTAVO_BLOCK : weight->k;
        octavo_weight_unpack(weight->type, block[0], panel, k0, k1);
        for (; i < n && begin + i < k1; i++)
            out[i] = block[begin + i - k0][row];
    }
}

/* in: ids, positions or types; weight. Of a rank that has some of the table's rows, those alone. */
static void run_embed(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_tensor *table = octavo_tensor_at(run, op->in[1]);
    const octavo_tensor *to = octavo_tensor_at(run, op->out);
    const octavo_weight *weight = table->weight;
    const size_t panel_bytes = octavo_weight_panel_bytes(weight->type, weight->k);
    const float scale = op->params.scale * (weight->factors ? weight->factors[0] : 1.0f);
    const int32_t *ids = octavo_input_of(run, op->in[0]) + octavo_first_row(run, op->out);
    const int64_t width = to->extent[1], first = to->begin[1] - table->begin[1];
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const int64_t id = ids[t] - table->begin[0];
        if (id < 0 || id >= weight->n) continue;
        float *out = octavo_row_of(run, op->out, t);
        const uint8_t *panel =
            octavo_data_of(run, op->in[1]) + (size_t)(id / OCTAVO_PANEL) * panel_bytes;
        if (width == weight->k)
            octavo_weight_unpack_row(weight->type, out, panel, (int)(id % OCTAVO_PANEL), width);
        else
            unpack_part(weight, out, panel, (int)(id % OCTAVO_PANEL), first, width);
        if (scale != 1.0f) run->vector.scale_mul(out, out, scale, NULL, width);
    }
}

/* The frequencies of row t, whose sequence is *s or a later one. */
static const float *frequencies_of(const octavo_run *run, const octavo_rope_speeds *speeds,
                                   int64_t t, int *s) {
    if (!speeds->long_frequencies) return speeds->frequencies;
    while (*s + 1 < run->step->n_sequences && run->step->query_start_loc[*s + 1] <= t)
        ++*s;
    return run->step->lengths[*s] > speeds->short_length ? speeds->long_frequencies
                                                         : speeds->frequencies;
}

/* in: positions. The angle is rounded to f32 once, as the models' own code does. */
static void run_rope_table(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_rope_speeds *speeds = &op->params.speeds;
    const int64_t pairs = octavo_tensor_at(run, op->out)->extent[1] / 2;
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    const int64_t first = octavo_first_row(run, op->out);
    int s = 0;
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const float *frequencies = frequencies_of(run, speeds, first + t, &s);
        float *cs = octavo_row_of(run, op->out, t);
        for (int64_t i = 0; i < pairs; i++) {
            float angle = (float)run->step->positions[first + t] * frequencies[i];
            cs[2 * i] = (float)cos((double)angle) * speeds->scale;
            cs[2 * i + 1] = (float)sin((double)angle) * speeds->scale;
        }
    }
}

/* in: x, scale, bias or none. */
static void run_norm(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const float *scale = octavo_vector_for(run, op->in[1], op->out);
    const float *bias = octavo_vector_for(run, op->in[2], op->out);
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        float *out = octavo_row_of(run, op->out, t);
        const float *x = octavo_row_of(run, op->in[0], t);
        if (op->params.norm == OCTAVO_NORM_LAYER)
            octavo_layer_norm(&run->vector, out, x, scale, bias, &op->params.slices,
                              op->params.eps);
        else
            octavo_rms_norm(&run->vector, out, x, scale, &op->params.slices, op->params.eps);
    }
}

/* in: x, scale or none; in place. */
static void run_head_norm(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_tensor *x = octavo_tensor_at(run, op->out);
    const float *scale = octavo_vector_of(run, op->in[1]);
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        float *row = octavo_row_of(run, op->out, t);
        for (int64_t n = 0; n < x->extent[1]; n++, row += x->extent[2])
            octavo_rms_norm(&run->vector, row, row, scale, &op->params.slices, op->params.eps);
    }
}

/* in: x, whole rows. Rows of p are of an expert each, and so are orders. */
static void run_reorder(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_tensor *x = octavo_tensor_at(run, op->out);
    const int64_t width = octavo_width_of(octavo_tensor_at(run, op->in[0]));
    const int64_t first = octavo_first_column(x), n = octavo_width_of(x);
    const int32_t *order = op->params.order;
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    int e = 0;
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const float *from = octavo_row_of(run, op->in[0], t);
        float *to = octavo_row_of(run, op->out, t);
        while (x->axes[0] == 'p' && run->expert_begin[e + 1] <= t)
            e++;
        const int64_t expert = x->axes[0] == 'p' ? run->first_expert + e : 0;
        for (int64_t i = 0; i < n; i++)
            to[i] = from[order[expert * width + first + i]];
    }
}

/* in: x. */
static void run_quantise(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const int64_t width = octavo_width_of(octavo_tensor_at(run, op->out));
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++)
        run->vector.quantise_q8(octavo_row_of(run, op->out, t), octavo_row_of(run, op->in[0], t),
                                width);
}

/* in: x, table; in place. */
static void run_rope(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_tensor *x = octavo_tensor_at(run, op->out);
    const int64_t pairs = octavo_tensor_at(run, op->in[1])->extent[1] / 2;
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const float *cs = octavo_row_of(run, op->in[1], t);
        float *row = (float *)octavo_row_of(run, op->out, t) + op->params.first_lane;
        for (int64_t n = 0; n < x->extent[1]; n++, row += x->extent[2]) {
            if (op->params.pairing == OCTAVO_ROPE_HALF)
                run->vector.rope_half(row, cs, pairs);
            else
                run->vector.rope_pairwise(row, cs, pairs);
        }
    }
}

/* in: x, positions; in place. */
static void run_temperature(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_temperature *by = &op->params.temperature;
    const int32_t *positions = run->step->positions + octavo_first_row(run, op->out);
    const int64_t width = octavo_width_of(octavo_tensor_at(run, op->out));
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        float *x = octavo_row_of(run, op->out, t);
        const double periods = floor(((double)positions[t] + by->first) / (double)by->period);
        run->vector.scale_mul(x, x, 1.0f + by->scale * (float)log(1.0 + periods), NULL, width);
    }
}

/* in: gate, up or none. */
static void run_gate(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const int64_t width = octavo_width_of(octavo_tensor_at(run, op->out));
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        float *out = octavo_row_of(run, op->out, t);
        const float *gate = octavo_row_of(run, op->in[0], t);
        const float *up = op->in[1] == OCTAVO_NO_TENSOR ? NULL : octavo_row_of(run, op->in[1], t);
        switch (op->params.act) {
        case OCTAVO_ACTIVATION_SILU:
            run->vector.gate_silu(out, gate, up, width);
            break;
        case OCTAVO_ACTIVATION_GELU_TANH:
            run->vector.gate_gelu_tanh(out, gate, up, width);
            break;
        case OCTAVO_ACTIVATION_GELU:
            run->vector.gate_gelu(out, gate, up, width);
            break;
        case OCTAVO_ACTIVATION_RELU2:
            run->vector.gate_relu2(out, gate, up, width);
            break;
        case OCTAVO_ACTIVATION_SWIGLU:
            run->vector.gate_swiglu(out, gate, up, op->params.limit, width);
            break;
        }
    }
}

/* in: a, b. */
static void run_add(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const int64_t width = octavo_width_of(octavo_tensor_at(run, op->out));
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        float *out = octavo_row_of(run, op->out, t);
        const float *b = octavo_row_of(run, op->in[1], t);
        if (op->params.scale != 1.0f) {
            run->vector.scale_mul(out, b, op->params.scale, NULL, width);
            b = out;
        }
        run->vector.add(out, octavo_row_of(run, op->in[0], t), b, width);
    }
}

/* in: x; in place. */
static void run_scale(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const int64_t width = octavo_width_of(octavo_tensor_at(run, op->out));
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        float *x = octavo_row_of(run, op->out, t);
        if (op->params.scale != 1.0f) run->vector.scale_mul(x, x, op->params.scale, NULL, width);
        if (op->params.soft_cap != 0.0f) run->vector.soft_cap(x, op->params.soft_cap, width);
    }
}

/* in: x, all of whose rows that are needed the rank has. */
static void run_select(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const size_t bytes = (size_t)octavo_tensor_at(run, op->out)->extent[1] * sizeof(float);
    const int32_t *numbers = run->row_numbers + octavo_first_row(run, op->out);
    const int64_t first = octavo_first_row(run, op->in[0]);
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t r = rows.begin; r < rows.end; r++)
        memcpy(octavo_row_of(run, op->out, r),
               octavo_row_of(run, op->in[0], run->step->logit_rows[numbers[r]] - first), bytes);
}

/* ---- matmul ---- */

/* in: x, weight, bias or none. Threads share the panels. */
static void run_matmul(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_tensor *x = octavo_tensor_at(run, op->in[0]),
                        *out = octavo_tensor_at(run, op->out);
    const octavo_weight *weight = octavo_tensor_at(run, op->in[1])->weight;
    const int64_t n = octavo_width_of(out), first = op->params.first_output;
    octavo_matmul_args args = {
        .type = weight->type,
        .weight =
            octavo_data_of(run, op->in[1]) +
            (size_t)(first / OCTAVO_PANEL) * octavo_weight_panel_bytes(weight->type, weight->k),
        .n = first % OCTAVO_PANEL + n,
        .first = first % OCTAVO_PANEL,
        .k = weight->k,
        .slices = &op->params.slices,
        .slice_begin = 0,
        .slice_end = op->params.slices.n,
        .x = octavo_first_input(run, op),
        .x_stride = x->row_bytes,
        .is_q8 = x->is_q8,
        .n_rows = octavo_rows_of(run, op->out),
        .out = octavo_row_of(run, op->out, 0),
        .out_stride = (int64_t)(out->row_bytes / sizeof(float)),
        .factor = op->params.is_partial ? NULL : weight->factors,
        .bias = octavo_vector_for(run, op->in[2], op->out),
    };
    int64_t begin, end;
    octavo_pool_share(n > 0 ? (args.n + OCTAVO_PANEL - 1) / OCTAVO_PANEL : 0, 1, thread, n_threads,
                      &begin, &end);
    octavo_matmul(&run->matmul, &args, begin, end);
}

/* ---- costs ---- */

static size_t weight_bytes_of(const octavo_tensor *tensor) {
    if (tensor->kind == OCTAVO_TENSOR_WEIGHT)
        return octavo_weight_bytes(tensor->weight->type, tensor->weight->n, tensor->weight->k);
    return tensor->kind == OCTAVO_TENSOR_VECTOR ? (size_t)octavo_elements_of(tensor) * sizeof(float)
                                                : 0;
}

/* Rows of a tensor in a step of so many tokens. */
static double rows_for(const octavo_tensor *tensor, int64_t rows) {
    return (double)rows * (tensor->axes[0] == 'p' ? (double)tensor->extent[0] : 1.0);
}

/* Every operand is read once, the result is written once; `operations` for each element of the
 * result. */
static octavo_op_cost cost_of_operands(const octavo_program *program, const octavo_op *op,
                                       int64_t rows, double operations) {
    octavo_op_cost cost = {0};
    for (int i = 0; i < OCTAVO_OP_INPUTS; i++) {
        if (op->in[i] == OCTAVO_NO_TENSOR) continue;
        const octavo_tensor *tensor = &program->tensors[op->in[i]];
        cost.weight_bytes += (double)weight_bytes_of(tensor);
        cost.activation_bytes += (double)tensor->row_bytes * rows_for(tensor, rows);
    }
    const octavo_tensor *out = &program->tensors[op->out];
    cost.activation_bytes += (double)out->row_bytes * rows_for(out, rows);
    cost.operations = operations * (double)octavo_width_of(out) * rows_for(out, rows);
    return cost;
}

static octavo_op_cost cost_rows(const octavo_program *program, const octavo_op *op, int64_t rows) {
    return cost_of_operands(program, op, rows, 4);
}

static octavo_op_cost cost_embed(const octavo_program *program, const octavo_op *op, int64_t rows) {
    octavo_op_cost cost = cost_of_operands(program, op, rows, 1);
    const octavo_weight *weight = program->tensors[op->in[1]].weight;
    cost.weight_bytes =
        cost.weight_bytes / (double)weight->n * (double)rows; /* only the rows looked up */
    return cost;
}

static octavo_op_cost cost_matmul(const octavo_program *program, const octavo_op *op,
                                  int64_t rows) {
    return cost_of_operands(program, op, rows, 2.0 * (double)program->tensors[op->in[1]].weight->k);
}

static octavo_op_cost cost_heads(const octavo_program *program, const octavo_op *op, int64_t rows) {
    octavo_op_cost cost = cost_matmul(program, op, rows);
    cost.weight_bytes *= (double)program->tensors[op->in[1]].weight->stack;
    return cost;
}

/* Of the stack only the experts that are chosen, at most one for each row. */
static octavo_op_cost cost_experts(const octavo_program *program, const octavo_op *op,
                                   int64_t rows) {
    const octavo_tensor *weight = &program->tensors[op->in[1]];
    octavo_op_cost cost = cost_matmul(program, op, rows);
    const double pairs = rows_for(&program->tensors[op->in[0]], rows);
    if (pairs < (double)weight->weight->stack)
        cost.weight_bytes *= pairs;
    else
        cost.weight_bytes *= (double)weight->weight->stack;
    return cost;
}

const octavo_op_info *octavo_op_info_of(octavo_op_kind kind) {
    static const octavo_op_info table[OCTAVO_OP_KINDS] = {
        [OCTAVO_OP_EMBED] = {"embed", "t,vd->td", run_embed, cost_embed},
        [OCTAVO_OP_ROPE_TABLE] = {"rope_table", "t->th", run_rope_table, cost_rows},
        [OCTAVO_OP_NORM] = {"norm", "tx,x,x->tx", run_norm, cost_rows},
        [OCTAVO_OP_HEAD_NORM] = {"head_norm", "tnh,h->tnh", run_head_norm, cost_rows},
        [OCTAVO_OP_REORDER] = {"reorder", "tx->tx", run_reorder, cost_rows},
        [OCTAVO_OP_QUANTISE] = {"quantise", "tx->tx", run_quantise, cost_rows},
        [OCTAVO_OP_MATMUL] = {"matmul", "tx,xy,y->ty", run_matmul, cost_matmul},
        [OCTAVO_OP_HEAD_MATMUL] = {"head_matmul", "tnx,nxy,tnz->tny", octavo_run_head_matmul,
                                   cost_heads},
        [OCTAVO_OP_ROPE] = {"rope", "tnh,th->tnh", run_rope, cost_rows},
        [OCTAVO_OP_TEMPERATURE] = {"temperature", "tnh,t->tnh", run_temperature, cost_rows},
        [OCTAVO_OP_CACHE_UPDATE] = {"cache_update", "tkh,tkh,skh->skh", octavo_run_cache_update,
                                    cost_rows},
        [OCTAVO_OP_ATTENTION] = {"attention", "tnh,skh,n->tnh", octavo_run_attention, cost_rows},
        [OCTAVO_OP_ATTENTION_MERGE] = {"attention_merge", "tnh,skh,n,tnh->tnh",
                                       octavo_run_attention_merge, cost_rows},
        [OCTAVO_OP_GATE] = {"gate", "tf,tf->tf", run_gate, cost_rows},
        [OCTAVO_OP_ADD] = {"add", "tx,tx->tx", run_add, cost_rows},
        [OCTAVO_OP_SCALE] = {"scale", "tx->tx", run_scale, cost_rows},
        [OCTAVO_OP_SELECT] = {"select", "td->rd", run_select, cost_rows},
        [OCTAVO_OP_ROUTE] = {"route", "te,e->tc", octavo_run_route, cost_rows},
        [OCTAVO_OP_GROUP] = {"group", "tc->tc", octavo_run_group, cost_rows},
        [OCTAVO_OP_GATHER] = {"gather", "tx,tc->px", octavo_run_gather, cost_rows},
        [OCTAVO_OP_EXPERT_MATMUL] = {"expert_matmul", "px,exy,tc,ey->py", octavo_run_expert_matmul,
                                     cost_experts},
        [OCTAVO_OP_COMBINE] = {"combine", "px,tc->tx", octavo_run_combine, cost_rows},
        [OCTAVO_OP_ROW_GATE] = {"row_gate", "tx,t->tx", octavo_run_row_gate, cost_rows},
        [OCTAVO_OP_NORM_SUM] = {"norm_sum", "tx->t", octavo_run_norm_sum, cost_rows},
        [OCTAVO_OP_NORM_APPLY] = {"norm_apply", "tx,x,x,t->tx", octavo_run_norm_apply, cost_rows},
        [OCTAVO_OP_RESHARD] = {"reshard", "tx->tx", octavo_run_reshard, cost_rows},
    };
    return &table[kind];
}
