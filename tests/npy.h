/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes .npy files (format version 1 and 2, C order, little-endian numbers). For tests:
 * a bad file ends the program with a message.
 */
#ifndef OCTAVO_TESTS_NPY_H
#define OCTAVO_TESTS_NPY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NPY_MAX_AXES 8

typedef struct npy {
    char kind; /* 'f' float, 'i' signed, 'u' unsigned, 'b' bool */
    int item;  /* bytes of an element */
    int n_axes;
    int64_t extents[NPY_MAX_AXES];
    int64_t n_elements;
    void *data; /* free with npy_free */
} npy;

static inline void npy_die(const char *path, const char *why) {
    fprintf(stderr, "npy (%s): %s\n", path, why);
    exit(2);
}

/* The text after 'key': in the header. */
static inline const char *npy_field(const char *path, const char *header, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(header, quoted);
    if (at == NULL) npy_die(path, "a key is missing in the header");
    at += strlen(quoted);
    return at + strspn(at, " ");
}

static inline void npy_parse_header(const char *path, const char *header, npy *array) {
    const char *descr = npy_field(path, header, "descr");
    if (descr[0] != '\'' || strchr("<|", descr[1]) == NULL || strchr("fiub", descr[2]) == NULL)
        npy_die(path, "an element type that this reader does not know");
    array->kind = descr[2];
    array->item = atoi(descr + 3);
    if (strncmp(npy_field(path, header, "fortran_order"), "False", 5) != 0)
        npy_die(path, "not in C order");
    const char *at = npy_field(path, header, "shape");
    array->n_elements = 1;
    for (at++; *at != ')' && *at != '\0'; at += strspn(at, ", ")) {
        char *end;
        if (array->n_axes == NPY_MAX_AXES) npy_die(path, "too many axes");
        array->extents[array->n_axes] = strtoll(at, &end, 10);
        if (end == at) npy_die(path, "a shape that is none");
        array->n_elements *= array->extents[array->n_axes++];
        at = end;
    }
}

static inline npy npy_read(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) npy_die(path, "cannot be opened");
    unsigned char start[12];
    if (fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY", 6) != 0)
        npy_die(path, "no .npy file");
    size_t length = start[8] | (size_t)start[9] << 8;
    if (start[6] == 2) {
        if (fread(start + 10, 1, 2, file) != 2) npy_die(path, "cut short");
        length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    char *header = calloc(length + 1, 1);
    if (header == NULL || fread(header, 1, length, file) != length) npy_die(path, "cut short");
    npy array = {0};
    npy_parse_header(path, header, &array);
    free(header);
    size_t bytes = (size_t)array.n_elements * (size_t)array.item;
    array.data = malloc(bytes != 0 ? bytes : 1);
    if (array.data == NULL || fread(array.data, 1, bytes, file) != bytes)
        npy_die(path, "cut short");
    fclose(file);
    return array;
}

static inline void npy_write(const char *path, const npy *array) {
    char shape[NPY_MAX_AXES * 22 + 1] = "", header[NPY_MAX_AXES * 22 + 128];
    for (int i = 0; i < array->n_axes; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld, ",
                 (long long)array->extents[i]);
    int used = snprintf(header, sizeof header,
                        "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (%s), }",
                        array->item == 1 ? '|' : '<', array->kind, array->item, shape);
    int length = (10 + used + 1 + 63) / 64 * 64 - 10;
    FILE *file = fopen(path, "wb");
    if (file == NULL) npy_die(path, "cannot be written");
    size_t bytes = (size_t)array->n_elements * (size_t)array->item;
    int bad = fprintf(file, "%cNUMPY%c%c%c%c%-*s\n", 0x93, 1, 0, length & 0xff, length >> 8,
                      length - 1, header) < 0;
    bad |= fwrite(array->data, 1, bytes, file) != bytes;
    bad |= fclose(file) != 0;
    if (bad) npy_die(path, "cannot be written");
}

static inline void npy_free(npy *array) {
    free(array->data);
    *array = (npy){0};
}

#endif
