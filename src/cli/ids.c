/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of token ids. `n` never passes `capacity`; a failed call leaves the list as it was.
 */
#include "cli/ids.h"

#include "base/error.h"
#include "base/memory.h"
#include "cli/input.h"

static octavo_status reserve(octavo_ids *ids, size_t more, octavo_error *error) {
    size_t needed, bytes;
    if (!octavo_size_add(ids->n, more, &needed) || !octavo_size_add(needed, needed / 2, &needed) ||
        !octavo_size_mul(needed, sizeof *ids->data, &bytes))
        return octavo_fail_memory(error, "token ids", UINT64_MAX);
    if (ids->capacity - ids->n >= more) return OCTAVO_OK;
    int32_t *data = octavo_realloc(ids->data, bytes);
    if (!data) return octavo_fail_memory(error, "token ids", bytes);
    ids->data = data;
    ids->capacity = needed;
    return OCTAVO_OK;
}

octavo_status octavo_ids_append(octavo_ids *ids, int32_t id, octavo_error *error) {
    octavo_status status = reserve(ids, 1, error);
    if (status == OCTAVO_OK) ids->data[ids->n++] = id;
    return status;
}

void octavo_ids_deinit(octavo_ids *ids) {
    octavo_free(ids->data);
    *ids = (octavo_ids){0};
}

octavo_status octavo_ids_no_tokenizer(octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                       "tokenizer (of the model): the folder has none, or one that cannot be read; "
                       "add its tokenizer.json, or give token ids (logits --ids)");
}

octavo_status octavo_ids_encode(octavo_ids *ids, const octavo_tokenizer *tokenizer,
                                const char *text, size_t length, unsigned flags,
                                octavo_error *error) {
    size_t n_ids = length + 8; /* enough for nearly every text */
    if (!tokenizer) return octavo_ids_no_tokenizer(error);
    for (int round = 0; round < 2; round++) {
        octavo_status status = reserve(ids, n_ids, error);
        if (status) return status;
        size_t room = ids->capacity - ids->n;
        status = octavo_tokenizer_encode(tokenizer, text, length, flags, ids->data + ids->n, room,
                                         &n_ids, error);
        if (status) return status;
        if (n_ids > room) continue;
        ids->n += n_ids;
        return OCTAVO_OK;
    }
    return octavo_fail(error, OCTAVO_ERROR_INVALID, "text (%zu bytes): its ids changed in between",
                       length);
}

octavo_status octavo_ids_read(octavo_ids *ids, const octavo_tokenizer *tokenizer, const char *path,
                              octavo_error *error) {
    octavo_buffer text = {0};
    octavo_status status = octavo_input_read(path, &text, error);
    if (status == OCTAVO_OK)
        status = octavo_ids_encode(ids, tokenizer, text.data, text.size, OCTAVO_ENCODE_SPECIAL_TEXT,
                                   error);
    octavo_buffer_deinit(&text);
    return status;
}

octavo_status octavo_ids_add(octavo_ids *ids, const json_t *array, const char *where,
                             octavo_error *error) {
    const size_t before = ids->n;
    json_t *item;
    size_t index;
    octavo_status status;
    if (!json_is_array(array))
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "token ids (%s): not a JSON array; give one such as [1, 2, 3]", where);
    status = reserve(ids, json_array_size(array), error);
    json_array_foreach(array, index, item) {
        if (status) break;
        json_int_t id = json_integer_value(item);
        if (!json_is_integer(item) || id < 0 || id > INT32_MAX)
            status = octavo_fail(error, OCTAVO_ERROR_FORMAT,
                                 "token ids (%s, item %zu): not a token id; give whole numbers "
                                 "from 0 on",
                                 where, index);
        else
            ids->data[ids->n++] = (int32_t)id;
    }
    if (status) ids->n = before;
    return status;
}

octavo_status octavo_ids_parse(octavo_ids *ids, const char *json, size_t length, const char *where,
                               octavo_error *error) {
    json_t *array = NULL;
    octavo_status status = octavo_input_json(json, length, where, &array, error);
    if (status) return status;
    status = octavo_ids_add(ids, array, where, error);
    json_decref(array);
    return status;
}

void octavo_ids_print(const octavo_ids *ids, octavo_buffer *out) {
    octavo_buffer_putc(out, '[');
    for (size_t i = 0; i < ids->n; i++)
        octavo_buffer_printf(out, "%s%ld", i > 0 ? "," : "", (long)ids->data[i]);
    octavo_buffer_putc(out, ']');
}
