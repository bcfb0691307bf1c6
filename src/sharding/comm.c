/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/memory.h"
#include "base/placement.h"
#include "sharding/comm_guard.h"
#include "sharding/comm_internal.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_STALL_SECONDS 60
#define CONNECT_SECONDS       20
/* MPI takes its time to start, however short a silence may be afterwards. */
#define LEAST_START_SECONDS   10

/* ---- putting the job together -------------------------------------------------------------------
 */

/* The cards of all, by way of process 0. */
static octavo_status gather_cards(octavo_comm *c, octavo_card *cards, octavo_error *error) {
    octavo_message sent = {0, &cards[c->process], sizeof(*cards)};
    if (c->process > 0) {
        octavo_status status = octavo_comm_exchange(c, &sent, 1, NULL, 0, error);
        if (status != OCTAVO_OK) return status;
    } else {
        octavo_message *received = octavo_alloc_zero((size_t)c->processes, sizeof(*received));
        if (received == NULL) return octavo_fail_memory(error, "MPI", sizeof(*received));
        for (int i = 1; i < c->processes; i++) {
            received[i] = (octavo_message){i, &cards[i], sizeof(*cards)};
        }
        octavo_status status = octavo_comm_exchange(c, NULL, 0, received, c->processes, error);
        octavo_free(received);
        if (status != OCTAVO_OK) return status;
    }
    return octavo_comm_broadcast(c, 0, cards, (size_t)c->processes * sizeof(*cards), error);
}

/* Processes that the launcher left on the same cores share them out. */
static void share_cores(octavo_comm *c, const octavo_card *cards) {
    const octavo_card *mine = &cards[c->process];
    int index = 0;
    int count = 0;
    for (int i = 0; i < c->processes; i++) {
        if (cards[i].machine != mine->machine || cards[i].cores != mine->cores) continue;
        if (i < c->process) index++;
        count++;
    }
    c->crowd = count > 1 && octavo_placement_narrow(index, count) ? 1 : count;
}

/* Everybody meets everybody; all know whether that worked before the watch begins. */
static octavo_status meet(octavo_comm *c, octavo_card *cards, int *sockets, octavo_error *error) {
    int listener = -1;
    octavo_status status = octavo_connect_listen(&cards[c->process], &listener, error);
    status = octavo_comm_agree(c, status, error);
    if (status == OCTAVO_OK) status = gather_cards(c, cards, error);
    if (status == OCTAVO_OK) {
        status = octavo_connect_all(cards, c->process, c->processes, listener, CONNECT_SECONDS,
                                    sockets, error);
        status = octavo_comm_agree(c, status, error);
    }
    if (listener >= 0) (void)close(listener);
    if (status != OCTAVO_OK) return status;
    return octavo_watch_start(&c->watch, cards, sockets, c->process, c->processes, c->stall_seconds,
                              &c->log, error);
}

static octavo_status assemble(octavo_comm *c, int max_messages, octavo_error *error) {
    const size_t n = (size_t)c->processes;
    c->order = octavo_alloc_zero(2 * n, sizeof(*c->order));
    octavo_card *cards = octavo_alloc_zero(n, sizeof(*cards));
    int *sockets = octavo_alloc_zero(n, sizeof(*sockets));
    octavo_status status = OCTAVO_OK;
    if (c->order == NULL || cards == NULL || sockets == NULL) {
        status = octavo_fail_memory(error, "MPI", n * sizeof(*cards));
    }
    for (int i = 0; sockets != NULL && i < c->processes; i++) {
        sockets[i] = -1;
    }
    const int least = 2 * c->processes;
    if (status == OCTAVO_OK) {
        status = octavo_comm_make_room(c, max_messages > least ? max_messages : least, error);
    }
    if (status == OCTAVO_OK) status = meet(c, cards, sockets, error);
    if (status == OCTAVO_OK) {
        share_cores(c, cards);
    } else {
        for (int i = 0; sockets != NULL && i < c->processes; i++) {
            if (sockets[i] >= 0) (void)close(sockets[i]);
        }
    }
    octavo_free(cards);
    octavo_free(sockets);
    return status;
}

static void comm_free(octavo_comm *c) {
    octavo_free(c->order);
    octavo_free(c->done);
    octavo_free(c->pieces);
    octavo_free_aligned(c->slots);
    octavo_free(c);
}

static octavo_status join_others(octavo_comm *c, const octavo_launch *launch, int max_messages,
                                 octavo_error *error) {
    octavo_guard *guard = NULL;
    const double seconds =
        c->stall_seconds > LEAST_START_SECONDS ? c->stall_seconds : LEAST_START_SECONDS;
    octavo_status status =
        octavo_guard_start(&guard, launch->process, launch->processes, seconds, &c->log, error);
    if (status != OCTAVO_OK) return status;
    status = octavo_transport_start(&c->transport, launch, error);
    c->process = c->transport.process;
    c->processes = launch->processes;
    if (status == OCTAVO_OK) status = assemble(c, max_messages, error);
    if (status != OCTAVO_OK) octavo_transport_stop(&c->transport);
    octavo_guard_stop(&guard);
    return status;
}

static octavo_status check_stall(const octavo_comm_options *options, double *seconds,
                                 octavo_error *error) {
    *seconds = options->stall_seconds;
    if (*seconds == 0) *seconds = octavo_launch_stall_seconds();
    if (*seconds == 0) *seconds = DEFAULT_STALL_SECONDS;
    if (*seconds > 0) return OCTAVO_OK;
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       "OCTAVO_STALL_SECONDS: not a number of seconds above 0");
}

octavo_status octavo_comm_open(octavo_comm **comm, const octavo_comm_options *options,
                               octavo_error *error) {
    static const octavo_comm_options defaults = {0};
    if (options == NULL) options = &defaults;
    octavo_launch launch = octavo_launch_read();
    if (options->kind == OCTAVO_COMM_NONE) launch = (octavo_launch){.processes = 1};
    if (options->kind == OCTAVO_COMM_MPI && launch.launcher == NULL) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "MPI: this process was not started by mpirun or srun; start it so, or "
                           "use ranks that are threads");
    }
    if (launch.processes > 1 && launch.first == NULL) {
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "MPI (%d processes): srun gives them no way to find each other; add "
                           "--mpi=pmix or --mpi=pmi2",
                           launch.processes);
    }
    double stall_seconds = 0;
    octavo_status status = check_stall(options, &stall_seconds, error);
    if (status != OCTAVO_OK) return status;
    octavo_comm *c = octavo_alloc_zero(1, sizeof(*c));
    if (c == NULL) return octavo_fail_memory(error, "MPI", sizeof(*c));
    c->log = options->log;
    c->stall_seconds = stall_seconds;
    c->processes = 1;
    c->crowd = 1;
    if (launch.processes > 1) {
        status = join_others(c, &launch, options->max_messages, error);
        if (status != OCTAVO_OK) {
            comm_free(c);
            return status;
        }
    }
    *comm = c;
    return OCTAVO_OK;
}

void octavo_comm_close(octavo_comm **comm) {
    if (comm == NULL || *comm == NULL) return;
    octavo_comm *c = *comm;
    if (c->watch != NULL) {
        const struct timespec nap = {.tv_nsec = 200000};
        int n_done = 0;
        octavo_watch_leave(c->watch);
        /* Messages that others still wait for may lie at this side. */
        while (!octavo_watch_all_left(c->watch)) {
            (void)c->transport.module->test(c->transport.state, c->slots, 0, c->done, &n_done);
            (void)nanosleep(&nap, NULL);
        }
    }
    octavo_transport_stop(&c->transport);
    if (c->watch != NULL) octavo_watch_finished(c->watch);
    octavo_watch_stop(&c->watch);
    comm_free(c);
    *comm = NULL;
}

int octavo_comm_process(const octavo_comm *comm) {
    return comm->process;
}

int octavo_comm_processes(const octavo_comm *comm) {
    return comm->processes;
}

int octavo_comm_crowd(const octavo_comm *comm) {
    return comm->crowd;
}

const char *octavo_comm_transport(const octavo_comm *comm) {
    return comm->processes > 1 ? comm->transport.name : "none";
}

/* ---- to all -------------------------------------------------------------------------------------
 */

/* A binomial tree of the processes, numbered from the root on: each has it from the one without its
 * lowest bit, and hands it to those that have one lower bit more. */
static octavo_status send_down(octavo_comm *c, int root, void *data, size_t bytes,
                               octavo_error *error) {
    octavo_message sends[32];
    int n_sends = 0;
    const int n = c->processes;
    const int self = (c->process - root + n) % n;
    int bit = 1;
    while (bit < n && (self & bit) == 0)
        bit <<= 1;
    if (self != 0) {
        const octavo_message from = {(self - bit + root) % n, data, bytes};
        octavo_status status = octavo_comm_exchange(c, NULL, 0, &from, 1, error);
        if (status != OCTAVO_OK) return status;
    }
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (self + bit >= n) continue;
        sends[n_sends++] = (octavo_message){(self + bit + root) % n, data, bytes};
    }
    if (n_sends == 0) return OCTAVO_OK;
    return octavo_comm_exchange(c, sends, n_sends, NULL, 0, error);
}

octavo_status octavo_comm_broadcast(octavo_comm *comm, int root, void *data, size_t bytes,
                                    octavo_error *error) {
    if (root < 0 || root >= comm->processes) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "broadcast: there is no process %d", root);
    }
    if (comm->processes == 1) return OCTAVO_OK;
    octavo_comm_op_open(comm);
    octavo_status status = send_down(comm, root, data, bytes, error);
    octavo_comm_op_close(comm);
    return status;
}

/* ---- agreement ----------------------------------------------------------------------------------
 */

typedef struct verdict {
    int32_t status;
    int32_t process;
} verdict;

/* The first failure of all, up the same tree to process 0. */
static octavo_status ask_all(octavo_comm *c, verdict *v, octavo_error *error) {
    for (int bit = 1; bit < c->processes; bit <<= 1) {
        verdict other = {0};
        octavo_status status = OCTAVO_OK;
        if (c->process & bit) {
            const octavo_message up = {c->process - bit, v, sizeof(*v)};
            return octavo_comm_exchange(c, &up, 1, NULL, 0, error);
        }
        if (c->process + bit >= c->processes) continue;
        const octavo_message down = {c->process + bit, &other, sizeof(other)};
        status = octavo_comm_exchange(c, NULL, 0, &down, 1, error);
        if (status != OCTAVO_OK) return status;
        if (other.status != OCTAVO_OK && (v->status == OCTAVO_OK || other.process < v->process)) {
            *v = other;
        }
    }
    return OCTAVO_OK;
}

/* `common` is the failing process's own on entry there. */
static octavo_status agree(octavo_comm *c, octavo_status mine, octavo_error *common,
                           octavo_error *error) {
    verdict v = {.status = mine, .process = c->process};
    octavo_status status = ask_all(c, &v, error);
    if (status == OCTAVO_OK) status = send_down(c, 0, &v, sizeof(v), error);
    if (status != OCTAVO_OK || v.status == OCTAVO_OK) return status;
    status = send_down(c, v.process, common, sizeof(*common), error);
    if (status != OCTAVO_OK) return status;
    const int64_t offset = common->offset;
    common->message[sizeof(common->message) - 1] = '\0';
    status = octavo_fail(error, (octavo_status)v.status, "rank %d of %d: %s", v.process,
                         c->processes, common->message);
    if (error != NULL) error->offset = offset;
    return status;
}

octavo_status octavo_comm_agree(octavo_comm *comm, octavo_status mine, octavo_error *error) {
    if (comm->processes == 1) return mine;
    octavo_error common = {.status = mine, .offset = -1};
    if (mine != OCTAVO_OK) {
        if (error != NULL && error->message[0] != '\0')
            common = *error;
        else
            (void)octavo_fail(&common, mine, "failed (%s)", octavo_status_name(mine));
    }
    octavo_comm_op_open(comm);
    octavo_status status = agree(comm, mine, &common, error);
    octavo_comm_op_close(comm);
    return status;
}

void octavo_comm_abort(octavo_comm *comm, const char *message) {
    if (comm->watch != NULL) octavo_watch_fail(comm->watch, comm->process, -1, message);
    octavo_last_word(&comm->log, message);
    _exit(1);
}
