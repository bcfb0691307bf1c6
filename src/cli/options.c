/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser: finds each argument's option in the tables and hands its value on.
 */
#include "cli/options.h"

#include "cli/options_value.h"
#include "cli/report.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WORD = 64 };

static size_t min_of(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t octavo_edit_distance(const char *a, const char *b) {
    size_t row[MAX_WORD + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > MAX_WORD || m > MAX_WORD) return n + m;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t kept = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = min_of(kept, min_of(row[j], row[j - 1]) + 1);
        }
    }
    return row[m];
}

/* An argument that begins with a dash, taken apart. */
typedef struct found_option {
    const octavo_option *option; /* NULL: none of that name */
    void *values;
    const char *attached; /* value in the same argument, or NULL */
} found_option;

/* The value that stands in the same argument; false when `argument` is another option. */
static bool matches(const octavo_option *option, const char *argument, const char **attached) {
    size_t n = strlen(option->name);
    if (strncmp(argument, option->name, n) != 0) return false;
    *attached = argument[n] ? argument + n : NULL;
    if (!argument[n]) return true;
    if (argument[1] != '-') return true; /* -xVALUE */
    if (argument[n] != '=') return false;
    *attached = argument + n + 1;
    return true;
}

static found_option find_option(const octavo_command_line *line, const char *argument) {
    found_option found = {0};
    for (size_t g = 0; g < line->n_groups; g++) {
        const octavo_option_group *group = &line->groups[g];
        for (size_t i = 0; i < group->n_options; i++) {
            if (!matches(&group->options[i], argument, &found.attached)) continue;
            found.option = &group->options[i];
            found.values = group->values;
            return found;
        }
    }
    return found;
}

static int refuse_unknown(const octavo_command_line *line, const char *argument) {
    const char *best = NULL;
    char name[MAX_WORD];
    size_t least = 3;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(argument, "="), argument);
    for (size_t g = 0; g < line->n_groups; g++) {
        for (size_t i = 0; i < line->groups[g].n_options; i++) {
            const char *other = line->groups[g].options[i].name;
            size_t distance = octavo_edit_distance(name, other);
            if (other[1] != '-' || distance >= least) continue;
            least = distance;
            best = other;
        }
    }
    if (best)
        return octavo_cli_usage("%s (%s): no such option; did you mean %s?", line->command->name,
                                name, best);
    return octavo_cli_usage("%s (%s): no such option; see octavo %s --help", line->command->name,
                            name, line->command->name);
}

/* Takes argv[*index] and what belongs to it. */
static int take_option(const octavo_command_line *line, int *index) {
    const char *argument = line->argv[*index];
    found_option found = find_option(line, argument);
    const char *value = found.attached;
    if (!found.option) return refuse_unknown(line, argument);
    if (found.option->kind == OCTAVO_OPTION_FLAG) {
        if (value)
            return octavo_cli_usage("option %s (%s): takes no value; leave it out",
                                    found.option->name, value);
    } else if (!value) {
        if (*index + 1 >= line->argc)
            return octavo_cli_usage("option %s (end of the line): a value is missing; give %s %s",
                                    found.option->name, found.option->name,
                                    found.option->value ? found.option->value : "VALUE");
        value = line->argv[++*index];
    }
    int status = octavo_option_store(found.option, value, found.values);
    if (status >= 0 || found.option->kind != OCTAVO_OPTION_PAIR) return status;
    if (*index + 1 >= line->argc || line->argv[*index + 1][0] == '-')
        return octavo_cli_usage("option %s (%s): the second of its two values is missing; give %s "
                                "%s",
                                found.option->name, value, found.option->name, found.option->value);
    return octavo_option_store(found.option, line->argv[++*index], found.values);
}

/* The name of argument `index` in "MODEL FILE"; its length is *length, 0 when there is none. */
static const char *argument_name(const octavo_command *command, int index, int *length) {
    const char *name = command->arguments;
    for (; index > 0 && *name; index--) {
        name += strcspn(name, " ");
        name += strspn(name, " ");
    }
    *length = (int)strcspn(name, " ");
    return name;
}

static int take_argument(octavo_command_line *line, int *n_arguments, const char *argument) {
    int length;
    argument_name(line->command, *n_arguments, &length);
    if (length == 0 || *n_arguments == OCTAVO_MAX_ARGUMENTS)
        return octavo_cli_usage("%s (%s): one argument too many; usage: octavo %s%s%s [options]",
                                line->command->name, argument, line->command->name,
                                line->command->arguments[0] ? " " : "", line->command->arguments);
    line->arguments[(*n_arguments)++] = argument;
    return -1;
}

int octavo_command_line_parse(octavo_command_line *line) {
    bool has_options = true;
    int n_arguments = 0, length;
    for (int i = 0; i < line->argc; i++) {
        const char *argument = line->argv[i];
        int status = -1;
        if (has_options && strcmp(argument, "--") == 0) {
            has_options = false;
        } else if (has_options && (strcmp(argument, "--help") == 0 || !strcmp(argument, "-h"))) {
            octavo_command_line_help(line);
            return OCTAVO_EXIT_DONE;
        } else if (has_options && argument[0] == '-' && argument[1]) {
            status = take_option(line, &i);
        } else {
            status = take_argument(line, &n_arguments, argument);
        }
        if (status >= 0) return status;
    }
    const char *missing = argument_name(line->command, n_arguments, &length);
    if (length > 0)
        return octavo_cli_usage("%s (command line): %.*s is missing; usage: octavo %s %s [options]",
                                line->command->name, length, missing, line->command->name,
                                line->command->arguments);
    return -1;
}
