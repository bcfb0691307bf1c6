/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/plan_choices.h"

#include "base/compiler.h"

#include <string.h>

/* In a pattern A and B stand for the two splits of an option: of weights A is that of what is
 * theirs (heads, feed-forward width, vocabulary, experts), B that of the model's width or, of
 * experts, of their width; of activations that of tokens and that of columns. */
typedef struct member {
    const char *tensor, *pattern;
} member;

typedef struct split_pair {
    const char *a, *b;
} split_pair;

static const member residual[] = {{"activation_td", "(A, B)"}};
static const member logits[] = {{"logits_tv", "(A, B)"}};
static const member embedding[] = {{"emb_weight_vd", "(A, B)"}};
static const member vocabulary[] = {{"vocab_vd", "(A, B)"}, {"vocab_dv", "(B, A)"}};
static const member feed_forward[] = {{"ffw_weight_df", "(B, A)"},
                                      {"ffw_weight_fd", "(A, B)"},
                                      {"ffw_bias_f", "(A)"},
                                      {"ffw_bias_d", "(B)"}};
static const member experts[] = {{"moe_weights_edf", "(A, -, B)"},
                                 {"moe_weights_efd", "(A, B, -)"},
                                 {"moe_bias_ef", "(A, B)"},
                                 {"moe_bias_ed", "(A, -)"}};
static const member heads[] = {
    {"keyvalue_skh", "(data, A, -)"},
    {"attn_q_weight_dnh", "(B, A, -)"},
    {"attn_k_weight_dkh", "(B, A, -)"},
    {"attn_v_weight_dkh", "(B, A, -)"},
    {"attn_o_weight_nhd", "(A, -, B)"},
    {"attn_q_bias_nh", "(A, -)"},
    {"attn_k_bias_kh", "(A, -)"},
    {"attn_v_bias_kh", "(A, -)"},
    {"attn_o_bias_d", "(B)"},
    {"attn_sinks_n", "(A)"},
    {"query_norm_scale_nh", "(A, -)"},
    {"key_norm_scale_kh", "(A, -)"},
    {"attn_q_b_weight_lnh", "(-, A, -)"},
    {"attn_k_b_weight_nhl", "(A, -, -)"},
    {"attn_v_b_weight_nlh", "(A, -, -)"},
};

static const split_pair of_rows[] = {
    {"data", "-"},
    {"-", "-"},
    {"data+seq", "-"},
    {"data+expert", "-"},
    {"data+expert+seq", "-"},
    {"data+model", "-"},
    {"data+seq+model", "-"},
    {"data+expert+seq+model", "-"},
    {"data", "model"},
    {"data+seq", "model"},
    {"data+expert+seq", "model"},
};
static const split_pair of_logits[] = {
    {"data", "model+expert"},
    {"-", "-"},
    {"data", "-"},
    {"data", "model"},
    {"data", "model+expert+seq"},
    {"data+seq", "model+expert"},
};
static const split_pair of_weights[] = {
    {"model", "-"},
    {"model+expert", "-"},
    {"model+seq", "-"},
    {"model+expert+seq", "-"},
    {"data+model+expert+seq", "-"},
    {"-", "-"},
    {"-", "model"},
    {"-", "model+expert"},
    {"model", "seq"},
    {"model", "data"},
    {"model+expert", "data"},
    {"model+expert+seq", "data"},
};
static const split_pair of_experts[] = {
    {"expert", "model"},        {"expert+model", "-"},        {"expert+seq", "model"},
    {"expert+seq+model", "-"},  {"expert", "seq+model"},      {"data+expert", "model"},
    {"data+expert+model", "-"}, {"data+expert+seq", "model"}, {"data+expert+seq+model", "-"},
    {"-", "expert+model"},
};

static const struct {
    const member *members;
    size_t n_members;
    const split_pair *pairs;
    size_t n_pairs;
    bool is_in[OCTAVO_PHASES];
} groups[OCTAVO_CHOICES] = {
#define GROUP(members, pairs, prefill, generate)                                                   \
    {                                                                                              \
        members, OCTAVO_COUNT(members), pairs, OCTAVO_COUNT(pairs), {                              \
            prefill, generate                                                                      \
        }                                                                                          \
    }
    GROUP(residual, of_rows, true, false),       GROUP(residual, of_rows, false, true),
    GROUP(logits, of_logits, true, false),       GROUP(logits, of_logits, false, true),
    GROUP(feed_forward, of_weights, true, true), GROUP(experts, of_experts, true, true),
    GROUP(heads, of_weights, true, true),        GROUP(vocabulary, of_weights, true, true),
    GROUP(embedding, of_weights, true, true),
#undef GROUP
};

static_assert(OCTAVO_COUNT(heads) <= OCTAVO_MEMBERS && OCTAVO_COUNT(of_weights) <= OCTAVO_OPTIONS &&
                  OCTAVO_COUNT(of_rows) <= OCTAVO_OPTIONS &&
                  OCTAVO_COUNT(of_experts) <= OCTAVO_OPTIONS,
              "room for all");

/* Without the mesh axes that split nothing here. False: not a rule ("data" twice). */
static bool make_spec(const octavo_planner *planner, int tensor, const char *pattern,
                      const split_pair *pair, octavo_spec *spec) {
    const octavo_named_tensor *named = octavo_named_tensor_at(tensor);
    char text[OCTAVO_SPEC_TEXT];
    size_t n = 0;
    for (const char *at = pattern; *at; at++) {
        const char letter[2] = {*at, 0};
        const char *piece = *at == 'A' ? pair->a : *at == 'B' ? pair->b : letter;
        const size_t length = strlen(piece);
        if (n + length >= sizeof text) return false;
        memcpy(text + n, piece, length);
        n += length;
    }
    text[n] = 0;
    octavo_error error;
    if (octavo_spec_parse(text, named->axes, named->name, spec, &error)) return false;
    for (int i = 0; i < spec->n; i++)
        spec->split[i] = octavo_split_reduce(&spec->split[i], &planner->mesh);
    return true;
}

static bool is_as_ruled(const octavo_planner *planner, int tensor, octavo_phase phase,
                        const octavo_spec *spec) {
    octavo_spec ruled;
    if (!octavo_rules_find(&planner->rules, phase, octavo_named_tensor_at(tensor)->name, -1,
                           OCTAVO_BLOCK_ANY, &ruled, NULL))
        return false;
    for (int i = 0; i < ruled.n; i++)
        ruled.split[i] = octavo_split_reduce(&ruled.split[i], &planner->mesh);
    return octavo_spec_equal(&ruled, spec);
}

/* Tensors that a search may speak of: the model has them, and no override does. */
static void find_open(const octavo_planner *planner, bool is_open[OCTAVO_NAMED_TENSORS]) {
    const char *last = NULL;
    memset(is_open, 0, OCTAVO_NAMED_TENSORS * sizeof *is_open);
    for (int i = 0; i < planner->program.n_tensors; i++) {
        const char *name = planner->program.tensors[i].name;
        if (name == last) continue;
        const int tensor = octavo_named_tensor_find(last = name);
        if (tensor >= 0) is_open[tensor] = true;
    }
    for (int i = 0; i < planner->rules.n_overrides; i++)
        is_open[planner->rules.overrides[i].tensor] = false;
}

static bool is_same_option(const octavo_plan_option *a, const octavo_plan_option *b) {
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (a->overrides[i].tensor != b->overrides[i].tensor ||
            !octavo_spec_equal(&a->overrides[i].spec, &b->overrides[i].spec))
            return false;
    return true;
}

void octavo_plan_choices(const octavo_planner *planner, octavo_plan_choice list[OCTAVO_CHOICES]) {
    bool is_open[OCTAVO_NAMED_TENSORS];
    find_open(planner, is_open);
    for (int g = 0; g < OCTAVO_CHOICES; g++) {
        octavo_plan_choice *choice = &list[g];
        const octavo_phase phase =
            groups[g].is_in[OCTAVO_PHASE_GENERATE] ? OCTAVO_PHASE_GENERATE : OCTAVO_PHASE_PREFILL;
        memcpy(choice->is_in, groups[g].is_in, sizeof choice->is_in);
        choice->n = 0;
        for (size_t o = 0; o < groups[g].n_pairs; o++) {
            octavo_plan_option *option = &choice->options[choice->n];
            bool is_legal = true;
            option->n = 0;
            for (size_t m = 0; m < groups[g].n_members && is_legal; m++) {
                const int tensor = octavo_named_tensor_find(groups[g].members[m].tensor);
                octavo_override override = {.tensor = tensor, .is_of_program = true};
                if (tensor < 0 || !is_open[tensor]) continue;
                memcpy(override.is_in, groups[g].is_in, sizeof override.is_in);
                is_legal = make_spec(planner, tensor, groups[g].members[m].pattern,
                                     &groups[g].pairs[o], &override.spec);
                if (is_legal && !is_as_ruled(planner, tensor, phase, &override.spec))
                    option->overrides[option->n++] = override;
            }
            bool is_new = is_legal && option->n > 0;
            for (int k = 0; k < choice->n && is_new; k++)
                is_new = !is_same_option(&choice->options[k], option);
            choice->n += is_new;
        }
    }
}
