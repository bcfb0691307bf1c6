/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of a model's weights, and the parts of them that are held.
 */
#include "model/weights_place.h"

#include "base/compiler.h"
#include "base/error.h"

octavo_weight_member octavo_weights_member(const octavo_model_weights *weights,
                                           const void *address) {
    const uintptr_t at = (uintptr_t)address, layers = (uintptr_t)weights->layers;
    const size_t layer_bytes = sizeof *weights->layers;
    if (at >= layers && at - layers < (size_t)weights->n_layers * layer_bytes)
        return (octavo_weight_member){(int)((at - layers) / layer_bytes),
                                      (at - layers) % layer_bytes};
    octavo_assert(at - (uintptr_t)weights < sizeof *weights);
    return (octavo_weight_member){OCTAVO_NO_LAYER, at - (uintptr_t)weights};
}

/* The axis is one of "outputs", "inputs", "experts". */
static octavo_status check_range(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                                 const char *axis, int64_t begin, int64_t end, int64_t extent) {
    if (begin >= 0 && begin <= end && end <= extent) return OCTAVO_OK;
    return octavo_fail(load->error, OCTAVO_ERROR_INVALID,
                       "tensor \"%s\" (%s): %s %lld to %lld are no part of its %lld; a part lies "
                       "within the whole",
                       tensor->name, tensor->path, axis, (long long)begin, (long long)end,
                       (long long)extent);
}

static octavo_status check_cut(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                               octavo_weight_type type, int64_t at, int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    const int64_t step = info->record_inputs, below = at / step * step;
    const int64_t nearest = at - below <= step / 2 || below + step > k ? below : below + step;
    if (at % step == 0 || at == k) return OCTAVO_OK;
    return octavo_fail(load->error, OCTAVO_ERROR_INVALID,
                       "tensor \"%s\" (%s): its %lld inputs cannot be cut at %lld, which divides a "
                       "block of %lld of type %s; the nearest cut is at %lld",
                       tensor->name, tensor->path, (long long)k, (long long)at, (long long)step,
                       info->name, (long long)nearest);
}

octavo_status octavo_load_place(octavo_loader *load, const void *member,
                                const octavo_checkpoint_tensor *tensor, octavo_weight_type type,
                                octavo_weight_part *part) {
    const octavo_weights_options *options = load->options;
    const octavo_weight_part whole = *part;
    octavo_status status;
    if (!options->place) return OCTAVO_OK;
    const octavo_weight_member found = octavo_weights_member(load->weights, member);
    options->place(options->place_cookie, &found, part);
    if ((status = check_range(load, tensor, "outputs", part->n0, part->n1, whole.n1)) ||
        (status = check_range(load, tensor, "inputs", part->k0, part->k1, whole.k1)) ||
        (status = check_range(load, tensor, "matrices", part->e0, part->e1, whole.e1)))
        return status;
    if (part->k0 == part->k1) return OCTAVO_OK;
    if ((status = check_cut(load, tensor, type, part->k0, whole.k1))) return status;
    return check_cut(load, tensor, type, part->k1, whole.k1);
}
