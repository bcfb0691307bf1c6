/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands: finds the one that is meant, or helps to find it.
 */
#include "cli/commands.h"

#include "base/compiler.h"
#include "cli/report.h"

#include "octavo/status.h"

#include <stdio.h>
#include <string.h>

/* A name of two words stands before its first word. */
static const octavo_command COMMANDS[] = {
    {"run", "MODEL", "Answers a prompt; on a terminal, without one: a chat.",
     "In a chat: Ctrl-C stops the answer, Ctrl-D or /exit ends, /clear forgets the conversation,\n"
     "a backslash at the end of a line continues it on the next.",
     octavo_command_run},
    {"bench attention", "", "Measures the attention kernel alone.",
     "A batch is Q:KV,Q:KV,...: sequences of Q new tokens in a context of KV, those included;\n"
     "NxQ:KV is N alike. Bytes are what must be read of the cache (each visible key and value\n"
     "once), the queries and the output. Shares are of the machine's limits, measured before and\n"
     "after in the same process.",
     octavo_command_bench_attention},
    {"bench machine", "", "Measures what the machine can do at most, for each number of threads.",
     NULL, octavo_command_bench_machine},
    {"bench", "MODEL", "Measures how fast a model reads prompts and writes answers.",
     "Prefill is timed behind --depth tokens, and so is decoding. Shares are of the machine's\n"
     "limits, measured in the same process (see octavo bench machine).",
     octavo_command_bench},
    {"inspect", "MODEL", "Shows what is in a model file, without loading it.", NULL,
     octavo_command_inspect},
    {"plan", "MODEL", "Shows what splitting a model over ranks costs, without loading it.",
     "MODEL may also be a config.json: no weights are needed. Rules are JSON, {\"sharding\":\n"
     "{\"sharding_strategy\": {...}, \"logical_rules\": {\"all\": {...}}}}. Sizes are those\n"
     "of the rank that holds most.",
     octavo_command_plan},
    {"quantize", "IN OUT", "Writes a model as one GGUF file with weights of another type.",
     "Matrices get the type; norms, biases, routers and what is small stay as they are. Errors "
     "are\n"
     "shares of a tensor's root mean square, of the values as they are read again.",
     octavo_command_quantize},
    {"tokenize", "MODEL", "Turns text into token ids, and back.",
     "Reads one JSON string a line and writes one JSON array of ids a line. MODEL may also be a\n"
     "tokenizer.json, tekken.json or tokenizer.model.",
     octavo_command_tokenize},
    {"template", "MODEL", "Renders conversations with a chat template.",
     "Reads one JSON object a line (messages, tools, add_generation_prompt, and more keys as the\n"
     "template's variables) and writes one JSON string a line, or {\"error\": TEXT}.",
     octavo_command_template},
    {"logits", "MODEL", "Writes the logits after each token id of a list.", NULL,
     octavo_command_logits},
    {"embed", "MODEL", "Turns texts into vectors.",
     "Reads one JSON string a line (or an array of token ids, or an object of \"ids\" and token\n"
     "\"types\") and writes one JSON array a line.",
     octavo_command_embed},
    {"perplexity", "MODEL FILE", "Measures how well a model predicts a text.",
     "The text is cut into windows of --context tokens (512) that do not overlap; where the\n"
     "model's tokenizer begins texts with a token, that replaces the first one of each window.\n"
     "All tokens of a window but the first are predicted.",
     octavo_command_perplexity},
    {"calibrate", "MODEL FILE", "Measures keys and values of a text, for the scales of a cache.",
     "Writes the largest magnitudes of each layer and kv head, which --kv-scales takes in "
     "commands\n"
     "that run the model with an 8-bit --kv-dtype. The text is cut into windows of --context\n"
     "tokens (512); where the model's tokenizer begins texts with a token, that replaces the\n"
     "first one of each. The cache is of f32 here unless --kv-dtype says otherwise.",
     octavo_command_calibrate},
};

static void print_commands(FILE *stream) {
    fputs("Usage: octavo COMMAND [MODEL] [options]\n\n"
          "Runs transformer language models on CPUs. MODEL is a .gguf file (of a split one, the\n"
          "first part), or the folder of a Hugging Face checkpoint.\n\nCommands:\n",
          stream);
    for (size_t i = 0; i < OCTAVO_COUNT(COMMANDS); i++)
        fprintf(stream, "  %-16s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    fputs("\noctavo help COMMAND tells about one, octavo --version tells the version.\n", stream);
}

/* Whether argv [argc] begins with the words of a name; *n_words is how many. */
static bool begins_with(const char *name, int argc, char **argv, int *n_words) {
    int n = 0;
    while (*name) {
        size_t length = strcspn(name, " ");
        if (n >= argc || strlen(argv[n]) != length || memcmp(argv[n], name, length) != 0)
            return false;
        n++;
        name += length;
        name += *name == ' ';
    }
    *n_words = n;
    return true;
}

static const octavo_command *find_command(int argc, char **argv, int *n_words) {
    for (size_t i = 0; i < OCTAVO_COUNT(COMMANDS); i++)
        if (begins_with(COMMANDS[i].name, argc, argv, n_words)) return &COMMANDS[i];
    return NULL;
}

static int refuse_unknown(const char *name) {
    const char *best = NULL;
    size_t least = 3;
    for (size_t i = 0; i < OCTAVO_COUNT(COMMANDS); i++) {
        size_t distance = octavo_edit_distance(name, COMMANDS[i].name);
        if (distance >= least) continue;
        least = distance;
        best = COMMANDS[i].name;
    }
    if (name[0] == '-')
        return octavo_cli_usage("option (%s): stands before any command; see octavo --help", name);
    if (best)
        return octavo_cli_usage("command (%s): unknown command; did you mean octavo %s?", name,
                                best);
    return octavo_cli_usage("command (%s): unknown command; see octavo --help", name);
}

static int run_help(int argc, char **argv) {
    char option[] = "--help", *help[] = {option};
    int n_words;
    if (argc == 0) {
        print_commands(stdout);
        return OCTAVO_EXIT_DONE;
    }
    const octavo_command *command = find_command(argc, argv, &n_words);
    return command ? command->run(command, 1, help) : refuse_unknown(argv[0]);
}

int octavo_commands_main(int argc, char **argv) {
    int n_words;
    if (argc < 2) {
        print_commands(stderr);
        return OCTAVO_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return run_help(0, NULL);
    if (strcmp(argv[1], "help") == 0) return run_help(argc - 2, argv + 2);
    if (strcmp(argv[1], "--version") == 0) {
        printf("octavo %s\n", octavo_version());
        return OCTAVO_EXIT_DONE;
    }
    const octavo_command *command = find_command(argc - 1, argv + 1, &n_words);
    if (!command) return refuse_unknown(argv[1]);
    return command->run(command, argc - 1 - n_words, argv + 1 + n_words);
}
