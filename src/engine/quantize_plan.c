/* SPDX-License-Identifier: Apache-2.0
 *
 * The types that are asked for, by option and by pattern, and what tensors allow.
 */
#include "engine/quantize_plan.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernels/weight_quantize.h"
#include "model/weights_type.h"

#include <regex.h>
#include <string.h>
#include <strings.h>

enum { SMALL_MATRIX = 1024 }; /* values: what is not worth a loss */

/* What can be made, with the number that general.file_type has for a file of mostly that type. */
static const struct {
    octavo_ggml_type type;
    uint32_t file_type;
} TARGETS[] = {
    {OCTAVO_GGML_F32, 0},    {OCTAVO_GGML_F16, 1},    {OCTAVO_GGML_BF16, 32},
    {OCTAVO_GGML_Q8_0, 7},   {OCTAVO_GGML_Q6_K, 18},  {OCTAVO_GGML_Q5_1, 9},
    {OCTAVO_GGML_Q5_0, 8},   {OCTAVO_GGML_Q4_K, 14},  {OCTAVO_GGML_Q4_1, 3},
    {OCTAVO_GGML_Q4_0, 2},   {OCTAVO_GGML_MXFP4, 38}, {OCTAVO_GGML_TQ2_0, 37},
    {OCTAVO_GGML_TQ1_0, 36},
};

/* ---- types ---- */

/* Index in TARGETS. */
static octavo_status parse_type(const char *name, size_t *target, octavo_error *error) {
    octavo_buffer names = {0};
    octavo_ggml_type type;
    for (size_t i = 0; i < OCTAVO_COUNT(TARGETS); i++) {
        const char *known = octavo_ggml_type_name(TARGETS[i].type);
        if (strcasecmp(name, known) == 0) {
            octavo_buffer_deinit(&names);
            *target = i;
            return OCTAVO_OK;
        }
        octavo_buffer_printf(&names, "%s%s", i > 0 ? " " : "", known);
    }
    const bool is_type = octavo_ggml_type_parse(name, &type, NULL) == OCTAVO_OK;
    octavo_status status =
        octavo_fail(error, is_type ? OCTAVO_ERROR_UNSUPPORTED : OCTAVO_ERROR_INVALID,
                    "type (%.40s): %s; give one of %s", name,
                    is_type ? "models of it are read, but none is made" : "there is no such type",
                    names.failed ? "those of GGUF" : names.data);
    octavo_buffer_deinit(&names);
    return status;
}

static uint64_t block_values(octavo_ggml_type type) {
    return octavo_ggml_type_lookup((uint32_t)type)->block_values;
}

/* The next wider type with smaller blocks, for rows that do not fill those of `type`. */
static octavo_ggml_type widen(octavo_ggml_type type, octavo_ggml_type from) {
    switch (type) {
    case OCTAVO_GGML_Q6_K:
        return OCTAVO_GGML_Q8_0;
    case OCTAVO_GGML_Q4_K:
        return OCTAVO_GGML_Q5_0;
    case OCTAVO_GGML_TQ1_0:
    case OCTAVO_GGML_TQ2_0:
        return OCTAVO_GGML_Q4_0;
    default:
        return from == OCTAVO_GGML_BF16 ? OCTAVO_GGML_BF16 : OCTAVO_GGML_F16;
    }
}

/* ---- patterns ---- */

typedef struct pattern {
    regex_t regex;
    const char *text;
    bool has_type; /* else the tensor's own */
    octavo_ggml_type type;
    bool is_used;
} pattern;

typedef struct patterns {
    pattern *items; /* [n], each with a regex to free */
    size_t n;
} patterns;

static void patterns_deinit(patterns *all) {
    for (size_t i = 0; i < all->n; i++)
        regfree(&all->items[i].regex);
    octavo_free(all->items);
}

static octavo_status compile(pattern *made, const char *text, octavo_error *error) {
    const char *equals = strrchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : strlen(text);
    *made = (pattern){.text = text, .has_type = equals != NULL};
    if (length == 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "pattern (%.80s): is empty; give REGEX=TYPE, such as "
                           "\"^output.weight=Q8_0\"",
                           text);
    if (equals) {
        size_t target = 0;
        octavo_status status = parse_type(equals + 1, &target, error);
        if (status) return status;
        made->type = TARGETS[target].type;
    }
    char *regex = octavo_strndup(text, length);
    if (!regex) return octavo_fail_memory(error, "pattern", length);
    const int problem = regcomp(&made->regex, regex, REG_EXTENDED | REG_NOSUB);
    octavo_free(regex);
    if (problem == 0) return OCTAVO_OK;
    char why[120];
    (void)regerror(problem, &made->regex, why, sizeof why);
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       "pattern (%.80s): is no regular expression: %s; give REGEX=TYPE", text, why);
}

static octavo_status patterns_init(patterns *all, const octavo_quantize_options *options,
                                   octavo_error *error) {
    all->items = octavo_alloc_zero(options->n_keep ? options->n_keep : 1, sizeof *all->items);
    if (!all->items) return octavo_fail_memory(error, "patterns", options->n_keep);
    for (size_t i = 0; i < options->n_keep; i++) {
        octavo_status status = compile(&all->items[i], options->keep[i], error);
        if (status) return status;
        all->n++;
    }
    return OCTAVO_OK;
}

/* The first pattern that fits; all that fit are marked as used. */
static const pattern *find_pattern(patterns *all, const char *name) {
    const pattern *found = NULL;
    for (size_t i = 0; i < all->n; i++) {
        if (regexec(&all->items[i].regex, name, 0, NULL, 0) != 0) continue;
        all->items[i].is_used = true;
        if (!found) found = &all->items[i];
    }
    return found;
}

static octavo_status check_used(const patterns *all, octavo_error *error) {
    for (size_t i = 0; i < all->n; i++)
        if (!all->items[i].is_used)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "pattern (%.80s): no matrix of the model has a name that fits; "
                               "octavo inspect lists the names",
                               all->items[i].text);
    return OCTAVO_OK;
}

/* ---- tensors ---- */

static bool ends_with(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Whether a product is taken with the tensor, or rows are looked up in it. */
static bool is_matrix(const octavo_gguf_tensor *tensor) {
    return tensor->n_dims >= 2 && ends_with(tensor->name, ".weight") &&
           !strstr(tensor->name, "norm");
}

/* Matrices that are a small part of a model and whose errors go far. */
static bool is_delicate(const octavo_gguf_tensor *tensor) {
    static const char *const names[] = {"ffn_gate_inp", "position_embd", "token_types", "conv1d"};
    uint64_t values = 1;
    for (int i = 0; i < tensor->n_dims && values < SMALL_MATRIX; i++)
        values *= tensor->extent[i];
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++)
        if (strstr(tensor->name, names[i])) return true;
    return values < SMALL_MATRIX;
}

static void plan_tensor(octavo_tensor_plan *plan, const octavo_gguf_tensor *tensor, patterns *all,
                        octavo_ggml_type want) {
    *plan = (octavo_tensor_plan){.type = tensor->type, .is_copied = true};
    if (!is_matrix(tensor)) return;
    const pattern *kept = find_pattern(all, tensor->name);
    if (!octavo_weight_type_of(tensor->type, &plan->from)) {
        plan->note = "left as it is: values of this type cannot be read";
        return;
    }
    if (kept && !kept->has_type) return;
    if (kept) want = kept->type;
    if (!kept && is_delicate(tensor)) {
        plan->note = "left as it is: small, a router or positions";
        return;
    }
    while (tensor->extent[0] % block_values(want) != 0) {
        want = widen(want, tensor->type);
        plan->note = "a wider type: rows do not fill whole blocks";
    }
    if (want == tensor->type) return;
    plan->type = want;
    plan->is_copied = !octavo_weight_type_of(want, &plan->to);
    octavo_assert(!plan->is_copied && octavo_weight_can_quantize(plan->to));
    if (!plan->note && block_values(tensor->type) > 1) plan->note = "was quantised before";
}

octavo_status octavo_quantize_plan_make(octavo_quantize_plan *plan,
                                        const octavo_quantize_source *source,
                                        const octavo_quantize_options *options,
                                        octavo_error *error) {
    const size_t n = octavo_quantize_source_n(source);
    octavo_quantize_plan made = {0};
    patterns all = {0};
    size_t target = 0;
    octavo_status status = parse_type(options->type, &target, error);
    if (status) return status;
    made.file_type = TARGETS[target].file_type;
    made.tensors = octavo_alloc_zero(n ? n : 1, sizeof *made.tensors);
    if (!made.tensors) return octavo_fail_memory(error, "plan", n * sizeof *made.tensors);
    status = patterns_init(&all, options, error);
    for (size_t i = 0; i < n && status == OCTAVO_OK; i++) {
        plan_tensor(&made.tensors[i], octavo_quantize_source_at(source, i), &all,
                    TARGETS[target].type);
        made.has_quantized |= block_values(made.tensors[i].type) > 1;
    }
    if (status == OCTAVO_OK) status = check_used(&all, error);
    patterns_deinit(&all);
    if (status)
        octavo_quantize_plan_deinit(&made);
    else
        *plan = made;
    return status;
}

void octavo_quantize_plan_deinit(octavo_quantize_plan *plan) {
    octavo_free(plan->tensors);
    *plan = (octavo_quantize_plan){0};
}
