/* SPDX-License-Identifier: Apache-2.0
 *
 * Meshes: ranks and places, text, inferred degrees, and each message.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "sharding/mesh.h"

#include <string.h>

static octavo_mesh parsed(const char *text, int devices) {
    octavo_mesh mesh = {{0}};
    octavo_error error = {0};
    if (octavo_mesh_parse(text, devices, &mesh, &error)) fail_msg("%s", error.message);
    return mesh;
}

static void assert_mesh(const char *text, int devices, const char *expected) {
    const octavo_mesh mesh = parsed(text, devices);
    char shown[OCTAVO_MESH_TEXT];
    octavo_mesh_print(&mesh, shown);
    assert_string_equal(shown, expected);
}

static void test_parse(void **unused) {
    (void)unused;
    assert_mesh("data=1,expert=1,seq=1,model=4", 0, "data=1,expert=1,seq=1,model=4");
    assert_mesh("", 0, "data=1,expert=1,seq=1,model=1");
    assert_mesh("", 1, "data=1,expert=1,seq=1,model=1");
    assert_mesh("model=3", 3, "data=1,expert=1,seq=1,model=3");
    assert_mesh("model=2,data=5", 10, "data=5,expert=1,seq=1,model=2");
    assert_mesh("model=-1", 8, "data=1,expert=1,seq=1,model=8");
    assert_mesh("data=2,seq=-1,model=4", 24, "data=2,expert=1,seq=3,model=4");
    assert_mesh("data=2,seq=-1,model=4", 8, "data=2,expert=1,seq=1,model=4");
    assert_mesh("expert=1024,model=1024", 0, "data=1,expert=1024,seq=1,model=1024");
    assert_mesh("model=004", 0, "data=1,expert=1,seq=1,model=4");
}

static void test_errors(void **unused) {
    (void)unused;
    static const struct {
        const char *text;
        int devices;
        const char *message;
    } cases[] = {
        {"modle=4", 0,
         "mesh \"modle=4\": unknown axis \"modle\"; axes are data, expert, seq and model, as in "
         "\"data=2,model=4\""},
        {"model=2,model=2", 0,
         "mesh \"model=2,model=2\": axis \"model\" is given twice; leave one of them out"},
        {"model", 0,
         "mesh \"model\": \"model\" is not of the form AXIS=DEGREE; axes are data, expert, seq and "
         "model, as in \"data=2,model=4\""},
        {"model=2,", 0,
         "mesh \"model=2,\": \"\" is not of the form AXIS=DEGREE; axes are data, expert, seq and "
         "model, as in \"data=2,model=4\""},
        {"=2", 0,
         "mesh \"=2\": unknown axis \"\"; axes are data, expert, seq and model, as in "
         "\"data=2,model=4\""},
        {"model=four", 0,
         "mesh \"model=four\": the degree of model is \"four\", which is no whole number; give one "
         "from 1, or -1"},
        {"model=", 0,
         "mesh \"model=\": the degree of model is \"\", which is no whole number; give one from 1, "
         "or -1"},
        {"model=2.5", 0,
         "mesh \"model=2.5\": the degree of model is \"2.5\", which is no whole number; give one "
         "from 1, or -1"},
        {"model=0", 0,
         "mesh \"model=0\": model has degree 0; a degree is 1 or more, or -1 for as many as the "
         "devices leave over"},
        {"seq=-2", 4,
         "mesh \"seq=-2\": seq has degree -2; a degree is 1 or more, or -1 for as many as the "
         "devices leave over"},
        {"data=-1,model=-1", 4,
         "mesh \"data=-1,model=-1\": both data and model are -1; one axis may be inferred, give "
         "the other its degree"},
        {"model=-1", 0,
         "mesh \"model=-1\": model is -1, but there is no number of devices to infer it from; give "
         "the devices or its degree"},
        {"data=3,model=-1", 8,
         "mesh \"data=3,model=-1\": model cannot be inferred, since the product of the others, 3, "
         "does not divide the devices, 8; data=8,expert=1,seq=1,model=1 would fit"},
        {"data=2,model=2", 8,
         "mesh \"data=2,model=2\": the product of the degrees is 4, but the devices are 8; "
         "data=2,expert=1,seq=1,model=4 would fit"},
        {"data=3,model=2", 8,
         "mesh \"data=3,model=2\": the product of the degrees is 6, but the devices are 8; "
         "data=4,expert=1,seq=1,model=2 would fit"},
        {"data=3,model=3", 8,
         "mesh \"data=3,model=3\": the product of the degrees is 9, but the devices are 8; "
         "data=1,expert=1,seq=1,model=8 would fit"},
        {"", 4,
         "mesh \"\": the product of the degrees is 1, but the devices are 4; "
         "data=1,expert=1,seq=1,model=4 would fit"},
        {"model=2097152", 0,
         "mesh \"model=2097152\": with degree 2097152 of model there are more ranks than 1048576; "
         "take smaller degrees"},
        {"data=2048,model=1024", 0,
         "mesh \"data=2048,model=1024\": with degree 1024 of model there are more ranks than "
         "1048576; take smaller degrees"},
        {"model=1", -3,
         "mesh \"model=1\": -3 devices; there may be 1 to 1048576, or 0 for as many as the degrees "
         "make"},
        {"m\x1b[31m=1", 0,
         "mesh \"m [31m=1\": unknown axis \"m [31m\"; axes are data, expert, seq and model, as in "
         "\"data=2,model=4\""},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(cases); i++) {
        octavo_mesh mesh = {{7, 7, 7, 7}};
        octavo_error error = {0};
        assert_int_equal(octavo_mesh_parse(cases[i].text, cases[i].devices, &mesh, &error),
                         OCTAVO_ERROR_INVALID);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(mesh.degree[0] + mesh.degree[3], 14); /* untouched */
    }
}

/* Degrees of any number of digits, and texts of any length. */
static void test_long(void **unused) {
    (void)unused;
    octavo_mesh mesh = {{0}};
    octavo_error error = {0};
    char text[4000];
    memset(text, '9', sizeof text);
    memcpy(text, "model=", 6);
    text[sizeof text - 1] = 0;
    assert_int_equal(octavo_mesh_parse(text, 0, &mesh, &error), OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "more ranks than"));
    memcpy(text, "model=-", 7);
    assert_int_equal(octavo_mesh_parse(text, 0, &mesh, &error), OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "a degree is 1 or more"));
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(octavo_mesh_parse(text, 0, &mesh, &error), OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "as in \"data=2,model=4\""));
}

static void test_infer(void **unused) {
    (void)unused;
    const int64_t most = INT64_MAX;
    const int64_t huge[] = {most, most, most, most}, least[] = {INT64_MIN, 1, 1, 1};
    const int64_t open[] = {2, 1, 1, -1};
    octavo_mesh mesh = {{0}};
    octavo_error error = {0};
    assert_int_equal(octavo_mesh_infer(huge, 0, "mesh", &mesh, &error), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_mesh_infer(least, 0, "mesh", &mesh, NULL), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_mesh_infer(open, 6, "mesh", &mesh, NULL), OCTAVO_OK);
    assert_int_equal(mesh.degree[OCTAVO_MESH_MODEL], 3);
}

/* print(parse(x)) is x, ranks are numbered with model fastest, and places give ranks back. */
static void test_round_trip(void **unused) {
    (void)unused;
    uint32_t seed = 6;
    for (int i = 0; i < 200; i++) {
        octavo_mesh mesh;
        char text[OCTAVO_MESH_TEXT], again[OCTAVO_MESH_TEXT];
        for (int a = 0; a < OCTAVO_MESH_AXES; a++) {
            seed = seed * 1664525u + 1013904223u;
            mesh.degree[a] = 1 + (int)(seed >> 24) % 5;
        }
        octavo_mesh_print(&mesh, text);
        const octavo_mesh back = parsed(text, octavo_mesh_ranks(&mesh));
        octavo_mesh_print(&back, again);
        assert_string_equal(text, again);
        for (int rank = 0; rank < octavo_mesh_ranks(&mesh); rank++) {
            const octavo_place place = octavo_mesh_place(&mesh, rank);
            assert_int_equal(octavo_mesh_rank(&mesh, &place), rank);
            assert_int_equal(place.at[OCTAVO_MESH_MODEL], rank % mesh.degree[OCTAVO_MESH_MODEL]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),      cmocka_unit_test(test_errors),
        cmocka_unit_test(test_long),       cmocka_unit_test(test_infer),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
