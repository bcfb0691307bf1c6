/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/model.h: opening and closing. One struct owns everything that a loaded model needs; step.c
 * runs it.
 */
#include "engine/model.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "engine/calibration.h"
#include "engine/sharding.h"
#include "engine/source.h"
#include "engine/vocab_gguf.h"
#include "model/kv_scales.h"

#include <string.h>

void octavo_model_options_init(octavo_model_options *options) {
    *options = (octavo_model_options){
        .size = sizeof *options,
        .kv_dtype = OCTAVO_KV_DTYPE_AUTO,
        .page_size = 16,
        .chunk = 512,
        .max_sequences = 64,
        .pin = true,
    };
}

const char *octavo_weights_name(octavo_weights weights) {
    static const char *const names[] = {"file", "f32", "bf16", "q8", "q4"};
    return (unsigned)weights < OCTAVO_COUNT(names) ? names[weights] : "?";
}

static octavo_status bad_option(octavo_error *error, const char *name, long long value,
                                const char *why) {
    return octavo_fail(error, OCTAVO_ERROR_INVALID, "option %s (%lld): %s", name, value, why);
}

static octavo_status check_options(const octavo_model_options *options, octavo_error *error) {
    if (options->size != sizeof *options)
        return bad_option(error, "size", (long long)options->size,
                          "not of this version; fill the options with octavo_model_options_init");
    if (options->threads < 0 || options->threads > 1024)
        return bad_option(error, "threads", options->threads, "give 1 to 1024, or 0 for all cores");
    if (options->precision != OCTAVO_PRECISION_FAST && options->precision != OCTAVO_PRECISION_EXACT)
        return bad_option(error, "precision", options->precision, "give fast or exact");
    if ((unsigned)options->weights > OCTAVO_WEIGHTS_Q4)
        return bad_option(error, "weights", (int)options->weights,
                          "give file, f32, bf16, q8 or q4");
    if (options->page_size < 1 || options->page_size > 1024)
        return bad_option(error, "page size", options->page_size, "give 1 to 1024");
    if (options->chunk < 1 || options->chunk > 65536)
        return bad_option(error, "chunk", options->chunk, "give 1 to 65536");
    if (options->max_sequences < 1 || options->max_sequences > 65536)
        return bad_option(error, "max_sequences", options->max_sequences, "give 1 to 65536");
    if (options->context < 0)
        return bad_option(error, "context", options->context, "give a positive number");
    if (options->ranks != OCTAVO_RANKS_THREAD && options->ranks != OCTAVO_RANKS_MPI)
        return bad_option(error, "ranks", (int)options->ranks, "give thread or mpi");
    switch (options->kv_dtype) {
    case OCTAVO_KV_DTYPE_AUTO:
    case OCTAVO_DTYPE_F32:
    case OCTAVO_DTYPE_F16:
    case OCTAVO_DTYPE_BF16:
        if (!options->kv_scales) return OCTAVO_OK;
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "option kv-scales (%.200s): only an 8-bit cache has scales; give "
                           "kv-dtype fp8_e4m3, fp8_e5m2 or int8 too",
                           options->kv_scales);
    case OCTAVO_DTYPE_FP8_E4M3:
    case OCTAVO_DTYPE_FP8_E5M2:
    case OCTAVO_DTYPE_INT8:
        return OCTAVO_OK;
    default:
        return bad_option(error, "kv-dtype", options->kv_dtype,
                          "give auto, f32, f16, bf16, fp8_e4m3, fp8_e5m2 or int8");
    }
}

/* f16 and bf16 cost the same here at every level (both are widened to f32), so auto takes the more
 * precise. */
static octavo_dtype choose_kv_dtype(const octavo_model_options *options) {
    if (options->kv_dtype != OCTAVO_KV_DTYPE_AUTO) return (octavo_dtype)options->kv_dtype;
    return options->precision == OCTAVO_PRECISION_EXACT ? OCTAVO_DTYPE_F32 : OCTAVO_DTYPE_F16;
}

static octavo_status choose_context(octavo_model *model, const octavo_model_options *options,
                                    octavo_error *error) {
    const octavo_model_config *config = &model->network.config;
    model->context = options->context ? options->context : config->context;
    if (model->context > config->context)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "option context (%lld): the model was made for %lld; give at most that",
                           (long long)model->context, (long long)config->context);
    return OCTAVO_OK;
}

/* The scales of an 8-bit cache that are known beforehand; those of a checkpoint are made for fp8.
 */
static octavo_status find_scales(octavo_kv_scales *scales, const octavo_model *model,
                                 const octavo_checkpoint *checkpoint,
                                 const octavo_model_options *options, octavo_error *error) {
    const octavo_model_config *config = &model->network.config;
    const octavo_dtype dtype = choose_kv_dtype(options);
    if (options->kv_scales)
        return octavo_calibration_read(options->kv_scales, dtype, config, scales, error);
    if (dtype != OCTAVO_DTYPE_FP8_E4M3 && dtype != OCTAVO_DTYPE_FP8_E5M2) return OCTAVO_OK;
    return octavo_kv_scales_load(scales, checkpoint, config, error);
}

/* Columns are read fastest, if a page is whole groups of them; values that are lanes of their keys
 * have that layout alone. */
int64_t octavo_cache_page_elements(const octavo_model_config *config, const octavo_kv_shape *shape,
                                   int64_t n_kv_heads, bool has_slot_scales) {
    const int64_t lanes = octavo_config_value_lanes(config);
    const octavo_attention_heads heads = {.n_q_heads = (int32_t)n_kv_heads,
                                          .n_kv_heads = (int32_t)n_kv_heads,
                                          .head_dim = (int32_t)config->head_dim,
                                          .value_dim = (int32_t)lanes};
    octavo_attention_op op;
    octavo_attention_op_init(&op, &heads, shape->dtype, shape->layout, shape->page_size);
    op.value_in_key = lanes > 0;
    op.slot_scales = has_slot_scales;
    return octavo_attention_page_stride(&op, &heads, shape->page_size);
}

static void choose_layout(octavo_kv_shape *shape, const octavo_model_config *config,
                          bool slot_scales) {
    const int64_t lanes = octavo_config_value_lanes(config);
    shape->layout =
        lanes > 0 || shape->page_size % OCTAVO_KEY_GROUP == 0 ? OCTAVO_KV_COLUMNS : OCTAVO_KV_ROWS;
    shape->page_elements =
        octavo_cache_page_elements(config, shape, config->n_kv_heads, slot_scales);
}

/* Ranks that each have some of the kv splits of a sequence. */
static octavo_status count_parts(octavo_model *model, const octavo_model_options *options,
                                 octavo_error *error) {
    model->cache_parts = 1;
    if (!options->sharding) return OCTAVO_OK;
    octavo_status status =
        octavo_cache_parts(&model->program, &options->sharding->mesh, &options->sharding->rules,
                           &model->cache_parts, error);
    if (status || model->cache_parts == 1 || OCTAVO_KV_SPLIT % options->page_size == 0)
        return status;
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       "option page size (%d): where positions of the cache are split over ranks, "
                       "it has to divide %d; give a power of two",
                       options->page_size, OCTAVO_KV_SPLIT);
}

/* The shape of all of it; the memory is the model's, or of each rank a part. */
static octavo_status shape_cache(octavo_model *model, const octavo_model_options *options,
                                 bool has_slot_scales, octavo_error *error) {
    const octavo_model_config *config = &model->network.config;
    octavo_kv_shape shape = {
        .n_layers = config->n_kv_layers,
        .n_pages = 1,
        .page_size = options->page_size,
        .dtype = choose_kv_dtype(options),
    };
    choose_layout(&shape, config, has_slot_scales);
    size_t page_bytes;
    octavo_status status = octavo_kv_cache_bytes(&shape, &page_bytes, error);
    if (status) return status;
    shape.n_pages = octavo_pages_for(model->context, options->page_size, model->cache_parts);
    /* So many short texts at once end so many pages before they are full. */
    if (config->is_encoder) shape.n_pages += model->max_sequences - 1;
    if (options->kv_memory) {
        uint64_t pages = options->kv_memory / page_bytes / (uint64_t)model->cache_parts;
        if (pages == 0)
            return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                               "option kv-memory (%llu bytes): less than one page of %zu bytes; "
                               "give more or lower "
                               "the page size",
                               (unsigned long long)options->kv_memory, page_bytes);
        shape.n_pages = pages < INT32_MAX ? (int64_t)pages : INT32_MAX;
    }
    model->cache.shape = shape;
    return OCTAVO_OK;
}

/* Pages of each group. */
static octavo_status create_pages(octavo_model *model, octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    model->pages = octavo_alloc_zero((size_t)model->n_groups, sizeof *model->pages);
    if (!model->pages)
        return octavo_fail_memory(error, "pages", (uint64_t)model->n_groups * sizeof(void *));
    for (int g = 0; g < model->n_groups && !status; g++)
        status = octavo_page_pool_create(&model->pages[g], model->cache.shape.n_pages, error);
    return status;
}

/* Arrays of a step, sized once so that a step allocates nothing. */
static octavo_status create_step_arrays(octavo_model *model, octavo_error *error) {
    octavo_step_arrays *a = &model->arrays;
    const size_t tokens = (size_t)model->chunk, sequences = (size_t)model->max_sequences;
    const size_t rows = tokens + sequences; /* traces have one more each */
    model->table_entries = octavo_pages_for(model->context, model->page_size, model->cache_parts);
    a->ids = octavo_alloc_zero(tokens, sizeof *a->ids);
    a->positions = octavo_alloc_zero(tokens, sizeof *a->positions);
    a->types = octavo_alloc_zero(tokens, sizeof *a->types);
    a->logit_rows = octavo_alloc_zero(rows, sizeof *a->logit_rows);
    a->logits = octavo_alloc_zero(rows, sizeof *a->logits);
    a->hidden = octavo_alloc_zero(rows, sizeof *a->hidden);
    a->trace_rows = octavo_alloc_zero(sequences, sizeof *a->trace_rows);
    a->traces = octavo_alloc_zero(sequences, sizeof *a->traces);
    a->query_start_loc = octavo_alloc_zero(sequences + 1, sizeof *a->query_start_loc);
    a->kv_lens = octavo_alloc_zero(sequences, sizeof *a->kv_lens);
    a->lengths = octavo_alloc_zero(sequences, sizeof *a->lengths);
    a->order = octavo_alloc_zero(sequences, sizeof *a->order);
    a->group_tokens = octavo_alloc_zero((size_t)model->n_groups + 1, sizeof *a->group_tokens);
    a->group_sequences = octavo_alloc_zero((size_t)model->n_groups + 1, sizeof *a->group_sequences);
    a->group_rows = octavo_alloc_zero((size_t)model->n_groups + 1, sizeof *a->group_rows);
    a->block_tables =
        octavo_alloc_zero(sequences * (size_t)model->table_entries, sizeof *a->block_tables);
    if (!a->ids || !a->positions || !a->types || !a->logit_rows || !a->logits || !a->hidden ||
        !a->trace_rows || !a->traces || !a->query_start_loc || !a->kv_lens || !a->lengths ||
        !a->order || !a->group_tokens || !a->group_sequences || !a->group_rows || !a->block_tables)
        return octavo_fail_memory(error, "arrays of a step",
                                  sequences * (uint64_t)model->table_entries * sizeof(int32_t));
    return OCTAVO_OK;
}

static octavo_status tokenizer_of_gguf(octavo_model *model, const octavo_gguf *gguf,
                                       octavo_error *error) {
    if (octavo_vocab_is_none(gguf)) return OCTAVO_OK;
    octavo_status status = octavo_tokenizer_from_gguf(gguf, &model->tokenizer, error);
    if (status) return status;
    if (octavo_tokenizer_size(model->tokenizer) > model->network.config.vocab)
        return octavo_fail(
            error, OCTAVO_ERROR_FORMAT,
            "vocabulary (%s): %ld tokens but the embedding has %lld rows; the file is damaged",
            octavo_gguf_part_path(gguf, 0), (long)octavo_tokenizer_size(model->tokenizer),
            (long long)model->network.config.vocab);
    return OCTAVO_OK;
}

/* A folder's model runs without its tokenizer too, on ids. Its tokenizer may know more tokens than
 * the embedding has rows: those of pictures, of which the text model never hears. */
static octavo_status tokenizer_of_folder(octavo_model *model, const octavo_hf_folder *folder,
                                         const octavo_log *log, octavo_error *error) {
    octavo_error why;
    if (!folder->tokenizer) return OCTAVO_OK;
    octavo_status status = octavo_tokenizer_open(folder->path, &model->tokenizer, &why);
    if (status == OCTAVO_OK) return OCTAVO_OK;
    if (status == OCTAVO_ERROR_MEMORY) return octavo_fail(error, status, "%s", why.message);
    octavo_log_write(log, OCTAVO_LOG_WARN, "%s; the model takes token ids only", why.message);
    return OCTAVO_OK;
}

static octavo_status create_tokenizer(octavo_model *model, const octavo_checkpoint *checkpoint,
                                      const octavo_log *log, octavo_error *error) {
    octavo_status status = checkpoint->gguf
                               ? tokenizer_of_gguf(model, checkpoint->gguf, error)
                               : tokenizer_of_folder(model, &checkpoint->folder, log, error);
    return status ? status : octavo_source_chat_template(checkpoint, &model->chat_template, error);
}

/* Logits are made in groups of rows, so that a large vocabulary does not need a large arena. */
static int logit_group(int64_t vocabulary, int chunk) {
    int rows = (int)((8 << 20) / vocabulary); /* 32 MiB of f32 */
    if (rows < 8) rows = 8;
    return rows < chunk ? rows : chunk;
}

/* The model in one piece: the cache takes the scales. */
static octavo_status create_run(octavo_model *model, octavo_kv_scales *scales,
                                octavo_error *error) {
    const octavo_kv_shape shape = model->cache.shape;
    octavo_status status = octavo_kv_cache_init(&model->cache, &shape, error);
    if (status) return status;
    model->cache.scales = *scales;
    *scales = (octavo_kv_scales){0};
    return octavo_run_init(
        &model->run, &model->program, model->pool, &model->cache,
        &(octavo_run_options){.cpu = model->cpu, .max_sequences = model->max_sequences}, error);
}

static octavo_status create_ranks(octavo_model *model, const octavo_checkpoint *checkpoint,
                                  const octavo_model_options *options,
                                  const octavo_weights_options *loading,
                                  const octavo_kv_scales *scales, octavo_error *error) {
    octavo_model_weights *weights = &model->network.weights;
    const octavo_ranks_options ranks = {
        .network = &model->network,
        .program = &model->program,
        .mesh = &options->sharding->mesh,
        .rules = &options->sharding->rules,
        .checkpoint = checkpoint,
        .loading = *loading,
        .cpu = model->cpu,
        .cache = model->cache.shape,
        .scales = scales,
        .has_slot_scales = octavo_dtype_size(model->cache.shape.dtype) == 1 && !scales->key,
        .max_sequences = model->max_sequences,
        .pages_per_sequence = model->table_entries,
        .context = model->context,
        .kv_length = options->context || model->context < 1024 ? model->context : 1024,
        .comm = model->comm,
    };
    octavo_status status =
        octavo_rules_check_layers(&options->sharding->rules, model->network.config.n_layers, error);
    if (status || (status = octavo_ranks_open(&model->ranks, &ranks, error))) return status;
    weights->packed_bytes = weights->source_bytes = 0;
    for (int i = 0; i < model->ranks.n; i++) {
        weights->packed_bytes += model->ranks.ranks[i].weights.packed_bytes;
        weights->source_bytes += model->ranks.ranks[i].weights.source_bytes;
    }
    return OCTAVO_OK;
}

static octavo_status build_program(octavo_model *model, const octavo_model_options *options,
                                   octavo_error *error) {
    const octavo_model_config *config = &model->network.config;
    const int rows = logit_group(config->is_encoder ? config->d : config->vocab, model->chunk);
    return octavo_network_build(&model->network, &model->program, model->chunk, rows,
                                options->precision == OCTAVO_PRECISION_EXACT, error);
}

static octavo_status build(octavo_model *model, const octavo_checkpoint *checkpoint,
                           const octavo_model_options *options, octavo_error *error) {
    octavo_status status;
    octavo_kv_scales scales = {0};
    octavo_weights_options loading = {.pool = model->pool,
                                      .weights = options->weights,
                                      .progress = options->progress,
                                      .cookie = options->progress_cookie};
    octavo_weights_options binding = {.weights = options->weights};
    model->weights = options->weights;
    if ((status = octavo_network_load(&model->network, checkpoint,
                                      options->sharding ? &binding : &loading, error)) ||
        (status = create_tokenizer(model, checkpoint, &options->log, error)) ||
        (status = choose_context(model, options, error)))
        return status;
    model->chunk = options->chunk;
    if (model->network.config.is_encoder && model->chunk < model->context)
        model->chunk = (int)model->context;
    model->max_sequences = options->max_sequences;
    model->page_size = options->page_size;
    model->short_length = octavo_config_short_length(&model->network.config);
    if ((status = build_program(model, options, error)) ||
        (status = find_scales(&scales, model, checkpoint, options, error)))
        return status;
    const bool has_slot_scales = octavo_dtype_size(choose_kv_dtype(options)) == 1 && !scales.key;
    if ((status = count_parts(model, options, error))) {
        octavo_kv_scales_deinit(&scales);
        return status;
    }
    if (!(status = shape_cache(model, options, has_slot_scales, error)) &&
        !(status = create_pages(model, error)) && !(status = create_step_arrays(model, error)))
        status = options->sharding
                     ? create_ranks(model, checkpoint, options, &loading, &scales, error)
                     : create_run(model, &scales, error);
    octavo_kv_scales_deinit(&scales);
    return status;
}

/* Of the cache, for the log. */
static const char *scale_source(const octavo_model *model, const octavo_model_options *options) {
    const octavo_kv_cache *cache =
        model->ranks.n > 0 ? &model->ranks.ranks[0].cache : &model->cache;
    if (octavo_kv_has_slot_scales(cache)) return " (scales of each slot)";
    if (!cache->scales.key) return "";
    return options->kv_scales ? " (scales of a file)" : " (scales of the checkpoint)";
}

enum { MOST_THREADS = 1024 };

/* Ranks of this process. */
static octavo_status count_ranks(const octavo_model *model, const octavo_model_options *options,
                                 int *ranks, octavo_error *error) {
    const int all = options->sharding ? octavo_sharding_ranks(options->sharding) : 1;
    const int processes = model->comm ? octavo_comm_processes(model->comm) : 1;
    if (all % processes != 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "mesh (%d ranks): cannot be shared among %d processes; give degrees "
                           "that make %d or a multiple, one may be -1",
                           all, processes, processes);
    *ranks = all / processes;
    return OCTAVO_OK;
}

static octavo_status create_pool(octavo_model *model, const octavo_model_options *options,
                                 octavo_error *error) {
    int ranks = 1;
    octavo_status status = count_ranks(model, options, &ranks, error);
    if (status) return status;
    const int sharers = ranks * (model->comm ? octavo_comm_crowd(model->comm) : 1);
    const int cores = octavo_cpu_cores() / sharers;
    const int threads = options->threads ? options->threads : cores > 0 ? cores : 1;
    if (ranks > MOST_THREADS / threads)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "ranks (%d of %d threads): more than %d threads in one process; give a "
                           "smaller mesh or fewer threads",
                           ranks, threads, MOST_THREADS);
    return octavo_pool_create_teams(&model->pool, ranks, threads, options->pin, error);
}

/* What one process of a job cannot do fails in all. */
static octavo_status open_all(octavo_model *model, const char *path,
                              const octavo_model_options *options, octavo_error *error) {
    octavo_checkpoint checkpoint = {0};
    octavo_status status = octavo_cpu_select(options->isa, &model->cpu, error);
    if (!status) status = octavo_source_open(path, &checkpoint, error);
    if (!status) status = create_pool(model, options, error);
    if (!status) status = build(model, &checkpoint, options, error);
    if (!status && model->comm) status = octavo_job_init(model, &options->log, error);
    octavo_checkpoint_close(&checkpoint);
    if (!model->comm) return status;
    status = octavo_comm_agree(model->comm, status, error);
    return status ? status : octavo_job_measure(model, error);
}

octavo_status octavo_model_open(const char *path, const octavo_model_options *given,
                                octavo_model **out, octavo_error *error) {
    octavo_model_options options;
    octavo_error own;
    octavo_model_options_init(&options);
    if (given) options = *given;
    if (!error) error = &own; /* what processes agree on has to be somewhere */
    if (!path || !out)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "octavo_model_open (NULL): path and model are needed");
    octavo_status status = check_options(&options, error);
    if (status) return status;

    octavo_model *model = octavo_alloc_zero(1, sizeof *model);
    if (!model) return octavo_fail_memory(error, "model", sizeof *model);
    const bool is_job = options.ranks == OCTAVO_RANKS_MPI;
    const octavo_comm_options comm = {.kind = OCTAVO_COMM_MPI, .log = options.log};
    if (options.sharding && octavo_sharding_ranks(options.sharding) == 1) options.sharding = NULL;
    model->n_groups =
        options.sharding ? octavo_sharding_degree(options.sharding, OCTAVO_SHARDING_DATA) : 1;
    if ((is_job && (status = octavo_comm_open(&model->comm, &comm, error))) ||
        (status = open_all(model, path, &options, error))) {
        octavo_model_close(&model);
        return status;
    }
    octavo_log_write(&options.log, OCTAVO_LOG_INFO,
                     "%s: %s, %d layers, ranks here %d of %d threads, %s, weights %s, cache %s%s, "
                     "%lld pages",
                     path, model->network.config.architecture, model->network.config.n_layers,
                     octavo_pool_teams(model->pool),
                     octavo_pool_threads(model->pool) / octavo_pool_teams(model->pool),
                     octavo_cpu_name(model->cpu), octavo_weights_name(model->weights),
                     octavo_dtype_name(model->cache.shape.dtype), scale_source(model, &options),
                     (long long)model->cache.shape.n_pages);
    *out = model;
    return OCTAVO_OK;
}

void octavo_model_close(octavo_model **handle) {
    if (!handle || !*handle) return;
    octavo_model *model = *handle;
    octavo_step_arrays *a = &model->arrays;
    octavo_assert(model->n_sequences == 0);
    octavo_job_end(model);
    octavo_run_deinit(&model->run);
    octavo_ranks_close(&model->ranks);
    octavo_free(a->ids);
    octavo_free(a->positions);
    octavo_free(a->types);
    octavo_free(a->logit_rows);
    octavo_free(a->logits);
    octavo_free(a->hidden);
    octavo_free(a->trace_rows);
    octavo_free(a->traces);
    octavo_free(a->query_start_loc);
    octavo_free(a->kv_lens);
    octavo_free(a->lengths);
    octavo_free(a->order);
    octavo_free(a->group_tokens);
    octavo_free(a->group_sequences);
    octavo_free(a->group_rows);
    octavo_free(a->block_tables);
    for (int g = 0; model->pages && g < model->n_groups; g++)
        octavo_page_pool_destroy(&model->pages[g]);
    octavo_free(model->pages);
    octavo_kv_cache_deinit(&model->cache);
    octavo_program_deinit(&model->program);
    octavo_network_deinit(&model->network);
    octavo_tokenizer_destroy(&model->tokenizer);
    octavo_free(model->chat_template);
    octavo_pool_destroy(&model->pool);
    octavo_comm_close(&model->comm);
    octavo_free(model);
    *handle = NULL;
}

const octavo_tokenizer *octavo_model_tokenizer(const octavo_model *model) {
    return model->tokenizer;
}

const char *octavo_model_chat_template(const octavo_model *model) {
    return model->chat_template;
}
