/* SPDX-License-Identifier: Apache-2.0
 *
 * What is where in the folder of a Hugging Face checkpoint. Only names are looked at; what is in
 * the files is their readers' business: safetensors.h for the weights, octavo_hf_json_read for the
 * rest.
 */
#ifndef OCTAVO_FORMATS_HF_FOLDER_H
#define OCTAVO_FORMATS_HF_FOLDER_H

#include "octavo/status.h"

#include <stdbool.h>

/* Paths begin with the folder's as it was given. NULL: the folder has no such file. */
typedef struct octavo_hf_folder {
    char *path;               /* of the folder */
    char *config;             /* config.json */
    char *weights;            /* for octavo_safetensors_open */
    bool sharded;             /* weights is an index */
    char *tokenizer;          /* tokenizer.json, else tekken.json, else tokenizer.model; or NULL */
    char *tokenizer_config;   /* tokenizer_config.json, or NULL */
    char *generation_config;  /* generation_config.json, or NULL */
    char *chat_template;      /* chat_template.jinja, or NULL */
    char *chat_template_json; /* chat_template.json, or NULL */
} octavo_hf_folder;

/* Looks through a folder. The weights are model.safetensors; else model.safetensors.index.json;
 * else the only *.safetensors or, before that, the only *.safetensors.index.json, whatever its
 * name.
 *   OCTAVO_ERROR_NOT_FOUND  the folder does not exist, has no config.json, or no weights: the
 *                           message says what it has instead
 *   OCTAVO_ERROR_INVALID    several files could be the weights; the message names two
 *   OCTAVO_ERROR_IO         it cannot be read, or is no folder
 *   OCTAVO_ERROR_MEMORY
 * On success the caller ends *folder with octavo_hf_folder_deinit. Any thread. */
OCTAVO_MUST_CHECK octavo_status octavo_hf_folder_read(const char *path, octavo_hf_folder *folder,
                                                      octavo_error *error);
void octavo_hf_folder_deinit(octavo_hf_folder *folder); /* takes a zero-initialised one too */

#endif
