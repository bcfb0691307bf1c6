/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrow floating point types against formulas in double precision that share nothing with the
 * code: decoding by ldexp over every bit pattern, encoding by search among the decoded values.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "base/number.h"

#include "octavo/dtype.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct narrow_type {
    const char *name;
    int mantissa_bits;
    int bias;
    uint32_t sign;     /* the sign bit */
    uint32_t largest;  /* magnitude code of the largest finite value */
    uint32_t overflow; /* magnitude code for what rounds past it, and for infinity */
    uint32_t infinity; /* magnitude code of infinity, 0 if the type has none */
    float (*decode)(uint32_t code);
    uint32_t (*encode)(float value);
} narrow_type;

static float f16_decode(uint32_t code) {
    return octavo_f16_to_f32((uint16_t)code);
}

static uint32_t f16_encode(float value) {
    return octavo_f32_to_f16(value);
}

static float bf16_decode(uint32_t code) {
    return octavo_bf16_to_f32((uint16_t)code);
}

static uint32_t bf16_encode(float value) {
    return octavo_f32_to_bf16(value);
}

static float e4m3_decode(uint32_t code) {
    return octavo_fp8_e4m3_to_f32((uint8_t)code);
}

static uint32_t e4m3_encode(float value) {
    return octavo_f32_to_fp8_e4m3(value);
}

static float e5m2_decode(uint32_t code) {
    return octavo_fp8_e5m2_to_f32((uint8_t)code);
}

static uint32_t e5m2_encode(float value) {
    return octavo_f32_to_fp8_e5m2(value);
}

static const narrow_type types[] = {
    {"f16", 10, 15, 0x8000, 0x7bff, 0x7c00, 0x7c00, f16_decode, f16_encode},
    {"bf16", 7, 127, 0x8000, 0x7f7f, 0x7f80, 0x7f80, bf16_decode, bf16_encode},
    {"e4m3", 3, 7, 0x80, 0x7e, 0x7e, 0, e4m3_decode, e4m3_encode},
    {"e5m2", 2, 15, 0x80, 0x7b, 0x7b, 0x7c, e5m2_decode, e5m2_encode},
};

/* Value of a magnitude code by the textbook formula. One past the largest gives the value that
 * would come next if the exponent went on: the upper end of the last rounding interval. */
static double value_of(const narrow_type *type, uint32_t magnitude) {
    int exponent = (int)(magnitude >> type->mantissa_bits);
    double fraction =
        ldexp((double)(magnitude & ((1u << type->mantissa_bits) - 1)), -type->mantissa_bits);
    return exponent == 0 ? ldexp(fraction, 1 - type->bias)
                         : ldexp(1.0 + fraction, exponent - type->bias);
}

/* The magnitude code that a finite magnitude must be given: the nearest value, ties to the even
 * code. */
static uint32_t nearest_code(const narrow_type *type, double magnitude) {
    uint32_t low = 0; /* value_of(low) <= magnitude */
    uint32_t high = type->largest + 1;
    if (magnitude >= value_of(type, high)) return type->overflow;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (value_of(type, middle) <= magnitude) {
            low = middle;
        } else {
            high = middle;
        }
    }
    double below = magnitude - value_of(type, low);
    double above = value_of(type, high) - magnitude;
    uint32_t code = below < above || (below == above && low % 2 == 0) ? low : high;
    return code > type->largest ? type->overflow : code;
}

static bool is_negative(float value) {
    return (octavo_f32_bits(value) & 0x80000000u) != 0;
}

static bool is_quiet_nan(float value) {
    return (octavo_f32_bits(value) & 0x7fc00000u) == 0x7fc00000u;
}

/* Both signs of `value` (not negative) must become `code` with that sign. */
static void check_encode(const narrow_type *type, float value, uint32_t code) {
    uint32_t plus = type->encode(value);
    uint32_t minus = type->encode(-value);
    if (plus != code || minus != (code | type->sign)) {
        fail_msg("%s: %a became 0x%x, and negated 0x%x; expected 0x%x", type->name, (double)value,
                 (unsigned)plus, (unsigned)minus, (unsigned)code);
    }
}

static void test_decode_every_code(void **unused) {
    (void)unused;
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        const narrow_type *type = &types[i];
        for (uint32_t code = 0; code < 2 * type->sign; code++) {
            uint32_t magnitude = code & ~type->sign;
            float value = type->decode(code);
            assert_int_equal(is_negative(value), (code & type->sign) != 0);
            if (magnitude <= type->largest) {
                double expected = value_of(type, magnitude);
                assert_true((double)fabsf(value) == expected);
            } else if (type->infinity != 0 && magnitude == type->infinity) {
                assert_true(isinf(value));
            } else {
                assert_true(isnan(value));
            }
        }
    }
}

static void test_codes_survive(void **unused) {
    (void)unused;
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        const narrow_type *type = &types[i];
        for (uint32_t magnitude = 0; magnitude <= type->largest; magnitude++) {
            check_encode(type, type->decode(magnitude), magnitude);
        }
        check_encode(type, INFINITY, type->overflow);
    }
}

/* Every pair of neighbours: the middle goes to the even code, whatever is nearer to one goes
 * there. The last pair is the largest value and the end of the range. */
static void test_rounding_between_neighbours(void **unused) {
    (void)unused;
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        const narrow_type *type = &types[i];
        for (uint32_t low = 0; low <= type->largest; low++) {
            uint32_t high = low < type->largest ? low + 1 : type->overflow;
            double exact = (value_of(type, low) + value_of(type, low + 1)) / 2;
            float middle = (float)exact;
            assert_true((double)middle == exact);
            check_encode(type, middle, low % 2 == 0 ? low : high);
            check_encode(type, nextafterf(middle, 0.0f), low);
            check_encode(type, nextafterf(middle, INFINITY), high);
        }
    }
}

static void test_overflow(void **unused) {
    (void)unused;
    check_encode(&types[0], 65504.0f, 0x7bff);
    check_encode(&types[0], 65519.996f, 0x7bff);
    check_encode(&types[0], 65520.0f, 0x7c00);
    check_encode(&types[2], 448.0f, 0x7e);
    check_encode(&types[2], 464.0f, 0x7e);
    check_encode(&types[2], 480.0f, 0x7e);
    check_encode(&types[3], 57344.0f, 0x7b);
    check_encode(&types[3], 61440.0f, 0x7b);
    check_encode(&types[3], 65536.0f, 0x7b);
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        check_encode(&types[i], 3.4028234663852886e38f, types[i].overflow);
    }
}

static void test_small(void **unused) {
    (void)unused;
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        const narrow_type *type = &types[i];
        check_encode(type, 0.0f, 0);
        check_encode(type, octavo_f32_from_bits(1), 0); /* the smallest f32 */
        assert_int_equal(octavo_f32_bits(type->decode(0)), 0);
        assert_int_equal(octavo_f32_bits(type->decode(type->sign)), 0x80000000u);
    }
}

static void test_nan(void **unused) {
    (void)unused;
    static const uint32_t nans[] = {0x7fc00000u, 0x7f800001u, 0x7fffffffu, 0x7fa00000u,
                                    0x7fd55555u};
    for (size_t n = 0; n < OCTAVO_COUNT(nans); n++) {
        for (uint32_t sign = 0; sign < 2; sign++) {
            float value = octavo_f32_from_bits(nans[n] | sign << 31);
            uint32_t sign16 = sign << 15;
            uint32_t sign8 = sign << 7;
            assert_int_equal(octavo_f32_to_f16(value),
                             sign16 | 0x7e00u | ((nans[n] >> 13) & 0x3ffu));
            assert_int_equal(octavo_f32_to_bf16(value),
                             sign16 | 0x7fc0u | ((nans[n] >> 16) & 0x7fu));
            assert_int_equal(octavo_f32_to_fp8_e4m3(value), sign8 | 0x7fu);
            assert_int_equal(octavo_f32_to_fp8_e5m2(value), sign8 | 0x7fu);
        }
    }
    for (uint32_t code = 0x7c01; code <= 0x7fff; code++) {
        assert_true(is_quiet_nan(octavo_f16_to_f32((uint16_t)code)));
        assert_int_equal(octavo_f32_to_f16(octavo_f16_to_f32((uint16_t)code)), code | 0x200u);
    }
    assert_true(is_quiet_nan(octavo_fp8_e4m3_to_f32(0x7f)));
    assert_true(is_quiet_nan(octavo_fp8_e4m3_to_f32(0xff)));
    assert_true(is_quiet_nan(octavo_fp8_e5m2_to_f32(0x7d)));
}

/* A coarse walk over all f32 patterns; the stride is prime, so low bits vary too. */
static void test_walk(void **unused) {
    (void)unused;
    enum { STRIDE = 2039 };
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        for (uint32_t bits = (uint32_t)i; bits < 0x7f800000u; bits += STRIDE) {
            float value = octavo_f32_from_bits(bits);
            check_encode(&types[i], value, nearest_code(&types[i], (double)value));
        }
    }
}

static void test_dtypes(void **unused) {
    (void)unused;
    static const size_t sizes[] = {4, 2, 2, 1, 1, 1, 4};
    for (int i = 0; i < (int)OCTAVO_COUNT(sizes); i++) {
        octavo_dtype dtype = (octavo_dtype)i;
        octavo_dtype found = (octavo_dtype)-1;
        assert_int_equal(octavo_dtype_size(dtype), sizes[i]);
        assert_int_equal(octavo_dtype_parse(octavo_dtype_name(dtype), &found, NULL), OCTAVO_OK);
        assert_int_equal(found, dtype);
    }
    octavo_dtype none = (octavo_dtype)OCTAVO_COUNT(sizes);
    assert_int_equal(octavo_dtype_size(none), 0);
    assert_int_equal(octavo_dtype_size((octavo_dtype)-1), 0);
    assert_string_equal(octavo_dtype_name(none), "?");

    octavo_dtype kept = OCTAVO_DTYPE_INT8;
    octavo_error error = {0};
    assert_int_equal(octavo_dtype_parse("float", &kept, &error), OCTAVO_ERROR_NOT_FOUND);
    assert_int_equal(kept, OCTAVO_DTYPE_INT8);
    assert_non_null(strstr(error.message, "float"));
    for (int i = 0; i < (int)OCTAVO_COUNT(sizes); i++) {
        assert_non_null(strstr(error.message, octavo_dtype_name((octavo_dtype)i)));
    }
    assert_int_equal(octavo_dtype_parse(NULL, &kept, &error), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_dtype_parse("", &kept, NULL), OCTAVO_ERROR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_every_code),
        cmocka_unit_test(test_codes_survive),
        cmocka_unit_test(test_rounding_between_neighbours),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
