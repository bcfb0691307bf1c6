/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block: what kernels/attention.h promises of each entry.
 */
#include "check_attention.h"

void check_attention(tester *t);

void check_attention(tester *t) {
    octavo_attention_kernels level, avx2;
    octavo_attention_kernels_init(&level, tester_flags(t));
    octavo_attention_kernels_init(&avx2, tester_flags(t) & OCTAVO_CPU_AVX2);
    const octavo_attention_kernels *twin = tester_flags(t) & OCTAVO_CPU_AVX512 ? &avx2 : &level;
    const bool fused = tester_flags(t) != 0;
    const attention_pair pairs[] = {
        {&level, twin, F32, fused},      {&level, twin, F16, fused},
        {&level, twin, BF16, fused},     {&level, twin, FP8_E4M3, fused},
        {&level, twin, FP8_E5M2, fused}, {&level, twin, INT8, fused}};
    static const struct {
        const char *load, *store, *quantise, *widen_keys, *scores, *values;
    } names[] = {
        {"load_f32", "store_f32", "quantise_f32", "widen_keys_f32", "scores_f32", "values_f32"},
        {"load_f16", "store_f16", "quantise_f16", "widen_keys_f16", "scores_f16", "values_f16"},
        {"load_bf16", "store_bf16", "quantise_bf16", "widen_keys_bf16", "scores_bf16",
         "values_bf16"},
        {"load_fp8_e4m3", NULL, "quantise_fp8_e4m3", "widen_keys_fp8_e4m3", "scores_fp8_e4m3",
         "values_fp8_e4m3"},
        {"load_fp8_e5m2", NULL, "quantise_fp8_e5m2", "widen_keys_fp8_e5m2", "scores_fp8_e5m2",
         "values_fp8_e5m2"},
        {"load_int8", NULL, "quantise_int8", "widen_keys_int8", "scores_int8", "values_int8"},
    };
    for (int i = F32; i <= INT8; i++) {
        tester_check(t, names[i].load, (tester_function *)level.load[i], check_load, &pairs[i]);
        if (i == F16 || i == BF16)
            tester_check(t, names[i].store, (tester_function *)level.store[i], check_store,
                         &pairs[i]);
        tester_check(t, names[i].quantise, (tester_function *)level.quantise[i], check_quantise,
                     &pairs[i]);
        tester_check(t, names[i].widen_keys, (tester_function *)level.widen_keys[i],
                     i < FP8_E4M3 ? check_widen_keys : check_widen_all, &pairs[i]);
        tester_check(t, names[i].scores, (tester_function *)level.scores[i], check_scores,
                     &pairs[i]);
        tester_check(t, names[i].values, (tester_function *)level.values[i], check_values,
                     &pairs[i]);
    }
    tester_check(t, "gather_keys", (tester_function *)level.gather_keys, check_gather_keys,
                 &pairs[F32]);
    tester_check(t, "softmax", (tester_function *)level.softmax, check_softmax, &pairs[F32]);
    if (level.pair_scores) {
        tester_check(t, "pair_scores", (tester_function *)level.pair_scores, check_pair_scores,
                     &pairs[BF16]);
        tester_check(t, "pair_values", (tester_function *)level.pair_values, check_pair_values,
                     &pairs[BF16]);
    }
    tester_check(t, "merge", (tester_function *)level.merge, check_merge, &pairs[F32]);
    tester_check(t, "sink", (tester_function *)level.sink, check_sink, &pairs[F32]);
}
