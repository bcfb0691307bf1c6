/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps of files of awkward sizes, and everything that is not a regular file.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "base/map.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/octavo-map-XXXXXX";

static const char *path_of(const char *name) {
    static char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static unsigned char byte_at(size_t i) {
    return (unsigned char)(i * 31 + i / 4096);
}

static const char *write_file(size_t size) {
    const char *path = path_of("file");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < size; i++) {
        assert_int_not_equal(fputc(byte_at(i), file), EOF);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static void check_content(const octavo_map *map, size_t size) {
    assert_int_equal(map->size, size);
    for (size_t i = 0; i < size; i++) {
        assert_true(map->data[i] == byte_at(i));
    }
}

static void test_sizes(void **unused) {
    (void)unused;
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};
    for (size_t i = 0; i < OCTAVO_COUNT(sizes); i++) {
        octavo_map map = {0};
        octavo_error error = {0};
        assert_int_equal(octavo_map_open(&map, write_file(sizes[i]), &error), OCTAVO_OK);
        if (sizes[i] == 0) assert_null(map.data);
        check_content(&map, sizes[i]);
        octavo_map_close(&map);
        assert_null(map.data);
        assert_int_equal(map.size, 0);
        octavo_map_close(&map);
    }
}

/* Advice of every kind of range, also past the end, changes nothing that is read. */
static void test_advice(void **unused) {
    (void)unused;
    enum { SIZE = 5 * 4096 + 123 };
    octavo_map map = {0};
    assert_int_equal(octavo_map_open(&map, write_file(SIZE), NULL), OCTAVO_OK);
    static const size_t at[] = {0, 1, 4096, 5000, 3 * 4096, SIZE - 1, SIZE, SIZE + 1, SIZE_MAX};
    for (size_t a = 0; a < OCTAVO_COUNT(at); a++) {
        for (size_t b = 0; b < OCTAVO_COUNT(at); b++) {
            octavo_map_will_need(&map, at[a], at[b]);
            octavo_map_drop(&map, at[a], at[b]);
        }
        check_content(&map, SIZE);
    }
    octavo_map_close(&map);
    octavo_map_will_need(&map, 0, 10);
    octavo_map_drop(&map, 0, 10);
}

#if defined(__linux__)
/* Pages of [data, data + size) that this process has mapped in, by /proc/self/pagemap. */
static size_t present_pages(const void *data, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/pagemap", "rb");
    if (file == NULL) return SIZE_MAX;
    size_t present = 0;
    bool read = fseek(file, (long)((uintptr_t)data / page * 8), SEEK_SET) == 0;
    for (size_t i = 0; read && i < (size + page - 1) / page; i++) {
        uint64_t entry = 0;
        read = fread(&entry, sizeof(entry), 1, file) == 1;
        present += entry >> 63;
    }
    (void)fclose(file);
    return read ? present : SIZE_MAX;
}

/* What is dropped leaves the process: the whole pages inside the range and nothing else. */
static void test_drop_drops(void **unused) {
    (void)unused;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = 16 * page + 100;
    octavo_map map = {0};
    assert_int_equal(octavo_map_open(&map, write_file(size), NULL), OCTAVO_OK);
    check_content(&map, size);
    if (present_pages(map.data, size) != 17) {
        octavo_map_close(&map);
        skip(); /* no page map here, or memory is very short */
    }
    octavo_map_drop(&map, page + 1, 3 * page); /* wholly inside: pages 2 and 3 */
    assert_int_equal(present_pages(map.data, size), 15);
    assert_int_equal(present_pages(map.data + 2 * page, 2 * page), 0);
    octavo_map_drop(&map, 15 * page, page + 100); /* the partial last page goes too */
    assert_int_equal(present_pages(map.data, size), 13);
    check_content(&map, size);
    octavo_map_close(&map);
}
#else
static void test_drop_drops(void **unused) {
    (void)unused;
    skip();
}
#endif

static void check_refused(const char *path, octavo_status expected, const char *why) {
    octavo_map map = {.data = (const uint8_t *)"kept", .size = 4};
    octavo_error error = {0};
    assert_int_equal(octavo_map_open(&map, path, &error), expected);
    assert_int_equal(error.status, expected);
    assert_non_null(strstr(error.message, path));
    assert_non_null(strstr(error.message, why));
    assert_int_equal(map.size, 4); /* untouched */
    assert_int_equal(octavo_map_open(&map, path, NULL), expected);
}

static void test_refusals(void **unused) {
    (void)unused;
    check_refused(path_of("absent"), OCTAVO_ERROR_NOT_FOUND, "does not exist");
    check_refused(folder, OCTAVO_ERROR_IO, "folder");
    check_refused("/dev/null", OCTAVO_ERROR_IO, "device");
    check_refused("/dev/zero", OCTAVO_ERROR_IO, "device");
    write_file(3);
    check_refused(path_of("file/under"), OCTAVO_ERROR_NOT_FOUND, "does not exist");
    check_refused("", OCTAVO_ERROR_NOT_FOUND, "does not exist");

    const char *pipe_path = path_of("pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    check_refused(pipe_path, OCTAVO_ERROR_IO, "pipe"); /* and does not hang */
    assert_int_equal(unlink(pipe_path), 0);

    octavo_map map = {0};
    assert_int_equal(octavo_map_open(&map, NULL, NULL), OCTAVO_ERROR_INVALID);
    if (geteuid() != 0) { /* root may read everything */
        const char *path = write_file(3);
        assert_int_equal(chmod(path, 0), 0);
        check_refused(path, OCTAVO_ERROR_IO, "permissions");
    }
}

static int make_folder(void **unused) {
    (void)unused;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **unused) {
    (void)unused;
    (void)unlink(path_of("file"));
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_drop_drops),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
