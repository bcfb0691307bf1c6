/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/comm_frame.h"

#include <errno.h>
#include <sys/socket.h>

static const size_t head_bytes = offsetof(octavo_frame, text);

size_t octavo_frame_bytes(const octavo_frame *frame) {
    return head_bytes + frame->text_bytes;
}

octavo_frame_result octavo_frame_read(octavo_frame_reader *reader, int fd,
                                      const octavo_frame **frame) {
    octavo_frame *f = &reader->frame;
    for (;;) {
        size_t want = head_bytes;
        if (reader->have >= head_bytes) {
            if (f->kind < OCTAVO_FRAME_BEAT || f->kind > OCTAVO_FRAME_FAILURE || f->zero != 0 ||
                f->text_bytes >= sizeof(f->text)) {
                return OCTAVO_FRAME_BROKEN;
            }
            want = octavo_frame_bytes(f);
            if (reader->have == want) {
                f->text[f->text_bytes] = '\0';
                reader->have = 0;
                *frame = f;
                return OCTAVO_FRAME_READ;
            }
        }
        ssize_t n = recv(fd, (char *)f + reader->have, want - reader->have, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return OCTAVO_FRAME_LATER;
        if (n <= 0) return OCTAVO_FRAME_CLOSED;
        reader->have += (size_t)n;
    }
}
