/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections (TCP) between every two processes of a job, over which they watch one another. Each
 * listens and puts on a card how it can be reached; the cards go round by MPI; then those of higher
 * numbers call those of lower ones.
 */
#ifndef OCTAVO_SHARDING_COMM_CONNECT_H
#define OCTAVO_SHARDING_COMM_CONNECT_H

#include "octavo/status.h"

#include <stdint.h>

enum { OCTAVO_CARD_ADDRESSES = 4 };

/* Compared and hashed as bytes: always cleared before it is filled. */
typedef struct octavo_card {
    uint64_t token;   /* random; that of process 0 lets a caller in */
    uint64_t machine; /* equal on one running system */
    uint64_t cores;   /* checksum of what the process is bound to */
    int64_t pid;
    uint16_t port;
    uint8_t n_addresses;
    uint8_t family[OCTAVO_CARD_ADDRESSES]; /* 4 or 6 */
    uint8_t address[OCTAVO_CARD_ADDRESSES][16];
    char host[48];
} octavo_card;

/* Opens a listening socket and fills the card. */
OCTAVO_MUST_CHECK octavo_status octavo_connect_listen(octavo_card *card, int *listener,
                                                      octavo_error *error);
/* Connects with all others by the cards of all: sockets[i] leads to process i, -1 for oneself.
 * Gives up after `seconds`. The caller closes the sockets, after a failure too (-1: there is none).
 */
OCTAVO_MUST_CHECK octavo_status octavo_connect_all(const octavo_card *cards, int process,
                                                   int processes, int listener, double seconds,
                                                   int *sockets, octavo_error *error);

#endif
