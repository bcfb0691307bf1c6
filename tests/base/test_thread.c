/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool: every thread runs once per run, memory is visible across fork, barrier and join, and
 * shares cover exactly. Prints what a fork-join costs here; asserts no time.
 */
#include "../unit.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"

#include <limits.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define MOST 8

static octavo_pool *make_pool(int n_threads, bool pin) {
    octavo_pool *pool = NULL;
    assert_int_equal(octavo_pool_create(&pool, n_threads, pin, NULL), OCTAVO_OK);
    assert_non_null(pool);
    assert_int_equal(octavo_pool_threads(pool), n_threads);
    return pool;
}

/* Plain counters on purpose: the pool alone must order them, and the thread sanitizer checks it. */
typedef struct run_state {
    int64_t input;
    int64_t output[MOST];
    int calls[MOST];
    int n_threads;
} run_state;

static void run_task(void *arg, int thread, int n_threads) {
    run_state *state = arg;
    state->output[thread] = state->input * 10 + thread;
    state->calls[thread]++;
    if (thread == 0) state->n_threads = n_threads;
}

static void test_runs(void **unused) {
    (void)unused;
    for (int n = 1; n <= MOST; n++) {
        octavo_pool *pool = make_pool(n, false);
        run_state state = {0};
        for (int run = 1; run <= 400; run++) {
            state.input = run;
            octavo_pool_run(pool, run_task, &state);
            for (int t = 0; t < n; t++) {
                assert_int_equal(state.output[t], run * 10 + t);
                assert_int_equal(state.calls[t], run);
            }
            for (int t = n; t < MOST; t++) {
                assert_int_equal(state.calls[t], 0);
            }
            assert_int_equal(state.n_threads, n);
        }
        octavo_pool_destroy(&pool);
        assert_null(pool);
    }
}

/* Long pauses put the workers to sleep; slow workers put the caller to sleep in the join. */
static void pause_ms(long ms) {
    struct timespec pause = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&pause, NULL);
}

static void slow_task(void *arg, int thread, int n_threads) {
    if (thread == n_threads - 1) pause_ms(2);
    run_task(arg, thread, n_threads);
}

static void test_sleepers_wake(void **unused) {
    (void)unused;
    octavo_pool *pool = make_pool(3, false);
    run_state state = {0};
    for (int run = 1; run <= 25; run++) {
        state.input = run;
        octavo_pool_run(pool, slow_task, &state);
        for (int t = 0; t < 3; t++) {
            assert_int_equal(state.output[t], run * 10 + t);
        }
        if (run % 2 == 0) pause_ms(2);
    }
    octavo_pool_destroy(&pool);
}

/* Between barriers each thread adds to its own slot, then checks that everybody's is as far. */
typedef struct barrier_state {
    octavo_pool *pool;
    int rounds;
    int64_t slot[MOST];
    int64_t wrong[MOST];
    int slow_thread; /* -1 for none */
} barrier_state;

static void barrier_task(void *arg, int thread, int n_threads) {
    barrier_state *state = arg;
    for (int round = 1; round <= state->rounds; round++) {
        if (thread == state->slow_thread) pause_ms(1);
        state->slot[thread] += round;
        octavo_pool_barrier(state->pool, thread);
        for (int t = 0; t < n_threads; t++) {
            if (state->slot[t] != (int64_t)round * (round + 1) / 2) state->wrong[thread]++;
        }
        octavo_pool_barrier(state->pool, thread);
    }
}

static void check_barriers(int n_threads, int rounds, int slow_thread) {
    octavo_pool *pool = make_pool(n_threads, false);
    for (int run = 0; run < 3; run++) {
        barrier_state state = {.pool = pool, .rounds = rounds, .slow_thread = slow_thread};
        octavo_pool_run(pool, barrier_task, &state);
        for (int t = 0; t < n_threads; t++) {
            assert_int_equal(state.wrong[t], 0);
            assert_int_equal(state.slot[t], (int64_t)rounds * (rounds + 1) / 2);
        }
    }
    octavo_pool_destroy(&pool);
}

static void test_barrier(void **unused) {
    (void)unused;
    for (int n = 1; n <= MOST; n++) {
        check_barriers(n, 100, -1);
    }
    check_barriers(2, 10, 0);
    check_barriers(4, 10, 3);
}

/* The threads of a team meet often, all teams now and then; a team that is ahead must not be held
 * up by, nor take part in, the rounds of another. */
typedef struct team_state {
    octavo_pool *pool;
    int team_threads;
    int rounds;
    int64_t slot[MOST]; /* written by its thread, read by its team after the team's barrier */
    int64_t sum[MOST];  /* of the team, seen by all after the pool's barrier */
    int64_t wrong[MOST];
} team_state;

static void team_task(void *arg, int thread, int n_threads) {
    team_state *state = arg;
    const int team = thread / state->team_threads;
    const int first = team * state->team_threads;
    for (int round = 1; round <= state->rounds; round++) {
        for (int step = 0; step <= team; step++) {
            state->slot[thread] = (int64_t)round * 100 + step;
            octavo_pool_team_barrier(state->pool, thread);
            for (int t = first; t < first + state->team_threads; t++) {
                if (state->slot[t] != (int64_t)round * 100 + step) state->wrong[thread]++;
            }
            octavo_pool_team_barrier(state->pool, thread);
        }
        if (thread == first) state->sum[team] += round;
        octavo_pool_barrier(state->pool, thread);
        for (int t = 0; t < n_threads / state->team_threads; t++) {
            if (state->sum[t] != (int64_t)round * (round + 1) / 2) state->wrong[thread]++;
        }
        octavo_pool_barrier(state->pool, thread);
    }
}

static void test_teams(void **unused) {
    (void)unused;
    for (int n_teams = 1; n_teams <= MOST; n_teams++) {
        for (int each = 1; n_teams * each <= MOST; each++) {
            octavo_pool *pool = NULL;
            assert_int_equal(octavo_pool_create_teams(&pool, n_teams, each, false, NULL),
                             OCTAVO_OK);
            assert_int_equal(octavo_pool_teams(pool), n_teams);
            assert_int_equal(octavo_pool_threads(pool), n_teams * each);
            team_state state = {.pool = pool, .team_threads = each, .rounds = 40};
            octavo_pool_run(pool, team_task, &state);
            for (int t = 0; t < n_teams * each; t++) {
                assert_int_equal(state.wrong[t], 0);
            }
            octavo_pool_destroy(&pool);
        }
    }
}

static void check_share(int64_t count, int64_t grain, int n_threads) {
    int64_t at = 0;
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (int t = 0; t < n_threads; t++) {
        int64_t begin = -1;
        int64_t end = -1;
        octavo_pool_share(count, grain, t, n_threads, &begin, &end);
        assert_int_equal(begin, at);
        assert_true(end >= begin && end <= count);
        if (end != count) assert_int_equal(end % grain, 0);
        int64_t grains = (end - begin) / grain + ((end - begin) % grain != 0);
        if (grains < least) least = grains;
        if (grains > most) most = grains;
        at = end;
    }
    assert_int_equal(at, count);
    assert_true(most - least <= 1);
}

static void test_share(void **unused) {
    (void)unused;
    static const int64_t grains[] = {1, 2, 3, 16, 64, INT64_MAX};
    static const int64_t large[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2};
    for (int n = 1; n <= 33; n += n < 8 ? 1 : 5) {
        for (size_t g = 0; g < OCTAVO_COUNT(grains); g++) {
            for (int64_t count = 0; count < 300; count++) {
                check_share(count, grains[g], n);
            }
            for (size_t i = 0; i < OCTAVO_COUNT(large); i++) {
                check_share(large[i], grains[g], n);
            }
        }
    }
}

static void test_create_refuses(void **unused) {
    (void)unused;
    octavo_pool *pool = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_pool_create(&pool, 0, false, &error), OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "1 x 0 threads"));
    assert_int_equal(octavo_pool_create(&pool, 1025, false, &error), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_pool_create(&pool, -3, false, NULL), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_pool_create_teams(&pool, 0, 1, false, &error), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_pool_create_teams(&pool, 513, 2, false, &error), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_pool_create_teams(&pool, INT_MAX, INT_MAX, false, &error),
                     OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "1 to 1024"));
    assert_null(pool);
    octavo_pool_destroy(&pool);
    octavo_pool_destroy(NULL);
}

#if defined(__linux__)
typedef struct binding_state {
    cpu_set_t set[MOST];
} binding_state;

static void binding_task(void *arg, int thread, int n_threads) {
    (void)n_threads;
    binding_state *state = arg;
    (void)sched_getaffinity(0, sizeof(cpu_set_t), &state->set[thread]);
}

/* Pinned threads stand on disjoint parts of what the owner had; the owner gets its binding back,
 * and a pool that is too large for the cores runs where the owner was allowed to. */
static void test_pinning(void **unused) {
    (void)unused;
    cpu_set_t before, after;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    for (int n = 1; n <= MOST; n++) {
        octavo_pool *pool = make_pool(n, true);
        binding_state state;
        memset(&state, 0, sizeof(state));
        octavo_pool_run(pool, binding_task, &state);
        bool pinned = !CPU_EQUAL(&state.set[0], &before) || CPU_COUNT(&before) == 1;
        for (int a = 0; a < n; a++) {
            cpu_set_t both;
            CPU_AND(&both, &state.set[a], &before);
            assert_true(CPU_EQUAL(&both, &state.set[a]));
            assert_true(CPU_COUNT(&both) > 0);
            if (!pinned || n > CPU_COUNT(&before)) {
                assert_true(CPU_EQUAL(&state.set[a], &before));
                continue;
            }
            for (int b = 0; b < a; b++) {
                CPU_AND(&both, &state.set[a], &state.set[b]);
                assert_int_equal(CPU_COUNT(&both), 0);
            }
        }
        octavo_pool_destroy(&pool);
        assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
    }
}
#else
static void test_pinning(void **unused) {
    (void)unused;
    octavo_pool *pool = make_pool(2, true);
    octavo_pool_destroy(&pool);
}
#endif

static void empty_task(void *arg, int thread, int n_threads) {
    (void)arg;
    (void)thread;
    (void)n_threads;
}

typedef struct cost_state {
    octavo_pool *pool;
    void (*barrier)(octavo_pool *, int); /* NULL: none */
    int barriers;
} cost_state;

static void cost_task(void *arg, int thread, int n_threads) {
    (void)n_threads;
    const cost_state *state = arg;
    for (int i = 0; i < state->barriers; i++) {
        state->barrier(state->pool, thread);
    }
}

/* Medians of batches, so that a moment without a processor does not blur the figure. */
static void print_cost(const char *what, octavo_pool *pool, int runs, cost_state state) {
    enum { BATCHES = 41, EACH = 200 };
    double cost[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        int64_t begin = octavo_clock_ns();
        for (int i = 0; i < runs; i++) {
            octavo_pool_run(pool, state.barrier == NULL ? empty_task : cost_task, &state);
        }
        cost[b] = (double)(octavo_clock_ns() - begin) / EACH;
        for (int i = b; i > 0 && cost[i] < cost[i - 1]; i--) {
            double other = cost[i];
            cost[i] = cost[i - 1];
            cost[i - 1] = other;
        }
    }
    print_message("%s, %d threads in %d teams: median %.2f us, best %.2f us\n", what,
                  octavo_pool_threads(pool), octavo_pool_teams(pool), cost[BATCHES / 2] * 1e-3,
                  cost[0] * 1e-3);
}

static void test_fork_join_cost(void **unused) {
    (void)unused;
    enum { EACH = 200 };
    for (int n = 1; n <= 4; n *= 2) {
        for (int n_teams = 1; n_teams <= n; n_teams++) {
            if (n % n_teams != 0) continue;
            octavo_pool *pool = NULL;
            assert_int_equal(octavo_pool_create_teams(&pool, n_teams, n / n_teams, false, NULL),
                             OCTAVO_OK);
            print_cost("fork-join", pool, EACH, (cost_state){0});
            print_cost("barrier", pool, 1, (cost_state){pool, octavo_pool_barrier, EACH});
            print_cost("team barrier", pool, 1, (cost_state){pool, octavo_pool_team_barrier, EACH});
            octavo_pool_destroy(&pool);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),           cmocka_unit_test(test_sleepers_wake),
        cmocka_unit_test(test_barrier),        cmocka_unit_test(test_share),
        cmocka_unit_test(test_create_refuses), cmocka_unit_test(test_pinning),
        cmocka_unit_test(test_teams),          cmocka_unit_test(test_fork_join_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
