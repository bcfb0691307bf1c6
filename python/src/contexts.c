/* SPDX-License-Identifier: Apache-2.0
 *
 * The idle contexts: a short list under a lock. Contexts are made and destroyed outside of it.
 */
#include "contexts.h"

#include "base/error.h"

#include <pthread.h>
#include <string.h>

/* More are destroyed when they come back. */
#define MOST_IDLE 16

typedef struct idle_context {
    octavo_attention_context *context;
    octavo_py_settings settings;
} idle_context;

/* Guarded by `lock`; the last one returned is the first one borrowed. */
static struct {
    pthread_mutex_t lock;
    size_t n;
    idle_context contexts[MOST_IDLE];
} idle = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool same_settings(const octavo_py_settings *a, const octavo_py_settings *b) {
    return a->n_threads == b->n_threads && a->pin == b->pin && strcmp(a->isa, b->isa) == 0;
}

/* Takes the newest idle context of these settings off the list; NULL if there is none. */
static octavo_attention_context *take(const octavo_py_settings *settings) {
    octavo_attention_context *context = NULL;
    (void)pthread_mutex_lock(&idle.lock);
    for (size_t i = idle.n; i > 0 && context == NULL; i--) {
        if (!same_settings(&idle.contexts[i - 1].settings, settings)) continue;
        context = idle.contexts[i - 1].context;
        memmove(&idle.contexts[i - 1], &idle.contexts[i], (idle.n - i) * sizeof idle.contexts[0]);
        idle.n--;
    }
    (void)pthread_mutex_unlock(&idle.lock);
    return context;
}

octavo_status octavo_py_settings_make(octavo_py_settings *settings, int64_t n_threads, bool pin,
                                      const char *isa, size_t isa_length, octavo_error *error) {
    if (n_threads < 0 || n_threads > INT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention context (threads): %lld; it must be at least 1, or 0 for one "
                           "on each core",
                           (long long)n_threads);
    if (isa_length >= sizeof settings->isa || memchr(isa, 0, isa_length) != NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention context (isa): no instruction set has such a name; use "
                           "\"scalar\", \"avx2\", \"avx512\" or \"neon\"");
    octavo_py_settings made = {.n_threads = (int32_t)n_threads, .pin = pin};
    memcpy(made.isa, isa, isa_length);
    *settings = made;
    return OCTAVO_OK;
}

octavo_status octavo_py_context_borrow(octavo_attention_context **context,
                                       const octavo_py_settings *settings, octavo_error *error) {
    octavo_attention_context *found = take(settings);
    if (found != NULL) {
        *context = found;
        return OCTAVO_OK;
    }
    octavo_attention_options options;
    octavo_attention_options_init(&options);
    options.n_threads = settings->n_threads;
    options.pin = settings->pin;
    if (settings->isa[0] != '\0') options.isa = settings->isa;
    return octavo_attention_context_create(context, &options, error);
}

void octavo_py_context_return(octavo_attention_context *context,
                              const octavo_py_settings *settings) {
    octavo_attention_context *surplus = context;
    (void)pthread_mutex_lock(&idle.lock);
    if (idle.n < MOST_IDLE) {
        idle.contexts[idle.n++] = (idle_context){context, *settings};
        surplus = NULL;
    }
    (void)pthread_mutex_unlock(&idle.lock);
    octavo_attention_context_destroy(&surplus);
}

void octavo_py_contexts_release(const octavo_py_settings *settings) {
    octavo_attention_context *context;
    while ((context = take(settings)) != NULL)
        octavo_attention_context_destroy(&context);
}

static void before_fork(void) {
    (void)pthread_mutex_lock(&idle.lock);
}

static void after_fork_in_parent(void) {
    (void)pthread_mutex_unlock(&idle.lock);
}

/* Contexts are forgotten, not destroyed: their threads cannot be joined here. */
static void after_fork_in_child(void) {
    idle.n = 0;
    (void)pthread_mutex_unlock(&idle.lock);
}

void octavo_py_contexts_init(void) {
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
