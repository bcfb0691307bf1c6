/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/plan.h: from a model's header, a mesh and rules to partitions of both phases.
 */
#include "engine/plan.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/rank.h"
#include "engine/sharding.h"
#include "engine/source.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* What is assumed of a machine that nobody measured: a link of 10 Gbit/s, a socket's memory, and
 * arithmetic in proportion. */
#define LINK_GBPS       1.25
#define MEMORY_GBPS     50.0
#define LATENCY_S       2e-7
#define OPERATIONS_BYTE 20.0 /* of a byte of memory bandwidth */
#define MOST_KV_LENGTH  1024 /* that a generating step is estimated with */

void octavo_plan_options_init(octavo_plan_options *options) {
    *options = (octavo_plan_options){
        .size = sizeof *options,
        .tokens = 512,
        .phases = OCTAVO_PLAN_PREFILL | OCTAVO_PLAN_GENERATE,
        .dtype = "file",
    };
}

static octavo_status check_options(const octavo_plan_options *options, octavo_error *error) {
    const int all = OCTAVO_PLAN_PREFILL | OCTAVO_PLAN_GENERATE;
    const double rates[] = {options->link_gbps, options->memory_gbps};
    if (options->size != sizeof *options)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "option size (%zu): not of this version; fill the options with "
                           "octavo_plan_options_init",
                           options->size);
    if (options->tokens < 1 || options->tokens > 1 << 24)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "option tokens (%lld): give 1 to %d",
                           (long long)options->tokens, 1 << 24);
    if (options->context < 0 || options->context > INT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "option context (%lld): give 1 to %d",
                           (long long)options->context, INT32_MAX);
    if (options->phases < 1 || options->phases > all)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "option phases (%d): give prefill, generate or both", options->phases);
    for (int i = 0; i < 2; i++)
        if (!(rates[i] >= 0.0) || rates[i] > 1e6)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "option %s-gbps (%g): give GB/s, at most 1000000",
                               i == 0 ? "link" : "memory", rates[i]);
    if (options->devices < 0 || options->devices > OCTAVO_MAX_RANKS)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "option devices (%d): give 1 to %d",
                           options->devices, OCTAVO_MAX_RANKS);
    if (options->search < 0 || options->search > 100)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "option search (%d): give 1 to 100",
                           options->search);
    return OCTAVO_OK;
}

bool octavo_planner_wants(const octavo_planner *planner, octavo_phase phase) {
    const int bit = phase == OCTAVO_PHASE_PREFILL ? OCTAVO_PLAN_PREFILL : OCTAVO_PLAN_GENERATE;
    return (planner->options.phases & bit) != 0;
}

/* ---- the model ---- */

static bool is_description(const char *path) {
    const size_t length = strlen(path);
    return length >= 5 && strcmp(path + length - 5, ".json") == 0;
}

/* A folder that has no weights is as good as its config.json. */
static octavo_status open_checkpoint(const char *path, octavo_checkpoint *checkpoint,
                                     octavo_error *error) {
    struct stat info;
    octavo_error other;
    if (is_description(path)) return octavo_checkpoint_open_config(path, checkpoint, error);
    octavo_status status = octavo_source_open(path, checkpoint, error);
    if (status != OCTAVO_ERROR_NOT_FOUND || stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return status;
    return octavo_checkpoint_open_config(path, checkpoint, &other) ? status : OCTAVO_OK;
}

/* Of a description: what the model was saved as. */
static octavo_weight_type described_type(const octavo_checkpoint *checkpoint) {
    const json_t *text = json_object_get(checkpoint->config, "text_config");
    const json_t *objects[] = {checkpoint->config, text};
    for (int i = 0; i < 2; i++) {
        const json_t *quant = json_object_get(objects[i], "quantization_config");
        const char *method = json_string_value(json_object_get(quant, "quant_method"));
        if (method && strcmp(method, "fp8") == 0) return OCTAVO_WEIGHT_F8_E4M3;
    }
    for (int i = 0; i < 2; i++) {
        const char *type = json_string_value(json_object_get(objects[i], "torch_dtype"));
        if (!type) type = json_string_value(json_object_get(objects[i], "dtype"));
        if (type && strcmp(type, "float32") == 0) return OCTAVO_WEIGHT_F32;
        if (type && strcmp(type, "float16") == 0) return OCTAVO_WEIGHT_F16;
    }
    return OCTAVO_WEIGHT_BF16;
}

static octavo_status load_network(octavo_planner *planner, const octavo_checkpoint *checkpoint,
                                  octavo_error *error) {
    const octavo_weights_options options = {.pool = NULL};
    const char *dtype = planner->options.dtype;
    octavo_weight_type type = described_type(checkpoint);
    const bool is_file = strcmp(dtype, "file") == 0;
    planner->type_name = dtype;
    if (strcmp(dtype, "f32") == 0)
        type = OCTAVO_WEIGHT_F32;
    else if (strcmp(dtype, "bf16") == 0)
        type = OCTAVO_WEIGHT_BF16;
    else if (!is_file)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "option dtype (%.100s): give file, f32 or bf16", dtype);
    if (is_file && octavo_checkpoint_n_tensors(checkpoint) > 0)
        return octavo_network_load(&planner->network, checkpoint, &options, error);
    if (is_file) planner->type_name = octavo_weight_info_of(type)->name;
    return octavo_network_shape(&planner->network, checkpoint, type, error);
}

static octavo_status build_program(octavo_planner *planner, octavo_error *error) {
    const int tokens = (int)planner->options.tokens;
    octavo_status status =
        octavo_network_build(&planner->network, &planner->program, tokens, tokens, false, error);
    if (status) return status;
    if (!octavo_program_axes_init(&planner->axes, &planner->program))
        return octavo_fail_memory(error, "axes", (uint64_t)planner->program.n_tensors);
    return OCTAVO_OK;
}

/* ---- mesh and rules ---- */

static octavo_status read_rules(octavo_planner *planner, octavo_error *error) {
    const octavo_plan_options *options = &planner->options;
    const octavo_sharding_options sharding = {
        .size = sizeof sharding,
        .mesh = options->mesh,
        .devices = options->devices,
        .rules = options->rules,
        .all = options->all,
        .prefill = options->prefill,
        .generate = options->generate,
    };
    return octavo_sharding_read(&sharding, &planner->mesh, &planner->rules, error);
}

static void set_costs(octavo_planner *planner) {
    octavo_plan_options *o = &planner->options;
    const int64_t most = o->context > 0 ? o->context : MOST_KV_LENGTH;
    if (o->link_gbps == 0.0) o->link_gbps = LINK_GBPS;
    if (o->memory_gbps == 0.0) o->memory_gbps = MEMORY_GBPS;
    planner->costs = (octavo_partition_options){
        .mesh = planner->mesh,
        .rules = &planner->rules,
        .machine = {.link_bytes_s = o->link_gbps * 1e9,
                    .latency_s = LATENCY_S,
                    .memory_bytes_s = o->memory_gbps * 1e9,
                    .operations_s = o->memory_gbps * 1e9 * OPERATIONS_BYTE},
        .n_tokens = o->tokens,
        .kv_length = planner->context < most ? planner->context : most,
        .cache_bytes = 2.0,
        .can_move_weights = true,
    };
}

octavo_status octavo_planner_partition(octavo_planner *planner, octavo_phase phase,
                                       octavo_partition *partition, octavo_error *error) {
    octavo_partition_options costs = planner->costs;
    const int64_t groups = planner->mesh.degree[OCTAVO_MESH_DATA];
    costs.phase = phase;
    costs.n_rows = costs.n_tokens;
    if (phase == OCTAVO_PHASE_PREFILL) {
        if (planner->options.context == 0) costs.kv_length = (costs.n_tokens + groups - 1) / groups;
        if (!planner->options.logits_all)
            costs.n_rows = groups < costs.n_tokens ? groups : costs.n_tokens;
    }
    return octavo_partition_make(partition, &planner->program, &planner->axes, &costs, error);
}

/* ---- all ---- */

static octavo_status make_plan(octavo_planner *planner, const char *path, octavo_error *error) {
    int n_parts;
    octavo_checkpoint checkpoint = {0};
    octavo_status status = open_checkpoint(path, &checkpoint, error);
    if (status) return status;
    status = load_network(planner, &checkpoint, error);
    octavo_checkpoint_close(&checkpoint);
    planner->context = planner->network.config.context;
    if (!status && planner->options.context > planner->context)
        status =
            octavo_fail(error, OCTAVO_ERROR_INVALID,
                        "option context (%lld): the model was made for %lld; give at most that",
                        (long long)planner->options.context, (long long)planner->context);
    if (planner->options.context > 0) planner->context = planner->options.context;
    if (status || (status = build_program(planner, error)) ||
        (status = read_rules(planner, error)) ||
        (status =
             octavo_rules_check_layers(&planner->rules, planner->network.config.n_layers, error)) ||
        (status = octavo_cache_parts(&planner->program, &planner->mesh, &planner->rules, &n_parts,
                                     error)))
        return status;
    set_costs(planner);
    for (int phase = 0; phase < OCTAVO_PHASES && !status; phase++)
        if (octavo_planner_wants(planner, (octavo_phase)phase))
            status = octavo_planner_partition(planner, (octavo_phase)phase,
                                              &planner->partitions[phase], error);
    return status;
}

static void deinit(octavo_planner *planner) {
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        octavo_partition_deinit(&planner->partitions[phase]);
    octavo_rules_deinit(&planner->rules);
    octavo_program_axes_deinit(&planner->axes);
    octavo_program_deinit(&planner->program);
    octavo_network_deinit(&planner->network);
}

octavo_status octavo_plan(const char *path, const octavo_plan_options *options, char **json,
                          octavo_error *error) {
    octavo_planner planner = {0};
    octavo_buffer out = {0};
    octavo_plan_options defaults;
    octavo_plan_options_init(&defaults);
    planner.options = options ? *options : defaults;
    if (!planner.options.dtype) planner.options.dtype = defaults.dtype;
    octavo_status status = check_options(&planner.options, error);
    if (!status) status = make_plan(&planner, path, error);
    if (!status && planner.options.search > 0)
        status = octavo_plan_search(&planner, &out, error);
    else if (!status)
        octavo_plan_put_document(&planner, &out);
    if (!status) {
        *json = octavo_buffer_take(&out);
        if (!*json) status = octavo_fail_memory(error, "plan", out.size);
    }
    octavo_buffer_deinit(&out);
    deinit(&planner);
    return status;
}
