/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and validates one GGUF file. Every byte is hostile: nothing is read before the cursor has
 * checked that it is there, no count leads to an allocation larger than a small multiple of the
 * bytes that are left, and recursion is bounded.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "formats/gguf_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_ENTRY_BYTES = 8 + 4 + 1,          /* key length, type, value */
    MIN_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8, /* name length, dims, an extent, type, offset */
};

typedef enum subject { HEADER, KEY, TENSOR } subject;

typedef struct parser {
    octavo_gguf *gguf;
    octavo_gguf_part *part;
    size_t part_index;
    octavo_error *error;
    size_t offset; /* of the next byte, <= part->size */
    /* what is being read, for messages */
    subject subject;
    size_t index;
    const char *name; /* NULL until known */
} parser;

/* -- errors ----------------------------------------------------------------------------------- */

static octavo_status fail(const parser *p, octavo_status status, uint64_t offset,
                          const char *format, ...) OCTAVO_PRINTF(4, 5);

/* "SUBJECT (FILE): " and the text. */
static octavo_status fail(const parser *p, octavo_status status, uint64_t offset,
                          const char *format, ...) {
    static const char *const kinds[] = {
        [HEADER] = "GGUF header", [KEY] = "metadata key", [TENSOR] = "tensor"};
    char text[400], what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (p->subject == HEADER) {
        snprintf(what, sizeof(what), "%s", kinds[HEADER]);
    } else if (p->name != NULL) {
        snprintf(what, sizeof(what), "%s \"%.120s\"", kinds[p->subject], p->name);
    } else {
        snprintf(what, sizeof(what), "%s number %zu", kinds[p->subject], p->index);
    }
    return octavo_fail_at(p->error, status, (int64_t)offset, "%s (%s): %s", what, p->part->path,
                          text);
}

static octavo_status fail_memory(const parser *p, uint64_t bytes) {
    return octavo_fail_memory(p->error, p->part->path, bytes);
}

/* -- cursor ----------------------------------------------------------------------------------- */

static size_t bytes_left(const parser *p) {
    return p->part->size - p->offset;
}

/* *data = the next `bytes` bytes, and steps over them. */
static octavo_status take(parser *p, uint64_t bytes, const uint8_t **data) {
    if (bytes > bytes_left(p)) {
        return fail(p, OCTAVO_ERROR_FORMAT, p->offset,
                    "needs %llu bytes from byte %zu on, the file has %zu in all; it is cut short "
                    "or damaged, fetch it again",
                    (unsigned long long)bytes, p->offset, p->part->size);
    }
    *data = p->part->data + p->offset;
    p->offset += (size_t)bytes;
    return OCTAVO_OK;
}

static octavo_status take_u32(parser *p, uint32_t *value) {
    const uint8_t *data = NULL;
    octavo_status status = take(p, 4, &data);
    if (status == OCTAVO_OK) *value = octavo_gguf_load_u32(data);
    return status;
}

static octavo_status take_u64(parser *p, uint64_t *value) {
    const uint8_t *data = NULL;
    octavo_status status = take(p, 8, &data);
    if (status == OCTAVO_OK) *value = octavo_gguf_load_u64(data);
    return status;
}

/* *data = the length, 8 bytes; the text follows it. */
static octavo_status take_string(parser *p, const uint8_t **data) {
    octavo_status status = take(p, 8, data);
    if (status != OCTAVO_OK) return status;
    const uint8_t *text;
    return take(p, octavo_gguf_load_u64(*data), &text);
}

/* *name = a terminated copy. Control characters are refused: they would cut the text short or, in
 * a message, reach the terminal. */
static octavo_status take_name(parser *p, size_t limit, const char **name) {
    size_t start = p->offset;
    const uint8_t *data = NULL;
    octavo_status status = take_string(p, &data);
    if (status != OCTAVO_OK) return status;
    octavo_gguf_string text = octavo_gguf_load_string(data);
    if (text.size == 0 || text.size > limit) {
        return fail(p, OCTAVO_ERROR_FORMAT, start,
                    "the name has %zu bytes, 1 to %zu are legal; the file is damaged", text.size,
                    limit);
    }
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < 0x20 || c == 0x7f) {
            return fail(p, OCTAVO_ERROR_FORMAT, start + 8 + i,
                        "the name holds the control character %d; the file is damaged", c);
        }
    }
    char *copy = octavo_arena_strndup(&p->gguf->arena, text.data, text.size);
    if (copy == NULL) return fail_memory(p, text.size + 1);
    *name = copy;
    return OCTAVO_OK;
}

/* -- header ----------------------------------------------------------------------------------- */

/* What people hand over by mistake, by its first bytes. */
static const char *guess_file(const octavo_gguf_part *part) {
    static const struct {
        const char *start, *hint;
    } known[] = {
        {"version https://git-lfs", "it is a Git LFS pointer, run \"git lfs pull\" to fetch it"},
        {"<", "it is a web page, download the file itself"},
        {"PK", "it is a zip archive, unpack it or convert the model to GGUF"},
        {"ggml", "it is of the older GGML format, convert the model to GGUF"},
        {"lmgg", "it is of the older GGML format, convert the model to GGUF"},
        {"tjgg", "it is of the older GGJT format, convert the model to GGUF"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(known); i++) {
        size_t length = strlen(known[i].start);
        if (part->size >= length && memcmp(part->data, known[i].start, length) == 0) {
            return known[i].hint;
        }
    }
    if (part->size > 0 && part->data[0] == '{')
        return "it looks like JSON; of a Hugging Face model give the folder";
    return "give a GGUF model";
}

static octavo_status check_version(parser *p, uint32_t version) {
    if (version == 2 || version == 3) return OCTAVO_OK;
    if (version != 0 && (version & 0xffff) == 0) {
        return fail(p, OCTAVO_ERROR_UNSUPPORTED, 4,
                    "the file is big-endian; fetch or convert a little-endian one");
    }
    return fail(p, OCTAVO_ERROR_UNSUPPORTED, 4,
                "GGUF version %lu is not supported, versions 2 and 3 are; convert the model again",
                (unsigned long)version);
}

static octavo_status parse_header(parser *p, uint64_t *n_tensors, uint64_t *n_entries) {
    p->subject = HEADER;
    octavo_gguf_part *part = p->part;
    if (part->size == 0) return fail(p, OCTAVO_ERROR_FORMAT, 0, "the file is empty");
    if (part->size < 4 || memcmp(part->data, "GGUF", 4) != 0) {
        return fail(p, OCTAVO_ERROR_FORMAT, 0, "the file does not begin with \"GGUF\"; %s",
                    guess_file(part));
    }
    p->offset = 4;
    octavo_status status = take_u32(p, &part->version);
    if (status == OCTAVO_OK) status = check_version(p, part->version);
    if (status == OCTAVO_OK) status = take_u64(p, n_tensors);
    if (status == OCTAVO_OK) status = take_u64(p, n_entries);
    if (status != OCTAVO_OK) return status;
    size_t left = bytes_left(p);
    if (*n_tensors > left / MIN_TENSOR_BYTES) {
        return fail(p, OCTAVO_ERROR_FORMAT, 8,
                    "%llu tensors do not fit into the %zu bytes of the file; it is cut short or "
                    "damaged, fetch it again",
                    (unsigned long long)*n_tensors, part->size);
    }
    if (*n_entries > (left - (size_t)*n_tensors * MIN_TENSOR_BYTES) / MIN_ENTRY_BYTES) {
        return fail(p, OCTAVO_ERROR_FORMAT, 16,
                    "%llu metadata entries do not fit into the %zu bytes of the file; it is cut "
                    "short or damaged, fetch it again",
                    (unsigned long long)*n_entries, part->size);
    }
    return OCTAVO_OK;
}

/* -- metadata --------------------------------------------------------------------------------- */

static octavo_status take_type(parser *p, octavo_gguf_type *type) {
    uint32_t id;
    octavo_status status = take_u32(p, &id);
    if (status != OCTAVO_OK) return status;
    if (id > OCTAVO_GGUF_F64) {
        return fail(p, OCTAVO_ERROR_FORMAT, p->offset - 4,
                    "value type %lu does not exist; the file is damaged or of a newer format",
                    (unsigned long)id);
    }
    *type = (octavo_gguf_type)id;
    return OCTAVO_OK;
}

static octavo_status check_bools(const parser *p, const uint8_t *data, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (data[i] > 1) {
            return fail(p, OCTAVO_ERROR_FORMAT, (uint64_t)(data + i - p->part->data),
                        "the bool has the value %d; the file is damaged", data[i]);
        }
    }
    return OCTAVO_OK;
}

static octavo_status take_array(parser *p, int depth, octavo_gguf_array *array);

/* Elements that differ in size: steps over them and, at the top level, remembers where each is. */
static octavo_status take_items(parser *p, int depth, octavo_gguf_array *array) {
    const uint8_t **items = NULL;
    if (depth == 1) {
        size_t bytes;
        if (octavo_size_mul(array->count, sizeof(*items), &bytes)) {
            items = octavo_arena_alloc(&p->gguf->arena, bytes);
        }
        if (items == NULL) return fail_memory(p, array->count * (uint64_t)sizeof(*items));
    }
    for (size_t i = 0; i < array->count; i++) {
        const uint8_t *start = p->part->data + p->offset;
        octavo_gguf_array inner;
        octavo_status status = array->type == OCTAVO_GGUF_STRING ? take_string(p, &start)
                                                                 : take_array(p, depth + 1, &inner);
        if (status != OCTAVO_OK) return status;
        if (items != NULL) items[i] = start;
    }
    array->items = items;
    return OCTAVO_OK;
}

/* `depth` is 1 for an array that is no element of another. */
static octavo_status take_array(parser *p, int depth, octavo_gguf_array *array) {
    if (depth > OCTAVO_GGUF_MAX_DEPTH) {
        return fail(p, OCTAVO_ERROR_FORMAT, p->offset,
                    "arrays are nested more than %d deep; the file is damaged",
                    OCTAVO_GGUF_MAX_DEPTH);
    }
    *array = (octavo_gguf_array){0};
    octavo_status status = take_type(p, &array->type);
    if (status != OCTAVO_OK) return status;
    uint64_t count;
    status = take_u64(p, &count);
    if (status != OCTAVO_OK) return status;
    size_t bytes = octavo_gguf_type_bytes(array->type);
    size_t least = bytes > 0 ? bytes : array->type == OCTAVO_GGUF_STRING ? 8 : 12;
    if (count > bytes_left(p) / least) {
        return fail(p, OCTAVO_ERROR_FORMAT, p->offset - 8,
                    "an array of %llu elements does not fit into the %zu bytes of the file; it is "
                    "cut short or damaged, fetch it again",
                    (unsigned long long)count, p->part->size);
    }
    array->count = (size_t)count;
    array->data = p->part->data + p->offset;
    if (bytes == 0) return take_items(p, depth, array);
    p->offset += array->count * bytes;
    if (array->type == OCTAVO_GGUF_BOOL) return check_bools(p, array->data, array->count);
    return OCTAVO_OK;
}

static octavo_status parse_entry(parser *p, octavo_gguf_entry *entry) {
    entry->offset = p->offset;
    octavo_status status = take_name(p, OCTAVO_GGUF_MAX_KEY, &entry->key);
    if (status != OCTAVO_OK) return status;
    p->name = entry->key;
    status = take_type(p, &entry->type);
    if (status != OCTAVO_OK) return status;
    entry->data = p->part->data + p->offset;
    if (entry->type == OCTAVO_GGUF_ARRAY) return take_array(p, 1, &entry->array);
    if (entry->type == OCTAVO_GGUF_STRING) return take_string(p, &entry->data);
    status = take(p, octavo_gguf_type_bytes(entry->type), &entry->data);
    if (status == OCTAVO_OK && entry->type == OCTAVO_GGUF_BOOL) {
        status = check_bools(p, entry->data, 1);
    }
    return status;
}

/* Ascending keys; of equal ones the later last. */
static int compare_entries(const void *a, const void *b) {
    const octavo_gguf_entry *x = *(const octavo_gguf_entry *const *)a;
    const octavo_gguf_entry *y = *(const octavo_gguf_entry *const *)b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

static octavo_status index_entries(parser *p) {
    octavo_gguf_part *part = p->part;
    part->by_key = octavo_alloc_zero(part->n_entries, sizeof(const octavo_gguf_entry *));
    if (part->by_key == NULL) return fail_memory(p, part->n_entries * sizeof(void *));
    for (size_t i = 0; i < part->n_entries; i++) {
        part->by_key[i] = &part->entries[i];
    }
    qsort(part->by_key, part->n_entries, sizeof(const octavo_gguf_entry *), compare_entries);
    for (size_t i = 1; i < part->n_entries; i++) {
        const octavo_gguf_entry *entry = part->by_key[i];
        if (strcmp(part->by_key[i - 1]->key, entry->key) == 0) {
            p->name = entry->key;
            return fail(p, OCTAVO_ERROR_FORMAT, entry->offset,
                        "appears more than once; the file is damaged");
        }
    }
    return OCTAVO_OK;
}

static octavo_status parse_metadata(parser *p, uint64_t n_entries) {
    octavo_gguf_part *part = p->part;
    p->subject = KEY;
    part->entries = octavo_alloc_zero((size_t)n_entries, sizeof(octavo_gguf_entry));
    if (part->entries == NULL) return fail_memory(p, n_entries * sizeof(octavo_gguf_entry));
    part->n_entries = (size_t)n_entries;
    for (size_t i = 0; i < part->n_entries; i++) {
        p->index = i;
        p->name = NULL;
        octavo_status status = parse_entry(p, &part->entries[i]);
        if (status != OCTAVO_OK) return status;
    }
    return index_entries(p);
}

static octavo_status read_alignment(parser *p) {
    static const char key[] = "general.alignment";
    uint64_t alignment;
    octavo_status status =
        octavo_gguf_part_u64_or(p->part, key, OCTAVO_GGUF_DEFAULT_ALIGNMENT, &alignment, p->error);
    if (status != OCTAVO_OK) return status;
    if (alignment < OCTAVO_GGUF_MIN_ALIGNMENT || alignment > OCTAVO_GGUF_MAX_ALIGNMENT ||
        (alignment & (alignment - 1)) != 0) {
        p->name = key;
        return fail(p, OCTAVO_ERROR_FORMAT, octavo_gguf_part_entry(p->part, key)->offset,
                    "%llu is no legal alignment, powers of two from %d to %d are",
                    (unsigned long long)alignment, OCTAVO_GGUF_MIN_ALIGNMENT,
                    OCTAVO_GGUF_MAX_ALIGNMENT);
    }
    p->part->alignment = (uint32_t)alignment;
    return OCTAVO_OK;
}

/* -- tensors ---------------------------------------------------------------------------------- */

static octavo_status take_extents(parser *p, octavo_gguf_tensor *tensor) {
    uint32_t n_dims;
    octavo_status status = take_u32(p, &n_dims);
    if (status != OCTAVO_OK) return status;
    if (n_dims < 1 || n_dims > OCTAVO_GGUF_MAX_DIMS) {
        return fail(p, OCTAVO_ERROR_FORMAT, p->offset - 4,
                    "it has %lu axes, 1 to %d are legal; the file is damaged",
                    (unsigned long)n_dims, OCTAVO_GGUF_MAX_DIMS);
    }
    tensor->n_dims = (int)n_dims;
    for (size_t i = 0; i < OCTAVO_GGUF_MAX_DIMS; i++) {
        tensor->extent[i] = 1;
        if (i >= n_dims) continue;
        status = take_u64(p, &tensor->extent[i]);
        if (status != OCTAVO_OK) return status;
        if (tensor->extent[i] == 0 || tensor->extent[i] > INT64_MAX) {
            return fail(p, OCTAVO_ERROR_FORMAT, p->offset - 8,
                        "axis %zu has the extent %llu; the file is damaged", i,
                        (unsigned long long)tensor->extent[i]);
        }
    }
    return OCTAVO_OK;
}

static octavo_status measure_tensor(parser *p, const octavo_ggml_type_info *info,
                                    octavo_gguf_tensor *tensor) {
    const uint64_t *extent = tensor->extent;
    if (extent[0] % info->block_values != 0) {
        return fail(p, OCTAVO_ERROR_FORMAT, tensor->entry_offset,
                    "rows of %llu values do not fill whole blocks of %s, which hold %lu; the file "
                    "is damaged",
                    (unsigned long long)extent[0], info->name, (unsigned long)info->block_values);
    }
    uint64_t bytes;
    bool fits = octavo_ggml_row_bytes(info, extent[0], &bytes);
    for (int i = 1; fits && i < tensor->n_dims; i++) {
        fits = bytes <= INT64_MAX / extent[i];
        if (fits) bytes *= extent[i];
    }
    if (!fits || bytes > INT64_MAX || bytes > SIZE_MAX) {
        return fail(p, OCTAVO_ERROR_FORMAT, tensor->entry_offset,
                    "%llu x %llu x %llu x %llu values of %s are more than memory can ever hold; "
                    "the file is damaged",
                    (unsigned long long)extent[0], (unsigned long long)extent[1],
                    (unsigned long long)extent[2], (unsigned long long)extent[3], info->name);
    }
    tensor->bytes = (size_t)bytes;
    return OCTAVO_OK;
}

/* Leaves in tensor->offset what the file says, from the start of its data. */
static octavo_status parse_tensor(parser *p, octavo_gguf_tensor *tensor) {
    tensor->part = p->part_index;
    tensor->entry_offset = p->offset;
    octavo_status status = take_name(p, OCTAVO_GGUF_MAX_TENSOR_NAME, &tensor->name);
    if (status != OCTAVO_OK) return status;
    p->name = tensor->name;
    status = take_extents(p, tensor);
    if (status != OCTAVO_OK) return status;
    uint32_t id;
    status = take_u32(p, &id);
    if (status != OCTAVO_OK) return status;
    const octavo_ggml_type_info *info = octavo_ggml_type_lookup(id);
    if (info == NULL) {
        return fail(p, OCTAVO_ERROR_UNSUPPORTED, p->offset - 4,
                    "the tensor type %lu is not known; convert the model to another type such as "
                    "Q8_0",
                    (unsigned long)id);
    }
    tensor->type = info->type;
    status = take_u64(p, &tensor->offset);
    if (status != OCTAVO_OK) return status;
    return measure_tensor(p, info, tensor);
}

/* Turns the offset into one from the start of the file, `data_start` being that of the data. */
static octavo_status place_tensor(parser *p, uint64_t data_start, octavo_gguf_tensor *tensor) {
    p->name = tensor->name;
    if (tensor->offset % p->part->alignment != 0) {
        return fail(p, OCTAVO_ERROR_FORMAT, tensor->entry_offset,
                    "its data begins at offset %llu, which is no multiple of the alignment %lu; "
                    "the file is damaged",
                    (unsigned long long)tensor->offset, (unsigned long)p->part->alignment);
    }
    uint64_t size = p->part->size;
    uint64_t room = size > data_start ? size - data_start : 0;
    if (tensor->bytes > room || tensor->offset > room - tensor->bytes) {
        if (tensor->offset > UINT64_MAX - (data_start + tensor->bytes)) {
            return fail(p, OCTAVO_ERROR_FORMAT, tensor->entry_offset,
                        "its data begins at the impossible offset %llu; the file is damaged",
                        (unsigned long long)tensor->offset);
        }
        return fail(p, OCTAVO_ERROR_FORMAT, tensor->entry_offset,
                    "data ends at byte %llu, file has %llu; the file is cut short, fetch it again",
                    (unsigned long long)(data_start + tensor->offset + tensor->bytes),
                    (unsigned long long)size);
    }
    tensor->offset += data_start;
    tensor->data = p->part->data + tensor->offset;
    return OCTAVO_OK;
}

static int compare_offsets(const void *a, const void *b) {
    const octavo_gguf_tensor *x = *(const octavo_gguf_tensor *const *)a;
    const octavo_gguf_tensor *y = *(const octavo_gguf_tensor *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->entry_offset > y->entry_offset) - (x->entry_offset < y->entry_offset);
}

static octavo_status check_overlaps(parser *p, const octavo_gguf_tensor *tensors, size_t count) {
    const octavo_gguf_tensor **sorted = octavo_alloc_zero(count, sizeof(*sorted));
    if (sorted == NULL) return fail_memory(p, count * sizeof(*sorted));
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &tensors[i];
    }
    qsort(sorted, count, sizeof(*sorted), compare_offsets);
    octavo_status status = OCTAVO_OK;
    for (size_t i = 1; i < count && status == OCTAVO_OK; i++) {
        const octavo_gguf_tensor *before = sorted[i - 1];
        if (before->offset + before->bytes <= sorted[i]->offset) continue;
        p->name = sorted[i]->name;
        status = fail(p, OCTAVO_ERROR_FORMAT, sorted[i]->entry_offset,
                      "its data at byte %llu overlaps that of \"%.120s\"; the file is damaged",
                      (unsigned long long)sorted[i]->offset, before->name);
    }
    octavo_free(sorted);
    return status;
}

static octavo_status parse_tensors(parser *p, uint64_t n_tensors) {
    octavo_gguf *gguf = p->gguf;
    size_t count = (size_t)n_tensors, total, bytes;
    p->subject = TENSOR;
    if (!octavo_size_add(gguf->n_tensors, count, &total) ||
        !octavo_size_mul(total, sizeof(*gguf->tensors), &bytes)) {
        return fail_memory(p, UINT64_MAX);
    }
    octavo_gguf_tensor *grown = octavo_realloc(gguf->tensors, bytes);
    if (grown == NULL) return fail_memory(p, bytes);
    gguf->tensors = grown;
    octavo_gguf_tensor *tensors = grown + gguf->n_tensors;
    gguf->n_tensors = total;
    if (count > 0) memset(tensors, 0, count * sizeof(*tensors));

    for (size_t i = 0; i < count; i++) {
        p->index = i;
        p->name = NULL;
        octavo_status status = parse_tensor(p, &tensors[i]);
        if (status != OCTAVO_OK) return status;
    }
    uint64_t alignment = p->part->alignment;
    uint64_t data_start = ((uint64_t)p->offset + alignment - 1) / alignment * alignment;
    for (size_t i = 0; i < count; i++) {
        octavo_status status = place_tensor(p, data_start, &tensors[i]);
        if (status != OCTAVO_OK) return status;
    }
    return check_overlaps(p, tensors, count);
}

octavo_status octavo_gguf_part_parse(octavo_gguf *gguf, size_t part, octavo_error *error) {
    parser p = {.gguf = gguf, .part = &gguf->parts[part], .part_index = part, .error = error};
    uint64_t n_tensors, n_entries;
    octavo_status status = parse_header(&p, &n_tensors, &n_entries);
    if (status == OCTAVO_OK) status = parse_metadata(&p, n_entries);
    if (status == OCTAVO_OK) status = read_alignment(&p);
    if (status == OCTAVO_OK) status = parse_tensors(&p, n_tensors);
    return status;
}
