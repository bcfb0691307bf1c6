/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's share of a step: rows of its data group (all, where there is but one), cut by the other
 * mesh axes; the sequences that its attention works on; the rows that need a result, so many of
 * each group at a time.
 */
#include "program/run_step.h"

#include "base/compiler.h"
#include "program/operand.h"

octavo_range octavo_rows_at(const octavo_mesh *mesh, const octavo_place *place,
                            const octavo_split *split, const int32_t *offsets) {
    const int group = place->at[OCTAVO_MESH_DATA], groups = mesh->degree[OCTAVO_MESH_DATA];
    const bool is_of_group = octavo_split_has(split, OCTAVO_MESH_DATA);
    const int64_t begin = is_of_group ? offsets[group] : 0;
    const int64_t n = (is_of_group ? offsets[group + 1] : offsets[groups]) - begin;
    octavo_split others = {0};
    for (int i = 0; i < split->n; i++)
        if (split->axis[i] != OCTAVO_MESH_DATA) others = octavo_split_add(others, split->axis[i]);
    const int64_t parts = octavo_split_degree(&others, mesh);
    const int64_t part = octavo_split_index(&others, mesh, place);
    return (octavo_range){begin + part * n / parts, begin + (part + 1) * n / parts};
}

static int groups_of(const octavo_run *run) {
    return run->program->mesh.degree[OCTAVO_MESH_DATA];
}

static void find_rows(octavo_run *run, octavo_range *ranges, const int32_t *offsets) {
    const octavo_program *program = run->program;
    for (int i = 0; i < program->n_row_splits; i++)
        ranges[i] = octavo_rows_at(&program->mesh, &run->place, &program->row_splits[i], offsets);
}

/* ---- attention ---- */

/* Pages of a cache that all groups share are numbered group behind group. */
static const int32_t *tables_of_all(octavo_run *run, const octavo_step *step) {
    const int64_t pages = run->cache->shape.n_pages / groups_of(run), n = step->pages_per_sequence;
    for (int g = 0; g < groups_of(run); g++)
        for (int64_t i = step->group_sequences[g] * n; i < step->group_sequences[g + 1] * n; i++)
            run->block_tables[i] = (int32_t)(step->block_tables[i] + g * pages);
    return run->block_tables;
}

/* The sequences whose keys and values the cache has: rows of the batch begin with the first of
 * *rows. */
static octavo_attention_batch batch_of(octavo_run *run, const octavo_plan_key *key,
                                       octavo_range *rows) {
    const octavo_step *step = run->step;
    const int group = run->place.at[OCTAVO_MESH_DATA];
    const bool is_part = groups_of(run) > 1 && !key->is_of_all;
    const int first = is_part ? step->group_sequences[group] : 0;
    const int last = is_part ? step->group_sequences[group + 1] : step->n_sequences;
    *rows = (octavo_range){is_part ? run->token_offsets[group] : 0,
                           is_part ? run->token_offsets[group + 1] : step->n_tokens};
    octavo_attention_batch batch = {
        .n_tokens = rows->end - rows->begin,
        .n_seqs = last - first,
        .page_size = run->cache->shape.page_size,
        .pages_per_seq = step->pages_per_sequence,
        .kv_lens = step->kv_lens + first,
        .query_start_loc = step->query_start_loc,
        .block_tables = step->block_tables + first * step->pages_per_sequence,
    };
    if (groups_of(run) == 1) return batch;
    if (!is_part) {
        batch.block_tables = tables_of_all(run, step);
        return batch;
    }
    for (int i = first; i <= last; i++)
        run->sequence_starts[i - first] = (int32_t)(step->query_start_loc[i] - rows->begin);
    batch.query_start_loc = run->sequence_starts;
    return batch;
}

static void make_plans(octavo_run *run) {
    for (int i = 0; i < run->program->n_plans; i++) {
        const octavo_plan_key *key = &run->program->plans[i];
        octavo_run_plan *plan = &run->plans[i];
        const octavo_range mine = run->t_rows[key->rows];
        octavo_range rows;
        octavo_attention_batch batch = batch_of(run, key, &rows);
        if (mine.begin != rows.begin || mine.end != rows.end) {
            const octavo_attention_batch whole = batch;
            octavo_attention_batch_rows(&whole, mine.begin - rows.begin, mine.end - rows.begin,
                                        plan->starts, plan->positions, &batch);
        }
        octavo_attention_plan_make(&plan->plan, &plan->limits, &batch, octavo_mask_of(key),
                                   plan->memory);
        plan->first_row = rows.begin;
    }
}

void octavo_run_begin(octavo_run *run, const octavo_step *step) {
    const int index = step->n_tokens == step->n_sequences;
    const int groups = groups_of(run);
    octavo_assert(groups == 1 || (step->group_tokens && step->group_sequences && step->group_rows));
    run->step = step;
    run->program = run->programs[index];
    run->plans = run->all_plans[run->programs[0] == run->programs[1] ? 0 : index];
    for (int g = 0; g <= groups; g++)
        run->token_offsets[g] = groups > 1 ? step->group_tokens[g] : g * step->n_tokens;
    find_rows(run, run->t_rows, run->token_offsets);
    make_plans(run);
}

/* ---- rows that need a result ---- */

static int first_row_of(const octavo_run *run, int group) {
    if (groups_of(run) > 1) return run->step->group_rows[group];
    return group * run->step->n_rows;
}

bool octavo_run_has_rows(const octavo_run *run, int i) {
    for (int g = 0; g < groups_of(run); g++)
        if (first_row_of(run, g + 1) - first_row_of(run, g) > (int64_t)i * run->program->max_rows)
            return true;
    return false;
}

static bool any(float *const *pointers, const int32_t *rows, int n) {
    for (int i = 0; pointers && i < n; i++)
        if (pointers[rows[i]]) return true;
    return false;
}

void octavo_run_begin_rows(octavo_run *run, int i) {
    const octavo_step *step = run->step;
    const int most = run->program->max_rows;
    int n = 0;
    for (int g = 0; g < groups_of(run); g++) {
        const int first = first_row_of(run, g), end = first_row_of(run, g + 1);
        for (int64_t r = first + (int64_t)i * most; r < end && r < first + (i + 1LL) * most; r++)
            run->row_numbers[n++] = (int32_t)r;
        run->row_offsets[g + 1] = n;
    }
    find_rows(run, run->r_rows, run->row_offsets);
    run->wants_hidden = any(step->hidden, run->row_numbers, n);
    run->wants_logits = any(step->logits, run->row_numbers, n);
}
