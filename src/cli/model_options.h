/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that every command which runs a model takes, and loading a model with them.
 */
#ifndef OCTAVO_CLI_MODEL_OPTIONS_H
#define OCTAVO_CLI_MODEL_OPTIONS_H

#include "cli/options.h"

#include "octavo/model.h"
#include "octavo/sharding.h"

/* Values as parsed. */
typedef struct octavo_model_choice {
    int64_t threads;
    const char *isa;
    const char *mesh, *rules;
    int64_t devices;
    int ranks;                 /* index into the option's words, 0: by the launcher */
    octavo_sharding *sharding; /* NULL: one rank */
    int kv_dtype;              /* index into the option's words */
    const char *kv_scales;
    int64_t page_size;
    uint64_t kv_memory;
    int64_t context;
    int64_t chunk;
    int precision;
    int weights; /* octavo_weights */
    int log_level;
} octavo_model_choice;

octavo_model_choice octavo_model_choice_defaults(void);
/* The table over a choice, under the title "Model options". */
octavo_option_group octavo_model_choice_group(octavo_model_choice *choice);

/* What --weights takes, in the order of octavo_weights. */
#define OCTAVO_WEIGHTS_NAMES "file|f32|bf16|q8|q4"

/* What --isa takes: "best" and octavo_cpu_levels. */
#define OCTAVO_ISA_NAMES "best|scalar|avx2|avx512|avx512_vnni|avx512_vbmi|avx512_bf16|amx|neon"

/* -1 where `isa` (may be NULL) names an instruction set; else tells and gives the exit status. */
int octavo_isa_check(const char *isa);

/* What the table cannot say alone: instruction set, mesh and rules, which it reads. Returns -1, or
 * tells and returns the exit status. To end with octavo_model_choice_deinit, also after a failure.
 */
int octavo_model_choice_check(octavo_model_choice *choice);
void octavo_model_choice_deinit(octavo_model_choice *choice);

/* Is this a process of a job that another one leads? It has no input, no output and nothing to say:
 * loading a model is all it does, and it does not return from that. */
bool octavo_model_choice_follows(const octavo_model_choice *choice);

octavo_log octavo_model_choice_log(const octavo_model_choice *choice);

/* Options for octavo_model_open, without a progress callback. They point into the choice. */
octavo_model_options octavo_model_choice_options(const octavo_model_choice *choice);

/* Opens the model with a progress bar. */
OCTAVO_MUST_CHECK octavo_status octavo_model_load(const char *path, octavo_model_options options,
                                                  octavo_model **model, octavo_error *error);
/* The same for what writes text: an encoder is refused. */
OCTAVO_MUST_CHECK octavo_status octavo_model_load_writer(const char *path,
                                                         octavo_model_options options,
                                                         octavo_model **model, octavo_error *error);
/* The same for commands that cut a text into windows: options.context 0 is 512, or the model's own
 * if that is less. */
OCTAVO_MUST_CHECK octavo_status octavo_model_load_windows(const char *path,
                                                          octavo_model_options options,
                                                          octavo_model **model,
                                                          octavo_error *error);

#endif
