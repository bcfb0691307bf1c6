/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls from many threads at once, each with a context and caches of its own, disturb each other in
 * nothing: every one gets the bits that it gets alone. Run with ThreadSanitizer too.
 */
#include "../unit.h"
#include "rpa_context.h"
#include "rpa_stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, POSITIONS = 70 };

typedef struct caller {
    pthread_t thread;
    rpa_stream stream;
    rpa_way way;
    void *alone, *together;
} caller;

static void *call(void *arg) {
    caller *c = arg;
    c->together = rpa_stream_run(&c->stream, &c->way);
    return NULL;
}

static void callers_do_not_disturb_each_other(void **state) {
    (void)state;
    static caller callers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        const rpa_shape shape = {.n_q_heads = 4,
                                 .n_kv_heads = 2,
                                 .head_dim = 24 + 8 * i,
                                 .q_dtype = OCTAVO_DTYPE_F32,
                                 .kv_dtype = (octavo_dtype)(i + 1),
                                 .has_sink = i % 2};
        callers[i].stream = rpa_stream_make(&shape, POSITIONS, (uint32_t)i + 1);
        callers[i].way = (rpa_way){.isa = rpa_level(i % 2),
                                   .n_threads = 1 + i % 3,
                                   .page_size = 16,
                                   .shuffle = 3,
                                   .chunk = 9,
                                   .neighbours = i % 3,
                                   .layout = (octavo_kv_layout)(i / 2 % 2)};
        if (callers[i].way.isa == NULL) callers[i].way.isa = rpa_level(0);
        callers[i].alone = rpa_stream_run(&callers[i].stream, &callers[i].way);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_memory_equal(callers[i].together, callers[i].alone,
                            rpa_stream_output_bytes(&callers[i].stream));
        free(callers[i].alone);
        free(callers[i].together);
        rpa_stream_free(&callers[i].stream);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
