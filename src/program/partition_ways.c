/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways in which each op kind runs on shards. Each follows from the op's axes (op.c): an axis
 * that operands share is split alike in all of them; one that is summed over leaves a partial sum.
 */
#include "base/compiler.h"
#include "program/partition_search.h"

#include <math.h>
#include <string.h>

typedef struct way_list {
    const octavo_partitioner *p;
    const octavo_op *op;
    int index;
    octavo_way *ways;
    int n;
} way_list;

static unsigned bits_of(const octavo_split *split) {
    unsigned bits = 0;
    for (int i = 0; i < split->n; i++)
        bits |= 1u << split->axis[i];
    return bits;
}

static octavo_split join(octavo_split split, unsigned bits) {
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        if (bits >> a & 1) split = octavo_split_add(split, a);
    return split;
}

/* Split tokens belong to their group first: `data` is outermost. */
static octavo_split join_rows(octavo_split split, unsigned bits) {
    const unsigned data = 1u << OCTAVO_MESH_DATA;
    octavo_split rows = {0};
    if ((bits & data) && !octavo_split_has(&split, OCTAVO_MESH_DATA))
        rows = octavo_split_add(rows, OCTAVO_MESH_DATA);
    for (int i = 0; i < split.n; i++)
        rows = octavo_split_add(rows, split.axis[i]);
    return join(rows, bits & ~data);
}

static octavo_split without(const octavo_split *split, unsigned bits) {
    octavo_split left = {0};
    for (int i = 0; i < split->n; i++)
        if (!(bits >> split->axis[i] & 1)) left = octavo_split_add(left, split->axis[i]);
    return left;
}

static void add_form(octavo_held *forms, const octavo_layout *layout) {
    for (int i = 0; i < forms->n; i++)
        if (octavo_layout_equal(&forms->layout[i], layout)) return;
    if (forms->n < OCTAVO_MAX_HELD) forms->layout[forms->n++] = *layout;
}

static int n_axes(const way_list *list, int tensor) {
    return (int)strlen(list->p->program->tensors[tensor].axes);
}

/* Layouts that are at hand or near: held ones, sums completed on shards of either axis or on all
 * ranks, and what the rule says. */
static octavo_held forms_of(const way_list *list, int tensor, const octavo_held *held) {
    octavo_held forms = {.n = 0};
    const octavo_tensor *t = &list->p->program->tensors[tensor];
    for (int i = 0; i < held->n; i++) {
        octavo_layout whole = held->layout[i];
        const unsigned partial = bits_of(&whole.partial);
        whole.partial = (octavo_split){0};
        whole.is_owned = false;
        if (octavo_is_routed(t, &whole)) {
            if (partial == 0) continue; /* it lacks rows */
            whole.experts = (octavo_split){0};
        }
        add_form(&forms, &whole);
        if (partial == 0) continue;
        octavo_layout rows = whole, columns = whole;
        rows.split[0] = join_rows(rows.split[0], partial);
        columns.split[1] = join(columns.split[1], partial);
        if (t->axes[0] != 'p') add_form(&forms, &rows);
        add_form(&forms, &columns);
    }
    if (t->axes[0] != 'p') add_form(&forms, &list->p->ruled[tensor]);
    return forms;
}

/* Each form, too, with whole columns. */
static void add_whole_columns(const way_list *list, int tensor, octavo_held *forms) {
    const int n = forms->n, columns = n_axes(list, tensor);
    for (int i = 0; i < n; i++) {
        octavo_layout whole = forms->layout[i];
        for (int j = 1; j < columns; j++)
            whole.split[j] = (octavo_split){0};
        add_form(forms, &whole);
    }
}

static double widest(const way_list *list, int tensor, int axis, const octavo_split *split) {
    const octavo_axis *axes[OCTAVO_TENSOR_AXES];
    octavo_axis pairs;
    octavo_axes_of_tensor(list->p, tensor, &pairs, axes);
    return (double)octavo_axis_widest(axes[axis], octavo_split_degree(split, &list->p->mesh));
}

static double box_bytes(const way_list *list, int tensor, const octavo_layout *layout) {
    const octavo_tensor *t = &list->p->program->tensors[tensor];
    double box = octavo_element_bytes(t);
    for (int i = 0; t->axes[i]; i++)
        box *= widest(list, tensor, i, &layout->split[i]);
    return box / octavo_split_degree(&layout->experts, &list->p->mesh);
}

static octavo_way *add_way(way_list *list, const octavo_layout *out) {
    if (list->n == OCTAVO_MAX_WAYS) return NULL;
    octavo_way *way = &list->ways[list->n++];
    *way = (octavo_way){.out = *out};
    return way;
}

static void set_in(octavo_way *way, int operand, const octavo_layout *layout) {
    way->in[operand] = *layout;
    way->has_in[operand] = true;
}

/* An op that reads and writes rows: memory bounds it. */
static double row_seconds(const way_list *list, const octavo_layout *out, int passes) {
    return passes * box_bytes(list, list->op->out, out) / list->p->options->machine.memory_bytes_s;
}

/* A vector on the columns of `layout` from axis `from` on. */
static octavo_layout columns_as_vector(const octavo_layout *layout, int from) {
    octavo_layout vector = {0};
    for (int i = 0; i + from < OCTAVO_SPEC_AXES; i++)
        vector.split[i] = layout->split[i + from];
    return vector;
}

static bool is_vector(const way_list *list, int operand) {
    const int tensor = list->op->in[operand];
    return tensor != OCTAVO_NO_TENSOR &&
           list->p->program->tensors[tensor].kind == OCTAVO_TENSOR_VECTOR;
}

static void set_vectors(way_list *list, octavo_way *way, int first, const octavo_layout *columns) {
    const octavo_layout vector = columns_as_vector(columns, 1);
    for (int i = first; i < OCTAVO_OP_INPUTS; i++)
        if (is_vector(list, i)) set_in(way, i, &vector);
}

/* ---- ops on rows ---- */

static unsigned subsets_next(unsigned subset, unsigned of) {
    return (subset - of) & of;
}

/* The heads or lanes of a row are together. */
static bool has_whole_lanes(const octavo_layout *layout) {
    return layout->split[2].n == 0;
}

/* Sums over a split of the columns of x add up to the same bits as whole ones. What rules do not
 * ask for is split no finer. */
static bool is_exact(const way_list *list, int x, const octavo_split *split) {
    return octavo_axis_is_exact(octavo_axis_of(list->p->axes, x, 1),
                                octavo_split_degree(split, &list->p->mesh));
}

static bool can_norm_split(const way_list *list, const octavo_layout *layout) {
    const int x = list->op->in[0];
    if (layout->split[1].n == 0) return true;
    if (n_axes(list, x) > 2 && layout->split[2].n > 0) return false;
    return octavo_axis_of(list->p->axes, x, 1)->readers == 0 &&
           is_exact(list, x, &layout->split[1]);
}

static void ways_norm(way_list *list, const octavo_held *held) {
    octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    add_whole_columns(list, list->op->in[0], &forms);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout *form = &forms.layout[i];
        const unsigned free = list->p->active & ~octavo_layout_axes(form);
        if (!can_norm_split(list, form)) continue;
        unsigned more = 0;
        do {
            octavo_layout out = *form;
            out.split[0] = join_rows(out.split[0], more);
            octavo_way *way = add_way(list, &out);
            if (!way) return;
            set_in(way, 0, &out);
            set_vectors(list, way, 1, &out);
            way->seconds = row_seconds(list, &out, 3);
            if (out.split[1].n > 0) { /* the ranks' sums are exchanged */
                const double n = octavo_split_degree(&out.split[1], &list->p->mesh);
                const double rows = widest(list, list->op->in[0], 0, &out.split[0]);
                way->seconds += 8.0 * rows * (n - 1.0) / list->p->options->machine.link_bytes_s +
                                list->p->options->machine.latency_s;
            }
            more = subsets_next(more, free);
        } while (more != 0);
    }
}

/* Everything that works on each element or each head by itself. */
static void ways_rowwise(way_list *list, const octavo_held *held, bool needs_lanes) {
    octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    if (needs_lanes) add_whole_columns(list, list->op->in[0], &forms);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout *form = &forms.layout[i];
        if (needs_lanes && n_axes(list, list->op->in[0]) > 2 && !has_whole_lanes(form)) continue;
        octavo_way *way = add_way(list, form);
        if (!way) return;
        set_in(way, 0, form);
        if (is_vector(list, 1)) set_in(way, 1, &(octavo_layout){0}); /* of a head's lanes */
        way->seconds = row_seconds(list, form, 2);
    }
}

/* Blocks of lanes are not cut. */
static void ways_quantise(way_list *list, const octavo_held *held) {
    const octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    octavo_held whole = {.n = 0};
    for (int i = 0; i < forms.n; i++) {
        octavo_layout form = forms.layout[i];
        if (n_axes(list, list->op->in[0]) > 2) form.split[2] = (octavo_split){0};
        add_form(&whole, &form);
    }
    for (int i = 0; i < whole.n; i++) {
        octavo_way *way = add_way(list, &whole.layout[i]);
        if (!way) return;
        set_in(way, 0, &whole.layout[i]);
        way->seconds = row_seconds(list, &whole.layout[i], 2);
    }
}

static void ways_rope(way_list *list, const octavo_held *held) {
    ways_rowwise(list, held, true);
    for (int i = 0; i < list->n; i++) {
        const octavo_layout table = {.split = {list->ways[i].out.split[0]}};
        set_in(&list->ways[i], 1, &table);
    }
}

/* Of both operands' forms. */
static void ways_pairwise(way_list *list, const octavo_held *held) {
    octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    const bool has_both = list->op->in[1] != OCTAVO_NO_TENSOR;
    if (has_both) {
        const octavo_held other = forms_of(list, list->op->in[1], &held[1]);
        for (int i = 0; i < other.n; i++)
            add_form(&forms, &other.layout[i]);
    }
    add_form(&forms, &list->p->ruled[list->op->out]);
    for (int i = 0; i < forms.n; i++) {
        octavo_way *way = add_way(list, &forms.layout[i]);
        if (!way) return;
        set_in(way, 0, &forms.layout[i]);
        if (has_both) set_in(way, 1, &forms.layout[i]);
        way->seconds = row_seconds(list, &forms.layout[i], 3);
    }
}

/* A permutation of columns takes them whole; what comes of it may be any shard. */
static void ways_reorder(way_list *list, const octavo_held *held) {
    octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    add_whole_columns(list, list->op->in[0], &forms);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout *form = &forms.layout[i];
        if (form->split[1].n > 0 || form->split[2].n > 0) continue;
        const unsigned free = list->p->active & ~octavo_layout_axes(form);
        unsigned columns = 0;
        do {
            octavo_layout out = *form;
            out.split[1] = join(out.split[1], columns);
            octavo_way *way = add_way(list, &out);
            if (!way) return;
            set_in(way, 0, form);
            way->seconds = row_seconds(list, &out, 2);
            columns = subsets_next(columns, free);
        } while (columns != 0);
    }
}

static void ways_select(way_list *list, const octavo_held *held) {
    octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout *form = &forms.layout[i];
        octavo_layout out = *form;
        out.split[0] = without(&out.split[0], ~(1u << OCTAVO_MESH_DATA));
        octavo_way *way = add_way(list, &out);
        if (!way) return;
        set_in(way, 0, form);
        const double n = octavo_split_degree(&form->split[0], &list->p->mesh) /
                         octavo_split_degree(&out.split[0], &list->p->mesh);
        way->seconds = row_seconds(list, &out, 2);
        if (n > 1)
            way->seconds += box_bytes(list, list->op->out, &out) * (n - 1.0) / n /
                            list->p->options->machine.link_bytes_s;
    }
}

/* Rows are looked up by the ranks that have them. */
static void ways_embed(way_list *list) {
    const octavo_layout *table = &list->p->placed[list->op->in[1]];
    octavo_layout out = {.split = {{0}, table->split[1]}, .partial = table->split[0]};
    out.is_owned = out.partial.n > 0;
    const unsigned used = octavo_layout_axes(&out);
    const unsigned data = list->p->active & (1u << OCTAVO_MESH_DATA) & ~used;
    for (int i = 0; i < 2; i++) {
        out.split[0] = i == 0 ? join_rows((octavo_split){0}, data)
                              : without(&list->p->ruled[list->op->out].split[0], used);
        octavo_way *way = add_way(list, &out);
        if (way) way->seconds = row_seconds(list, &out, 1);
    }
}

/* ---- matmuls ---- */

/* Splits of rows that the op may have where the weight takes `used`: those of the forms, each with
 * any free mesh axes in addition. */
typedef struct row_splits {
    octavo_split split[64];
    int n;
} row_splits;

static void add_rows(row_splits *rows, const octavo_split *split) {
    for (int i = 0; i < rows->n; i++)
        if (octavo_split_equal(&rows->split[i], split)) return;
    if (rows->n < 64) rows->split[rows->n++] = *split;
}

static row_splits rows_of(const way_list *list, const octavo_held *forms, unsigned used) {
    row_splits rows = {.n = 0};
    for (int i = 0; i < forms->n; i++) {
        const octavo_split base = without(&forms->layout[i].split[0], used);
        const unsigned free = list->p->active & ~used & ~bits_of(&base);
        unsigned more = 0;
        do {
            const octavo_split split = join_rows(base, more);
            add_rows(&rows, &split);
            more = subsets_next(more, free);
        } while (more != 0);
    }
    return rows;
}

static double matmul_seconds(const way_list *list, double rows, double inputs, double outputs,
                             const octavo_weight *weight, double matrices) {
    const octavo_machine_model *machine = &list->p->options->machine;
    const double bytes = matrices * inputs * outputs *
                         (double)octavo_weight_bytes(weight->type, OCTAVO_PANEL, weight->k) /
                         ((double)OCTAVO_PANEL * (double)weight->k);
    const double operations = 2.0 * rows * inputs * outputs / machine->operations_s;
    const double reading = bytes / machine->memory_bytes_s;
    return operations > reading ? operations : reading;
}

/* Elements of the widest shard over the column axes of x. */
static double columns_of(const way_list *list, int tensor, const octavo_layout *layout) {
    double width = 1.0;
    for (int i = 1; i < n_axes(list, tensor); i++)
        width *= widest(list, tensor, i, &layout->split[i]);
    return width;
}

/* Mesh axes of `split` that are among the bits, in its order, then the others of the bits. */
static octavo_split ordered(const octavo_split *split, unsigned bits) {
    octavo_split kept = without(split, ~bits);
    return join(kept, bits & ~bits_of(&kept));
}

static void add_matmul(way_list *list, const octavo_split *rows, unsigned inputs, unsigned outputs,
                       int outputs_at) {
    const octavo_op *op = list->op;
    const octavo_layout *placed = octavo_weight_base(list->p, op->in[1]);
    const int n_outputs = n_axes(list, op->in[1]) - n_axes(list, op->in[0]) + 1;
    const int inputs_at = outputs_at == 0 ? n_outputs : 0;
    octavo_layout weight = {0};
    weight.split[inputs_at] = ordered(&placed->split[inputs_at], inputs);
    weight.split[outputs_at] = ordered(&placed->split[outputs_at], outputs);
    if (list->p->is_kept[op->in[1]] && !octavo_layout_equal(&weight, placed)) return;
    if (!octavo_weight_can_move(list->p, op->in[1], outputs_at, &weight)) return;
    if (inputs != bits_of(&placed->split[inputs_at]) &&
        !is_exact(list, op->in[0], &weight.split[inputs_at]))
        return;
    const octavo_layout x = {.split = {*rows, weight.split[inputs_at]}};
    octavo_layout out = {.split = {*rows}, .partial = weight.split[inputs_at]};
    const int columns_at = n_axes(list, op->out) - n_outputs; /* a latent has one head, and lanes */
    out.split[columns_at] = weight.split[outputs_at];
    octavo_way *way = add_way(list, &out);
    if (!way) return;
    set_in(way, 0, &x);
    set_in(way, 1, &weight);
    const octavo_layout bias = columns_as_vector(&out, columns_at);
    if (is_vector(list, 2)) set_in(way, 2, &bias);
    way->seconds = matmul_seconds(list, widest(list, op->in[0], 0, rows),
                                  columns_of(list, op->in[0], &x), columns_of(list, op->out, &out),
                                  list->p->program->tensors[op->in[1]].weight, 1.0);
}

/* Each mesh axis splits the tokens, the outputs, the sum or nothing; the weight moves where it is
 * placed otherwise, unless what is wanted is a part of what a rank has. */
static void ways_matmul(way_list *list, const octavo_held *held) {
    const int at = octavo_weight_outputs_at(list->p->program, list->op);
    const unsigned active = list->p->active;
    const octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    unsigned tokens = 0;
    do {
        octavo_held rows = {.n = 0};
        for (int i = 0; i < forms.n; i++) {
            const octavo_split kept = without(&forms.layout[i].split[0], ~tokens);
            const octavo_layout form = {.split = {join_rows(kept, tokens & ~bits_of(&kept))}};
            add_form(&rows, &form);
        }
        const unsigned others = active & ~tokens;
        unsigned outputs = 0;
        do {
            const unsigned left = others & ~outputs;
            unsigned inputs = 0;
            do {
                for (int i = 0; i < rows.n; i++)
                    add_matmul(list, &rows.layout[i].split[0], inputs, outputs, at);
                inputs = subsets_next(inputs, left);
            } while (inputs != 0);
            outputs = subsets_next(outputs, others);
        } while (outputs != 0);
        tokens = subsets_next(tokens, active);
    } while (tokens != 0);
}

static void ways_head_matmul(way_list *list, const octavo_held *held) {
    const octavo_op *op = list->op;
    const octavo_split *heads = &list->p->placed[op->in[1]].split[0];
    const octavo_held forms = forms_of(list, op->in[0], &held[0]);
    const row_splits rows = rows_of(list, &forms, bits_of(heads));
    const octavo_weight *weight = list->p->program->tensors[op->in[1]].weight;
    for (int i = 0; i < rows.n; i++) {
        const unsigned free = list->p->active & ~bits_of(heads) & ~bits_of(&rows.split[i]);
        unsigned more = 0;
        do {
            const octavo_layout x = {.split = {rows.split[i], join(*heads, more)}};
            octavo_way *way = add_way(list, &x);
            if (!way) return;
            set_in(way, 0, &x);
            set_in(way, 2, &x);
            const double n = widest(list, op->out, 1, &x.split[1]);
            way->seconds = matmul_seconds(list, n * widest(list, op->out, 0, &x.split[0]),
                                          (double)weight->k, (double)weight->n, weight, n);
            more = subsets_next(more, free);
        } while (more != 0);
    }
}

/* ---- attention ---- */

static bool is_cache_grouped(const way_list *list, int cache) {
    return octavo_split_has(&list->p->placed[cache].split[0], OCTAVO_MESH_DATA);
}

static unsigned data_of(const way_list *list) {
    return list->p->active & (1u << OCTAVO_MESH_DATA);
}

/* New keys and values go to every rank that keeps their sequence and head. */
static void ways_cache_update(way_list *list) {
    const octavo_op *op = list->op;
    const octavo_layout *cache = &list->p->placed[op->in[2]];
    octavo_layout rows = {.split = {{0}, cache->split[1]}};
    if (is_cache_grouped(list, op->in[2])) rows.split[0] = join_rows(rows.split[0], data_of(list));
    octavo_way *way = add_way(list, cache);
    for (int i = 0; i < 2; i++)
        if (op->in[i] != OCTAVO_NO_TENSOR) set_in(way, i, &rows);
}

/* parts: mesh axes whose ranks share the kv splits. */
static double attention_seconds(const way_list *list, const octavo_layout *q,
                                const octavo_split *parts) {
    const octavo_partition_options *options = list->p->options;
    const octavo_op *op = list->op;
    const octavo_tensor *query = &list->p->program->tensors[op->in[0]];
    const octavo_tensor *cache = &list->p->program->tensors[op->in[1]];
    const double heads = widest(list, op->in[0], 1, &q->split[1]);
    const double rows = widest(list, op->in[0], 0, &q->split[0]);
    const double lanes = (double)query->extent[2];
    const double group = (double)query->extent[1] / (double)cache->extent[1];
    const octavo_attention_splits splits = {.n_parts = octavo_split_degree(parts, &list->p->mesh)};
    const double length =
        (double)octavo_attention_local_position(&splits, options->kv_length); /* part 0 has most */
    const double operations = 4.0 * rows * heads * lanes * length;
    const double streams = options->phase == OCTAVO_PHASE_GENERATE ? rows : 1.0;
    const double kv_heads = ceil(heads / group); /* those that ranks share are read by each */
    const double bytes = 2.0 * streams * kv_heads * lanes * length * options->cache_bytes;
    const double computing = operations / options->machine.operations_s;
    const double reading = bytes / options->machine.memory_bytes_s;
    return computing > reading ? computing : reading;
}

static void add_attention(way_list *list, const octavo_layout *q, const octavo_split *parts) {
    octavo_layout out = *q;
    out.partial = *parts;
    octavo_way *way = add_way(list, &out);
    if (!way) return;
    set_in(way, 0, q);
    set_vectors(list, way, 2, q);
    way->seconds = attention_seconds(list, q, parts);
}

/* Axes over which kv splits may be dealt where all ranks have all of them: it is worth something
 * only if there are as many splits. */
static bool may_deal(const way_list *list, const octavo_split *parts) {
    return list->p->options->phase == OCTAVO_PHASE_GENERATE &&
           octavo_split_degree(parts, &list->p->mesh) <= octavo_seen_splits(list->p, list->op);
}

/* A rank attends with any of the query heads of the key/value heads that it keeps, for any of the
 * tokens whose sequences it keeps. Ranks that have different positions have the same queries; so
 * may, of a long context, ranks that have all. */
static void ways_attention(way_list *list, const octavo_held *held) {
    const octavo_op *op = list->op;
    const octavo_split *heads = &list->p->placed[op->in[1]].split[1];
    const octavo_split deal = octavo_cache_deal(&list->p->placed[op->in[1]]);
    const bool is_grouped = is_cache_grouped(list, op->in[1]);
    const unsigned data = data_of(list);
    const unsigned used = bits_of(heads) | bits_of(&deal) | (is_grouped ? data : 0);
    const octavo_held forms = forms_of(list, op->in[0], &held[0]);
    const row_splits rows = rows_of(list, &forms, used);
    for (int i = 0; i < rows.n; i++) {
        const octavo_split split = is_grouped ? join_rows(rows.split[i], data) : rows.split[i];
        const unsigned free = list->p->active & ~used & ~bits_of(&split);
        unsigned more = 0;
        do {
            const octavo_layout q = {.split = {split, join(*heads, more)}};
            const unsigned left = deal.n > 0 ? 0 : free & ~more & ~data;
            unsigned shared = 0;
            add_attention(list, &q, &deal);
            while ((shared = subsets_next(shared, left)) != 0) {
                const octavo_split parts = join((octavo_split){0}, shared);
                if (may_deal(list, &parts)) add_attention(list, &q, &parts);
            }
            more = subsets_next(more, free);
        } while (more != 0);
    }
}

/* Each shard of a finer split inside of one of a coarser. */
static bool nests(const way_list *list, int tensor, const octavo_split *coarse,
                  const octavo_split *fine) {
    const octavo_axis *axis = octavo_axis_of(list->p->axes, tensor, 1);
    const int m = octavo_split_degree(coarse, &list->p->mesh);
    const int n = octavo_split_degree(fine, &list->p->mesh);
    for (int i = 0; i < n; i++) {
        const octavo_range in = octavo_axis_shard(axis, m, i / (n / m));
        const octavo_range part = octavo_axis_shard(axis, n, i);
        if (part.begin < part.end && (part.begin < in.begin || part.end > in.end)) return false;
    }
    return true;
}

static void add_merge(way_list *list, const octavo_layout *from, const octavo_layout *out) {
    const octavo_op *op = list->op;
    octavo_layout q = *from;
    q.partial = (octavo_split){0};
    octavo_way *way = add_way(list, out);
    if (!way) return;
    set_in(way, 0, &q);
    set_in(way, 3, from);
    set_vectors(list, way, 2, &q);
    if (from->partial.n == 0) return;
    const octavo_transfer transfer = octavo_records_transfer(list->p, op, from, out);
    const octavo_route route = {.n = 1, .step = {transfer}};
    way->seconds = octavo_route_seconds(list->p, &route);
}

/* Where attention left it; of records, too, each rank some of the heads or rows. */
static void ways_attention_merge(way_list *list, const octavo_held *held) {
    for (int i = 0; i < held[3].n; i++) {
        const octavo_layout *from = &held[3].layout[i];
        octavo_layout out = *from;
        out.partial = (octavo_split){0};
        add_merge(list, from, &out);
        if (from->partial.n == 0) continue;
        const unsigned bits = bits_of(&from->partial);
        octavo_layout rows = out, heads = out;
        rows.split[0] = join_rows(rows.split[0], bits);
        heads.split[1] = join(heads.split[1], bits);
        add_merge(list, from, &rows);
        if (nests(list, list->op->out, &out.split[1], &heads.split[1]))
            add_merge(list, from, &heads);
    }
}

/* ---- experts ---- */

/* Mesh axes of the weights of the experts that a choice is for. */
static unsigned axes_of_experts(const way_list *list, int choice) {
    const octavo_program *program = list->p->program;
    unsigned bits = 0;
    for (int i = list->index; i < program->n_ops && program->ops[i].layer == list->op->layer; i++)
        if (program->ops[i].kind == OCTAVO_OP_EXPERT_MATMUL && program->ops[i].in[2] == choice)
            bits |= octavo_layout_axes(octavo_weight_base(list->p, program->ops[i].in[1]));
    return bits;
}

static void ways_route(way_list *list, const octavo_held *held) {
    octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    add_whole_columns(list, list->op->in[0], &forms);
    for (int i = 0; i < forms.n; i++) {
        if (forms.layout[i].split[1].n > 0) continue;
        octavo_way *way = add_way(list, &forms.layout[i]);
        if (!way) return;
        set_in(way, 0, &forms.layout[i]);
        set_vectors(list, way, 1, &forms.layout[i]);
        way->seconds = row_seconds(list, &forms.layout[i], 4);
    }
}

/* Pairs are numbered where their tokens and experts are: no rank of the experts' weights may have
 * other tokens. Choices say their experts where tokens' rows go only to the ranks that have one of
 * their experts: all ranks get the choices, by which each knows who sends it which rows. */
static void ways_group(way_list *list, const octavo_held *held) {
    const octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    row_splits rows = rows_of(list, &forms, axes_of_experts(list, list->op->in[0]));
    const octavo_split experts = octavo_experts_of(list->p, list->op->in[0]);
    octavo_layout ruled;
    if (octavo_pairs_are_ruled(list->p, list->op->in[0], &ruled))
        rows = (row_splits){.split = {ruled.split[0]}, .n = 1};
    for (int i = 0; i < rows.n; i++) {
        const octavo_layout choice = {.split = {rows.split[i]}};
        octavo_layout routed = choice;
        octavo_way *way = add_way(list, &choice);
        if (way) set_in(way, 0, &choice);
        /* who sends has to know the choices of who takes: those of its data group */
        if (experts.n == 0 || rows.split[i].n > octavo_split_has(&rows.split[i], OCTAVO_MESH_DATA))
            continue;
        routed.experts = experts;
        way = add_way(list, &routed);
        if (way) set_in(way, 0, &choice);
    }
}

/* A choice, whose columns all that use it take whole. */
static octavo_layout choice_of(const octavo_held *held) {
    octavo_layout choice = held->layout[0];
    choice.split[1] = (octavo_split){0};
    return choice;
}

/* Columns of the pairs: as tokens have them or as the experts' weights take them. */
static void ways_gather(way_list *list, const octavo_held *held) {
    const octavo_op *op = list->op;
    const octavo_layout choice = choice_of(&held[1]);
    octavo_held forms = forms_of(list, op->in[0], &held[0]);
    octavo_layout inputs = {0};
    for (int i = list->index; i < list->p->program->n_ops; i++) {
        const octavo_op *later = &list->p->program->ops[i];
        if (later->kind != OCTAVO_OP_EXPERT_MATMUL || later->in[2] != op->in[1]) continue;
        inputs.split[1] = octavo_weight_base(list->p, later->in[1])->split[1];
        break;
    }
    add_form(&forms, &inputs);
    add_whole_columns(list, op->in[0], &forms);
    const octavo_split experts = octavo_experts_of(list->p, op->in[1]);
    const unsigned used = bits_of(&choice.split[0]) | bits_of(&experts);
    octavo_held columns = {.n = 0};
    for (int i = 0; i < forms.n; i++) {
        octavo_layout x = {.split = {choice.split[0], forms.layout[i].split[1]},
                           .experts = choice.experts};
        if ((bits_of(&x.split[1]) & used) == 0) add_form(&columns, &x);
    }
    for (int i = 0; i < columns.n; i++) {
        const octavo_layout *x = &columns.layout[i];
        octavo_layout out = *x;
        out.experts = experts;
        octavo_way *way = add_way(list, &out);
        if (!way) return;
        set_in(way, 0, x);
        set_in(way, 1, &choice);
        way->seconds = row_seconds(list, &out, 2);
    }
}

/* Of a weight the experts that the pairs are of; where it is not placed so it moves. */
static void ways_expert_matmul(way_list *list, const octavo_held *held) {
    const octavo_op *op = list->op;
    const octavo_layout choice = choice_of(&held[2]);
    const octavo_weight *weight = list->p->program->tensors[op->in[1]].weight;
    const octavo_split split = octavo_experts_of(list->p, op->in[2]);
    const octavo_layout w = octavo_expert_weight(list->p, op, &split, &choice.split[0]);
    if (list->p->is_kept[op->in[1]] && !octavo_layout_equal(&w, &list->p->ruled[op->in[1]])) return;
    if (!octavo_weight_can_move(list->p, op->in[1], 2, &w)) return;
    const octavo_layout x = {.split = {choice.split[0], w.split[1]}, .experts = split};
    octavo_layout out = {.split = {choice.split[0], w.split[2]}, .experts = split};
    out.partial = w.split[1];
    octavo_way *way = add_way(list, &out);
    set_in(way, 0, &x);
    set_in(way, 1, &w);
    set_in(way, 2, &choice);
    if (op->in[3] != OCTAVO_NO_TENSOR) {
        const octavo_layout bias = {.split = {split, w.split[2]}};
        set_in(way, 3, &bias);
    }
    const double experts = octavo_split_degree(&split, &list->p->mesh);
    const double pairs = widest(list, op->out, 0, &out.split[0]) / experts;
    const double matrices = (double)weight->stack / experts;
    way->seconds = matmul_seconds(list, pairs, columns_of(list, op->in[0], &x),
                                  columns_of(list, op->out, &out), weight,
                                  pairs < matrices ? pairs : matrices);
}

/* Each rank adds its own experts; of routed tokens it has nothing for the others. */
static void ways_combine(way_list *list, const octavo_held *held) {
    const octavo_layout choice = choice_of(&held[1]);
    const octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    for (int i = 0; i < forms.n; i++) {
        octavo_layout out = forms.layout[i];
        out.partial = out.experts;
        out.experts = choice.experts;
        octavo_way *way = add_way(list, &out);
        if (!way) return;
        set_in(way, 0, &forms.layout[i]);
        set_in(way, 1, &choice);
        way->seconds = row_seconds(list, &out, 4);
    }
}

static void ways_row_gate(way_list *list, const octavo_held *held) {
    const octavo_held forms = forms_of(list, list->op->in[0], &held[0]);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout gate = {.split = {forms.layout[i].split[0]}};
        octavo_way *way = add_way(list, &forms.layout[i]);
        if (!way) return;
        set_in(way, 0, &forms.layout[i]);
        set_in(way, 1, &gate);
        way->seconds = row_seconds(list, &forms.layout[i], 2);
    }
}

int octavo_ways_of(const octavo_partitioner *p, int index, const octavo_held *held,
                   octavo_way ways[OCTAVO_MAX_WAYS]) {
    way_list list = {.p = p, .op = &p->program->ops[index], .index = index, .ways = ways};
    switch (list.op->kind) {
    case OCTAVO_OP_EMBED:
        ways_embed(&list);
        break;
    case OCTAVO_OP_NORM:
        ways_norm(&list, held);
        break;
    case OCTAVO_OP_HEAD_NORM:
    case OCTAVO_OP_TEMPERATURE:
        ways_rowwise(&list, held, true);
        break;
    case OCTAVO_OP_ROPE:
        ways_rope(&list, held);
        break;
    case OCTAVO_OP_QUANTISE:
        ways_quantise(&list, held);
        break;
    case OCTAVO_OP_SCALE:
        ways_rowwise(&list, held, false);
        break;
    case OCTAVO_OP_REORDER:
        ways_reorder(&list, held);
        break;
    case OCTAVO_OP_GATE:
    case OCTAVO_OP_ADD:
        ways_pairwise(&list, held);
        break;
    case OCTAVO_OP_SELECT:
        ways_select(&list, held);
        break;
    case OCTAVO_OP_MATMUL:
        ways_matmul(&list, held);
        break;
    case OCTAVO_OP_HEAD_MATMUL:
        ways_head_matmul(&list, held);
        break;
    case OCTAVO_OP_CACHE_UPDATE:
        ways_cache_update(&list);
        break;
    case OCTAVO_OP_ATTENTION:
        ways_attention(&list, held);
        break;
    case OCTAVO_OP_ATTENTION_MERGE:
        ways_attention_merge(&list, held);
        break;
    case OCTAVO_OP_ROUTE:
        ways_route(&list, held);
        break;
    case OCTAVO_OP_GROUP:
        ways_group(&list, held);
        break;
    case OCTAVO_OP_GATHER:
        ways_gather(&list, held);
        break;
    case OCTAVO_OP_EXPERT_MATMUL:
        ways_expert_matmul(&list, held);
        break;
    case OCTAVO_OP_COMBINE:
        ways_combine(&list, held);
        break;
    case OCTAVO_OP_ROW_GATE:
        ways_row_gate(&list, held);
        break;
    case OCTAVO_OP_ROPE_TABLE:
    case OCTAVO_OP_NORM_SUM: /* in programs of ranks only */
    case OCTAVO_OP_NORM_APPLY:
    case OCTAVO_OP_RESHARD:
    case OCTAVO_OP_KINDS:
        break;
    }
    return list.n;
}
