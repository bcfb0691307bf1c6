/* SPDX-License-Identifier: Apache-2.0
 *
 * The renderings of plans: lines of text are not too long, drawings and pages are well-formed and
 * stand alone, whatever is in the document.
 */
#include "cli/plan_compare.h"
#include "cli/plan_view.h"
#include "markup.h"
#include "plan_sample.h"

#include <stdbool.h>
#include <string.h>

typedef void put_function(octavo_buffer *out, const json_t *document);

/* The rendering, for octavo_buffer_deinit. */
static octavo_buffer render(put_function *put, const json_t *document) {
    octavo_buffer out = {0};
    octavo_buffer_puts(&out, "");
    put(&out, document);
    assert_false(out.failed);
    return out;
}

static void check_text(const json_t *document) {
    octavo_buffer text = render(octavo_view_put_text, document);
    for (const char *line = text.data; *line;) {
        size_t width = 0;
        const size_t length = strcspn(line, "\n");
        for (size_t i = 0; i < length; i++) {
            assert_true((unsigned char)line[i] >= ' ');
            width += ((unsigned char)line[i] & 0xc0) != 0x80;
        }
        if (width > 100) fail_msg("%zu columns: %.*s", width, (int)length, line);
        if (length > 0) assert_true(line[length - 1] != ' ');
        line += length + (line[length] == '\n');
    }
    octavo_buffer_deinit(&text);
}

static void check_markup(const json_t *document) {
    octavo_buffer svg = render(octavo_view_put_svg, document);
    octavo_buffer html = render(octavo_view_put_html, document);
    markup_check(svg.data);
    markup_check_alone(svg.data);
    markup_check(html.data);
    markup_check_alone(html.data);
    assert_non_null(strstr(html.data, "Content-Security-Policy"));
    octavo_buffer_deinit(&svg);
    octavo_buffer_deinit(&html);
}

static json_t *compare(json_t *a, json_t *b) {
    static const char *const names[2] = {"a.json", "b.json"};
    json_t *const plans[2] = {a, b};
    json_t *document = octavo_view_compare(names, plans);
    assert_non_null(document);
    return document;
}

static void test_meshes(void **state) {
    static const int meshes[][4] = {{1, 1, 1, 1}, {1, 1, 1, 2},  {2, 1, 1, 3}, {2, 2, 2, 2},
                                    {1, 8, 1, 1}, {16, 1, 1, 4}, {1, 1, 64, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        const int *m = meshes[i];
        json_t *plan = plan_sample(m[0], m[1], m[2], m[3], 6);
        json_t *both = compare(plan, plan);
        check_text(plan);
        check_markup(plan);
        check_text(both);
        check_markup(both);
        json_decref(both);
        json_decref(plan);
    }
}

static void expect(const octavo_buffer *out, const char *part) {
    if (!strstr(out->data, part)) fail_msg("no \"%s\" in:\n%s", part, out->data);
}

static void test_text(void **state) {
    json_t *plan = plan_sample(1, 1, 1, 2, 6);
    octavo_buffer text = render(octavo_view_put_text, plan);
    (void)state;
    expect(&text, "Model: sample: 6 layers, width 64, 6 query and 3 key/value heads\n");
    expect(&text, "Mesh: model 2 = 2 ranks\n");
    expect(&text, "Rules: logits_tv = (data, -)\n");
    expect(&text, "Warning: more ranks than slices\n");
    expect(&text, "  weights      6.00 MB   60.0 %\n");
    expect(&text, "  in all       10.0 MB  100.0 %\n");
    expect(&text, " layers 0-5: 12.0 MB sent by a rank\n");
    expect(&text, " 3 of layers 1-5: 1.50 MB sent by a rank\n");
    expect(&text, " outside of layers: 3.00 MB sent by a rank\n");
    expect(&text, "(data, model)");
    octavo_buffer_deinit(&text);

    json_object_del(plan, "generate");
    text = render(octavo_view_put_text, plan);
    assert_null(strstr(text.data, "generate"));
    octavo_buffer_deinit(&text);
    json_decref(plan);
}

/* A cell for each shard, a band in it for each rank that holds it. */
static void test_cells(void **state) {
    json_t *plan = plan_sample(2, 1, 1, 3, 2), *none = plan_sample(2, 1, 1, 3, 2);
    (void)state;
    json_array_clear(json_object_get(none, "tensors"));
    octavo_buffer with = render(octavo_view_put_svg, plan);
    octavo_buffer without = render(octavo_view_put_svg, none);
    /* ffw_weight_df: 3 shards; moe_router_de: 3; vocab_dv: 1; keyvalue_skh: 6; activation_td: 2 */
    assert_int_equal(markup_count(with.data, "g") - markup_count(without.data, "g"),
                     3 + 3 + 1 + 6 + 2);
    /* every rank is in one band of each tensor, and each cell has a frame; a bar for each of the
     * four tensors that fill memory */
    assert_int_equal(markup_count(with.data, "rect") - markup_count(without.data, "rect"),
                     5 * 6 + 15 + 4);
    octavo_buffer_deinit(&with);
    octavo_buffer_deinit(&without);
    json_decref(plan);
    json_decref(none);
}

/* However many ranks there are, a drawing stays small enough to look at. */
static void test_large(void **state) {
    static const int meshes[][4] = {
        {4, 16, 1, 16}, {1, 1024, 1, 1}, {1, 1, 1, 1024}, {32, 32, 4, 8}, {1, 1, 1 << 17, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        const int *m = meshes[i];
        json_t *plan = plan_sample(m[0], m[1], m[2], m[3], 61);
        octavo_buffer svg = render(octavo_view_put_svg, plan);
        markup_check(svg.data);
        if (svg.size > 600000) fail_msg("%zu bytes", svg.size);
        octavo_buffer_deinit(&svg);
        check_text(plan);
        json_decref(plan);
    }
}

static void test_search(void **state) {
    json_t *document = plan_sample_search(3);
    (void)state;
    check_text(document);
    octavo_buffer text = render(octavo_view_put_text, document);
    octavo_buffer svg = render(octavo_view_put_svg, document);
    octavo_buffer html = render(octavo_view_put_html, document);
    expect(&text, "The best rules found");
    expect(&text, "\n   3 ");
    assert_int_equal(svg.size, 0);
    markup_check(html.data);
    markup_check_alone(html.data);
    octavo_buffer_deinit(&text);
    octavo_buffer_deinit(&svg);
    octavo_buffer_deinit(&html);
    json_decref(document);
}

/* ---- what a document may hold ---- */

static const char hostile[] = "</style><script>alert('&\"')</script>\033[2J\001";

/* Every text of a value becomes hostile. */
static void poison(json_t *value) {
    const char *key;
    json_t *item;
    size_t i;
    json_object_foreach(value, key, item) {
        if (json_is_string(item))
            json_string_set(item, hostile);
        else
            poison(item);
    }
    json_array_foreach(value, i, item) {
        if (json_is_string(item))
            json_string_set(item, hostile);
        else
            poison(item);
    }
}

static void test_hostile(void **state) {
    json_t *plan = plan_sample(1, 1, 1, 2, 3), *search = plan_sample_search(2);
    (void)state;
    poison(plan);
    json_object_set_new(plan, "rules", json_pack("{s:{s:[s]}}", "all", hostile, hostile));
    poison(search);
    json_t *both = compare(plan, plan);
    check_markup(plan);
    check_markup(both);
    octavo_buffer html = render(octavo_view_put_html, search);
    markup_check(html.data);
    markup_check_alone(html.data);
    octavo_buffer_deinit(&html);
    octavo_buffer text = render(octavo_view_put_text, plan);
    assert_null(strchr(text.data, '\033'));
    assert_null(strchr(text.data, '\001'));
    octavo_buffer_deinit(&text);
    json_decref(both);
    json_decref(plan);
    json_decref(search);
}

static json_t *odd_value(unsigned which) {
    static const char *const odd[] = {"null",
                                      "\"text\"",
                                      "-1",
                                      "1e300",
                                      "0",
                                      "[]",
                                      "{}",
                                      "[[[]]]",
                                      "true",
                                      "-1e300",
                                      "9223372036854775807",
                                      "[null]"};
    return json_loads(odd[which % (sizeof odd / sizeof *odd)], JSON_DECODE_ANY, NULL);
}

/* Sets each place of `value` in turn to something odd, and renders `document`. */
static void bend(json_t *document, json_t *value, unsigned *turn) {
    const char *key;
    json_t *item;
    size_t i, n = json_array_size(value);
    void *next;
    json_object_foreach_safe(value, next, key, item) {
        json_incref(item);
        json_object_set_new(value, key, odd_value((*turn)++));
        check_markup(document);
        json_object_set(value, key, item);
        bend(document, item, turn);
        json_decref(item);
    }
    for (i = 0; i < n && i < 4; i++) {
        item = json_incref(json_array_get(value, i));
        json_array_set_new(value, i, odd_value((*turn)++));
        check_markup(document);
        octavo_buffer text = render(octavo_view_put_text, document);
        octavo_buffer_deinit(&text);
        json_array_set(value, i, item);
        bend(document, item, turn);
        json_decref(item);
    }
}

static void test_bent(void **state) {
    json_t *plan = plan_sample(1, 1, 1, 2, 2), *other = plan_sample(1, 1, 1, 2, 2);
    unsigned turn = 0;
    (void)state;
    for (int round = 0; round < 5; round++)
        bend(plan, plan, &turn);
    assert_true(turn > 500);
    json_t *both = compare(plan, other);
    bend(both, json_object_get(both, "difference"), &turn);
    json_decref(both);
    json_decref(plan);
    json_decref(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meshes), cmocka_unit_test(test_text),
        cmocka_unit_test(test_cells),  cmocka_unit_test(test_large),
        cmocka_unit_test(test_search), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_bent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
