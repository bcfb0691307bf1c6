/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors that rules can name, and their defaults. The first part are the names and rules that
 * the format has always had; the second part are the other tensors of programs, which follow their
 * neighbours:
 *
 * - biases, sinks and scales are split as the outputs that they are added to or multiplied with;
 * - what belongs to heads (the latent's matrices of each head) is split with the heads, what all
 *   heads share (the latent itself) is whole;
 * - what holds pairs of a token and an expert has both as axes, t and e: a pair is on the ranks
 * that have its token and its expert;
 * - tables of positions and token types are whole: they are small, and a split costs a collective.
 */
#include "base/compiler.h"
#include "sharding/rules.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    OUT = 0, /* outside of layers */
    ATT = OCTAVO_BLOCK_ATTENTION,
    FFW = OCTAVO_BLOCK_DENSE,
    MOE = OCTAVO_BLOCK_MOE,
    ALL = ATT | FFW | MOE,
};

/* clang-format off */
static const octavo_named_tensor table[] = {
    {"activation_attention_td",     "td",  false, ATT, "(data, -)", "(data, -)"},
    {"activation_attention_out_td", "td",  false, ATT, "(data, -)", "(data, -)"},
    {"activation_q_td",             "td",  false, ATT, "(data, -)", "(data, -)"},
    {"attn_o_tnh",                  "tnh", false, ATT, "(data, model, -)", "(data, model, -)"},
    {"query_tnh",                   "tnh", false, ATT, "(data, model, -)", "(data, model, -)"},
    {"keyvalue_skh",                "skh", false, ATT, "(data, model, -)", "(data, model, -)"},
    {"attn_q_weight_dnh",           "dnh", true,  ATT, "(-, -, -)", "(-, model, -)"},
    {"attn_k_weight_dkh",           "dkh", true,  ATT, "(-, -, -)", "(-, model, -)"},
    {"attn_v_weight_dkh",           "dkh", true,  ATT, "(-, -, -)", "(-, model, -)"},
    {"attn_o_weight_nhd",           "nhd", true,  ATT, "(-, -, -)", "(model, -, -)"},
    {"activation_ffw_td",           "td",  false, FFW | MOE, "(-, -)", "(data, -)"},
    {"activation_ffw_ted",          "ted", false, MOE, "(-, -, -)", "(data, expert, -)"},
    {"ffw_hidden_tf",               "tf",  false, FFW, "(-, -)", "(data, model+expert)"},
    {"ffw_weight_df",               "df",  true,  FFW, "(-, -)", "(-, model+expert)"},
    {"ffw_weight_fd",               "fd",  true,  FFW, "(-, -)", "(model+expert, -)"},
    {"moe_weights_edf",             "edf", true,  MOE, "(-, -, -)", "(expert, -, model)"},
    {"moe_weights_efd",             "efd", true,  MOE, "(-, -, -)", "(expert, model, -)"},
    {"moe_router_de",               "de",  true,  MOE, "(-, -)", "(-, expert)"},
    {"moe_router_bias_e",           "e",   true,  MOE, "(-)", "(-)"},
    {"emb_weight_vd",               "vd",  true,  OUT, "(-, -)", "(model+expert, -)"},
    {"activation_td",               "td",  false, ALL, "(-, -)", "(data, -)"},
    {"prelogit_td",                 "td",  false, OUT, "(-, -)", "(data, -)"},
    {"logits_tv",                   "tv",  false, OUT, "(-, -)", "(data, model+expert)"},
    {"norm_scale",                  "d",   true,  ALL, "(-)", "(-)"},
    {"vocab_vd",                    "vd",  true,  OUT, "(-, -)", "(data+expert+model, -)"},
    {"vocab_dv",                    "dv",  true,  OUT, "(-, -)", "(-, data+expert+model)"},

    {"norm_bias",                   "d",   true,  ALL, "(-)", "(-)"},
    {"attn_q_bias_nh",              "nh",  true,  ATT, "(-, -)", "(model, -)"},
    {"attn_k_bias_kh",              "kh",  true,  ATT, "(-, -)", "(model, -)"},
    {"attn_v_bias_kh",              "kh",  true,  ATT, "(-, -)", "(model, -)"},
    {"attn_o_bias_d",               "d",   true,  ATT, "(-)", "(-)"},
    {"attn_sinks_n",                "n",   true,  ATT, "(-)", "(model)"},
    {"query_norm_scale_nh",         "nh",  true,  ATT, "(-, -)", "(model, -)"},
    {"key_norm_scale_kh",           "kh",  true,  ATT, "(-, -)", "(model, -)"},
    {"head_norm_scale_h",           "h",   true,  ATT, "(-)", "(-)"},
    {"latent_norm_scale_l",         "l",   true,  ATT, "(-)", "(-)"},
    {"attn_q_a_weight_dl",          "dl",  true,  ATT, "(-, -)", "(-, -)"},
    {"attn_q_a_bias_l",             "l",   true,  ATT, "(-)", "(-)"},
    {"attn_q_b_weight_lnh",         "lnh", true,  ATT, "(-, -, -)", "(-, model, -)"},
    {"attn_kv_a_weight_dl",         "dl",  true,  ATT, "(-, -)", "(-, -)"},
    {"attn_kv_a_bias_l",            "l",   true,  ATT, "(-)", "(-)"},
    {"attn_k_b_weight_nhl",         "nhl", true,  ATT, "(-, -, -)", "(model, -, -)"},
    {"attn_v_b_weight_nlh",         "nlh", true,  ATT, "(-, -, -)", "(model, -, -)"},
    {"query_latent_tl",             "tl",  false, ATT, "(data, -)", "(data, -)"},
    {"activation_ffw_out_td",       "td",  false, FFW | MOE, "(-, -)", "(data, -)"},
    {"ffw_bias_f",                  "f",   true,  FFW, "(-)", "(model+expert)"},
    {"ffw_bias_d",                  "d",   true,  FFW, "(-)", "(-)"},
    {"shared_gate_weight_de",       "de",  true,  FFW, "(-, -)", "(-, -)"},
    {"shared_gate_te",              "te",  false, FFW, "(-, -)", "(data, -)"},
    {"router_logits_te",            "te",  false, MOE, "(-, -)", "(data, expert)"},
    {"router_choice_tc",            "tc",  false, MOE, "(-, -)", "(data, -)"},
    {"router_choice_bias_e",        "e",   true,  MOE, "(-)", "(-)"},
    {"moe_hidden_tef",              "tef", false, MOE, "(-, -, -)", "(data, expert, model)"},
    {"moe_out_ted",                 "ted", false, MOE, "(-, -, -)", "(data, expert, -)"},
    {"moe_bias_ef",                 "ef",  true,  MOE, "(-, -)", "(expert, model)"},
    {"moe_bias_ed",                 "ed",  true,  MOE, "(-, -)", "(expert, -)"},
    {"position_weight_vd",          "vd",  true,  OUT, "(-, -)", "(-, -)"},
    {"type_weight_vd",              "vd",  true,  OUT, "(-, -)", "(-, -)"},
    {"rope_table_th",               "th",  false, OUT, "(data, -)", "(data, -)"},
    {"activation_rd",               "rd",  false, OUT, "(-, -)", "(data, -)"},
    {"pooler_weight_dd",            "dd",  true,  OUT, "(-, -)", "(-, -)"},
    {"pooler_bias_d",               "d",   true,  OUT, "(-)", "(-)"},
    {"pooled_td",                   "td",  false, OUT, "(-, -)", "(data, -)"},
    {"token_ids_t",                 "t",   false, OUT, "(-)", "(data)"},
    {"positions_t",                 "t",   false, OUT, "(-)", "(data)"},
    {"token_types_t",               "t",   false, OUT, "(-)", "(data)"},
};
/* clang-format on */

static_assert(OCTAVO_COUNT(table) == OCTAVO_NAMED_TENSORS, "as many as rules have room for");

const octavo_named_tensor *octavo_named_tensor_at(int index) {
    return &table[index];
}

int octavo_named_tensor_find(const char *name) {
    for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++)
        if (strcmp(table[i].name, name) == 0) return i;
    return -1;
}

enum { MAX_NAME = 40 }; /* what is longer is like none */

/* Letters to insert, remove or change to make one name of the other. */
static int edits(const char *a, const char *b) {
    int row[MAX_NAME + 1], n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

void octavo_named_tensor_nearest(const char *name, int nearest[OCTAVO_NEAREST]) {
    char shown[MAX_NAME + 1];
    int fewest[OCTAVO_NEAREST + 1], n = 0;
    snprintf(shown, sizeof shown, "%s", name);
    for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++) {
        const int count = edits(shown, table[i].name);
        int at = n < OCTAVO_NEAREST ? n++ : OCTAVO_NEAREST;
        for (; at > 0 && fewest[at - 1] > count; at--) {
            fewest[at] = fewest[at - 1];
            if (at < OCTAVO_NEAREST) nearest[at] = nearest[at - 1];
        }
        fewest[at] = count;
        if (at < OCTAVO_NEAREST) nearest[at] = i;
    }
}
