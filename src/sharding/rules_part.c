/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/rules_part.h"

#include "base/compiler.h"
#include "base/error.h"
#include "sharding/quote.h"

#include <string.h>

static const struct {
    const char *name;
    octavo_block_kind kind;
} blocks[] = {
    {"attention", OCTAVO_BLOCK_ATTENTION},
    {"dense", OCTAVO_BLOCK_DENSE},
    {"moe", OCTAVO_BLOCK_MOE},
};

static const char *name_of(int kinds) {
    for (size_t i = 0; i < OCTAVO_COUNT(blocks); i++)
        if (kinds & (int)blocks[i].kind) return blocks[i].name;
    return "";
}

/* A layer's number at *at, which is moved behind it. */
static bool read_layer(const char **at, int *layer) {
    if (**at < '0' || **at > '9') return false;
    for (*layer = 0; **at >= '0' && **at <= '9'; ++*at) {
        *layer = *layer * 10 + (**at - '0');
        if (*layer >= OCTAVO_RULES_MAX_LAYERS) return false;
    }
    return true;
}

/* The ranges into `ranges`, where that is not NULL; how many there are, or 0 for what is wrong. */
static int read_ranges(const char *text, octavo_layer_range *ranges) {
    for (int n = 0;; text++) {
        octavo_layer_range range;
        if (!read_layer(&text, &range.first)) return 0;
        range.last = range.first;
        if (*text == '-') {
            text++;
            if (!read_layer(&text, &range.last) || range.last < range.first) return 0;
        }
        if (ranges) ranges[n] = range;
        n++;
        if (!*text) return n;
        if (*text != ',') return 0;
    }
}

static octavo_status make_ranges(octavo_rules *rules, const json_t *layers, const char *where,
                                 octavo_rules_part *part, octavo_error *error) {
    const char *text = json_string_value(layers);
    if (!text)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: this is no text; write layers as \"3\", \"0-3\" or \"0-3,8\"",
                           where);
    part->n_ranges = read_ranges(text, NULL);
    if (part->n_ranges == 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: %s are no layers; write them as \"3\", \"0-3\" or \"0-3,8\", "
                           "numbered from 0 and below %d",
                           where, octavo_quote(text, strlen(text)).text, OCTAVO_RULES_MAX_LAYERS);
    const size_t bytes = (size_t)part->n_ranges * sizeof(octavo_layer_range);
    octavo_layer_range *ranges = octavo_arena_alloc(&rules->arena, bytes);
    if (!ranges) return octavo_fail_memory(error, "sharding rules", bytes);
    read_ranges(text, ranges);
    part->ranges = ranges;
    return OCTAVO_OK;
}

static octavo_status find_block(const json_t *block, const char *where, octavo_block_kind *kind,
                                octavo_error *error) {
    const char *text = json_string_value(block);
    for (size_t i = 0; text && i < OCTAVO_COUNT(blocks); i++)
        if (strcmp(blocks[i].name, text) == 0) {
            *kind = blocks[i].kind;
            return OCTAVO_OK;
        }
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       "%s: %s is no kind of block; there are \"attention\", \"dense\" and \"moe\"",
                       where, text ? octavo_quote(text, strlen(text)).text : "this");
}

octavo_status octavo_rules_part_make(octavo_rules *rules, const json_t *layers,
                                     const char *where_layers, const json_t *block,
                                     const char *where_block, octavo_rules_part **part,
                                     octavo_error *error) {
    octavo_rules_part *made = octavo_arena_alloc(&rules->arena, sizeof *made);
    octavo_status status = OCTAVO_OK;
    if (!made) return octavo_fail_memory(error, "sharding rules", sizeof *made);
    if (layers) status = make_ranges(rules, layers, where_layers, made, error);
    if (!status && block) status = find_block(block, where_block, &made->block, error);
    if (!status) *part = made;
    return status;
}

octavo_status octavo_rules_part_check(const octavo_rules_part *part, int tensor, const char *where,
                                      octavo_error *error) {
    const octavo_named_tensor *named = octavo_named_tensor_at(tensor);
    const bool is_bound = part->n_ranges > 0 || part->block != OCTAVO_BLOCK_ANY;
    if (is_bound && named->blocks == 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: \"%s\" is in no layer; give its rule in \"all\", \"prefill\" or "
                           "\"generate\" of logical_rules",
                           where, named->name);
    if (part->block != OCTAVO_BLOCK_ANY && !(named->blocks & part->block))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: \"%s\" is in no %s block; it is in %s blocks%s", where, named->name,
                           name_of((int)part->block), name_of(named->blocks),
                           named->blocks == OCTAVO_BLOCK_DENSE ? ", as shared experts are" : "");
    return OCTAVO_OK;
}

bool octavo_rules_part_has_layer(const octavo_rules_part *part, int layer) {
    for (int i = 0; i < part->n_ranges; i++)
        if (part->ranges[i].first <= layer && layer <= part->ranges[i].last) return true;
    return part->n_ranges == 0;
}

static void print_ranges(const octavo_rules_part *part, octavo_buffer *out) {
    for (int i = 0; i < part->n_ranges; i++) {
        const octavo_layer_range *range = &part->ranges[i];
        octavo_buffer_printf(out, "%s%d", i ? "," : "", range->first);
        if (range->last > range->first) octavo_buffer_printf(out, "-%d", range->last);
    }
}

void octavo_rules_part_print(const octavo_rules_part *part, octavo_buffer *out) {
    if (part->n_ranges > 0) octavo_buffer_puts(out, "layers ");
    print_ranges(part, out);
    if (part->block == OCTAVO_BLOCK_ANY) return;
    octavo_buffer_printf(out, "%s%s blocks", part->n_ranges ? ", " : "", name_of((int)part->block));
}

void octavo_rules_part_print_json(const octavo_rules_part *part, octavo_buffer *out) {
    if (part->n_ranges > 0) {
        octavo_buffer_puts(out, "\"layers\": \"");
        print_ranges(part, out);
        octavo_buffer_puts(out, "\"");
    }
    if (part->block == OCTAVO_BLOCK_ANY) return;
    octavo_buffer_printf(out, "%s\"block\": \"%s\"", part->n_ranges ? ", " : "",
                         name_of((int)part->block));
}
