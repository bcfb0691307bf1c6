/* SPDX-License-Identifier: Apache-2.0
 *
 * Two tables: where an array and where a scalar lies in octavo_attention_args.
 */
#include "arguments.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *name;
    size_t offset;
} arrays[OCTAVO_PY_N_ARRAYS] = {
#define ARRAY(id, field) [id] = {#field, offsetof(octavo_attention_args, field)}
    ARRAY(OCTAVO_PY_QUERIES, queries),
    ARRAY(OCTAVO_PY_KEYS, keys),
    ARRAY(OCTAVO_PY_VALUES, values),
    ARRAY(OCTAVO_PY_KV_CACHE, kv_cache),
    ARRAY(OCTAVO_PY_KV_LENS, kv_lens),
    ARRAY(OCTAVO_PY_BLOCK_TABLES, block_tables),
    ARRAY(OCTAVO_PY_QUERY_START_LOC, query_start_loc),
    ARRAY(OCTAVO_PY_DISTRIBUTION, distribution),
    ARRAY(OCTAVO_PY_ATTENTION_SINK, attention_sink),
    ARRAY(OCTAVO_PY_KEY_START_LOC, key_start_loc),
    ARRAY(OCTAVO_PY_ALIBI_SLOPES, alibi_slopes),
    ARRAY(OCTAVO_PY_K_SCALES, k_scales),
    ARRAY(OCTAVO_PY_V_SCALES, v_scales),
    ARRAY(OCTAVO_PY_OUTPUT, output),
#undef ARRAY
};

typedef enum storage { REAL, INTEGER, FLAG, TYPE, PRECISION, LAYOUT } storage;

static const struct {
    const char *name;
    storage storage;
    size_t offset;
    size_t use; /* of the flag that goes with it; 0 = none (size lies there) */
} scalars[] = {
#define PLAIN(storage, field)                                                                      \
    { #field, storage, offsetof(octavo_attention_args, field), 0 }
#define USED(storage, field)                                                                       \
    {                                                                                              \
#field, storage, offsetof(octavo_attention_args, field),                                   \
            offsetof(octavo_attention_args, use_##field)                                           \
    }
    PLAIN(REAL, softmax_scale),
    USED(REAL, q_scale),
    USED(REAL, k_scale),
    USED(REAL, v_scale),
    USED(REAL, logits_soft_cap),
    USED(REAL, output_scale),
    USED(INTEGER, sliding_window),
    PLAIN(FLAG, update_kv_cache),
    PLAIN(TYPE, type),
    PLAIN(PRECISION, precision),
    PLAIN(LAYOUT, layout),
    PLAIN(INTEGER, page_size),
    PLAIN(FLAG, value_in_key),
    PLAIN(INTEGER, value_dim),
    PLAIN(INTEGER, chunk_size),
    PLAIN(INTEGER, chunk_prefill_size),
    PLAIN(INTEGER, num_kv_pages_per_block),
    PLAIN(INTEGER, num_queries_per_block),
    PLAIN(INTEGER, vmem_limit_bytes),
#undef PLAIN
#undef USED
};

const char *octavo_py_array_name(octavo_py_array which) {
    return arrays[which].name;
}

octavo_array *octavo_py_array_of(octavo_attention_args *args, octavo_py_array which) {
    return (octavo_array *)(void *)((char *)args + arrays[which].offset);
}

/* The scalar's index, or COUNT(scalars). */
static size_t find(const char *name, size_t length) {
    size_t i = 0;
    while (i < COUNT(scalars) &&
           (strlen(scalars[i].name) != length || memcmp(scalars[i].name, name, length) != 0))
        i++;
    return i;
}

octavo_py_kind octavo_py_scalar_kind(const char *name, size_t length) {
    const size_t i = find(name, length);
    if (i == COUNT(scalars)) return OCTAVO_PY_UNKNOWN;
    return scalars[i].storage == REAL ? OCTAVO_PY_REAL : OCTAVO_PY_INTEGER;
}

static void set_used(octavo_attention_args *args, size_t i) {
    const bool used = true;
    if (scalars[i].use != 0) memcpy((char *)args + scalars[i].use, &used, sizeof used);
}

void octavo_py_set_real(octavo_attention_args *args, const char *name, size_t length,
                        double value) {
    const size_t i = find(name, length);
    if (i == COUNT(scalars)) return;
    memcpy((char *)args + scalars[i].offset, &value, sizeof value);
    set_used(args, i);
}

void octavo_py_set_integer(octavo_attention_args *args, const char *name, size_t length,
                           int64_t value) {
    const size_t i = find(name, length);
    if (i == COUNT(scalars)) return;
    char *at = (char *)args + scalars[i].offset;
    const bool flag = value != 0;
    /* a choice outside its enum stays outside: the check then names it */
    const int choice = value < 0 || value > INT16_MAX ? -1 : (int)value;
    switch (scalars[i].storage) {
    case REAL:
        break;
    case INTEGER:
        memcpy(at, &value, sizeof value);
        break;
    case FLAG:
        memcpy(at, &flag, sizeof flag);
        break;
    case TYPE:
        args->type = (octavo_attention_type)choice;
        break;
    case PRECISION:
        args->precision = (octavo_attention_precision)choice;
        break;
    case LAYOUT:
        args->layout = (octavo_kv_layout)choice;
        break;
    }
    set_used(args, i);
}
