/* SPDX-License-Identifier: Apache-2.0
 *
 * A line without end, of a device or a program, ends where the memory does.
 */
#include "../unit.h"
#include "cli/input.h"

#include <string.h>

enum { MOST = 1 << 20 }; /* bytes of a block */

void *__real_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);

void *__wrap_realloc(void *p, size_t bytes) {
    return bytes > MOST ? NULL : __real_realloc(p, bytes);
}

static void test_endless_line(void **state) {
    octavo_buffer line = {0};
    octavo_error error;
    bool has_line = false;
    FILE *zeros = fopen("/dev/zero", "rb");
    (void)state;
    assert_non_null(zeros);
    assert_int_equal(octavo_input_line(zeros, &line, &has_line, &error), OCTAVO_ERROR_MEMORY);
    assert_false(has_line);
    assert_non_null(strstr(error.message, "line"));
    octavo_buffer_deinit(&line);
    fclose(zeros);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endless_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
