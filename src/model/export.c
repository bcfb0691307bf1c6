/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader binds the model as always, and each matrix and vector that it binds becomes rows of a
 * tensor under its GGUF name: so there is no second table of what a family has.
 */
#include "model/export.h"

#include "base/error.h"
#include "base/memory.h"
#include "kernels/weight_convert.h"
#include "model/family.h"
#include "model/weights_type.h"

#include <string.h>

/* ---- names ---- */

/* The role under which GGUF files have what lies in a tensor of `role`. q, k and v, or gate and up,
 * stay in one tensor where they are; experts are apart. */
static octavo_weight_role role_of(const octavo_bound *bound) {
    switch (bound->role) {
    case OCTAVO_ROLE_EXPERT_GATE_UP:
        return bound->is_second ? OCTAVO_ROLE_EXPERT_UP : OCTAVO_ROLE_EXPERT_GATE;
    case OCTAVO_ROLE_EXPERT_GATE_UP_BIAS:
        return bound->is_second ? OCTAVO_ROLE_EXPERT_UP_BIAS : OCTAVO_ROLE_EXPERT_GATE_BIAS;
    case OCTAVO_ROLE_LATENT_KV_B: /* keys are bound with their axes swapped */
        return bound->source->columns.columns > 0 ? OCTAVO_ROLE_LATENT_K_B : OCTAVO_ROLE_LATENT_V_B;
    default:
        return bound->role;
    }
}

static bool is_turned(octavo_weight_role role) {
    return role == OCTAVO_ROLE_ATTN_Q || role == OCTAVO_ROLE_ATTN_K ||
           role == OCTAVO_ROLE_ATTN_Q_BIAS || role == OCTAVO_ROLE_ATTN_K_BIAS;
}

/* ---- tensors ---- */

static octavo_status get_tensor(octavo_export *model, const char *name, octavo_ggml_type type,
                                octavo_export_tensor **found, octavo_error *error) {
    for (size_t i = model->n_tensors; i-- > 0;) {
        if (strcmp(model->tensors[i].name, name) != 0) continue;
        *found = &model->tensors[i];
        if ((*found)->head.type == type) return OCTAVO_OK;
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "tensor \"%s\" (%s): its parts are of different types; GGUF has one for "
                           "all",
                           name, octavo_checkpoint_path(model->checkpoint));
    }
    if (model->n_tensors == model->capacity) {
        const size_t wanted = model->capacity ? model->capacity * 2 : 64;
        octavo_export_tensor *moved =
            octavo_realloc(model->tensors, wanted * sizeof *model->tensors);
        if (!moved) return octavo_fail_memory(error, "tensors", wanted * sizeof *moved);
        model->tensors = moved;
        model->capacity = wanted;
    }
    octavo_export_tensor *made = &model->tensors[model->n_tensors++];
    *made = (octavo_export_tensor){.head.type = type};
    memcpy(made->name, name, strlen(name) + 1);
    *found = made;
    return OCTAVO_OK;
}

static octavo_status add_piece(octavo_export_tensor *tensor, const octavo_export_piece *piece,
                               octavo_error *error) {
    if (tensor->n == tensor->capacity) {
        const int wanted = tensor->capacity ? tensor->capacity * 2 : 1;
        octavo_export_piece *moved =
            octavo_realloc(tensor->pieces, (size_t)wanted * sizeof *tensor->pieces);
        if (!moved)
            return octavo_fail_memory(error, tensor->name, (uint64_t)wanted * sizeof *moved);
        tensor->pieces = moved;
        tensor->capacity = wanted;
    }
    tensor->pieces[tensor->n++] = *piece;
    tensor->n_rows += piece->n;
    return OCTAVO_OK;
}

/* Sources are on the loader's stack. */
static octavo_status keep_cookie(octavo_export *model, octavo_pack_source *source,
                                 octavo_error *error) {
    if (!source->fill) return OCTAVO_OK;
    if (source->cookie_bytes == 0)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "tensor \"%s\" (%s): lies in codes that this version does not write as "
                           "GGUF; it runs from the folder",
                           source->tensor->name, source->tensor->path);
    void *copy = octavo_arena_alloc(&model->arena, source->cookie_bytes);
    if (!copy) return octavo_fail_memory(error, source->tensor->name, source->cookie_bytes);
    memcpy(copy, source->cookie, source->cookie_bytes);
    source->cookie = copy;
    return OCTAVO_OK;
}

static octavo_status visit(void *cookie, const octavo_bound *bound) {
    octavo_export *model = cookie;
    const octavo_weight_role role = role_of(bound);
    octavo_ggml_type type = OCTAVO_GGML_F32;
    octavo_export_piece piece = {.n = bound->n, .k = bound->k, .values = bound->values};
    octavo_export_tensor *tensor = NULL;
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_status status;
    if (bound->source) {
        piece.tensor = *bound->source->tensor;
        piece.source = *bound->source;
        if ((status = keep_cookie(model, &piece.source, bound->error))) return status;
        type = octavo_weight_source_type(bound->source->type);
    }
    octavo_weight_name_gguf(octavo_family_gguf_names(model->architecture), role, bound->layer, 0,
                            name);
    status = get_tensor(model, name, type, &tensor, bound->error);
    if (status || (status = add_piece(tensor, &piece, bound->error))) return status;
    /* a stack has a third axis; a vector, or a matrix of one row, has one */
    octavo_gguf_tensor *head = &tensor->head;
    head->extent[0] = (uint64_t)bound->k;
    head->extent[1] = bound->stack > 0 ? (uint64_t)bound->n : (uint64_t)tensor->n_rows;
    head->extent[2] = bound->stack > 0 ? (uint64_t)tensor->n : 1;
    head->extent[3] = 1;
    head->n_dims = bound->stack > 0 ? 3 : tensor->n_rows > 1 ? 2 : 1;
    if (bound->values && bound->n == 1) { /* biases of one tensor lie one behind the other */
        head->extent[0] = (uint64_t)(bound->k * tensor->n);
        head->extent[1] = 1;
        head->n_dims = 1;
        tensor->n_rows = 1;
    }
    head->bytes = octavo_export_row_bytes(tensor) * (size_t)tensor->n_rows;
    if (is_turned(role))
        tensor->turned =
            model->config.rope_dim == model->config.head_dim ? model->config.head_dim : 0;
    return OCTAVO_OK;
}

octavo_status octavo_export_add_vector(octavo_export *model, const char *name, const float *values,
                                       int64_t n, octavo_error *error) {
    octavo_export_tensor *tensor = NULL;
    const octavo_export_piece piece = {.values = values, .n = 1, .k = n};
    octavo_status status = get_tensor(model, name, OCTAVO_GGML_F32, &tensor, error);
    if (status || (status = add_piece(tensor, &piece, error))) return status;
    tensor->head.n_dims = 1;
    tensor->n_rows = 1;
    tensor->head.extent[0] = (uint64_t)n;
    for (int i = 1; i < OCTAVO_GGUF_MAX_DIMS; i++)
        tensor->head.extent[i] = 1;
    tensor->head.bytes = (size_t)n * sizeof(float);
    return OCTAVO_OK;
}

/* ---- the whole ---- */

/* Latent attention as newer files describe it: widths of the cached row, and of heads apart. */
static void add_latent(octavo_export *model) {
    const octavo_model_config *c = &model->config;
    const octavo_latent_config *l = &c->latent;
    octavo_config_notes *notes = &model->notes;
    static const char log_key[] = "rope.scaling.yarn_log_multiplier";
    const octavo_config_note *found = octavo_config_note_find(notes, log_key);
    const float by = found ? found->value.f32 * 0.1f : 0.0f;
    octavo_config_note_integer(notes, "attention.head_count_kv", c->n_kv_heads);
    octavo_config_note_integer(notes, "attention.key_length", c->head_dim);
    octavo_config_note_integer(notes, "attention.value_length", l->kv_rank);
    octavo_config_note_integer(notes, "attention.key_length_mla", l->key_dim + c->rope_dim);
    octavo_config_note_integer(notes, "attention.value_length_mla", l->value_dim);
    octavo_config_note_integer(notes, "rope.dimension_count", c->rope_dim);
    octavo_config_note_integer(notes, "expert_gating_func", c->router.is_sigmoid ? 2 : 1);
    if (found) octavo_config_note_number(notes, log_key, by);
}

/* What is not read under a key that GGUF has too, or means something else there. */
static void add_notes(octavo_export *model) {
    const octavo_model_config *c = &model->config;
    octavo_config_notes *notes = &model->notes;
    bool has_windows = false, has_others = false;
    octavo_config_note_integer(notes, "vocab_size", c->vocab);
    octavo_config_note_integer(notes, "feed_forward_length", c->ffw);
    octavo_config_note_remove(notes, "expert_count");
    if (c->n_experts > 0) octavo_config_note_integer(notes, "expert_count", c->n_experts);
    for (int i = 0; i < c->n_layers; i++) {
        has_windows |= c->layers[i].window > 0;
        has_others |= c->layers[i].window == 0;
        if (c->layers[i].window > 0) /* of encoders files give that to both sides together */
            octavo_config_note_integer(notes, "attention.sliding_window",
                                       c->is_encoder ? 2 * (c->layers[i].window - 1)
                                                     : c->layers[i].window);
    }
    if (c->latent.kv_rank > 0) add_latent(model);
    octavo_config_note_remove(notes, "attention.sliding_window_pattern");
    if (has_windows && has_others)
        octavo_config_note_put(notes,
                               (octavo_config_note){.key = "attention.sliding_window_pattern",
                                                    .type = OCTAVO_GGUF_ARRAY});
}

octavo_status octavo_export_init(octavo_export *model, octavo_checkpoint *checkpoint,
                                 octavo_error *error) {
    octavo_export made = {.checkpoint = checkpoint};
    octavo_status status;
    *model = (octavo_export){0};
    if ((status = octavo_config_load_noted(&made.config, checkpoint, &made.notes, error)))
        return status;
    made.architecture = octavo_family_gguf_of(made.config.architecture);
    if (!made.architecture) {
        status = octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                             "model (%s): GGUF has no architecture for %s; it runs from the folder",
                             octavo_checkpoint_path(checkpoint), made.config.architecture);
        octavo_config_deinit(&made.config);
        return status;
    }
    add_notes(&made);
    *model = made;
    const octavo_weights_options options = {.visit = visit, .cookie = model};
    /* what has to be there before the file is read again comes first */
    if ((status = octavo_export_rope(model, error)) == OCTAVO_OK)
        status = octavo_weights_load(&model->weights, checkpoint, &model->config, &options, error);
    for (size_t i = 0; i < model->n_tensors; i++)
        model->tensors[i].head.name = model->tensors[i].name;
    if (status) octavo_export_deinit(model);
    return status;
}

void octavo_export_deinit(octavo_export *model) {
    for (size_t i = 0; i < model->n_tensors; i++)
        octavo_free(model->tensors[i].pieces);
    octavo_free(model->tensors);
    octavo_free(model->rope_values);
    octavo_arena_deinit(&model->arena);
    octavo_weights_deinit(&model->weights);
    octavo_config_deinit(&model->config);
    *model = (octavo_export){0};
}

/* ---- rows ---- */

/* Types that GGUF has not become F32. */
static bool is_widened(const octavo_export_piece *piece, octavo_ggml_type type) {
    octavo_weight_type packed;
    if (piece->source.order) return true;
    return !octavo_weight_type_of(type, &packed) || packed != piece->source.type;
}

size_t octavo_export_row_bytes(const octavo_export_tensor *tensor) {
    const octavo_export_piece *piece = &tensor->pieces[0];
    if (tensor->head.n_dims == 1 && piece->values) /* biases of several one behind the other */
        return (size_t)tensor->head.extent[0] * sizeof(float);
    if (piece->values || is_widened(piece, tensor->head.type))
        return (size_t)piece->k * sizeof(float);
    return octavo_pack_row_bytes(&piece->source, piece->k);
}

/* A panel of rows as they lie in the folder. */
static size_t panel_bytes(const octavo_export_piece *piece) {
    return octavo_align_up(octavo_pack_row_bytes(&piece->source, piece->k) * OCTAVO_PANEL,
                           OCTAVO_ALIGN);
}

static size_t row_bytes_f32(const octavo_export_piece *piece) {
    return octavo_align_up((size_t)piece->k * sizeof(float), OCTAVO_ALIGN);
}

size_t octavo_export_scratch_bytes(const octavo_export_tensor *tensor) {
    const octavo_export_piece *piece = &tensor->pieces[0];
    size_t bytes = 0;
    if (piece->values || !is_widened(piece, tensor->head.type)) return OCTAVO_ALIGN;
    /* so many bytes as there are in the file, and a few times more, can be counted */
    if (!octavo_weight_convert_bytes(piece->source.type, OCTAVO_WEIGHT_F32, piece->k, &bytes))
        return SIZE_MAX;
    return panel_bytes(piece) + row_bytes_f32(piece) + bytes;
}

/* Where row r of heads of `width` comes from: in a head row 2i of the lower half, 2i + 1 of the
 * upper. */
static int64_t turn(int64_t row, int64_t width) {
    const int64_t head = row / width * width, at = row % width;
    return head + at % 2 * (width / 2) + at / 2;
}

static void copy_values(const octavo_export_piece *piece, uint8_t *to, int64_t row, int64_t n,
                        int64_t turned) {
    const float *from = piece->values + row * piece->k;
    for (int64_t i = 0; i < n * piece->k; i++)
        memcpy(to + (size_t)i * sizeof *from, from + (turned ? turn(i, turned) : i), sizeof *from);
}

/* Inputs as they are counted, from where they stand in a row. */
static void put_in_order(float *row, const int32_t *order, int64_t k, float *copy) {
    memcpy(copy, row, (size_t)k * sizeof *row);
    for (int64_t i = 0; i < k; i++)
        row[order[i]] = copy[i];
}

/* At most a panel. */
static bool copy_some(const octavo_export_tensor *tensor, const octavo_export_piece *piece,
                      uint8_t *to, int64_t row, int n, uint8_t *scratch) {
    octavo_pack_source source = piece->source;
    source.tensor = &piece->tensor;
    if (!is_widened(piece, tensor->head.type))
        return octavo_pack_source_rows(&source, to, row, n, 0, piece->k);
    if (!octavo_pack_source_rows(&source, scratch, row, n, 0, piece->k)) return false;
    octavo_weight_widen(source.type, (float *)(void *)to, scratch,
                        octavo_pack_row_bytes(&source, piece->k), n, piece->k,
                        scratch + panel_bytes(piece) + row_bytes_f32(piece));
    for (int i = 0; i < n && source.order; i++)
        put_in_order((float *)(void *)to + i * piece->k, source.order, piece->k,
                     (float *)(void *)(scratch + panel_bytes(piece)));
    return true;
}

static bool copy_rows(const octavo_export_tensor *tensor, const octavo_export_piece *piece,
                      uint8_t *to, int64_t row, int64_t n, int64_t turned, uint8_t *scratch) {
    const size_t row_bytes = octavo_export_row_bytes(tensor);
    const int64_t most = turned ? 1 : OCTAVO_PANEL;
    bool is_right = true;
    for (int64_t i = 0; i < n; i += most) {
        const int some = (int)(n - i < most ? n - i : most);
        const int64_t from = turned ? turn(row + i, turned) : row + i;
        is_right &= copy_some(tensor, piece, to + (size_t)i * row_bytes, from, some, scratch);
    }
    return is_right;
}

bool octavo_export_rows(const octavo_export *model, const octavo_export_tensor *tensor, uint8_t *to,
                        int64_t row, int64_t n, uint8_t *scratch) {
    const int64_t turned = model->is_turned ? tensor->turned : 0;
    const size_t row_bytes = octavo_export_row_bytes(tensor);
    const bool is_vector = tensor->head.n_dims == 1 && tensor->pieces[0].values;
    bool is_right = true;
    for (int i = 0; i < tensor->n && n > 0; i++) {
        const octavo_export_piece *piece = &tensor->pieces[i];
        if (is_vector) { /* one row of all */
            copy_values(piece, to, 0, 1, turned);
            to += (size_t)piece->k * sizeof(float);
            continue;
        }
        if (row >= piece->n) {
            row -= piece->n;
            continue;
        }
        const int64_t some = piece->n - row < n ? piece->n - row : n;
        if (piece->values)
            copy_values(piece, to, row, some, turned);
        else
            is_right &= copy_rows(tensor, piece, to, row, some, turned, scratch);
        to += (size_t)some * row_bytes;
        n -= some;
        row = 0;
    }
    return is_right;
}
