/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of `octavo run` share: its options, and one answer given to standard output.
 */
#ifndef OCTAVO_CLI_RUN_H
#define OCTAVO_CLI_RUN_H

#include "cli/answer.h"
#include "cli/conversation.h"
#include "cli/model_options.h"

typedef struct octavo_run_choice {
    const char *prompt, *file, *system;
    bool is_raw, is_json, ignores_end;
    int64_t max_tokens; /* -1: not given */
    double temperature, top_p, min_p, repeat_penalty;
    int64_t top_k;
    uint64_t seed;
    octavo_texts stops;
    int64_t logprobs; /* -1: not given */
} octavo_run_choice;

/* The settings of an answer; text goes to standard output unless it is to be JSON. */
octavo_answer_options octavo_run_answer_options(const octavo_run_choice *choice, bool has_template);

/* Tells speeds at level info. */
void octavo_run_log_speed(const octavo_log *log, const octavo_answer *answer);

/* Talks on the terminal until the person leaves. */
OCTAVO_MUST_CHECK octavo_status octavo_run_chat(octavo_session *session,
                                                octavo_conversation *conversation,
                                                const octavo_run_choice *choice,
                                                const octavo_log *log, octavo_error *error);

#endif
