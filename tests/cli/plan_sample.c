/* SPDX-License-Identifier: Apache-2.0
 *
 * Made from a few words, so that meshes of any size can be had.
 */
#include "plan_sample.h"

#include <stdbool.h>
#include <stdio.h>

static json_t *parse(const char *text) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    return value;
}

/* n + 1 boundaries of an extent, or null where it is whole. */
static json_t *cuts_of(int extent, int n) {
    json_t *cuts = n > 1 ? json_array() : json_null();
    for (int i = 0; n > 1 && i <= n; i++)
        json_array_append_new(cuts, json_integer((json_int_t)extent * i / n));
    return cuts;
}

static void add_tensor(json_t *tensors, const char *name, const char *kind, const char *spec,
                       const int extents[2], const int shards[2], json_t *layers) {
    json_array_append_new(
        tensors, json_pack("{s:s, s:s, s:[i,i], s:o, s:[i,i], s:i, s:[o,o], s:o}", "name", name,
                           "kind", kind, "shape", extents[0], extents[1], "spec", parse(spec),
                           "shard_shape", (extents[0] + shards[0] - 1) / shards[0],
                           (extents[1] + shards[1] - 1) / shards[1], "bytes_per_rank",
                           4 * extents[0] * extents[1] / (shards[0] * shards[1]), "cuts",
                           cuts_of(extents[0], shards[0]), cuts_of(extents[1], shards[1]), "layers",
                           layers));
}

static void add_collective(json_t *list, const char *op, const char *tensor, int layer, int bytes,
                           const char *reason) {
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:o, s:[s], s:i, s:i, s:i, s:s}", "op", op, "tensor", tensor,
                        "layer", layer < 0 ? json_null() : json_integer(layer), "axes", "model",
                        "group", 2, "bytes", bytes, "wire_bytes", bytes, "reason", reason));
}

static void add_op(json_t *timeline, const char *op, int layer, double *now, bool is_collective) {
    const double seconds = 1e-5 * (double)(1 + json_array_size(timeline) % 7);
    json_array_append_new(
        timeline, json_pack("{s:s, s:s, s:o, s:f, s:f, s:s}", "op", op, "tensor", "activation_td",
                            "layer", layer < 0 ? json_null() : json_integer(layer), "start_s", *now,
                            "seconds", seconds, "kind", is_collective ? "collective" : "compute"));
    *now += seconds;
}

static json_t *phase_of(int layers, int bytes) {
    json_t *collectives = json_array(), *timeline = json_array();
    double now = 0.0;
    for (int i = 0; i < layers; i++) {
        add_collective(collectives, "all-reduce", "activation_attention_out_td", i, bytes,
                       "a sum over N, which is split over model, is read whole by the norm");
        add_collective(collectives, "all-reduce", "activation_td", i, bytes, "a sum over F");
        if (i % 2)
            add_collective(collectives, "all-to-all", "activation_ffw_ted", i, bytes / 2,
                           "tokens go where their experts are");
    }
    add_collective(collectives, "all-gather", "logits_tv", -1, 3 * bytes, "whole rows are sampled");
    add_op(timeline, "embed", -1, &now, false);
    for (int layer = 0; layer < 2 && layer < layers; layer++) {
        add_op(timeline, "matmul", layer, &now, false);
        add_op(timeline, "attention", layer, &now, false);
        add_op(timeline, "all-reduce", layer, &now, true);
    }
    add_op(timeline, "all-gather", -1, &now, true);
    return json_pack("{s:o, s:i, s:{s:f, s:f, s:f, s:f}, s:o}", "collectives", collectives,
                     "wire_bytes_per_rank", 3 * bytes + layers * bytes * 2 + layers / 2 * bytes / 2,
                     "time", "compute_s", 0.25, "wire_s", 0.125, "total_s", 0.375, "tokens_per_s",
                     1365.333, "timeline", timeline);
}

static json_t *head_of(int data, int expert, int seq, int model, int layers) {
    return json_pack("{s:{s:s, s:i, s:i, s:i, s:i, s:i}, s:{s:i, s:i, s:i, s:i}, s:i, s:i, s:s, "
                     "s:f, s:f}",
                     "model", "architecture", "sample", "layers", layers, "width", 64, "heads", 6,
                     "kv_heads", 3, "experts", 0, "mesh", "data", data, "expert", expert, "seq",
                     seq, "model", model, "ranks", data * expert * seq * model, "tokens", 512,
                     "dtype", "f32", "link_gbps", 10.0, "memory_gbps", 20.0);
}

json_t *plan_sample(int data, int expert, int seq, int model, int layers) {
    char range[24];
    json_t *plan = head_of(data, expert, seq, model, layers), *tensors = json_array();
    snprintf(range, sizeof range, "0-%d", layers - 1);
    add_tensor(tensors, "ffw_weight_df", "weight", "[null, [\"model\", \"expert\"]]",
               (const int[]){64, 3 * model * expert + 1}, (const int[]){1, model * expert},
               json_string(range));
    add_tensor(tensors, "moe_router_de", "weight", "[\"model\", \"expert\"]",
               (const int[]){64, 8 * expert}, (const int[]){model, expert}, json_string(range));
    add_tensor(tensors, "vocab_dv", "weight", "[null, null]", (const int[]){64, 1000},
               (const int[]){1, 1}, json_null());
    add_tensor(tensors, "keyvalue_skh", "cache", "[\"data\", \"model\"]",
               (const int[]){16 * data, 3}, (const int[]){data, model}, json_string(range));
    add_tensor(tensors, "activation_td", "activation", "[[\"data\", \"seq\"], null]",
               (const int[]){512, 64}, (const int[]){data * seq, 1}, json_string(range));
    json_object_set_new(plan, "rules",
                        parse("{\"all\": {\"logits_tv\": [\"data\", null]}, "
                              "\"prefill\": {}, \"generate\": {}}"));
    json_object_set_new(plan, "tensors", tensors);
    json_object_set_new(
        plan, "memory_per_rank",
        json_pack("{s:i, s:i, s:i}", "weights", 6000000, "cache", 3000000, "activations", 1000000));
    json_object_set_new(plan, "warnings", parse("[\"more ranks than slices\"]"));
    json_object_set_new(plan, "prefill", phase_of(layers, 1000000));
    json_object_set_new(plan, "generate", phase_of(layers, 2000));
    return plan;
}

json_t *plan_sample_search(int n) {
    json_t *document = head_of(1, 1, 1, 2, 3), *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *plan = plan_sample(1, 1, 1, 2, 3);
        json_t *summary = json_pack("{s:O, s:O, s:O}", "memory_per_rank",
                                    json_object_get(plan, "memory_per_rank"), "prefill",
                                    json_object_get(plan, "prefill"), "generate",
                                    json_object_get(plan, "generate"));
        json_array_append_new(list, json_pack("{s:O, s:o}", "rules", json_object_get(plan, "rules"),
                                              "summary", summary));
        json_decref(plan);
    }
    json_object_set_new(document, "search", list);
    return document;
}
