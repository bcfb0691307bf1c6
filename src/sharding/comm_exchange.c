/* SPDX-License-Identifier: Apache-2.0
 *
 * An exchange: all receives are posted, then all sends. A message has no header. Instead its MPI
 * tag is a checksum of the number of the exchange, the marks, the message's size and its place
 * among those between the two processes; the receiver takes what comes and compares. So processes
 * that went different ways notice it at the first message that passes between them.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "sharding/comm_internal.h"

#include <limits.h>
#include <string.h>

static uint64_t mix(uint64_t sum, uint64_t value) {
    sum ^= value;
    sum *= 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

static int tag_of(const octavo_comm *c, uint64_t bytes, uint32_t order, int piece) {
    uint64_t sum = mix(mix(mix(c->op, c->mark), bytes), (uint64_t)order << 32 | (uint32_t)piece);
    return (int)(sum % (uint64_t)c->transport.most_tag);
}

void octavo_comm_mark(octavo_comm *comm, uint64_t mark) {
    comm->mark = mix(comm->mark, mark);
}

void octavo_comm_op_open(octavo_comm *comm) {
    if (comm->depth++ > 0) return;
    comm->op++;
    if (comm->watch != NULL) octavo_watch_tell(comm->watch, comm->op, -1);
}

void octavo_comm_op_close(octavo_comm *comm) {
    comm->depth--;
}

octavo_status octavo_comm_make_room(octavo_comm *comm, int pieces, octavo_error *error) {
    if (pieces <= comm->room) return OCTAVO_OK;
    const size_t n = (size_t)pieces;
    const size_t slot_bytes = n * comm->transport.module->slot_bytes + OCTAVO_MPI_SLOT_SLACK;
    void *slots = octavo_alloc_aligned(slot_bytes);
    octavo_mpi_done *done = octavo_alloc_zero(n, sizeof(*done));
    octavo_piece *list = octavo_alloc_zero(n, sizeof(*list));
    if (slots == NULL || done == NULL || list == NULL) {
        octavo_free_aligned(slots);
        octavo_free(done);
        octavo_free(list);
        return octavo_fail_memory(error, "messages", slot_bytes);
    }
    octavo_free_aligned(comm->slots);
    octavo_free(comm->done);
    octavo_free(comm->pieces);
    comm->slots = slots;
    comm->done = done;
    comm->pieces = list;
    comm->room = pieces;
    return OCTAVO_OK;
}

/* Pieces of all messages, checked; -1 when there are too many or one is for nobody. */
static int count_pieces(const octavo_comm *c, const octavo_message *messages, int n) {
    uint64_t pieces = 0;
    for (int i = 0; i < n; i++) {
        const octavo_message *m = &messages[i];
        if (m->bytes == 0) continue;
        if (m->process < 0 || m->process >= c->processes || m->process == c->process) return -1;
        pieces += (m->bytes - 1) / OCTAVO_MPI_MOST_BYTES + 1;
        if (pieces > INT_MAX / 4) return -1;
    }
    return (int)pieces;
}

static int start_piece(octavo_comm *c, const octavo_piece *p, char *data) {
    const octavo_mpi_module *module = c->transport.module;
    const int slot = c->n_pieces;
    if (p->is_receive) {
        return module->receive(c->transport.state, c->slots, slot, data, p->bytes, p->process);
    }
    return module->send(c->transport.state, c->slots, slot, data, p->bytes, p->process, p->tag);
}

static octavo_status start_messages(octavo_comm *c, const octavo_message *messages, int n,
                                    bool is_receive, octavo_error *error) {
    for (int i = 0; i < n; i++) {
        const octavo_message *m = &messages[i];
        if (m->bytes == 0) continue;
        const uint32_t order = c->order[m->process + (is_receive ? c->processes : 0)]++;
        size_t at = 0;
        for (int piece = 0; at < m->bytes; piece++) {
            const size_t left = m->bytes - at;
            octavo_piece *p = &c->pieces[c->n_pieces];
            *p = (octavo_piece){.process = m->process, .is_receive = is_receive};
            p->bytes = left < OCTAVO_MPI_MOST_BYTES ? (int)left : OCTAVO_MPI_MOST_BYTES;
            p->tag = tag_of(c, m->bytes, order, piece);
            int code = start_piece(c, p, (char *)m->data + at);
            if (code != 0) {
                char why[200];
                c->transport.module->describe(code, why, sizeof(why));
                return octavo_comm_give_up(c, m->process, why, error);
            }
            c->n_pieces++;
            c->n_left++;
            at += (size_t)p->bytes;
        }
    }
    return OCTAVO_OK;
}

octavo_status octavo_comm_begin(octavo_comm *comm, const octavo_message *sends, int n_sends,
                                const octavo_message *receives, int n_receives,
                                octavo_error *error) {
    octavo_assert(comm->n_left == 0);
    int out = count_pieces(comm, sends, n_sends);
    int in = count_pieces(comm, receives, n_receives);
    if (out < 0 || in < 0) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "exchange %llu: a message for nobody, for oneself or too large",
                           (unsigned long long)comm->op + 1);
    }
    octavo_status status = octavo_comm_make_room(comm, out + in, error);
    if (status != OCTAVO_OK) return status;
    octavo_comm_op_open(comm);
    comm->n_pieces = 0;
    if (out + in == 0) return OCTAVO_OK;
    comm->transport.module->clear(comm->slots, out + in);
    memset(comm->order, 0, 2 * (size_t)comm->processes * sizeof(*comm->order));
    status = start_messages(comm, receives, n_receives, true, error);
    if (status == OCTAVO_OK) status = start_messages(comm, sends, n_sends, false, error);
    if (status != OCTAVO_OK) octavo_comm_op_close(comm);
    return status;
}

octavo_status octavo_comm_finish(octavo_comm *comm, octavo_error *error) {
    octavo_status status = octavo_comm_wait(comm, error);
    octavo_comm_op_close(comm);
    return status;
}

void octavo_comm_progress(octavo_comm *comm) {
    bool moved = false;
    if (comm->n_left == 0) return;
    octavo_status status = octavo_comm_test(comm, &moved, NULL);
    (void)status; /* a failure ended the job: there is a watch by now */
}

octavo_status octavo_comm_exchange(octavo_comm *comm, const octavo_message *sends, int n_sends,
                                   const octavo_message *receives, int n_receives,
                                   octavo_error *error) {
    octavo_status status = octavo_comm_begin(comm, sends, n_sends, receives, n_receives, error);
    if (status != OCTAVO_OK) return status;
    return octavo_comm_finish(comm, error);
}
