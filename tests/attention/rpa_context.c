/* SPDX-License-Identifier: Apache-2.0 */
#include "rpa_context.h"

#include "base/cpu.h"

#include <stdio.h>
#include <stdlib.h>

const char *rpa_level(int i) {
    octavo_cpu_flags usable;
    if (octavo_cpu_select(NULL, &usable, NULL) != OCTAVO_OK) abort();
    size_t count;
    const octavo_cpu_level *levels = octavo_cpu_levels(&count);
    for (size_t k = 0; k < count; k++) {
        if ((levels[k].flags & usable) == levels[k].flags && i-- == 0) return levels[k].name;
    }
    return NULL;
}

octavo_attention_context *rpa_context(const char *isa, int n_threads) {
    octavo_attention_options options;
    octavo_attention_options_init(&options);
    options.isa = isa;
    options.n_threads = n_threads;
    octavo_attention_context *context = NULL;
    octavo_error error;
    if (octavo_attention_context_create(&context, &options, &error) != OCTAVO_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(2);
    }
    return context;
}
