/* SPDX-License-Identifier: Apache-2.0
 *
 * Help, made from the same tables that the parser reads.
 */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 28, HELP_WIDTH = 80 };

/* `text` in lines of HELP_WIDTH, all but the first indented; the cursor is at `column`. */
static void print_wrapped(const char *text, int column, int indent) {
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > HELP_WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_option(const octavo_option *option) {
    int column = printf("  %s", option->name);
    if (option->value) column += printf(" %s", option->value);
    if (column >= HELP_COLUMN) {
        putchar('\n');
        column = 0;
    }
    printf("%*s", HELP_COLUMN - column, "");
    print_wrapped(option->help, HELP_COLUMN, HELP_COLUMN);
}

void octavo_command_line_help(const octavo_command_line *line) {
    const octavo_command *command = line->command;
    printf("Usage: octavo %s%s%s [options]\n\n", command->name, *command->arguments ? " " : "",
           command->arguments);
    print_wrapped(command->summary, 0, 0);
    for (size_t g = 0; g < line->n_groups; g++) {
        printf("\n%s:\n", line->groups[g].title);
        for (size_t i = 0; i < line->groups[g].n_options; i++)
            print_option(&line->groups[g].options[i]);
    }
    if (command->details) printf("\n%s\n", command->details);
}
