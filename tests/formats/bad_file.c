/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged files; see the header.
 */
#include "bad_file.h"

#include "../unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint8_t *guarded; /* [guarded_size], then a protected page */
static size_t guarded_size;

int bad_file_setup(void **unused) {
    (void)unused;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    guarded_size = 32 * page;
    void *pages =
        mmap(NULL, guarded_size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return 1;
    guarded = pages;
    return mprotect(guarded + guarded_size, page, PROT_NONE);
}

int bad_file_teardown(void **unused) {
    (void)unused;
    return munmap(guarded, guarded_size + (size_t)sysconf(_SC_PAGESIZE));
}

const uint8_t *bad_file_guard(const void *bytes, size_t size) {
    assert_true(size <= guarded_size);
    return memcpy(guarded + guarded_size - size, bytes, size);
}

void bad_file_refused(octavo_status status, const octavo_error *error, octavo_status expected,
                      const char *text) {
    if (status == expected && strstr(error->message, text) != NULL) return;
    fail_msg("status %s, message \"%s\"; expected %s, \"%s\"", octavo_status_name(status),
             error->message, octavo_status_name(expected), text);
}
