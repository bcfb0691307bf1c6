/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs: text and JSON both ways, and each message.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "sharding/spec.h"

#include <stdio.h>
#include <string.h>

static octavo_spec from_json(const char *text, const char *axes, octavo_error *error) {
    octavo_spec spec = {.n = -1};
    json_t *rule = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(rule);
    *error = (octavo_error){0};
    octavo_status status = octavo_spec_from_json(rule, axes, "WHERE", &spec, error);
    assert_int_equal(status == OCTAVO_OK, spec.n >= 0);
    assert_int_equal(status == OCTAVO_OK, error->message[0] == 0);
    json_decref(rule);
    return spec;
}

static void test_json(void **unused) {
    (void)unused;
    static const struct {
        const char *json, *axes, *text;
    } cases[] = {
        {"[\"data\", null]", "td", "(data, -)"},
        {"[null, [\"model\", \"expert\"]]", "tf", "(-, model+expert)"},
        {"[\"data\", [\"seq\"], []]", "tnh", "(data, seq, -)"},
        {"null", "tnh", "(-, -, -)"},
        {"null", "d", "(-)"},
        {"[null]", "d", "(-)"},
        {"[\"seq\"]", "d", "(seq)"},
        {"\"seq\"", "d", "(seq)"},
        {"[[\"data\", \"expert\", \"seq\", \"model\"], null]", "vd", "(data+expert+seq+model, -)"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(cases); i++) {
        octavo_error error;
        octavo_spec spec = from_json(cases[i].json, cases[i].axes, &error), read = {0};
        char text[OCTAVO_SPEC_TEXT];
        octavo_spec_print(&spec, text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(octavo_spec_parse(text, cases[i].axes, "", &read, NULL), OCTAVO_OK);
        assert_true(octavo_spec_equal(&read, &spec));
    }
}

#define HINT "a rule is null or an array with null, \"axis\" or [\"axis\", \"axis\"] for each axis"

static void test_json_errors(void **unused) {
    (void)unused;
    static const struct {
        const char *json, *axes, *message;
    } cases[] = {
        {"[\"dta\", null]", "td",
         "WHERE: unknown mesh axis \"dta\" for t; axes are data, expert, seq and model"},
        {"[null, [\"model\", \"tensor\\u001b\"]]", "td",
         "WHERE: unknown mesh axis \"tensor \" for d; axes are data, expert, seq and model"},
        {"[\"data\", \"data\"]", "td",
         "WHERE: mesh axis \"data\" splits axis 1 (t) and again axis 2 (d); it may split one axis "
         "of a tensor, once"},
        {"[null, [\"model\", \"model\"]]", "td",
         "WHERE: mesh axis \"model\" splits axis 2 (d) and again axis 2 (d); it may split one axis "
         "of a tensor, once"},
        {"[null]", "td",
         "WHERE: the number of entries, 1, is not that of the tensor's axes, 2 (td); give one for "
         "each, null for a whole one"},
        {"[null, null, null]", "td",
         "WHERE: the number of entries, 3, is not that of the tensor's axes, 2 (td); give one for "
         "each, null for a whole one"},
        {"[]", "d",
         "WHERE: the number of entries, 0, is not that of the tensor's axes, 1 (d); give one for "
         "each, null for a whole one"},
        {"\"data\"", "td", "WHERE: this is no rule; " HINT " (td)"},
        {"{\"t\": \"data\"}", "td", "WHERE: this is no rule; " HINT " (td)"},
        {"3", "d", "WHERE: this is no rule; " HINT " (d)"},
        {"[3, null]", "td", "WHERE: the entry for axis 1 (t) is not made of names; " HINT},
        {"[null, [null]]", "td", "WHERE: the entry for axis 2 (d) is not made of names; " HINT},
        {"[null, [[\"model\"]]]", "td",
         "WHERE: the entry for axis 2 (d) is not made of names; " HINT},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(cases); i++) {
        octavo_error error;
        from_json(cases[i].json, cases[i].axes, &error);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.status, OCTAVO_ERROR_INVALID);
    }
}

static void test_text_errors(void **unused) {
    (void)unused;
    static const struct {
        const char *text, *axes, *message;
    } cases[] = {
        {"", "d", "WHERE: \"\" is no rule; write one as \"(data, model+expert, -)\""},
        {"data, -", "td",
         "WHERE: \"data, -\" is no rule; write one as \"(data, model+expert, -)\""},
        {"(-)", "td",
         "WHERE: the number of entries of \"(-)\", 1, is not that of the tensor's axes, 2 (td); "
         "give one for each"},
        {"(-, -, -)", "td",
         "WHERE: the number of entries of \"(-, -, -)\", 3, is not that of the tensor's axes, 2 "
         "(td); give one for each"},
        {"(-, )", "td",
         "WHERE: unknown mesh axis \"\" for d; axes are data, expert, seq and model"},
        {"(data+, -)", "td",
         "WHERE: unknown mesh axis \"\" for t; axes are data, expert, seq and model"},
        {"(seq, model+seq)", "td",
         "WHERE: mesh axis \"seq\" splits axis 1 (t) and again axis 2 (d); it may split one axis "
         "of a tensor, once"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(cases); i++) {
        octavo_spec spec = {.n = -1};
        octavo_error error = {0};
        assert_int_equal(octavo_spec_parse(cases[i].text, cases[i].axes, "WHERE", &spec, &error),
                         OCTAVO_ERROR_INVALID);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(spec.n, -1);
    }
}

static uint32_t drawn(uint32_t *seed, uint32_t n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % n;
}

/* parse(print(x)) is x, for random legal specs; and from JSON. */
static void test_round_trip(void **unused) {
    (void)unused;
    uint32_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        static const char *const letters[] = {"d", "td", "tnh", "abcd"};
        const char *axes = letters[drawn(&seed, 4)];
        octavo_spec spec = octavo_spec_whole((int)strlen(axes)), read;
        octavo_error error = {0};
        char text[OCTAVO_SPEC_TEXT], json[512] = "[";
        const uint32_t first = drawn(&seed, OCTAVO_MESH_AXES);
        for (uint32_t a = 0; a < OCTAVO_MESH_AXES; a++) {
            const uint32_t entry = drawn(&seed, (uint32_t)spec.n + 2);
            if (entry >= (uint32_t)spec.n) continue;
            spec.split[entry] =
                octavo_split_add(spec.split[entry], (int)((first + a) % OCTAVO_MESH_AXES));
        }
        octavo_spec_print(&spec, text);
        if (octavo_spec_parse(text, axes, "rule", &read, &error)) fail_msg("%s", error.message);
        assert_true(octavo_spec_equal(&spec, &read));

        for (int i = 0; i < spec.n; i++) {
            size_t at = strlen(json);
            at += (size_t)snprintf(json + at, sizeof json - at, "%s[", i ? "," : "");
            for (int j = 0; j < spec.split[i].n; j++)
                at += (size_t)snprintf(json + at, sizeof json - at, "%s\"%s\"", j ? "," : "",
                                       octavo_mesh_axis_name(spec.split[i].axis[j]));
            snprintf(json + at, sizeof json - at, "]");
        }
        strcat(json, "]");
        read = from_json(json, axes, &error);
        assert_true(octavo_spec_equal(&spec, &read));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_errors),
        cmocka_unit_test(test_text_errors),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
