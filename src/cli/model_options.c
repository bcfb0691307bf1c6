/* SPDX-License-Identifier: Apache-2.0
 *
 * The model options: one table for all commands, so that they are spelled, checked and explained
 * alike everywhere.
 */
#include "cli/model_options.h"

#include "base/compiler.h"
#include "base/cpu.h"
#include "base/error.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(octavo_model_choice, name)

static const char KV_DTYPES[] = "auto|f32|f16|bf16|fp8_e4m3|fp8_e5m2|int8";
static const int KV_DTYPE_VALUES[] = {
    OCTAVO_KV_DTYPE_AUTO,  OCTAVO_DTYPE_F32,      OCTAVO_DTYPE_F16,  OCTAVO_DTYPE_BF16,
    OCTAVO_DTYPE_FP8_E4M3, OCTAVO_DTYPE_FP8_E5M2, OCTAVO_DTYPE_INT8,
};

static const char RANKS[] = "auto|thread|mpi";
enum { RANKS_AUTO, RANKS_THREAD, RANKS_MPI };

static const octavo_option OPTIONS[] = {
    {"--threads", OCTAVO_OPTION_INT, "N", "threads of a rank (its share of the physical cores)",
     FIELD(threads), 1, 1024},
    {"--isa", OCTAVO_OPTION_TEXT, OCTAVO_ISA_NAMES, "instruction set (best)", FIELD(isa), 0, 0},
    {"--precision", OCTAVO_OPTION_CHOICE, "fast|exact",
     "exact: f32 activations, arithmetic and cache, for comparison with references (fast)",
     FIELD(precision), 0, 0},
    {"--weights", OCTAVO_OPTION_CHOICE, OCTAVO_WEIGHTS_NAMES,
     "requantise matrices while loading (file: leave them as they are)", FIELD(weights), 0, 0},
    {"--context", OCTAVO_OPTION_INT, "N", "longest sequence (the model's)", FIELD(context), 1,
     INT32_MAX},
    {"--chunk", OCTAVO_OPTION_INT, "N", "most prompt tokens in a step (512)", FIELD(chunk), 1,
     65536},
    {"--kv-dtype", OCTAVO_OPTION_CHOICE, KV_DTYPES,
     "element type of the cache (auto: f16 or bf16, whichever is faster here)", FIELD(kv_dtype), 0,
     0},
    {"--kv-scales", OCTAVO_OPTION_TEXT, "FILE",
     "scales of an 8-bit cache, by octavo calibrate (the checkpoint's, else each slot's own)",
     FIELD(kv_scales), 0, 0},
    {"--kv-memory", OCTAVO_OPTION_SIZE, "SIZE",
     "bytes for the cache, such as 512MiB or 4GiB (what one full context needs)", FIELD(kv_memory),
     0, 0},
    {"--page-size", OCTAVO_OPTION_INT, "N", "slots in a page of the cache (16)", FIELD(page_size),
     1, 1024},
    {"--log-level", OCTAVO_OPTION_CHOICE, "error|warn|info|debug", "what is told (warn)",
     FIELD(log_level), 0, 0},
    {"--mesh", OCTAVO_OPTION_TEXT, "AXIS=N,...",
     "degrees of data, expert, seq and model; one may be -1 (the strategy of --rules, else all 1)",
     FIELD(mesh), 0, 0},
    {"--devices", OCTAVO_OPTION_INT, "N",
     "how many ranks there are (the product of the degrees; with a -1 the NUMA nodes)",
     FIELD(devices), 1, 1 << 20},
    {"--ranks", OCTAVO_OPTION_CHOICE, RANKS,
     "threads of this process, or the processes of mpirun or srun (mpi when started by them)",
     FIELD(ranks), 0, 0},
    {"--rules", OCTAVO_OPTION_TEXT, "FILE", "sharding rules, JSON (none)", FIELD(rules), 0, 0},
    {"--prefix-cache", OCTAVO_OPTION_LATER, "on|off",
     "share equal prefixes of requests; no difference to a single one (on)", 0, 0, 0},
    {"--packed-cache", OCTAVO_OPTION_LATER, "off", "keep packed weights on disk (off)", 0, 0, 0},
    {"--prefix-store", OCTAVO_OPTION_LATER, "off", "keep the prefix cache on disk (off)", 0, 0, 0},
    {"--swap", OCTAVO_OPTION_LATER, "off", "keep preempted pages on disk (off)", 0, 0, 0},
    {"--speculate", OCTAVO_OPTION_LATER, "off", "speculative decoding (off)", 0, 0, 0},
};

octavo_model_choice octavo_model_choice_defaults(void) {
    return (octavo_model_choice){.page_size = 16, .chunk = 512, .log_level = OCTAVO_LOG_WARN};
}

octavo_option_group octavo_model_choice_group(octavo_model_choice *choice) {
    return (octavo_option_group){
        .title = "Model options",
        .options = OPTIONS,
        .n_options = OCTAVO_COUNT(OPTIONS),
        .values = choice,
    };
}

int octavo_isa_check(const char *isa) {
    char list[160] = "best";
    size_t n_levels, used = strlen(list);
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    if (!isa || strcmp(isa, "best") == 0) return -1;
    for (size_t i = 0; i < n_levels; i++) {
        if (strcmp(isa, levels[i].name) == 0) return -1;
        used += (size_t)snprintf(list + used, sizeof list - used, ", %s", levels[i].name);
        if (used >= sizeof list) break;
    }
    return octavo_cli_usage("option --isa (%s): no such instruction set; give one of %s", isa,
                            list);
}

/* ---- ranks ---- */

static bool is_job(const octavo_model_choice *choice) {
    if (choice->ranks != RANKS_AUTO) return choice->ranks == RANKS_MPI;
    return octavo_processes_launched(NULL) > 1;
}

static bool is_led(void) {
    int process;
    return octavo_processes_launched(&process) > 1 && process > 0;
}

bool octavo_model_choice_follows(const octavo_model_choice *choice) {
    return is_job(choice) && is_led();
}

/* Under a launcher there are as many ranks as processes, unless the mesh says all its degrees: then
 * each process may have several. */
static octavo_status read_sharding(octavo_model_choice *choice, octavo_error *error) {
    octavo_sharding_options options;
    octavo_sharding_options_init(&options);
    options.mesh = choice->mesh;
    options.rules = choice->rules;
    options.devices = (int)choice->devices;
    const int processes = is_job(choice) ? octavo_processes_launched(NULL) : 1;
    if (processes == 1) return octavo_sharding_create(&options, &choice->sharding, error);
    if (choice->devices && choice->devices != processes)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "option --devices (%lld): the job has %d processes; leave it out",
                           (long long)choice->devices, processes);
    options.devices = processes;
    octavo_status status = octavo_sharding_create(&options, &choice->sharding, error);
    if (status != OCTAVO_ERROR_INVALID || choice->devices) return status;
    octavo_error other;
    options.devices = 0;
    if (octavo_sharding_create(&options, &choice->sharding, &other)) return status;
    if (octavo_sharding_ranks(choice->sharding) > processes &&
        octavo_sharding_ranks(choice->sharding) % processes == 0)
        return OCTAVO_OK;
    octavo_sharding_destroy(&choice->sharding);
    return status;
}

int octavo_model_choice_check(octavo_model_choice *choice) {
    octavo_error error;
    int isa_status = octavo_isa_check(choice->isa);
    if (isa_status >= 0) return isa_status;
    if (choice->mesh && !*choice->mesh)
        return octavo_cli_usage("option --mesh (): empty; give degrees such as data=1,model=2");
    if (!choice->mesh && !choice->rules && !choice->devices && !is_job(choice)) return -1;
    const octavo_status status = read_sharding(choice, &error);
    if (status == OCTAVO_OK) return -1;
    /* the same in all processes of a job: the one that leads tells it */
    if (octavo_model_choice_follows(choice))
        return status == OCTAVO_ERROR_INVALID ? OCTAVO_EXIT_USAGE : OCTAVO_EXIT_FAILED;
    if (status != OCTAVO_ERROR_INVALID) return octavo_cli_exit(status, &error);
    /* of a mesh the message begins with it, too */
    const char *why = strstr(error.message, "\": ");
    if (choice->mesh && why && strncmp(error.message, "mesh \"", 6) == 0)
        return octavo_cli_usage("option --mesh (%s): %s", choice->mesh, why + 3);
    return octavo_cli_usage("%s", error.message);
}

void octavo_model_choice_deinit(octavo_model_choice *choice) {
    octavo_sharding_destroy(&choice->sharding);
}

octavo_log octavo_model_choice_log(const octavo_model_choice *choice) {
    return octavo_cli_log((octavo_log_level)choice->log_level);
}

octavo_model_options octavo_model_choice_options(const octavo_model_choice *choice) {
    octavo_model_options options;
    octavo_model_options_init(&options);
    options.threads = (int)choice->threads;
    options.isa = choice->isa;
    options.precision = choice->precision ? OCTAVO_PRECISION_EXACT : OCTAVO_PRECISION_FAST;
    options.weights = (octavo_weights)choice->weights;
    options.kv_dtype = KV_DTYPE_VALUES[choice->kv_dtype];
    options.kv_scales = choice->kv_scales;
    options.page_size = (int)choice->page_size;
    options.kv_memory = choice->kv_memory;
    options.context = choice->context;
    options.chunk = (int)choice->chunk;
    options.sharding = choice->sharding;
    options.ranks = is_job(choice) ? OCTAVO_RANKS_MPI : OCTAVO_RANKS_THREAD;
    options.log = octavo_model_choice_log(choice);
    return options;
}

octavo_status octavo_model_load(const char *path, octavo_model_options options,
                                octavo_model **model, octavo_error *error) {
    octavo_progress progress = octavo_progress_start("loading");
    options.progress = octavo_progress_of_load;
    options.progress_cookie = &progress;
    octavo_status status = octavo_model_open(path, &options, model, error);
    octavo_terminal_clear_progress();
    if (options.ranks != OCTAVO_RANKS_MPI || !is_led()) return status;
    if (status) exit(OCTAVO_EXIT_FAILED); /* as in all: the one that leads tells it */
    status = octavo_model_follow(*model, error);
    octavo_model_close(model);
    exit(octavo_cli_exit(status, error));
}

octavo_status octavo_model_load_writer(const char *path, octavo_model_options options,
                                       octavo_model **model, octavo_error *error) {
    octavo_status status = octavo_model_load(path, options, model, error);
    if (status) return status;
    const octavo_model_facts facts = octavo_model_describe(*model);
    if (!facts.is_encoder) return OCTAVO_OK;
    octavo_model_close(model);
    return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                       "model (%s): \"%s\" is an encoder, which writes no text; use octavo embed",
                       path, facts.architecture);
}

octavo_status octavo_model_load_windows(const char *path, octavo_model_options options,
                                        octavo_model **model, octavo_error *error) {
    const bool is_chosen = options.context > 0;
    if (!is_chosen) options.context = 512;
    octavo_status status = octavo_model_load_writer(path, options, model, error);
    /* the processes of a job open a model once */
    if (status != OCTAVO_ERROR_INVALID || is_chosen || options.ranks == OCTAVO_RANKS_MPI)
        return status;
    options.context = 0;
    return octavo_model_load_writer(path, options, model, error);
}
