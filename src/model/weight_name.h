/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tensors of a model are called in GGUF files and in Hugging Face folders: one row for
 * each role, and what a family calls otherwise.
 */
#ifndef OCTAVO_MODEL_WEIGHT_NAME_H
#define OCTAVO_MODEL_WEIGHT_NAME_H

#include "model/checkpoint.h"

typedef enum octavo_weight_role {
    OCTAVO_ROLE_NONE,   /* ends a list */
    OCTAVO_ROLE_LAYERS, /* no tensor: what stands before the number of a layer */
    OCTAVO_ROLE_EMBED,
    OCTAVO_ROLE_POSITIONS,
    OCTAVO_ROLE_TYPES,
    OCTAVO_ROLE_EMBED_NORM,
    OCTAVO_ROLE_EMBED_NORM_BIAS,
    OCTAVO_ROLE_POOLER,
    OCTAVO_ROLE_POOLER_BIAS,
    OCTAVO_ROLE_OUTPUT_NORM,
    OCTAVO_ROLE_OUTPUT_NORM_BIAS,
    OCTAVO_ROLE_OUTPUT,
    /* from here on one in each layer */
    OCTAVO_ROLE_ATTN_NORM,
    OCTAVO_ROLE_ATTN_NORM_BIAS,
    OCTAVO_ROLE_ATTN_QKV, /* q, k and v in one */
    OCTAVO_ROLE_ATTN_Q,
    OCTAVO_ROLE_ATTN_K,
    OCTAVO_ROLE_ATTN_V,
    OCTAVO_ROLE_ATTN_O,
    OCTAVO_ROLE_ATTN_QKV_BIAS,
    OCTAVO_ROLE_ATTN_Q_BIAS,
    OCTAVO_ROLE_ATTN_K_BIAS,
    OCTAVO_ROLE_ATTN_V_BIAS,
    OCTAVO_ROLE_ATTN_O_BIAS,
    OCTAVO_ROLE_SINKS,
    OCTAVO_ROLE_LATENT_Q_A, /* of latent attention: into the latent of queries, its norm, */
    OCTAVO_ROLE_LATENT_Q_A_BIAS,
    OCTAVO_ROLE_LATENT_Q_NORM,
    OCTAVO_ROLE_LATENT_Q_B,  /* and out of it; */
    OCTAVO_ROLE_LATENT_KV_A, /* into the latent of keys and values, */
    OCTAVO_ROLE_LATENT_KV_A_BIAS,
    OCTAVO_ROLE_LATENT_KV_NORM,
    OCTAVO_ROLE_LATENT_KV_B, /* and out of it, each head's keys and then its values, */
    OCTAVO_ROLE_LATENT_K_B,  /* or apart, that of keys with its axes swapped */
    OCTAVO_ROLE_LATENT_V_B,
    OCTAVO_ROLE_Q_NORM,
    OCTAVO_ROLE_K_NORM,
    OCTAVO_ROLE_POST_ATTN_NORM,
    OCTAVO_ROLE_FFW_NORM,
    OCTAVO_ROLE_FFW_NORM_BIAS,
    OCTAVO_ROLE_FFW_GATE_UP, /* gate and up in one */
    OCTAVO_ROLE_FFW_GATE,
    OCTAVO_ROLE_FFW_UP,
    OCTAVO_ROLE_FFW_DOWN,
    OCTAVO_ROLE_ROUTER,
    OCTAVO_ROLE_EXPERT_GATE_UP, /* of all experts, in one */
    OCTAVO_ROLE_EXPERT_GATE,    /* in GGUF files those of all experts in one, else one for each */
    OCTAVO_ROLE_EXPERT_UP,
    OCTAVO_ROLE_EXPERT_DOWN,
    OCTAVO_ROLE_EXPERT_GATE_APART, /* in old GGUF files one for each */
    OCTAVO_ROLE_EXPERT_UP_APART,
    OCTAVO_ROLE_EXPERT_DOWN_APART,
    OCTAVO_ROLE_ROUTER_BIAS,
    OCTAVO_ROLE_CHOICE_BIAS,
    OCTAVO_ROLE_EXPERT_GATE_UP_BIAS,
    OCTAVO_ROLE_EXPERT_GATE_BIAS,
    OCTAVO_ROLE_EXPERT_UP_BIAS,
    OCTAVO_ROLE_EXPERT_DOWN_BIAS,
    OCTAVO_ROLE_SHARED_GATE, /* of the shared expert's feed-forward */
    OCTAVO_ROLE_SHARED_UP,
    OCTAVO_ROLE_SHARED_DOWN,
    OCTAVO_ROLE_SHARED_ROUTER, /* how much of the shared expert a token takes */
    OCTAVO_ROLE_FFW_GATE_BIAS,
    OCTAVO_ROLE_FFW_UP_BIAS,
    OCTAVO_ROLE_FFW_DOWN_BIAS,
    OCTAVO_ROLE_POST_FFW_NORM,
    OCTAVO_ROLE_ATTN_SUM_NORM, /* of the sum with what attention gave */
    OCTAVO_ROLE_ATTN_SUM_NORM_BIAS,
    OCTAVO_ROLE_FFW_SUM_NORM,
    OCTAVO_ROLE_FFW_SUM_NORM_BIAS,
} octavo_weight_role;

/* A family's own name of a role in files of one kind, without what stands before it; a * stands for
 * the expert's number. */
typedef struct octavo_weight_name {
    octavo_weight_role role;
    const char *name;
} octavo_weight_name;

enum { OCTAVO_WEIGHT_NAME_SIZE = 96 };

/* The whole name of a role's tensor, in name [OCTAVO_WEIGHT_NAME_SIZE], which is returned. `layer`
 * counts for roles of layers only, `expert` for those of single experts; `own` ends with
 * OCTAVO_ROLE_NONE and may be NULL. */
const char *octavo_weight_name_make(const octavo_checkpoint *checkpoint,
                                    const octavo_weight_name *own, octavo_weight_role role,
                                    int layer, int expert, char *name);

/* The same of a GGUF file. */
const char *octavo_weight_name_gguf(const octavo_weight_name *own, octavo_weight_role role,
                                    int layer, int expert, char *name);

#endif
