/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution: one fork for the whole step, a barrier after each op. The head (ops from head_begin
 * on) runs once for each group of rows that need logits.
 */
#include "program/run.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/exchange.h"
#include "program/operand.h"
#include "program/run_step.h"

#include <string.h>

/* Plans of one of the rank's programs. */
static octavo_status alloc_plans(octavo_run *run, int index, const octavo_run_options *options,
                                 size_t *workspace_bytes, octavo_error *error) {
    const octavo_program *program = run->programs[index];
    const size_t n = (size_t)options->max_sequences + 1;
    for (int i = 0; i < program->n_plans; i++) {
        const octavo_plan_key *key = &program->plans[i];
        octavo_run_plan *plan = &run->all_plans[index][i];
        plan->limits = (octavo_attention_limits){
            .heads = {.n_q_heads = (int32_t)key->n_heads,
                      .n_kv_heads = (int32_t)key->n_kv_heads,
                      .head_dim = (int32_t)key->head_dim,
                      .value_dim = (int32_t)key->value_lanes,
                      .group = (int32_t)key->group,
                      .first = (int32_t)key->first},
            .splits = {.n_parts = octavo_split_degree(&key->parts, &program->mesh),
                       .part = octavo_split_index(&key->parts, &program->mesh, &run->place),
                       .is_cache_dealt = key->is_dealt},
            .max_tokens = program->max_tokens,
            .max_seqs = options->max_sequences,
            .n_threads = run->n_threads,
            .tuning = {.l2_bytes = (int64_t)octavo_cpu_l2_bytes()},
        };
        size_t bytes = octavo_attention_plan_bytes(&plan->limits);
        size_t needed = octavo_attention_workspace_bytes(&plan->limits);
        if (bytes == 0 || needed == 0)
            return octavo_fail(
                error, OCTAVO_ERROR_LIMIT,
                "attention (%lld heads of %lld, %d tokens): too large for this machine; lower "
                "--chunk",
                (long long)key->n_heads, (long long)key->head_dim, program->max_tokens);
        plan->memory = octavo_alloc_aligned(bytes);
        if (!plan->memory) return octavo_fail_memory(error, "attention plan", bytes);
        plan->starts = octavo_alloc_zero(n, sizeof *plan->starts);
        plan->positions = octavo_alloc_zero(n, sizeof *plan->positions);
        if (!plan->starts || !plan->positions)
            return octavo_fail_memory(error, "attention plan", 2 * n * sizeof(int32_t));
        if (needed > *workspace_bytes) *workspace_bytes = needed;
    }
    return OCTAVO_OK;
}

/* One place for the records of all plans. */
static octavo_status alloc_records(octavo_run *run, const octavo_run_options *options,
                                   octavo_error *error) {
    size_t most = 0;
    for (int i = 0; i < OCTAVO_RUN_PROGRAMS; i++) {
        const octavo_program *program = run->programs[i];
        for (int k = 0; k < program->n_plans; k++) {
            const octavo_plan_key *key = &program->plans[k];
            const octavo_tensor rows = {.axes = "t", .rows = key->rows};
            size_t bytes;
            if (!octavo_records_room(program, k, key->n_heads,
                                     (int64_t)octavo_most_rows(program, &rows), options->max_length,
                                     &bytes))
                return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                                   "attention (%lld heads, %lld positions over ranks): too large "
                                   "for this machine; lower --chunk or --context",
                                   (long long)key->n_heads, (long long)options->max_length);
            if (bytes > most) most = bytes;
        }
    }
    if (most == 0) return OCTAVO_OK;
    run->records = octavo_alloc_aligned(most);
    if (!run->records) return octavo_fail_memory(error, "records of attention", most);
    octavo_pool_bind_memory(run->pool, run->team, run->records, most);
    return OCTAVO_OK;
}

static octavo_status alloc_attention(octavo_run *run, const octavo_run_options *options,
                                     octavo_error *error) {
    const size_t n = (size_t)options->max_sequences;
    size_t workspace_bytes = 1;
    octavo_status status = alloc_plans(run, 0, options, &workspace_bytes, error);
    if (status == OCTAVO_OK && run->programs[1] != run->programs[0])
        status = alloc_plans(run, 1, options, &workspace_bytes, error);
    if (status) return status;
    run->workspace = octavo_alloc_aligned(workspace_bytes);
    if (!run->workspace) return octavo_fail_memory(error, "attention workspace", workspace_bytes);
    run->sequence_starts = octavo_alloc_zero(n + 1, sizeof *run->sequence_starts);
    run->block_tables =
        octavo_alloc_zero(n * (size_t)options->pages_per_sequence + 1, sizeof *run->block_tables);
    return run->sequence_starts && run->block_tables
               ? OCTAVO_OK
               : octavo_fail_memory(error, "tables of sequences", (n + 1) * sizeof(int32_t));
}

static octavo_status alloc_rows(octavo_run *run, octavo_error *error) {
    const octavo_program *program = run->programs[0];
    const size_t groups = (size_t)program->mesh.degree[OCTAVO_MESH_DATA];
    const size_t rows = groups * (size_t)program->max_rows;
    run->token_offsets = octavo_alloc_zero(groups + 1, sizeof *run->token_offsets);
    run->row_offsets = octavo_alloc_zero(groups + 1, sizeof *run->row_offsets);
    run->row_numbers = octavo_alloc_zero(rows, sizeof *run->row_numbers);
    return run->token_offsets && run->row_offsets && run->row_numbers
               ? OCTAVO_OK
               : octavo_fail_memory(error, "rows of a step", rows * sizeof(int32_t));
}

static octavo_status alloc_experts(octavo_run *run, octavo_error *error) {
    const octavo_program *program = run->programs[0];
    if (program->n_experts == 0) return OCTAVO_OK;
    const size_t pairs = (size_t)program->max_tokens * (size_t)program->n_chosen;
    run->expert_begin = octavo_alloc_zero((size_t)program->n_experts + 1, sizeof(int32_t));
    run->expert_pair = octavo_alloc_zero(pairs, sizeof(int32_t));
    return run->expert_begin && run->expert_pair
               ? OCTAVO_OK
               : octavo_fail_memory(error, "choices of experts", pairs * sizeof(int32_t));
}

/* Most parts that a reshard has. */
static octavo_status alloc_received(octavo_run *run, octavo_error *error) {
    int most = 0;
    if (!run->exchange) return OCTAVO_OK;
    for (int i = 0; i < OCTAVO_RUN_PROGRAMS; i++) {
        for (int k = 0; k < run->programs[i]->n_reshards; k++) {
            const octavo_reshard *r = &run->programs[i]->reshards[k];
            const int n = r->heads ? r->n_parts : r->n_pieces * r->n_row_shards * r->n_parts;
            if (n > most) most = n;
        }
    }
    run->received = octavo_alloc_zero((size_t)most + 1, sizeof *run->received);
    return run->received ? OCTAVO_OK
                         : octavo_fail_memory(error, "exchange of ranks", (uint64_t)most);
}

static octavo_status alloc_arena(octavo_run *run, octavo_error *error) {
    size_t bytes = 1;
    for (int i = 0; i < OCTAVO_RUN_PROGRAMS; i++)
        if (run->programs[i]->arena_bytes > bytes) bytes = run->programs[i]->arena_bytes;
    run->arena = octavo_alloc_aligned(bytes);
    if (!run->arena) return octavo_fail_memory(error, "activations", bytes);
    octavo_pool_bind_memory(run->pool, run->team, run->arena, bytes);
    return OCTAVO_OK;
}

octavo_status octavo_run_init(octavo_run *run, const octavo_program *program, octavo_pool *pool,
                              const octavo_kv_cache *cache, const octavo_run_options *options,
                              octavo_error *error) {
    *run = (octavo_run){
        .program = program,
        .programs = {program, options->generate ? options->generate : program},
        .rank = program->rank,
        .place = octavo_mesh_place(&program->mesh, program->rank),
        .team = options->team,
        .n_threads = octavo_pool_threads(pool) / octavo_pool_teams(pool),
        .peers = options->peers,
        .exchange = options->exchange,
        .pool = pool,
        .cache = cache,
    };
    octavo_matmul_kernels_init(&run->matmul, options->cpu);
    octavo_vector_kernels_init(&run->vector, options->cpu);
    octavo_attention_kernels_init(&run->attention, options->cpu);
    octavo_status status = alloc_attention(run, options, error);
    if (status || (status = alloc_records(run, options, error)) ||
        (status = alloc_experts(run, error)) || (status = alloc_rows(run, error)) ||
        (status = alloc_received(run, error)) || (status = alloc_arena(run, error)))
        octavo_run_deinit(run);
    return status;
}

void octavo_run_deinit(octavo_run *run) {
    for (int i = 0; i < OCTAVO_RUN_PROGRAMS * OCTAVO_MAX_PLANS; i++) {
        octavo_run_plan *plan = &run->all_plans[i / OCTAVO_MAX_PLANS][i % OCTAVO_MAX_PLANS];
        octavo_free_aligned(plan->memory);
        octavo_free(plan->starts);
        octavo_free(plan->positions);
    }
    octavo_free_aligned(run->workspace);
    octavo_free_aligned(run->records);
    octavo_free(run->sequence_starts);
    octavo_free(run->block_tables);
    octavo_free(run->expert_begin);
    octavo_free(run->expert_pair);
    octavo_free(run->token_offsets);
    octavo_free(run->row_offsets);
    octavo_free(run->row_numbers);
    octavo_free(run->received);
    octavo_free_aligned(run->arena);
    *run = (octavo_run){0};
}

/* ---- what is handed out: each rank its own part, of copies the first rank ---- */

/* Hands out what op `index` is about to read. */
static void copy_traces(octavo_run *run, int index) {
    const octavo_program *program = run->program;
    const octavo_step *step = run->step;
    for (int i = 0; i < program->n_traces; i++) {
        const octavo_trace *trace = &program->traces[i];
        if (trace->op != index) continue;
        const octavo_tensor *tensor = octavo_tensor_at(run, trace->tensor);
        const octavo_range rows = octavo_range_of(run, tensor);
        for (int k = 0; k < step->n_traced && !tensor->is_copy; k++) {
            const int32_t row = step->trace_rows[k];
            if (row < rows.begin || row >= rows.end) continue;
            memcpy(step->traces[k] + i * trace->width + tensor->begin[1],
                   octavo_row_of(run, trace->tensor, row - rows.begin),
                   (size_t)tensor->extent[1] * sizeof(float));
        }
    }
}

/* Hands the rows at hand of a tensor out; threads share the rows. */
static void copy_rows(octavo_run *run, int id, float *const *to, int thread, int n_threads) {
    const octavo_tensor *tensor = octavo_tensor_at(run, id);
    const octavo_range rows = octavo_share_rows(run, id, thread, n_threads);
    const int32_t *numbers = run->row_numbers + octavo_first_row(run, id);
    for (int64_t r = rows.begin; r < rows.end && !tensor->is_copy; r++)
        if (to[numbers[r]])
            memcpy(to[numbers[r]] + tensor->begin[1], octavo_row_of(run, id, r),
                   (size_t)tensor->extent[1] * sizeof(float));
}

/* ---- a thread's way through the ops ---- */

/* A thread of a rank. */
typedef struct walker {
    octavo_run *run;
    int pool_thread;
    int thread, n_threads; /* of the team */
} walker;

/* Do the threads of all ranks meet before the op? */
static bool is_meeting(const octavo_run *run, const octavo_op *op) {
    return op->params.is_meeting || (run->exchange && op->params.is_wire);
}

static void run_op(const walker *w, int index) {
    octavo_run *run = w->run;
    const octavo_op *op = &run->program->ops[index];
    if (op->params.is_for_trace && run->step->n_traced == 0) return;
    if (run->exchange && op->params.is_wire) {
        if (w->pool_thread == 0) octavo_exchange_run(run->exchange, index);
        octavo_pool_barrier(run->pool, w->pool_thread);
    }
    octavo_op_info_of(op->kind)->run(run, op, w->thread, w->n_threads);
}

static void run_ops(const walker *w, int begin, int end) {
    octavo_run *run = w->run;
    const octavo_program *program = run->program;
    for (int i = begin; i < end; i++) {
        if (run->step->n_traced > 0 && w->thread == 0) copy_traces(run, i);
        run_op(w, i);
        if (i + 1 < program->n_ops && is_meeting(run, &program->ops[i + 1]))
            octavo_pool_barrier(run->pool, w->pool_thread);
        else
            octavo_pool_team_barrier(run->pool, w->pool_thread);
    }
}

/* Threads part again after the barrier behind the first op of the logits, which reads what is
 * copied before it. */
static void run_head(const walker *w, int begin) {
    octavo_run *run = w->run;
    const octavo_program *program = run->program;
    const int end = program->n_ops,
              middle = program->logits_begin < end ? program->logits_begin : end;
    run_ops(w, begin, middle);
    if (run->wants_hidden)
        copy_rows(run, program->hidden, run->step->hidden, w->thread, w->n_threads);
    if (!run->wants_logits) return;
    run_ops(w, middle, end);
    copy_rows(run, program->logits, run->step->logits, w->thread, w->n_threads);
}

static octavo_run *run_of_team(octavo_run *run, int team) {
    const int n = run->peers ? octavo_mesh_ranks(&run->program->mesh) : 0;
    for (int i = 0; i < n; i++)
        if (run->peers[i] && run->peers[i]->team == team) return run->peers[i];
    return run;
}

static void run_thread(void *arg, int pool_thread, int pool_threads) {
    octavo_run *run = arg;
    const int n_threads = run->n_threads;
    const walker w = {.run = run_of_team(run, pool_thread / n_threads),
                      .pool_thread = pool_thread,
                      .thread = pool_thread % n_threads,
                      .n_threads = n_threads};
    (void)pool_threads;
    run = w.run;
    const octavo_program *program = run->program;
    const int body_end =
        program->head_begin < program->n_ops ? program->head_begin : program->n_ops;
    run_ops(&w, 0, body_end);
    for (int i = 0; octavo_run_has_rows(run, i); i++) {
        if (w.thread == 0) octavo_run_begin_rows(run, i);
        octavo_pool_barrier(run->pool, pool_thread);
        run_head(&w, body_end);
        octavo_pool_team_barrier(run->pool, pool_thread);
    }
}

void octavo_run_step(octavo_run *run, const octavo_step *step) {
    const int n = run->peers ? octavo_mesh_ranks(&run->program->mesh) : 0;
    if (n == 0) octavo_run_begin(run, step);
    for (int i = 0; i < n; i++)
        if (run->peers[i]) octavo_run_begin(run->peers[i], step);
    octavo_pool_run(run->pool, run_thread, run);
    for (int i = 0; i < n; i++)
        if (run->peers[i]) run->peers[i]->step = NULL;
    run->step = NULL;
}
