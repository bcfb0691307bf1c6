/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a model that an override is for: layers and a kind of block.
 */
#ifndef OCTAVO_SHARDING_RULES_PART_H
#define OCTAVO_SHARDING_RULES_PART_H

#include "sharding/rules.h"

/* From "0-3,8" and "attention", "dense" or "moe", each may be NULL; *part lives as long as the
 * rules. The `where` begin the messages. */
OCTAVO_MUST_CHECK octavo_status octavo_rules_part_make(octavo_rules *rules, const json_t *layers,
                                                       const char *where_layers,
                                                       const json_t *block, const char *where_block,
                                                       octavo_rules_part **part,
                                                       octavo_error *error);
/* Whether a tensor can stand there at all. */
OCTAVO_MUST_CHECK octavo_status octavo_rules_part_check(const octavo_rules_part *part, int tensor,
                                                        const char *where, octavo_error *error);
bool octavo_rules_part_has_layer(const octavo_rules_part *part, int layer);

/* "layers 0-3,8, moe blocks"; "" for all. And the keys of a file that say it. */
void octavo_rules_part_print(const octavo_rules_part *part, octavo_buffer *out);
void octavo_rules_part_print_json(const octavo_rules_part *part, octavo_buffer *out);

#endif
