/* SPDX-License-Identifier: Apache-2.0 */
#include "rpa_context.h"

#include "base/cpu.h"
#include "kernels/attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rpa_level(int i) {
    const octavo_cpu_flags usable = octavo_cpu_detect();
    size_t count;
    const octavo_cpu_level *levels = octavo_cpu_levels(&count);
    octavo_attention_kernels last = {0};
    for (size_t k = 0; k < count; k++) {
        if ((levels[k].flags & usable) != levels[k].flags) continue;
        octavo_attention_kernels kernels = {0};
        octavo_attention_kernels_init(&kernels, levels[k].flags);
        if (memcmp(&kernels, &last, sizeof kernels) == 0) continue; /* nothing new in it */
        if (i-- == 0) return levels[k].name;
        last = kernels;
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
