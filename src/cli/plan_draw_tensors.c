/* SPDX-License-Identifier: Apache-2.0
 *
 * Each tensor as a rectangle, cut as its shards are: a cell is a shard, and has a band in the
 * colour of each rank that holds it. Where there are too many, neighbours share a cell, and bands
 * are those of some of the ranks.
 */
#include "base/compiler.h"
#include "base/memory.h"
#include "cli/plan_draw.h"
#include "cli/plan_words.h"

#include <math.h>
#include <string.h>

enum {
    MOST_DOWN = 12,
    MOST_ACROSS = 24,
    MOST_BANDS = 16,
    MOST_DRAWN = 256, /* bands of a tensor */
    MOST_AXES = 8,
    CARDS = 4, /* beside one another */
    CARD_WIDTH = OCTAVO_VIEW_DRAWING / CARDS,
    CARD_HEIGHT = 152,
    PICTURE_X = 14,
    PICTURE_WIDTH = CARD_WIDTH - 34,
    PICTURE_HEIGHT = 76,
};

/* The ranks of a shown cell: how many, and some of them. */
typedef struct cell {
    int64_t n;
    int64_t bands[MOST_BANDS];
} cell;

typedef struct picture {
    const json_t *tensor;
    const octavo_view_mesh *mesh;
    int down;   /* the axis that goes down, or -1 */
    int across; /* the one that goes across and is cut as "cuts" says */
    int n_axes; /* of the tensor */
    octavo_view_split splits[MOST_AXES];
    int64_t rows, columns;             /* shards */
    int64_t shown_rows, shown_columns; /* cells */
} picture;

/* Which axis goes down: the first that is split of several, or the first of all but one. */
static void choose_axes(picture *p) {
    int split[MOST_AXES], n_split = 0;
    for (int i = 0; i < p->n_axes; i++)
        if (octavo_view_split_degree(&p->splits[i], p->mesh) > 1) split[n_split++] = i;
    p->down = p->across = -1;
    if (n_split >= 2) {
        p->down = split[0];
        p->across = split[1];
    } else if (n_split == 1 && split[0] == 0 && p->n_axes > 1) {
        p->down = 0;
        p->across = p->n_axes - 1;
    } else if (n_split == 1) {
        p->down = p->n_axes > 1 ? 0 : -1;
        p->across = split[0];
    } else {
        p->down = p->n_axes > 1 ? 0 : -1;
        p->across = p->n_axes - 1;
    }
}

static picture picture_of(const json_t *tensor, const octavo_view_mesh *mesh) {
    picture p = {.tensor = tensor, .mesh = mesh, .rows = 1, .columns = 1};
    const json_t *shape = json_object_get(tensor, "shape");
    const json_t *spec = json_object_get(tensor, "spec");
    p.n_axes = json_array_size(shape) < MOST_AXES ? (int)json_array_size(shape) : MOST_AXES;
    for (int i = 0; i < p.n_axes; i++)
        p.splits[i] = octavo_view_split_of(json_array_get(spec, (size_t)i));
    choose_axes(&p);
    for (int i = 0; i < p.n_axes; i++) {
        const int64_t degree = octavo_view_split_degree(&p.splits[i], mesh);
        /* an axis of the mesh splits a tensor once; a document that says otherwise stays small */
        if (i == p.down)
            p.rows = degree;
        else if (degree <= OCTAVO_VIEW_MAX_RANKS / p.columns)
            p.columns *= degree;
    }
    p.shown_rows = p.rows < MOST_DOWN ? p.rows : MOST_DOWN;
    p.shown_columns = p.columns < MOST_ACROSS ? p.columns : MOST_ACROSS;
    return p;
}

/* Which cell shows a rank's shard. */
static int64_t cell_of(const picture *p, int64_t rank) {
    int64_t row = 0, column = 0;
    for (int i = 0; i < p->n_axes; i++) {
        const int64_t index = octavo_view_split_index(&p->splits[i], p->mesh, rank);
        if (i == p->down)
            row = index;
        else
            column = column * octavo_view_split_degree(&p->splits[i], p->mesh) + index;
    }
    row = row * p->shown_rows / p->rows;
    column = column * p->shown_columns / p->columns;
    if (column >= p->shown_columns) column = p->shown_columns - 1;
    return row * p->shown_columns + column;
}

/* Fills cells [shown_rows * shown_columns], zeroed. Bands are spread over the ranks of a cell. */
static void find_ranks(const picture *p, cell *cells) {
    int64_t seen[MOST_DOWN * MOST_ACROSS] = {0};
    for (int64_t rank = 0; rank < p->mesh->ranks; rank++)
        cells[cell_of(p, rank)].n++;
    for (int64_t rank = 0; rank < p->mesh->ranks; rank++) {
        const int64_t at = cell_of(p, rank), order = seen[at]++;
        cell *here = &cells[at];
        const int64_t n_bands = here->n < MOST_BANDS ? here->n : MOST_BANDS;
        const int64_t band = order * n_bands / here->n;
        /* the first rank of each of n_bands equal parts */
        if (order == 0 || (order - 1) * n_bands / here->n != band) here->bands[band] = rank;
    }
}

/* Where boundary `i` of an axis lies, as a share of it: as cut, or even. */
static double boundary(const picture *p, int axis, int64_t i, int64_t shown, int64_t n) {
    const json_t *cuts =
        axis < 0 ? NULL : json_array_get(json_object_get(p->tensor, "cuts"), (size_t)axis);
    const double extent =
        axis < 0
            ? 0.0
            : json_number_value(json_array_get(json_object_get(p->tensor, "shape"), (size_t)axis));
    if (shown != n || json_array_size(cuts) != (size_t)n + 1 || extent <= 0.0)
        return (double)i / (double)shown;
    const double at = json_number_value(json_array_get(cuts, (size_t)i)) / extent;
    return at >= 0.0 && at <= 1.0 ? at : (double)i / (double)shown;
}

static void draw_cell(octavo_buffer *out, const picture *p, const cell *held, octavo_view_box box) {
    const int64_t known = held->n < MOST_BANDS ? held->n : MOST_BANDS;
    const int64_t most = (int64_t)fmin(
        box.height / 2.0, (double)MOST_DRAWN / (double)(p->shown_rows * p->shown_columns));
    const int64_t n = known < most || known == 1 ? known : most > 1 ? most : 1;
    octavo_buffer_printf(out, "<g><title>%s %lld", held->n == 1 ? "rank" : "ranks",
                         (long long)held->bands[0]);
    if (held->n > 1) octavo_buffer_printf(out, " and %lld more", (long long)held->n - 1);
    octavo_buffer_puts(out, "</title>");
    for (int64_t i = 0; i < n; i++) {
        const octavo_view_box band = {box.x, box.y + box.height * (double)i / (double)n, box.width,
                                      box.height / (double)n};
        octavo_view_draw_box(
            out, band, octavo_view_rank_paint(held->bands[i * known / n], p->mesh->ranks).text,
            NULL);
    }
    if (box.width >= 7.0 && box.height >= 6.0)
        octavo_view_draw_box(out, box, " class=\"line\"", NULL);
    octavo_buffer_puts(out, "</g>\n");
    if (box.width < 22.0 || box.height < 12.0) return;
    octavo_buffer label = {0};
    octavo_buffer_printf(&label, held->n == 1 ? "%lld" : "%lld ranks",
                         (long long)(held->n == 1 ? held->bands[0] : held->n));
    if (box.width < 50.0 && held->n > 1)
        octavo_buffer_deinit(&label);
    else
        octavo_view_draw_words(out, box.x + box.width / 2.0, box.y + box.height / 2.0 + 3.5, "on",
                               "middle", &label);
}

static void draw_cells(octavo_buffer *out, const picture *p, const cell *cells, double x,
                       double y) {
    const bool is_flat = p->down < 0;
    const double height = is_flat ? 20.0 : PICTURE_HEIGHT;
    for (int64_t row = 0; row < p->shown_rows; row++) {
        const double top = boundary(p, p->down, row, p->shown_rows, p->rows);
        const double bottom = boundary(p, p->down, row + 1, p->shown_rows, p->rows);
        for (int64_t column = 0; column < p->shown_columns; column++) {
            const double left = boundary(p, p->across, column, p->shown_columns, p->columns);
            const double right = boundary(p, p->across, column + 1, p->shown_columns, p->columns);
            const cell *held = &cells[row * p->shown_columns + column];
            if (held->n == 0 || right <= left || bottom <= top) continue;
            draw_cell(out, p, held,
                      (octavo_view_box){x + PICTURE_WIDTH * left, y + height * top,
                                        PICTURE_WIDTH * (right - left), height * (bottom - top)});
        }
    }
}

/* The letter that names an axis: names end in one for each. */
static char letter_of(const picture *p, int axis) {
    const char *name = octavo_view_text(p->tensor, "name");
    const char *letters = strrchr(name, '_');
    if (axis < 0 || !letters || strlen(letters + 1) != (size_t)p->n_axes) return '\0';
    const char letter = letters[1 + axis];
    return letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : '\0';
}

static void draw_letter(octavo_buffer *out, double x, double y, char letter) {
    const char text[2] = {letter, '\0'};
    if (letter) octavo_view_draw_label(out, x, y, "dim", "middle", text);
}

static void draw_card(octavo_buffer *out, const picture *p, const cell *cells, double x, double y) {
    const char *layers = octavo_view_text(p->tensor, "layers");
    octavo_buffer words = {0};
    octavo_view_draw_label(out, x, y + 12.0, "name", "start", octavo_view_text(p->tensor, "name"));
    octavo_view_put_spec(&words, json_object_get(p->tensor, "spec"));
    octavo_view_draw_words(out, x, y + 26.0, "dim", "start", &words);
    draw_letter(out, x + 5.0, y + 32.0 + (p->down < 0 ? 14.0 : PICTURE_HEIGHT / 2.0),
                letter_of(p, p->down));
    draw_cells(out, p, cells, x + PICTURE_X, y + 32.0);
    draw_letter(out, x + PICTURE_X + PICTURE_WIDTH + 8.0,
                y + 32.0 + (p->down < 0 ? 14.0 : PICTURE_HEIGHT / 2.0), letter_of(p, p->across));
    y += 32.0 + (p->down < 0 ? 20.0 : PICTURE_HEIGHT);
    octavo_view_put_shape(&words, json_object_get(p->tensor, "shard_shape"));
    octavo_buffer_puts(&words, " of ");
    octavo_view_put_shape(&words, json_object_get(p->tensor, "shape"));
    octavo_view_draw_words(out, x, y + 14.0, "dim", "start", &words);
    octavo_view_put_bytes(&words, octavo_view_number(p->tensor, "bytes_per_rank"));
    if (*layers) {
        octavo_buffer_puts(&words, ", layers ");
        octavo_view_put_where(&words, p->tensor);
    }
    if (p->shown_rows < p->rows || p->shown_columns < p->columns)
        octavo_buffer_printf(
            &words, "; a cell is %lld shards",
            (long long)((p->rows * p->columns + p->shown_rows * p->shown_columns - 1) /
                        (p->shown_rows * p->shown_columns)));
    octavo_view_draw_words(out, x, y + 28.0, "dim", "start", &words);
}

/* Cards beside and below one another, of those tensors that belong to a section. */
static double draw_section(octavo_buffer *out, const json_t *tensors, const octavo_view_mesh *mesh,
                           int section, double y) {
    int64_t drawn = 0;
    size_t i;
    json_t *tensor;
    json_array_foreach(tensors, i, tensor) {
        if (octavo_view_section_of(tensor) != section) continue;
        if (drawn == 0) {
            octavo_view_draw_label(out, 0.0, y + 14.0, "ink", "start",
                                   octavo_view_section_name(section));
            y += 26.0;
        }
        const picture p = picture_of(tensor, mesh);
        cell *cells = octavo_alloc_zero((size_t)(p.shown_rows * p.shown_columns), sizeof *cells);
        if (!cells) {
            out->failed = true;
            return y;
        }
        find_ranks(&p, cells);
        draw_card(out, &p, cells, (double)(drawn % CARDS) * CARD_WIDTH,
                  y + (double)(drawn / CARDS) * CARD_HEIGHT);
        octavo_free(cells);
        drawn++;
    }
    return y + (double)((drawn + CARDS - 1) / CARDS) * CARD_HEIGHT;
}

double octavo_view_draw_tensors(octavo_buffer *out, const json_t *plan, double y) {
    const octavo_view_mesh mesh = octavo_view_mesh_of(plan);
    octavo_view_draw_label(out, 0.0, y + 10.0, "dim", "start",
                           "A cell is a shard, in the colour of the rank that holds it; bands are "
                           "copies on several ranks.");
    y += 18.0;
    for (int i = 0; i < OCTAVO_VIEW_SECTIONS; i++)
        y = draw_section(out, json_object_get(plan, "tensors"), &mesh, i, y);
    return y + 10.0;
}
