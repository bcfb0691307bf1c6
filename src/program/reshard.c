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

enum { COLUMNS = 2 }; /* most axes of columns */

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

static int first_column(const octavo_reshard_desc *desc) {
    return desc->letter ? 1 : 0;
}

static int count_columns(const octavo_reshard_desc *desc) {
    if (desc->width > 0) return 0;
    return (int)strlen(desc->program->tensors[desc->tensor].axes) - first_column(desc);
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
static octavo_piece make_piece(const octavo_reshard_desc *desc, int n, const cover_part *parts) {
    const int first = first_column(desc);
    int64_t from = 0, to = 0, len[COLUMNS], from_row = 1, to_row = 1;
    bool is_whole = true;
    if (n == 0) return (octavo_piece){.bytes = (size_t)desc->width * sizeof(float), .n_runs = 1};
    for (int i = 0; i < n; i++) {
        const octavo_range here = shard_at(desc, &desc->to, &desc->place, first + i);
        const octavo_range there = shard_number(desc, first + i, parts[i].shard);
        len[i] = parts[i].range.end - parts[i].range.begin;
        from_row = there.end - there.begin;
        to_row = here.end - here.begin;
        from = from * from_row + parts[i].range.begin - there.begin;
        to = to * to_row + parts[i].range.begin - here.begin;
        is_whole = len[i] == from_row && len[i] == to_row;
    }
    octavo_piece piece = {.from = bytes_of(desc, from), .to = bytes_of(desc, to), .n_runs = 1};
    piece.bytes = bytes_of(desc, n > 1 && is_whole ? len[0] * len[1] : len[n - 1]);
    if (n == 1 || is_whole) return piece;
    piece.n_runs = (int)len[0];
    piece.from_stride = bytes_of(desc, from_row);
    piece.to_stride = bytes_of(desc, to_row);
    return piece;
}

/* Ranks that a piece comes from, in each shard of rows. */
static void find_sources(octavo_reshard *reshard, const octavo_reshard_desc *desc, int n,
                         const cover_part *parts, int *sources) {
    octavo_place place = desc->place;
    for (int i = 0; i < n; i++)
        set_place(&place, &desc->from.split[first_column(desc) + i], &desc->mesh, parts[i].shard);
    for (int row = 0; row < reshard->n_row_shards; row++) {
        set_place(&place, &reshard->rows, &desc->mesh, row);
        for (int part = 0; part < reshard->n_parts; part++) {
            set_place(&place, &desc->from.partial, &desc->mesh, part);
            *sources++ = octavo_mesh_rank(&desc->mesh, &place);
        }
    }
}

static bool fill_pieces(octavo_reshard *reshard, const octavo_reshard_desc *desc, int n,
                        const cover *covers) {
    const int each = reshard->n_row_shards * reshard->n_parts;
    int n_pieces = 1, second = n > 1 ? covers[1].n : 1;
    for (int i = 0; i < n; i++)
        n_pieces *= covers[i].n;
    reshard->pieces = octavo_alloc_zero((size_t)n_pieces + 1, sizeof *reshard->pieces);
    reshard->sources =
        octavo_alloc_zero((size_t)n_pieces * (size_t)each + 1, sizeof *reshard->sources);
    if (!reshard->pieces || !reshard->sources) return false;
    for (int p = 0; p < n_pieces; p++) {
        cover_part parts[COLUMNS];
        if (n > 0) parts[0] = covers[0].parts[p / second];
        if (n > 1) parts[1] = covers[1].parts[p % second];
        reshard->pieces[p] = make_piece(desc, n, parts);
        find_sources(reshard, desc, n, parts, reshard->sources + p * each);
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
    const int n = count_columns(desc);
    cover covers[COLUMNS] = {{0}};
    bool is_made = true;
    octavo_assert(n <= COLUMNS);
    *reshard = (octavo_reshard){
        .rows = rows_of(desc), .is_owned = desc->from.is_owned, .is_selection = desc->is_selection};
    reshard->n_row_shards = octavo_split_degree(&reshard->rows, &desc->mesh);
    reshard->n_parts = octavo_split_degree(&desc->from.partial, &desc->mesh);
    reshard->row_places =
        octavo_alloc_zero((size_t)reshard->n_row_shards, sizeof *reshard->row_places);
    is_made = reshard->row_places != NULL;
    for (int row = 0; is_made && row < reshard->n_row_shards; row++)
        set_place(&reshard->row_places[row], &reshard->rows, &desc->mesh, row);
    for (int i = 0; i < n; i++)
        is_made = is_made && cover_axis(&covers[i], desc, first_column(desc) + i);
    is_made = is_made && fill_pieces(reshard, desc, n, covers);
    for (int i = 0; i < n; i++)
        octavo_free(covers[i].parts);
    if (!is_made) octavo_reshard_deinit(reshard);
    return is_made;
}

void octavo_reshard_deinit(octavo_reshard *reshard) {
    octavo_free(reshard->pieces);
    octavo_free(reshard->row_places);
    octavo_free(reshard->owned);
    octavo_free(reshard->sources);
    *reshard = (octavo_reshard){0};
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
    const int n = count_columns(desc), first = first_column(desc);
    octavo_reshard_desc back = *desc;
    if (desc->from.partial.n > 0) return false;
    back.from = desc->to;
    if (desc->letter == 't' || desc->letter == 'r') {
        const octavo_split from = rows_of(desc), to = rows_of(&back);
        if (!begins(&from, &to)) return false;
        /* rows that need a result lie in any part of a group */
        if (desc->is_selection && from.n > octavo_split_has(&from, OCTAVO_MESH_DATA)) return false;
    }
    for (int i = first; i < first + n; i++)
        if (!begins(&desc->from.split[i], &desc->to.split[i]) || !nests(desc, i)) return false;
    return true;
}
