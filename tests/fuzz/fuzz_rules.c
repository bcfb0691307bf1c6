/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules and meshes from hostile hands: either refused with one line, or rules of which every lookup
 * gives a legal spec that its own text gives again. The input is the JSON, a zero byte, and a mesh.
 */
#include "sharding/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void check_message(octavo_status status, const octavo_error *error) {
    REQUIRE(status == OCTAVO_OK || error->status == status);
    REQUIRE((status == OCTAVO_OK) == (error->message[0] == '\0'));
    for (const char *c = error->message; *c; c++)
        REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void check_specs(const octavo_rules *rules, int layer, octavo_block_kind kind) {
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++) {
            const octavo_named_tensor *tensor = octavo_named_tensor_at(i);
            octavo_spec spec = {0}, again = {0};
            char text[OCTAVO_SPEC_TEXT];
            REQUIRE(octavo_rules_find(rules, (octavo_phase)phase, tensor->name, layer, kind, &spec,
                                      NULL));
            octavo_spec_print(&spec, text);
            REQUIRE(octavo_spec_parse(text, tensor->axes, "", &again, NULL) == OCTAVO_OK);
            REQUIRE(octavo_spec_equal(&spec, &again));
        }
}

/* Written and read, and written again, it is the same. */
static void check_again(const octavo_rules *rules) {
    octavo_buffer once = {0}, twice = {0};
    octavo_rules again;
    octavo_buffer_puts(&once, "{\"sharding\": {\"logical_rules\": ");
    octavo_rules_dump_json(rules, &once);
    octavo_buffer_puts(&once, "}}");
    octavo_rules_init(&again);
    REQUIRE(octavo_rules_parse(&again, once.data, once.size, "again", NULL) == OCTAVO_OK);
    octavo_buffer_puts(&twice, "{\"sharding\": {\"logical_rules\": ");
    octavo_rules_dump_json(&again, &twice);
    octavo_buffer_puts(&twice, "}}");
    REQUIRE(once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
    octavo_rules_deinit(&again);
    octavo_buffer_deinit(&once);
    octavo_buffer_deinit(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *zero = size != 0 ? memchr(data, 0, size) : NULL;
    const size_t json_size = zero ? (size_t)(zero - data) : size;
    octavo_mesh mesh = {{1, 2, 2, 2}};
    octavo_rules rules;
    octavo_error error = {0};
    octavo_buffer out = {0};
    if (zero) {
        char text[256];
        snprintf(text, sizeof text, "%.*s", (int)(size - json_size - 1), (const char *)zero + 1);
        check_message(octavo_mesh_parse(text, (int)(size % 17), &mesh, &error), &error);
        REQUIRE(octavo_mesh_ranks(&mesh) >= 1 && octavo_mesh_ranks(&mesh) <= OCTAVO_MAX_RANKS);
    }
    octavo_rules_init(&rules);
    error = (octavo_error){0};
    octavo_status status = octavo_rules_parse(&rules, data, json_size, "rules.json", &error);
    check_message(status, &error);
    if (status == OCTAVO_OK) {
        check_specs(&rules, -1, OCTAVO_BLOCK_ANY);
        check_specs(&rules, 3, OCTAVO_BLOCK_MOE);
        error = (octavo_error){0};
        check_message(octavo_rules_check_norms(&rules, &mesh, &error), &error);
        error = (octavo_error){0};
        check_message(octavo_rules_check_layers(&rules, 4, &error), &error);
        check_again(&rules);
        octavo_rules_dump_overrides(&rules, &out);
        octavo_rules_dump_table(&rules, &out);
    }
    octavo_buffer_deinit(&out);
    octavo_rules_deinit(&rules);
    return 0;
}
