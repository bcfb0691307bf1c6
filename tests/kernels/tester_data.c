/* SPDX-License-Identifier: Apache-2.0
 *
 * The tester's data: random numbers, fills, guarded buffers, comparisons.
 */
#include "base/number.h"
#include "tester_state.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- random numbers: splitmix64 to seed, xoroshiro128+ to go on --- */

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void tester_seed(tester *t) {
    uint64_t state = t->seed;
    for (const char *c = t->name; *c; c++)
        state = (state ^ (uint8_t)*c) * 0x100000001b3u;
    t->random[0] = splitmix(&state);
    t->random[1] = splitmix(&state) | 1;
}

static uint64_t rotate_left(uint64_t x, int n) {
    return x << n | x >> (64 - n);
}

uint32_t tester_random(tester *t) {
    uint64_t a = t->random[0], b = t->random[1], sum = a + b;
    b ^= a;
    t->random[0] = rotate_left(a, 24) ^ b ^ b << 16;
    t->random[1] = rotate_left(b, 37);
    return (uint32_t)(sum >> 32);
}

int64_t tester_between(tester *t, int64_t low, int64_t high) {
    uint64_t span = (uint64_t)(high - low) + 1;
    return low + (int64_t)(((uint64_t)tester_random(t) << 16 ^ tester_random(t)) % span);
}

float tester_uniform(tester *t, float low, float high) {
    float unit = (float)(tester_random(t) >> 8) * 0x1p-24f;
    return low + (high - low) * unit;
}

/* Twelve uniforms. */
float tester_normal(tester *t) {
    float sum = -6.0f;
    for (int i = 0; i < 12; i++)
        sum += tester_uniform(t, 0.0f, 1.0f);
    return sum;
}

static float random_sign(tester *t) {
    return tester_random(t) & 1 ? -1.0f : 1.0f;
}

/* 2^[low, high) with a random sign and mantissa. */
static float random_exponent(tester *t, int low, int high) {
    int exponent = (int)tester_between(t, low, high - 1);
    return random_sign(t) * ldexpf(tester_uniform(t, 1.0f, 2.0f), exponent);
}

static float random_value(tester *t, tester_fill fill, int64_t i) {
    switch (fill) {
    case TESTER_FILL_NORMAL:
        return tester_normal(t);
    case TESTER_FILL_WIDE:
        return random_exponent(t, -60, 60);
    case TESTER_FILL_ZERO:
        return random_sign(t) * 0.0f;
    case TESTER_FILL_SPARSE:
        return tester_random(t) % 8 == 0 ? tester_normal(t) : 0.0f;
    case TESTER_FILL_DENORMAL:
        return octavo_f32_from_bits(tester_random(t) & 0x807fffffu);
    case TESTER_FILL_HUGE:
        return random_exponent(t, 110, 127);
    case TESTER_FILL_ALTERNATE:
        return i & 1 ? -1.7f : 1.7f;
    case TESTER_FILL_OUTLIER:
        return tester_normal(t) * (tester_random(t) % 16 == 0 ? 1000.0f : 1.0f);
    case TESTER_FILL_NONFINITE:
        switch (tester_random(t) % 16) {
        case 0:
            return NAN;
        case 1:
            return INFINITY;
        case 2:
            return -INFINITY;
        default:
            return tester_normal(t);
        }
    }
    return 0.0f;
}

void tester_fill_f32(tester *t, float *x, int64_t n, tester_fill fill) {
    for (int64_t i = 0; i < n; i++)
        x[i] = random_value(t, fill, i);
}

const char *tester_fill_name(tester_fill fill) {
    static const char *const names[] = {"normal", "wide",      "zero",    "sparse",   "denormal",
                                        "huge",   "alternate", "outlier", "nonfinite"};
    return names[fill];
}

/* --- buffers --- */

enum { PADDING = 0xfb, FRESH = 0xff };

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *tester_buffer(tester *t, const char *name, size_t bytes, size_t align) {
    if (t->n_blocks == TESTER_MAX_BUFFERS) tester_fail(t, "too many buffers at once");
    size_t page = page_bytes();
    size_t inner = (bytes / page + 1) * page;
    uint8_t *map = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) tester_fail(t, "no memory for %s", name);
    mprotect(map + page, inner, PROT_READ | PROT_WRITE);
    size_t offset = t->is_at_start ? 0 : (inner - bytes) & ~(align - 1);
    memset(map + page, PADDING, inner);
    memset(map + page + offset, FRESH, bytes);
    t->blocks[t->n_blocks++] = (tester_block){
        .name = name, .map = map, .inner = inner, .data = map + page + offset, .bytes = bytes};
    return map + page + offset;
}

void tester_seal(tester *t, void *buffer) {
    for (int i = 0; i < t->n_blocks; i++) {
        const tester_block *block = &t->blocks[i];
        if (block->data == buffer) mprotect(block->map + page_bytes(), block->inner, PROT_READ);
    }
}

void tester_drop(tester *t) {
    for (int i = 0; i < t->n_blocks; i++)
        munmap(t->blocks[i].map, t->blocks[i].inner + 2 * page_bytes());
    t->n_blocks = 0;
}

static void check_padding(tester *t, const tester_block *block) {
    const uint8_t *from = block->map + page_bytes(), *to = from + block->inner;
    const uint8_t *end = block->data + block->bytes;
    for (const uint8_t *p = from; p < block->data; p++) {
        if (*p != PADDING)
            tester_fail(t, "wrote %td bytes before %s", block->data - p, block->name);
    }
    for (const uint8_t *p = end; p < to; p++) {
        if (*p != PADDING)
            tester_fail(t, "wrote %td bytes past the end of %s", p - end + 1, block->name);
    }
}

void tester_release(tester *t) {
    for (int i = 0; i < t->n_blocks; i++)
        check_padding(t, &t->blocks[i]);
    tester_drop(t);
}

void tester_describe_address(const tester *t, const void *address, char *text, size_t bytes) {
    const uint8_t *p = address;
    for (int i = 0; i < t->n_blocks; i++) {
        const tester_block *block = &t->blocks[i];
        if (p < block->map || p >= block->map + block->inner + 2 * page_bytes()) continue;
        if (p < block->data)
            snprintf(text, bytes, ", %td bytes before %s", block->data - p, block->name);
        else if (p >= block->data + block->bytes)
            snprintf(text, bytes, ", %td bytes past the end of %s",
                     p - block->data - (ptrdiff_t)block->bytes + 1, block->name);
        else
            snprintf(text, bytes, ", writing to %s, which is an input", block->name);
        return;
    }
    snprintf(text, bytes, " at address %p, in no buffer", address);
}

/* --- comparisons --- */

void tester_equal_f32(tester *t, const char *what, const float *got, const float *want, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (isnan(got[i]) && isnan(want[i])) continue;
        if (octavo_f32_bits(got[i]) != octavo_f32_bits(want[i]))
            tester_fail(t, "%s[%lld] is %a, not %a", what, (long long)i, (double)got[i],
                        (double)want[i]);
    }
}

void tester_equal_bytes(tester *t, const char *what, const void *got, const void *want,
                        size_t bytes) {
    const uint8_t *a = got, *b = want;
    for (size_t i = 0; i < bytes; i++) {
        if (a[i] != b[i])
            tester_fail(t, "byte %zu of %s is 0x%02x, not 0x%02x", i, what, (unsigned)a[i],
                        (unsigned)b[i]);
    }
}

static bool is_near(float got, double want, double bound) {
    if (isnan(want)) return isnan(got);
    if (isnan(got)) return false;
    if (isinf(want)) return (double)got == want;
    if (isinf(got)) return fabs(want) + bound >= (double)FLT_MAX && !signbit(got) == !signbit(want);
    return fabs((double)got - want) <= bound;
}

void tester_near_f32(tester *t, const char *what, const float *got, const double *want,
                     const double *bound, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!is_near(got[i], want[i], bound[i]))
            tester_fail(t, "%s[%lld] is %.9g, not %.9g within %.3g (off by %.3g)", what,
                        (long long)i, (double)got[i], want[i], bound[i],
                        fabs((double)got[i] - want[i]));
    }
}
