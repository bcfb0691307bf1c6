/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of a mesh as a grid, and beside it what fills the memory of one.
 */
#include "base/compiler.h"
#include "cli/plan_draw.h"
#include "cli/plan_words.h"

#include <math.h>
#include <string.h>

enum {
    MOST_CELLS = 1024,
    MOST_ACROSS = 64,
    GRID_SIZE = 384,
    MEMORY_X = 440,
    MEMORY_WIDTH = OCTAVO_VIEW_DRAWING - MEMORY_X,
    MOST_TENSORS = 10,
};

/* How ranks are laid out: `block` of them in a cell. */
typedef struct grid {
    int64_t across, down, block;
    double size; /* of a cell */
} grid;

static grid grid_of(const octavo_view_mesh *mesh) {
    const int64_t inner = mesh->degree[OCTAVO_VIEW_AXES - 1];
    grid laid = {.across = inner, .block = 1};
    if (mesh->ranks > MOST_CELLS) {
        laid.block = (mesh->ranks + MOST_CELLS - 1) / MOST_CELLS;
        laid.across = 32;
    } else if (inner > MOST_ACROSS || mesh->ranks / inner > MOST_ACROSS) {
        laid.across = 32;
    }
    const int64_t cells = (mesh->ranks + laid.block - 1) / laid.block;
    laid.down = (cells + laid.across - 1) / laid.across;
    const int64_t most = laid.across > laid.down ? laid.across : laid.down;
    laid.size = fmin(40.0, (double)GRID_SIZE / (double)most);
    return laid;
}

/* "rank 5: data 0, expert 1, seq 0, model 1" */
static void put_place(octavo_buffer *out, const octavo_view_mesh *mesh, int64_t rank) {
    octavo_buffer_printf(out, "rank %lld:", (long long)rank);
    for (int i = 0; i < OCTAVO_VIEW_AXES; i++)
        octavo_buffer_printf(out, "%s %s %lld", i ? "," : "", octavo_view_axis_name(i),
                             (long long)octavo_view_place(mesh, rank, i));
}

static double draw_grid(octavo_buffer *out, const octavo_view_mesh *mesh, double top) {
    const grid laid = grid_of(mesh);
    const double gap = laid.size > 12.0 ? 2.0 : 0.5;
    for (int64_t rank = 0, cell = 0; rank < mesh->ranks; rank += laid.block, cell++) {
        const octavo_view_box box = {.x = (double)(cell % laid.across) * laid.size,
                                     .y = top + (double)(cell / laid.across) * laid.size,
                                     .width = laid.size - gap,
                                     .height = laid.size - gap};
        octavo_buffer tip = {0};
        put_place(&tip, mesh, rank);
        if (laid.block > 1) octavo_buffer_printf(&tip, " and %lld more", (long long)laid.block - 1);
        octavo_view_draw_box(out, box, octavo_view_rank_paint(rank, mesh->ranks).text,
                             tip.failed ? "" : tip.data);
        octavo_buffer_deinit(&tip);
        if (laid.size < 20.0 || rank > 9999) continue;
        octavo_buffer number = {0};
        octavo_buffer_printf(&number, "%lld", (long long)rank);
        octavo_view_draw_words(out, box.x + box.width / 2.0, box.y + box.height / 2.0 + 3.5, "on",
                               "middle", &number);
    }
    top += (double)laid.down * laid.size + 14.0;
    octavo_buffer words = {0};
    if (laid.block > 1)
        octavo_buffer_printf(&words, "a cell is %lld ranks; ", (long long)laid.block);
    octavo_buffer_puts(&words,
                       laid.across == mesh->degree[OCTAVO_VIEW_AXES - 1] && laid.block == 1
                           ? "model across; seq, expert, data down"
                           : "in the order of ranks: model fastest, then seq, expert, data");
    octavo_view_draw_words(out, 0.0, top, "dim", "start", &words);
    return top + 10.0;
}

/* ---- memory ---- */

static double draw_memory_bar(octavo_buffer *out, const json_t *plan, double y) {
    static const char *const kinds[] = {"weights", "cache", "activations"};
    static const char *const paints[] = {" class=\"weights\"", " class=\"cache\"",
                                         " class=\"activations\""};
    const json_t *memory = json_object_get(plan, "memory_per_rank");
    const double total = octavo_view_memory(plan);
    double x = MEMORY_X;
    octavo_buffer words = {0};
    octavo_view_put_bytes(&words, total);
    octavo_buffer_puts(&words, " on the fullest rank");
    octavo_view_draw_words(out, MEMORY_X, y, "ink", "start", &words);
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++) {
        const double bytes = octavo_view_number(memory, kinds[i]);
        const double width = total > 0.0 ? MEMORY_WIDTH * bytes / total : 0.0;
        octavo_buffer_printf(&words, "%s ", kinds[i]);
        octavo_view_put_bytes(&words, bytes);
        octavo_view_draw_box(out, (octavo_view_box){x, y + 8.0, width, 22.0}, paints[i],
                             words.failed ? "" : words.data);
        octavo_view_draw_box(out, (octavo_view_box){MEMORY_X + 180.0 * (double)i, y + 38.0, 10, 10},
                             paints[i], NULL);
        octavo_view_draw_words(out, MEMORY_X + 180.0 * (double)i + 15.0, y + 47.0, "dim", "start",
                               &words);
        x += width;
    }
    return y + 66.0;
}

/* Of all its layers. */
static double bytes_of(const json_t *tensor) {
    return octavo_view_number(tensor, "bytes_per_rank") * (double)octavo_view_count(tensor);
}

/* The weights and caches that take most, largest first; how many. */
static int find_largest(const json_t *plan, const json_t **largest) {
    int n = 0;
    size_t i;
    json_t *tensor;
    json_array_foreach(json_object_get(plan, "tensors"), i, tensor) {
        int at = n;
        if (strcmp(octavo_view_text(tensor, "kind"), "activation") == 0) continue;
        while (at > 0 && bytes_of(largest[at - 1]) < bytes_of(tensor))
            at--;
        if (at == MOST_TENSORS) continue;
        if (n < MOST_TENSORS) n++;
        for (int k = n - 1; k > at; k--)
            largest[k] = largest[k - 1];
        largest[at] = tensor;
    }
    return n;
}

static double draw_largest(octavo_buffer *out, const json_t *plan, double y) {
    const json_t *largest[MOST_TENSORS];
    const int n = find_largest(plan, largest);
    const double most = n > 0 ? fmax(bytes_of(largest[0]), 1.0) : 1.0;
    for (int i = 0; i < n; i++) {
        const bool is_cache = strcmp(octavo_view_text(largest[i], "kind"), "cache") == 0;
        const double width = 270.0 * bytes_of(largest[i]) / most;
        octavo_buffer words = {0};
        octavo_view_draw_label(out, MEMORY_X + 190.0, y + 11.0, "dim", "end",
                               octavo_view_text(largest[i], "name"));
        octavo_view_draw_box(out, (octavo_view_box){MEMORY_X + 198.0, y, width, 14.0},
                             is_cache ? " class=\"cache\"" : " class=\"weights\"", NULL);
        octavo_view_put_bytes(&words, bytes_of(largest[i]));
        octavo_view_draw_words(out, MEMORY_X + 204.0 + width, y + 11.0, "dim", "start", &words);
        y += 19.0;
    }
    return y;
}

double octavo_view_draw_mesh(octavo_buffer *out, const json_t *plan, double y) {
    const octavo_view_mesh mesh = octavo_view_mesh_of(plan);
    octavo_buffer words = {0};
    octavo_view_draw_label(out, 0.0, y + 14.0, "head", "start", "Mesh");
    octavo_view_draw_label(out, MEMORY_X, y + 14.0, "head", "start", "Memory of a rank");
    octavo_view_put_mesh(&words, &mesh);
    octavo_view_draw_words(out, 0.0, y + 34.0, "ink", "start", &words);
    const double left = draw_grid(out, &mesh, y + 46.0);
    double right = draw_memory_bar(out, plan, y + 34.0);
    right = draw_largest(out, plan, right);
    return fmax(left, right) + 24.0;
}
