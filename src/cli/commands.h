/* SPDX-License-Identifier: Apache-2.0
 *
 * All commands, and what the command line says before it names one.
 */
#ifndef OCTAVO_CLI_COMMANDS_H
#define OCTAVO_CLI_COMMANDS_H

#include "cli/options.h"

int octavo_command_run(const octavo_command *command, int argc, char **argv);
int octavo_command_bench(const octavo_command *command, int argc, char **argv);
int octavo_command_bench_attention(const octavo_command *command, int argc, char **argv);
int octavo_command_bench_machine(const octavo_command *command, int argc, char **argv);
int octavo_command_inspect(const octavo_command *command, int argc, char **argv);
int octavo_command_plan(const octavo_command *command, int argc, char **argv);
int octavo_command_quantize(const octavo_command *command, int argc, char **argv);
int octavo_command_tokenize(const octavo_command *command, int argc, char **argv);
int octavo_command_template(const octavo_command *command, int argc, char **argv);
int octavo_command_logits(const octavo_command *command, int argc, char **argv);
int octavo_command_embed(const octavo_command *command, int argc, char **argv);
int octavo_command_perplexity(const octavo_command *command, int argc, char **argv);
int octavo_command_calibrate(const octavo_command *command, int argc, char **argv);

/* Runs what argv [argc] asks for, the program's name first; returns the exit status. */
int octavo_commands_main(int argc, char **argv);

#endif
