/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests: what may stand behind `is`.
 */
#include "text/template_eval.h"

#define TEST(name)                                                                                 \
    static octavo_tpl_value name(octavo_tpl_run *run, octavo_tpl_value input,                      \
                                 const octavo_tpl_args *args)

/* --- kinds --- */

static octavo_tpl_value is_kind(octavo_tpl_value input, octavo_tpl_kind kind) {
    return octavo_tpl_bool(input.kind == kind);
}

#define KIND_TEST(name, kind)                                                                      \
    TEST(name) {                                                                                   \
        (void)run;                                                                                 \
        (void)args;                                                                                \
        return is_kind(input, kind);                                                               \
    }
KIND_TEST(test_undefined, OCTAVO_TPL_UNDEFINED)
KIND_TEST(test_none, OCTAVO_TPL_NONE)
KIND_TEST(test_boolean, OCTAVO_TPL_BOOL)
KIND_TEST(test_integer, OCTAVO_TPL_INTEGER)
KIND_TEST(test_float, OCTAVO_TPL_FLOAT)
KIND_TEST(test_string, OCTAVO_TPL_STRING)
KIND_TEST(test_mapping, OCTAVO_TPL_DICT)
#undef KIND_TEST

TEST(test_defined) {
    (void)run;
    (void)args;
    return octavo_tpl_bool(input.kind != OCTAVO_TPL_UNDEFINED);
}
TEST(test_true) {
    (void)run;
    (void)args;
    return octavo_tpl_bool(input.kind == OCTAVO_TPL_BOOL && input.as.truth);
}
TEST(test_false) {
    (void)run;
    (void)args;
    return octavo_tpl_bool(input.kind == OCTAVO_TPL_BOOL && !input.as.truth);
}
TEST(test_number) {
    (void)run;
    (void)args;
    return octavo_tpl_bool(octavo_tpl_is_number(input));
}
TEST(test_iterable) {
    (void)run;
    (void)args;
    return octavo_tpl_bool(octavo_tpl_iterable(input));
}
TEST(test_sequence) {
    (void)run;
    (void)args;
    return octavo_tpl_bool(octavo_tpl_length(input) >= 0 && input.kind != OCTAVO_TPL_VIEW);
}
TEST(test_callable) {
    (void)run;
    (void)args;
    switch (input.kind) {
    case OCTAVO_TPL_UNDEFINED: /* has a call operator, which raises */
    case OCTAVO_TPL_MACRO:
    case OCTAVO_TPL_METHOD:
    case OCTAVO_TPL_FUNCTION:
    case OCTAVO_TPL_LOOP:
    case OCTAVO_TPL_JOINER:
        return octavo_tpl_bool(true);
    default:
        return octavo_tpl_bool(false);
    }
}
TEST(test_never) {
    (void)run;
    (void)input;
    (void)args;
    return octavo_tpl_bool(false);
}

/* --- numbers --- */

static octavo_tpl_value remainder_is(octavo_tpl_run *run, octavo_tpl_value input,
                                     octavo_tpl_value by, int64_t rest) {
    octavo_tpl_value value = octavo_tpl_binary(run, OCTAVO_TPL_PERCENT, input, by);
    return octavo_tpl_bool(octavo_tpl_equal(run, value, octavo_tpl_integer(rest)));
}

TEST(test_odd) {
    (void)args;
    return remainder_is(run, input, octavo_tpl_integer(2), 1);
}
TEST(test_even) {
    (void)args;
    return remainder_is(run, input, octavo_tpl_integer(2), 0);
}
TEST(test_divisibleby) {
    return remainder_is(run, input, args->items[0], 0);
}

/* --- comparisons --- */

TEST(test_eq) {
    return octavo_tpl_bool(octavo_tpl_equal(run, input, args->items[0]));
}
TEST(test_ne) {
    return octavo_tpl_bool(!octavo_tpl_equal(run, input, args->items[0]));
}

static octavo_tpl_value ordered(octavo_tpl_run *run, octavo_tpl_token_kind operation,
                                octavo_tpl_value a, octavo_tpl_value b) {
    bool defined = octavo_tpl_defined(run, a) && octavo_tpl_defined(run, b);
    return octavo_tpl_bool(defined && octavo_tpl_ordered(run, operation, a, b));
}

TEST(test_gt) {
    return ordered(run, OCTAVO_TPL_GT, input, args->items[0]);
}
TEST(test_ge) {
    return ordered(run, OCTAVO_TPL_GE, input, args->items[0]);
}
TEST(test_lt) {
    return ordered(run, OCTAVO_TPL_LT, input, args->items[0]);
}
TEST(test_le) {
    return ordered(run, OCTAVO_TPL_LE, input, args->items[0]);
}
TEST(test_in) {
    return octavo_tpl_bool(octavo_tpl_contains(run, args->items[0], input));
}

/* Identity: containers are one object or not; plain values are the same when equal in kind too. */
TEST(test_sameas) {
    octavo_tpl_value other = args->items[0];
    if (input.kind != other.kind) return octavo_tpl_bool(false);
    if (input.kind == OCTAVO_TPL_LIST || input.kind == OCTAVO_TPL_TUPLE)
        return octavo_tpl_bool(input.as.list == other.as.list);
    if (input.kind == OCTAVO_TPL_DICT) return octavo_tpl_bool(input.as.dict == other.as.dict);
    return octavo_tpl_bool(octavo_tpl_equal(run, input, other));
}

/* --- text and names --- */

static octavo_tpl_value call_string_method(octavo_tpl_run *run, octavo_tpl_value input,
                                           const octavo_tpl_string *name) {
    const octavo_tpl_args none = {0};
    octavo_tpl_value text = octavo_tpl_str(run, input);
    if (octavo_tpl_failed(run)) return text;
    return octavo_tpl_call_builtin(run, octavo_tpl_string_method_find(name), text, &none);
}

TEST(test_lower) {
    static const octavo_tpl_string name = {"islower", 7, 7};
    (void)args;
    return call_string_method(run, input, &name);
}
TEST(test_upper) {
    static const octavo_tpl_string name = {"isupper", 7, 7};
    (void)args;
    return call_string_method(run, input, &name);
}
TEST(test_filter) {
    (void)run;
    (void)args;
    return octavo_tpl_bool(input.kind == OCTAVO_TPL_STRING &&
                           octavo_tpl_filter_find(input.as.string) != NULL);
}
TEST(test_test) {
    (void)run;
    (void)args;
    return octavo_tpl_bool(input.kind == OCTAVO_TPL_STRING &&
                           octavo_tpl_test_find(input.as.string) != NULL);
}

const octavo_tpl_builtin *octavo_tpl_test_find(const octavo_tpl_string *name) {
    static const octavo_tpl_builtin tests[] = {
        {"defined", "", 0, test_defined},     {"undefined", "", 0, test_undefined},
        {"none", "", 0, test_none},           {"string", "", 0, test_string},
        {"mapping", "", 0, test_mapping},     {"iterable", "", 0, test_iterable},
        {"sequence", "", 0, test_sequence},   {"number", "", 0, test_number},
        {"integer", "", 0, test_integer},     {"float", "", 0, test_float},
        {"boolean", "", 0, test_boolean},     {"true", "", 0, test_true},
        {"false", "", 0, test_false},         {"callable", "", 0, test_callable},
        {"escaped", "", 0, test_never},       {"odd", "", 0, test_odd},
        {"even", "", 0, test_even},           {"divisibleby", "num", 1, test_divisibleby},
        {"eq", "other", 1, test_eq},          {"equalto", "other", 1, test_eq},
        {"==", "other", 1, test_eq},          {"ne", "other", 1, test_ne},
        {"!=", "other", 1, test_ne},          {"gt", "other", 1, test_gt},
        {"greaterthan", "other", 1, test_gt}, {">", "other", 1, test_gt},
        {"ge", "other", 1, test_ge},          {">=", "other", 1, test_ge},
        {"lt", "other", 1, test_lt},          {"lessthan", "other", 1, test_lt},
        {"<", "other", 1, test_lt},           {"le", "other", 1, test_le},
        {"<=", "other", 1, test_le},          {"in", "seq", 1, test_in},
        {"sameas", "other", 1, test_sameas},  {"lower", "", 0, test_lower},
        {"upper", "", 0, test_upper},         {"filter", "", 0, test_filter},
        {"test", "", 0, test_test},
    };
    return octavo_tpl_find(tests, OCTAVO_COUNT(tests), name);
}
