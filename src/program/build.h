/* SPDX-License-Identifier: Apache-2.0
 *
 * Building a program: each function adds one op and gives the tensor it makes. Shapes are checked
 * against the op's axes; the first thing that does not fit (a program that no model file can cause,
 * or memory that ran out) is kept in the builder, later calls do nothing, and octavo_build_finish
 * reports it.
 *
 * Names follow the sharding rules. They must live as long as the program (string literals).
 */
#ifndef OCTAVO_PROGRAM_BUILD_H
#define OCTAVO_PROGRAM_BUILD_H

#include "program/program.h"

typedef struct octavo_builder {
    octavo_program *program;
    int layer;     /* given to what is added */
    bool is_exact; /* f32 activations for every matmul */
    octavo_status status;
    octavo_error error;
} octavo_builder;

/* `program` becomes empty, for steps of up to max_tokens and logits in groups of up to max_rows. */
void octavo_build_start(octavo_builder *builder, octavo_program *program, int max_tokens,
                        int max_rows, bool is_exact);

enum { OCTAVO_MAX_OPERANDS = 8 };

/* Tensors that exist before any op. */
/* The axes are the letters after the last underscore of the name, with these extents:
 * "ffw_weight_df". */
int octavo_build_weight(octavo_builder *builder, const char *name, const octavo_weight *weight,
                        const int64_t *extent);
/* On one axis, or on several with the last one fastest. */
int octavo_build_vector(octavo_builder *builder, const char *name, const char *axes,
                        const float *vector, const int64_t *extent);
/* Of the layer at hand; later layers may read it too. */
int octavo_build_cache(octavo_builder *builder, const char *name, int64_t kv_heads,
                       int64_t head_dim);

/* [t, d] = rows of weight [v, d] by an input of the program (its ids, positions or types), times
 * scale. */
int octavo_build_embed(octavo_builder *builder, const char *name, int by, int weight, float scale);
/* [t, h]: (cos, sin) of each pair at each row's position; h = 2 pairs. */
int octavo_build_rope_table(octavo_builder *builder, const char *name,
                            const octavo_rope_speeds *speeds, int64_t pairs);
/* Norm of each row, all of whose axes but t are one. */
typedef struct octavo_norm_desc {
    octavo_norm kind;
    int scale, bias; /* vectors of the row's width; bias may be OCTAVO_NO_TENSOR */
    float eps;
} octavo_norm_desc;
int octavo_build_norm(octavo_builder *builder, const char *name, int x,
                      const octavo_norm_desc *desc, octavo_slices slices);
/* RMS norm of each head by itself, x [t, n, h], in place: gives x. scale may be OCTAVO_NO_TENSOR;
 * one that is narrower than a head norms as many of its first lanes and leaves the others alone.
 */
int octavo_build_head_norm(octavo_builder *builder, int x, int scale, float eps);
/* operands[i] = the rows of x as a matmul with weights[i] takes them: x itself, or in the order of
 * its inputs, or quantised; each form is made once for all that take it. At least one weight, at
 * most OCTAVO_MAX_OPERANDS. */
void octavo_build_operands(octavo_builder *builder, const char *name, int x, const int *weights,
                           int *operands, int n_weights);
/* x [t, ...] times weight [outputs, inputs]; the result has axes "t" + axes with those extents
 * (their product is the outputs). x as octavo_build_operands gave it. bias: a vector or
 * OCTAVO_NO_TENSOR. */
int octavo_build_matmul(octavo_builder *builder, const char *name, int x, int weight, int bias,
                        octavo_slices slices, const char *axes, int64_t extent0, int64_t extent1);
/* x [t, n, h], of each head its own matrix of a stack [n, outputs, inputs] times its first lanes,
 * and the lanes behind those as they are: [t, n, outputs + h - inputs]. */
int octavo_build_head_matmul(octavo_builder *builder, const char *name, int x, int weight,
                             octavo_slices slices);
/* Rotates x [t, heads, h], in each head from first_lane on, in place by a table: gives x. */
int octavo_build_rope(octavo_builder *builder, int x, int table, octavo_rope_pairing pairing,
                      int64_t first_lane);
/* Scales queries [t, n, h] by their positions, in place: gives x. */
int octavo_build_temperature(octavo_builder *builder, int x, octavo_temperature temperature);
/* Writes keys and values [t, k, h] to the cache, then attends: [t, n, h]. window, chunk and
 * soft_cap 0: none. Without key and value the cache is one that an earlier layer has written. With
 * value_lanes there is no value: it is so many first lanes of the key, and the result as wide. */
typedef struct octavo_attention_desc {
    int query, key, value, cache;
    int64_t value_lanes;
    int sink; /* vector [n] of logits beside those of keys, or OCTAVO_NO_TENSOR */
    float scale;
    int64_t window, chunk;
    float soft_cap;
    bool is_encoder; /* positions see later ones of the step too */
} octavo_attention_desc;
int octavo_build_attention(octavo_builder *builder, const char *name,
                           const octavo_attention_desc *desc);
/* act(gate) * up; up may be OCTAVO_NO_TENSOR: act(gate), but not with SWIGLU, which has a limit. */
int octavo_build_gate(octavo_builder *builder, const char *name, int gate, int up,
                      octavo_activation act, float limit);
/* a + scale * b. */
int octavo_build_add(octavo_builder *builder, const char *name, int a, int b, float scale);
/* x * scale, then soft-capped (0: not), in place: gives x. */
int octavo_build_scale(octavo_builder *builder, int x, float scale, float soft_cap);
/* ---- experts: route, gather, products over the gathered rows, combine; one after the other ----
 */

/* [t, c]: the choices of each token from logits [t, e], which are used up. bias: a vector [e] or
 * OCTAVO_NO_TENSOR. */
int octavo_build_route(octavo_builder *builder, const char *name, int logits, int bias,
                       const octavo_router *router);
/* [p, ...]: the row of x [t, ...], as octavo_build_operands gave it, of each pair; with a router
 * for inputs times its weight, which takes rows of f32. */
int octavo_build_gather(octavo_builder *builder, const char *name, int x, int route,
                        const octavo_router *router);
/* [p, axis]: each row of x [p, ...] times its expert's matrix of a stack [e, outputs, inputs].
 * bias: a vector of [e outputs] or OCTAVO_NO_TENSOR. */
int octavo_build_expert_matmul(octavo_builder *builder, const char *name, int x, int weight,
                               int bias, int route, octavo_slices slices, char axis);
/* [t, ...]: the sum, by ascending expert and but with a router for inputs weighted, of each token's
 * rows of x [p, ...], which are used up. */
int octavo_build_combine(octavo_builder *builder, const char *name, int x, int route,
                         const octavo_router *router);
/* Row t of x [t, ...] times sigmoid(gate[t]), gate [t, 1]; in place: gives x. */
int octavo_build_row_gate(octavo_builder *builder, int x, int gate);

/* Keeps a mistake in the description that is found outside of these functions. */
int octavo_build_reject(octavo_builder *builder, const char *name, const char *why);

/* x [t, d], which the op added next reads, can be handed out: a trace of the program. */
void octavo_build_trace(octavo_builder *builder, int x);
/* Rows of x that need a result: [r, d]. Everything added from here on belongs to the head. */
int octavo_build_select(octavo_builder *builder, const char *name, int x);
/* x [r, d] can be handed out; everything added from here on belongs to the logits. */
void octavo_build_hidden(octavo_builder *builder, int x);

/* Ends the program with `logits` [r, v] and plans its memory. After octavo_build_hidden there may
 * be none: OCTAVO_NO_TENSOR. On failure the program is empty again. */
OCTAVO_MUST_CHECK octavo_status octavo_build_finish(octavo_builder *builder, int logits,
                                                    octavo_error *error);

#endif
