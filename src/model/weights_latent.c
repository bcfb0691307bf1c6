/* SPDX-License-Identifier: Apache-2.0
 *
 * Latent attention. What leads out of the latent lies in one matrix, rows of each head's keys and
 * then of its values, or newer GGUF files have it apart. Values take the rows as they are; queries
 * go the other way, so that of keys the axes are swapped. Newer files have it so; floats are
 * swapped here as they are, and codes, whose blocks lie along the other axis, as the f32 that they
 * stand for: an axis as short as a head's, so a small part of any model.
 */
#include "model/weights_latent.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/weights_find.h"
#include "model/weights_type.h"

#include <string.h>

/* ---- out of the latent ---- */

/* The matrix of both. */
typedef struct latent_matrix {
    octavo_found_matrix found;
    int64_t key_dim, head_rows; /* rows of a head: those of keys first, and all */
} latent_matrix;

/* Rows of it from `first` on, and as a matrix of their own. */
typedef struct row_part {
    const octavo_pack_source *whole;
    int64_t first;
} row_part;

static bool fill_part(const void *cookie, uint8_t *to, int64_t row, int n, int64_t k0, int64_t k1) {
    const row_part *part = cookie;
    return part->whole->fill(part->whole->cookie, to, part->first + row, n, k0, k1);
}

static octavo_pack_source part_source(const row_part *part, int64_t n) {
    octavo_pack_source source = *part->whole;
    source.n = n;
    source.begin = (size_t)part->first * source.row_bytes;
    source.beside_bytes = 0;
    if (!source.fill) return source;
    source.rows = (octavo_row_map){0}; /* of the whole */
    source.fill = fill_part;
    source.cookie = part;
    source.cookie_bytes = 0; /* there is more behind it */
    return source;
}

/* Keys of a head with their axes swapped, as far as they are held: outputs [begin, end), which are
 * whole blocks of the rows of keys, and inputs [k0, k1). */
typedef struct swapped_keys {
    float *values;         /* [end - begin, k1 - k0] */
    uint8_t *rows, *panel; /* of up to 32 of its keys */
    float *columns;        /* [end - begin, 32]: their values */
    int64_t begin, end, k0, k1;
} swapped_keys;

static bool fill_swapped(const void *cookie, uint8_t *to, int64_t row, int n, int64_t k0,
                         int64_t k1) {
    const swapped_keys *keys = cookie;
    const size_t bytes = (size_t)(k1 - k0) * sizeof(float);
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)i * bytes,
               keys->values + (row + i - keys->begin) * (keys->k1 - keys->k0) + k0 - keys->k0,
               bytes);
    return true;
}

/* False: what the rows are made of is no number. */
static bool swap_head(const latent_matrix *matrix, int64_t head, swapped_keys *keys) {
    const octavo_pack_source *source = &matrix->found.source;
    const int64_t rank = keys->end - keys->begin, n_keys = keys->k1 - keys->k0;
    const size_t row_bytes = octavo_pack_row_bytes(source, rank);
    for (int64_t k = 0; k < n_keys; k += OCTAVO_PANEL) {
        const int n = n_keys - k < OCTAVO_PANEL ? (int)(n_keys - k) : OCTAVO_PANEL;
        const int64_t row = head * matrix->head_rows + keys->k0 + k;
        if (!octavo_pack_source_rows(source, keys->rows, row, n, keys->begin, keys->end))
            return false;
        octavo_weight_pack(source->type, keys->panel, keys->rows, row_bytes, n, rank);
        octavo_weight_unpack(source->type, keys->columns, keys->panel, 0, rank);
        for (int64_t i = 0; i < rank; i++)
            memcpy(keys->values + i * n_keys + k, keys->columns + i * OCTAVO_PANEL,
                   (size_t)n * sizeof(float));
    }
    return true;
}

static octavo_status alloc_swapped(octavo_loader *load, const octavo_pack_source *source,
                                   const octavo_weight_part *part, swapped_keys *keys) {
    const int64_t block = octavo_weight_info_of(source->type)->source_inputs;
    keys->begin = part->n0 - part->n0 % block;
    keys->end = part->n1 + (block - part->n1 % block) % block;
    keys->k0 = part->k0;
    keys->k1 = part->k1;
    const size_t rank = (size_t)(keys->end - keys->begin), n_keys = (size_t)(keys->k1 - keys->k0);
    const size_t rows_bytes = octavo_pack_row_bytes(source, (int64_t)rank) * OCTAVO_PANEL;
    const size_t panel_bytes = octavo_weight_panel_bytes(source->type, (int64_t)rank);
    keys->values = octavo_alloc_zero(rank * n_keys, sizeof(float));
    keys->columns = octavo_alloc_zero(rank * OCTAVO_PANEL, sizeof(float));
    keys->rows = octavo_alloc_aligned(rows_bytes);
    keys->panel = octavo_alloc_aligned(panel_bytes);
    if (keys->values && keys->columns && keys->rows && keys->panel) return OCTAVO_OK;
    return octavo_fail_memory(load->error, source->tensor->name,
                              rank * (n_keys + OCTAVO_PANEL) * sizeof(float) + rows_bytes +
                                  panel_bytes);
}

static void free_swapped(swapped_keys *keys) {
    octavo_free(keys->values);
    octavo_free(keys->columns);
    octavo_free_aligned(keys->rows);
    octavo_free_aligned(keys->panel);
}

static octavo_status pack_codes(octavo_loader *load, const octavo_weight *weight,
                                const octavo_weight_part *part, const octavo_weight *whole,
                                const latent_matrix *matrix) {
    const octavo_pack_source *rows = &matrix->found.source;
    const octavo_checkpoint_tensor *tensor = rows->tensor;
    swapped_keys keys = {0};
    octavo_status status = OCTAVO_OK;
    if (load->options->pool) status = alloc_swapped(load, rows, part, &keys);
    for (int64_t head = part->e0; head < part->e1 && !status; head++) {
        const octavo_pack_source source = {
            .tensor = tensor,
            .n = whole->n,
            .k = whole->k,
            .type = OCTAVO_WEIGHT_F32,
            .begin = (size_t)(head * matrix->head_rows) * rows->row_bytes,
            .row_bytes = (size_t)whole->k * rows->row_bytes / (size_t)whole->n,
            .columns = {.columns = whole->n, .step = 1},
            .fill = fill_swapped,
            .cookie = &keys,
        };
        if (load->options->pool && !swap_head(matrix, head, &keys))
            status = octavo_fail_at(load->error, OCTAVO_ERROR_FORMAT, tensor->offset,
                                    "tensor \"%s\" (%s): it, or its scales, holds what is no "
                                    "finite number; the file is damaged",
                                    tensor->name, tensor->path);
        else
            status = octavo_pack_matrix(load, weight, part, head, &source);
    }
    free_swapped(&keys);
    return status;
}

static octavo_status pack_floats(octavo_loader *load, const octavo_weight *weight,
                                 const octavo_weight_part *part, const octavo_weight *whole,
                                 const latent_matrix *matrix) {
    const octavo_pack_source *rows = &matrix->found.source;
    octavo_status status = OCTAVO_OK;
    for (int64_t head = part->e0; head < part->e1 && !status; head++) {
        octavo_pack_source source = *rows;
        source.n = whole->n;
        source.k = whole->k;
        source.begin = (size_t)(head * matrix->head_rows) * rows->row_bytes;
        source.row_bytes = (size_t)whole->k * (rows->row_bytes / (size_t)whole->n);
        source.columns = (octavo_column_map){.columns = whole->n, .step = 1};
        status = octavo_pack_matrix(load, weight, part, head, &source);
    }
    return status;
}

/* What is asked for, of codes only where it is asked for of them as they are too. */
static octavo_weight_type choose_type(const octavo_loader *load, const octavo_weight *weight,
                                      octavo_weight_type from, bool is_float) {
    const int64_t n_values = weight->stack * weight->n * weight->k;
    const octavo_weights wanted = load->options->weights;
    const octavo_weight_type type =
        octavo_weights_choose(wanted, OCTAVO_ROLE_LATENT_KV_B, from, n_values, weight->k);
    if (is_float) return type;
    if (type == from) return OCTAVO_WEIGHT_F32;
    return octavo_weights_choose(wanted, OCTAVO_ROLE_LATENT_KV_B, OCTAVO_WEIGHT_F32, n_values,
                                 weight->k);
}

static octavo_status pack_keys(octavo_loader *load, octavo_weight *weight,
                               const latent_matrix *matrix) {
    const octavo_pack_source *source = &matrix->found.source;
    const bool is_float = !source->fill && octavo_weight_info_of(source->type)->source_inputs == 1;
    const octavo_weight whole = *weight;
    octavo_weight_part part;
    weight->type = choose_type(load, weight, source->type, is_float);
    octavo_status status = octavo_pack_place(load, weight, source->tensor, &part);
    if (status || weight->n == 0 || weight->k == 0) return status;
    octavo_pack_ask(load, source->tensor, (size_t)matrix->head_rows * source->row_bytes, &whole,
                    &part);
    return (is_float ? pack_floats : pack_codes)(load, weight, &part, &whole, matrix);
}

static octavo_status pack_values(octavo_loader *load, octavo_weight *weight,
                                 const latent_matrix *matrix) {
    const octavo_pack_source *rows = &matrix->found.source;
    const int64_t n = weight->n, n_heads = weight->stack;
    octavo_weight_part held;
    weight->type =
        octavo_weights_choose(load->options->weights, OCTAVO_ROLE_LATENT_KV_B, rows->type,
                              weight->stack * weight->n * weight->k, weight->k);
    octavo_status status = octavo_pack_place(load, weight, rows->tensor, &held);
    for (int64_t head = held.e0; head < held.e1 && !status; head++) {
        const row_part part = {rows, head * matrix->head_rows + matrix->key_dim};
        octavo_pack_source source = part_source(&part, n);
        /* those of keys too */
        source.beside_bytes = rows->beside_bytes * (size_t)(head + 1) / (size_t)n_heads -
                              rows->beside_bytes * (size_t)head / (size_t)n_heads;
        status = octavo_pack_matrix(load, weight, &held, head, &source);
    }
    return status;
}

static bool has_parts(const octavo_loader *load, int layer) {
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_weight_name_make(load->checkpoint, load->config->names, OCTAVO_ROLE_LATENT_K_B, layer, 0,
                            name);
    return load->checkpoint->gguf && octavo_checkpoint_find(load->checkpoint, name) >= 0;
}

/* The factor beside the whole matrix is that of each part. */
static octavo_status load_factor(octavo_loader *load, const octavo_found_matrix *found,
                                 octavo_latent_weights *w) {
    const size_t n = (size_t)w->k_b.stack;
    octavo_weight whole = {0};
    octavo_status status = octavo_load_factors(load, found->source.tensor, &whole);
    if (status || !whole.factors) return status;
    float *factors = octavo_arena_alloc(&load->weights->arena, n * sizeof *factors);
    if (!factors)
        return octavo_fail_memory(load->error, found->source.tensor->name, n * sizeof *factors);
    for (size_t i = 0; i < n; i++)
        factors[i] = whole.factors[0];
    w->k_b.factors = w->v_b.factors = factors;
    return OCTAVO_OK;
}

/* What keys would have across, values along. */
static octavo_status refuse_order(octavo_loader *load, const octavo_found_matrix *found) {
    const octavo_checkpoint_tensor *tensor = found->source.tensor;
    if (!found->source.order) return OCTAVO_OK;
    return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
                          "tensor \"%s\" (%s): an order of its inputs (desc_act) is not in this "
                          "version for latent attention; convert the model anew without it",
                          tensor->name, tensor->path);
}

static octavo_status load_out(octavo_loader *load, int layer) {
    const octavo_model_config *c = load->config;
    const octavo_latent_config *l = &c->latent;
    octavo_latent_weights *w = &load->weights->layers[layer].latent;
    const octavo_column_map as_rows = {0};
    const octavo_row_map whole = {0};
    latent_matrix matrix = {.key_dim = l->key_dim, .head_rows = l->key_dim + l->value_dim};
    const octavo_weight all = {.n = c->n_heads * matrix.head_rows, .k = l->kv_rank};
    octavo_status status;
    w->k_b = (octavo_weight){.n = l->kv_rank, .k = l->key_dim, .stack = c->n_heads};
    w->v_b = (octavo_weight){.n = l->value_dim, .k = l->kv_rank, .stack = c->n_heads};
    if (has_parts(load, layer)) {
        status = octavo_load_stack(load, &w->k_b, whole, as_rows, OCTAVO_ROLE_LATENT_K_B, layer);
        if (status) return status;
        return octavo_load_stack(load, &w->v_b, whole, as_rows, OCTAVO_ROLE_LATENT_V_B, layer);
    }
    if ((status = octavo_load_find(load, &all, whole, OCTAVO_ROLE_LATENT_KV_B, layer, 0,
                                   &matrix.found)) ||
        (status = refuse_order(load, &matrix.found)) ||
        (status = load_factor(load, &matrix.found, w)) ||
        (status = pack_keys(load, &w->k_b, &matrix)) ||
        (status = pack_values(load, &w->v_b, &matrix)))
        return status;
    if (load->options->pool)
        octavo_checkpoint_drop(load->checkpoint, matrix.found.source.tensor, 0,
                               matrix.found.source.tensor->bytes);
    return OCTAVO_OK;
}

/* ---- into the latent ---- */

static octavo_status load_queries(octavo_loader *load, int layer) {
    const octavo_model_config *c = load->config;
    const octavo_latent_config *l = &c->latent;
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_row_map whole = {0};
    const int64_t n = c->n_heads * (l->key_dim + c->rope_dim);
    octavo_status status;
    if (l->q_rank == 0)
        return octavo_load_matrix(load, &w->attn_q, n, c->d, whole, OCTAVO_ROLE_ATTN_Q, layer);
    if ((status = octavo_load_matrix(load, &w->latent.q_a, l->q_rank, c->d, whole,
                                     OCTAVO_ROLE_LATENT_Q_A, layer)) ||
        (status = octavo_load_bias(load, &w->latent.q_a_bias, l->q_rank, c->qkv_bias, whole,
                                   OCTAVO_ROLE_LATENT_Q_A_BIAS, layer)) ||
        (status = octavo_load_vector(load, &w->latent.q_norm, l->q_rank, c->norm_offset, whole,
                                     OCTAVO_ROLE_LATENT_Q_NORM, layer)))
        return status;
    return octavo_load_matrix(load, &w->latent.q_b, n, l->q_rank, whole, OCTAVO_ROLE_LATENT_Q_B,
                              layer);
}

octavo_status octavo_load_latent(octavo_loader *load, int layer) {
    const octavo_model_config *c = load->config;
    octavo_latent_weights *w = &load->weights->layers[layer].latent;
    const octavo_row_map whole = {0};
    octavo_status status;
    if ((status = load_queries(load, layer)) ||
        (status = octavo_load_matrix(load, &w->kv_a, c->head_dim, c->d, whole,
                                     OCTAVO_ROLE_LATENT_KV_A, layer)) ||
        (status = octavo_load_bias(load, &w->kv_a_bias, c->head_dim, c->qkv_bias, whole,
                                   OCTAVO_ROLE_LATENT_KV_A_BIAS, layer)) ||
        (status = octavo_load_vector(load, &w->kv_norm, c->latent.kv_rank, c->norm_offset, whole,
                                     OCTAVO_ROLE_LATENT_KV_NORM, layer)))
        return status;
    return load_out(load, layer);
}
