/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution: one fork for the whole step, a barrier after each op. The head (ops from head_begin
 * on) runs once for each group of rows that need logits.
 */
#include "program/run.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/operand.h"

#include <string.h>

static octavo_status alloc_plans(octavo_run *run, const octavo_run_options *options,
                                 octavo_error *error) {
    size_t workspace_bytes = 0;
    for (int i = 0; i < run->program->n_plans; i++) {
        const octavo_plan_key *key = &run->program->plans[i];
        run->limits[i] = (octavo_attention_limits){
            .heads = {.n_q_heads = (int32_t)key->n_heads,
                      .n_kv_heads = (int32_t)key->n_kv_heads,
                      .head_dim = (int32_t)key->head_dim,
                      .value_dim = (int32_t)key->value_lanes},
            .max_tokens = run->program->max_tokens,
            .max_seqs = options->max_sequences,
            .n_threads = octavo_pool_threads(run->pool),
            .tuning = {.l2_bytes = (int64_t)octavo_cpu_l2_bytes()},
        };
        size_t bytes = octavo_attention_plan_bytes(&run->limits[i]);
        size_t needed = octavo_attention_workspace_bytes(&run->limits[i]);
        if (bytes == 0 || needed == 0)
            return octavo_fail(
                error, OCTAVO_ERROR_LIMIT,
                "attention (%lld heads of %lld, %d tokens): too large for this machine; lower "
                "--chunk",
                (long long)key->n_heads, (long long)key->head_dim, run->program->max_tokens);
        run->plan_memory[i] = octavo_alloc_aligned(bytes);
        if (!run->plan_memory[i]) return octavo_fail_memory(error, "attention plan", bytes);
        if (needed > workspace_bytes) workspace_bytes = needed;
    }
    run->workspace = octavo_alloc_aligned(workspace_bytes ? workspace_bytes : 1);
    return run->workspace ? OCTAVO_OK
                          : octavo_fail_memory(error, "attention workspace", workspace_bytes);
}

static octavo_status alloc_experts(octavo_run *run, octavo_error *error) {
    const octavo_program *program = run->program;
    if (program->n_experts == 0) return OCTAVO_OK;
    const size_t pairs = (size_t)program->max_tokens * (size_t)program->n_chosen;
    run->expert_begin = octavo_alloc_zero((size_t)program->n_experts + 1, sizeof(int32_t));
    run->expert_pair = octavo_alloc_zero(pairs, sizeof(int32_t));
    return run->expert_begin && run->expert_pair
               ? OCTAVO_OK
               : octavo_fail_memory(error, "choices of experts", pairs * sizeof(int32_t));
}

octavo_status octavo_run_init(octavo_run *run, const octavo_program *program, octavo_pool *pool,
                              const octavo_kv_cache *cache, const octavo_run_options *options,
                              octavo_error *error) {
    *run = (octavo_run){.program = program, .pool = pool, .cache = cache};
    octavo_matmul_kernels_init(&run->matmul, options->cpu);
    octavo_vector_kernels_init(&run->vector, options->cpu);
    octavo_attention_kernels_init(&run->attention, options->cpu);
    octavo_status status = alloc_plans(run, options, error);
    if (status || (status = alloc_experts(run, error))) goto cleanup;
    run->arena = octavo_alloc_aligned(program->arena_bytes ? program->arena_bytes : 1);
    if (!run->arena) {
        status = octavo_fail_memory(error, "activations", program->arena_bytes);
        goto cleanup;
    }
    return OCTAVO_OK;
cleanup:
    octavo_run_deinit(run);
    return status;
}

void octavo_run_deinit(octavo_run *run) {
    for (int i = 0; i < OCTAVO_MAX_PLANS; i++)
        octavo_free_aligned(run->plan_memory[i]);
    octavo_free_aligned(run->workspace);
    octavo_free(run->expert_begin);
    octavo_free(run->expert_pair);
    octavo_free_aligned(run->arena);
    *run = (octavo_run){0};
}

/* Hands out what op `index` is about to read. */
static void copy_traces(octavo_run *run, int index) {
    const octavo_program *program = run->program;
    const octavo_step *step = run->step;
    for (int i = 0; i < program->n_traces; i++) {
        if (program->traces[i].op != index) continue;
        const int64_t width = octavo_width_of(octavo_tensor_at(run, program->traces[i].tensor));
        for (int k = 0; k < step->n_traced; k++)
            memcpy(step->traces[k] + i * width,
                   octavo_row_of(run, program->traces[i].tensor, step->trace_rows[k]),
                   (size_t)width * sizeof(float));
    }
}

static void run_ops(octavo_run *run, int begin, int end, int thread, int n_threads) {
    for (int i = begin; i < end; i++) {
        const octavo_op *op = &run->program->ops[i];
        if (run->step->n_traced > 0 && thread == 0) copy_traces(run, i);
        octavo_op_info_of(op->kind)->run(run, op, thread, n_threads);
        octavo_pool_barrier(run->pool, thread);
    }
}

/* Hands the group's rows of a tensor out; threads share the rows. */
static void copy_rows(octavo_run *run, int id, float *const *to, int thread, int n_threads) {
    const octavo_row_range rows = octavo_share_rows(run, id, thread, n_threads);
    const size_t bytes = (size_t)octavo_tensor_at(run, id)->extent[1] * sizeof(float);
    for (int64_t r = rows.begin; r < rows.end; r++)
        if (to[run->row_begin + r])
            memcpy(to[run->row_begin + r], octavo_row_of(run, id, r), bytes);
}

static bool any(float *const *pointers, int begin, int end) {
    for (int i = begin; pointers && i < end; i++)
        if (pointers[i]) return true;
    return false;
}

static void begin_group(octavo_run *run, int row) {
    const octavo_step *step = run->step;
    const int left = step->n_rows - row, most = run->program->max_rows;
    run->row_begin = row;
    run->row_end = row + (left < most ? left : most);
    run->wants_hidden = any(step->hidden, run->row_begin, run->row_end);
    run->wants_logits = any(step->logits, run->row_begin, run->row_end);
}

/* Threads part again after the barrier behind the first op of the logits, which reads what is
 * copied before it. */
static void run_head(octavo_run *run, int begin, int thread, int n_threads) {
    const octavo_program *program = run->program;
    const int end = program->n_ops,
              middle = program->logits_begin < end ? program->logits_begin : end;
    run_ops(run, begin, middle, thread, n_threads);
    if (run->wants_hidden) copy_rows(run, program->hidden, run->step->hidden, thread, n_threads);
    if (!run->wants_logits) return;
    run_ops(run, middle, end, thread, n_threads);
    copy_rows(run, program->logits, run->step->logits, thread, n_threads);
}

static void run_thread(void *arg, int thread, int n_threads) {
    octavo_run *run = arg;
    const octavo_program *program = run->program;
    int body_end = program->head_begin < program->n_ops ? program->head_begin : program->n_ops;
    run_ops(run, 0, body_end, thread, n_threads);
    for (int row = 0; row < run->step->n_rows; row += program->max_rows) {
        if (thread == 0) begin_group(run, row);
        octavo_pool_barrier(run->pool, thread);
        run_head(run, body_end, thread, n_threads);
        octavo_pool_barrier(run->pool, thread);
    }
}

void octavo_run_step(octavo_run *run, const octavo_step *step) {
    const octavo_attention_batch batch = {
        .n_tokens = step->n_tokens,
        .n_seqs = step->n_sequences,
        .page_size = run->cache->shape.page_size,
        .pages_per_seq = step->pages_per_sequence,
        .kv_lens = step->kv_lens,
        .query_start_loc = step->query_start_loc,
        .block_tables = step->block_tables,
    };
    for (int i = 0; i < run->program->n_plans; i++) {
        const octavo_plan_key *key = &run->program->plans[i];
        octavo_attention_plan_make(&run->plans[i], &run->limits[i], &batch, octavo_mask_of(key),
                                   run->plan_memory[i]);
    }
    run->step = step;
    octavo_pool_run(run->pool, run_thread, run);
    run->step = NULL;
}
