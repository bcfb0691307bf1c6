/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders that must be refused, and what the message must say.
 */
#ifndef OCTAVO_TESTS_ENGINE_HF_BAD_H
#define OCTAVO_TESTS_ENGINE_HF_BAD_H

#include "../unit.h"
#include "base/compiler.h"
#include "hf_maker.h"

#include "octavo/model.h"

static inline octavo_status open_path(const char *path, octavo_error *error) {
    octavo_model *model = NULL;
    octavo_status status = octavo_model_open(path, NULL, &model, error);
    assert_true((status == OCTAVO_OK) == (model != NULL));
    octavo_model_close(&model);
    return status;
}

static inline void refused(octavo_status got, octavo_status want, const octavo_error *error,
                           const char *culprit, const char *file) {
    if (got != want || !strstr(error->message, culprit) || !strstr(error->message, file))
        fail_msg("status %s, message \"%s\"; wanted %s, \"%s\" and \"%s\"", octavo_status_name(got),
                 error->message, octavo_status_name(want), culprit, file);
    assert_int_equal(error->status, want);
    assert_null(strchr(error->message, '\n'));
}

typedef struct bad_config {
    const char *key, *json; /* "": left out */
    octavo_status status;
    const char *culprit; /* NULL: the key, in quotes */
} bad_config;

/* Opens a model with each of the changes to its config.json in turn; `file` is to blame. */
static inline void check_configs(const char *from, const bad_config *cases, size_t n,
                                 const char *file) {
    for (size_t i = 0; i < n; i++) {
        hf_maker maker;
        octavo_error error;
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\"", cases[i].key);
        hf_maker_start(&maker, from);
        hf_maker_set(&maker, cases[i].key, cases[i].json);
        hf_maker_write(&maker);
        octavo_status status = open_path(maker.path, &error);
        if (cases[i].status == OCTAVO_OK)
            assert_int_equal(status, OCTAVO_OK);
        else
            refused(status, cases[i].status, &error, cases[i].culprit ? cases[i].culprit : quoted,
                    file);
        hf_maker_end(&maker);
    }
}

/* A type of the same size that is not read in its place. */
static inline const char *other_dtype(const char *dtype) {
    if (strcmp(dtype, "U8") == 0 || strncmp(dtype, "F8", 2) == 0) return "I8";
    if (strcmp(dtype, "I32") == 0) return "F32";
    return strcmp(dtype, "F32") == 0 ? "I32" : "I16";
}

/* A tensor is away, has another shape or a type that cannot be run: the message names `culprit`. */
static inline void check_tensor(const char *from, const char *name, const char *culprit) {
    hf_maker maker;
    octavo_error error;
    hf_maker_start(&maker, from);
    hf_maker_rename(&maker, name, "elsewhere");
    hf_maker_write(&maker);
    refused(open_path(maker.path, &error), OCTAVO_ERROR_NOT_FOUND, &error, culprit,
            "model.safetensors");
    hf_maker_rename(&maker, "elsewhere", name);

    json_t *entry = json_object_get(maker.header, name);
    json_t *shape = json_object_get(entry, "shape");
    (void)json_array_append_new(shape, json_integer(1));
    hf_maker_write(&maker);
    refused(open_path(maker.path, &error), OCTAVO_ERROR_FORMAT, &error, culprit,
            "model.safetensors");
    (void)json_array_remove(shape, json_array_size(shape) - 1);

    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    (void)json_object_set_new(entry, "dtype", json_string(other_dtype(dtype)));
    hf_maker_write(&maker);
    refused(open_path(maker.path, &error), OCTAVO_ERROR_UNSUPPORTED, &error, culprit,
            "model.safetensors");
    hf_maker_end(&maker);
}

#endif
