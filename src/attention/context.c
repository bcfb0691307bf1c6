/* SPDX-License-Identifier: Apache-2.0
 *
 * The one-call face: a context holds the threads, the kernels and scratch that only grows; a call
 * is a plan and its three phases.
 */
#include "attention/check_array.h"
#include "attention/internal.h"
#include "base/compiler.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

#include "octavo/attention.h"

struct octavo_attention_context {
    octavo_pool *pool;
    octavo_attention_kernels kernels;
    octavo_attention_plan plan;
    const char *isa;
    int64_t l2_bytes;
    void *memory; /* plan, then workspace; aligned */
    size_t memory_bytes;
};

void octavo_attention_args_init(octavo_attention_args *args) {
    *args = (octavo_attention_args){
        .size = sizeof *args,
        .softmax_scale = 1.0,
        .k_scale = 1.0,
        .v_scale = 1.0,
        .q_scale = 1.0,
        .logits_soft_cap = 1.0,
        .sliding_window = 1,
        .update_kv_cache = true,
        .output_scale = 1.0,
    };
}

void octavo_attention_options_init(octavo_attention_options *options) {
    *options = (octavo_attention_options){.size = sizeof *options};
}

octavo_status octavo_attention_context_create(octavo_attention_context **context,
                                              const octavo_attention_options *options,
                                              octavo_error *error) {
    octavo_attention_options defaults;
    octavo_attention_options_init(&defaults);
    if (context == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention context (context): NULL; give the address of a pointer");
    if (options == NULL) options = &defaults;
    if (options->size != sizeof *options)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention context (options): not initialised; call "
                           "octavo_attention_options_init first");
    octavo_cpu_flags flags;
    octavo_status status = octavo_cpu_select(options->isa, &flags, error);
    if (status != OCTAVO_OK) return status;
    octavo_attention_context *made = octavo_alloc_zero(1, sizeof *made);
    if (made == NULL) return octavo_fail_memory(error, "attention context", sizeof *made);
    octavo_attention_kernels_init(&made->kernels, flags);
    made->isa = octavo_cpu_name(flags);
    made->l2_bytes = (int64_t)octavo_cpu_l2_bytes();
    const int n_threads = options->n_threads != 0 ? options->n_threads : octavo_cpu_cores();
    status = octavo_pool_create(&made->pool, n_threads, options->pin, error);
    if (status != OCTAVO_OK)
        octavo_attention_context_destroy(&made);
    else
        *context = made;
    return status;
}

void octavo_attention_context_destroy(octavo_attention_context **context) {
    if (context == NULL || *context == NULL) return;
    octavo_pool_destroy(&(*context)->pool);
    octavo_free_aligned((*context)->memory);
    octavo_free(*context);
    *context = NULL;
}

/* --- arguments to op and batch --- */

static int64_t page_size_of(const octavo_attention_args *args) {
    return args->layout == OCTAVO_KV_COLUMNS ? args->page_size : args->kv_cache.extents[1];
}

/* What is longer than any sequence is no limit. */
static int64_t distance(int64_t positions) {
    return positions < INT32_MAX ? positions : 0;
}

static octavo_attention_limits limits_of(const octavo_attention_args *args, int32_t n_threads,
                                         int64_t l2_bytes) {
    octavo_attention_limits limits = {
        .heads = {.n_q_heads = (int32_t)args->queries.extents[1],
                  .n_kv_heads = (int32_t)args->keys.extents[1],
                  .head_dim = (int32_t)args->queries.extents[2],
                  .value_dim = (int32_t)args->output.extents[2]},
        .max_tokens = args->queries.extents[0],
        .max_seqs = args->kv_lens.extents[0],
        .n_threads = n_threads,
        .tuning = {.scratch_bytes = args->vmem_limit_bytes,
                   .l2_bytes = l2_bytes,
                   .chunk = distance(args->chunk_prefill_size),
                   .query_tokens = args->num_queries_per_block},
    };
    const int64_t pages = args->num_kv_pages_per_block, page_size = page_size_of(args);
    limits.tuning.kv_positions = pages < INT32_MAX / page_size ? pages * page_size : INT32_MAX;
    return limits;
}

static octavo_attention_batch batch_of(const octavo_attention_args *args) {
    const int32_t *kinds = args->distribution.data;
    return (octavo_attention_batch){
        .n_tokens = args->queries.extents[0],
        .n_seqs = kinds[2],
        .page_size = page_size_of(args),
        .pages_per_seq = args->block_tables.extents[0] / args->kv_lens.extents[0],
        .kv_lens = args->kv_lens.data,
        .query_start_loc = args->query_start_loc.data,
        .block_tables = args->block_tables.data,
        .key_start_loc = args->key_start_loc.data,
        .prefill_begin = kinds[0],
        .prefill_end = kinds[1],
    };
}

static octavo_attention_mask mask_of(const octavo_attention_args *args) {
    return (octavo_attention_mask){
        .type = args->type,
        .window = args->use_sliding_window ? distance(args->sliding_window) : 0,
        .chunk = distance(args->chunk_size),
    };
}

static octavo_attention_op op_of(const octavo_attention_args *args) {
    const double q_scale = args->use_q_scale ? args->q_scale : 1.0;
    const double k_scale = args->use_k_scale ? args->k_scale : 1.0;
    const double v_scale = args->use_v_scale ? args->v_scale : 1.0;
    const bool is_cross = args->type == OCTAVO_ATTENTION_ENCODER_DECODER;
    return (octavo_attention_op){
        .q_dtype = args->queries.dtype,
        .out_dtype = args->output.dtype,
        .kv_dtype = args->kv_cache.dtype,
        .new_dtype = args->keys.dtype,
        .layout = args->layout,
        .value_in_key = args->value_in_key,
        .queries = args->queries.data,
        .q_token_stride = attention_stride_of(&args->queries, 0),
        .q_head_stride = attention_stride_of(&args->queries, 1),
        .keys = args->keys.data,
        .values = args->values.data,
        .k_token_stride = attention_stride_of(&args->keys, 0),
        .k_head_stride = attention_stride_of(&args->keys, 1),
        .v_token_stride = attention_stride_of(&args->values, 0),
        .v_head_stride = attention_stride_of(&args->values, 1),
        .kv_cache = args->kv_cache.data,
        .page_stride = attention_stride_of(&args->kv_cache, 0),
        .slot_stride = attention_stride_of(&args->kv_cache, 1),
        .output = args->output.data,
        .out_token_stride = attention_stride_of(&args->output, 0),
        .out_head_stride = attention_stride_of(&args->output, 1),
        .sink = args->attention_sink.data,
        .alibi_slopes = args->alibi_slopes.data,
        .k_scales = args->k_scales.data,
        .v_scales = args->v_scales.data,
        .scale = (float)(args->softmax_scale * k_scale * q_scale),
        .k_scale = (float)k_scale,
        .v_scale = (float)v_scale,
        .soft_cap = args->use_logits_soft_cap ? (float)args->logits_soft_cap : 0.0f,
        .mask = mask_of(args),
        .precision = args->precision,
        .has_q_scale = args->use_q_scale,
        .q_scale = (float)q_scale,
        .quantise_new = args->keys.dtype != args->kv_cache.dtype,
        .quantise_output = args->use_output_scale,
        .output_scale = (float)args->output_scale,
        .update_kv_cache = args->update_kv_cache && (!is_cross || args->key_start_loc.n_axes > 0),
    };
}

const char *octavo_attention_context_isa(const octavo_attention_context *context) {
    return context->isa;
}

int32_t octavo_attention_context_threads(const octavo_attention_context *context) {
    return octavo_pool_threads(context->pool);
}

/* --- scratch --- */

static octavo_status scratch_bytes(const octavo_attention_limits *limits, size_t *plan_bytes,
                                   size_t *bytes, octavo_error *error) {
    size_t plan = octavo_attention_plan_bytes(limits);
    size_t workspace = octavo_attention_workspace_bytes(limits);
    size_t sum;
    if (workspace == 0 || !octavo_size_add(plan, OCTAVO_ALIGN, &plan) ||
        !octavo_size_add(plan - plan % OCTAVO_ALIGN, workspace, &sum))
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "ragged paged attention (scratch): does not fit the address space; use "
                           "fewer threads, rows or sequences");
    *plan_bytes = plan - plan % OCTAVO_ALIGN;
    *bytes = sum;
    return OCTAVO_OK;
}

octavo_status octavo_attention_scratch_bytes(const octavo_attention_args *args, int32_t n_threads,
                                             size_t *bytes, octavo_error *error) {
    octavo_status status = octavo_attention_check(args, error);
    if (status != OCTAVO_OK) return status;
    if (n_threads < 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "ragged paged attention (n_threads): %d; give 0 for all cores, or more",
                           (int)n_threads);
    if (n_threads == 0) n_threads = octavo_cpu_cores();
    const octavo_attention_limits limits =
        limits_of(args, n_threads, (int64_t)octavo_cpu_l2_bytes());
    size_t plan_bytes = 0;
    return scratch_bytes(&limits, &plan_bytes, bytes, error);
}

static octavo_status grow(octavo_attention_context *context, size_t bytes, octavo_error *error) {
    if (bytes <= context->memory_bytes) return OCTAVO_OK;
    void *memory = octavo_alloc_aligned(bytes);
    if (memory == NULL) return octavo_fail_memory(error, "attention scratch", bytes);
    octavo_free_aligned(context->memory);
    context->memory = memory;
    context->memory_bytes = bytes;
    return OCTAVO_OK;
}

/* --- the call --- */

typedef struct call {
    octavo_attention_context *context;
    octavo_attention_op op;
    void *workspace;
} call;

static void run_phases(void *arg, int thread, int n_threads) {
    const call *c = arg;
    octavo_attention_context *context = c->context;
    octavo_attention_update(&context->plan, &context->kernels, &c->op, thread, n_threads);
    octavo_pool_barrier(context->pool, thread);
    octavo_attention_attend(&context->plan, &context->kernels, &c->op, c->workspace, thread);
    octavo_pool_barrier(context->pool, thread);
    octavo_attention_merge(&context->plan, &context->kernels, &c->op, c->workspace, thread,
                           n_threads);
}

octavo_status octavo_ragged_paged_attention(octavo_attention_context *context,
                                            const octavo_attention_args *args,
                                            octavo_error *error) {
    if (context == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "ragged paged attention (context): NULL; make one with "
                           "octavo_attention_context_create");
    octavo_status status = octavo_attention_check(args, error);
    if (status != OCTAVO_OK) return status;
    const octavo_attention_limits limits =
        limits_of(args, octavo_pool_threads(context->pool), context->l2_bytes);
    size_t plan_bytes = 0, bytes = 0;
    status = scratch_bytes(&limits, &plan_bytes, &bytes, error);
    if (status == OCTAVO_OK) status = grow(context, bytes, error);
    if (status != OCTAVO_OK) return status;

    const octavo_attention_batch batch = batch_of(args);
    call c = {context, op_of(args), (uint8_t *)context->memory + plan_bytes};
    octavo_attention_plan_make(&context->plan, &limits, &batch, c.op.mask, context->memory);
    octavo_pool_run(context->pool, run_phases, &c);
    return OCTAVO_OK;
}
