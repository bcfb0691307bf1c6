/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of a cache, of the workspace, and an op with neutral values.
 */
#include "attention/internal.h"
#include "base/compiler.h"
#include "base/memory.h"

/* Rows of an item: each makes the staging of keys and values cheaper for all, as long as what they
 * need leaves room in the level 2 cache for what is read. */
enum {
    USUAL_L2_BYTES = 512 << 10,
    LEAST_ROWS = 32, /* however wide they are */
    MOST_ROWS = 512,
};

enum { LANE_MULTIPLE = 128 };

int64_t octavo_attention_lanes(int64_t head_dim) {
    return (head_dim + LANE_MULTIPLE - 1) / LANE_MULTIPLE * LANE_MULTIPLE;
}

int64_t octavo_attention_slot_elements(const octavo_attention_heads *heads, octavo_dtype kv_dtype) {
    int64_t packing = 4 / (int64_t)octavo_dtype_size(kv_dtype);
    int64_t rows = (2 * (int64_t)heads->n_kv_heads + packing - 1) / packing * packing;
    return rows * octavo_attention_lanes(heads->head_dim);
}

/* --- a page --- */

/* Rows of keys may be read in 32 bytes, rows of values in 16 lanes, rows of both in either. */
enum { KEY_ROW_MULTIPLE = 32, VALUE_LANES = 16 };

static size_t shared_row_multiple(size_t size) {
    return VALUE_LANES * size > KEY_ROW_MULTIPLE ? VALUE_LANES * size : KEY_ROW_MULTIPLE;
}

/* Scales of a head's slots. */
static size_t scale_bytes(int64_t page_size, bool value_in_key) {
    return (size_t)page_size * (value_in_key ? 1 : 2) * sizeof(float);
}

/* OCTAVO_KV_COLUMNS. False: does not fit. */
static bool column_pages(attention_pages *pages, int64_t size, int64_t page_size, int64_t head_dim,
                         int64_t value_dim, bool value_in_key, bool slot_scales) {
    const size_t groups = (size_t)(page_size + OCTAVO_KEY_GROUP - 1) / OCTAVO_KEY_GROUP;
    const size_t key_bytes = (size_t)(head_dim * size);
    size_t keys = 0, values, sum;
    pages->key_words = (key_bytes + 3) / 4;
    if (value_in_key) {
        pages->row_bytes = octavo_align_up(key_bytes, shared_row_multiple((size_t)size));
    } else {
        pages->row_bytes = octavo_align_up((size_t)value_dim, VALUE_LANES) * (size_t)size;
        pages->group_bytes = pages->key_words * 4 * OCTAVO_KEY_GROUP;
    }
    if (!octavo_size_mul(groups, pages->group_bytes, &keys) ||
        !octavo_size_mul((size_t)page_size, pages->row_bytes, &values) ||
        !octavo_size_add(keys, values, &sum) || sum > INT64_MAX - OCTAVO_ALIGN)
        return false;
    if (slot_scales) {
        pages->scale_offset = sum;
        if (!octavo_size_add(sum, scale_bytes(page_size, value_in_key), &sum) ||
            sum > INT64_MAX - OCTAVO_ALIGN)
            return false;
    }
    pages->value_offset = keys;
    pages->slot_bytes = (int64_t)pages->row_bytes;
    pages->head_bytes = octavo_align_up(sum, OCTAVO_ALIGN);
    pages->scale_head_bytes = pages->head_bytes;
    return true;
}

attention_pages octavo_attention_pages(const octavo_attention_heads *heads,
                                       const octavo_attention_op *op, int64_t page_size) {
    const int64_t size = (int64_t)octavo_dtype_size(op->kv_dtype);
    attention_pages pages = {
        .layout = op->layout, .page_size = page_size, .page_bytes = op->page_stride * size};
    if (!op->value_in_key) pages.value_scale_offset = (size_t)page_size * sizeof(float);
    if (op->layout == OCTAVO_KV_COLUMNS) {
        bool fits =
            column_pages(&pages, size, page_size, heads->head_dim,
                         octavo_attention_value_dim(heads), op->value_in_key, op->slot_scales);
        octavo_assert(fits);
        (void)fits;
        return pages;
    }
    pages.slot_bytes = op->slot_stride * size;
    pages.row_bytes = (size_t)(octavo_attention_lanes(heads->head_dim) * size);
    pages.head_bytes = 2 * pages.row_bytes;
    pages.value_offset = pages.row_bytes;
    pages.key_words = ((size_t)(heads->head_dim * size) + 3) / 4;
    pages.scale_head_bytes = scale_bytes(page_size, false);
    if (op->slot_scales) pages.scale_offset = (size_t)(page_size * pages.slot_bytes);
    return pages;
}

/* Elements of a page in columns; 0: does not fit. */
static int64_t column_elements(int64_t size, int64_t page_size, int64_t n_kv_heads,
                               int64_t head_dim, int64_t value_dim, bool value_in_key,
                               bool slot_scales) {
    attention_pages pages = {0};
    size_t bytes;
    if (!column_pages(&pages, size, page_size, head_dim, value_dim, value_in_key, slot_scales) ||
        !octavo_size_mul(pages.head_bytes, (size_t)n_kv_heads, &bytes) || bytes > INT64_MAX)
        return 0;
    return (int64_t)bytes / size;
}

int64_t octavo_attention_page_stride(const octavo_attention_op *op,
                                     const octavo_attention_heads *heads, int64_t page_size) {
    const int64_t size = (int64_t)octavo_dtype_size(op->kv_dtype);
    size_t rows, all;
    if (op->layout == OCTAVO_KV_COLUMNS)
        return column_elements(size, page_size, heads->n_kv_heads, heads->head_dim,
                               octavo_attention_value_dim(heads), op->value_in_key,
                               op->slot_scales);
    if (!octavo_size_mul((size_t)page_size, (size_t)op->slot_stride, &rows) ||
        !octavo_size_mul(scale_bytes(page_size, false), (size_t)heads->n_kv_heads, &all) ||
        !octavo_size_add(rows, all / (size_t)size, &all) || all > INT64_MAX)
        return 0;
    return (int64_t)(op->slot_scales ? all : rows);
}

int64_t octavo_attention_page_elements(octavo_dtype dtype, int64_t page_size, int64_t n_kv_heads,
                                       int64_t head_dim, int64_t value_dim, bool value_in_key) {
    const int64_t size = (int64_t)octavo_dtype_size(dtype);
    if (size == 0 || dtype == OCTAVO_DTYPE_I32 || page_size < 1 || n_kv_heads < 1 || head_dim < 1 ||
        value_dim < 1 || page_size > INT32_MAX || head_dim > OCTAVO_ATTENTION_MAX_KEY_DIM ||
        value_dim > OCTAVO_ATTENTION_MAX_DIM || (value_in_key && value_dim > head_dim))
        return 0;
    return column_elements(size, page_size, n_kv_heads, head_dim, value_dim, value_in_key, false);
}

void octavo_attention_op_init(octavo_attention_op *op, const octavo_attention_heads *heads,
                              octavo_dtype kv_dtype, octavo_kv_layout layout, int64_t page_size) {
    const int64_t d = heads->head_dim, dv = octavo_attention_value_dim(heads);
    const int64_t slot = octavo_attention_slot_elements(heads, kv_dtype);
    *op = (octavo_attention_op){
        .q_dtype = OCTAVO_DTYPE_F32,
        .out_dtype = OCTAVO_DTYPE_F32,
        .kv_dtype = kv_dtype,
        .new_dtype = OCTAVO_DTYPE_F32,
        .layout = layout,
        .q_token_stride = heads->n_q_heads * d,
        .q_head_stride = d,
        .k_token_stride = heads->n_kv_heads * d,
        .k_head_stride = d,
        .v_token_stride = heads->n_kv_heads * dv,
        .v_head_stride = dv,
        .page_stride = page_size * slot,
        .slot_stride = slot,
        .out_token_stride = heads->n_q_heads * dv,
        .out_head_stride = dv,
        .scale = 1.0f,
        .k_scale = 1.0f,
        .v_scale = 1.0f,
        .output_scale = 1.0f,
        .update_kv_cache = true,
    };
    if (layout == OCTAVO_KV_COLUMNS)
        op->page_stride =
            octavo_attention_page_elements(kv_dtype, page_size, heads->n_kv_heads, d, dv, false);
}

/* --- scratch and workspace --- */

/* Elements (of 4 bytes) of each array of a thread's scratch, in the order of the struct; each array
 * begins a cache line. */
enum { SCRATCH_ARRAYS = 13 };

static void scratch_floats(const octavo_attention_heads *heads, size_t rows,
                           size_t floats[SCRATCH_ARRAYS]) {
    const size_t query_width = (size_t)octavo_attention_query_width(heads);
    const size_t width = (size_t)octavo_attention_width(heads);
    const size_t words = (query_width / 2) * OCTAVO_KEY_GROUP; /* of a group before it is widened */
    const size_t sizes[SCRATCH_ARRAYS] = {
        rows * query_width,
        rows * width,
        rows * width,
        rows * OCTAVO_SOFTMAX_BLOCK,
        (size_t)heads->head_dim * OCTAVO_SOFTMAX_BLOCK,
        width * OCTAVO_SOFTMAX_BLOCK > words ? width * OCTAVO_SOFTMAX_BLOCK : words,
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

static size_t scratch_of_rows(const octavo_attention_heads *heads, int64_t rows) {
    size_t floats[SCRATCH_ARRAYS], sum = 0;
    scratch_floats(heads, (size_t)rows, floats);
    for (int i = 0; i < SCRATCH_ARRAYS; i++)
        sum += floats[i];
    return sum * sizeof(float);
}

size_t octavo_attention_least_scratch(const octavo_attention_heads *heads) {
    return scratch_of_rows(heads, 1);
}

int32_t octavo_attention_max_rows(const octavo_attention_limits *limits) {
    const octavo_attention_tuning *tuning = &limits->tuning;
    const int64_t l2 = tuning->l2_bytes > 0 ? tuning->l2_bytes : USUAL_L2_BYTES;
    const int64_t bytes = tuning->scratch_bytes > 0 ? tuning->scratch_bytes : l2 / 8 * 5;
    /* by 16 rows all arrays grow by whole lines, by the 15 after the first only the wide ones do */
    enum { FEW = 2, LINE = 16 };
    const int64_t one = (int64_t)scratch_of_rows(&limits->heads, 1);
    const int64_t wide = (int64_t)scratch_of_rows(&limits->heads, FEW) - one;
    const int64_t line = (int64_t)scratch_of_rows(&limits->heads, 1 + LINE) - one;
    const int64_t left = bytes > one ? bytes - one : 0;
    const int64_t rest = left % line / wide;
    int64_t rows = 1 + left / line * LINE + (rest < LINE ? rest : LINE - 1);
    if (tuning->scratch_bytes == 0 && rows < LEAST_ROWS) rows = LEAST_ROWS;
    return (int32_t)(rows < MOST_ROWS ? rows : MOST_ROWS);
}

static size_t scratch_bytes(const octavo_attention_limits *limits) {
    return scratch_of_rows(&limits->heads, octavo_attention_max_rows(limits));
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
    scratch_floats(&limits->heads, (size_t)octavo_attention_max_rows(limits), floats);
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

float *octavo_attention_part(const octavo_attention_limits *limits, void *workspace,
                             const octavo_attention_join *join, int64_t split, int32_t head) {
    const int64_t i = join->part + (split - join->split) * join->n_heads + head - join->head;
    size_t scratch = scratch_bytes(limits) / sizeof(float) * (size_t)limits->n_threads;
    return (float *)workspace + scratch + (size_t)i * part_floats(limits);
}
