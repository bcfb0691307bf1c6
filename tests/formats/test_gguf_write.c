/* SPDX-License-Identifier: Apache-2.0
 *
 * The GGUF writer: metadata of every kind copied byte for byte, data in pieces, alignment, and a
 * file that has its name only when it is whole.
 */
#include "../gguf_writer.h"
#include "../unit.h"
#include "formats/gguf_write.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/octavo-gguf-write-XXXXXX";
static char path[64];

static int setup(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/out.gguf", folder);
    return 0;
}

static int count_files(void) {
    int n = 0;
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (struct dirent *one = readdir(all); one; one = readdir(all))
        n += one->d_name[0] != '.';
    closedir(all);
    return n;
}

static int teardown(void **state) {
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static void must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

/* A file with a value of each kind, arrays within arrays too. */
static void fill_source(gguf_writer *w, uint32_t alignment) {
    gguf_writer_init(w, 3, alignment);
    for (int type = 0; type <= OCTAVO_GGUF_F64; type++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", type);
        if (type == OCTAVO_GGUF_STRING)
            gguf_writer_string(w, key, "a text");
        else if (type == OCTAVO_GGUF_ARRAY)
            gguf_writer_strings(w, key, (const char *const[]){"", "b", "cd"}, 3);
        else
            gguf_writer_integer(w, key, (octavo_gguf_type)type, 1);
    }
    octavo_buffer *nested = gguf_writer_array(w, "nested", OCTAVO_GGUF_ARRAY, 2);
    gguf_put_array(nested, OCTAVO_GGUF_U8, 3);
    octavo_buffer_append(nested, "\1\2\3", 3);
    gguf_put_array(nested, OCTAVO_GGUF_STRING, 1);
    gguf_put_string(nested, "deep");
    static const float values[66] = {1, 2, 3, [65] = 4};
    gguf_writer_tensor(w, "a", OCTAVO_GGML_F32, 2, (const uint64_t[]){33, 2}, values, 33 * 2 * 4);
    gguf_writer_tensor(w, "b", OCTAVO_GGML_Q8_0, 1, (const uint64_t[]){32}, values, 34);
    gguf_writer_tensor(w, "c", OCTAVO_GGML_I8, 4, (const uint64_t[]){3, 1, 1, 1}, "xyz", 3);
}

/* A copy must be the very bytes; with data given a byte at a time, or whole. */
static void check_copy(uint32_t alignment, size_t piece) {
    gguf_writer w;
    octavo_gguf *source = NULL;
    octavo_gguf_writer *writer = NULL;
    octavo_error error;
    size_t size;
    fill_source(&w, alignment);
    const uint8_t *bytes = gguf_writer_finish(&w, &size);
    must(octavo_gguf_parse(bytes, size, "source", &source, &error), &error);
    must(octavo_gguf_writer_open(path, &writer, &error), &error);
    for (size_t i = 0; i < octavo_gguf_n_metadata(source); i++)
        octavo_gguf_writer_copy_metadata(writer, source, i);
    for (size_t i = 0; i < octavo_gguf_n_tensors(source); i++) {
        const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(source, i);
        octavo_gguf_writer_add_tensor(writer, tensor, tensor->type);
    }
    must(octavo_gguf_writer_begin(writer, &error), &error);
    for (size_t i = 0; i < octavo_gguf_n_tensors(source); i++) {
        const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(source, i);
        for (size_t at = 0; at < tensor->bytes; at += piece) {
            const size_t left = tensor->bytes - at;
            must(octavo_gguf_writer_data(writer, tensor->data + at, left < piece ? left : piece,
                                         &error),
                 &error);
        }
    }
    must(octavo_gguf_writer_finish(writer, &error), &error);
    const uint64_t written = octavo_gguf_writer_bytes(writer);
    octavo_gguf_writer_close(&writer);
    assert_int_equal(count_files(), 1);

    uint8_t back[1 << 15];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t n = fread(back, 1, sizeof back, file);
    fclose(file);
    assert_int_equal(n, written);
    /* this writer pads behind the last tensor too */
    assert_in_range(n, size, size + alignment - 1);
    assert_memory_equal(back, bytes, size);
    octavo_gguf_close(&source);
    gguf_writer_deinit(&w);
}

static void test_copies_are_equal(void **state) {
    (void)state;
    check_copy(32, 1);
    check_copy(32, 1000);
    check_copy(8, 7);
    check_copy(4096, 100);
}

static void test_unfinished_leaves_nothing(void **state) {
    octavo_gguf_writer *writer = NULL;
    octavo_error error;
    (void)state;
    (void)unlink(path);
    must(octavo_gguf_writer_open(path, &writer, &error), &error);
    octavo_gguf_writer_put_u32(writer, "k", 1);
    must(octavo_gguf_writer_begin(writer, &error), &error);
    assert_int_equal(count_files(), 1);
    octavo_gguf_writer_close(&writer);
    assert_null(writer);
    assert_int_equal(count_files(), 0);
    octavo_gguf_writer_close(&writer);
}

static void test_refused(void **state) {
    octavo_gguf_writer *writer = NULL;
    octavo_error error;
    (void)state;
    assert_int_equal(octavo_gguf_writer_open(folder, &writer, &error), OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "is a folder"));
    assert_int_equal(octavo_gguf_writer_open("/dev/null", &writer, &error), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_gguf_writer_open("/no/such/folder", &writer, &error), OCTAVO_ERROR_IO);
    assert_non_null(strstr(error.message, "can be written"));
    assert_null(writer);
}

/* Reading what is not written yet must not need room that the disk may not have then. */
static void test_stretched_has_room(void **state) {
    const octavo_gguf_tensor like = {.name = "a", .n_dims = 1, .extent = {1 << 18, 1, 1, 1}};
    octavo_gguf_writer *writer = NULL;
    octavo_error error;
    struct stat facts;
    (void)state;
    must(octavo_gguf_writer_open(path, &writer, &error), &error);
    octavo_gguf_writer_add_tensor(writer, &like, OCTAVO_GGML_F32);
    must(octavo_gguf_writer_begin(writer, &error), &error);
    must(octavo_gguf_writer_stretch(writer, &error), &error);
    assert_int_equal(stat(octavo_gguf_writer_partial(writer), &facts), 0);
    assert_in_range(facts.st_size, 1 << 20, (1 << 20) + 4096);
    assert_in_range(facts.st_blocks * 512, 1 << 20, 1 << 22);
    octavo_gguf_writer_close(&writer);
}

/* The link stays and what it leads to is replaced. */
static void test_link(void **state) {
    char link[sizeof path];
    octavo_gguf_writer *writer = NULL;
    octavo_error error;
    struct stat facts;
    (void)state;
    snprintf(link, sizeof link, "%s/link", folder);
    FILE *old = fopen(path, "wb");
    assert_non_null(old);
    fclose(old);
    assert_int_equal(symlink(path, link), 0);
    must(octavo_gguf_writer_open(link, &writer, &error), &error);
    must(octavo_gguf_writer_begin(writer, &error), &error);
    must(octavo_gguf_writer_finish(writer, &error), &error);
    octavo_gguf_writer_close(&writer);
    assert_int_equal(lstat(link, &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    assert_int_equal(stat(path, &facts), 0);
    assert_true(facts.st_size > 0);
    assert_int_equal(unlink(link), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_are_equal),
        cmocka_unit_test(test_unfinished_leaves_nothing),
        cmocka_unit_test(test_stretched_has_room),
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("gguf_write", tests, setup, teardown);
}
