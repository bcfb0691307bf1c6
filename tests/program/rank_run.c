/* SPDX-License-Identifier: Apache-2.0 */
#include "program/exchange.h"
#include "program/operand.h"
#include "rank_weights.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PAGES = 320 }; /* of a sequence */

static int pages_of(const world *w) {
    return w->desc.n_pages > 0 ? w->desc.n_pages : 5;
}

static void *must(void *p) {
    assert_non_null(p);
    return p;
}

/* ---- steps ---- */

/* Arrays of a step, and how far the sequences are. */
typedef struct feeder {
    const world *w;
    world_results *results;
    const int *group_begin; /* NULL: one group, one numbering of pages */
    int n_groups;
    int lengths[WORLD_SEQUENCES], logit_row, traced;
    int32_t types[WORLD_TOKENS], ids[WORLD_TOKENS], positions[WORLD_TOKENS], rows[WORLD_TOKENS];
    int32_t starts[WORLD_SEQUENCES + 1], kv_lens[WORLD_SEQUENCES];
    int32_t tables[WORLD_SEQUENCES * MOST_PAGES], trace_rows[WORLD_SEQUENCES];
    int32_t group_tokens[9], group_sequences[9], group_rows[9];
    float *logits[WORLD_TOKENS], *hidden[WORLD_TOKENS], *traces[WORLD_SEQUENCES];
} feeder;

static int32_t id_of(const world *w, int sequence, int position) {
    return (int32_t)((uint32_t)(sequence * 7919 + position * 104729 + 13) * 2654435761u >> 8) %
           w->desc.vocab;
}

/* Sequences without new tokens are not in the step. */
static int add_sequence(feeder *f, octavo_step *step, int s, int local, int n) {
    const int64_t d = f->w->desc.d;
    const int pages = pages_of(f->w);
    for (int i = 0; i < n; i++) {
        const int row = step->n_tokens++;
        f->ids[row] = id_of(f->w, s, f->lengths[s] + i);
        f->positions[row] = f->lengths[s] + i;
        f->types[row] = f->ids[row] % 3;
        if (s % 2 == 1 && i + 1 < n) continue;
        f->rows[step->n_rows] = row;
        f->logits[step->n_rows] =
            f->logit_row % 5 == 3 ? NULL
                                  : f->results->logits + (int64_t)f->logit_row * f->w->desc.vocab;
        f->hidden[step->n_rows++] = f->results->hidden + f->logit_row * d;
        f->logit_row++;
    }
    if (n == 0) return 0;
    f->lengths[s] += n;
    f->trace_rows[step->n_traced] = step->n_tokens - 1;
    f->traces[step->n_traced++] = f->results->traces + (int64_t)f->traced++ * WORLD_LAYERS * d;
    f->kv_lens[step->n_sequences] = f->lengths[s];
    assert_in_range(f->lengths[s], 1, pages * WORLD_PAGE);
    for (int p = 0; p < pages; p++)
        f->tables[step->n_sequences * pages + p] = (local + 1) * pages - 1 - p;
    f->starts[++step->n_sequences] = step->n_tokens;
    return n;
}

static octavo_step fill_step(feeder *f, const world_step *from) {
    octavo_step step = {.ids = f->ids,
                        .positions = f->positions,
                        .types = f->types,
                        .query_start_loc = f->starts,
                        .kv_lens = f->kv_lens,
                        .lengths = f->kv_lens,
                        .block_tables = f->tables,
                        .pages_per_sequence = pages_of(f->w),
                        .logit_rows = f->rows,
                        .logits = f->logits,
                        .hidden = f->hidden,
                        .trace_rows = f->trace_rows,
                        .traces = f->traces};
    static const int one[] = {0, WORLD_SEQUENCES};
    const int *begin = f->group_begin ? f->group_begin : one;
    for (int g = 0; g < f->n_groups; g++) {
        for (int s = begin[g]; s < begin[g + 1]; s++) {
            if (f->lengths[s] < from->begins[s]) f->lengths[s] = from->begins[s];
            add_sequence(f, &step, s, s - begin[g], from->new_tokens[s]);
        }
        f->group_tokens[g + 1] = step.n_tokens;
        f->group_sequences[g + 1] = step.n_sequences;
        f->group_rows[g + 1] = step.n_rows;
    }
    if (f->n_groups == 1) return step;
    step.group_tokens = f->group_tokens;
    step.group_sequences = f->group_sequences;
    step.group_rows = f->group_rows;
    return step;
}

static void alloc_results(const world *w, int n_steps, world_results *results) {
    const size_t rows = (size_t)n_steps * WORLD_TOKENS;
    results->n_logits = rows * (size_t)w->desc.vocab;
    results->n_hidden = rows * (size_t)w->desc.d;
    results->n_traces = (size_t)n_steps * WORLD_SEQUENCES * WORLD_LAYERS * (size_t)w->desc.d;
    results->logits = must(octavo_alloc_zero(results->n_logits, sizeof(float)));
    results->hidden = must(octavo_alloc_zero(results->n_hidden, sizeof(float)));
    results->traces = must(octavo_alloc_zero(results->n_traces, sizeof(float)));
}

static void init_cache(octavo_kv_cache *cache, const world *w, int64_t kv_heads, int groups) {
    const int64_t lanes = w->desc.head_dim;
    octavo_error error;
    octavo_kv_shape shape = {.n_layers = WORLD_LAYERS,
                             .n_pages = groups * WORLD_SEQUENCES * pages_of(w),
                             .page_size = WORLD_PAGE,
                             .page_elements = 2 * kv_heads * lanes * WORLD_PAGE + 1,
                             .layout = OCTAVO_KV_COLUMNS,
                             .dtype = OCTAVO_DTYPE_F32};
    octavo_attention_op op;
    const octavo_attention_heads heads = {.n_q_heads = (int32_t)kv_heads,
                                          .n_kv_heads = (int32_t)kv_heads,
                                          .head_dim = (int32_t)lanes};
    octavo_attention_op_init(&op, &heads, shape.dtype, shape.layout, shape.page_size);
    if (kv_heads > 0)
        shape.page_elements = octavo_attention_page_stride(&op, &heads, shape.page_size);
    if (octavo_kv_cache_init(cache, &shape, &error)) fail_msg("%s", error.message);
    for (int i = 0; i < WORLD_LAYERS; i++)
        memset(octavo_kv_cache_layer(cache, i), 0, cache->layer_bytes);
}

void world_run_whole(const world *w, const world_step *steps, int n_steps, int n_threads,
                     world_results *results) {
    octavo_pool *pool = NULL;
    octavo_kv_cache cache;
    octavo_run run;
    octavo_error error;
    alloc_results(w, n_steps, results);
    feeder f = {.w = w, .results = results, .n_groups = 1};
    init_cache(&cache, w, w->desc.n_kv_heads, 1);
    if (octavo_pool_create(&pool, n_threads, false, &error) ||
        octavo_run_init(
            &run, &w->program, pool, &cache,
            &(octavo_run_options){.cpu = octavo_cpu_detect(), .max_sequences = WORLD_SEQUENCES},
            &error))
        fail_msg("%s", error.message);
    for (int i = 0; i < n_steps; i++) {
        const octavo_step step = fill_step(&f, &steps[i]);
        octavo_run_step(&run, &step);
    }
    octavo_run_deinit(&run);
    octavo_kv_cache_deinit(&cache);
    octavo_pool_destroy(&pool);
}

enum { MAX_RANKS = 16 };

/* A rank and all that is its own. */
typedef struct rank_parts {
    rank_weights weights;
    octavo_program programs[OCTAVO_PHASES];
    octavo_kv_cache cache;
    octavo_run run;
} rank_parts;

static void free_parts(const world *w, rank_parts *parts) {
    octavo_run_deinit(&parts->run);
    octavo_kv_cache_deinit(&parts->cache);
    rank_weights_free(&parts->weights, w);
    for (int i = 0; i < OCTAVO_PHASES; i++)
        octavo_program_deinit(&parts->programs[i]);
}

/* ---- ranks ---- */

static octavo_status make_partitions(const world *w, const world_mesh *mesh,
                                     const octavo_rules *rules, const world_step *step,
                                     octavo_partition *partitions, octavo_error *error) {
    int64_t n_tokens = 0;
    for (int s = 0; s < WORLD_SEQUENCES; s++)
        n_tokens += step->new_tokens[s];
    for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
        const octavo_partition_options options = {
            .mesh = mesh->mesh,
            .phase = (octavo_phase)phase,
            .rules = rules,
            .machine = {.link_bytes_s = 1e9,
                        .latency_s = 1e-6,
                        .memory_bytes_s = 1e10,
                        .operations_s = 1e11},
            .n_tokens = n_tokens,
            .n_rows = WORLD_SEQUENCES,
            .kv_length = mesh->kv_length > 0 ? mesh->kv_length : 64,
            .cache_bytes = 4,
            .can_move_weights = mesh->can_move_weights,
        };
        octavo_status status =
            octavo_partition_make(&partitions[phase], &w->program, &w->axes, &options, error);
        if (status) return status;
    }
    return OCTAVO_OK;
}

static int64_t kv_heads_of(const octavo_program *program) {
    for (int i = 0; i < program->n_tensors; i++)
        if (program->tensors[i].kind == OCTAVO_TENSOR_CACHE) return program->tensors[i].extent[1];
    return 0;
}

/* ---- processes: threads that send each other bytes ---- */

typedef struct network {
    pthread_barrier_t meeting;
    const octavo_message *sends[MAX_RANKS];
    int n_sends[MAX_RANKS];
} network;

typedef struct process {
    const world *w;
    const world_mesh *mesh;
    const octavo_rules *rules;
    const octavo_partition *partitions;
    const world_step *steps;
    int n_steps;
    world_results *results;
    int number;
    const int *processes; /* of the ranks; NULL: one */
    network *net;
    rank_parts *ranks;            /* [MAX_RANKS] its own are used */
    octavo_run *peers[MAX_RANKS]; /* its own */
} process;

/* Nothing may be missing, too much or of another size. */
static octavo_status move(void *cookie, const octavo_message *sends, int n_sends,
                          const octavo_message *receives, int n_receives, octavo_error *error) {
    process *p = cookie;
    network *net = p->net;
    octavo_status status = OCTAVO_OK;
    int next[MAX_RANKS] = {0};
    net->sends[p->number] = sends;
    net->n_sends[p->number] = n_sends;
    pthread_barrier_wait(&net->meeting);
    for (int i = 0; i <= n_receives; i++) {
        const bool is_end = i == n_receives;
        for (int from = 0; from < p->mesh->n_processes; from++) {
            if (!is_end && receives[i].process != from) continue;
            int *at = &next[from];
            while (*at < net->n_sends[from] && net->sends[from][*at].process != p->number)
                ++*at;
            const bool is_there = *at < net->n_sends[from];
            if (is_end ? is_there : !is_there || net->sends[from][*at].bytes != receives[i].bytes) {
                if (error) snprintf(error->message, sizeof error->message, "messages differ");
                status = OCTAVO_ERROR_IO;
            } else if (!is_end) {
                memcpy(receives[i].data, net->sends[from][(*at)++].data, receives[i].bytes);
            }
        }
    }
    pthread_barrier_wait(&net->meeting);
    return status;
}

/* ---- a process ---- */

static void make_programs(process *p, int rank) {
    rank_parts *parts = &p->ranks[rank];
    octavo_error error;
    rank_weights_cut(&parts->weights, p->w, &p->mesh->mesh, p->rules, rank);
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        if (octavo_local_make(&parts->programs[phase],
                              &(octavo_local_options){.program = &p->w->program,
                                                      .axes = &p->w->axes,
                                                      .partition = &p->partitions[phase],
                                                      .rank = rank,
                                                      .max_tokens = phase == OCTAVO_PHASE_GENERATE
                                                                        ? WORLD_SEQUENCES
                                                                        : 0,
                                                      .bindings = parts->weights.bindings,
                                                      .processes = p->processes},
                              &error))
            fail_msg("rank %d of %d, phase %d: %s", rank, octavo_mesh_ranks(&p->mesh->mesh), phase,
                     error.message);
    init_cache(&parts->cache, p->w, kv_heads_of(&parts->programs[0]),
               p->mesh->mesh.degree[OCTAVO_MESH_DATA]);
}

static void init_run(process *p, int rank, int team, octavo_pool *pool, octavo_exchange *exchange) {
    rank_parts *parts = &p->ranks[rank];
    octavo_error error;
    const octavo_run_options options = {
        .cpu = octavo_cpu_detect(),
        .max_sequences = WORLD_SEQUENCES,
        .generate = &parts->programs[OCTAVO_PHASE_GENERATE],
        .team = team,
        .pages_per_sequence = pages_of(p->w),
        .max_length = pages_of(p->w) * WORLD_PAGE,
        .peers = p->peers,
        .exchange = exchange,
    };
    if (octavo_run_init(&parts->run, &parts->programs[OCTAVO_PHASE_PREFILL], pool, &parts->cache,
                        &options, &error))
        fail_msg("%s", error.message);
}

static void *run_process(void *cookie) {
    process *p = cookie;
    const int n = octavo_mesh_ranks(&p->mesh->mesh);
    const octavo_program *programs[OCTAVO_PHASES * MAX_RANKS];
    octavo_exchange exchange = {0};
    octavo_pool *pool = NULL;
    octavo_error error;
    octavo_run *any = NULL;
    int n_own = 0;
    for (int i = 0; i < n; i++) {
        if (p->processes && p->processes[i] != p->number) continue;
        make_programs(p, i);
        any = p->peers[i] = &p->ranks[i].run;
        for (int phase = 0; phase < OCTAVO_PHASES; phase++)
            programs[n_own * OCTAVO_PHASES + phase] = &p->ranks[i].programs[phase];
        n_own++;
    }
    alloc_results(p->w, p->n_steps, p->results);
    feeder f = {.w = p->w,
                .results = p->results,
                .group_begin = p->mesh->group_begin,
                .n_groups = p->mesh->mesh.degree[OCTAVO_MESH_DATA]};
    if (octavo_pool_create_teams(&pool, n_own, p->mesh->n_threads, false, &error) ||
        (p->processes &&
         octavo_exchange_init(&exchange,
                              &(octavo_exchange_options){.move = move,
                                                         .cookie = p,
                                                         .processes = p->processes,
                                                         .peers = p->peers,
                                                         .max_length = pages_of(p->w) * WORLD_PAGE},
                              programs, n_own * OCTAVO_PHASES, &error)))
        fail_msg("%s", error.message);
    for (int i = 0, team = 0; i < n; i++)
        if (p->peers[i]) init_run(p, i, team++, pool, p->processes ? &exchange : NULL);
    for (int i = 0; i < p->n_steps; i++) {
        const octavo_step step = fill_step(&f, &p->steps[i]);
        octavo_run_step(any, &step);
    }
    if (exchange.status) fail_msg("process %d: %s", p->number, exchange.error.message);
    octavo_exchange_deinit(&exchange);
    octavo_pool_destroy(&pool);
    return NULL;
}

/* The ranks in turn among the processes. What comes of the steps is in the first one's results. */
static void run_processes(process *model) {
    const int n = model->mesh->n_processes, n_ranks = octavo_mesh_ranks(&model->mesh->mesh);
    int processes[MAX_RANKS];
    process list[MAX_RANKS];
    world_results other[MAX_RANKS] = {{0}};
    pthread_t threads[MAX_RANKS];
    network net = {0};
    if (n <= 1) {
        run_process(model);
        return;
    }
    assert_int_equal(pthread_barrier_init(&net.meeting, NULL, (unsigned)n), 0);
    for (int i = 0; i < n_ranks; i++)
        processes[i] = i % n;
    for (int i = 0; i < n; i++) {
        list[i] = *model;
        list[i].number = i;
        list[i].processes = processes;
        list[i].net = &net;
        if (i > 0) list[i].results = &other[i];
        assert_int_equal(pthread_create(&threads[i], NULL, run_process, &list[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        world_results_free(&other[i]);
    }
    pthread_barrier_destroy(&net.meeting);
}

static void sum_traffic(world_mesh *mesh, const rank_parts *ranks, int n,
                        const octavo_partition *prefill) {
    mesh->traffic = (octavo_traffic){{0}, {0}};
    for (int i = 0; i < n; i++)
        for (int c = 0; c < OCTAVO_COLLECTIVES; c++) {
            mesh->traffic.messages[c] += ranks[i].run.traffic.messages[c];
            mesh->traffic.bytes[c] += ranks[i].run.traffic.bytes[c];
        }
    memset(mesh->planned, 0, sizeof mesh->planned);
    mesh->routed = 0.0;
    for (int i = 0; i < prefill->n_steps; i++) {
        const octavo_partition_step *step = &prefill->steps[i];
        mesh->planned[step->transfer.collective] += n * step->transfer.wire_bytes;
        if (step->choices != OCTAVO_NO_TENSOR) mesh->routed += n * step->transfer.wire_bytes;
    }
}

bool world_run_ranks(const world *w, world_mesh *mesh, const world_step *steps, int n_steps,
                     world_results *results, octavo_error *error) {
    const int n = octavo_mesh_ranks(&mesh->mesh);
    octavo_partition partitions[OCTAVO_PHASES];
    octavo_rules defaults;
    octavo_rules_init(&defaults);
    rank_parts *ranks = must(octavo_alloc_zero(MAX_RANKS, sizeof *ranks));
    process p = {.w = w,
                 .mesh = mesh,
                 .rules = mesh->rules ? mesh->rules : &defaults,
                 .partitions = partitions,
                 .steps = steps,
                 .n_steps = n_steps,
                 .results = results,
                 .ranks = ranks};
    memset(partitions, 0, sizeof partitions);
    assert_in_range(n, 1, MAX_RANKS);
    const bool is_legal = !make_partitions(w, mesh, p.rules, &steps[0], partitions, error);
    if (is_legal) {
        run_processes(&p);
        sum_traffic(mesh, ranks, n, &partitions[OCTAVO_PHASE_PREFILL]);
    }
    for (int i = 0; i < n; i++)
        free_parts(w, &ranks[i]);
    octavo_free(ranks);
    for (int i = 0; i < OCTAVO_PHASES; i++)
        octavo_partition_deinit(&partitions[i]);
    octavo_rules_deinit(&defaults);
    return is_legal;
}
