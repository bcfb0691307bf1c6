/* SPDX-License-Identifier: Apache-2.0
 *
 * rpa_run CASE OUT: runs one golden case and writes OUT/out.npy and OUT/cache.npy, for a checker in
 * another language. OCTAVO_CPU and RPA_THREADS choose how. Exit status 1: refused.
 */
#include "rpa_case.h"

static void write_array(const char *folder, const char *name, const octavo_array *array) {
    char path[4096];
    const octavo_dtype dtype = array->dtype;
    const bool is_float = dtype == OCTAVO_DTYPE_F32 || dtype == OCTAVO_DTYPE_F16;
    npy file = {.kind = is_float                     ? 'f'
                        : dtype == OCTAVO_DTYPE_INT8 ? 'i'
                                                     : 'u',
                .item = (int)octavo_dtype_size(array->dtype),
                .n_axes = array->n_axes,
                .n_elements = 1,
                .data = array->data};
    for (int i = 0; i < array->n_axes; i++) {
        file.extents[i] = array->extents[i];
        file.n_elements *= array->extents[i];
    }
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    npy_write(path, &file);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: rpa_run CASE OUT\n");
        return 2;
    }
    rpa_case c;
    rpa_case_load(&c, argv[1]);
    const char *threads = getenv("RPA_THREADS");
    octavo_attention_options options;
    octavo_attention_options_init(&options);
    options.n_threads = threads != NULL ? atoi(threads) : 2;
    octavo_attention_context *context = NULL;
    octavo_error error;
    octavo_status status = octavo_attention_context_create(&context, &options, &error);
    if (status == OCTAVO_OK) status = octavo_ragged_paged_attention(context, &c.args, &error);
    if (status == OCTAVO_OK) {
        write_array(argv[2], "out", &c.args.output);
        write_array(argv[2], "cache", &c.args.kv_cache);
    } else {
        fprintf(stderr, "%s: %s\n", octavo_status_name(status), error.message);
    }
    octavo_attention_context_destroy(&context);
    rpa_case_free(&c);
    return status == OCTAVO_OK ? 0 : 1;
}
