/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of a call by name and by number, once for both callers: Python, which names its
 * scalars in a dict, and XLA, which names them as attributes. Arrays have a fixed order.
 */
#ifndef OCTAVO_PYTHON_ARGUMENTS_H
#define OCTAVO_PYTHON_ARGUMENTS_H

#include "octavo/attention.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The order of arrays at the border; python/octavo/_arrays.py names them in the same order. */
typedef enum octavo_py_array {
    OCTAVO_PY_QUERIES,
    OCTAVO_PY_KEYS,
    OCTAVO_PY_VALUES,
    OCTAVO_PY_KV_CACHE,
    OCTAVO_PY_KV_LENS,
    OCTAVO_PY_BLOCK_TABLES,
    OCTAVO_PY_QUERY_START_LOC,
    OCTAVO_PY_DISTRIBUTION,
    OCTAVO_PY_ATTENTION_SINK,
    OCTAVO_PY_KEY_START_LOC,
    OCTAVO_PY_ALIBI_SLOPES,
    OCTAVO_PY_K_SCALES,
    OCTAVO_PY_V_SCALES,
    OCTAVO_PY_OUTPUT,
    OCTAVO_PY_N_ARRAYS
} octavo_py_array;

/* The name of an array for messages. */
const char *octavo_py_array_name(octavo_py_array which);
octavo_array *octavo_py_array_of(octavo_attention_args *args, octavo_py_array which);

typedef enum octavo_py_kind {
    OCTAVO_PY_UNKNOWN, /* no scalar has this name */
    OCTAVO_PY_REAL,
    OCTAVO_PY_INTEGER, /* numbers, choices (enum values) and flags (not 0) */
} octavo_py_kind;

/* What kind of scalar a name is. */
octavo_py_kind octavo_py_scalar_kind(const char *name, size_t length);
/* Sets the scalar, and the use_ flag that goes with it. The kind must be the name's. */
void octavo_py_set_real(octavo_attention_args *args, const char *name, size_t length, double value);
void octavo_py_set_integer(octavo_attention_args *args, const char *name, size_t length,
                           int64_t value);

#endif
