/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/inspect.h: a file's header, and on demand its step program, as one JSON document.
 */
#include "octavo/inspect.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/source.h"
#include "model/network.h"
#include "program/op.h"

#include <string.h>

void octavo_inspect_options_init(octavo_inspect_options *options) {
    *options =
        (octavo_inspect_options){.size = sizeof *options, .chunk = 512, .max_array_items = 8};
}

static void put_string(octavo_buffer *out, const char *key, const char *text) {
    octavo_buffer_printf(out, "\"%s\":", key);
    if (text)
        octavo_buffer_json_string(out, text, strlen(text));
    else
        octavo_buffer_puts(out, "null");
}

/* The value of a metadata key as it stands in the file, or null. */
static void put_metadata(octavo_buffer *out, const char *name, const octavo_gguf *gguf,
                         const char *key) {
    ptrdiff_t index = octavo_gguf_metadata_find(gguf, key);
    octavo_buffer_printf(out, "\"%s\":", name);
    if (index >= 0)
        octavo_gguf_metadata_json(gguf, (size_t)index, 0, out);
    else
        octavo_buffer_puts(out, "null");
}

static uint64_t elements_of(const octavo_gguf_tensor *tensor) {
    uint64_t n = 1;
    for (int i = 0; i < tensor->n_dims; i++)
        n *= tensor->extent[i];
    return n;
}

static void put_types(octavo_buffer *out, const octavo_gguf *gguf) {
    size_t n_types;
    const octavo_ggml_type_info *types = octavo_ggml_types(&n_types);
    bool is_first = true;
    octavo_buffer_puts(out, "\"types\":{");
    for (size_t t = 0; t < n_types; t++) {
        uint64_t tensors = 0, bytes = 0;
        for (size_t i = 0; i < octavo_gguf_n_tensors(gguf); i++) {
            const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(gguf, i);
            if (tensor->type != types[t].type) continue;
            tensors++;
            bytes += tensor->bytes;
        }
        if (tensors == 0) continue;
        octavo_buffer_printf(out, "%s\"%s\":{\"tensors\":%llu,\"bytes\":%llu}", is_first ? "" : ",",
                             types[t].name, (unsigned long long)tensors, (unsigned long long)bytes);
        is_first = false;
    }
    octavo_buffer_puts(out, "}");
}

static void put_all_metadata(octavo_buffer *out, const octavo_gguf *gguf, size_t max_items) {
    octavo_buffer_puts(out, "\"metadata\":{");
    for (size_t i = 0; i < octavo_gguf_n_metadata(gguf); i++) {
        const char *key = octavo_gguf_metadata_key(gguf, i);
        if (i > 0) octavo_buffer_putc(out, ',');
        octavo_buffer_json_string(out, key, strlen(key));
        octavo_buffer_putc(out, ':');
        octavo_gguf_metadata_json(gguf, i, max_items, out);
    }
    octavo_buffer_puts(out, "}");
}

static void put_tokenizer(octavo_buffer *out, const octavo_gguf *gguf) {
    octavo_gguf_array tokens;
    if (octavo_gguf_get_strings(gguf, "tokenizer.ggml.tokens", &tokens, NULL) != OCTAVO_OK) {
        octavo_buffer_puts(out, "\"tokenizer\":null");
        return;
    }
    octavo_buffer_puts(out, "\"tokenizer\":{");
    put_metadata(out, "model", gguf, "tokenizer.ggml.model");
    octavo_buffer_putc(out, ',');
    put_metadata(out, "pre", gguf, "tokenizer.ggml.pre");
    octavo_buffer_printf(out, ",\"tokens\":%zu,", tokens.count);
    put_metadata(out, "bos", gguf, "tokenizer.ggml.bos_token_id");
    octavo_buffer_putc(out, ',');
    put_metadata(out, "eos", gguf, "tokenizer.ggml.eos_token_id");
    octavo_buffer_putc(out, ',');
    put_metadata(out, "adds_bos", gguf, "tokenizer.ggml.add_bos_token");
    octavo_buffer_puts(out, "}");
}

static void put_tensors(octavo_buffer *out, const octavo_gguf *gguf) {
    octavo_buffer_puts(out, "\"tensors\":[");
    for (size_t i = 0; i < octavo_gguf_n_tensors(gguf); i++) {
        const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(gguf, i);
        octavo_buffer_puts(out, i > 0 ? ",{" : "{");
        put_string(out, "name", tensor->name);
        octavo_buffer_puts(out, ",");
        put_string(out, "type", octavo_ggml_type_name(tensor->type));
        octavo_buffer_puts(out, ",\"shape\":[");
        for (int d = tensor->n_dims - 1; d >= 0; d--)
            octavo_buffer_printf(out, "%llu%s", (unsigned long long)tensor->extent[d],
                                 d > 0 ? "," : "");
        octavo_buffer_printf(out, "],\"bytes\":%zu}", tensor->bytes);
    }
    octavo_buffer_puts(out, "]");
}

/* ---- the step program ---- */

static const char *kind_name(octavo_tensor_kind kind) {
    switch (kind) {
    case OCTAVO_TENSOR_ACTIVATION:
        return "activation";
    case OCTAVO_TENSOR_WEIGHT:
        return "weight";
    case OCTAVO_TENSOR_VECTOR:
        return "vector";
    case OCTAVO_TENSOR_CACHE:
        return "cache";
    case OCTAVO_TENSOR_INPUT:
        return "input";
    }
    return "?";
}

static const char *element_name(const octavo_tensor *tensor) {
    if (tensor->kind == OCTAVO_TENSOR_WEIGHT)
        return octavo_weight_info_of(tensor->weight->type)->name;
    if (tensor->kind == OCTAVO_TENSOR_INPUT) return "i32";
    if (tensor->kind == OCTAVO_TENSOR_CACHE) return "cache";
    return tensor->is_q8 ? "q8" : "f32";
}

static void put_program_tensor(octavo_buffer *out, const octavo_tensor *tensor, int id) {
    octavo_buffer_printf(out, "{\"id\":%d,", id);
    put_string(out, "name", tensor->name);
    octavo_buffer_printf(out, ",\"layer\":%d,\"kind\":\"%s\",\"axes\":\"%s\",\"shape\":[",
                         tensor->layer, kind_name(tensor->kind), tensor->axes);
    for (int i = 0; tensor->axes[i]; i++) {
        if (i > 0) octavo_buffer_putc(out, ',');
        if (strchr("trs", tensor->axes[i]) && tensor->extent[i] == 0)
            octavo_buffer_printf(out, "\"%c\"", tensor->axes[i]);
        else
            octavo_buffer_printf(out, "%lld", (long long)tensor->extent[i]);
    }
    octavo_buffer_printf(out, "],\"type\":\"%s\"", element_name(tensor));
    if (tensor->kind == OCTAVO_TENSOR_ACTIVATION && tensor->last_op >= 0)
        octavo_buffer_printf(out, ",\"offset\":%zu,\"row_bytes\":%zu,\"life\":[%d,%d]",
                             tensor->offset, tensor->row_bytes, tensor->first_op, tensor->last_op);
    octavo_buffer_puts(out, "}");
}

static void put_slices(octavo_buffer *out, const octavo_slices *slices) {
    octavo_buffer_puts(out, ",\"slices\":[");
    for (int i = 0; i <= slices->n; i++)
        octavo_buffer_printf(out, "%s%lld", i > 0 ? "," : "", (long long)slices->cut[i]);
    octavo_buffer_puts(out, "]");
}

static void put_op(octavo_buffer *out, const octavo_program *program, int index) {
    const octavo_op *op = &program->ops[index];
    const octavo_op_info *info = octavo_op_info_of(op->kind);
    octavo_op_cost cost = info->cost(program, op, 1);
    octavo_buffer_printf(out, "{\"op\":\"%s\",\"axes\":\"%s\",\"layer\":%d,\"in\":[", info->name,
                         info->axes, op->layer);
    for (int i = 0, n = 0; i < OCTAVO_OP_INPUTS; i++)
        if (op->in[i] != OCTAVO_NO_TENSOR)
            octavo_buffer_printf(out, "%s%d", n++ ? "," : "", op->in[i]);
    octavo_buffer_printf(out, "],\"out\":%d,\"part\":\"%s\"", op->out,
                         index < program->head_begin ? "body" : "head");
    if (op->params.slices.n > 0) put_slices(out, &op->params.slices);
    if (op->kind == OCTAVO_OP_ATTENTION)
        octavo_buffer_printf(out, ",\"window\":%lld,\"scale\":%.9g",
                             (long long)program->plans[op->params.plan].window,
                             (double)op->params.scale);
    octavo_buffer_printf(
        out,
        ",\"weight_bytes\":%.0f,\"activation_bytes_per_row\":%.0f,\"operations_per_row\":%.0f}",
        cost.weight_bytes, cost.activation_bytes, cost.operations);
}

static octavo_status put_program(octavo_buffer *out, const octavo_gguf *gguf,
                                 const octavo_inspect_options *options, octavo_error *error) {
    octavo_network network;
    octavo_program program;
    octavo_status status = octavo_network_load(&network, gguf, &(octavo_weights_options){0}, error);
    if (status) return status;
    status = octavo_network_build(&network, &program, options->chunk, options->chunk,
                                  options->is_exact, error);
    if (status) {
        octavo_network_deinit(&network);
        return status;
    }
    octavo_buffer_printf(out, ",\"program\":{\"max_tokens\":%d,\"arena_bytes\":%zu,\"tensors\":[",
                         program.max_tokens, program.arena_bytes);
    for (int i = 0; i < program.n_tensors; i++) {
        if (i > 0) octavo_buffer_putc(out, ',');
        put_program_tensor(out, &program.tensors[i], i);
    }
    octavo_buffer_puts(out, "],\"ops\":[");
    for (int i = 0; i < program.n_ops; i++) {
        if (i > 0) octavo_buffer_putc(out, ',');
        put_op(out, &program, i);
    }
    octavo_buffer_puts(out, "]}");
    octavo_program_deinit(&program);
    octavo_network_deinit(&network);
    return OCTAVO_OK;
}

static void put_header(octavo_buffer *out, const octavo_gguf *gguf, const char *path,
                       const octavo_inspect_options *options) {
    uint64_t parameters = 0, bytes = 0;
    for (size_t i = 0; i < octavo_gguf_n_tensors(gguf); i++) {
        parameters += elements_of(octavo_gguf_tensor_at(gguf, i));
        bytes += octavo_gguf_tensor_at(gguf, i)->bytes;
    }
    octavo_buffer_puts(out, "{");
    put_string(out, "path", path);
    octavo_buffer_printf(out, ",\"format\":\"gguf\",\"version\":%u,\"parts\":%zu,",
                         octavo_gguf_version(gguf), octavo_gguf_n_parts(gguf));
    put_metadata(out, "architecture", gguf, "general.architecture");
    octavo_buffer_printf(out, ",\"bytes\":%llu,\"parameters\":%llu,", (unsigned long long)bytes,
                         (unsigned long long)parameters);
    put_types(out, gguf);
    octavo_buffer_putc(out, ',');
    put_all_metadata(out, gguf, options->max_array_items);
    octavo_buffer_putc(out, ',');
    put_tokenizer(out, gguf);
    octavo_buffer_putc(out, ',');
    put_metadata(out, "chat_template", gguf, "tokenizer.chat_template");
    octavo_buffer_putc(out, ',');
    put_tensors(out, gguf);
}

octavo_status octavo_inspect(const char *path, const octavo_inspect_options *given, char **json,
                             octavo_error *error) {
    octavo_inspect_options options;
    octavo_gguf *gguf = NULL;
    octavo_buffer out = {0};
    octavo_inspect_options_init(&options);
    if (given) options = *given;
    if (!path || !json || options.size != sizeof options || options.chunk < 1 ||
        options.chunk > 65536)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "octavo_inspect (arguments): path, json and options of this version "
                           "with a chunk of 1 to "
                           "65536 are needed");
    octavo_status status = octavo_source_open(path, &gguf, error);
    if (status) return status;
    put_header(&out, gguf, path, &options);
    if (options.with_program) status = put_program(&out, gguf, &options, error);
    octavo_buffer_puts(&out, "}");
    if (status == OCTAVO_OK) {
        char *text = octavo_buffer_take(&out);
        if (text)
            *json = text;
        else
            status = octavo_fail_memory(error, "description", out.size);
    }
    octavo_buffer_deinit(&out);
    octavo_gguf_close(&gguf);
    return status;
}

octavo_status octavo_chat_template_open(const char *path, char **text, octavo_error *error) {
    octavo_gguf *gguf = NULL;
    if (!path || !text)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "octavo_chat_template_open (NULL): path and text are needed");
    octavo_status status = octavo_source_open(path, &gguf, error);
    if (status) return status;
    status = octavo_gguf_chat_template(gguf, text, error);
    octavo_gguf_close(&gguf);
    return status;
}
