/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `entries` of a level that has a function of its own for every entry. Included after
 * them; of quantise_q8 the level has quantise_block.
 */
static void quantise_q8(octavo_q8_block *out, const float *x, int64_t n) {
    octavo_assert(n % OCTAVO_BLOCK == 0);
    for (int64_t i = 0; i < n; i += OCTAVO_BLOCK)
        quantise_block(out++, x + i);
}

static const octavo_vector_kernels entries = {
    .sum_squares = sum_squares,
    .sum = sum,
    .scale_mul = scale_mul,
    .add = add,
    .shift = shift,
    .rope_half = rope_half,
    .rope_pairwise = rope_pairwise,
    .gate_silu = gate_silu,
    .gate_gelu_tanh = gate_gelu_tanh,
    .gate_gelu = gate_gelu,
    .gate_relu2 = gate_relu2,
    .gate_swiglu = gate_swiglu,
    .exp = exp_row,
    .softmax = softmax,
    .soft_cap = soft_cap,
    .quantise_q8 = quantise_q8,
};
