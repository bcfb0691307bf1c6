/* SPDX-License-Identifier: Apache-2.0
 *
 * The connections of a watch, within one process: everybody reaches everybody, strangers do not get
 * in, who does not come is named; and frames in pieces and out of order.
 */
#include "../unit.h"
#include "base/clock.h"
#include "sharding/comm_connect.h"
#include "sharding/comm_frame.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 5 };

typedef struct member {
    const octavo_card *cards;
    int process, processes, listener;
    double seconds;
    octavo_status status;
    int sockets[MOST];
    octavo_error error;
} member;

static void *join_main(void *arg) {
    member *m = arg;
    m->status = octavo_connect_all(m->cards, m->process, m->processes, m->listener, m->seconds,
                                   m->sockets, &m->error);
    return NULL;
}

/* A caller without the job's token, or that hangs up. */
static int call_as_stranger(uint16_t port, const void *words, size_t bytes) {
    struct sockaddr_in to;
    memset(&to, 0, sizeof(to));
    to.sin_family = AF_INET;
    to.sin_port = port;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s >= 0);
    assert_int_equal(connect(s, (const struct sockaddr *)(const void *)&to, sizeof(to)), 0);
    if (bytes > 0) assert_int_equal(send(s, words, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
    return s;
}

static void close_all(member *members, int n) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            if (members[i].sockets[k] >= 0) (void)close(members[i].sockets[k]);
        }
        (void)close(members[i].listener);
    }
}

static void check_mesh(int n, bool other_machines) {
    octavo_card cards[MOST];
    member members[MOST];
    pthread_t threads[MOST];
    static const uint64_t wrong[2] = {1, 1};
    memset(members, 0, sizeof(members));
    for (int i = 0; i < n; i++) {
        members[i] = (member){.cards = cards, .process = i, .processes = n, .seconds = 20};
        assert_int_equal(octavo_connect_listen(&cards[i], &members[i].listener, NULL), OCTAVO_OK);
        assert_true(cards[i].machine == cards[0].machine && cards[i].cores == cards[0].cores);
        assert_true(i == 0 || cards[i].token != cards[0].token);
        if (other_machines && cards[i].n_addresses > 0) cards[i].machine += (uint64_t)i;
    }
    int strangers[2] = {call_as_stranger(cards[0].port, wrong, sizeof(wrong)),
                        call_as_stranger(cards[0].port, NULL, 0)};
    (void)close(strangers[1]);
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, join_main, &members[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (members[i].status != OCTAVO_OK) fail_msg("%s", members[i].error.message);
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(members[i].sockets[i], -1);
        for (int k = 0; k < n; k++) {
            char said = (char)(i * MOST + k);
            if (i != k) assert_int_equal(send(members[i].sockets[k], &said, 1, 0), 1);
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            char heard = 0;
            if (i == k) continue;
            assert_int_equal(recv(members[i].sockets[k], &heard, 1, MSG_WAITALL), 1);
            assert_int_equal(heard, k * MOST + i);
        }
    }
    (void)close(strangers[0]);
    close_all(members, n);
}

static void test_mesh(void **unused) {
    (void)unused;
    for (int n = 2; n <= MOST; n++) {
        check_mesh(n, false);
    }
    check_mesh(3, true);
}

static void test_absent(void **unused) {
    (void)unused;
    octavo_card cards[2];
    member m = {.cards = cards, .process = 0, .processes = 2, .seconds = 0.3};
    memset(cards, 0, sizeof(cards));
    assert_int_equal(octavo_connect_listen(&cards[0], &m.listener, NULL), OCTAVO_OK);
    cards[1] = cards[0];
    (void)snprintf(cards[1].host, sizeof(cards[1].host), "elsewhere");
    (void)join_main(&m);
    assert_int_equal(m.status, OCTAVO_ERROR_IO);
    assert_non_null(strstr(m.error.message, "process 1 on elsewhere has not called"));
    /* And one that calls where nobody listens any more. */
    (void)close(m.listener);
    m.process = 1;
    (void)join_main(&m);
    assert_int_equal(m.status, OCTAVO_ERROR_IO);
    assert_non_null(strstr(m.error.message, "cannot reach process 0"));
    if (m.sockets[0] >= 0) (void)close(m.sockets[0]);
}

static void test_frames(void **unused) {
    (void)unused;
    int ends[2];
    octavo_frame_reader reader;
    const octavo_frame *read = NULL;
    memset(&reader, 0, sizeof(reader));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    octavo_frame sent = {.kind = OCTAVO_FRAME_FAILURE, .waiting_for = 3, .op = 1ull << 40};
    sent.text_bytes = 7;
    memcpy(sent.text, "because", 7);
    const size_t bytes = octavo_frame_bytes(&sent);
    /* Byte by byte, twice. */
    for (int times = 0; times < 2; times++) {
        for (size_t i = 0; i < bytes; i++) {
            assert_int_equal(octavo_frame_read(&reader, ends[1], &read), OCTAVO_FRAME_LATER);
            assert_int_equal(send(ends[0], (const char *)&sent + i, 1, 0), 1);
        }
        assert_int_equal(octavo_frame_read(&reader, ends[1], &read), OCTAVO_FRAME_READ);
        assert_true(read->op == sent.op && read->waiting_for == 3);
        assert_string_equal(read->text, "because");
    }
    /* What is no frame. */
    static const octavo_frame bad[] = {
        {.kind = 0},
        {.kind = OCTAVO_FRAME_FAILURE + 1},
        {.kind = OCTAVO_FRAME_BEAT, .zero = 1},
        {.kind = OCTAVO_FRAME_BEAT, .text_bytes = OCTAVO_FRAME_TEXT},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&reader, 0, sizeof(reader));
        assert_int_equal(send(ends[0], &bad[i], 16, 0), 16);
        assert_int_equal(octavo_frame_read(&reader, ends[1], &read), OCTAVO_FRAME_BROKEN);
    }
    memset(&reader, 0, sizeof(reader));
    assert_int_equal(send(ends[0], &sent, bytes - 1, 0), (ssize_t)bytes - 1);
    (void)close(ends[0]);
    assert_int_equal(octavo_frame_read(&reader, ends[1], &read), OCTAVO_FRAME_CLOSED);
    (void)close(ends[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mesh),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
