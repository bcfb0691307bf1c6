/* SPDX-License-Identifier: Apache-2.0
 *
 * The binary interface of XLA's typed custom calls (major version 0), as far as it is used here.
 * It is declared again so that building needs no jaxlib, whose headers are its only source;
 * tests/python/test_xla_abi.py compares the two where jaxlib is installed.
 */
#ifndef OCTAVO_PYTHON_XLA_ABI_H
#define OCTAVO_PYTHON_XLA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define XLA_MAJOR 0

enum { XLA_EXTENSION_METADATA = 1 };
enum { XLA_STAGE_EXECUTE = 3 };
enum { XLA_BUFFER = 1 }; /* of operands and of results */
enum { XLA_ATTRIBUTE_SCALAR = 3, XLA_ATTRIBUTE_STRING = 4 };
enum { XLA_INVALID_ARGUMENT = 3, XLA_RESOURCE_EXHAUSTED = 8, XLA_INTERNAL = 13 };
enum {
    XLA_S8 = 2,
    XLA_S32 = 4,
    XLA_S64 = 5,
    XLA_F16 = 10,
    XLA_F32 = 11,
    XLA_F64 = 12,
    XLA_BF16 = 16,
    XLA_F8E5M2 = 19,
    XLA_F8E4M3FN = 20,
};

/* Structures begin with their size, so that later versions can be told apart. */
typedef struct xla_extension {
    size_t size;
    int type;
    struct xla_extension *next;
} xla_extension;

typedef struct xla_version {
    size_t size;
    xla_extension *extensions;
    int major;
    int minor;
} xla_version;

typedef struct xla_error xla_error;

typedef struct xla_error_args {
    size_t size;
    xla_extension *extensions;
    const char *message;
    int code;
} xla_error_args;

/* The table goes on behind what is used. */
typedef struct xla_api {
    size_t size;
    xla_extension *extensions;
    xla_version version;
    const void *internal;
    xla_error *(*error_create)(xla_error_args *args);
} xla_api;

typedef struct xla_buffer {
    size_t size;
    xla_extension *extensions;
    int dtype;
    void *data;
    int64_t n_axes;
    int64_t *extents;
} xla_buffer;

typedef struct xla_text {
    const char *text;
    size_t length;
} xla_text;

typedef struct xla_scalar {
    int dtype;
    void *value;
} xla_scalar;

/* Operands and results alike. */
typedef struct xla_values {
    size_t size;
    xla_extension *extensions;
    int64_t n;
    int *types;
    void **values;
} xla_values;

typedef struct xla_attributes {
    size_t size;
    xla_extension *extensions;
    int64_t n;
    int *types;
    xla_text **names;
    void **values;
} xla_attributes;

typedef struct xla_call_frame {
    size_t size;
    xla_extension *extensions;
    const xla_api *api;
    void *context;
    int stage;
    xla_values operands;
    xla_values results;
    xla_attributes attributes;
} xla_call_frame;

typedef struct xla_metadata {
    size_t size;
    xla_version version;
    uint32_t traits;
} xla_metadata;

typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

#endif
