/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a golden case. A malformed one ends the program.
 */
#include "rpa_case.h"

#include "base/number.h"

static octavo_dtype type_of(const char *name) {
    static const struct {
        const char *name;
        octavo_dtype dtype;
    } names[] = {
        {"float32", OCTAVO_DTYPE_F32},
        {"float16", OCTAVO_DTYPE_F16},
        {"bfloat16", OCTAVO_DTYPE_BF16},
        {"float8_e4m3fn", OCTAVO_DTYPE_FP8_E4M3},
        {"float8_e5m2", OCTAVO_DTYPE_FP8_E5M2},
        {"int8", OCTAVO_DTYPE_INT8},
        {"int32", OCTAVO_DTYPE_I32},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, name) == 0) return names[i].dtype;
    }
    npy_die(name, "unknown element type in case.txt");
    return OCTAVO_DTYPE_F32;
}

/* Where an array of this name goes; NULL: it is an expectation. */
static octavo_array *slot_of(octavo_attention_args *args, const char *name) {
    const struct {
        const char *name;
        octavo_array *array;
    } slots[] = {
        {"queries", &args->queries},
        {"keys", &args->keys},
        {"values", &args->values},
        {"kv_cache", &args->kv_cache},
        {"kv_lens", &args->kv_lens},
        {"block_tables", &args->block_tables},
        {"query_start_loc", &args->query_start_loc},
        {"distribution", &args->distribution},
        {"attention_sink", &args->attention_sink},
    };
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        if (strcmp(slots[i].name, name) == 0) return slots[i].array;
    }
    return NULL;
}

static void load_array(rpa_case *c, const char *folder, const char *line) {
    char name[64], file[64], stored[32], type[32], path[4096];
    if (sscanf(line, "array %63s %63s %31s %31s", name, file, stored, type) != 4)
        npy_die(line, "a line of case.txt that is not understood");
    snprintf(path, sizeof path, "%s/%s", folder, file);
    npy array = npy_read(path);
    octavo_array *slot = slot_of(&c->args, name);
    if (slot == NULL) {
        npy *to = strcmp(name, "expect_out") == 0     ? &c->expect_out
                  : strcmp(name, "expect_slots") == 0 ? &c->expect_slots
                  : strcmp(name, "expect_rows") == 0  ? &c->expect_rows
                                                      : NULL;
        if (to == NULL) npy_die(name, "an array of case.txt that is not known");
        *to = array;
        c->has_expectation = true;
        return;
    }
    c->arrays[c->n_arrays++] = array;
    *slot = (octavo_array){.data = array.data, .dtype = type_of(type), .n_axes = array.n_axes};
    memcpy(slot->extents, array.extents, sizeof slot->extents);
}

static void set_parameter(rpa_case *c, const char *name, const char *text) {
    octavo_attention_args *args = &c->args;
    const bool is_given = strcmp(text, "none") != 0;
    const double value = atof(text);
    if (strcmp(name, "softmax_scale") == 0) {
        args->softmax_scale = is_given ? value : 1.0;
    } else if (strcmp(name, "sliding_window") == 0) {
        args->use_sliding_window = is_given;
        args->sliding_window = is_given ? atoll(text) : 1;
    } else if (strcmp(name, "logits_soft_cap") == 0) {
        args->use_logits_soft_cap = is_given;
        args->logits_soft_cap = is_given ? value : 1.0;
    } else if (strcmp(name, "q_scale") == 0) {
        args->use_q_scale = is_given;
        args->q_scale = is_given ? value : 1.0;
    } else if (strcmp(name, "k_scale") == 0) {
        args->use_k_scale = is_given;
        args->k_scale = is_given ? value : 1.0;
    } else if (strcmp(name, "v_scale") == 0) {
        args->use_v_scale = is_given;
        args->v_scale = is_given ? value : 1.0;
    } else if (strcmp(name, "update_kv_cache") == 0) {
        args->update_kv_cache = value != 0.0;
    } else if (strcmp(name, "tolerance") == 0) {
        if (sscanf(text, "%lf %lf", &c->rtol, &c->atol) != 2)
            npy_die(text, "a tolerance needs two numbers");
    }
}

void rpa_case_load(rpa_case *c, const char *folder) {
    char path[4096], line[512];
    *c = (rpa_case){0};
    octavo_attention_args_init(&c->args);
    snprintf(path, sizeof path, "%s/case.txt", folder);
    FILE *file = fopen(path, "r");
    if (file == NULL) npy_die(path, "cannot be opened");
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *value = strchr(line, ' ');
        if (value == NULL) continue;
        if (strncmp(line, "array ", 6) == 0) {
            load_array(c, folder, line);
        } else {
            *value = '\0';
            set_parameter(c, line, value + 1);
        }
    }
    fclose(file);
    c->args.output = c->args.queries;
    size_t bytes = octavo_dtype_size(c->args.queries.dtype);
    for (int32_t i = 0; i < c->args.queries.n_axes; i++)
        bytes *= (size_t)c->args.queries.extents[i];
    c->output = malloc(bytes + 1);
    if (c->output == NULL) npy_die(folder, "out of memory");
    memset(c->output, 0xa5, bytes);
    c->args.output.data = c->output;
}

void rpa_case_free(rpa_case *c) {
    for (int i = 0; i < c->n_arrays; i++)
        npy_free(&c->arrays[i]);
    npy_free(&c->expect_out);
    npy_free(&c->expect_slots);
    npy_free(&c->expect_rows);
    free(c->output);
    *c = (rpa_case){0};
}

double rpa_value(const void *data, octavo_dtype dtype, int64_t i) {
    switch (dtype) {
    case OCTAVO_DTYPE_F16:
        return (double)octavo_f16_to_f32(((const uint16_t *)data)[i]);
    case OCTAVO_DTYPE_BF16:
        return (double)octavo_bf16_to_f32(((const uint16_t *)data)[i]);
    case OCTAVO_DTYPE_FP8_E4M3:
        return (double)octavo_fp8_e4m3_to_f32(((const uint8_t *)data)[i]);
    case OCTAVO_DTYPE_FP8_E5M2:
        return (double)octavo_fp8_e5m2_to_f32(((const uint8_t *)data)[i]);
    case OCTAVO_DTYPE_INT8:
        return (double)((const int8_t *)data)[i];
    default:
        return (double)((const float *)data)[i];
    }
}
