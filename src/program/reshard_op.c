/* SPDX-License-Identifier: Apache-2.0
 *
 * A value in another layout: threads share the rows of the rank's own part, or, where rows are
 * few, the columns, and take each piece from the arena of the rank that has it. Parts of a sum are
 * added by the tree (kernels/order.h, rule 2); only then come factor and bias. Rows of tokens go to
 * the ranks of their experts, and come back, as choices say that both sides have.
 */
#include "program/operand.h"

#include <string.h>

enum { CHUNK = 256 }; /* columns that are added at a time */

/* What a thread does of the op. */
typedef struct move {
    octavo_run *run;
    const octavo_op *op;
    const octavo_reshard *reshard;
    octavo_range rows;     /* of the result, numbered as octavo_range_of does */
    octavo_range mine;     /* the thread's of them */
    int share, n_shares;   /* of the columns */
    const int32_t *wanted; /* of a selection, rows of t by those of r at hand; else NULL */
} move;

/* A part of a piece: where one rank's rows of it begin, and how they lie. */
typedef struct piece_part {
    const uint8_t *first;
    size_t row_bytes, run_bytes, matrix_bytes; /* from row to row, run to run, matrix to matrix */
} piece_part;

/* A piece's parts as the ranks of one shard of rows have them. */
typedef struct source {
    const octavo_piece *piece;
    int row_shard;
    const int *ranks; /* [n_parts] */
    octavo_range rows;
    piece_part parts[OCTAVO_MAX_PARTS];
    bool is_elsewhere[OCTAVO_MAX_PARTS]; /* rows are those alone that the rank takes: */
    int64_t taken[OCTAVO_MAX_PARTS];     /* so many of them are before the row at hand */
} source;

/* ---- sums ---- */

/* parts[i] + at holds n floats; a part that is NULL adds nothing. False: none is there. */
static bool add_tree(const octavo_vector_kernels *vector, float *out, const uint8_t *const *parts,
                     int n_parts, size_t at, int64_t n) {
    float other[CHUNK];
    if (n_parts == 1) {
        if (parts[0]) memcpy(out, parts[0] + at, (size_t)n * sizeof *out);
        return parts[0] != NULL;
    }
    if (n_parts == 2 && parts[0] && parts[1]) {
        vector->add(out, (const float *)(const void *)(parts[0] + at),
                    (const float *)(const void *)(parts[1] + at), n);
        return true;
    }
    if (!add_tree(vector, out, parts, n_parts / 2, at, n))
        return add_tree(vector, out, parts + n_parts / 2, n_parts / 2, at, n);
    if (add_tree(vector, other, parts + n_parts / 2, n_parts / 2, at, n))
        vector->add(out, out, other, n);
    return true;
}

static void add_parts(const octavo_vector_kernels *vector, float *out, const uint8_t *const *parts,
                      int n_parts, size_t at, int64_t n) {
    bool has_any = false;
    if ((n_parts & (n_parts - 1)) == 0) {
        has_any = add_tree(vector, out, parts, n_parts, at, n);
    } else {
        for (int i = 0; i < n_parts; i++) {
            if (!parts[i]) continue;
            if (has_any)
                vector->add(out, out, (const float *)(const void *)(parts[i] + at), n);
            else
                memcpy(out, parts[i] + at, (size_t)n * sizeof *out);
            has_any = true;
        }
    }
    for (int64_t i = 0; !has_any && i < n; i++)
        out[i] = -0.0f;
}

/* The rank's expert whose pairs row `row` of p is among. */
static int64_t expert_of(const octavo_run *run, int64_t row) {
    int64_t e = 0;
    while (run->expert_begin[e + 1] <= row)
        e++;
    return e;
}

/* What comes after the sum: columns [column, column + n) of a row. */
static void finish(const move *m, float *out, int64_t row, int64_t column, int64_t n) {
    octavo_run *run = m->run;
    const bool is_pair = octavo_tensor_at(run, m->op->out)->axes[0] == 'p';
    const int64_t e = is_pair ? expert_of(run, row) : 0;
    const float *bias = is_pair ? octavo_expert_bias(run, m->op->in[1], e, m->op->out)
                                : octavo_vector_for(run, m->op->in[1], m->op->out);
    if (m->op->in[2] != OCTAVO_NO_TENSOR) {
        const octavo_tensor *tensor = octavo_tensor_at(run, m->op->in[2]);
        const float *factors = tensor->weight->factors;
        if (is_pair && factors) factors += run->first_expert + e - tensor->begin[0];
        if (factors) run->vector.scale_mul(out, out, *factors, NULL, n);
    }
    if (bias) run->vector.add(out, out, bias + column, n);
}

/* `bytes` of each part. */
static void sum_run(const move *m, const uint8_t *const *parts, uint8_t *to, int64_t row,
                    size_t column_bytes, size_t bytes) {
    const int64_t n = (int64_t)(bytes / sizeof(float));
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t len = n - i < CHUNK ? n - i : CHUNK;
        float *out = (float *)(void *)to + i;
        add_parts(&m->run->vector, out, parts, m->reshard->n_parts, (size_t)i * sizeof *out, len);
        finish(m, out, row, (int64_t)(column_bytes / sizeof(float)) + i, len);
    }
}

/* ---- rows ---- */

static octavo_range intersect(octavo_range a, octavo_range b) {
    if (a.begin < b.begin) a.begin = b.begin;
    if (a.end > b.end) a.end = b.end;
    return a;
}

/* Which part has the row of this id. */
static int owner_of(const octavo_reshard *reshard, int32_t id) {
    int low = 0, high = reshard->n_parts - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (id < reshard->owned[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t row_at_source(const move *m, int64_t row) {
    return m->wanted ? m->wanted[m->run->row_numbers[row]] : row;
}

/* Has token `row` an expert among those? */
static bool is_for(octavo_run *run, const octavo_op *op, int64_t row, octavo_range experts) {
    const octavo_choice *choices =
        octavo_row_of(run, op->in[3], row - octavo_first_row(run, op->in[3]));
    for (int c = 0; c < op->params.router.n_chosen; c++)
        if (choices[c].expert >= experts.begin && choices[c].expert < experts.end) return true;
    return false;
}

/* Does a rank at `place` take row `row` of the source from the part? */
static bool is_taken(octavo_run *run, const octavo_op *op, const octavo_place *place, int part,
                     int64_t row) {
    const octavo_reshard *reshard = &run->program->reshards[op->params.reshard];
    if (reshard->is_owned) return owner_of(reshard, octavo_input_of(run, op->in[3])[row]) == part;
    if (reshard->is_from_experts) return is_for(run, op, row, reshard->experts[part]);
    if (!reshard->is_to_experts) return true;
    const int shard = octavo_split_index(&reshard->expert_split, &run->program->mesh, place);
    return is_for(run, op, row, reshard->experts[shard]);
}

/* Row `row` of the result, which is `from` in the numbers of the source's rows. */
static void move_row(const move *m, source *s, int64_t row, int64_t from) {
    const octavo_piece *piece = s->piece;
    const uint8_t *first[OCTAVO_MAX_PARTS], *parts[OCTAVO_MAX_PARTS];
    uint8_t *to = octavo_row_of(m->run, m->op->out, row - m->rows.begin);
    const bool is_sum = m->reshard->n_parts > 1 && !m->reshard->is_owned;
    int only = -1;
    int64_t low, high;
    for (int k = 0; k < m->reshard->n_parts; k++) {
        const piece_part *p = &s->parts[k];
        first[k] = NULL;
        if (!is_taken(m->run, m->op, &m->run->place, k, from)) continue;
        const int64_t at = s->is_elsewhere[k] ? s->taken[k]++ : from - s->rows.begin;
        first[k] = p->first + (size_t)at * p->row_bytes;
        only = k;
    }
    octavo_pool_share((int64_t)piece->bytes, OCTAVO_ALIGN, m->share, m->n_shares, &low, &high);
    const size_t bytes = (size_t)(high - low);
    if (only < 0 && !is_sum) return;
    for (int i = 0; i < piece->n_runs * piece->n_matrices && bytes > 0; i++) {
        const size_t run = (size_t)(i % piece->n_runs), matrix = (size_t)(i / piece->n_runs);
        const size_t column =
            piece->to + run * piece->to_stride + matrix * piece->to_matrix + (size_t)low;
        for (int k = is_sum ? 0 : only; k < (is_sum ? m->reshard->n_parts : only + 1); k++) {
            const piece_part *p = &s->parts[k];
            parts[k] =
                first[k] ? first[k] + run * p->run_bytes + matrix * p->matrix_bytes + low : NULL;
        }
        if (is_sum)
            sum_run(m, parts, to + column, row - m->rows.begin, column, bytes);
        else
            memcpy(to + column, parts[only], bytes);
    }
}

static void move_rows(const move *m, source *s) {
    const octavo_range rows = m->wanted ? m->mine : intersect(m->mine, s->rows);
    for (int k = 0; k < m->reshard->n_parts; k++)
        s->taken[k] = s->is_elsewhere[k] ? octavo_rows_taken(m->run, m->op, &m->run->place,
                                                             s->row_shard, k, rows.begin)
                                         : 0;
    for (int64_t row = rows.begin; row < rows.end; row++) {
        const int64_t from = row_at_source(m, row);
        if (from >= s->rows.begin && from < s->rows.end) move_row(m, s, row, from);
    }
}

/* ---- sources ---- */

/* Rows of a tensor at a place; of the rank's own pairs and single rows all. */
static octavo_range rows_at(const octavo_run *run, const octavo_tensor *tensor,
                            const octavo_split *split, const octavo_place *place) {
    const bool has_rows = tensor->kind == OCTAVO_TENSOR_ACTIVATION &&
                          (tensor->axes[0] == 't' || tensor->axes[0] == 'r');
    if (!has_rows) return octavo_range_of(run, tensor);
    return octavo_rows_at(&run->program->mesh, place, split,
                          tensor->axes[0] == 'r' ? run->row_offsets : run->token_offsets);
}

static octavo_range rows_of_shard(const octavo_run *run, const octavo_op *op, int shard) {
    const octavo_reshard *reshard = &run->program->reshards[op->params.reshard];
    return rows_at(run, &run->program->tensors[op->in[0]], &reshard->rows,
                   &reshard->row_places[shard]);
}

int64_t octavo_next_taken(octavo_run *run, const octavo_op *op, const octavo_place *place,
                          int row_shard, int part, int64_t *row) {
    const octavo_reshard *reshard = &run->program->reshards[op->params.reshard];
    const octavo_tensor *out = octavo_tensor_at(run, op->out);
    const octavo_range shard = rows_of_shard(run, op, row_shard);
    const octavo_range rows = rows_at(run, out, &run->program->row_splits[out->rows], place);
    if (*row < rows.begin) *row = rows.begin;
    for (; *row < rows.end; ++*row) {
        const int64_t from =
            reshard->is_selection ? run->step->logit_rows[run->row_numbers[*row]] : *row;
        if (from < shard.begin || from >= shard.end) continue;
        if (!is_taken(run, op, place, part, from)) continue;
        ++*row;
        return from - shard.begin;
    }
    return -1;
}

int64_t octavo_rows_taken(octavo_run *run, const octavo_op *op, const octavo_place *place,
                          int row_shard, int part, int64_t end) {
    const octavo_reshard *reshard = &run->program->reshards[op->params.reshard];
    const octavo_tensor *out = octavo_tensor_at(run, op->out);
    int64_t n = 0, row = 0;
    if (!reshard->is_selection && !reshard->is_owned && !reshard->experts) {
        octavo_range rows = rows_at(run, out, &run->program->row_splits[out->rows], place);
        rows = intersect(rows, rows_of_shard(run, op, row_shard));
        if (rows.end > end) rows.end = end;
        return rows.begin < rows.end ? rows.end - rows.begin : 0;
    }
    while (octavo_next_taken(run, op, place, row_shard, part, &row) >= 0 && row <= end)
        n++;
    return n;
}

/* Of a rank of this process in its arena, of another in what it has sent. */
static void find_parts(const move *m, source *s, int index) {
    const octavo_piece *piece = s->piece;
    for (int i = 0; i < m->reshard->n_parts; i++) {
        octavo_run *peer = s->ranks[i] == m->run->rank ? m->run : m->run->peers[s->ranks[i]];
        piece_part *p = &s->parts[i];
        s->is_elsewhere[i] = peer == NULL;
        if (!peer) {
            p->first = m->run->received[index * m->reshard->n_parts + i];
            p->run_bytes = piece->bytes;
            p->matrix_bytes = p->run_bytes * (size_t)piece->n_runs;
            p->row_bytes = p->matrix_bytes * (size_t)piece->n_matrices;
            continue;
        }
        const octavo_tensor *from = octavo_tensor_at(peer, m->op->in[0]);
        p->first = (const uint8_t *)octavo_source_of(peer, m->op) + piece->from;
        p->row_bytes = from->row_bytes;
        p->run_bytes = piece->from_stride;
        p->matrix_bytes = piece->from_matrix;
    }
}

/* What the rank gets from others: whole pieces of rows, by one message from each. */
static void count(const move *m, const source *s) {
    const octavo_piece *piece = s->piece;
    octavo_traffic *traffic = &m->run->traffic;
    for (int i = 0; i < m->reshard->n_parts; i++) {
        if (s->ranks[i] == m->run->rank) continue;
        const int64_t n =
            octavo_rows_taken(m->run, m->op, &m->run->place, s->row_shard, i, INT64_MAX);
        if (n == 0) continue;
        traffic->messages[m->reshard->collective]++;
        traffic->bytes[m->reshard->collective] +=
            n * (int64_t)piece->bytes * piece->n_runs * piece->n_matrices;
    }
}

static void share_work(move *m, int thread, int n_threads) {
    m->mine = m->rows;
    m->n_shares = 1;
    if (m->rows.end - m->rows.begin < n_threads) {
        m->share = thread;
        m->n_shares = n_threads;
        return;
    }
    octavo_pool_share(m->rows.end - m->rows.begin, 1, thread, n_threads, &m->mine.begin,
                      &m->mine.end);
    m->mine.begin += m->rows.begin;
    m->mine.end += m->rows.begin;
}

/* in: x, bias or none, the weight whose factors come after the sum or none, the input by which rows
 * have owners, or the choices by which they are for experts, or none. */
void octavo_run_reshard(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_reshard *reshard = &run->program->reshards[op->params.reshard];
    move m = {.run = run, .op = op, .reshard = reshard};
    m.rows = octavo_range_of(run, octavo_tensor_at(run, op->out));
    if (reshard->is_selection) m.wanted = run->step->logit_rows;
    share_work(&m, thread, n_threads);
    for (int i = 0; i < reshard->n_pieces * reshard->n_row_shards; i++) {
        source s;
        s.piece = &reshard->pieces[i / reshard->n_row_shards];
        s.row_shard = i % reshard->n_row_shards;
        s.ranks = &reshard->sources[i * reshard->n_parts];
        s.rows = rows_of_shard(run, op, s.row_shard);
        if (s.piece->bytes == 0 || s.rows.begin == s.rows.end) continue;
        find_parts(&m, &s, i);
        move_rows(&m, &s);
        if (thread == 0) count(&m, &s);
    }
}
