/* SPDX-License-Identifier: Apache-2.0
 *
 * Two kinds of source behind one view of rows.
 */
#include "engine/quantize_source.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/source.h"
#include "engine/vocab_export.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

octavo_status octavo_quantize_source_open(const char *path, octavo_quantize_source *source,
                                          octavo_error *error) {
    struct stat facts;
    *source = (octavo_quantize_source){0};
    if (stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode))
        return octavo_gguf_open(path, &source->gguf, error);
    octavo_status status = octavo_checkpoint_open_folder(path, &source->checkpoint, error);
    if (status) return status;
    status = octavo_export_init(&source->model, &source->checkpoint, error);
    if (status) octavo_checkpoint_close(&source->checkpoint);
    return status;
}

void octavo_quantize_source_close(octavo_quantize_source *source) {
    if (source->gguf) {
        octavo_gguf_close(&source->gguf);
        return;
    }
    octavo_free_aligned(source->rows);
    octavo_free_aligned(source->scratch);
    octavo_export_deinit(&source->model);
    octavo_checkpoint_close(&source->checkpoint);
}

/* ---- files ---- */

static bool is_same_file(const char *path, const char *out) {
    struct stat a, b;
    return stat(path, &a) == 0 && stat(out, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Parts lie beside the first, whose path is whole; messages cut long ones. */
static bool gguf_has(const octavo_gguf *gguf, const char *path, const char *out) {
    const char *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    bool is_same = is_same_file(path, out);
    for (size_t i = 1; i < octavo_gguf_n_parts(gguf) && !is_same; i++) {
        octavo_buffer name = {0};
        const char *shown = octavo_gguf_part_path(gguf, i), *last = strrchr(shown, '/');
        octavo_buffer_append(&name, path, folder);
        octavo_buffer_puts(&name, last ? last + 1 : shown);
        is_same = !name.failed && is_same_file(name.data, out);
        octavo_buffer_deinit(&name);
    }
    return is_same;
}

bool octavo_quantize_source_has(const octavo_quantize_source *source, const char *path,
                                const char *out) {
    if (source->gguf) return gguf_has(source->gguf, path, out);
    const octavo_hf_folder *folder = &source->checkpoint.folder;
    const char *const files[] = {
        folder->config,           folder->weights,           folder->tokenizer,
        folder->tokenizer_config, folder->generation_config, folder->chat_template};
    for (size_t i = 0; i < OCTAVO_COUNT(files); i++)
        if (files[i] && is_same_file(files[i], out)) return true;
    const octavo_safetensors *parts = source->checkpoint.safetensors;
    for (size_t i = 0; i < octavo_safetensors_n_parts(parts); i++)
        if (is_same_file(octavo_safetensors_part_path(parts, i), out)) return true;
    return false;
}

/* ---- the head ---- */

size_t octavo_quantize_source_n(const octavo_quantize_source *source) {
    return source->gguf ? octavo_gguf_n_tensors(source->gguf) : source->model.n_tensors;
}

const octavo_gguf_tensor *octavo_quantize_source_at(const octavo_quantize_source *source,
                                                    size_t i) {
    return source->gguf ? octavo_gguf_tensor_at(source->gguf, i) : &source->model.tensors[i].head;
}

size_t octavo_quantize_source_n_first(const octavo_quantize_source *source) {
    return source->gguf ? 0 : source->model.n_first;
}

static bool is_replaced(const char *key) {
    return strcmp(key, "general.file_type") == 0 ||
           strcmp(key, "general.quantization_version") == 0 || strncmp(key, "split.", 6) == 0;
}

static octavo_gguf_string string_of(const char *text) {
    return (octavo_gguf_string){text, strlen(text)};
}

static void put_note(const octavo_export *model, const octavo_config_note *note,
                     octavo_gguf_writer *writer) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", model->architecture, note->key);
    switch (note->type) {
    case OCTAVO_GGUF_F32:
        octavo_gguf_writer_put_f32(writer, key, note->value.f32);
        break;
    case OCTAVO_GGUF_BOOL:
        octavo_gguf_writer_put_bool(writer, key, note->value.flag);
        break;
    case OCTAVO_GGUF_STRING:
        octavo_gguf_writer_put_string(writer, key, note->value.text);
        break;
    case OCTAVO_GGUF_ARRAY: /* which layers slide */
        octavo_gguf_writer_put_array(writer, key, OCTAVO_GGUF_BOOL,
                                     (uint64_t)model->config.n_layers);
        for (int i = 0; i < model->config.n_layers; i++)
            octavo_gguf_writer_put_item(writer, OCTAVO_GGUF_BOOL,
                                        model->config.layers[i].window > 0);
        break;
    default:
        octavo_gguf_writer_put_u32(writer, key, note->value.u32);
        break;
    }
}

/* The folder's own name. */
static octavo_gguf_string name_of(const char *path) {
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/')
        end--;
    begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return (octavo_gguf_string){path + begin, end - begin};
}

static octavo_status put_folder(const octavo_quantize_source *source, octavo_gguf_writer *writer,
                                octavo_error *error) {
    const octavo_export *model = &source->model;
    char *chat = NULL;
    octavo_gguf_writer_put_string(writer, "general.architecture", string_of(model->architecture));
    octavo_gguf_writer_put_string(writer, "general.type", string_of("model"));
    octavo_gguf_writer_put_string(writer, "general.name", name_of(source->checkpoint.folder.path));
    for (int i = 0; i < model->notes.n; i++)
        put_note(model, &model->notes.items[i], writer);
    octavo_status status = octavo_source_chat_template(&source->checkpoint, &chat, error);
    if (status == OCTAVO_OK && chat)
        octavo_gguf_writer_put_string(writer, "tokenizer.chat_template", string_of(chat));
    octavo_free(chat);
    return status ? status
                  : octavo_vocab_export(&source->checkpoint.folder, model->config.vocab, writer,
                                        error);
}

octavo_status octavo_quantize_source_put(const octavo_quantize_source *source,
                                         octavo_gguf_writer *writer, octavo_error *error) {
    const octavo_gguf *gguf = source->gguf;
    if (!gguf) return put_folder(source, writer, error);
    for (size_t i = 0; i < octavo_gguf_n_metadata(gguf); i++)
        if (!is_replaced(octavo_gguf_metadata_key(gguf, i)))
            octavo_gguf_writer_copy_metadata(writer, gguf, i);
    return OCTAVO_OK;
}

octavo_status octavo_quantize_source_check(octavo_quantize_source *source,
                                           octavo_gguf_writer *writer, octavo_error *error) {
    if (source->gguf) return OCTAVO_OK;
    octavo_status status = octavo_gguf_writer_stretch(writer, error);
    return status ? status
                  : octavo_export_check(&source->model, octavo_gguf_writer_partial(writer), error);
}

/* ---- rows ---- */

octavo_status octavo_quantize_source_begin(octavo_quantize_source *source, size_t i, int64_t max,
                                           octavo_error *error) {
    if (source->gguf) {
        const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(source->gguf, i);
        octavo_gguf_will_need(source->gguf, tensor, 0, tensor->bytes);
        return OCTAVO_OK;
    }
    const octavo_export_tensor *tensor = &source->model.tensors[i];
    const int64_t n = tensor->n_rows < max ? tensor->n_rows : max;
    const size_t bytes = (size_t)n * octavo_export_row_bytes(tensor);
    const size_t scratch_bytes = octavo_export_scratch_bytes(tensor);
    octavo_free_aligned(source->rows);
    octavo_free_aligned(source->scratch);
    source->rows = octavo_alloc_aligned(bytes);
    source->scratch = octavo_alloc_aligned(scratch_bytes);
    if (!source->rows || !source->scratch)
        return octavo_fail_memory(error, tensor->name, bytes + scratch_bytes);
    for (int p = 0; p < tensor->n; p++)
        if (!tensor->pieces[p].values && tensor->pieces[p].source.begin == 0)
            octavo_checkpoint_will_need(&source->checkpoint, &tensor->pieces[p].tensor, 0,
                                        tensor->pieces[p].tensor.bytes);
    return OCTAVO_OK;
}

static size_t row_bytes_of(const octavo_gguf_tensor *tensor) {
    uint64_t bytes = 0;
    (void)octavo_ggml_row_bytes(octavo_ggml_type_lookup((uint32_t)tensor->type), tensor->extent[0],
                                &bytes);
    return (size_t)bytes;
}

const uint8_t *octavo_quantize_source_rows(octavo_quantize_source *source, size_t i, int64_t row,
                                           int64_t n) {
    if (source->gguf) {
        const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(source->gguf, i);
        return tensor->data + (size_t)row * row_bytes_of(tensor);
    }
    return octavo_export_rows(&source->model, &source->model.tensors[i], source->rows, row, n,
                              source->scratch)
               ? source->rows
               : NULL;
}

void octavo_quantize_source_end(octavo_quantize_source *source, size_t i, int64_t row, int64_t n) {
    if (source->gguf) {
        const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(source->gguf, i);
        const size_t bytes = row_bytes_of(tensor);
        octavo_gguf_drop(source->gguf, tensor, (size_t)row * bytes, (size_t)n * bytes);
        return;
    }
    const octavo_export_tensor *tensor = &source->model.tensors[i];
    if (row + n < tensor->n_rows) return;
    for (int p = 0; p < tensor->n; p++)
        if (!tensor->pieces[p].values)
            octavo_checkpoint_drop(&source->checkpoint, &tensor->pieces[p].tensor, 0,
                                   tensor->pieces[p].tensor.bytes);
}
