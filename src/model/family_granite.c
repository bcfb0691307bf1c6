/* SPDX-License-Identifier: Apache-2.0
 *
 * Granite 3: as Llama, with multipliers of the embedding, of what is added to the residual, of the
 * attention's logits, and a divisor of the logits.
 */
#include "model/family.h"

#include <math.h>

octavo_status octavo_family_granite(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    const octavo_key embed = {"embedding_scale", "embedding_multiplier"};
    const octavo_key residual = {"residual_scale", "residual_multiplier"};
    const octavo_key attention = {"attention.scale", "attention_multiplier"};
    const octavo_key logits = {"logit_scale", "logits_scaling"};
    const double usual = octavo_config_is_hf(reader) ? 1.0 : (double)config->attention_scale;
    float divisor;
    octavo_status status;
    if ((status = octavo_family_llama(reader, config)) ||
        (status = octavo_config_positive(reader, embed, 1.0, &config->embed_scale)) ||
        (status = octavo_config_positive(reader, residual, 1.0, &config->residual_scale)) ||
        (status = octavo_config_positive(reader, attention, usual, &config->attention_scale)) ||
        (status = octavo_config_positive(reader, logits, 1.0, &divisor)))
        return status;
    config->logit_scale = 1.0f / divisor;
    if (isfinite(config->logit_scale)) return OCTAVO_OK;
    return octavo_config_fail(reader, logits, OCTAVO_ERROR_FORMAT,
                              "%g is too small to divide by; the file is damaged", (double)divisor);
}
