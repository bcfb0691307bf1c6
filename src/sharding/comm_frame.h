/* SPDX-License-Identifier: Apache-2.0
 *
 * What processes of a job tell each other over the connections of their watch: small frames, in the
 * byte order of their common kind of machine.
 */
#ifndef OCTAVO_SHARDING_COMM_FRAME_H
#define OCTAVO_SHARDING_COMM_FRAME_H

#include <stddef.h>
#include <stdint.h>

typedef enum octavo_frame_kind {
    OCTAVO_FRAME_BEAT = 1,
    OCTAVO_FRAME_LEAVING,  /* octavo_comm_close was called */
    OCTAVO_FRAME_FINISHED, /* and is done */
    OCTAVO_FRAME_FAILURE,  /* with the line that the sender says */
} octavo_frame_kind;

enum { OCTAVO_FRAME_TEXT = 640 };

/* Sent without the unused end of the text. */
typedef struct octavo_frame {
    uint8_t kind;
    uint8_t zero;
    uint16_t text_bytes; /* below OCTAVO_FRAME_TEXT */
    int32_t waiting_for;
    uint64_t op;
    char text[OCTAVO_FRAME_TEXT]; /* terminated by the reader */
} octavo_frame;

size_t octavo_frame_bytes(const octavo_frame *frame);

typedef struct octavo_frame_reader {
    octavo_frame frame;
    size_t have; /* bytes of it */
} octavo_frame_reader;

typedef enum octavo_frame_result {
    OCTAVO_FRAME_READ,
    OCTAVO_FRAME_LATER,  /* no more until bytes come */
    OCTAVO_FRAME_CLOSED, /* by the other side */
    OCTAVO_FRAME_BROKEN, /* not a frame */
} octavo_frame_result;

/* The next frame, in *frame until the next call. Does not wait. */
octavo_frame_result octavo_frame_read(octavo_frame_reader *reader, int fd,
                                      const octavo_frame **frame);

#endif
