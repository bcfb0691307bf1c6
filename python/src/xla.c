/* SPDX-License-Identifier: Apache-2.0
 *
 * From XLA's call frame to octavo_attention_args. Runs on XLA's threads, without the interpreter.
 */
#include "xla.h"

#include "arguments.h"
#include "base/error.h"
#include "contexts.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define CALL "ragged paged attention"

typedef struct call {
    octavo_attention_args args;
    octavo_py_settings settings;
    int64_t operands; /* bit i: array i is there */
    int64_t n_threads;
    int64_t pin;
    xla_text isa;
} call;

/* JAX reads the message as UTF-8. Only what is quoted from the environment can be anything else. */
static xla_error *fail(const xla_call_frame *frame, octavo_status status, octavo_error *error) {
    for (char *c = error->message; *c != '\0'; c++)
        if ((unsigned char)*c > 0x7f) *c = '?';
    xla_error_args args = {.size = sizeof args,
                           .message = error->message,
                           .code = status == OCTAVO_ERROR_MEMORY ? XLA_RESOURCE_EXHAUSTED
                                                                 : XLA_INVALID_ARGUMENT};
    return frame->api->error_create(&args);
}

/* The minor version of XLA's interface that handlers claim. Only what every version has is used
 * here, so it is always XLA's own, which octavo.jax reads from the header that jaxlib brings: some
 * versions of XLA want it to be equal, and do not tell theirs when they ask. */
static atomic_int claimed_minor;

void octavo_py_xla_claim(int minor) {
    atomic_store(&claimed_minor, minor);
}

/* XLA first asks for the version. */
static bool answer_metadata(const xla_call_frame *frame) {
    if (frame->extensions == NULL || frame->extensions->type != XLA_EXTENSION_METADATA)
        return false;
    xla_metadata *metadata = ((xla_metadata_extension *)(void *)frame->extensions)->metadata;
    metadata->version.major = XLA_MAJOR;
    metadata->version.minor = atomic_load(&claimed_minor);
    metadata->traits = 0;
    return true;
}

/* --- attributes --- */

static bool is_name(const xla_text *name, const char *text) {
    return name->length == strlen(text) && memcmp(name->text, text, name->length) == 0;
}

static octavo_status bad_attribute(const xla_text *name, octavo_error *error) {
    const int length = name->length < 64 ? (int)name->length : 64;
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       CALL " (attribute %.*s): unknown, or of another type", length, name->text);
}

static octavo_status read_integer(call *c, const xla_text *name, int64_t value,
                                  octavo_error *error) {
    if (is_name(name, "operands"))
        c->operands = value;
    else if (is_name(name, "threads"))
        c->n_threads = value;
    else if (is_name(name, "pin"))
        c->pin = value;
    else if (octavo_py_scalar_kind(name->text, name->length) == OCTAVO_PY_INTEGER)
        octavo_py_set_integer(&c->args, name->text, name->length, value);
    else
        return bad_attribute(name, error);
    return OCTAVO_OK;
}

static octavo_status read_attribute(call *c, int type, const xla_text *name, const void *value,
                                    octavo_error *error) {
    if (type == XLA_ATTRIBUTE_STRING && is_name(name, "isa")) {
        c->isa = *(const xla_text *)value;
        return OCTAVO_OK;
    }
    if (type != XLA_ATTRIBUTE_SCALAR) return bad_attribute(name, error);
    const xla_scalar *scalar = value;
    if (scalar->dtype == XLA_S64)
        return read_integer(c, name, *(const int64_t *)scalar->value, error);
    if (scalar->dtype != XLA_F64 ||
        octavo_py_scalar_kind(name->text, name->length) != OCTAVO_PY_REAL)
        return bad_attribute(name, error);
    octavo_py_set_real(&c->args, name->text, name->length, *(const double *)scalar->value);
    return OCTAVO_OK;
}

static octavo_status read_attributes(call *c, const xla_attributes *attributes,
                                     octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    for (int64_t i = 0; i < attributes->n && status == OCTAVO_OK; i++)
        status = read_attribute(c, attributes->types[i], attributes->names[i],
                                attributes->values[i], error);
    if (status == OCTAVO_OK)
        status = octavo_py_settings_make(&c->settings, c->n_threads, c->pin != 0, c->isa.text,
                                         c->isa.length, error);
    return status;
}

/* --- arrays --- */

static int dtype_of(int dtype) {
    switch (dtype) {
    case XLA_F32:
        return OCTAVO_DTYPE_F32;
    case XLA_F16:
        return OCTAVO_DTYPE_F16;
    case XLA_BF16:
        return OCTAVO_DTYPE_BF16;
    case XLA_F8E4M3FN:
        return OCTAVO_DTYPE_FP8_E4M3;
    case XLA_F8E5M2:
        return OCTAVO_DTYPE_FP8_E5M2;
    case XLA_S8:
        return OCTAVO_DTYPE_INT8;
    case XLA_S32:
        return OCTAVO_DTYPE_I32;
    default:
        return -1;
    }
}

static octavo_status read_buffer(octavo_array *array, octavo_py_array which, int type,
                                 const xla_buffer *buffer, octavo_error *error) {
    if (type != XLA_BUFFER || buffer->n_axes < 1 || buffer->n_axes > OCTAVO_ARRAY_MAX_AXES ||
        dtype_of(buffer->dtype) < 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (%s): no buffer of 1 to %d axes of a known dtype",
                           octavo_py_array_name(which), OCTAVO_ARRAY_MAX_AXES);
    octavo_array made = {.data = buffer->data,
                         .dtype = (octavo_dtype)dtype_of(buffer->dtype),
                         .n_axes = (int32_t)buffer->n_axes};
    memcpy(made.extents, buffer->extents, (size_t)made.n_axes * sizeof *made.extents);
    *array = made;
    return OCTAVO_OK;
}

static octavo_status read_operands(call *c, const xla_values *operands, octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    int64_t next = 0;
    for (int i = 0; i < OCTAVO_PY_OUTPUT && status == OCTAVO_OK; i++) {
        const octavo_py_array which = (octavo_py_array)i;
        if ((c->operands >> i & 1) == 0) continue;
        if (next == operands->n)
            return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (%s): no operand",
                               octavo_py_array_name(which));
        status = read_buffer(octavo_py_array_of(&c->args, which), which, operands->types[next],
                             operands->values[next], error);
        next++;
    }
    return status;
}

static int64_t bytes_of(const octavo_array *array) {
    int64_t bytes = (int64_t)octavo_dtype_size(array->dtype);
    for (int32_t i = 0; i < array->n_axes; i++)
        bytes *= array->extents[i];
    return bytes;
}

/* The result's memory is the operand's where XLA could give the cache away, as it does for donated
 * ones; else XLA has copied it there. */
static octavo_status read_results(call *c, const xla_values *results, octavo_error *error) {
    const int64_t n = c->args.update_kv_cache ? 2 : 1;
    if (results->n != n)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (results): %lld; want %lld",
                           (long long)results->n, (long long)n);
    octavo_status status = read_buffer(&c->args.output, OCTAVO_PY_OUTPUT, results->types[0],
                                       results->values[0], error);
    if (status != OCTAVO_OK || n == 1) return status;
    octavo_array updated = {0};
    status =
        read_buffer(&updated, OCTAVO_PY_KV_CACHE, results->types[1], results->values[1], error);
    if (status != OCTAVO_OK) return status;
    if (bytes_of(&updated) != bytes_of(&c->args.kv_cache))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_cache): the result has another size");
    if (updated.data != c->args.kv_cache.data)
        memcpy(updated.data, c->args.kv_cache.data, (size_t)bytes_of(&updated));
    c->args.kv_cache = updated;
    return OCTAVO_OK;
}

/* --- the call --- */

static octavo_status run(call *c, octavo_error *error) {
    octavo_attention_context *context = NULL;
    octavo_status status = octavo_py_context_borrow(&context, &c->settings, error);
    if (status != OCTAVO_OK) return status;
    status = octavo_ragged_paged_attention(context, &c->args, error);
    octavo_py_context_return(context, &c->settings);
    return status;
}

xla_error *octavo_py_xla_attention(xla_call_frame *frame) {
    if (answer_metadata(frame) || frame->stage != XLA_STAGE_EXECUTE) return NULL;
    octavo_error error = {0};
    call c = {.isa = {"", 0}};
    octavo_attention_args_init(&c.args);
    octavo_status status = read_attributes(&c, &frame->attributes, &error);
    if (status == OCTAVO_OK) status = read_operands(&c, &frame->operands, &error);
    if (status == OCTAVO_OK) status = read_results(&c, &frame->results, &error);
    if (status == OCTAVO_OK) status = run(&c, &error);
    return status == OCTAVO_OK ? NULL : fail(frame, status, &error);
}
