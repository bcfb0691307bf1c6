/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening the ranks of a model: partitions once, then for each rank its weights, programs and
 * cache.
 */
#include "engine/rank.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/rank_place.h"

#include <string.h>

/* What ranks of one process are planned by: they read one another's memory, and meet before. */
static const octavo_machine_model beside = {
    .link_bytes_s = 8e9, .latency_s = 2e-6, .memory_bytes_s = 2e10, .operations_s = 4e11};

/* The same in other processes, over what a node usually has for a link. */
static const octavo_machine_model apart = {
    .link_bytes_s = 2e9, .latency_s = 1e-5, .memory_bytes_s = 2e10, .operations_s = 4e11};

static octavo_status make_partitions(octavo_ranks *ranks, const octavo_ranks_options *options,
                                     octavo_error *error) {
    const int64_t groups = ranks->mesh.degree[OCTAVO_MESH_DATA];
    if (!octavo_program_axes_init(&ranks->axes, options->program))
        return octavo_fail_memory(error, "axes", (uint64_t)options->program->n_tensors);
    for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
        const bool is_prefill = phase == OCTAVO_PHASE_PREFILL;
        const octavo_partition_options costs = {
            .mesh = ranks->mesh,
            .phase = (octavo_phase)phase,
            .rules = options->rules,
            .machine = options->comm ? apart : beside,
            .n_tokens = is_prefill ? options->program->max_tokens : groups,
            .n_rows = groups,
            .kv_length = options->kv_length,
            .cache_bytes = (double)octavo_dtype_size(options->cache.dtype),
            .can_move_weights = true,
        };
        octavo_status status = octavo_partition_make(&ranks->partitions[phase], options->program,
                                                     &ranks->axes, &costs, error);
        if (status) return status;
    }
    return OCTAVO_OK;
}

/* ---- one rank ---- */

/* The cache is touched when it is used. */
static void place_cache(const octavo_rank *rank, const octavo_ranks_options *options, int team) {
    const octavo_kv_cache *cache = &rank->cache;
    if (octavo_pool_teams(options->loading.pool) > 1)
        octavo_pool_bind_memory(options->loading.pool, team, cache->base,
                                cache->layer_bytes * (size_t)cache->shape.n_layers);
}

static octavo_status load_weights(octavo_rank *rank, int index, const octavo_ranks *ranks,
                                  const octavo_ranks_options *options, octavo_error *error) {
    octavo_weights_options loading = options->loading;
    octavo_rank_places places;
    octavo_status status =
        octavo_rank_places_init(&places, options, &ranks->axes, &ranks->mesh, index, error);
    if (status) return status;
    loading.place = octavo_rank_place;
    loading.place_cookie = &places;
    loading.team = index - ranks->first;
    status = octavo_weights_load(&rank->weights, options->checkpoint, &options->network->config,
                                 &loading, error);
    if (!status) {
        rank->bindings =
            octavo_alloc_zero((size_t)options->program->n_tensors + 1, sizeof *rank->bindings);
        if (rank->bindings)
            octavo_rank_bind(&places, &rank->weights, rank->bindings);
        else
            status = octavo_fail_memory(error, "tensors of a rank",
                                        (uint64_t)options->program->n_tensors);
    }
    octavo_rank_places_deinit(&places);
    return status;
}

static octavo_status make_programs(octavo_rank *rank, int index, const octavo_ranks *ranks,
                                   const octavo_ranks_options *options, octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    for (int phase = 0; phase < OCTAVO_PHASES && !status; phase++) {
        const octavo_local_options local = {
            .program = options->program,
            .axes = &ranks->axes,
            .partition = &ranks->partitions[phase],
            .rank = index,
            /* a step of generate has a token of each sequence */
            .max_tokens = phase == OCTAVO_PHASE_GENERATE ? options->max_sequences : 0,
            .bindings = rank->bindings,
            .processes = options->comm ? ranks->processes : NULL,
        };
        status = octavo_local_make(&rank->programs[phase], &local, error);
    }
    return status;
}

/* kv heads of each layer's cache: the most of any, and the first of a layer. */
static int64_t most_heads(const octavo_program *program) {
    int64_t most = 1;
    for (int i = 0; i < program->n_tensors; i++) {
        const octavo_tensor *tensor = &program->tensors[i];
        if (tensor->kind == OCTAVO_TENSOR_CACHE && tensor->extent[1] > most)
            most = tensor->extent[1];
    }
    return most;
}

static octavo_status copy_scales(octavo_rank *rank, const octavo_kv_scales *from, int64_t n_heads,
                                 octavo_error *error) {
    octavo_kv_scales *scales = &rank->cache.scales;
    const octavo_program *program = &rank->programs[OCTAVO_PHASE_PREFILL];
    if (!from->key) return OCTAVO_OK;
    octavo_status status = octavo_kv_scales_init(scales, from->n_layers, (int32_t)n_heads, error);
    if (status) return status;
    for (int i = 0; i < program->n_tensors; i++) {
        const octavo_tensor *tensor = &program->tensors[i];
        if (tensor->kind != OCTAVO_TENSOR_CACHE) continue;
        const int64_t whole = (int64_t)tensor->layer * from->n_heads + tensor->begin[1];
        const int64_t own = (int64_t)tensor->layer * n_heads;
        for (int64_t h = 0; h < tensor->extent[1]; h++) {
            scales->key[own + h] = from->key[whole + h];
            scales->value[own + h] = from->value[whole + h];
        }
    }
    return OCTAVO_OK;
}

octavo_status octavo_cache_parts(const octavo_program *program, const octavo_mesh *mesh,
                                 const octavo_rules *rules, int *n_parts, octavo_error *error) {
    *n_parts = 0;
    for (int i = 0; i < program->n_tensors; i++) {
        if (program->tensors[i].kind != OCTAVO_TENSOR_CACHE) continue;
        const octavo_layout layout =
            octavo_layout_by_rules(program, i, OCTAVO_PHASE_GENERATE, mesh, rules);
        const octavo_split parts = octavo_cache_deal(&layout);
        const int n = octavo_split_degree(&parts, mesh);
        if (*n_parts > 0 && n != *n_parts)
            return octavo_fail(
                error, OCTAVO_ERROR_UNSUPPORTED,
                "rule of %s (axis s, layer %d, degree %d): positions of all layers are "
                "split over as many ranks in this version (degree %d before); give "
                "all layers one rule",
                program->tensors[i].name, program->tensors[i].layer, n, *n_parts);
        *n_parts = n;
    }
    if (*n_parts == 0) *n_parts = 1;
    return OCTAVO_OK;
}

static bool is_cache_of_all(const octavo_program *program) {
    for (int i = 0; i < program->n_plans; i++)
        if (program->plans[i].is_of_all) return true;
    return false;
}

static octavo_status make_cache(octavo_rank *rank, const octavo_ranks *ranks,
                                const octavo_ranks_options *options, octavo_error *error) {
    const octavo_program *program = &rank->programs[OCTAVO_PHASE_PREFILL];
    const int64_t n_heads = most_heads(program);
    octavo_kv_shape shape = options->cache;
    shape.page_elements = octavo_cache_page_elements(&options->network->config, &shape, n_heads,
                                                     options->has_slot_scales);
    if (is_cache_of_all(program)) shape.n_pages *= ranks->mesh.degree[OCTAVO_MESH_DATA];
    octavo_status status = octavo_kv_cache_init(&rank->cache, &shape, error);
    return status ? status : copy_scales(rank, options->scales, n_heads, error);
}

/* All but what runs, which needs the programs of all. */
static octavo_status open_rank(octavo_ranks *ranks, int local, const octavo_ranks_options *options,
                               octavo_error *error) {
    octavo_rank *rank = &ranks->ranks[local];
    const int index = ranks->first + local;
    octavo_status status;
    if ((status = load_weights(rank, index, ranks, options, error)) ||
        (status = make_programs(rank, index, ranks, options, error)) ||
        (status = make_cache(rank, ranks, options, error)))
        return status;
    place_cache(rank, options, local);
    ranks->cache_bytes += (int64_t)rank->cache.layer_bytes * rank->cache.shape.n_layers;
    ranks->runs[index] = &rank->run;
    return OCTAVO_OK;
}

static octavo_status move(void *cookie, const octavo_message *sends, int n_sends,
                          const octavo_message *receives, int n_receives, octavo_error *error) {
    return octavo_comm_exchange(cookie, sends, n_sends, receives, n_receives, error);
}

static octavo_status make_exchange(octavo_ranks *ranks, const octavo_ranks_options *options,
                                   octavo_error *error) {
    const octavo_exchange_options exchange = {
        .move = move,
        .cookie = options->comm,
        .processes = ranks->processes,
        .peers = ranks->runs,
        .max_length = options->context,
    };
    const octavo_program **programs =
        octavo_alloc_zero((size_t)ranks->n * OCTAVO_PHASES, sizeof *programs);
    if (!programs) return octavo_fail_memory(error, "programs", (uint64_t)ranks->n);
    for (int i = 0; i < ranks->n * OCTAVO_PHASES; i++)
        programs[i] = &ranks->ranks[i / OCTAVO_PHASES].programs[i % OCTAVO_PHASES];
    octavo_status status = octavo_exchange_init(&ranks->exchange, &exchange, programs,
                                                ranks->n * OCTAVO_PHASES, error);
    octavo_free(programs);
    return status;
}

static octavo_status start_rank(octavo_ranks *ranks, int local, const octavo_ranks_options *options,
                                octavo_error *error) {
    octavo_rank *rank = &ranks->ranks[local];
    const octavo_run_options run = {
        .cpu = options->cpu,
        .max_sequences = options->max_sequences,
        .generate = &rank->programs[OCTAVO_PHASE_GENERATE],
        .team = local,
        .pages_per_sequence = options->pages_per_sequence,
        .max_length = options->context,
        .peers = ranks->runs,
        .exchange = options->comm ? &ranks->exchange : NULL,
    };
    return octavo_run_init(&rank->run, &rank->programs[OCTAVO_PHASE_PREFILL], options->loading.pool,
                           &rank->cache, &run, error);
}

static octavo_status make_room(octavo_ranks *ranks, int n_ranks, octavo_error *error) {
    ranks->ranks = octavo_alloc_zero((size_t)ranks->n, sizeof *ranks->ranks);
    ranks->runs = octavo_alloc_zero((size_t)n_ranks, sizeof *ranks->runs);
    ranks->processes = octavo_alloc_zero((size_t)n_ranks, sizeof *ranks->processes);
    if (ranks->ranks && ranks->runs && ranks->processes) {
        for (int i = 0; i < n_ranks; i++)
            ranks->processes[i] = i / ranks->n;
        return OCTAVO_OK;
    }
    if (!ranks->ranks) ranks->n = 0;
    return octavo_fail_memory(error, "ranks", (uint64_t)n_ranks * sizeof *ranks->ranks);
}

octavo_status octavo_ranks_open(octavo_ranks *ranks, const octavo_ranks_options *options,
                                octavo_error *error) {
    const int n_ranks = octavo_mesh_ranks(options->mesh);
    *ranks = (octavo_ranks){.mesh = *options->mesh, .n = octavo_pool_teams(options->loading.pool)};
    if (options->comm) ranks->first = octavo_comm_process(options->comm) * ranks->n;
    octavo_status status = make_room(ranks, n_ranks, error);
    if (!status) status = make_partitions(ranks, options, error);
    for (int i = 0; i < ranks->n && !status; i++)
        status = open_rank(ranks, i, options, error);
    if (!status && options->comm) status = make_exchange(ranks, options, error);
    for (int i = 0; i < ranks->n && !status; i++)
        status = start_rank(ranks, i, options, error);
    if (status) octavo_ranks_close(ranks);
    return status;
}

void octavo_ranks_close(octavo_ranks *ranks) {
    for (int i = 0; i < ranks->n; i++) {
        octavo_rank *rank = &ranks->ranks[i];
        octavo_run_deinit(&rank->run);
        octavo_kv_cache_deinit(&rank->cache);
        for (int phase = 0; phase < OCTAVO_PHASES; phase++)
            octavo_program_deinit(&rank->programs[phase]);
        octavo_free(rank->bindings);
        octavo_weights_deinit(&rank->weights);
    }
    octavo_exchange_deinit(&ranks->exchange);
    octavo_free(ranks->ranks);
    octavo_free(ranks->runs);
    octavo_free(ranks->processes);
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        octavo_partition_deinit(&ranks->partitions[phase]);
    octavo_program_axes_deinit(&ranks->axes);
    *ranks = (octavo_ranks){0};
}
