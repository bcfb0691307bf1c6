/* SPDX-License-Identifier: Apache-2.0
 *
 * Encoders: the direction of attention, and pooling as GGUF files name it (pooling_type) and as the
 * sentence-transformers library writes it down beside a checkpoint (1_Pooling/config.json).
 */
#include "model/config_encoder.h"

#include "base/error.h"
#include "base/memory.h"
#include "formats/hf_folder_file.h"

#include <string.h>
#include <unistd.h>

/* The numbers of GGUF files. 0 means rows as they are, which says nothing of texts. */
static octavo_status pooling_of_gguf(const octavo_config_reader *reader, octavo_pooling *pooling) {
    const octavo_key key = {"pooling_type", NULL};
    int64_t number;
    octavo_status status = octavo_config_integer(reader, key, 0, 0, 1 << 16, &number);
    if (status || number == 0) return status;
    *pooling = number == 1   ? OCTAVO_POOLING_MEAN
               : number == 2 ? OCTAVO_POOLING_CLS
               : number == 3 ? OCTAVO_POOLING_LAST
                             : OCTAVO_POOLING_AUTO;
    return OCTAVO_OK;
}

/* One flag for each way, of which several would be one behind the other in the result; or in newer
 * files the name of one. */
static octavo_pooling pooling_of_flags(const json_t *config, octavo_pooling usual) {
    static const struct {
        const char *key;
        octavo_pooling pooling;
    } known[] = {
        {"pooling_mode_mean_tokens", OCTAVO_POOLING_MEAN},
        {"pooling_mode_cls_token", OCTAVO_POOLING_CLS},
        {"pooling_mode_lasttoken", OCTAVO_POOLING_LAST},
        {"pooling_mode_max_tokens", OCTAVO_POOLING_AUTO},
        {"pooling_mode_mean_sqrt_len_tokens", OCTAVO_POOLING_AUTO},
        {"pooling_mode_weightedmean_tokens", OCTAVO_POOLING_AUTO},
    };
    static const char *const names[] = {"mean", "cls", "lasttoken", "max"};
    const char *name = json_string_value(json_object_get(config, "pooling_mode"));
    octavo_pooling found = usual;
    int n = 0;
    if (name) {
        for (size_t i = 0; i < OCTAVO_COUNT(names); i++)
            if (strcmp(name, names[i]) == 0) return known[i].pooling;
        return OCTAVO_POOLING_AUTO;
    }
    for (size_t i = 0; i < OCTAVO_COUNT(known); i++) {
        if (!json_is_true(json_object_get(config, known[i].key))) continue;
        found = known[i].pooling;
        n++;
    }
    return n > 1 ? OCTAVO_POOLING_AUTO : found;
}

/* Products behind the pooling, which this version does not compute: the model's own vectors are not
 * to be had. */
static bool has_dense_layers(const octavo_config_reader *reader) {
    char *path = octavo_hf_path_in(reader->checkpoint->folder.path, "2_Dense/config.json");
    const bool is_there = path && access(path, F_OK) == 0;
    octavo_free(path);
    return is_there;
}

static octavo_status pooling_of_folder(const octavo_config_reader *reader,
                                       octavo_pooling *pooling) {
    json_t *config = NULL;
    octavo_error why;
    if (!reader->checkpoint->folder.path) return OCTAVO_OK; /* a description alone */
    if (has_dense_layers(reader)) {
        *pooling = OCTAVO_POOLING_AUTO;
        return OCTAVO_OK;
    }
    char *path = octavo_hf_path_in(reader->checkpoint->folder.path, "1_Pooling/config.json");
    if (!path) return octavo_fail_memory(reader->error, "1_Pooling/config.json", 0);
    octavo_status status = octavo_hf_json_read(path, &config, &why);
    octavo_free(path);
    if (status == OCTAVO_ERROR_NOT_FOUND) return OCTAVO_OK;
    if (status) return octavo_fail(reader->error, status, "%s", why.message);
    *pooling = pooling_of_flags(config, *pooling);
    json_decref(config);
    return OCTAVO_OK;
}

/* What folders say of pooling, for GGUF files made of them. */
static void note_pooling(const octavo_config_reader *reader, octavo_pooling pooling) {
    const int64_t number = pooling == OCTAVO_POOLING_MEAN   ? 1
                           : pooling == OCTAVO_POOLING_CLS  ? 2
                           : pooling == OCTAVO_POOLING_LAST ? 3
                                                            : 0;
    if (number > 0) octavo_config_note_integer(reader->notes, "pooling_type", number);
}

octavo_status octavo_config_encoder(const octavo_config_reader *reader, octavo_model_config *config,
                                    bool is_encoder) {
    const octavo_key causal = {"attention.causal", NULL};
    const octavo_key both_ways = {NULL, "use_bidirectional_attention"};
    const bool is_hf = octavo_config_is_hf(reader);
    bool sees_all, is_causal;
    octavo_status status;
    if ((status = octavo_config_flag(reader, both_ways, is_encoder, &sees_all)) ||
        (status = octavo_config_flag(reader, causal, !sees_all, &is_causal)))
        return status;
    if (is_encoder && is_causal)
        return octavo_config_fail(reader, is_hf ? both_ways : causal, OCTAVO_ERROR_FORMAT,
                                  "%s, but this architecture is an encoder; the file contradicts "
                                  "itself",
                                  is_hf ? "false" : "true");
    const octavo_pooling usual = is_causal ? OCTAVO_POOLING_LAST : OCTAVO_POOLING_MEAN;
    config->is_encoder = !is_causal;
    config->pooling = usual;
    status = is_hf ? pooling_of_folder(reader, &config->pooling)
                   : pooling_of_gguf(reader, &config->pooling);
    if (config->is_encoder || config->pooling != usual) note_pooling(reader, config->pooling);
    return status;
}
