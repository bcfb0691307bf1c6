/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of a cache, of the workspace, and an op with neutral values.
 */
#include "attention/internal.h"
#include "base/memory.h"

#include "octavo/dtype.h"

/* Bytes of one row of accumulators that should stay in the level 2 cache for all rows of an item.
 */
enum { ROW_BUDGET_BYTES = 64 << 10, LEAST_ROWS = 32, MOST_ROWS = 128 };

enum { LANE_MULTIPLE = 128 };

int64_t octavo_attention_lanes(int64_t head_dim) {
    return (head_dim + LANE_MULTIPLE - 1) / LANE_MULTIPLE * LANE_MULTIPLE;
}

int64_t octavo_attention_slot_elements(const octavo_attention_heads *heads, octavo_dtype kv_dtype) {
    int64_t packing = 4 / (int64_t)octavo_dtype_size(kv_dtype);
    int64_t rows = (2 * (int64_t)heads->n_kv_heads + packing - 1) / packing * packing;
    return rows * octavo_attention_lanes(heads->head_dim);
}

void octavo_attention_op_init(octavo_attention_op *op, const octavo_attention_heads *heads,
                              octavo_dtype kv_dtype, int64_t page_size) {
    const int64_t d = heads->head_dim;
    const int64_t slot = octavo_attention_slot_elements(heads, kv_dtype);
    *op = (octavo_attention_op){
        .q_dtype = OCTAVO_DTYPE_F32,
        .kv_dtype = kv_dtype,
        .new_dtype = OCTAVO_DTYPE_F32,
        .q_token_stride = heads->n_q_heads * d,
        .q_head_stride = d,
        .k_token_stride = heads->n_kv_heads * d,
        .k_head_stride = d,
        .v_token_stride = heads->n_kv_heads * d,
        .v_head_stride = d,
        .page_stride = page_size * slot,
        .slot_stride = slot,
        .out_token_stride = heads->n_q_heads * d,
        .out_head_stride = d,
        .scale = 1.0f,
        .v_scale = 1.0f,
        .update_kv_cache = true,
    };
}

int32_t octavo_attention_max_rows(const octavo_attention_heads *heads) {
    int64_t rows = ROW_BUDGET_BYTES / (octavo_attention_width(heads) * (int64_t)sizeof(float));
    if (rows < LEAST_ROWS) rows = LEAST_ROWS;
    return (int32_t)(rows < MOST_ROWS ? rows : MOST_ROWS);
}

/* Elements (of 4 bytes) of each array of a thread's scratch, in the order of the struct; each array
 * begins a cache line. */
enum { SCRATCH_ARRAYS = 13 };

static void scratch_floats(const octavo_attention_heads *heads, size_t floats[SCRATCH_ARRAYS]) {
    const size_t rows = (size_t)octavo_attention_max_rows(heads);
    const size_t width = (size_t)octavo_attention_width(heads);
    const size_t sizes[SCRATCH_ARRAYS] = {
        rows * width,
        rows * width,
        rows * width,
        rows * OCTAVO_SOFTMAX_BLOCK,
        (size_t)heads->head_dim * OCTAVO_SOFTMAX_BLOCK,
        width * OCTAVO_SOFTMAX_BLOCK,
        rows,
        rows,
        rows,
        rows,
        rows,
        rows,
        rows,
    };
    for (int i = 0; i < SCRATCH_ARRAYS; i++)
        floats[i] = octavo_align_up(sizes[i], OCTAVO_ALIGN / sizeof(float));
}

static size_t scratch_bytes(const octavo_attention_limits *limits) {
    size_t floats[SCRATCH_ARRAYS], sum = 0;
    scratch_floats(&limits->heads, floats);
    for (int i = 0; i < SCRATCH_ARRAYS; i++)
        sum += floats[i];
    return sum * sizeof(float);
}

static size_t part_floats(const octavo_attention_limits *limits) {
    return OCTAVO_ATTENTION_PART_HEAD + (size_t)octavo_attention_width(&limits->heads);
}

size_t octavo_attention_workspace_bytes(const octavo_attention_limits *limits) {
    size_t scratch, parts, sum;
    if (!octavo_size_mul(scratch_bytes(limits), (size_t)limits->n_threads, &scratch) ||
        !octavo_size_mul(part_floats(limits) * sizeof(float),
                         (size_t)octavo_attention_max_parts(limits), &parts) ||
        !octavo_size_add(scratch, parts, &sum))
        return 0;
    return sum;
}

attention_scratch octavo_attention_scratch(const octavo_attention_limits *limits, void *workspace,
                                           int thread) {
    size_t floats[SCRATCH_ARRAYS];
    scratch_floats(&limits->heads, floats);
    float *at = (float *)workspace + (size_t)thread * (scratch_bytes(limits) / sizeof(float));
    float *arrays[SCRATCH_ARRAYS];
    for (int i = 0; i < SCRATCH_ARRAYS; i++) {
        arrays[i] = at;
        at += floats[i];
    }
    return (attention_scratch){.queries = arrays[0],
                               .acc = arrays[1],
                               .total = arrays[2],
                               .weights = arrays[3],
                               .keys = arrays[4],
                               .values = arrays[5],
                               .max = arrays[6],
                               .sum = arrays[7],
                               .rescale = arrays[8],
                               .total_max = arrays[9],
                               .total_sum = arrays[10],
                               .begin = (int32_t *)(void *)arrays[11],
                               .end = (int32_t *)(void *)arrays[12]};
}

float *octavo_attention_part(const octavo_attention_limits *limits, void *workspace, int64_t i) {
    size_t scratch = scratch_bytes(limits) / sizeof(float) * (size_t)limits->n_threads;
    return (float *)workspace + scratch + (size_t)i * part_floats(limits);
}
