/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/inspect.h: a file's header, and on demand its step program, as one JSON document.
 */
#include "octavo/inspect.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/inspect_count.h"
#include "engine/source.h"
#include "formats/hf_folder_file.h"
#include "model/family.h"
#include "model/network.h"
#include "program/op.h"

#include "octavo/tokenizer.h"

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

typedef struct type_count {
    const char *name;
    unsigned long long tensors, bytes;
} type_count;

/* By first appearance. */
static void put_types(octavo_buffer *out, const octavo_checkpoint *checkpoint) {
    type_count counts[64] = {{0}}; /* more than there are types; unknown ones beyond are left out */
    size_t n = 0;
    for (size_t i = 0; i < octavo_checkpoint_n_tensors(checkpoint); i++) {
        const octavo_checkpoint_tensor tensor = octavo_checkpoint_tensor_at(checkpoint, i);
        size_t t = 0;
        while (t < n && strcmp(counts[t].name, tensor.type_name) != 0)
            t++;
        if (t == OCTAVO_COUNT(counts)) continue;
        if (t == n) counts[n++].name = tensor.type_name;
        counts[t].tensors++;
        counts[t].bytes += tensor.bytes;
    }
    octavo_buffer_puts(out, "\"types\":{");
    for (size_t t = 0; t < n; t++) {
        if (t > 0) octavo_buffer_putc(out, ',');
        octavo_buffer_json_string(out, counts[t].name, strlen(counts[t].name));
        octavo_buffer_printf(out, ":{\"tensors\":%llu,\"bytes\":%llu}", counts[t].tensors,
                             counts[t].bytes);
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

static void put_tensors(octavo_buffer *out, const octavo_checkpoint *checkpoint) {
    octavo_buffer_puts(out, "\"tensors\":[");
    for (size_t i = 0; i < octavo_checkpoint_n_tensors(checkpoint); i++) {
        const octavo_checkpoint_tensor tensor = octavo_checkpoint_tensor_at(checkpoint, i);
        octavo_buffer_puts(out, i > 0 ? ",{" : "{");
        put_string(out, "name", tensor.name);
        octavo_buffer_puts(out, ",");
        put_string(out, "type", tensor.type_name);
        octavo_buffer_puts(out, ",\"shape\":[");
        for (int d = 0; d < tensor.n_dims; d++)
            octavo_buffer_printf(out, "%s%llu", d > 0 ? "," : "",
                                 (unsigned long long)tensor.extent[d]);
        octavo_buffer_printf(out, "],\"bytes\":%zu}", tensor.bytes);
    }
    octavo_buffer_puts(out, "]");
}

/* ---- a folder ---- */

static void put_json(octavo_buffer *out, const char *key, const json_t *value) {
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    octavo_buffer_printf(out, "\"%s\":%s", key, text ? text : "null");
    /* jansson's own allocation, hence its own way to free it. */
    json_malloc_t take;
    json_free_t give;
    json_get_alloc_funcs(&take, &give);
    give(text);
}

/* A tokenizer that does not describe itself: the name of its file, and how many tokens it has. */
static void put_plain_tokenizer(octavo_buffer *out, const char *path) {
    octavo_tokenizer *tokenizer = NULL;
    octavo_error why;
    if (octavo_tokenizer_open(path, &tokenizer, &why) != OCTAVO_OK) {
        octavo_buffer_puts(out, "\"tokenizer\":null");
        return;
    }
    const char *slash = strrchr(path, '/');
    octavo_buffer_puts(out, "\"tokenizer\":{");
    put_string(out, "model", slash != NULL ? slash + 1 : path);
    octavo_buffer_printf(out, ",\"tokens\":%ld}", (long)octavo_tokenizer_size(tokenizer));
    octavo_tokenizer_destroy(&tokenizer);
}

/* What tokenizer.json says of itself; null where there is none or it is no JSON. */
static void put_folder_tokenizer(octavo_buffer *out, const octavo_hf_folder *folder) {
    json_t *root = NULL;
    const char *path = folder->tokenizer;
    const char *end = path != NULL ? path + strlen(path) : NULL;
    bool is_described =
        path != NULL && strcmp(end - strlen("tokenizer.json"), "tokenizer.json") == 0;
    if (path != NULL && !is_described) {
        put_plain_tokenizer(out, path);
        return;
    }
    if (path == NULL || octavo_hf_json_read(path, &root, NULL) != OCTAVO_OK) {
        octavo_buffer_puts(out, "\"tokenizer\":null");
        return;
    }
    const json_t *model = json_object_get(root, "model");
    const json_t *vocab = json_object_get(model, "vocab");
    octavo_buffer_puts(out, "\"tokenizer\":{");
    put_json(out, "model", json_object_get(model, "type"));
    octavo_buffer_printf(out, ",\"tokens\":%zu}",
                         json_is_array(vocab) ? json_array_size(vocab) : json_object_size(vocab));
    json_decref(root);
}

static octavo_status put_folder(octavo_buffer *out, const octavo_checkpoint *checkpoint,
                                octavo_error *error) {
    char *chat = NULL;
    octavo_status status = octavo_source_chat_template(checkpoint, &chat, error);
    if (status) return status;
    put_json(out, "metadata", checkpoint->config);
    octavo_buffer_putc(out, ',');
    put_folder_tokenizer(out, &checkpoint->folder);
    octavo_buffer_putc(out, ',');
    put_string(out, "chat_template", chat);
    octavo_free(chat);
    return OCTAVO_OK;
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
        if ((strchr("trs", tensor->axes[i]) && tensor->extent[i] == 0) || tensor->axes[i] == 'p')
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

static const char *activation_name(octavo_activation activation) {
    switch (activation) {
    case OCTAVO_ACTIVATION_SILU:
        return "silu";
    case OCTAVO_ACTIVATION_GELU_TANH:
        return "gelu_tanh";
    case OCTAVO_ACTIVATION_GELU:
        return "gelu";
    case OCTAVO_ACTIVATION_SWIGLU:
        return "swiglu";
    case OCTAVO_ACTIVATION_RELU2:
        return "relu2";
    }
    return "?";
}

/* What tells two ops of a kind apart. */
static void put_params(octavo_buffer *out, const octavo_program *program, const octavo_op *op) {
    const octavo_op_params *p = &op->params;
    if (p->slices.n > 0) put_slices(out, &p->slices);
    switch (op->kind) {
    case OCTAVO_OP_NORM:
        octavo_buffer_printf(out, ",\"norm\":\"%s\",\"eps\":%.9g",
                             p->norm == OCTAVO_NORM_LAYER ? "layer" : "rms", (double)p->eps);
        break;
    case OCTAVO_OP_HEAD_NORM:
        octavo_buffer_printf(out, ",\"norm\":\"rms\",\"eps\":%.9g", (double)p->eps);
        break;
    case OCTAVO_OP_ROPE_TABLE:
        octavo_buffer_printf(out, ",\"scale\":%.9g", (double)p->speeds.scale);
        if (p->speeds.long_frequencies)
            octavo_buffer_printf(out, ",\"short_length\":%lld", (long long)p->speeds.short_length);
        break;
    case OCTAVO_OP_ROPE:
        octavo_buffer_printf(out, ",\"pairing\":\"%s\"",
                             p->pairing == OCTAVO_ROPE_HALF ? "half" : "pairwise");
        if (p->first_lane > 0)
            octavo_buffer_printf(out, ",\"first_lane\":%lld", (long long)p->first_lane);
        break;
    case OCTAVO_OP_ATTENTION:
        octavo_buffer_printf(
            out, ",\"window\":%lld,\"chunk\":%lld,\"scale\":%.9g,\"soft_cap\":%.9g",
            (long long)program->plans[p->plan].window, (long long)program->plans[p->plan].chunk,
            (double)p->scale, (double)p->soft_cap);
        if (program->plans[p->plan].value_lanes > 0)
            octavo_buffer_printf(out, ",\"value_lanes\":%lld",
                                 (long long)program->plans[p->plan].value_lanes);
        if (program->plans[p->plan].is_encoder) octavo_buffer_puts(out, ",\"encoder\":true");
        break;
    case OCTAVO_OP_GATE:
        octavo_buffer_printf(out, ",\"activation\":\"%s\"", activation_name(p->act));
        break;
    case OCTAVO_OP_EMBED:
    case OCTAVO_OP_ADD:
        octavo_buffer_printf(out, ",\"scale\":%.9g", (double)p->scale);
        break;
    case OCTAVO_OP_TEMPERATURE:
        octavo_buffer_printf(out, ",\"scale\":%.9g,\"period\":%.9g,\"first\":%d",
                             (double)p->temperature.scale, (double)p->temperature.period,
                             p->temperature.first);
        break;
    case OCTAVO_OP_ROUTE:
        octavo_buffer_printf(
            out, ",\"scores\":\"%s\",\"chosen\":%d,\"normalised\":%s,\"of\":\"%s\",\"scale\":%.9g",
            p->router.is_sigmoid ? "sigmoid" : "softmax", p->router.n_chosen,
            p->router.is_normalised ? "true" : "false", p->router.is_for_input ? "input" : "output",
            (double)p->router.scale);
        if (p->router.n_groups > 0)
            octavo_buffer_printf(out, ",\"groups\":%d,\"chosen_groups\":%d", p->router.n_groups,
                                 p->router.n_chosen_groups);
        break;
    case OCTAVO_OP_SCALE:
        octavo_buffer_printf(out, ",\"scale\":%.9g,\"soft_cap\":%.9g", (double)p->scale,
                             (double)p->soft_cap);
        break;
    default:
        break;
    }
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
    put_params(out, program, op);
    octavo_buffer_printf(
        out,
        ",\"weight_bytes\":%.0f,\"activation_bytes_per_row\":%.0f,\"operations_per_row\":%.0f}",
        cost.weight_bytes, cost.activation_bytes, cost.operations);
}

static octavo_status put_program(octavo_buffer *out, const octavo_checkpoint *checkpoint,
                                 const octavo_inspect_options *options, octavo_error *error) {
    octavo_network network;
    octavo_program program;
    octavo_status status = octavo_network_load(
        &network, checkpoint, &(octavo_weights_options){.weights = options->weights}, error);
    if (status) return status;
    status = octavo_network_build(&network, &program, options->chunk, options->chunk,
                                  options->is_exact, error);
    if (status) {
        octavo_network_deinit(&network);
        return status;
    }
    octavo_buffer_printf(out,
                         ",\"program\":{\"weights\":\"%s\",\"packed_bytes\":%llu,\"max_tokens\":%d,"
                         "\"arena_bytes\":%zu,\"tensors\":[",
                         octavo_weights_name(options->weights),
                         (unsigned long long)network.weights.packed_bytes, program.max_tokens,
                         program.arena_bytes);
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

static void put_gguf(octavo_buffer *out, const octavo_gguf *gguf,
                     const octavo_inspect_options *options) {
    put_all_metadata(out, gguf, options->max_array_items);
    octavo_buffer_putc(out, ',');
    put_tokenizer(out, gguf);
    octavo_buffer_putc(out, ',');
    put_metadata(out, "chat_template", gguf, "tokenizer.chat_template");
}

static void put_architecture(octavo_buffer *out, const octavo_checkpoint *checkpoint) {
    if (checkpoint->gguf)
        put_metadata(out, "architecture", checkpoint->gguf, "general.architecture");
    else
        put_json(out, "architecture",
                 json_object_get(octavo_family_text_config(checkpoint), "model_type"));
}

static octavo_status put_header(octavo_buffer *out, const octavo_checkpoint *checkpoint,
                                const char *path, const octavo_inspect_options *options,
                                octavo_error *error) {
    const octavo_gguf *gguf = checkpoint->gguf;
    uint64_t bytes = 0;
    for (size_t i = 0; i < octavo_checkpoint_n_tensors(checkpoint); i++)
        bytes += octavo_checkpoint_tensor_at(checkpoint, i).bytes;
    octavo_buffer_puts(out, "{");
    put_string(out, "path", path);
    if (gguf)
        octavo_buffer_printf(out, ",\"format\":\"gguf\",\"version\":%u", octavo_gguf_version(gguf));
    else
        octavo_buffer_puts(out, ",\"format\":\"safetensors\",\"version\":null");
    octavo_buffer_printf(out, ",\"parts\":%zu,", octavo_checkpoint_n_parts(checkpoint));
    put_architecture(out, checkpoint);
    octavo_buffer_printf(out, ",\"bytes\":%llu,\"parameters\":%llu,", (unsigned long long)bytes,
                         (unsigned long long)octavo_count_parameters(checkpoint));
    put_types(out, checkpoint);
    octavo_buffer_putc(out, ',');
    if (gguf) {
        put_gguf(out, gguf, options);
    } else {
        octavo_status status = put_folder(out, checkpoint, error);
        if (status) return status;
    }
    octavo_buffer_putc(out, ',');
    put_tensors(out, checkpoint);
    return OCTAVO_OK;
}

octavo_status octavo_inspect(const char *path, const octavo_inspect_options *given, char **json,
                             octavo_error *error) {
    octavo_inspect_options options;
    octavo_checkpoint checkpoint = {0};
    octavo_buffer out = {0};
    octavo_inspect_options_init(&options);
    if (given) options = *given;
    if (!path || !json || options.size != sizeof options || options.chunk < 1 ||
        options.chunk > 65536 || (unsigned)options.weights > OCTAVO_WEIGHTS_Q4)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "octavo_inspect (arguments): path, json and options of this version "
                           "with weights of a known kind and a chunk of 1 to 65536 are needed");
    octavo_status status = octavo_source_open(path, &checkpoint, error);
    if (status) return status;
    status = put_header(&out, &checkpoint, path, &options, error);
    if (status == OCTAVO_OK && options.with_program)
        status = put_program(&out, &checkpoint, &options, error);
    octavo_buffer_puts(&out, "}");
    if (status == OCTAVO_OK) {
        char *text = octavo_buffer_take(&out);
        if (text)
            *json = text;
        else
            status = octavo_fail_memory(error, "description", out.size);
    }
    octavo_buffer_deinit(&out);
    octavo_checkpoint_close(&checkpoint);
    return status;
}

octavo_status octavo_chat_template_open(const char *path, char **text, octavo_error *error) {
    octavo_checkpoint checkpoint = {0};
    if (!path || !text)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "octavo_chat_template_open (NULL): path and text are needed");
    octavo_status status = octavo_source_open(path, &checkpoint, error);
    if (status) return status;
    status = octavo_source_chat_template(&checkpoint, text, error);
    octavo_checkpoint_close(&checkpoint);
    return status;
}
