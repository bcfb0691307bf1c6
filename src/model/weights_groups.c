/* SPDX-License-Identifier: Apache-2.0
 *
 * From words of codes to blocks with a scale and a zero.
 */
#include "model/weights_groups.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 32, AWQ_OUTPUTS = 8 };

/* ---- elements ---- */

static uint32_t word_at(const uint8_t *data, int64_t index) {
    uint32_t word;
    memcpy(&word, data + index * 4, sizeof word);
    return word;
}

/* Code i of a stream whose words are `step` apart. */
static int code_at(const uint8_t *data, int64_t first, int64_t step, int64_t i, int bits) {
    const int64_t word = i * bits / 32;
    const int at = (int)(i * bits % 32);
    uint32_t code = word_at(data, first + word * step) >> at;
    if (at + bits > 32) code |= word_at(data, first + (word + 1) * step) << (32 - at);
    return (int)(code & ((1u << bits) - 1));
}

/* Output o of row `row` of words of AWQ. */
static int awq_at(const uint8_t *data, int64_t row, int64_t n, int64_t o) {
    const int place = (int)(o % 2 * 4 + o % AWQ_OUTPUTS / 2);
    return (int)(word_at(data, row * (n / AWQ_OUTPUTS) + o / AWQ_OUTPUTS) >> (4 * place) & 15);
}

static bool is_awq(const octavo_groups_source *source) {
    return source->kind == OCTAVO_QUANT_AWQ;
}

static bool is_packed(const octavo_groups_source *source) {
    return source->kind == OCTAVO_QUANT_PACKED;
}

static int zero_of(const octavo_groups_source *source, int64_t group, int64_t o) {
    const uint8_t *data = source->zeros.data;
    if (!data) return 1 << (source->bits - 1);
    if (is_awq(source)) return awq_at(data, group, source->n, o);
    if (is_packed(source)) return code_at(data, group, source->groups, o, source->bits);
    const int64_t words = source->n * source->bits / 32;
    return code_at(data, group * words, 1, o, source->bits) + source->zero_more;
}

static float scale_of(const octavo_groups_source *source, int64_t group, int64_t o) {
    const int64_t at = is_packed(source) ? o * source->groups + group : group * source->n + o;
    uint16_t half;
    if (source->scales.type == OCTAVO_GGML_F32)
        return octavo_f32_from_bits(word_at(source->scales.data, at));
    memcpy(&half, source->scales.data + at * 2, sizeof half);
    return source->scales.type == OCTAVO_GGML_F16 ? octavo_f16_to_f32(half)
                                                  : octavo_bf16_to_f32(half);
}

static int64_t group_of(const octavo_groups_source *source, int64_t input) {
    return source->indices ? (int64_t)word_at(source->indices, input) : input / source->group;
}

/* The input at a place of a row. */
static int64_t input_at(const octavo_groups_source *source, int64_t place) {
    return source->order ? source->order[place] : place;
}

static int one_code(const octavo_groups_source *source, int64_t k, int64_t o) {
    const int64_t words = source->k * source->bits / 32;
    if (is_awq(source)) return awq_at(source->codes.data, k, source->n, o);
    if (is_packed(source)) return code_at(source->codes.data, o * words, 1, k, source->bits);
    return code_at(source->codes.data, o, source->n, k, source->bits);
}

/* Those of 8 outputs in a word of AWQ as bytes. */
static uint64_t spread_awq(uint32_t word) {
    uint64_t even = word & 0xffff, odd = word >> 16;
    even = (even | even << 24) & UINT64_C(0x000000ff000000ff);
    even = (even | even << 12) & UINT64_C(0x000f000f000f000f);
    odd = (odd | odd << 24) & UINT64_C(0x000000ff000000ff);
    odd = (odd | odd << 12) & UINT64_C(0x000f000f000f000f);
    return even | odd << 8;
}

/* Rows of the matrix: outputs of the tensors, which are neighbours or not. */
typedef struct output_rows {
    int64_t first;
    int n;
    bool are_neighbours;
} output_rows;

static output_rows outputs_of(const octavo_groups_source *source, int64_t row, int n) {
    const int64_t first = octavo_source_row(&source->rows, row);
    const int64_t last = octavo_source_row(&source->rows, row + n - 1);
    return (output_rows){first, n, last - first == n - 1};
}

/* Codes of one input of all rows. */
static void load_input(const octavo_groups_source *source, uint8_t code[OCTAVO_PANEL],
                       int64_t input, int64_t row, const output_rows *outputs) {
    const uint8_t *data = source->codes.data;
    const int bits = source->bits, n = outputs->n;
    if (!outputs->are_neighbours || bits == 3 || is_packed(source) ||
        (is_awq(source) && (outputs->first | n) % AWQ_OUTPUTS)) {
        for (int i = 0; i < n; i++)
            code[i] = (uint8_t)one_code(source, input, octavo_source_row(&source->rows, row + i));
    } else if (is_awq(source)) {
        const int64_t first = (input * source->n + outputs->first) / AWQ_OUTPUTS;
        for (int i = 0; i < n; i += AWQ_OUTPUTS) {
            const uint64_t codes = spread_awq(word_at(data, first + i / AWQ_OUTPUTS));
            memcpy(code + i, &codes, sizeof codes);
        }
    } else {
        const int64_t first = input * bits / 32 * source->n + outputs->first;
        const int at = (int)(input * bits % 32);
        for (int i = 0; i < n; i++)
            code[i] = (uint8_t)(word_at(data, first + i) >> at & ((1u << bits) - 1));
    }
}

/* ---- blocks, see kernels/weight.h ---- */

/* [input][row] */
typedef uint8_t block_codes[BLOCK][OCTAVO_PANEL];

static void put_pairs(uint8_t *to, block_codes code, int o) {
    memset(to, 0, 8);
    for (int i = 0; i < BLOCK; i++)
        to[i / 16 * 4 + i % 4] |= (uint8_t)((code[i][o] & 3) << (i / 4 % 4 * 2));
}

/* Codes of 4 bits in pairs, as they are put. */
static void join_halves(block_codes code) {
    for (int i = 0; i < BLOCK / 2; i++)
        for (int o = 0; o < OCTAVO_PANEL; o++)
            code[i][o] = (uint8_t)(code[i][o] | code[BLOCK / 2 + i][o] << 4);
}

static void put_codes(int bits, uint8_t *to, block_codes code, int o) {
    switch (bits) {
    case 2:
        put_pairs(to, code, o);
        break;
    case 3:
        put_pairs(to, code, o);
        memset(to + 8, 0, 4);
        for (int i = 0; i < BLOCK; i++)
            to[8 + i % 4] |= (uint8_t)(code[i][o] >> 2 << (i / 4));
        break;
    case 4:
        for (int i = 0; i < BLOCK / 2; i++)
            to[i] = code[i][o];
        break;
    default:
        for (int i = 0; i < BLOCK; i++)
            to[i] = code[i][o];
        break;
    }
}

static bool put_scale(const octavo_groups_source *source, uint8_t *to, int64_t group, int64_t o) {
    const float scale = scale_of(source, group, o);
    const uint16_t d = octavo_f32_to_f16(scale);
    memcpy(to, &d, sizeof d);
    to[2] = (uint8_t)(zero_of(source, group, o) - (source->bits == 8 ? 128 : 0));
    return isfinite(scale) != 0;
}

static bool fill_blocks(const octavo_groups_source *source, uint8_t *to, size_t row_bytes,
                        int64_t row, int n, int64_t k0, int64_t k1) {
    const octavo_weight_info *info = octavo_weight_info_of(source->type);
    const output_rows outputs = outputs_of(source, row, n);
    bool is_right = true;
    for (int64_t k = k0; k < k1; k += info->source_inputs, to += info->source_bytes) {
        const int64_t group = group_of(source, input_at(source, k));
        for (int o = 0; o < n; o++)
            is_right &= put_scale(source, to + (size_t)o * row_bytes, group,
                                  octavo_source_row(&source->rows, row + o));
        for (int begin = 0; begin < info->source_inputs; begin += BLOCK) {
            block_codes code = {{0}};
            for (int i = 0; i < BLOCK; i++)
                load_input(source, code[i], input_at(source, k + begin + i), row, &outputs);
            if (source->bits == 4) join_halves(code);
            for (int o = 0; o < n; o++)
                put_codes(source->bits, to + (size_t)o * row_bytes + 3 + begin * source->bits / 8,
                          code, o);
        }
    }
    return is_right;
}

static bool fill_floats(const octavo_groups_source *source, uint8_t *to, int64_t o, int64_t k0,
                        int64_t k1) {
    bool is_right = true;
    for (int64_t k = k0; k < k1; k++, to += 4) {
        const int64_t group = group_of(source, k);
        const int value = one_code(source, k, o) - zero_of(source, group, o);
        const float w = scale_of(source, group, o) * (float)value;
        memcpy(to, &w, sizeof w);
        is_right &= isfinite(w) != 0;
    }
    return is_right;
}

bool octavo_groups_fill(const void *cookie, uint8_t *to, int64_t row, int n, int64_t k0,
                        int64_t k1) {
    const octavo_groups_source *source = cookie;
    const octavo_weight_info *info = octavo_weight_info_of(source->type);
    const size_t row_bytes = (size_t)((k1 - k0) / info->source_inputs * info->source_bytes);
    if (source->type != OCTAVO_WEIGHT_F32)
        return fill_blocks(source, to, row_bytes, row, n, k0, k1);
    bool is_right = true;
    for (int i = 0; i < n; i++)
        is_right &= fill_floats(source, to + (size_t)i * row_bytes,
                                octavo_source_row(&source->rows, row + i), k0, k1);
    return is_right;
}

/* ---- finding ---- */

/* "X.weight" as "X" + suffix. */
static const char *name_beside(const char *name, const char *suffix,
                               char beside[OCTAVO_WEIGHT_NAME_SIZE]) {
    const size_t length = strlen(name), tail = strlen(".weight");
    const bool is_weight = length > tail && strcmp(name + length - tail, ".weight") == 0;
    snprintf(beside, OCTAVO_WEIGHT_NAME_SIZE, "%.*s%s", (int)(is_weight ? length - tail : length),
             name, suffix);
    return beside;
}

static octavo_status find(octavo_loader *load, const char *name, const char *suffix, int64_t rows,
                          int64_t columns, octavo_checkpoint_tensor *tensor) {
    char beside[OCTAVO_WEIGHT_NAME_SIZE];
    const int64_t shape[] = {rows, columns};
    octavo_status status = octavo_checkpoint_get(
        load->checkpoint, name_beside(name, suffix, beside), tensor, load->error);
    if (status) return status;
    if (tensor->n_dims == 2 && tensor->extent[0] == (uint64_t)rows &&
        tensor->extent[1] == (uint64_t)columns)
        return OCTAVO_OK;
    return octavo_load_fail_shape(load, tensor, 2, shape);
}

static octavo_status fail_type(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                               const char *wanted) {
    return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
                          "tensor \"%s\" (%s): type %s where codes in groups need %s; convert the "
                          "model anew",
                          tensor->name, tensor->path, tensor->type_name, wanted);
}

static octavo_status check_words(octavo_loader *load, const octavo_checkpoint_tensor *tensor) {
    return strcmp(tensor->type_name, "I32") == 0 ? OCTAVO_OK : fail_type(load, tensor, "I32");
}

static octavo_status check_scales(octavo_loader *load, const octavo_checkpoint_tensor *tensor) {
    const bool is_float =
        tensor->has_type && (tensor->type == OCTAVO_GGML_F32 || tensor->type == OCTAVO_GGML_F16 ||
                             tensor->type == OCTAVO_GGML_BF16);
    return is_float ? OCTAVO_OK : fail_type(load, tensor, "F16, BF16 or F32");
}

/* Sets source->indices where they say more than the groups' extent does. */
static octavo_status find_indices(octavo_loader *load, const char *name,
                                  octavo_groups_source *source) {
    char beside[OCTAVO_WEIGHT_NAME_SIZE];
    const int64_t shape[] = {source->k};
    octavo_checkpoint_tensor tensor;
    octavo_status status;
    name_beside(name, is_packed(source) ? ".weight_g_idx" : ".g_idx", beside);
    if (is_awq(source) || octavo_checkpoint_find(load->checkpoint, beside) < 0) return OCTAVO_OK;
    if ((status = octavo_checkpoint_get(load->checkpoint, beside, &tensor, load->error)) ||
        (status = check_words(load, &tensor)))
        return status;
    if (tensor.n_dims != 1 || tensor.extent[0] != (uint64_t)source->k)
        return octavo_load_fail_shape(load, &tensor, 1, shape);
    for (int64_t i = 0; i < source->k; i++) {
        const int64_t group = (int64_t)word_at(tensor.data, i);
        if (group >= source->groups)
            return octavo_fail_at(load->error, OCTAVO_ERROR_FORMAT, tensor.offset + i * 4,
                                  "tensor \"%s\" (%s): group %lld of input %lld, there are %lld; "
                                  "the file is damaged",
                                  tensor.name, tensor.path, (long long)(int32_t)group, (long long)i,
                                  (long long)source->groups);
        if (group != i / source->group) source->indices = tensor.data;
    }
    return OCTAVO_OK;
}

/* Can scales and zeros be held by types Z? */
static bool is_exact(const octavo_groups_source *source) {
    for (int64_t i = 0; i < source->groups * source->n; i++) {
        const float scale = scale_of(source, i / source->n, i % source->n);
        if (source->scales.type == OCTAVO_GGML_F16) break;
        if (octavo_f16_to_f32(octavo_f32_to_f16(scale)) != scale) return false;
    }
    for (int64_t i = 0; source->bits == 8 && i < source->groups * source->n; i++)
        if (zero_of(source, i / source->n, i % source->n) > 255) return false;
    return true;
}

/* The inputs by their groups, those of one group as they come. */
static octavo_status make_order(octavo_loader *load, octavo_groups_source *source) {
    const size_t bytes = (size_t)source->k * sizeof *source->order;
    int32_t *order = octavo_arena_alloc(&load->weights->arena, bytes);
    if (!order) return octavo_fail_memory(load->error, source->codes.name, bytes);
    int64_t n = 0;
    for (int64_t group = 0; n < source->k; group++)
        for (int64_t i = 0; i < source->k; i++)
            if (group_of(source, i) == group) order[n++] = (int32_t)i;
    source->order = order;
    return OCTAVO_OK;
}

/* Whether each `inputs` places share a group. */
static bool is_shared(const octavo_groups_source *source, int64_t inputs) {
    if (source->k % inputs) return false;
    for (int64_t i = 0; i < source->k; i++)
        if (group_of(source, input_at(source, i)) !=
            group_of(source, input_at(source, i / inputs * inputs)))
            return false;
    return true;
}

static octavo_weight_type choose_type(const octavo_groups_source *source) {
    if (!is_shared(source, BLOCK) || !is_exact(source)) return OCTAVO_WEIGHT_F32;
    switch (source->bits) {
    case 2:
        return OCTAVO_WEIGHT_Z2;
    case 3:
        return OCTAVO_WEIGHT_Z3;
    case 4:
        return is_shared(source, 2 * BLOCK) ? OCTAVO_WEIGHT_Z4_64 : OCTAVO_WEIGHT_Z4;
    default:
        return OCTAVO_WEIGHT_Z8;
    }
}

/* The tensors of GPTQ and AWQ. */
static octavo_status find_parts(octavo_loader *load, const char *name,
                                octavo_groups_source *found) {
    const int64_t words = found->n * found->bits / 32;
    const bool is_by_input = is_awq(found);
    const int64_t rows = is_by_input ? found->k : found->k * found->bits / 32;
    octavo_status status;
    if ((status =
             find(load, name, ".qweight", rows, is_by_input ? words : found->n, &found->codes)) ||
        (status = find(load, name, ".qzeros", found->groups, words, &found->zeros)))
        return status;
    return find(load, name, ".scales", found->groups, found->n, &found->scales);
}

static octavo_status find_packed(octavo_loader *load, const char *name,
                                 octavo_groups_source *found) {
    char beside[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_status status;
    if ((status = find(load, name, ".weight_packed", found->n, found->k * found->bits / 32,
                       &found->codes)) ||
        (status = find(load, name, ".weight_scale", found->n, found->groups, &found->scales)))
        return status;
    name_beside(name, ".weight_zero_point", beside);
    if (octavo_checkpoint_find(load->checkpoint, beside) < 0) return OCTAVO_OK;
    return find(load, name, ".weight_zero_point", found->n * found->bits / 32, found->groups,
                &found->zeros);
}

octavo_status octavo_groups_find(octavo_loader *load, const char *name, const octavo_weight *weight,
                                 octavo_row_map rows, octavo_groups_source *source) {
    const octavo_quant *quant = &load->config->quant;
    const int64_t k = weight->k;
    octavo_groups_source found = {
        .kind = quant->kind,
        .bits = (int)quant->bits,
        .zero_more = quant->has_lesser_zeros,
        .n = rows.all ? rows.all : weight->n,
        .k = k,
        .group = quant->group < 0 || quant->group > k ? k : quant->group,
        .rows = rows,
    };
    found.groups = (k + found.group - 1) / found.group;
    octavo_status status;
    if ((status = (is_packed(&found) ? find_packed : find_parts)(load, name, &found)) ||
        (status = check_words(load, &found.codes)) ||
        (status = found.zeros.data ? check_words(load, &found.zeros) : OCTAVO_OK) ||
        (status = check_scales(load, &found.scales)))
        return status;
    if ((found.zeros.data && found.n * found.bits % 32) || (!is_awq(&found) && k * found.bits % 32))
        return octavo_fail_at(load->error, OCTAVO_ERROR_FORMAT, found.codes.offset,
                              "tensor \"%s\" (%s): %lld outputs of %lld inputs do not fill words "
                              "of codes of %d bits; the file is damaged or of another model",
                              found.codes.name, found.codes.path, (long long)found.n, (long long)k,
                              found.bits);
    if ((status = find_indices(load, name, &found)) ||
        (found.indices && (status = make_order(load, &found))))
        return status;
    found.type = choose_type(&found);
    if (found.type == OCTAVO_WEIGHT_F32) found.order = NULL;
    *source = found;
    return OCTAVO_OK;
}
