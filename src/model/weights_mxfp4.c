/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes and scales that lie apart.
 */
#include "model/weights_mxfp4.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { INPUTS = 32, CODE_BYTES = INPUTS / 2 }; /* of a block */

static void make_name(const octavo_loader *load, octavo_weight_role role, int layer,
                      const char *suffix, char *name) {
    octavo_weight_name_make(load->checkpoint, load->config->names, role, layer, 0, name);
    const size_t used = strlen(name);
    snprintf(name + used, OCTAVO_WEIGHT_NAME_SIZE - used, "%s", suffix);
}

bool octavo_mxfp4_is_there(const octavo_loader *load, octavo_weight_role role, int layer) {
    static const char *const suffixes[] = {"_blocks", "_scales"};
    for (size_t i = 0; i < OCTAVO_COUNT(suffixes); i++) {
        char name[OCTAVO_WEIGHT_NAME_SIZE];
        make_name(load, role, layer, suffixes[i], name);
        if (octavo_checkpoint_find(load->checkpoint, name) >= 0) return true;
    }
    return false;
}

static octavo_status find_bytes(octavo_loader *load, const char *name, int n_dims,
                                const int64_t *shape, octavo_checkpoint_tensor *tensor) {
    octavo_status status = octavo_checkpoint_get(load->checkpoint, name, tensor, load->error);
    if (status) return status;
    bool is_right = tensor->n_dims == n_dims;
    for (int i = 0; i < n_dims && is_right; i++)
        is_right = tensor->extent[i] == (uint64_t)shape[i];
    if (!is_right) return octavo_load_fail_shape(load, tensor, n_dims, shape);
    if (strcmp(tensor->type_name, "U8") == 0) return OCTAVO_OK;
    return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
                          "tensor \"%s\" (%s): type %s for codes or scales of MXFP4; U8 is read",
                          tensor->name, tensor->path, tensor->type_name);
}

octavo_status octavo_mxfp4_find(octavo_loader *load, int64_t stack, int64_t rows, int64_t k,
                                octavo_weight_role role, int layer, octavo_mxfp4 *found) {
    const int64_t shape[] = {stack, rows, (k + INPUTS - 1) / INPUTS, CODE_BYTES};
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_status status;
    make_name(load, role, layer, "_blocks", name);
    if ((status = find_bytes(load, name, 4, shape, &found->blocks))) return status;
    if (k % INPUTS != 0)
        return octavo_fail_at(load->error, OCTAVO_ERROR_FORMAT, found->blocks.offset,
                              "tensor \"%s\" (%s): blocks of %d do not divide the %lld inputs that "
                              "config.json asks for; the file is damaged or of another model",
                              found->blocks.name, found->blocks.path, INPUTS, (long long)k);
    make_name(load, role, layer, "_scales", name);
    return find_bytes(load, name, 3, shape, &found->scales);
}

/* One row of n blocks [n][16] and scales [n]. */
static bool join(uint8_t *to, const uint8_t *blocks, const uint8_t *scales, int64_t n) {
    bool is_right = true;
    for (int64_t i = 0; i < n; i++, to += 1 + CODE_BYTES, blocks += CODE_BYTES) {
        is_right &= scales[i] != 255;
        to[0] = scales[i];
        for (int j = 0; j < CODE_BYTES; j += 2) { /* inputs j and j + 1 of each half */
            const uint8_t near = blocks[j / 2], far = blocks[CODE_BYTES / 2 + j / 2];
            to[1 + j] = (uint8_t)((near & 15) | (far & 15) << 4);
            to[2 + j] = (uint8_t)(near >> 4 | (far & 0xf0));
        }
    }
    return is_right;
}

bool octavo_mxfp4_fill(const void *cookie, uint8_t *to, int64_t row, int n, int64_t k0,
                       int64_t k1) {
    const octavo_mxfp4_source *source = cookie;
    const int64_t some = (k1 - k0) / INPUTS;
    bool is_right = true;
    for (int i = 0; i < n; i++, to += some * (1 + CODE_BYTES)) {
        const int64_t first =
            (source->columns.first + (row + i) * source->columns.step) * source->n_blocks +
            k0 / INPUTS;
        is_right &= join(to, source->blocks + first * CODE_BYTES, source->scales + first, some);
    }
    return is_right;
}
