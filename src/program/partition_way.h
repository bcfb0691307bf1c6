/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ways of all op kinds are made with: forms of tensors, splits of rows, estimates.
 */
#ifndef OCTAVO_PROGRAM_PARTITION_WAY_H
#define OCTAVO_PROGRAM_PARTITION_WAY_H

#include "program/partition_search.h"

#include <string.h>

typedef struct octavo_way_list {
    const octavo_partitioner *p;
    const octavo_op *op;
    int index;
    octavo_way *ways;
    int n;
} octavo_way_list;

static inline octavo_split octavo_split_join(octavo_split split, unsigned bits) {
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        if (bits >> a & 1) split = octavo_split_add(split, a);
    return split;
}

/* Split tokens belong to their group first: `data` is outermost. */
static inline octavo_split octavo_split_join_rows(octavo_split split, unsigned bits) {
    const unsigned data = 1u << OCTAVO_MESH_DATA;
    octavo_split rows = {0};
    if ((bits & data) && !octavo_split_has(&split, OCTAVO_MESH_DATA))
        rows = octavo_split_add(rows, OCTAVO_MESH_DATA);
    for (int i = 0; i < split.n; i++)
        rows = octavo_split_add(rows, split.axis[i]);
    return octavo_split_join(rows, bits & ~data);
}

static inline octavo_split octavo_split_without(const octavo_split *split, unsigned bits) {
    octavo_split left = {0};
    for (int i = 0; i < split->n; i++)
        if (!(bits >> split->axis[i] & 1)) left = octavo_split_add(left, split->axis[i]);
    return left;
}

static inline int octavo_way_axes(const octavo_way_list *list, int tensor) {
    return (int)strlen(list->p->program->tensors[tensor].axes);
}

static inline void octavo_way_set_in(octavo_way *way, int operand, const octavo_layout *layout) {
    way->in[operand] = *layout;
    way->has_in[operand] = true;
}

/* A vector on the columns of `layout` from axis `from` on. */
static inline octavo_layout octavo_columns_as_vector(const octavo_layout *layout, int from) {
    octavo_layout vector = {0};
    for (int i = 0; i + from < OCTAVO_SPEC_AXES; i++)
        vector.split[i] = layout->split[i + from];
    return vector;
}

static inline bool octavo_way_is_vector(const octavo_way_list *list, int operand) {
    const int tensor = list->op->in[operand];
    return tensor != OCTAVO_NO_TENSOR &&
           list->p->program->tensors[tensor].kind == OCTAVO_TENSOR_VECTOR;
}

static inline unsigned octavo_subset_next(unsigned subset, unsigned of) {
    return (subset - of) & of;
}

/* Splits of rows that the op may have where the weight takes `used`: those of the forms, each with
 * any free mesh axes in addition. */
typedef struct octavo_row_splits {
    octavo_split split[64];
    int n;
} octavo_row_splits;

void octavo_form_add(octavo_held *forms, const octavo_layout *layout);
/* Layouts that are at hand or near: held ones, sums completed on shards of either axis or on all
 * ranks, and what the rule says. */
octavo_held octavo_forms_of(const octavo_way_list *list, int tensor, const octavo_held *held);
/* Each form, too, with whole columns. */
void octavo_forms_add_whole(const octavo_way_list *list, int tensor, octavo_held *forms);
double octavo_way_widest(const octavo_way_list *list, int tensor, int axis,
                         const octavo_split *split);
double octavo_way_bytes(const octavo_way_list *list, int tensor, const octavo_layout *layout);
octavo_way *octavo_way_add(octavo_way_list *list, const octavo_layout *out);
/* An op that reads and writes rows: memory bounds it. */
double octavo_way_row_seconds(const octavo_way_list *list, const octavo_layout *out, int passes);
void octavo_way_set_vectors(octavo_way_list *list, octavo_way *way, int first,
                            const octavo_layout *columns);
/* Sums over a split of the columns of x add up to the same bits as whole ones. What rules do not
 * ask for is split no finer. */
bool octavo_way_is_exact(const octavo_way_list *list, int x, const octavo_split *split);
octavo_row_splits octavo_way_rows(const octavo_way_list *list, const octavo_held *forms,
                                  unsigned used);
double octavo_way_matmul_seconds(const octavo_way_list *list, double rows, double inputs,
                                 double outputs, const octavo_weight *weight, double matrices);
/* Elements of the widest shard over the column axes of x. */
double octavo_way_columns(const octavo_way_list *list, int tensor, const octavo_layout *layout);

/* Ways of single op kinds, where their operands lie as `held` says. */
void octavo_ways_matmul(octavo_way_list *list, const octavo_held *held);
void octavo_ways_head_matmul(octavo_way_list *list, const octavo_held *held);
void octavo_ways_cache_update(octavo_way_list *list);
void octavo_ways_attention(octavo_way_list *list, const octavo_held *held);
void octavo_ways_attention_merge(octavo_way_list *list, const octavo_held *held);
void octavo_ways_route(octavo_way_list *list, const octavo_held *held);
void octavo_ways_group(octavo_way_list *list, const octavo_held *held);
void octavo_ways_gather(octavo_way_list *list, const octavo_held *held);
void octavo_ways_expert_matmul(octavo_way_list *list, const octavo_held *held);
void octavo_ways_combine(octavo_way_list *list, const octavo_held *held);
void octavo_ways_row_gate(octavo_way_list *list, const octavo_held *held);

#endif
