/* SPDX-License-Identifier: Apache-2.0
 *
 * What is read from a plan's document: meshes, splits, groups of collectives; the words for them;
 * and what two plans differ in.
 */
#include "cli/plan_compare.h"
#include "cli/plan_words.h"
#include "plan_sample.h"

#include <string.h>

static json_t *parse(const char *text) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    return value;
}

static octavo_view_mesh mesh_of(const char *degrees) {
    json_t *plan = json_pack("{s:o}", "mesh", parse(degrees));
    const octavo_view_mesh mesh = octavo_view_mesh_of(plan);
    json_decref(plan);
    return mesh;
}

static void test_mesh(void **state) {
    (void)state;
    const octavo_view_mesh mesh = mesh_of("{\"data\":2,\"expert\":3,\"seq\":1,\"model\":5}");
    assert_int_equal(mesh.ranks, 30);
    int64_t rank = 0;
    for (int data = 0; data < 2; data++)
        for (int expert = 0; expert < 3; expert++)
            for (int model = 0; model < 5; model++, rank++) {
                assert_int_equal(octavo_view_place(&mesh, rank, 0), data);
                assert_int_equal(octavo_view_place(&mesh, rank, 1), expert);
                assert_int_equal(octavo_view_place(&mesh, rank, 2), 0);
                assert_int_equal(octavo_view_place(&mesh, rank, 3), model);
            }
    assert_int_equal(mesh_of("{\"model\":4}").ranks, 4);
    assert_int_equal(mesh_of("{\"model\":-4, \"data\":2}").ranks, 2);
    assert_int_equal(mesh_of("{\"model\":1000000, \"data\":1000000}").ranks, 1);
    assert_int_equal(mesh_of("[]").ranks, 1);
}

static octavo_view_split split_of(const char *entry) {
    json_t *value = parse(entry);
    const octavo_view_split split = octavo_view_split_of(value);
    json_decref(value);
    return split;
}

static void test_splits(void **state) {
    (void)state;
    const octavo_view_mesh mesh = mesh_of("{\"data\":2,\"expert\":3,\"seq\":1,\"model\":5}");
    const octavo_view_split both = split_of("[\"model\", \"expert\"]");
    const octavo_view_split whole = split_of("null");
    assert_int_equal(octavo_view_split_degree(&both, &mesh), 15);
    assert_int_equal(octavo_view_split_degree(&whole, &mesh), 1);
    for (int64_t rank = 0; rank < 30; rank++) {
        const int64_t expert = rank / 5 % 3, model = rank % 5;
        assert_int_equal(octavo_view_split_index(&both, &mesh, rank), model * 3 + expert);
        assert_int_equal(octavo_view_split_index(&whole, &mesh, rank), 0);
    }
    const octavo_view_split one = split_of("\"seq\""), odd = split_of("[\"x\", 3, \"model\"]");
    assert_int_equal(one.n, 1);
    assert_int_equal(one.axis[0], 2);
    assert_int_equal(odd.n, 1);
    assert_int_equal(split_of("[\"data\",\"data\",\"data\",\"data\",\"data\"]").n, 1);
}

static void test_groups(void **state) {
    json_t *plan = plan_sample(1, 1, 1, 2, 5);
    octavo_view_groups groups;
    (void)state;
    assert_true(octavo_view_groups_make(json_object_get(plan, "prefill"), &groups));
    assert_int_equal(groups.n, 4);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(groups.items[i].count, 5);
        assert_int_equal(groups.items[i].n_layers, 5);
        assert_int_equal(groups.items[i].from, 0);
        assert_int_equal(groups.items[i].to, 4);
        assert_true(octavo_view_same_layers(&groups.items[0], &groups.items[i]));
    }
    assert_int_equal(groups.items[2].count, 2); /* of layers 1 and 3 */
    assert_int_equal(groups.items[2].from, 1);
    assert_int_equal(groups.items[2].to, 3);
    assert_int_equal(groups.items[3].from, -1);
    assert_int_equal(groups.items[3].count, 1);
    octavo_view_groups_deinit(&groups);
    assert_true(octavo_view_groups_make(NULL, &groups));
    assert_int_equal(groups.n, 0);
    octavo_view_groups_deinit(&groups);
    json_decref(plan);
}

/* Groups of the same layers stand together, whatever the order in the document. */
static void test_groups_order(void **state) {
    json_t *phase = parse("{\"collectives\":["
                          "{\"op\":\"a\",\"layer\":0},{\"op\":\"x\",\"layer\":null},"
                          "{\"op\":\"b\",\"layer\":0},{\"op\":\"c\",\"layer\":1},"
                          "{\"op\":\"a\",\"layer\":0},{\"op\":\"y\"}]}");
    octavo_view_groups groups;
    (void)state;
    assert_true(octavo_view_groups_make(phase, &groups));
    static const char order[] = "abxyc";
    assert_int_equal(groups.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(octavo_view_text(groups.items[i].first, "op")[0], order[i]);
    assert_int_equal(groups.items[0].count, 2);
    assert_int_equal(groups.items[0].n_layers, 1);
    octavo_view_groups_deinit(&groups);
    json_decref(phase);
}

static void test_layers(void **state) {
    (void)state;
    assert_int_equal(octavo_view_layers_count("0-29"), 30);
    assert_int_equal(octavo_view_layers_count("3"), 1);
    assert_int_equal(octavo_view_layers_count("0-2,5,7-8"), 6);
    assert_int_equal(octavo_view_layers_count(""), 1);
    assert_int_equal(octavo_view_layers_count("x"), 1);
    assert_int_equal(octavo_view_layers_count("0-9223372036854775807"), 1);

    static const struct {
        const char *tensor, *where;
        int count;
    } cases[] = {
        {"{\"layers\": \"0-2\"}", "0-2", 3},
        {"{\"layers\": \"0-2\", \"count\": 3}", "0-2", 3},
        {"{\"layers\": \"0-2\", \"count\": 6}", "0-2 x2", 6},
        {"{\"layers\": null, \"count\": 1}", "", 1},
        {"{\"count\": 2}", "x2", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *tensor = parse(cases[i].tensor);
        octavo_buffer out = {0};
        octavo_buffer_puts(&out, "");
        octavo_view_put_where(&out, tensor);
        assert_string_equal(out.data, cases[i].where);
        assert_int_equal(octavo_view_count(tensor), cases[i].count);
        octavo_buffer_deinit(&out);
        json_decref(tensor);
    }
}

typedef void put_function(octavo_buffer *out, double value);

static void says(put_function *put, double value, const char *want) {
    octavo_buffer out = {0};
    put(&out, value);
    assert_string_equal(out.data, want);
    octavo_buffer_deinit(&out);
}

static void test_numbers(void **state) {
    (void)state;
    says(octavo_view_put_bytes, 0, "0 B");
    says(octavo_view_put_bytes, 999, "999 B");
    says(octavo_view_put_bytes, 1000, "1.00 kB");
    says(octavo_view_put_bytes, 9996, "10.0 kB");
    says(octavo_view_put_bytes, 123456, "123 kB");
    says(octavo_view_put_bytes, 999999, "1.00 MB");
    says(octavo_view_put_bytes, 1.5e9, "1.50 GB");
    says(octavo_view_put_bytes, 2e18, "2000 PB");
    says(octavo_view_put_seconds, 0, "0 ns");
    says(octavo_view_put_seconds, 1.5e-9, "1.50 ns");
    says(octavo_view_put_seconds, 1.234e-5, "12.3 us");
    says(octavo_view_put_seconds, 0.375, "375 ms");
    says(octavo_view_put_seconds, 3600, "3600 s");
    says(octavo_view_put_count, 0, "0");
    says(octavo_view_put_count, 12.25, "12.2");
    says(octavo_view_put_count, 999, "999");
    says(octavo_view_put_count, 1234567, "1,234,567");
    says(octavo_view_put_count, -3, "-3");
    says(octavo_view_put_more_bytes, 0, "0");
    says(octavo_view_put_more_bytes, -1500, "-1.50 kB");
    says(octavo_view_put_more_seconds, 0.5, "+500 ms");
}

static void test_words(void **state) {
    octavo_buffer out = {0};
    octavo_view_mesh mesh = mesh_of("{\"data\":2,\"model\":4}");
    json_t *spec = parse("[\"data\", null, [\"model\", \"expert\"]]");
    json_t *rules = parse("{\"all\": {\"logits_tv\": [\"data\", null]}, \"prefill\": "
                          "{\"activation_td\": {\"layers\": \"0-3\", \"rule\": [null, null]}}}");
    (void)state;
    octavo_view_put_mesh(&out, &mesh);
    octavo_buffer_putc(&out, '\n');
    octavo_view_put_spec(&out, spec);
    octavo_buffer_putc(&out, '\n');
    octavo_view_put_rules(&out, rules, "; ");
    octavo_buffer_putc(&out, '\n');
    octavo_view_put_plain(&out, "a\033[2Jb\nc\x7f");
    octavo_buffer_putc(&out, '\n');
    octavo_view_put_escaped(&out, "<a href='x'>&\"\001\xef\xbf\xbf");
    assert_string_equal(out.data, "data 2 x model 4 = 8 ranks\n"
                                  "(data, -, model+expert)\n"
                                  "logits_tv = (data, -); prefill: activation_td = "
                                  "{\"layers\": \"0-3\", \"rule\": [null, null]}\n"
                                  "a [2Jb c \n"
                                  "&lt;a href=&#39;x&#39;&gt;&amp;&quot; ?");
    octavo_buffer_deinit(&out);
    json_decref(spec);
    json_decref(rules);
}

/* ---- two plans ---- */

static void test_compare(void **state) {
    static const char *const names[2] = {"a.json", "b\xff.json"};
    json_t *plans[2] = {plan_sample(1, 1, 1, 2, 4), plan_sample(1, 1, 1, 2, 4)};
    (void)state;
    /* the second sends no logits in prefill, and 500 bytes more with the first collective */
    json_t *prefill = json_object_get(plans[1], "prefill");
    json_t *collectives = json_object_get(prefill, "collectives");
    assert_int_equal(json_array_remove(collectives, json_array_size(collectives) - 1), 0);
    json_object_set_new(json_array_get(collectives, 0), "wire_bytes", json_integer(1000500));
    json_object_set_new(prefill, "wire_bytes_per_rank", json_integer(7));
    json_object_set_new(json_object_get(prefill, "time"), "total_s", json_real(0.5));
    json_object_set_new(json_object_get(plans[1], "memory_per_rank"), "cache", json_integer(1));

    json_t *document = octavo_view_compare(names, plans);
    assert_non_null(document);
    assert_true(octavo_view_is_compare(document));
    const json_t *difference = json_object_get(document, "difference");
    const json_t *memory = json_object_get(difference, "memory_per_rank");
    assert_int_equal(json_integer_value(json_object_get(memory, "cache")), -2999999);
    assert_int_equal(json_integer_value(json_object_get(memory, "weights")), 0);
    const json_t *phase = json_object_get(difference, "prefill");
    assert_int_equal(json_integer_value(json_object_get(phase, "wire_bytes_per_rank")),
                     7 - (3000000 + 8000000 + 1000000));
    assert_true(octavo_view_number(json_object_get(phase, "time"), "total_s") == 0.125);
    const json_t *rows = json_object_get(phase, "collectives");
    assert_int_equal(json_array_size(rows), 2);
    const json_t *more = json_array_get(rows, 0), *less = json_array_get(rows, 1);
    assert_string_equal(octavo_view_text(more, "tensor"), "activation_attention_out_td");
    assert_true(octavo_view_number(json_object_get(more, "a"), "wire_bytes") == 4000000);
    assert_true(octavo_view_number(json_object_get(more, "b"), "wire_bytes") == 4000500);
    assert_true(octavo_view_number(json_object_get(more, "b"), "count") == 4);
    assert_string_equal(octavo_view_text(less, "tensor"), "logits_tv");
    assert_true(octavo_view_number(json_object_get(less, "a"), "count") == 1);
    assert_true(octavo_view_number(json_object_get(less, "b"), "count") == 0);
    assert_int_equal(
        json_array_size(json_object_get(json_object_get(difference, "generate"), "collectives")),
        0);
    const json_t *named = json_array_get(json_object_get(document, "compare"), 1);
    assert_string_equal(octavo_view_text(named, "name"), "b\xef\xbf\xbd.json");
    json_decref(document);

    /* a phase that only one has is not compared */
    json_object_del(plans[0], "generate");
    document = octavo_view_compare(names, plans);
    assert_non_null(document);
    assert_null(json_object_get(json_object_get(document, "difference"), "generate"));
    json_decref(document);
    json_decref(plans[0]);
    json_decref(plans[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mesh),   cmocka_unit_test(test_splits),
        cmocka_unit_test(test_groups), cmocka_unit_test(test_groups_order),
        cmocka_unit_test(test_layers), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_words),  cmocka_unit_test(test_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
