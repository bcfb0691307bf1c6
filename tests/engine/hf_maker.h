/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a Hugging Face folder from one of tests/data/models with its config.json and the header of
 * its weights changed, in /tmp. Memory running out, and files that cannot be written, abort.
 */
#ifndef OCTAVO_TESTS_ENGINE_HF_MAKER_H
#define OCTAVO_TESTS_ENGINE_HF_MAKER_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct hf_maker {
    char path[64];  /* the folder */
    json_t *config; /* to be changed between start and write */
    json_t *header; /* of the weights: names, types, shapes, places */
    uint8_t *data;
    size_t data_size;
} hf_maker;

static inline void hf_maker_start(hf_maker *maker, const char *from) {
    char file[300];
    uint64_t length;
    *maker = (hf_maker){.path = "/tmp/octavo-hf-XXXXXX"};
    if (!mkdtemp(maker->path)) abort();
    snprintf(file, sizeof file, TEST_DATA "/models/%s/config.json", from);
    maker->config = json_load_file(file, 0, NULL);
    snprintf(file, sizeof file, TEST_DATA "/models/%s/model.safetensors", from);
    FILE *in = fopen(file, "rb");
    if (!in || fread(&length, 8, 1, in) != 1) abort();
    char *text = malloc((size_t)length);
    if (!text || fread(text, 1, (size_t)length, in) != length) abort();
    maker->header = json_loadb(text, (size_t)length, 0, NULL);
    free(text);
    long begin = ftell(in);
    fseek(in, 0, SEEK_END);
    maker->data_size = (size_t)(ftell(in) - begin);
    fseek(in, begin, SEEK_SET);
    maker->data = malloc(maker->data_size);
    if (!maker->config || !maker->header || !maker->data) abort();
    if (fread(maker->data, 1, maker->data_size, in) != maker->data_size) abort();
    fclose(in);
}

/* config[key] = the JSON text, which "" leaves out. */
static inline void hf_maker_set(hf_maker *maker, const char *key, const char *json) {
    if (json[0] == 0)
        (void)json_object_del(maker->config, key);
    else
        (void)json_object_set_new(maker->config, key, json_loads(json, JSON_DECODE_ANY, NULL));
}

static inline void hf_maker_rename(hf_maker *maker, const char *from, const char *to) {
    (void)json_object_set(maker->header, to, json_object_get(maker->header, from));
    (void)json_object_del(maker->header, from);
}

/* One more tensor, of one axis or, without numbers between the brackets of `shape`, of none. */
static inline void hf_maker_add(hf_maker *maker, const char *name, const char *dtype,
                                const char *shape, const void *data, size_t size) {
    const json_int_t begin = (json_int_t)maker->data_size;
    uint8_t *grown = realloc(maker->data, maker->data_size + size);
    if (!grown) abort();
    memcpy(grown + maker->data_size, data, size);
    maker->data = grown;
    maker->data_size += size;
    if (json_object_set_new(maker->header, name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape",
                                      json_loads(shape, 0, NULL), "data_offsets", begin,
                                      (json_int_t)maker->data_size)))
        abort();
}

static inline void hf_maker_file(const hf_maker *maker, const char *name, char *file, size_t size) {
    snprintf(file, size, "%s/%s", maker->path, name);
}

static inline void hf_maker_put_json(const hf_maker *maker, const char *name, const json_t *json) {
    char file[300];
    hf_maker_file(maker, name, file, sizeof file);
    if (json_dump_file(json, file, JSON_INDENT(1))) abort();
}

static inline void hf_maker_put_text(const hf_maker *maker, const char *name, const char *text) {
    char file[300];
    hf_maker_file(maker, name, file, sizeof file);
    FILE *out = fopen(file, "wb");
    if (!out || fputs(text, out) < 0 || fclose(out)) abort();
}

static inline void hf_maker_put_weights(const hf_maker *maker, const char *name) {
    char file[300], *text = json_dumps(maker->header, JSON_COMPACT);
    uint64_t length = text ? strlen(text) : 0;
    hf_maker_file(maker, name, file, sizeof file);
    FILE *out = fopen(file, "wb");
    if (!out || !text || fwrite(&length, 8, 1, out) != 1 ||
        fwrite(text, 1, (size_t)length, out) != length ||
        fwrite(maker->data, 1, maker->data_size, out) != maker->data_size || fclose(out))
        abort();
    free(text);
}

static inline void hf_maker_write(const hf_maker *maker) {
    hf_maker_put_json(maker, "config.json", maker->config);
    hf_maker_put_weights(maker, "model.safetensors");
}

/* Removes the folder. */
static inline void hf_maker_end(hf_maker *maker) {
    static const char *const names[] = {"config.json",           "model.safetensors",
                                        "a.safetensors",         "b.safetensors",
                                        "chat_template.jinja",   "model.safetensors.index.json",
                                        "tokenizer_config.json", "tokenizer.json"};
    char file[300];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hf_maker_file(maker, names[i], file, sizeof file);
        unlink(file);
    }
    rmdir(maker->path);
    json_decref(maker->config);
    json_decref(maker->header);
    free(maker->data);
}

#endif
