/* SPDX-License-Identifier: Apache-2.0 */
#include "program/exchange.h"

#include "base/clock.h"
#include "base/error.h"
#include "program/operand.h"

#include <string.h>

static size_t piece_bytes(const octavo_piece *piece) {
    return piece->bytes * (size_t)piece->n_runs * (size_t)piece->n_matrices;
}

/* ---- room ---- */

/* Parcels and bytes of an op at most, in one direction. */
typedef struct room {
    int n_parcels;
    size_t bytes;
} room;

static void add_piece(room *r, const octavo_program *program, const octavo_op *op,
                      const octavo_piece *piece) {
    const size_t rows = octavo_most_rows(program, &program->tensors[op->out]);
    r->n_parcels++;
    r->bytes += octavo_align_up(piece_bytes(piece) * rows, OCTAVO_ALIGN);
}

/* Records that the rank sends to each of the others, and gets from each. False: too many. */
static bool add_records(room *out, room *in, const octavo_exchange_options *options,
                        const octavo_program *program, const octavo_op *op) {
    const octavo_reshard *reshard = &program->reshards[op->params.reshard];
    const int64_t rows = (int64_t)octavo_most_rows(program, &program->tensors[op->out]);
    for (int i = 0; i < reshard->n_parts; i++) {
        if (options->processes[reshard->sources[i]] == options->processes[program->rank]) continue;
        size_t sent, received;
        if (!octavo_records_room(program, op->params.plan,
                                 reshard->heads[i].end - reshard->heads[i].begin, rows,
                                 options->max_length, &sent) ||
            !octavo_records_room(program, op->params.plan, program->tensors[op->out].extent[1],
                                 rows, options->max_length, &received))
            return false;
        out->n_parcels++;
        in->n_parcels++;
        out->bytes += octavo_align_up(sent, OCTAVO_ALIGN);
        in->bytes += octavo_align_up(received, OCTAVO_ALIGN);
    }
    return true;
}

/* False: it does not fit. */
static bool add_op(room *out, room *in, const octavo_exchange_options *options,
                   const octavo_program *program, const octavo_op *op) {
    if (!op->params.is_wire) return true;
    if (op->kind == OCTAVO_OP_ATTENTION_MERGE) return add_records(out, in, options, program, op);
    const octavo_reshard *reshard = &program->reshards[op->params.reshard];
    const int each = reshard->n_row_shards * reshard->n_parts;
    for (int i = 0; i < reshard->n_sends; i++)
        add_piece(out, program, op, &reshard->sends[i].piece);
    for (int i = 0; i < reshard->n_pieces * each; i++)
        if (options->processes[reshard->sources[i]] != options->processes[program->rank])
            add_piece(in, program, op, &reshard->pieces[i / each]);
    return true;
}

/* Programs are those of a phase after those of the other, op by op the same. False: it does not
 * fit. */
static bool find_room(const octavo_exchange_options *options, const octavo_program *const *programs,
                      int n_programs, room *found) {
    room most = {0};
    for (int first = 0; first < n_programs; first++) {
        const octavo_program *program = programs[first];
        for (int i = 0; i < program->n_ops; i++) {
            room out = {0}, in = {0};
            if (!program->ops[i].params.is_wire) continue;
            for (int k = 0; k < n_programs; k++)
                if (i < programs[k]->n_ops &&
                    !add_op(&out, &in, options, programs[k], &programs[k]->ops[i]))
                    return false;
            if (out.n_parcels > most.n_parcels) most.n_parcels = out.n_parcels;
            if (in.n_parcels > most.n_parcels) most.n_parcels = in.n_parcels;
            if (out.bytes > most.bytes) most.bytes = out.bytes;
            if (in.bytes > most.bytes) most.bytes = in.bytes;
        }
    }
    *found = most;
    return true;
}

octavo_status octavo_exchange_init(octavo_exchange *exchange,
                                   const octavo_exchange_options *options,
                                   const octavo_program *const *programs, int n_programs,
                                   octavo_error *error) {
    room most;
    *exchange = (octavo_exchange){0};
    if (!find_room(options, programs, n_programs, &most))
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "exchange of ranks (%lld positions over ranks): too large for this "
                           "machine; lower --chunk or --context",
                           (long long)options->max_length);
    *exchange = (octavo_exchange){.move = options->move,
                                  .cookie = options->cookie,
                                  .processes = options->processes,
                                  .peers = options->peers,
                                  .n_ranks = octavo_mesh_ranks(&programs[0]->mesh),
                                  .n_parcels = most.n_parcels,
                                  .bytes = most.bytes};
    exchange->sends = octavo_alloc_zero((size_t)most.n_parcels + 1, sizeof *exchange->sends);
    exchange->receives = octavo_alloc_zero((size_t)most.n_parcels + 1, sizeof *exchange->receives);
    exchange->out = octavo_alloc_aligned(most.bytes + OCTAVO_ALIGN);
    exchange->in = octavo_alloc_aligned(most.bytes + OCTAVO_ALIGN);
    if (exchange->sends && exchange->receives && exchange->out && exchange->in) return OCTAVO_OK;
    octavo_exchange_deinit(exchange);
    return octavo_fail_memory(error, "exchange of ranks", 2 * most.bytes);
}

void octavo_exchange_deinit(octavo_exchange *exchange) {
    octavo_free(exchange->sends);
    octavo_free(exchange->receives);
    octavo_free_aligned(exchange->out);
    octavo_free_aligned(exchange->in);
    *exchange = (octavo_exchange){0};
}

/* ---- a step ---- */

/* Rows of a piece, one behind the other, its runs one behind the other. */
static uint8_t *pack_row(uint8_t *to, const uint8_t *row, const octavo_piece *piece) {
    for (int i = 0; i < piece->n_runs * piece->n_matrices; i++, to += piece->bytes)
        memcpy(to,
               row + piece->from + (size_t)(i % piece->n_runs) * piece->from_stride +
                   (size_t)(i / piece->n_runs) * piece->from_matrix,
               piece->bytes);
    return to;
}

/* What rank `send->rank` takes of this rank's rows. */
static size_t pack(octavo_run *run, const octavo_op *op, const octavo_send *send, uint8_t *to) {
    const octavo_tensor *from = octavo_tensor_at(run, op->in[0]);
    const octavo_place place = octavo_mesh_place(&run->program->mesh, send->rank);
    const uint8_t *rows = octavo_source_of(run, op);
    uint8_t *end = to;
    for (int64_t at = 0;;) {
        const int64_t row = octavo_next_taken(run, op, &place, send->row_shard, send->part, &at);
        if (row < 0) return (size_t)(end - to);
        end = pack_row(end, rows + (size_t)row * from->row_bytes, &send->piece);
    }
}

/* This rank's records of what `rank` merges; false if it is not of the group. */
static bool pack_records(octavo_run *run, const octavo_op *op, int rank, uint8_t *to,
                         size_t *bytes) {
    const octavo_reshard *reshard = &run->program->reshards[op->params.reshard];
    const int own = octavo_own_part(run, op);
    int part = 0;
    while (part < reshard->n_parts && reshard->sources[part] != rank)
        part++;
    if (part == reshard->n_parts) return false;
    const octavo_attention_piece piece = octavo_records_piece(run, op, part);
    *bytes = octavo_records_bytes(run, op, own, &piece);
    octavo_attention_copy_records(&run->plans[op->params.plan].plan, own, run->records, &piece, to);
    return true;
}

static int pack_all(octavo_exchange *exchange, int index) {
    size_t used = 0;
    int n = 0;
    for (int rank = 0; rank < exchange->n_ranks; rank++) {
        if (exchange->peers[rank]) continue;
        for (int mine = 0; mine < exchange->n_ranks; mine++) {
            octavo_run *run = exchange->peers[mine];
            if (!run) continue;
            const octavo_op *op = &run->program->ops[index];
            const octavo_reshard *reshard = &run->program->reshards[op->params.reshard];
            size_t n_bytes;
            if (reshard->heads && pack_records(run, op, rank, exchange->out + used, &n_bytes)) {
                exchange->sends[n++] =
                    (octavo_message){exchange->processes[rank], exchange->out + used, n_bytes};
                used += octavo_align_up(n_bytes, OCTAVO_ALIGN);
            }
            for (int i = 0; i < reshard->n_sends; i++) {
                if (reshard->sends[i].rank != rank) continue;
                const size_t bytes = pack(run, op, &reshard->sends[i], exchange->out + used);
                exchange->sends[n++] =
                    (octavo_message){exchange->processes[rank], exchange->out + used, bytes};
                used += octavo_align_up(bytes, OCTAVO_ALIGN);
            }
        }
    }
    return n;
}

/* Of source i of a rank's reshard or records. */
static size_t bytes_taken(octavo_run *run, const octavo_op *op, const octavo_reshard *reshard,
                          int i) {
    if (reshard->heads) {
        const octavo_attention_piece piece =
            octavo_records_piece(run, op, octavo_own_part(run, op));
        return octavo_records_bytes(run, op, i, &piece);
    }
    const int each = reshard->n_row_shards * reshard->n_parts;
    const int64_t rows = octavo_rows_taken(run, op, &run->place, i % each / reshard->n_parts,
                                           i % reshard->n_parts, INT64_MAX);
    return (size_t)rows * piece_bytes(&reshard->pieces[i / each]);
}

/* In the order in which the others pack: by rank here, by rank there, as they are listed. */
static int expect_all(octavo_exchange *exchange, int index) {
    size_t used = 0;
    int n = 0;
    for (int mine = 0; mine < exchange->n_ranks; mine++) {
        octavo_run *run = exchange->peers[mine];
        if (!run) continue;
        const octavo_op *op = &run->program->ops[index];
        const octavo_reshard *reshard = &run->program->reshards[op->params.reshard];
        const int each = reshard->n_row_shards * reshard->n_parts;
        const int n_sources = reshard->heads ? reshard->n_parts : reshard->n_pieces * each;
        for (int rank = 0; rank < exchange->n_ranks; rank++) {
            for (int i = 0; !exchange->peers[rank] && i < n_sources; i++) {
                if (reshard->sources[i] != rank) continue;
                const size_t bytes = bytes_taken(run, op, reshard, i);
                run->received[i] = exchange->in + used;
                exchange->receives[n++] =
                    (octavo_message){exchange->processes[rank], exchange->in + used, bytes};
                used += octavo_align_up(bytes, OCTAVO_ALIGN);
            }
        }
    }
    return n;
}

void octavo_exchange_run(octavo_exchange *exchange, int index) {
    const int n_sends = pack_all(exchange, index);
    const int n_receives = expect_all(exchange, index);
    if (exchange->status) return;
    const double start = octavo_clock_seconds();
    exchange->status = exchange->move(exchange->cookie, exchange->sends, n_sends,
                                      exchange->receives, n_receives, &exchange->error);
    exchange->seconds += octavo_clock_seconds() - start;
    exchange->n_exchanges++;
    for (int i = 0; i < n_sends; i++)
        exchange->n_sent += (int64_t)exchange->sends[i].bytes;
}
