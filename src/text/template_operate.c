/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators on values: Python's arithmetic, with integers that fail where they would leave 64 bits.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <math.h>
#include <string.h>

static const char *symbol(octavo_tpl_token_kind operation) {
    return octavo_tpl_token_name(operation);
}

bool octavo_tpl_defined(octavo_tpl_run *run, octavo_tpl_value value) {
    if (value.kind != OCTAVO_TPL_UNDEFINED) return true;
    const octavo_tpl_string *name = value.as.string;
    int size = name == NULL ? 0 : name->size < 80 ? (int)name->size : 80;
    if (name == NULL)
        octavo_tpl_fail(run, "a value is undefined");
    else if (value.parent == OCTAVO_TPL_ABSENT)
        octavo_tpl_fail(run, "'%.*s' is undefined", size, name->data);
    else
        octavo_tpl_fail(run, "%s has no attribute '%.*s'",
                        octavo_tpl_type((octavo_tpl_value){.kind = value.parent}), size,
                        name->data);
    return false;
}

static octavo_tpl_value overflow(octavo_tpl_run *run, octavo_tpl_token_kind operation) {
    return octavo_tpl_fail(run, "%s gives an integer of more than 64 bits", symbol(operation));
}

static octavo_tpl_value by_zero(octavo_tpl_run *run) {
    return octavo_tpl_fail(run, "division by zero");
}

/* --- checked integer arithmetic --- */

static bool add_checked(int64_t a, int64_t b, int64_t *sum) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return false;
    *sum = a + b;
    return true;
}

static bool multiply_checked(int64_t a, int64_t b, int64_t *product) {
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
              : (b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a))
        return false;
    *product = a * b;
    return true;
}

/* Rounds down, as Python does. b is not 0, nor is it -1 with a the least integer. */
static int64_t floor_divide(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static octavo_tpl_value power(octavo_tpl_run *run, int64_t base, int64_t exponent) {
    int64_t result = 1;
    if (exponent < 0) {
        if (base == 0) return by_zero(run);
        return octavo_tpl_float(pow((double)base, (double)exponent));
    }
    while (exponent > 0) {
        if ((exponent & 1) && !multiply_checked(result, base, &result))
            return overflow(run, OCTAVO_TPL_DOUBLE_STAR);
        exponent >>= 1;
        if (exponent > 0 && !multiply_checked(base, base, &base))
            return overflow(run, OCTAVO_TPL_DOUBLE_STAR);
    }
    return octavo_tpl_integer(result);
}

static octavo_tpl_value integers(octavo_tpl_run *run, octavo_tpl_token_kind operation, int64_t a,
                                 int64_t b) {
    int64_t result = 0;
    bool fits = true;
    switch (operation) {
    case OCTAVO_TPL_PLUS:
        fits = add_checked(a, b, &result);
        break;
    case OCTAVO_TPL_MINUS:
        fits = b != INT64_MIN ? add_checked(a, -b, &result) : a < 0;
        if (b == INT64_MIN && fits) result = a - b;
        break;
    case OCTAVO_TPL_STAR:
        fits = multiply_checked(a, b, &result);
        break;
    case OCTAVO_TPL_SLASH:
        return b != 0 ? octavo_tpl_float((double)a / (double)b) : by_zero(run);
    case OCTAVO_TPL_DOUBLE_SLASH:
    case OCTAVO_TPL_PERCENT:
        if (b == 0) return by_zero(run);
        if (b == -1) { /* the one quotient that may not fit */
            if (operation == OCTAVO_TPL_PERCENT) return octavo_tpl_integer(0);
            return octavo_tpl_sign(run, true, octavo_tpl_integer(a));
        }
        result = floor_divide(a, b);
        if (operation == OCTAVO_TPL_PERCENT) result = a - result * b;
        break;
    default:
        return power(run, a, b);
    }
    return fits ? octavo_tpl_integer(result) : overflow(run, operation);
}

/* Remainder with the sign of b. */
static double modulo(double a, double b) {
    double rest = fmod(a, b);
    if (rest < 0.0 || rest > 0.0) return (rest < 0.0) != (b < 0.0) ? rest + b : rest;
    return copysign(0.0, b);
}

static octavo_tpl_value reals(octavo_tpl_run *run, octavo_tpl_token_kind operation, double a,
                              double b) {
    bool zero = b >= 0.0 && b <= 0.0;
    switch (operation) {
    case OCTAVO_TPL_PLUS:
        return octavo_tpl_float(a + b);
    case OCTAVO_TPL_MINUS:
        return octavo_tpl_float(a - b);
    case OCTAVO_TPL_STAR:
        return octavo_tpl_float(a * b);
    case OCTAVO_TPL_SLASH:
        return zero ? by_zero(run) : octavo_tpl_float(a / b);
    case OCTAVO_TPL_DOUBLE_SLASH:
        return zero ? by_zero(run) : octavo_tpl_float(floor(a / b));
    case OCTAVO_TPL_PERCENT:
        return zero ? by_zero(run) : octavo_tpl_float(modulo(a, b));
    default:
        if (a < 0.0 && floor(b) < b) return octavo_tpl_fail(run, "a complex number");
        return octavo_tpl_float(pow(a, b));
    }
}

/* --- sequences --- */

static octavo_tpl_value join_lists(octavo_tpl_run *run, octavo_tpl_value a, octavo_tpl_value b) {
    size_t n = a.as.list->count, m = b.as.list->count;
    octavo_tpl_list *list = octavo_tpl_list_new(run, n + m);
    if (list == NULL) return octavo_tpl_undefined(NULL);
    if (n > 0) memcpy(list->items, a.as.list->items, n * sizeof *list->items);
    if (m > 0) memcpy(list->items + n, b.as.list->items, m * sizeof *list->items);
    return octavo_tpl_from_list(a.kind, list);
}

static octavo_tpl_value join_strings(octavo_tpl_run *run, octavo_tpl_value a, octavo_tpl_value b) {
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put_value(run, a);
    octavo_tpl_put_value(run, b);
    return octavo_tpl_close(run, mark);
}

static octavo_tpl_value repeat(octavo_tpl_run *run, octavo_tpl_value value, int64_t times) {
    if (times < 0) times = 0;
    if (value.kind == OCTAVO_TPL_STRING) {
        size_t mark = octavo_tpl_open(run);
        octavo_tpl_put_repeated(run, value.as.string->data, value.as.string->size, (size_t)times);
        return octavo_tpl_close(run, mark);
    }
    size_t n = value.as.list->count, total;
    if (!octavo_size_mul(n, (size_t)times, &total))
        return octavo_tpl_fail_limit(run, "a list repeated grows too long");
    octavo_tpl_list *list = octavo_tpl_list_new(run, total);
    if (list == NULL) return octavo_tpl_undefined(NULL);
    for (size_t i = 0; i < total; i += n)
        memcpy(list->items + i, value.as.list->items, n * sizeof *list->items);
    return octavo_tpl_from_list(value.kind, list);
}

static bool repeatable(octavo_tpl_value value) {
    return value.kind == OCTAVO_TPL_STRING || value.kind == OCTAVO_TPL_LIST ||
           value.kind == OCTAVO_TPL_TUPLE;
}

octavo_tpl_value octavo_tpl_binary(octavo_tpl_run *run, octavo_tpl_token_kind operation,
                                   octavo_tpl_value a, octavo_tpl_value b) {
    int64_t x, y;
    bool is_int_a = octavo_tpl_is_integer(a, &x), is_int_b = octavo_tpl_is_integer(b, &y);
    if (is_int_a && is_int_b) return integers(run, operation, x, y);
    if (octavo_tpl_is_number(a) && octavo_tpl_is_number(b))
        return reals(run, operation, octavo_tpl_real(a), octavo_tpl_real(b));
    if (operation == OCTAVO_TPL_PERCENT && a.kind == OCTAVO_TPL_STRING)
        return octavo_tpl_percent(run, a.as.string, b);
    if (operation == OCTAVO_TPL_PLUS && a.kind == b.kind && repeatable(a))
        return a.kind == OCTAVO_TPL_STRING ? join_strings(run, a, b) : join_lists(run, a, b);
    if (operation == OCTAVO_TPL_STAR && repeatable(a) && is_int_b) return repeat(run, a, y);
    if (operation == OCTAVO_TPL_STAR && repeatable(b) && is_int_a) return repeat(run, b, x);
    if (!octavo_tpl_defined(run, a) || !octavo_tpl_defined(run, b))
        return octavo_tpl_undefined(NULL);
    return octavo_tpl_fail(run, "%s does not go with %s and %s", symbol(operation),
                           octavo_tpl_type(a), octavo_tpl_type(b));
}

octavo_tpl_value octavo_tpl_sign(octavo_tpl_run *run, bool minus, octavo_tpl_value value) {
    int64_t integer;
    if (octavo_tpl_is_integer(value, &integer)) {
        if (minus && integer == INT64_MIN) return overflow(run, OCTAVO_TPL_MINUS);
        return octavo_tpl_integer(minus ? -integer : integer);
    }
    if (value.kind == OCTAVO_TPL_FLOAT)
        return octavo_tpl_float(minus ? -value.as.real : value.as.real);
    if (!octavo_tpl_defined(run, value)) return value;
    return octavo_tpl_fail(run, "%s has no sign", octavo_tpl_type(value));
}

bool octavo_tpl_ordered(octavo_tpl_run *run, octavo_tpl_token_kind operation, octavo_tpl_value a,
                        octavo_tpl_value b) {
    bool both_numbers = octavo_tpl_is_number(a) && octavo_tpl_is_number(b);
    if (both_numbers && (isnan(octavo_tpl_real(a)) || isnan(octavo_tpl_real(b)))) return false;
    int order = octavo_tpl_compare(run, a, b);
    switch (operation) {
    case OCTAVO_TPL_GT:
        return order > 0;
    case OCTAVO_TPL_GE:
        return order >= 0;
    case OCTAVO_TPL_LT:
        return order < 0;
    default:
        return order <= 0;
    }
}

bool octavo_tpl_contains(octavo_tpl_run *run, octavo_tpl_value container, octavo_tpl_value item) {
    if (container.kind == OCTAVO_TPL_STRING) {
        if (item.kind != OCTAVO_TPL_STRING) {
            octavo_tpl_fail(run, "a string can contain a string only, not %s",
                            octavo_tpl_type(item));
            return false;
        }
        const octavo_tpl_string *text = container.as.string, *part = item.as.string;
        if (!octavo_tpl_charge(run, text->size / 64)) return false;
        return memmem(text->data, text->size, part->data, part->size) != NULL;
    }
    if (container.kind == OCTAVO_TPL_DICT)
        return octavo_tpl_dict_get(run, container.as.dict, item).kind != OCTAVO_TPL_ABSENT;
    if (!octavo_tpl_iterable(container)) {
        octavo_tpl_fail(run, "%s contains nothing; 'in' wants a list, a dict or a string",
                        octavo_tpl_type(container));
        return false;
    }
    octavo_tpl_list items = octavo_tpl_items(run, container);
    for (size_t i = 0; i < items.count && !octavo_tpl_failed(run); i++)
        if (octavo_tpl_equal(run, items.items[i], item)) return true;
    return false;
}
