/* SPDX-License-Identifier: Apache-2.0
 *
 * SmolLM3: as Llama, but every fourth layer does not rotate. config.json may switch on a window;
 * published models do not.
 */
#include "model/family.h"

octavo_status octavo_family_smollm3(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    octavo_window_rule rule = {0};
    bool is_on = false;
    octavo_status status;
    if ((status = octavo_family_llama(reader, config)) ||
        (status =
             octavo_config_flag(reader, (octavo_key){NULL, "use_sliding_window"}, false, &is_on)) ||
        (is_on && (status = octavo_family_window(reader, 4096, &rule.window))) ||
        (status = octavo_family_windows(reader, config, &rule)))
        return status;
    return octavo_family_no_rope(reader, config);
}
