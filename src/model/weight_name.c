/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of names.
 */
#include "model/weight_name.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *gguf, *hf;
} names[] = {
    [OCTAVO_ROLE_LAYERS] = {"blk", "layers"},
    [OCTAVO_ROLE_EMBED] = {"token_embd.weight", "embed_tokens.weight"},
    [OCTAVO_ROLE_POSITIONS] = {"position_embd.weight", "embeddings.position_embeddings.weight"},
    [OCTAVO_ROLE_TYPES] = {"token_types.weight", "embeddings.token_type_embeddings.weight"},
    [OCTAVO_ROLE_EMBED_NORM] = {"token_embd_norm.weight", "embeddings.LayerNorm.weight"},
    [OCTAVO_ROLE_EMBED_NORM_BIAS] = {"token_embd_norm.bias", "embeddings.LayerNorm.bias"},
    [OCTAVO_ROLE_POOLER] = {"pooler.weight", "pooler.dense.weight"},
    [OCTAVO_ROLE_POOLER_BIAS] = {"pooler.bias", "pooler.dense.bias"},
    [OCTAVO_ROLE_OUTPUT_NORM] = {"output_norm.weight", "norm.weight"},
    [OCTAVO_ROLE_OUTPUT_NORM_BIAS] = {"output_norm.bias", "norm.bias"},
    [OCTAVO_ROLE_OUTPUT] = {"output.weight", "lm_head.weight"},
    [OCTAVO_ROLE_ATTN_NORM] = {"attn_norm.weight", "input_layernorm.weight"},
    [OCTAVO_ROLE_ATTN_NORM_BIAS] = {"attn_norm.bias", "input_layernorm.bias"},
    [OCTAVO_ROLE_ATTN_QKV] = {"attn_qkv.weight", "self_attn.qkv_proj.weight"},
    [OCTAVO_ROLE_ATTN_Q] = {"attn_q.weight", "self_attn.q_proj.weight"},
    [OCTAVO_ROLE_ATTN_K] = {"attn_k.weight", "self_attn.k_proj.weight"},
    [OCTAVO_ROLE_ATTN_V] = {"attn_v.weight", "self_attn.v_proj.weight"},
    [OCTAVO_ROLE_ATTN_O] = {"attn_output.weight", "self_attn.o_proj.weight"},
    [OCTAVO_ROLE_ATTN_QKV_BIAS] = {"attn_qkv.bias", "self_attn.qkv_proj.bias"},
    [OCTAVO_ROLE_ATTN_Q_BIAS] = {"attn_q.bias", "self_attn.q_proj.bias"},
    [OCTAVO_ROLE_ATTN_K_BIAS] = {"attn_k.bias", "self_attn.k_proj.bias"},
    [OCTAVO_ROLE_ATTN_V_BIAS] = {"attn_v.bias", "self_attn.v_proj.bias"},
    [OCTAVO_ROLE_ATTN_O_BIAS] = {"attn_output.bias", "self_attn.o_proj.bias"},
    [OCTAVO_ROLE_SINKS] = {"attn_sinks.weight", "self_attn.sinks"},
    [OCTAVO_ROLE_LATENT_Q_A] = {"attn_q_a.weight", "self_attn.q_a_proj.weight"},
    [OCTAVO_ROLE_LATENT_Q_A_BIAS] = {"attn_q_a.bias", "self_attn.q_a_proj.bias"},
    [OCTAVO_ROLE_LATENT_Q_NORM] = {"attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight"},
    [OCTAVO_ROLE_LATENT_Q_B] = {"attn_q_b.weight", "self_attn.q_b_proj.weight"},
    [OCTAVO_ROLE_LATENT_KV_A] = {"attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight"},
    [OCTAVO_ROLE_LATENT_KV_A_BIAS] = {"attn_kv_a_mqa.bias", "self_attn.kv_a_proj_with_mqa.bias"},
    [OCTAVO_ROLE_LATENT_KV_NORM] = {"attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight"},
    [OCTAVO_ROLE_LATENT_KV_B] = {"attn_kv_b.weight", "self_attn.kv_b_proj.weight"},
    [OCTAVO_ROLE_LATENT_K_B] = {"attn_k_b.weight", "self_attn.k_b_proj.weight"},
    [OCTAVO_ROLE_LATENT_V_B] = {"attn_v_b.weight", "self_attn.v_b_proj.weight"},
    [OCTAVO_ROLE_Q_NORM] = {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    [OCTAVO_ROLE_K_NORM] = {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    [OCTAVO_ROLE_POST_ATTN_NORM] = {"post_attention_norm.weight",
                                    "post_attention_layernorm.weight"},
    [OCTAVO_ROLE_FFW_NORM] = {"ffn_norm.weight", "post_attention_layernorm.weight"},
    [OCTAVO_ROLE_FFW_NORM_BIAS] = {"ffn_norm.bias", "post_attention_layernorm.bias"},
    [OCTAVO_ROLE_FFW_GATE_UP] = {"ffn_up.weight", "mlp.gate_up_proj.weight"},
    [OCTAVO_ROLE_FFW_GATE] = {"ffn_gate.weight", "mlp.gate_proj.weight"},
    [OCTAVO_ROLE_FFW_UP] = {"ffn_up.weight", "mlp.up_proj.weight"},
    [OCTAVO_ROLE_FFW_DOWN] = {"ffn_down.weight", "mlp.down_proj.weight"},
    [OCTAVO_ROLE_ROUTER] = {"ffn_gate_inp.weight", "mlp.gate.weight"},
    [OCTAVO_ROLE_EXPERT_GATE_UP] = {"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
    [OCTAVO_ROLE_EXPERT_GATE] = {"ffn_gate_exps.weight", "mlp.experts.*.gate_proj.weight"},
    [OCTAVO_ROLE_EXPERT_UP] = {"ffn_up_exps.weight", "mlp.experts.*.up_proj.weight"},
    [OCTAVO_ROLE_EXPERT_DOWN] = {"ffn_down_exps.weight", "mlp.experts.*.down_proj.weight"},
    [OCTAVO_ROLE_EXPERT_GATE_APART] = {"ffn_gate.*.weight", NULL},
    [OCTAVO_ROLE_EXPERT_UP_APART] = {"ffn_up.*.weight", NULL},
    [OCTAVO_ROLE_EXPERT_DOWN_APART] = {"ffn_down.*.weight", NULL},
    [OCTAVO_ROLE_ROUTER_BIAS] = {"ffn_gate_inp.bias", "mlp.gate.bias"},
    [OCTAVO_ROLE_CHOICE_BIAS] = {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    [OCTAVO_ROLE_EXPERT_GATE_UP_BIAS] = {"ffn_gate_up_exps.bias", "mlp.experts.gate_up_proj_bias"},
    [OCTAVO_ROLE_EXPERT_GATE_BIAS] = {"ffn_gate_exps.bias", "mlp.experts.gate_proj_bias"},
    [OCTAVO_ROLE_EXPERT_UP_BIAS] = {"ffn_up_exps.bias", "mlp.experts.up_proj_bias"},
    [OCTAVO_ROLE_EXPERT_DOWN_BIAS] = {"ffn_down_exps.bias", "mlp.experts.down_proj_bias"},
    [OCTAVO_ROLE_SHARED_GATE] = {"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight"},
    [OCTAVO_ROLE_SHARED_UP] = {"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight"},
    [OCTAVO_ROLE_SHARED_DOWN] = {"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight"},
    [OCTAVO_ROLE_SHARED_ROUTER] = {"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight"},
    [OCTAVO_ROLE_FFW_GATE_BIAS] = {"ffn_gate.bias", "mlp.gate_proj.bias"},
    [OCTAVO_ROLE_FFW_UP_BIAS] = {"ffn_up.bias", "mlp.up_proj.bias"},
    [OCTAVO_ROLE_FFW_DOWN_BIAS] = {"ffn_down.bias", "mlp.down_proj.bias"},
    [OCTAVO_ROLE_POST_FFW_NORM] = {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
    [OCTAVO_ROLE_ATTN_SUM_NORM] = {"attn_output_norm.weight", "attention.output.LayerNorm.weight"},
    [OCTAVO_ROLE_ATTN_SUM_NORM_BIAS] = {"attn_output_norm.bias", "attention.output.LayerNorm.bias"},
    [OCTAVO_ROLE_FFW_SUM_NORM] = {"layer_output_norm.weight", "output.LayerNorm.weight"},
    [OCTAVO_ROLE_FFW_SUM_NORM_BIAS] = {"layer_output_norm.bias", "output.LayerNorm.bias"},
};

static const char *own_name(const octavo_weight_name *own, octavo_weight_role role,
                            const char *usual) {
    for (; own && own->role != OCTAVO_ROLE_NONE; own++)
        if (own->role == role) return own->name;
    return usual;
}

/* A * in the role's name is the expert's number. */
static void layer_name(const char *prefix, const char *layers, int layer, const char *role,
                       int expert, char *name) {
    const char *star = strchr(role, '*');
    const size_t size = OCTAVO_WEIGHT_NAME_SIZE;
    if (star)
        snprintf(name, size, "%s%s.%d.%.*s%d%s", prefix, layers, layer, (int)(star - role), role,
                 expert, star + 1);
    else
        snprintf(name, size, "%s%s.%d.%s", prefix, layers, layer, role);
}

const char *octavo_weight_name_gguf(const octavo_weight_name *own, octavo_weight_role role,
                                    int layer, int expert, char *name) {
    const char *last = own_name(own, role, names[role].gguf);
    if (role >= OCTAVO_ROLE_ATTN_NORM)
        layer_name("", "blk", layer, last, expert, name);
    else
        snprintf(name, OCTAVO_WEIGHT_NAME_SIZE, "%s", last);
    return name;
}

const char *octavo_weight_name_make(const octavo_checkpoint *checkpoint,
                                    const octavo_weight_name *own, octavo_weight_role role,
                                    int layer, int expert, char *name) {
    const bool is_layers = role >= OCTAVO_ROLE_ATTN_NORM;
    const size_t size = OCTAVO_WEIGHT_NAME_SIZE;
    if (checkpoint->gguf) return octavo_weight_name_gguf(own, role, layer, expert, name);
    const char *last = own_name(own, role, names[role].hf);
    if (is_layers)
        layer_name(checkpoint->body_prefix,
                   own_name(own, OCTAVO_ROLE_LAYERS, names[OCTAVO_ROLE_LAYERS].hf), layer, last,
                   expert, name);
    else
        snprintf(name, size, "%s%s",
                 role == OCTAVO_ROLE_OUTPUT ? checkpoint->head_prefix : checkpoint->body_prefix,
                 last);
    return name;
}
