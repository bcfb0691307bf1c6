/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/comm_watch.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "sharding/comm_frame.h"
#include "sharding/comm_guard.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BEAT_NS   ((int64_t)500000000)
/* A loop of the watch that took so much longer than it should: this process itself stood still. */
#define ASLEEP_NS ((int64_t)1500000000)
/* From the first process that says what is wrong until one speaks: it should be the lowest of those
 * that say so at the same moment. Of a process that was lost nobody waits to hear more, since
 * launchers kill the others within milliseconds. */
#define GRACE_NS  ((int64_t)150000000)
/* Then the others wait so long with their own end: a launcher that sees one end kills the rest,
 * which should not be the speaker before it spoke. */
#define SPEAK_NS  ((int64_t)400000000)

typedef enum peer_state {
    ALIVE,
    LEAVING, /* said that it leaves */
    GONE,    /* left in good order */
    LOST,
} peer_state;

/* field                      guard   writer
 * op, waiting_for, silent,   atomic  the watch
 * left
 * the rest                   -       the watch alone */
typedef struct peer {
    atomic_uint_least64_t op;
    atomic_int waiting_for;
    atomic_bool silent;
    atomic_bool left;
    peer_state state;
    bool is_slow; /* takes nothing more: its buffer is full */
    int64_t heard_ns;
    octavo_frame_reader reader;
} peer;

/* field                 guard                           writer
 * op, waiting_for       atomic                          the main thread
 * leaving, finished     atomic                          the main thread, then wakes the watch
 * all_left              atomic                          the watch
 * failure, has_failed   lock; has_failed also atomic    the main thread, then wakes the watch
 * quit                  atomic                          octavo_watch_stop
 * the rest              set before the thread starts; after that the watch's alone */
struct octavo_watch {
    atomic_uint_least64_t op;
    atomic_int waiting_for;
    atomic_bool leaving;
    atomic_bool finished;
    atomic_bool all_left;
    atomic_bool has_failed;
    atomic_bool quit;
    pthread_mutex_t lock;
    char failure[OCTAVO_FRAME_TEXT];

    int process;
    int processes;
    int64_t stall_ns;
    octavo_log log;
    int wake;           /* an eventfd */
    bool catches_abort; /* the main thread's */
    pthread_t thread;
    octavo_card *cards;   /* [processes] */
    peer *peers;          /* [processes] */
    struct pollfd *polls; /* [processes + 1]; fd -1: oneself, or closed; the last one is `wake` */

    bool told_leaving, told_finished, told_failure;
    int64_t ending_since; /* 0: nothing is wrong */
    int speaker;          /* -1: the first that lives */
    char last_words[OCTAVO_FRAME_TEXT];
};

void octavo_watch_name(const octavo_watch *watch, int process, char *text, size_t bytes) {
    const octavo_card *card = &watch->cards[process];
    (void)snprintf(text, bytes, "rank %d (pid %lld on %s)", process, (long long)card->pid,
                   card->host);
}

/* ---- the end of the job -------------------------------------------------------------------------
 */

/* The first sign counts; of processes that say themselves what is wrong, that of the lowest number.
 */
static void begin_end(octavo_watch *w, int speaker, const char *words) {
    const bool is_first = w->ending_since == 0;
    if (is_first) w->ending_since = octavo_clock_ns();
    if (is_first || (speaker >= 0 && (w->speaker < 0 || speaker < w->speaker))) {
        w->speaker = speaker;
        (void)snprintf(w->last_words, sizeof(w->last_words), "%s", words);
    }
}

static void lose(octavo_watch *w, int process, const char *why) {
    char words[OCTAVO_FRAME_TEXT];
    char name[100];
    w->peers[process].state = LOST;
    octavo_watch_name(w, process, name, sizeof(name));
    (void)snprintf(words, sizeof(words), "%s of %d %s", name, w->processes, why);
    begin_end(w, -1, words);
}

/* The lowest of those that live, leaving out `but`. */
static bool is_first_alive(const octavo_watch *w, int but) {
    for (int i = 0; i < w->process; i++) {
        const peer_state state = w->peers[i].state;
        if (i != but && (state == ALIVE || state == LEAVING) && !atomic_load(&w->peers[i].silent)) {
            return false;
        }
    }
    return true;
}

/* ---- what goes out ------------------------------------------------------------------------------
 */

static void send_to(octavo_watch *w, int process, const octavo_frame *frame) {
    peer *p = &w->peers[process];
    if (w->polls[process].fd < 0 || p->is_slow) return;
    const size_t bytes = octavo_frame_bytes(frame);
    ssize_t n = send(w->polls[process].fd, frame, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    /* A part of a frame cannot be taken back; that it is gone the other side tells by closing. */
    if (n >= 0 && (size_t)n < bytes) p->is_slow = true;
}

static void send_to_all(octavo_watch *w, octavo_frame_kind kind, const char *text) {
    octavo_frame frame = {.kind = (uint8_t)kind,
                          .op = atomic_load(&w->op),
                          .waiting_for = atomic_load(&w->waiting_for)};
    if (text != NULL) {
        frame.text_bytes = (uint16_t)strlen(text);
        memcpy(frame.text, text, frame.text_bytes);
    }
    for (int i = 0; i < w->processes; i++) {
        send_to(w, i, &frame);
    }
}

static void speak(const octavo_watch *w) {
    char line[OCTAVO_FRAME_TEXT + 64];
    (void)snprintf(line, sizeof(line), "%s; this ends the job", w->last_words);
    octavo_last_word(&w->log, line);
}

static void end_when_due(octavo_watch *w, int64_t now) {
    if (w->ending_since == 0) return;
    if (w->speaker < 0 && is_first_alive(w, -1)) {
        /* Whoever sees this process end has read before that it spoke. */
        send_to_all(w, OCTAVO_FRAME_FAILURE, w->last_words);
        speak(w);
        _exit(1);
    }
    if (w->speaker == w->process && now - w->ending_since >= GRACE_NS) {
        speak(w);
        _exit(1);
    }
    if (now - w->ending_since >= GRACE_NS + SPEAK_NS) _exit(1);
}

/* What the main thread has asked for. */
static void send_wishes(octavo_watch *w) {
    if (atomic_load(&w->has_failed) && !w->told_failure) {
        char words[OCTAVO_FRAME_TEXT];
        w->told_failure = true;
        (void)pthread_mutex_lock(&w->lock);
        (void)snprintf(words, sizeof(words), "%s", w->failure);
        (void)pthread_mutex_unlock(&w->lock);
        send_to_all(w, OCTAVO_FRAME_FAILURE, words);
        begin_end(w, w->process, words);
    }
    if (atomic_load(&w->leaving) && !w->told_leaving) {
        w->told_leaving = true;
        send_to_all(w, OCTAVO_FRAME_LEAVING, NULL);
    }
    if (atomic_load(&w->finished) && !w->told_finished) {
        w->told_finished = true;
        send_to_all(w, OCTAVO_FRAME_FINISHED, NULL);
    }
}

/* ---- what comes in ------------------------------------------------------------------------------
 */

static void hear(octavo_watch *w, int process, const octavo_frame *frame) {
    peer *p = &w->peers[process];
    atomic_store(&p->op, frame->op);
    atomic_store(&p->waiting_for, frame->waiting_for);
    if (frame->kind == OCTAVO_FRAME_LEAVING) {
        p->state = LEAVING;
        atomic_store(&p->left, true);
    } else if (frame->kind == OCTAVO_FRAME_FINISHED) {
        p->state = GONE;
    } else if (frame->kind == OCTAVO_FRAME_FAILURE) {
        begin_end(w, process, frame->text);
        p->state = LOST;
    }
}

static void receive_from(octavo_watch *w, int process) {
    peer *p = &w->peers[process];
    const int fd = w->polls[process].fd;
    for (;;) {
        const octavo_frame *frame = NULL;
        octavo_frame_result result = octavo_frame_read(&p->reader, fd, &frame);
        if (result == OCTAVO_FRAME_LATER) return;
        if (result == OCTAVO_FRAME_READ) {
            p->heard_ns = octavo_clock_ns();
            hear(w, process, frame);
            continue;
        }
        (void)close(fd);
        w->polls[process].fd = -1;
        if (result == OCTAVO_FRAME_BROKEN)
            lose(w, process, "sends what makes no sense");
        else if (p->state == ALIVE)
            lose(w, process, "was killed, crashed or left without a word");
        else if (p->state == LEAVING)
            lose(w, process, "was killed or crashed while it left");
        return;
    }
}

static void check_silence(octavo_watch *w, int process, int64_t now) {
    peer *p = &w->peers[process];
    if (p->state == LOST || p->state == GONE) return;
    char name[100];
    const int64_t silence = now - p->heard_ns;
    const bool is_silent = silence > OCTAVO_WATCH_WARN_NS;
    if (is_silent != atomic_load(&p->silent)) {
        atomic_store(&p->silent, is_silent);
        if (is_first_alive(w, process)) {
            octavo_watch_name(w, process, name, sizeof(name));
            if (is_silent) {
                octavo_log_write(&w->log, OCTAVO_LOG_WARN,
                                 "%s has not been heard of for %.0f s: stopped, or its machine is "
                                 "overloaded",
                                 name, (double)OCTAVO_WATCH_WARN_NS * 1e-9);
            } else {
                octavo_log_write(&w->log, OCTAVO_LOG_WARN, "%s is back", name);
            }
        }
    }
    if (silence > w->stall_ns) {
        char why[100];
        (void)snprintf(why, sizeof(why), "has not been heard of for %.0f s",
                       (double)w->stall_ns * 1e-9);
        lose(w, process, why);
    }
}

/* ---- the thread ---------------------------------------------------------------------------------
 */

static void check_all(octavo_watch *w, int64_t now) {
    bool all_left = true;
    for (int i = 0; i < w->processes; i++) {
        if (i == w->process) continue;
        check_silence(w, i, now);
        if (w->peers[i].state != LEAVING && w->peers[i].state != GONE) all_left = false;
    }
    if (all_left) atomic_store(&w->all_left, true);
}

/* This process stood still, stopped as a whole or without a processor: so it knows nothing about
 * the silence of others. */
static void forgive(octavo_watch *w, int64_t by) {
    for (int i = 0; i < w->processes; i++) {
        w->peers[i].heard_ns += by;
    }
}

static void *watch_main(void *arg) {
    octavo_watch *w = arg;
    int64_t now = octavo_clock_ns();
    int64_t next_beat = now;
    while (!atomic_load(&w->quit)) {
        const int64_t pause = w->ending_since != 0 ? 5000000 : next_beat - now;
        const int64_t before = now;
        (void)poll(w->polls, (nfds_t)w->processes + 1, pause > 0 ? (int)(pause / 1000000) + 1 : 0);
        now = octavo_clock_ns();
        if (now - before > ASLEEP_NS) forgive(w, now - before);
        if (w->polls[w->processes].revents != 0) {
            uint64_t count;
            ssize_t n = read(w->wake, &count, sizeof(count));
            (void)n;
        }
        for (int i = 0; i < w->processes; i++) {
            if (w->polls[i].fd >= 0 && w->polls[i].revents != 0) receive_from(w, i);
        }
        send_wishes(w);
        if (now >= next_beat) {
            send_to_all(w, OCTAVO_FRAME_BEAT, NULL);
            next_beat = now + BEAT_NS;
        }
        check_all(w, now);
        end_when_due(w, now);
    }
    send_wishes(w);
    return NULL;
}

/* Some transports abort the process when another one is gone, before its connection is seen to
 * close. The others would blame this process; so it stays for a moment, in which the watch tells
 * who it was and ends it. Then the abort goes on. */
static void hold_abort(int number) {
    const struct timespec pause = {.tv_nsec = 500000000};
    (void)number;
    (void)nanosleep(&pause, NULL);
}

/* Unless the program has a handler of its own. */
static bool catch_abort(void) {
    struct sigaction now;
    if (sigaction(SIGABRT, NULL, &now) != 0 || now.sa_handler != SIG_DFL) return false;
    now.sa_handler = hold_abort;
    now.sa_flags = 0;
    (void)sigemptyset(&now.sa_mask);
    return sigaction(SIGABRT, &now, NULL) == 0;
}

static void release_abort(void) {
    struct sigaction standard;
    memset(&standard, 0, sizeof(standard));
    standard.sa_handler = SIG_DFL;
    (void)sigaction(SIGABRT, &standard, NULL);
}

static void wake(octavo_watch *w) {
    const uint64_t one = 1;
    ssize_t n = write(w->wake, &one, sizeof(one));
    (void)n;
}

static int start_thread(octavo_watch *w) {
    sigset_t all, previous;
    (void)sigfillset(&all);
    int code = pthread_sigmask(SIG_SETMASK, &all, &previous);
    if (code != 0) return code;
    code = pthread_create(&w->thread, NULL, watch_main, w);
    (void)pthread_sigmask(SIG_SETMASK, &previous, NULL);
    return code;
}

static void watch_free(octavo_watch *w) {
    if (w->wake >= 0) (void)close(w->wake);
    (void)pthread_mutex_destroy(&w->lock);
    octavo_free(w->cards);
    octavo_free(w->peers);
    octavo_free(w->polls);
    octavo_free(w);
}

octavo_status octavo_watch_start(octavo_watch **watch, const octavo_card *cards, const int *sockets,
                                 int process, int processes, double stall_seconds,
                                 const octavo_log *log, octavo_error *error) {
    octavo_watch *w = octavo_alloc_zero(1, sizeof(*w));
    if (w == NULL) return octavo_fail_memory(error, "MPI", sizeof(*w));
    w->wake = -1;
    int code = pthread_mutex_init(&w->lock, NULL);
    if (code != 0) {
        octavo_free(w);
        return octavo_fail(error, OCTAVO_ERROR_MEMORY, "MPI: no lock: %s", strerror(code));
    }
    w->process = process;
    w->processes = processes;
    w->stall_ns = stall_seconds < 1e9 ? (int64_t)(stall_seconds * 1e9) : INT64_MAX;
    w->log = *log;
    w->speaker = -1;
    atomic_init(&w->waiting_for, -1);
    const size_t n = (size_t)processes;
    w->cards = octavo_alloc_zero(n, sizeof(*w->cards));
    w->peers = octavo_alloc_zero(n, sizeof(*w->peers));
    w->polls = octavo_alloc_zero(n + 1, sizeof(*w->polls));
    if (w->cards == NULL || w->peers == NULL || w->polls == NULL) {
        watch_free(w);
        return octavo_fail_memory(error, "MPI", n * sizeof(*w->peers));
    }
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->wake < 0) {
        watch_free(w);
        return octavo_fail(error, OCTAVO_ERROR_IO, "MPI: no eventfd: %s", strerror(errno));
    }
    memcpy(w->cards, cards, n * sizeof(*cards));
    for (int i = 0; i < processes; i++) {
        w->polls[i] = (struct pollfd){.fd = sockets[i], .events = POLLIN};
        w->peers[i].heard_ns = octavo_clock_ns();
        atomic_init(&w->peers[i].waiting_for, -1);
    }
    w->polls[processes] = (struct pollfd){.fd = w->wake, .events = POLLIN};
    code = start_thread(w);
    if (code != 0) {
        watch_free(w);
        return octavo_fail(error, OCTAVO_ERROR_MEMORY, "MPI: no thread: %s", strerror(code));
    }
    w->catches_abort = catch_abort();
    *watch = w;
    return OCTAVO_OK;
}

void octavo_watch_stop(octavo_watch **watch) {
    if (watch == NULL || *watch == NULL) return;
    octavo_watch *w = *watch;
    atomic_store(&w->quit, true);
    wake(w);
    (void)pthread_join(w->thread, NULL);
    if (w->catches_abort) release_abort();
    for (int i = 0; i < w->processes; i++) {
        if (w->polls[i].fd >= 0) (void)close(w->polls[i].fd);
    }
    watch_free(w);
    *watch = NULL;
}

void octavo_watch_tell(octavo_watch *watch, uint64_t op, int waiting_for) {
    atomic_store_explicit(&watch->op, op, memory_order_relaxed);
    atomic_store_explicit(&watch->waiting_for, waiting_for, memory_order_relaxed);
}

octavo_watch_peer octavo_watch_look(const octavo_watch *watch, int process) {
    const peer *p = &watch->peers[process];
    return (octavo_watch_peer){.op = atomic_load(&p->op),
                               .waiting_for = atomic_load(&p->waiting_for),
                               .is_silent = atomic_load(&p->silent),
                               .has_left = atomic_load(&p->left)};
}

static void nap(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)nanosleep(&pause, NULL);
}

void octavo_watch_leave(octavo_watch *watch) {
    atomic_store(&watch->leaving, true);
    wake(watch);
}

bool octavo_watch_all_left(const octavo_watch *watch) {
    return atomic_load(&watch->all_left);
}

void octavo_watch_finished(octavo_watch *watch) {
    atomic_store(&watch->finished, true);
    wake(watch);
}

void octavo_watch_fail(octavo_watch *watch, int first, int second, const char *message) {
    char names[2][100] = {"", ""};
    octavo_watch_name(watch, first, names[0], sizeof(names[0]));
    if (second >= 0) octavo_watch_name(watch, second, names[1], sizeof(names[1]));
    (void)pthread_mutex_lock(&watch->lock);
    if (!atomic_load(&watch->has_failed)) {
        (void)snprintf(watch->failure, sizeof(watch->failure), "%s%s%s of %d: %s", names[0],
                       second >= 0 ? " and " : "", names[1], watch->processes, message);
    }
    (void)pthread_mutex_unlock(&watch->lock);
    atomic_store(&watch->has_failed, true);
    wake(watch);
    for (;;)
        nap();
}
