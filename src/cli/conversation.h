/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages, and the prompt that the model's chat template makes of them.
 *
 * Text from users can never become a special token: where it spells one, a mark goes in behind its
 * first character before the template sees it, by which the tokenizer takes it for text and which
 * it leaves out. The system text is the operator's own and stays as it is, and so does raw text.
 */
#ifndef OCTAVO_CLI_CONVERSATION_H
#define OCTAVO_CLI_CONVERSATION_H

#include "cli/ids.h"

#include "octavo/model.h"
#include "octavo/template.h"

#include <stdbool.h>

typedef struct octavo_message octavo_message;

typedef struct octavo_conversation {
    const octavo_tokenizer *tokenizer; /* not owned */
    octavo_template *tmpl;             /* NULL: texts are taken as they are */
    octavo_ids specials;               /* the special tokens */
    octavo_message *messages;          /* [n_messages] */
    size_t n_messages, n_fixed;        /* the system message, if any, is fixed */
} octavo_conversation;

/* Starts a conversation. With `is_raw`, or where the model has no chat template (which `log` is
 * told), the prompt is the texts themselves; a system text is then refused. `system` may be NULL.
 * Statuses: as octavo_template_create; NOT_FOUND for a system text without a template. On failure
 * nothing is to be freed. */
OCTAVO_MUST_CHECK octavo_status octavo_conversation_init(octavo_conversation *conversation,
                                                         const octavo_model *model, bool is_raw,
                                                         const char *system, const octavo_log *log,
                                                         octavo_error *error);
void octavo_conversation_deinit(octavo_conversation *conversation);

/* Appends a message; `role` is a literal: "user", "assistant". */
OCTAVO_MUST_CHECK octavo_status octavo_conversation_add(octavo_conversation *conversation,
                                                        const char *role, const char *text,
                                                        size_t length, octavo_error *error);
/* Forgets the last message. */
void octavo_conversation_drop(octavo_conversation *conversation);
/* Forgets all but the system message. */
void octavo_conversation_clear(octavo_conversation *conversation);

/* Appends the ids of the prompt for the next answer: begin of text where the model's tokenizer adds
 * it and the template did not. */
OCTAVO_MUST_CHECK octavo_status octavo_conversation_prompt(const octavo_conversation *conversation,
                                                           octavo_ids *ids, octavo_error *error);

#endif
