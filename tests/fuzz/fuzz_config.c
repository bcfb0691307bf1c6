/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a config.json. What is accepted has numbers that may be multiplied, and
 * every layer has its rope. Seeds come from fuzz_config_seeds.c.
 */
#include "formats/hf_folder_file.h"
#include "model/config.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_config: %s\n", what);
    abort();
}

static void check_config(const octavo_model_config *config) {
    check(config->n_layers >= 1 && config->n_layers <= 4096, "layers in range");
    check(config->n_heads % config->n_kv_heads == 0, "heads divide");
    check(config->head_dim >= 1 && config->head_dim <= 512 && config->rope_dim % 2 == 0 &&
              config->rope_dim <= config->head_dim,
          "widths of heads in range");
    check(isfinite(config->attention_scale) && isfinite(config->embed_scale) &&
              isfinite(config->residual_scale) && isfinite(config->logit_scale),
          "scales finite");
    check(config->router.n_chosen <= config->n_experts, "no more chosen than there are");
    check(config->n_ropes >= (config->is_encoder ? 0 : 1) && config->n_ropes <= OCTAVO_MAX_ROPES,
          "a rope at least");
    check(config->n_positions == 0 ||
              (config->context >= 1 && config->first_position >= 0 &&
               config->context + config->first_position == config->n_positions),
          "positions are rows of their table");
    for (int i = 0; i < config->n_layers; i++) {
        const octavo_layer_config *layer = &config->layers[i];
        check(layer->rope >= OCTAVO_NO_ROPE && layer->rope < config->n_ropes &&
                  layer->window >= 0 && layer->chunk >= 0,
              "the layer's rope is there");
        check(!layer->is_sparse || (config->router.n_chosen > 0 && config->ffw_expert > 0),
              "a sparse layer has experts");
    }
    for (int r = 0; r < config->n_ropes; r++) {
        const octavo_rope_config *rope = &config->ropes[r];
        check(isfinite(rope->scale), "the scale of cos and sin is finite");
        for (int64_t i = 0; i < config->rope_dim / 2; i++)
            check(!isnan(rope->frequencies[i]) &&
                      (!rope->long_frequencies || !isnan(rope->long_frequencies[i])),
                  "frequencies are numbers");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    octavo_checkpoint checkpoint = {.folder = {.config = (char[]){"config.json"}}};
    octavo_model_config config = {0};
    octavo_error error = {0};
    if (octavo_hf_json_parse(data, size, "config", "config.json", &checkpoint.config, &error) !=
        OCTAVO_OK)
        return 0;
    octavo_status status = octavo_config_load(&config, &checkpoint, &error);
    if (status == OCTAVO_OK)
        check_config(&config);
    else
        check(error.status == status && error.message[0] != 0, "every failure says why");
    octavo_config_deinit(&config);
    json_decref(checkpoint.config);
    return 0;
}
