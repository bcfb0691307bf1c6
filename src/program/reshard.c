/* SPDX-License-Identifier: Apache-2.0
 *
 * Which parts of a value come from which rank. The columns of the result are covered by the shards
 * of the source axis by axis: first the rank's own shard, then others ascending, so that what
 * neighbouring shards share (kv heads) is taken once. On mesh axes that do not matter the source
 * stands where the rank itself does.
 */
#include "program/reshard.h"

#include "base/compiler.h"
#include "kernels/matmul.h"

#include <string.h>

enum { COLUMNS = 3 }; /* most axes that are cut: of rows 2; a weight's stack, outputs, inputs */

/* A range of an axis, and the shard of the source that has it. */
typedef struct cover_part {
    int shard;
    octavo_range range;
} cover_part;

typedef struct cover {
    cover_part *parts;
    int n;
} cover;

octavo_range octavo_shard_of(const octavo_program *program, const octavo_program_axes *axes,
                             const octavo_mesh *mesh, const octavo_place *place,
                             const octavo_layout *layout, int tensor, int i) {
    const octavo_axis *axis = octavo_axis_of(axes, tensor, i);
    const octavo_split *split = &layout->split[i];
    const int64_t each = axis->extent > 0 ? program->tensors[tensor].extent[i] / axis->extent : 1;
    const octavo_range range = octavo_axis_shard(axis, octavo_split_degree(split, mesh),
                                                 octavo_split_index(split, mesh, place));
    return (octavo_range){range.begin * each, range.end * each};
}

/* Sets the coordinates by which a split's shard is chosen. */
static void set_place(octavo_place *place, const octavo_split *split, const octavo_mesh *mesh,
                      int shard) {
    for (int i = split->n - 1; i >= 0; i--) {
        place->at[split->axis[i]] = shard % mesh->degree[split->axis[i]];
        shard /= mesh->degree[split->axis[i]];
    }
}

/* Axes of the tensor that are cut; their number. Of a weight the first of its outputs and of its
 * inputs, whose other axes are whole. */
static int cut_axes(const octavo_reshard_desc *desc, int axes[COLUMNS]) {
    const octavo_tensor *tensor = &desc->program->tensors[desc->tensor];
    int n = 0;
    if (desc->width > 0) return 0;
    if (desc->n_outputs > 0) {
        const int stack = tensor->weight->stack > 0;
        if (stack) axes[n++] = 0;
        axes[n++] = desc->outputs_at;
        axes[n++] = desc->outputs_at == stack ? stack + desc->n_outputs : stack;
        return n;
    }
    for (int i = desc->letter ? 1 : 0; tensor->axes[i]; i++)
        axes[n++] = i;
    return n;
}

static octavo_range shard_at(const octavo_reshard_desc *desc, const octavo_layout *layout,
                             const octavo_place *place, int i) {
    return octavo_shard_of(desc->program, desc->axes, &desc->mesh, place, layout, desc->tensor, i);
}

static octavo_range shard_number(const octavo_reshard_desc *desc, int i, int shard) {
    octavo_place place = desc->place;
    set_place(&place, &desc->from.split[i], &desc->mesh, shard);
    return shard_at(desc, &desc->from, &place, i);
}

static void cover_range(cover *c, const octavo_reshard_desc *desc, int i, int n_shards,
                        int64_t begin, int64_t end) {
    for (int shard = 0; shard < n_shards && begin < end; shard++) {
        const octavo_range has = shard_number(desc, i, shard);
        if (has.begin > begin || has.end <= begin) continue;
        const int64_t to = has.end < end ? has.end : end;
        c->parts[c->n++] = (cover_part){shard, {begin, to}};
        begin = to;
    }
    octavo_assert(begin >= end);
}

/* The result's range of axis i from the source's shards. */
static bool cover_axis(cover *c, const octavo_reshard_desc *desc, int i) {
    const octavo_split *split = &desc->from.split[i];
    const int n_shards = octavo_split_degree(split, &desc->mesh);
    const int own = octavo_split_index(split, &desc->mesh, &desc->place);
    const octavo_range to = shard_at(desc, &desc->to, &desc->place, i);
    octavo_range has = shard_number(desc, i, own);
    *c = (cover){.parts = octavo_alloc_zero((size_t)n_shards + 2, sizeof *c->parts)};
    if (!c->parts) return false;
    if (has.begin < to.begin) has.begin = to.begin;
    if (has.end > to.end) has.end = to.end;
    if (has.begin >= has.end) {
        cover_range(c, desc, i, n_shards, to.begin, to.end);
        return true;
    }
    c->parts[c->n++] = (cover_part){own, has};
    cover_range(c, desc, i, n_shards, to.begin, has.begin);
    cover_range(c, desc, i, n_shards, has.end, to.end);
    return true;
}

/* Bytes of so many columns. */
static size_t bytes_of(const octavo_reshard_desc *desc, int64_t columns) {
    if (desc->program->tensors[desc->tensor].is_q8)
        return (size_t)(columns / OCTAVO_BLOCK) * sizeof(octavo_q8_block);
    return (size_t)columns * sizeof(float);
}

/* One part of each axis. Boxes are dense, the last axis fastest. */
static octavo_piece make_piece(const octavo_reshard_desc *desc, const int *axes, int n,
                               const cover_part *parts) {
    int64_t from = 0, to = 0, len[COLUMNS], from_row = 1, to_row = 1;
    bool is_whole = true;
    octavo_piece piece = {.n_runs = 1, .n_matrices = 1};
    piece.bytes = (size_t)desc->width * sizeof(float);
    if (n == 0) return piece;
    for (int i = 0; i < n; i++) {
        const octavo_range here = shard_at(desc, &desc->to, &desc->place, axes[i]);
        const octavo_range there = shard_number(desc, axes[i], parts[i].shard);
        len[i] = parts[i].range.end - parts[i].range.begin;
        from_row = there.end - there.begin;
        to_row = here.end - here.begin;
        from = from * from_row + parts[i].range.begin - there.begin;
        to = to * to_row + parts[i].range.begin - here.begin;
        is_whole = len[i] == from_row && len[i] == to_row;
    }
    piece.from = bytes_of(desc, from);
    piece.to = bytes_of(desc, to);
    piece.bytes = bytes_of(desc, n > 1 && is_whole ? len[0] * len[1] : len[n - 1]);
    if (n == 1 || is_whole) return piece;
    piece.n_runs = (int)len[0];
    piece.from_stride = bytes_of(desc, from_row);
    piece.to_stride = bytes_of(desc, to_row);
    return piece;
}

/* Of the axes behind one: a head's lanes. */
static int64_t lanes_behind(const octavo_reshard_desc *desc, int axis, int n) {
    int64_t lanes = 1;
    for (int i = 1; i < n; i++)
        lanes *= desc->program->tensors[desc->tensor].extent[axis + i];
    return lanes;
}

/* Stack, outputs, inputs of a weight: runs are records of a panel. Outputs are cut at panels. */
static octavo_piece make_weight_piece(const octavo_reshard_desc *desc, const int *axes, int n,
                                      const cover_part *parts) {
    const octavo_tensor *tensor = &desc->program->tensors[desc->tensor];
    const octavo_weight_type type = tensor->weight->type;
    const octavo_weight_info *info = octavo_weight_info_of(type);
    const int n_inputs = (int)strlen(tensor->axes) - desc->n_outputs - (n > 2);
    int64_t len[COLUMNS], from[COLUMNS], to[COLUMNS], from_all[COLUMNS], to_all[COLUMNS];
    for (int i = 0; i < n; i++) {
        const octavo_range here = shard_at(desc, &desc->to, &desc->place, axes[i]);
        const octavo_range there = shard_number(desc, axes[i], parts[i].shard);
        const int n_axes = i == n - 1 ? n_inputs : i == n - 2 ? desc->n_outputs : 1;
        const int64_t lanes = lanes_behind(desc, axes[i], n_axes);
        len[i] = (parts[i].range.end - parts[i].range.begin) * lanes;
        from[i] = (parts[i].range.begin - there.begin) * lanes;
        to[i] = (parts[i].range.begin - here.begin) * lanes;
        from_all[i] = (there.end - there.begin) * lanes;
        to_all[i] = (here.end - here.begin) * lanes;
    }
    const int o = n - 2, k = n - 1;
    const size_t record = (size_t)info->record_bytes;
    octavo_piece piece = {
        .bytes = (size_t)(len[k] / info->record_inputs) * record,
        .n_runs = (int)((len[o] + OCTAVO_PANEL - 1) / OCTAVO_PANEL),
        .n_matrices = n > 2 ? (int)len[0] : 1,
        .from_stride = octavo_weight_panel_bytes(type, from_all[k]),
        .to_stride = octavo_weight_panel_bytes(type, to_all[k]),
        .from_matrix = octavo_weight_bytes(type, from_all[o], from_all[k]),
        .to_matrix = octavo_weight_bytes(type, to_all[o], to_all[k]),
    };
    piece.from = (size_t)(from[o] / OCTAVO_PANEL) * piece.from_stride +
                 (size_t)(from[k] / info->record_inputs) * record +
                 (n > 2 ? (size_t)from[0] * piece.from_matrix : 0);
    piece.to = (size_t)(to[o] / OCTAVO_PANEL) * piece.to_stride +
               (size_t)(to[k] / info->record_inputs) * record +
               (n > 2 ? (size_t)to[0] * piece.to_matrix : 0);
    return piece;
}

/* Ranks that a piece comes from, in each shard of rows. */
static void find_sources(octavo_reshard *reshard, const octavo_reshard_desc *desc, const int *axes,
                         int n, const cover_part *parts, int *sources) {
    octavo_place place = desc->place;
    for (int i = 0; i < n; i++)
        set_place(&place, &desc->from.split[axes[i]], &desc->mesh, parts[i].shard);
    for (int row = 0; row < reshard->n_row_shards; row++) {
        set_place(&place, &reshard->rows, &desc->mesh, row);
        for (int part = 0; part < reshard->n_parts; part++) {
            set_place(&place, &desc->from.partial, &desc->mesh, part);
            *sources++ = octavo_mesh_rank(&desc->mesh, &place);
        }
    }
}

/* A piece for each choice of a part of each axis. */
static bool fill_pieces(octavo_reshard *reshard, const octavo_reshard_desc *desc, const int *axes,
                        int n, const cover *covers) {
    const int each = reshard->n_row_shards * reshard->n_parts;
    int n_pieces = 1;
    for (int i = 0; i < n; i++)
        n_pieces *= covers[i].n;
    reshard->pieces = octavo_alloc_zero((size_t)n_pieces + 1, sizeof *reshard->pieces);
    reshard->sources =
        octavo_alloc_zero((size_t)n_pieces * (size_t)each + 1, sizeof *reshard->sources);
    if (!reshard->pieces || !reshard->sources) return false;
    for (int p = 0; p < n_pieces; p++) {
        cover_part parts[COLUMNS] = {{0}};
        for (int i = n - 1, left = p; i >= 0; left /= covers[i--].n)
            parts[i] = covers[i].parts[left % covers[i].n];
        reshard->pieces[p] = desc->n_outputs > 0 ? make_weight_piece(desc, axes, n, parts)
                                                 : make_piece(desc, axes, n, parts);
        find_sources(reshard, desc, axes, n, parts, reshard->sources + p * each);
    }
    reshard->n_pieces = n_pieces;
    return true;
}

/* `data` first: rows lie group behind group. */
static octavo_split rows_of(const octavo_reshard_desc *desc) {
    octavo_split rows = {0};
    const octavo_split *split = &desc->from.split[0];
    if (desc->letter != 't' && desc->letter != 'r') return rows;
    if (octavo_split_has(split, OCTAVO_MESH_DATA)) rows = octavo_split_add(rows, OCTAVO_MESH_DATA);
    for (int i = 0; i < split->n; i++)
        if (split->axis[i] != OCTAVO_MESH_DATA) rows = octavo_split_add(rows, split->axis[i]);
    return rows;
}

bool octavo_reshard_init(octavo_reshard *reshard, const octavo_reshard_desc *desc) {
    int axes[COLUMNS];
    const int n = cut_axes(desc, axes);
    cover covers[COLUMNS] = {{0}};
    bool is_made = true;
    *reshard = (octavo_reshard){
        .rows = rows_of(desc), .is_owned = desc->from.is_owned, .is_selection = desc->is_selection};
    reshard->n_row_shards = octavo_split_degree(&reshard->rows, &desc->mesh);
    reshard->n_parts = octavo_split_degree(&desc->from.partial, &desc->mesh);
    reshard->row_places =
        octavo_alloc_zero((size_t)reshard->n_row_shards, sizeof *reshard->row_places);
    is_made = reshard->row_places != NULL;
    for (int row = 0; is_made && row < reshard->n_row_shards; row++)
        set_place(&reshard->row_places[row], &reshard->rows, &desc->mesh, row);
    if (desc->only_rank && octavo_mesh_rank(&desc->mesh, &desc->place) != desc->only_rank - 1)
        return is_made;
    for (int i = 0; i < n; i++)
        is_made = is_made && cover_axis(&covers[i], desc, axes[i]);
    is_made = is_made && fill_pieces(reshard, desc, axes, n, covers);
    for (int i = 0; i < n; i++)
        octavo_free(covers[i].parts);
    if (!is_made) octavo_reshard_deinit(reshard);
    return is_made;
}

void octavo_reshard_deinit(octavo_reshard *reshard) {
    octavo_free(reshard->pieces);
    octavo_free(reshard->row_places);
    octavo_free(reshard->owned);
    octavo_free(reshard->experts);
    octavo_free(reshard->weight);
    octavo_free(reshard->sends);
    octavo_free(reshard->sources);
    octavo_free(reshard->heads);
    *reshard = (octavo_reshard){0};
}

bool octavo_reshard_add_sends(octavo_reshard *reshard, const octavo_reshard_desc *desc,
                              const int *processes) {
    const int n_ranks = octavo_mesh_ranks(&desc->mesh);
    const int mine = octavo_mesh_rank(&desc->mesh, &desc->place);
    for (int rank = 0; rank < n_ranks; rank++) {
        octavo_reshard_desc there = *desc;
        octavo_reshard other;
        if (processes[rank] == processes[mine]) continue;
        there.place = octavo_mesh_place(&desc->mesh, rank);
        if (!octavo_reshard_init(&other, &there)) return false;
        const int each = other.n_row_shards * other.n_parts, n = other.n_pieces * each;
        octavo_send *sends = octavo_realloc(reshard->sends, (size_t)(reshard->n_sends + n + 1) *
                                                                sizeof *reshard->sends);
        if (sends) reshard->sends = sends;
        for (int i = 0; sends && i < n; i++)
            if (other.sources[i] == mine)
                sends[reshard->n_sends++] = (octavo_send){
                    .rank = rank,
                    .piece = other.pieces[i / each],
                    .row_shard = i % each / other.n_parts,
                    .part = i % other.n_parts,
                };
        octavo_reshard_deinit(&other);
        if (!sends) return false;
    }
    return true;
}

/* Is `a` the beginning of `b`? */
static bool begins(const octavo_split *a, const octavo_split *b) {
    for (int i = 0; i < a->n; i++)
        if (i >= b->n || a->axis[i] != b->axis[i]) return false;
    return true;
}

/* Each shard of axis i inside of the one that it is a part of. */
static bool nests(const octavo_reshard_desc *desc, int i) {
    const int n = octavo_split_degree(&desc->to.split[i], &desc->mesh);
    for (int shard = 0; shard < n; shard++) {
        octavo_place place = desc->place;
        set_place(&place, &desc->to.split[i], &desc->mesh, shard);
        const octavo_range to = shard_at(desc, &desc->to, &place, i);
        const octavo_range from = shard_at(desc, &desc->from, &place, i);
        if (to.begin < to.end && (to.begin < from.begin || to.end > from.end)) return false;
    }
    return true;
}

bool octavo_reshard_is_slice(const octavo_reshard_desc *desc) {
    int axes[COLUMNS];
    const int n = cut_axes(desc, axes);
    octavo_reshard_desc back = *desc;
    if (desc->from.partial.n > 0) return false;
    back.from = desc->to;
    if (desc->letter == 't' || desc->letter == 'r') {
        const octavo_split from = rows_of(desc), to = rows_of(&back);
        if (!begins(&from, &to)) return false;
        /* rows that need a result lie in any part of a group */
        if (desc->is_selection && from.n > octavo_split_has(&from, OCTAVO_MESH_DATA)) return false;
    }
    for (int i = 0; i < n; i++)
        if (!begins(&desc->from.split[axes[i]], &desc->to.split[axes[i]]) || !nests(desc, axes[i]))
            return false;
    return true;
}
