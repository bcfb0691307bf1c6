/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines: tables of options, a parser over them, and the help text made from them.
 *
 * Options may stand before or after the arguments; "--" ends them. `--name VALUE`, `--name=VALUE`,
 * `-x VALUE` and `-xVALUE` are the same.
 */
#ifndef OCTAVO_CLI_OPTIONS_H
#define OCTAVO_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an option takes, and the type of the field that receives it. */
typedef enum octavo_option_kind {
    OCTAVO_OPTION_FLAG,   /* nothing; bool */
    OCTAVO_OPTION_INT,    /* a whole number in min..max; int64_t */
    OCTAVO_OPTION_SEED,   /* a whole number of 64 bits; uint64_t */
    OCTAVO_OPTION_REAL,   /* a number in min..max; double */
    OCTAVO_OPTION_SIZE,   /* bytes, "4GiB"; uint64_t */
    OCTAVO_OPTION_TEXT,   /* const char * */
    OCTAVO_OPTION_PAIR,   /* two texts, one behind the other; const char *[2] */
    OCTAVO_OPTION_TEXTS,  /* may be repeated; octavo_texts */
    OCTAVO_OPTION_CHOICE, /* one of the words of `value`; int, the word's index */
    OCTAVO_OPTION_LATER,  /* of a later version: only the words of `value` are taken; no field */
} octavo_option_kind;

typedef struct octavo_texts {
    const char **items; /* [n], views into argv */
    size_t n;
} octavo_texts;

typedef struct octavo_option {
    const char *name; /* "--threads", or "-p" for an option that is one letter */
    octavo_option_kind kind;
    const char *value; /* what help calls it: "N", or the words "fast|exact" */
    const char *help;
    size_t offset;   /* of the field in the group's values */
    double min, max; /* of INT and REAL; whole numbers under 2^53 */
} octavo_option;

typedef struct octavo_option_group {
    const char *title;            /* "Options" */
    const octavo_option *options; /* [n_options] */
    size_t n_options;
    void *values; /* the struct that the offsets are of, defaults filled in */
} octavo_option_group;

typedef struct octavo_command octavo_command;
struct octavo_command {
    const char *name;      /* "run" */
    const char *arguments; /* names of the arguments, all needed: "MODEL FILE" */
    const char *summary;   /* one line */
    const char *details;   /* lines under the options; may be NULL */
    /* Parses argv [argc], which starts behind the command's name, and does the work; returns the
     * exit status. */
    int (*run)(const octavo_command *command, int argc, char **argv);
};

enum { OCTAVO_MAX_ARGUMENTS = 2 };

/* A command line, before (command, argv, groups) and after (arguments) parsing. */
typedef struct octavo_command_line {
    const octavo_command *command;
    int argc;
    char **argv; /* [argc] */
    const octavo_option_group *groups;
    size_t n_groups;
    const char *arguments[OCTAVO_MAX_ARGUMENTS]; /* as many as the command names */
} octavo_command_line;

/* Fills the groups' values and the arguments. Returns -1 to go on, else the exit status: help was
 * printed, or what is wrong with the line was said. Texts point into argv. Whatever it returns,
 * octavo_texts_deinit frees lists of texts. */
int octavo_command_line_parse(octavo_command_line *line);
void octavo_texts_deinit(octavo_texts *texts);

/* Prints the help of the command on standard output. */
void octavo_command_line_help(const octavo_command_line *line);

/* The index of `word` in a list "fast|exact", or -1. */
int octavo_words_find(const char *words, const char *word);

/* How many edits turn one text into the other; for "did you mean". */
size_t octavo_edit_distance(const char *a, const char *b);

#endif
