/* SPDX-License-Identifier: Apache-2.0
 *
 * Idle attention contexts of the process. A call borrows one made with its settings, or makes one;
 * so contexts are never shared by running calls, however many threads call, and no more exist than
 * calls ran at once. Works without the interpreter's lock. A forked child, which has none of the
 * threads that a context owns, starts with none.
 */
#ifndef OCTAVO_PYTHON_CONTEXTS_H
#define OCTAVO_PYTHON_CONTEXTS_H

#include "octavo/attention.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCTAVO_PY_ISA_BYTES 16

/* What contexts are told apart by. */
typedef struct octavo_py_settings {
    int32_t n_threads; /* 0: one for each core */
    bool pin;
    char isa[OCTAVO_PY_ISA_BYTES]; /* "" for the best there is */
} octavo_py_settings;

/* Fills in isa from a text that need not end with a zero. OCTAVO_ERROR_INVALID: n_threads does not
 * fit or isa is longer than any name. */
OCTAVO_MUST_CHECK octavo_status octavo_py_settings_make(octavo_py_settings *settings,
                                                        int64_t n_threads, bool pin,
                                                        const char *isa, size_t isa_length,
                                                        octavo_error *error);

/* The caller gives *context back by octavo_py_context_return. Fails as
 * octavo_attention_context_create. Any thread. */
OCTAVO_MUST_CHECK octavo_status octavo_py_context_borrow(octavo_attention_context **context,
                                                         const octavo_py_settings *settings,
                                                         octavo_error *error);
void octavo_py_context_return(octavo_attention_context *context,
                              const octavo_py_settings *settings);

/* Destroys the idle contexts of these settings. Any thread. */
void octavo_py_contexts_release(const octavo_py_settings *settings);

/* Once, before all else: what happens at a fork. */
void octavo_py_contexts_init(void);

#endif
