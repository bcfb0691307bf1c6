/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo inspect: the JSON document of octavo_inspect as it is, or a page made from it.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/inspect_text.h"
#include "cli/model_options.h"
#include "cli/report.h"

#include "octavo/inspect.h"
#include "octavo/template.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

typedef struct inspect_options {
    bool with_program, is_json;
    int precision, weights;
    int64_t chunk;
} inspect_options;

#define FIELD(name) offsetof(inspect_options, name)

static const octavo_option OPTIONS[] = {
    {"--program", OCTAVO_OPTION_FLAG, NULL, "add the program of a step: its tensors and operations",
     FIELD(with_program), 0, 0},
    {"--precision", OCTAVO_OPTION_CHOICE, "fast|exact", "of the program (fast)", FIELD(precision),
     0, 0},
    {"--weights", OCTAVO_OPTION_CHOICE, OCTAVO_WEIGHTS_NAMES,
     "matrices of the program as they are requantised with this option (file)", FIELD(weights), 0,
     0},
    {"--chunk", OCTAVO_OPTION_INT, "N", "tokens of the step that the program is planned for (512)",
     FIELD(chunk), 1, 65536},
    {"--json", OCTAVO_OPTION_FLAG, NULL, "one JSON document", FIELD(is_json), 0, 0},
};

static octavo_status print_text(const char *json, octavo_error *error) {
    json_error_t problem;
    json_t *document = json_loads(json, 0, &problem);
    if (!document)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT, "description (byte %d): %s",
                           problem.position, problem.text);
    octavo_inspect_print(document);
    json_decref(document);
    return OCTAVO_OK;
}

int octavo_command_inspect(const octavo_command *command, int argc, char **argv) {
    inspect_options options = {.chunk = 512};
    const octavo_option_group group = {"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = &group, .n_groups = 1};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status >= 0) return exit_status;

    octavo_error error;
    octavo_inspect_options what;
    char *json = NULL;
    octavo_inspect_options_init(&what);
    what.with_program = options.with_program;
    what.is_exact = options.precision != 0;
    what.weights = (octavo_weights)options.weights;
    what.chunk = (int)options.chunk;
    octavo_status status = octavo_inspect(line.arguments[0], &what, &json, &error);
    if (status == OCTAVO_OK && options.is_json) {
        fwrite(json, 1, strlen(json), stdout);
        putchar('\n');
    } else if (status == OCTAVO_OK) {
        status = print_text(json, &error);
    }
    octavo_text_free(json);
    return octavo_cli_exit(status, &error);
}
