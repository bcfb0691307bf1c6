/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules as text, for comparing.
 */
#ifndef OCTAVO_TESTS_SHARDING_RULE_TEXT_H
#define OCTAVO_TESTS_SHARDING_RULE_TEXT_H

#include "sharding/rules.h"

#include <stdio.h>

typedef struct rule_text {
    char text[OCTAVO_SPEC_TEXT + 8];
} rule_text;

/* "(data, -)", with " *" behind it where the rule is an override; "none" for a name that is none.
 */
static inline rule_text rule_of(const octavo_rules *rules, octavo_phase phase, const char *tensor,
                                int layer, octavo_block_kind kind) {
    rule_text rule = {"none"};
    octavo_spec spec;
    bool is_override = false;
    char text[OCTAVO_SPEC_TEXT];
    if (!octavo_rules_find(rules, phase, tensor, layer, kind, &spec, &is_override)) return rule;
    octavo_spec_print(&spec, text);
    snprintf(rule.text, sizeof rule.text, "%s%s", text, is_override ? " *" : "");
    return rule;
}

#endif
