/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of single arrays, for octavo_attention_check. `name` is the argument's, `axes` what it
 * must be, as messages have them.
 */
#ifndef OCTAVO_ATTENTION_CHECK_ARRAY_H
#define OCTAVO_ATTENTION_CHECK_ARRAY_H

#include "octavo/attention.h"

#define OCTAVO_ATTENTION_CALL "ragged paged attention"

/* Extents as "[3, 4, 5]" for messages. */
typedef struct attention_shape_text {
    char text[OCTAVO_ARRAY_MAX_AXES * 22 + 4];
} attention_shape_text;

attention_shape_text attention_shape_of(const octavo_array *array);

/* In elements, also of a dense array. */
int64_t attention_stride_of(const octavo_array *array, int32_t axis);

/* The number of axes, extents and strides that fit the address space, and data. */
OCTAVO_MUST_CHECK octavo_status attention_check_array(const octavo_array *array, const char *name,
                                                      int32_t n_axes, const char *axes,
                                                      bool needs_data, octavo_error *error);
/* Elements of what is written must not share memory: each stride spans all that is inside it. */
OCTAVO_MUST_CHECK octavo_status attention_check_written(const octavo_array *array, const char *name,
                                                        octavo_error *error);
/* One axis of i32. */
OCTAVO_MUST_CHECK octavo_status attention_check_index_array(const octavo_array *array,
                                                            const char *name, const char *axes,
                                                            octavo_error *error);
/* Absent, or one f32 for each head. */
OCTAVO_MUST_CHECK octavo_status attention_check_per_head(const octavo_array *array,
                                                         const char *name, const char *axes,
                                                         int64_t n_heads, octavo_error *error);

#endif
