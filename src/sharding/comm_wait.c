/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for the pieces of an exchange: first awake, then with short sleeps, and with an eye on
 * those that are waited for. Who dies or falls silent is the watch's business; here it is noticed
 * that another went on without sending what is waited for, or that two wait for each other.
 */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "sharding/comm_internal.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

/* Messages between cores of one machine take some microseconds, between machines some tens. */
#define SPIN_NS   20000
#define YIELD_NS  2000000
#define NAP_NS    50000
#define LOOK_NS   100000000
/* How long another may be past this exchange, and busy with MPI, until what it sent must be here.
 */
#define PAST_NS   ((int64_t)3000000000)
/* Two looks at the clock so far apart: this process itself stood still. */
#define ASLEEP_NS ((int64_t)1000000000)

octavo_status octavo_comm_give_up(octavo_comm *comm, int other, const char *message,
                                  octavo_error *error) {
    if (comm->watch != NULL) octavo_watch_fail(comm->watch, comm->process, other, message);
    if (other < 0) {
        return octavo_fail(error, OCTAVO_ERROR_IO, "MPI (rank %d of %d): %s", comm->process,
                           comm->processes, message);
    }
    return octavo_fail(error, OCTAVO_ERROR_IO, "MPI (ranks %d and %d of %d): %s", comm->process,
                       other, comm->processes, message);
}

static octavo_status check_piece(octavo_comm *c, const octavo_mpi_done *done, octavo_error *error) {
    octavo_piece *p = &c->pieces[done->slot];
    char why[300];
    p->is_done = true;
    c->n_left--;
    if (done->code != 0) {
        char text[200];
        c->transport.module->describe(done->code, text, sizeof(text));
        (void)snprintf(why, sizeof(why),
                       "exchange %llu failed, or they do different things in it: %s",
                       (unsigned long long)c->op, text);
        return octavo_comm_give_up(c, p->process, why, error);
    }
    if (!p->is_receive || (done->bytes == p->bytes && done->tag == p->tag)) return OCTAVO_OK;
    (void)snprintf(
        why, sizeof(why),
        "they do different things in exchange %llu (%lld bytes came where %d were "
        "expected, check %d where %d was): their versions or options differ, or this is a "
        "defect",
        (unsigned long long)c->op, (long long)done->bytes, p->bytes, done->tag, p->tag);
    return octavo_comm_give_up(c, p->process, why, error);
}

octavo_status octavo_comm_test(octavo_comm *comm, bool *moved, octavo_error *error) {
    int n_done = 0;
    int code = comm->transport.module->test(comm->transport.state, comm->slots, comm->n_pieces,
                                            comm->done, &n_done);
    if (code != 0) {
        char why[200];
        comm->transport.module->describe(code, why, sizeof(why));
        return octavo_comm_give_up(comm, -1, why, error);
    }
    *moved = n_done > 0;
    for (int i = 0; i < n_done; i++) {
        octavo_status status = check_piece(comm, &comm->done[i], error);
        if (status != OCTAVO_OK) return status;
    }
    return OCTAVO_OK;
}

/* The first process that a piece is still missing from; without such one that has not taken its
 * own. */
static int first_missing(const octavo_comm *c) {
    int found = -1;
    for (int i = 0; i < c->n_pieces; i++) {
        const octavo_piece *p = &c->pieces[i];
        if (p->is_done) continue;
        if (p->is_receive) return p->process;
        if (found < 0) found = p->process;
    }
    return found;
}

/* Whether another process, of lower number, waits for the same one and so will tell. */
static bool another_tells(const octavo_comm *c, int process) {
    for (int i = 0; i < c->process; i++) {
        if (i != process && octavo_watch_look(c->watch, i).waiting_for == process) return true;
    }
    return false;
}

typedef struct patience {
    int64_t since;    /* nothing has moved */
    int64_t next;     /* look at the others */
    int64_t warn_at;  /* of waiting */
    int64_t past;     /* since when the other is past this exchange; 0: it is not */
    uint64_t past_op; /* where it was then */
} patience;

static void warn(const octavo_comm *c, int other, const octavo_watch_peer *peer, double seconds) {
    char name[100];
    char mine[100];
    if (peer->is_silent || another_tells(c, other)) return;
    octavo_watch_name(c->watch, other, name, sizeof(name));
    octavo_watch_name(c->watch, c->process, mine, sizeof(mine));
    if (peer->waiting_for < 0) {
        octavo_log_write(&c->log, OCTAVO_LOG_WARN, "%s has waited %.0f s for %s, which is busy",
                         mine, seconds, name);
    } else if (peer->waiting_for == c->process && c->process < other) {
        octavo_log_write(&c->log, OCTAVO_LOG_WARN, "%s and %s have waited %.0f s for each other",
                         mine, name, seconds);
    }
}

/* Looks after the one that is waited for. */
static octavo_status look(octavo_comm *c, patience *p, int64_t now, octavo_error *error) {
    const int64_t waited = now - p->since;
    const int other = first_missing(c);
    char why[200];
    p->next = now + LOOK_NS;
    if (c->watch == NULL) return OCTAVO_OK; /* the guard of the start counts the time */
    octavo_watch_tell(c->watch, c->op, other);
    const octavo_watch_peer peer = octavo_watch_look(c->watch, other);
    /* What it sent before it went on may still be under way, or even lie at its side until it calls
     * MPI again. */
    const bool is_past = peer.has_left || peer.op > c->op;
    if (is_past && p->past == 0) {
        p->past = now;
        p->past_op = peer.op;
    }
    const bool calls_mpi = peer.has_left || peer.waiting_for >= 0 || peer.op != p->past_op;
    if (!is_past) {
        p->past = 0;
    } else if (calls_mpi && now - p->past > PAST_NS) {
        (void)snprintf(why, sizeof(why),
                       "they do different things: in exchange %llu the first waits for the second, "
                       "which has %s",
                       (unsigned long long)c->op, peer.has_left ? "left" : "gone on without it");
        return octavo_comm_give_up(c, other, why, error);
    }
    if (peer.op == c->op && (double)waited * 1e-9 > c->stall_seconds) {
        (void)snprintf(why, sizeof(why),
                       "nothing has moved between them for %.0f s in exchange %llu",
                       c->stall_seconds, (unsigned long long)c->op);
        return octavo_comm_give_up(c, other, why, error);
    }
    if (waited >= p->warn_at) {
        warn(c, other, &peer, (double)p->warn_at * 1e-9);
        p->warn_at *= 4;
    }
    return OCTAVO_OK;
}

octavo_status octavo_comm_wait(octavo_comm *comm, octavo_error *error) {
    int64_t now = octavo_clock_ns();
    patience p = {.since = now, .next = now + LOOK_NS, .warn_at = OCTAVO_WATCH_WARN_NS};
    bool was_waiting = false;
    while (comm->n_left > 0) {
        bool moved = false;
        octavo_status status = octavo_comm_test(comm, &moved, error);
        if (status != OCTAVO_OK) return status;
        if (comm->n_left == 0) break;
        const int64_t before = now;
        now = octavo_clock_ns();
        if (now - before > ASLEEP_NS) p.since += now - before;
        if (moved) {
            p = (patience){.since = now, .next = now + LOOK_NS, .warn_at = OCTAVO_WATCH_WARN_NS};
            continue;
        }
        const int64_t waited = now - p.since;
        if (waited < SPIN_NS) {
            octavo_cpu_relax();
        } else if (waited < YIELD_NS) {
            (void)sched_yield();
        } else {
            const struct timespec nap = {.tv_nsec = NAP_NS};
            (void)nanosleep(&nap, NULL);
        }
        if (now < p.next) continue;
        was_waiting = true;
        status = look(comm, &p, now, error);
        if (status != OCTAVO_OK) return status;
    }
    if (was_waiting && comm->watch != NULL) octavo_watch_tell(comm->watch, comm->op, -1);
    return OCTAVO_OK;
}
