/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and validates one safetensors file. Every byte is hostile: the header's length is checked
 * against the file and the format's limit before the JSON parser sees it, and a tensor's extents,
 * type and offsets against one another and against the data before it is kept.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "formats/hf_folder_file.h"
#include "formats/safetensors_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };

static const char METADATA[] = "__metadata__";

typedef struct parser {
    octavo_safetensors *safetensors;
    octavo_safetensors_part *part;
    size_t part_index;
    octavo_error *error;
    size_t data_start; /* of the tensors' data in the file */
} parser;

/* -- errors ----------------------------------------------------------------------------------- */

static octavo_status fail_header(const parser *p, uint64_t offset, const char *format, ...)
    OCTAVO_PRINTF(3, 4);
static octavo_status fail_tensor(const parser *p, const char *name, octavo_status status,
                                 const char *format, ...) OCTAVO_PRINTF(4, 5);

static octavo_status fail_header(const parser *p, uint64_t offset, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return octavo_fail_at(p->error, OCTAVO_ERROR_FORMAT, (int64_t)offset,
                          "safetensors header (%s): %s", p->part->shown, text);
}

static octavo_status fail_tensor(const parser *p, const char *name, octavo_status status,
                                 const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return octavo_fail(p->error, status, "tensor \"%.120s\" (%s): %s", name, p->part->shown, text);
}

/* -- header ----------------------------------------------------------------------------------- */

/* What people hand over by mistake, by its first bytes. */
static const char *guess_file(const octavo_safetensors_part *part) {
    static const struct {
        const char *start, *hint;
    } known[] = {
        {"version ", "it is a Git LFS pointer, run \"git lfs pull\" to fetch it"},
        {"<", "it is a web page, download the file itself"},
        {"PK", "it is a PyTorch checkpoint or another zip archive, convert it to safetensors"},
        {"\x80\x02", "it is a Python pickle, convert it to safetensors"},
        {"GGUF", "it is a GGUF model, name it *.gguf"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(known); i++) {
        size_t length = strlen(known[i].start);
        if (part->size >= length && memcmp(part->data, known[i].start, length) == 0) {
            return known[i].hint;
        }
    }
    return "it is no safetensors file, or cut short or damaged, fetch it again";
}

static uint64_t load_u64(const uint8_t *p) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value |= (uint64_t)p[i] << (8 * i);
    }
    return value;
}

/* *header is the caller's, who ends it with json_decref. */
static octavo_status read_header(parser *p, json_t **header) {
    const octavo_safetensors_part *part = p->part;
    if (part->size == 0) return fail_header(p, 0, "the file is empty; fetch it again");
    if (part->size < LENGTH_BYTES) {
        return fail_header(p, 0, "the file has %zu bytes, less than the length of a header; %s",
                           part->size, guess_file(part));
    }
    uint64_t length = load_u64(part->data);
    if (length > OCTAVO_SAFETENSORS_MAX_HEADER) {
        return fail_header(p, 0, "it would have %" PRIu64 " bytes, the most is %d; %s", length,
                           OCTAVO_SAFETENSORS_MAX_HEADER, guess_file(part));
    }
    if (length > part->size - LENGTH_BYTES) {
        return fail_header(p, 0, "it would have %" PRIu64 " bytes, the whole file has %zu; %s",
                           length, part->size, guess_file(part));
    }
    const uint8_t *text = part->data + LENGTH_BYTES;
    if (length == 0 || text[0] != '{') {
        return fail_header(p, LENGTH_BYTES, "it does not begin with \"{\"; %s", guess_file(part));
    }
    p->data_start = LENGTH_BYTES + (size_t)length;
    octavo_status status = octavo_hf_json_parse(text, (size_t)length, "safetensors header",
                                                part->path, header, p->error);
    if (status != OCTAVO_OK && p->error != NULL && p->error->offset >= 0) {
        p->error->offset += LENGTH_BYTES;
    }
    return status;
}

/* -- metadata --------------------------------------------------------------------------------- */

static char *copy_text(parser *p, const char *text) {
    return octavo_arena_strndup(&p->safetensors->arena, text, strlen(text));
}

static octavo_status parse_metadata(parser *p, json_t *object) {
    octavo_safetensors_part *part = p->part;
    if (json_is_null(object)) return OCTAVO_OK; /* some writers' "none" */
    if (!json_is_object(object)) {
        return fail_header(p, LENGTH_BYTES, "\"%s\" is no object; the file is damaged", METADATA);
    }
    size_t count = json_object_size(object), bytes = 0;
    octavo_safetensors_text *texts = NULL;
    if (octavo_size_mul(count, sizeof(*texts), &bytes)) {
        texts = octavo_arena_alloc(&p->safetensors->arena, bytes);
    }
    if (texts == NULL) return octavo_fail_memory(p->error, part->shown, bytes);
    size_t n = 0;
    for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it)) {
        const char *value = json_string_value(json_object_iter_value(it));
        if (value == NULL) {
            return fail_header(p, LENGTH_BYTES, "a value of \"%s\" is no text; the file is damaged",
                               METADATA);
        }
        texts[n].key = copy_text(p, json_object_iter_key(it));
        texts[n].value = copy_text(p, value);
        if (texts[n].key == NULL || texts[n].value == NULL) {
            return octavo_fail_memory(p->error, part->shown, strlen(value) + 1);
        }
        n++;
    }
    part->metadata = texts;
    part->n_metadata = n;
    return OCTAVO_OK;
}

/* -- tensors ---------------------------------------------------------------------------------- */

bool octavo_safetensors_name_is_legal(const char *name, const char **wrong) {
    size_t length = strlen(name);
    if (length == 0 || length > OCTAVO_SAFETENSORS_MAX_NAME) {
        *wrong = length == 0 ? "is empty" : "is longer than 1023 bytes";
        return false;
    }
    for (const char *c = name; *c != 0; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *wrong = "holds a control character";
            return false;
        }
    }
    return true;
}

/* A JSON integer that is not negative. jansson refuses those beyond 63 bits. */
static bool natural(const json_t *json, uint64_t *value) {
    if (!json_is_integer(json) || json_integer_value(json) < 0) return false;
    *value = (uint64_t)json_integer_value(json);
    return true;
}

static octavo_status parse_dtype(parser *p, json_t *entry, octavo_safetensors_tensor *tensor) {
    const char *name = json_string_value(json_object_get(entry, "dtype"));
    const char *wrong;
    if (name == NULL || !octavo_safetensors_name_is_legal(name, &wrong)) {
        return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                           "its \"dtype\" is missing or no name; the file is damaged");
    }
    tensor->dtype = octavo_safetensors_dtype_lookup(name);
    tensor->dtype_name = octavo_safetensors_dtype_name(tensor->dtype);
    if (tensor->dtype == OCTAVO_SAFETENSORS_UNKNOWN) tensor->dtype_name = copy_text(p, name);
    if (tensor->dtype_name == NULL) {
        return octavo_fail_memory(p->error, p->part->shown, strlen(name) + 1);
    }
    return OCTAVO_OK;
}

static octavo_status parse_shape(parser *p, json_t *entry, octavo_safetensors_tensor *tensor) {
    json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape)) {
        return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                           "its \"shape\" is missing or no array; the file is damaged");
    }
    size_t n_dims = json_array_size(shape);
    if (n_dims > OCTAVO_SAFETENSORS_MAX_DIMS) {
        return fail_tensor(p, tensor->name, OCTAVO_ERROR_UNSUPPORTED,
                           "it has %zu axes, at most %d are supported; reshape it", n_dims,
                           OCTAVO_SAFETENSORS_MAX_DIMS);
    }
    tensor->n_dims = (int)n_dims;
    tensor->n_values = 1;
    for (size_t i = 0; i < OCTAVO_SAFETENSORS_MAX_DIMS; i++) {
        uint64_t extent = 1;
        if (i < n_dims && !natural(json_array_get(shape, i), &extent)) {
            return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                               "axis %zu of its \"shape\" is no count; the file is damaged", i);
        }
        if (extent != 0 && tensor->n_values > INT64_MAX / extent) {
            return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                               "the product of its \"shape\" is more than memory can ever hold; "
                               "the file is damaged");
        }
        tensor->extent[i] = extent;
        tensor->n_values *= extent;
    }
    return OCTAVO_OK;
}

/* The bytes between the offsets must be those of the values; for an unknown type, any. */
static octavo_status check_bytes(const parser *p, const octavo_safetensors_tensor *tensor,
                                 uint64_t bytes) {
    unsigned bits = octavo_safetensors_dtype_bits(tensor->dtype);
    if (bits == 0) return OCTAVO_OK;
    if (tensor->n_values > UINT64_MAX / bits) {
        return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                           "%" PRIu64 " values of %s are more than memory can ever hold; the file "
                           "is damaged",
                           tensor->n_values, tensor->dtype_name);
    }
    uint64_t all_bits = tensor->n_values * bits;
    if (all_bits % 8 != 0) {
        return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                           "%" PRIu64 " values of %s do not fill whole bytes; the file is damaged",
                           tensor->n_values, tensor->dtype_name);
    }
    if (all_bits / 8 != bytes) {
        return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                           "%" PRIu64 " values of %s have %" PRIu64 " bytes, its \"data_offsets\" "
                           "leave %" PRIu64 "; the file is damaged",
                           tensor->n_values, tensor->dtype_name, all_bits / 8, bytes);
    }
    return OCTAVO_OK;
}

static octavo_status parse_offsets(parser *p, json_t *entry, octavo_safetensors_tensor *tensor) {
    json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t begin = 0, end = 0;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !natural(json_array_get(offsets, 0), &begin) ||
        !natural(json_array_get(offsets, 1), &end)) {
        return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                           "its \"data_offsets\" are missing or no pair of counts; the file is "
                           "damaged");
    }
    if (begin > end) {
        return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                           "its data would begin at %" PRIu64 " and end before, at %" PRIu64
                           "; the file is damaged",
                           begin, end);
    }
    octavo_status status = check_bytes(p, tensor, end - begin);
    if (status != OCTAVO_OK) return status;
    size_t room = p->part->size - p->data_start;
    if (end > room) {
        return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                           "data ends at byte %" PRIu64 ", file has %zu; the file is cut short, "
                           "fetch it again",
                           p->data_start + end, p->part->size);
    }
    tensor->offset = p->data_start + begin;
    tensor->bytes = (size_t)(end - begin);
    tensor->data = p->part->data + tensor->offset;
    unsigned bits = octavo_safetensors_dtype_bits(tensor->dtype);
    tensor->aligned = bits <= 8 || tensor->offset % (bits / 8) == 0;
    return OCTAVO_OK;
}

static octavo_status parse_tensor(parser *p, const char *name, json_t *entry,
                                  octavo_safetensors_tensor *tensor) {
    const char *wrong;
    tensor->part = p->part_index;
    if (!octavo_safetensors_name_is_legal(name, &wrong)) {
        return fail_header(p, LENGTH_BYTES, "the name of a tensor %s; the file is damaged", wrong);
    }
    tensor->name = copy_text(p, name);
    if (tensor->name == NULL) {
        return octavo_fail_memory(p->error, p->part->shown, strlen(name) + 1);
    }
    if (!json_is_object(entry)) {
        return fail_tensor(p, name, OCTAVO_ERROR_FORMAT,
                           "its entry is no object; the file is damaged");
    }
    octavo_status status = parse_dtype(p, entry, tensor);
    if (status == OCTAVO_OK) status = parse_shape(p, entry, tensor);
    if (status == OCTAVO_OK) status = parse_offsets(p, entry, tensor);
    return status;
}

/* By offset; one without bytes before the one that begins where it lies. */
static int compare_offsets(const void *a, const void *b) {
    const octavo_safetensors_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The tensors, by offset, must fill the data exactly. */
static octavo_status check_cover(const parser *p, const octavo_safetensors_tensor *tensors,
                                 size_t count) {
    uint64_t reached = p->data_start;
    for (size_t i = 0; i < count; i++) {
        const octavo_safetensors_tensor *tensor = &tensors[i];
        if (tensor->offset < reached) {
            return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                               "its data at byte %" PRIu64 " overlaps that of \"%.120s\"; the file "
                               "is damaged",
                               tensor->offset, tensors[i - 1].name);
        }
        if (tensor->offset > reached) {
            return fail_tensor(p, tensor->name, OCTAVO_ERROR_FORMAT,
                               "the %" PRIu64 " bytes before its data at byte %" PRIu64
                               " belong to no tensor; the file is damaged",
                               tensor->offset - reached, tensor->offset);
        }
        reached += tensor->bytes;
    }
    if (reached != p->part->size) {
        return fail_header(p, reached,
                           "the file has %zu bytes, its tensors end at byte %" PRIu64
                           "; it is damaged, fetch it again",
                           p->part->size, reached);
    }
    return OCTAVO_OK;
}

/* Makes room for `count` more tensors, zeroed: *tensors. */
static octavo_status grow(parser *p, size_t count, octavo_safetensors_tensor **tensors) {
    octavo_safetensors *safetensors = p->safetensors;
    size_t total, bytes;
    if (!octavo_size_add(safetensors->n_tensors, count, &total) ||
        !octavo_size_mul(total, sizeof(**tensors), &bytes)) {
        return octavo_fail_memory(p->error, p->part->shown, UINT64_MAX);
    }
    octavo_safetensors_tensor *grown = octavo_realloc(safetensors->tensors, bytes);
    if (grown == NULL) return octavo_fail_memory(p->error, p->part->shown, bytes);
    safetensors->tensors = grown;
    *tensors = grown + safetensors->n_tensors;
    if (count > 0) memset(*tensors, 0, count * sizeof(**tensors));
    safetensors->n_tensors = total;
    return OCTAVO_OK;
}

static octavo_status parse_entries(parser *p, json_t *header) {
    json_t *metadata = json_object_get(header, METADATA);
    size_t count = json_object_size(header) - (metadata != NULL ? 1 : 0);
    octavo_safetensors_tensor *tensors = NULL;
    octavo_status status = metadata != NULL ? parse_metadata(p, metadata) : OCTAVO_OK;
    if (status == OCTAVO_OK) status = grow(p, count, &tensors);
    if (status != OCTAVO_OK) return status;
    size_t n = 0;
    for (void *it = json_object_iter(header); it != NULL; it = json_object_iter_next(header, it)) {
        const char *name = json_object_iter_key(it);
        if (strcmp(name, METADATA) == 0) continue;
        status = parse_tensor(p, name, json_object_iter_value(it), &tensors[n++]);
        if (status != OCTAVO_OK) return status;
    }
    if (count > 1) qsort(tensors, count, sizeof(*tensors), compare_offsets);
    return check_cover(p, tensors, count);
}

octavo_status octavo_safetensors_part_parse(octavo_safetensors *safetensors, size_t part,
                                            octavo_error *error) {
    parser p = {.safetensors = safetensors,
                .part = &safetensors->parts[part],
                .part_index = part,
                .error = error};
    json_t *header = NULL;
    octavo_status status = read_header(&p, &header);
    if (status == OCTAVO_OK) status = parse_entries(&p, header);
    json_decref(header);
    return status;
}
