/* SPDX-License-Identifier: Apache-2.0
 *
 * The ops of experts. Pairs of a token and one of its experts are numbered by expert, then by
 * token: so an expert's rows lie together, its products are one matmul over them, and an expert
 * that nobody chose costs nothing. A token's bits depend on its own rows alone (kernels/matmul.h),
 * and its experts are added by their numbers (kernels/order.h), so they do not depend on the
 * company, nor on which rank has which experts.
 */
#include "program/operand.h"

#include <math.h>
#include <string.h>

/* Scores in place of the logits. */
static void score(const octavo_run *run, const octavo_router *router, float *logits, int64_t n) {
    if (!router->is_sigmoid) {
        run->vector.softmax(logits, n);
        return;
    }
    run->vector.scale_mul(logits, logits, -1.0f, NULL, n);
    run->vector.exp(logits, logits, n);
    for (int64_t i = 0; i < n; i++)
        logits[i] = 1.0f / (1.0f + logits[i]);
}

/* A set of experts or groups. */
typedef struct chosen_set {
    uint64_t bits[OCTAVO_MAX_EXPERTS / 64];
} chosen_set;

static bool is_in(const chosen_set *set, int64_t i) {
    return set->bits[i / 64] >> (i % 64) & 1;
}

/* The n_best of the n highest scores, of equal ones the first; `among` (NULL: all) holds groups of
 * `size`. Among NaNs too each is chosen once. */
static chosen_set choose(const float *scores, int64_t n, int n_best, const chosen_set *among,
                         int64_t size) {
    chosen_set set = {{0}};
    for (int c = 0; c < n_best; c++) {
        int64_t best = -1;
        for (int64_t e = 0; e < n; e++)
            if (!is_in(&set, e) && (!among || is_in(among, e / size)) &&
                (best < 0 || scores[e] > scores[best]))
                best = e;
        set.bits[best / 64] |= (uint64_t)1 << (best % 64);
    }
    return set;
}

/* Of a group: its best score, or the sum of the two best. */
static float score_group(const octavo_router *router, const float *scores, int64_t size) {
    float best = -INFINITY, second = -INFINITY;
    for (int64_t e = 0; e < size; e++) {
        if (scores[e] > best) {
            second = best;
            best = scores[e];
        } else if (scores[e] > second) {
            second = scores[e];
        }
    }
    return router->is_sigmoid && size > 1 ? best + second : best;
}

static chosen_set choose_experts(const octavo_router *router, const float *scores, int64_t n) {
    float groups[OCTAVO_MAX_EXPERTS];
    if (router->n_groups == 0) return choose(scores, n, router->n_chosen, NULL, 1);
    const int64_t size = n / router->n_groups;
    for (int g = 0; g < router->n_groups; g++)
        groups[g] = score_group(router, scores + g * size, size);
    const chosen_set among = choose(groups, router->n_groups, router->n_chosen_groups, NULL, 1);
    return choose(scores, n, router->n_chosen, &among, size);
}

/* Chosen experts by ascending number with their scores. */
static void list(const chosen_set *set, const float *scores, int64_t n, octavo_choice *choices) {
    for (int64_t e = 0; e < n; e++)
        if (is_in(set, e)) *choices++ = (octavo_choice){(int32_t)e, scores[e]};
}

static void weigh(const octavo_router *router, octavo_choice *choices) {
    float by = router->scale;
    if (router->is_normalised) {
        float sum = 0.0f;
        for (int c = 0; c < router->n_chosen; c++)
            sum += choices[c].weight;
        by = router->scale / (sum + 1e-20f); /* sigmoids may all be 0 */
    }
    for (int c = 0; c < router->n_chosen; c++)
        choices[c].weight *= by;
}

/* in: logits, which become scores, and a bias or none. */
void octavo_run_route(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_router *router = &op->params.router;
    const float *bias = octavo_vector_of(run, op->in[1]);
    const int64_t n = octavo_tensor_at(run, op->in[0])->extent[1];
    float biased[OCTAVO_MAX_EXPERTS];
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        float *scores = octavo_row_of(run, op->in[0], t);
        octavo_choice *choices = octavo_row_of(run, op->out, t);
        score(run, router, scores, n);
        if (bias) run->vector.add(biased, scores, bias, n);
        const chosen_set set = choose_experts(router, bias ? biased : scores, n);
        list(&set, scores, n, choices);
        weigh(router, choices);
    }
}

/* in: choices. One thread numbers the pairs: a step has few of them beside its products. Of a rank
 * with some experts those of its tokens and experts. */
void octavo_run_group(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const int n_chosen = op->params.router.n_chosen;
    const octavo_slices *experts = &op->params.slices;
    const int64_t first = experts->cut[0], n_experts = experts->cut[experts->n] - first;
    const int64_t n_tokens = octavo_rows_of(run, op->out);
    int32_t *begin = run->expert_begin;
    (void)n_threads;
    if (thread != 0) return;
    memset(begin, 0, (size_t)(n_experts + 1) * sizeof *begin);
    for (int64_t t = 0; t < n_tokens; t++) {
        const octavo_choice *choices = octavo_row_of(run, op->out, t);
        for (int c = 0; c < n_chosen; c++) {
            const int64_t e = choices[c].expert - first;
            if (e >= 0 && e < n_experts) begin[e + 1]++;
        }
    }
    for (int64_t e = 0; e < n_experts; e++)
        begin[e + 1] += begin[e];
    for (int64_t t = 0; t < n_tokens; t++) {
        const octavo_choice *choices = octavo_row_of(run, op->out, t);
        for (int c = 0; c < n_chosen; c++) {
            const int64_t e = choices[c].expert - first;
            run->expert_pair[t * n_chosen + c] = e >= 0 && e < n_experts ? begin[e]++ : -1;
        }
    }
    memmove(begin + 1, begin, (size_t)n_experts * sizeof *begin); /* each end was moved to */
    begin[0] = 0;
    run->n_pairs = begin[n_experts];
    run->first_expert = (int32_t)first;
    run->n_experts = (int32_t)n_experts;
}

/* in: x, choices. */
void octavo_run_gather(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_tensor *out = octavo_tensor_at(run, op->out);
    const int64_t n_chosen = out->extent[0];
    octavo_range rows = octavo_share_rows(run, op->in[0], thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const octavo_choice *choices = octavo_row_of(run, op->in[1], t);
        const void *x = octavo_row_of(run, op->in[0], t);
        for (int64_t c = 0; c < n_chosen; c++) {
            const int32_t pair = run->expert_pair[t * n_chosen + c];
            if (pair < 0) continue;
            void *to = octavo_row_of(run, op->out, pair);
            if (op->params.router.is_for_input)
                run->vector.scale_mul(to, x, choices[c].weight, NULL, octavo_width_of(out));
            else
                memcpy(to, x, out->row_bytes);
        }
    }
}

/* What a panel of an expert with so many rows costs, in rows: its weights are read once. */
static int64_t panel_cost(int64_t n_rows) {
    return n_rows > 0 ? n_rows + 4 : 0;
}

/* Panels [begin, end) of an expert whose panels begin at `base` and cost `cost` each, for the
 * thread whose share is [low, high): those that begin in it. */
static void share_panels(int64_t base, int64_t cost, int64_t n_panels, int64_t low, int64_t high,
                         int64_t *begin, int64_t *end) {
    *begin = low > base ? (low - base + cost - 1) / cost : 0;
    *end = high > base ? (high - base + cost - 1) / cost : 0;
    if (*begin > n_panels) *begin = n_panels;
    if (*end > n_panels) *end = n_panels;
}

/* in: x, weights, choices, biases or none. Threads share the panels of all experts by what they
 * cost. */
void octavo_run_expert_matmul(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_tensor *x = octavo_tensor_at(run, op->in[0]);
    const octavo_tensor *out = octavo_tensor_at(run, op->out);
    const octavo_weight *weight = octavo_tensor_at(run, op->in[1])->weight;
    const size_t matrix_bytes = octavo_weight_bytes(weight->type, weight->n, weight->k);
    const size_t panel_bytes = octavo_weight_panel_bytes(weight->type, weight->k);
    const int64_t first_output = op->params.first_output, unused = first_output % OCTAVO_PANEL;
    const int64_t width = octavo_width_of(out);
    const int64_t n_panels = width > 0 ? (unused + width + OCTAVO_PANEL - 1) / OCTAVO_PANEL : 0;
    const int64_t first_expert = run->first_expert - octavo_tensor_at(run, op->in[1])->begin[0];
    const int32_t *begin = run->expert_begin;
    int64_t total = 0, base = 0, low, high;
    for (int64_t e = 0; e < run->n_experts; e++)
        total += panel_cost(begin[e + 1] - begin[e]) * n_panels;
    octavo_pool_share(total, 1, thread, n_threads, &low, &high);
    for (int64_t e = 0; e < run->n_experts; e++) {
        const int64_t n_rows = begin[e + 1] - begin[e], cost = panel_cost(n_rows);
        int64_t first, last;
        if (n_rows == 0) continue;
        share_panels(base, cost, n_panels, low, high, &first, &last);
        base += cost * n_panels;
        if (first == last) continue;
        const octavo_matmul_args args = {
            .type = weight->type,
            .weight = octavo_data_of(run, op->in[1]) + (size_t)(first_expert + e) * matrix_bytes +
                      (size_t)(first_output / OCTAVO_PANEL) * panel_bytes,
            .n = unused + width,
            .first = unused,
            .k = weight->k,
            .slices = &op->params.slices,
            .slice_begin = 0,
            .slice_end = op->params.slices.n,
            .x = (const uint8_t *)octavo_first_input(run, op) + (size_t)begin[e] * x->row_bytes,
            .x_stride = x->row_bytes,
            .is_q8 = x->is_q8,
            .n_rows = n_rows,
            .out = octavo_row_of(run, op->out, begin[e]),
            .out_stride = (int64_t)(out->row_bytes / sizeof(float)),
            .factor = weight->factors && !op->params.is_partial ? weight->factors + first_expert + e
                                                                : NULL,
            .bias = octavo_expert_bias(run, op->in[3], e, op->out),
        };
        octavo_matmul(&run->matmul, &args, first, last);
    }
}

/* Rows of a token whose experts are in one slice, scaled in place, in the first of them; or NULL.
 */
static float *add_slice(octavo_run *run, const octavo_op *op, int64_t t, int slice, int64_t *c) {
    const int64_t n_chosen = op->params.router.n_chosen;
    const int64_t width = octavo_width_of(octavo_tensor_at(run, op->out));
    const octavo_choice *choices = octavo_row_of(run, op->in[1], t);
    float *sum = NULL;
    for (; *c < n_chosen && choices[*c].expert < op->params.slices.cut[slice + 1]; ++*c) {
        const int32_t pair = run->expert_pair[t * n_chosen + *c];
        const float weight = op->params.router.is_for_input ? 1.0f : choices[*c].weight;
        if (pair < 0) continue; /* of experts before the rank's */
        float *x = octavo_row_of(run, op->in[0], pair);
        run->vector.scale_mul(x, x, weight, NULL, width);
        if (sum)
            run->vector.add(sum, sum, x, width);
        else
            sum = x;
    }
    return sum;
}

/* in: x, whose rows are used up, and choices. What a rank without any of the token's experts gives
 * is -0, which changes nothing that it is added to; of routed tokens nobody asks for it. */
void octavo_run_combine(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const int64_t width = octavo_width_of(octavo_tensor_at(run, op->out));
    const int n = op->params.slices.n;
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        float *out = octavo_row_of(run, op->out, t);
        float *sums[OCTAVO_MAX_SLICES];
        int64_t c = 0;
        for (int s = 0; s < n; s++)
            sums[s] = add_slice(run, op, t, s, &c);
        for (int step = 1; step < n; step *= 2) {
            for (int s = 0; s < n; s += 2 * step) {
                if (sums[s] && sums[s + step])
                    run->vector.add(sums[s], sums[s], sums[s + step], width);
                else if (!sums[s])
                    sums[s] = sums[s + step];
            }
        }
        if (sums[0]) memcpy(out, sums[0], (size_t)width * sizeof *out);
        for (int64_t i = 0; !sums[0] && !op->params.is_partial && i < width; i++)
            out[i] = -0.0f;
    }
}

/* in: x, gate; in place. */
void octavo_run_row_gate(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const int64_t width = octavo_width_of(octavo_tensor_at(run, op->out));
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const float *gate = octavo_row_of(run, op->in[1], t);
        float *x = octavo_row_of(run, op->out, t), e = -*gate;
        run->vector.exp(&e, &e, 1);
        run->vector.scale_mul(x, x, 1.0f / (1.0f + e), NULL, width);
    }
}
