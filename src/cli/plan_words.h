/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers, shapes and rules of a plan in words, appended to a buffer; and texts made safe for where
 * they go.
 */
#ifndef OCTAVO_CLI_PLAN_WORDS_H
#define OCTAVO_CLI_PLAN_WORDS_H

#include "base/buffer.h"
#include "cli/plan_document.h"

/* "1.23 MB", by 1000; "37.0 us"; "12,345". */
void octavo_view_put_bytes(octavo_buffer *out, double bytes);
void octavo_view_put_seconds(octavo_buffer *out, double seconds);
void octavo_view_put_count(octavo_buffer *out, double count);
/* "-1.23 MB", "+3.0 us", "0": what `b` has more than `a`. */
void octavo_view_put_more_bytes(octavo_buffer *out, double more);
void octavo_view_put_more_seconds(octavo_buffer *out, double more);
/* "576x9x64" */
void octavo_view_put_shape(octavo_buffer *out, const json_t *shape);
/* "data+model", "-" */
void octavo_view_put_split(octavo_buffer *out, const json_t *entry);
/* "(data, -)" */
void octavo_view_put_spec(octavo_buffer *out, const json_t *spec);
/* "data 2 x model 4 = 8 ranks"; "1 rank" where all degrees are 1. */
void octavo_view_put_mesh(octavo_buffer *out, const octavo_view_mesh *mesh);
/* "outside of layers", "layers 0-29", "24 of layers 0-47" */
void octavo_view_put_layers(octavo_buffer *out, const octavo_view_group *group);
/* "Layer 3", "Before the layers", "Behind the layers": a part of a timeline. */
void octavo_view_put_part(octavo_buffer *out, int64_t layer, bool is_first);
/* "0-29", "3-29 x2" where there are two in each layer; nothing outside of layers. */
void octavo_view_put_where(octavo_buffer *out, const json_t *tensor);
/* "logits_tv = (data, -)", one for each override, between them `between`. */
void octavo_view_put_rules(octavo_buffer *out, const json_t *rules, const char *between);
/* "llama: 30 layers, width 576, 9 query and 3 key/value heads" */
void octavo_view_put_model(octavo_buffer *out, const json_t *plan);
/* "512 tokens a step, weights as bf16, links of 10 GB/s, memory of 20 GB/s" */
void octavo_view_put_setting(octavo_buffer *out, const json_t *plan);

/* Without bytes that could steer a terminal. */
void octavo_view_put_plain(octavo_buffer *out, const char *text);
/* As text or attribute of XML and HTML: also without what no XML may hold. */
void octavo_view_put_escaped(octavo_buffer *out, const char *text);
/* Appends a buffer's text so, and empties it. */
void octavo_view_take_escaped(octavo_buffer *out, octavo_buffer *words);

#endif
