/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo plan: the JSON document of octavo_plan as it is, or one of its renderings.
 */
#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/plan_compare.h"
#include "cli/plan_view.h"
#include "cli/report.h"

#include "octavo/plan.h"
#include "octavo/template.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { BEST = 5 }; /* rule sets that --search shows */

enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_SVG, FORMAT_HTML };

typedef struct plan_options {
    const char *mesh, *rules;
    const char *compare[2];
    int64_t devices, tokens, context;
    int phase, dtype, logits, format; /* indices into the options' words */
    double link_gbps, memory_gbps;
    bool is_search, is_json;
} plan_options;

#define FIELD(name) offsetof(plan_options, name)
#define DTYPES      "file|f32|bf16"

static const octavo_option OPTIONS[] = {
    {"--mesh", OCTAVO_OPTION_TEXT, "AXIS=N,...",
     "degrees of data, expert, seq and model; one may be -1 (those of --rules, else all 1)",
     FIELD(mesh), 0, 0},
    {"--devices", OCTAVO_OPTION_INT, "N", "how many ranks there are (the product of the degrees)",
     FIELD(devices), 1, 1 << 20},
    {"--rules", OCTAVO_OPTION_TEXT, "FILE", "sharding rules, JSON (the defaults)", FIELD(rules), 0,
     0},
    {"--tokens", OCTAVO_OPTION_INT, "N", "of a step, those of all data groups (512)", FIELD(tokens),
     1, 1 << 24},
    {"--context", OCTAVO_OPTION_INT, "N",
     "how long sequences are (a prefill's own tokens; 1024 where each has one)", FIELD(context), 1,
     INT32_MAX},
    {"--phase", OCTAVO_OPTION_CHOICE, "both|prefill|generate", "which steps are planned (both)",
     FIELD(phase), 0, 0},
    {"--dtype", OCTAVO_OPTION_CHOICE, DTYPES, "of weights (file: as they are)", FIELD(dtype), 0, 0},
    {"--logits", OCTAVO_OPTION_CHOICE, "last|all",
     "of each sequence's last token, or of all tokens (last)", FIELD(logits), 0, 0},
    {"--link-gbps", OCTAVO_OPTION_REAL, "X", "GB/s that a rank sends (1.25)", FIELD(link_gbps),
     1e-3, 1e6},
    {"--memory-gbps", OCTAVO_OPTION_REAL, "X", "GB/s that a rank reads of its memory (50)",
     FIELD(memory_gbps), 1e-3, 1e6},
    {"--format", OCTAVO_OPTION_CHOICE, "text|json|svg|html", "what is written (text)",
     FIELD(format), 0, 0},
    {"--compare", OCTAVO_OPTION_PAIR, "FILE FILE", "two files of rules, beside one another",
     FIELD(compare), 0, 0},
    {"--search", OCTAVO_OPTION_FLAG, NULL, "look for rules that take less time, show the best few",
     FIELD(is_search), 0, 0},
    {"--json", OCTAVO_OPTION_FLAG, NULL, "the same as --format json", FIELD(is_json), 0, 0},
};

/* What the table cannot say alone. Returns -1 or the exit status. */
static int check(plan_options *options) {
    if (options->is_json && options->format > FORMAT_JSON)
        return octavo_cli_usage("option --json (beside --format): two formats; give one of them");
    if (options->is_json) options->format = FORMAT_JSON;
    if (options->compare[0] && options->rules)
        return octavo_cli_usage("option --compare (beside --rules): it names both files of rules; "
                                "leave --rules out");
    if (options->is_search && (options->compare[0] || options->rules))
        return octavo_cli_usage("option --search (beside %s): it tries rules of its own; leave one "
                                "of the two out",
                                options->rules ? "--rules" : "--compare");
    if (options->is_search && options->format == FORMAT_SVG)
        return octavo_cli_usage("option --format (svg): no drawing of many plans; give html, or "
                                "one of the rules found as --rules");
    return -1;
}

static octavo_plan_options library_options(const plan_options *options, const char *rules) {
    static const char *const dtypes[] = {"file", "f32", "bf16"};
    static const int phases[] = {OCTAVO_PLAN_PREFILL | OCTAVO_PLAN_GENERATE, OCTAVO_PLAN_PREFILL,
                                 OCTAVO_PLAN_GENERATE};
    octavo_plan_options what;
    octavo_plan_options_init(&what);
    what.mesh = options->mesh;
    what.devices = (int)options->devices;
    what.rules = rules;
    what.tokens = options->tokens;
    what.context = options->context;
    what.phases = phases[options->phase];
    what.dtype = dtypes[options->dtype];
    what.logits_all = options->logits != 0;
    what.link_gbps = options->link_gbps;
    what.memory_gbps = options->memory_gbps;
    what.search = options->is_search ? BEST : 0;
    return what;
}

/* A plan's text, for octavo_text_free, and the same parsed, for json_decref. */
static octavo_status make_plan(const char *path, const plan_options *options, const char *rules,
                               char **text, json_t **plan, octavo_error *error) {
    const octavo_plan_options what = library_options(options, rules);
    json_error_t problem;
    octavo_status status = octavo_plan(path, &what, text, error);
    if (status) return status;
    *plan = json_loads(*text, 0, &problem);
    if (!*plan)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT, "plan (byte %d): %s", problem.position,
                           problem.text);
    return OCTAVO_OK;
}

static int take_bytes(const char *bytes, size_t size, void *cookie) {
    octavo_buffer_append(cookie, bytes, size);
    return 0;
}

/* All of a rendering or nothing. */
static octavo_status print(const json_t *document, int format, octavo_error *error) {
    octavo_buffer out = {0};
    octavo_status status = OCTAVO_OK;
    if (format == FORMAT_TEXT)
        octavo_view_put_text(&out, document);
    else if (format == FORMAT_SVG)
        octavo_view_put_svg(&out, document);
    else if (format == FORMAT_HTML)
        octavo_view_put_html(&out, document);
    else if (json_dump_callback(document, take_bytes, &out, JSON_COMPACT | JSON_REAL_PRECISION(15)))
        out.failed = true;
    if (format == FORMAT_JSON) octavo_buffer_putc(&out, '\n');
    if (out.failed)
        status = octavo_fail_memory(error, "plan", out.size);
    else
        fwrite(out.data, 1, out.size, stdout);
    octavo_buffer_deinit(&out);
    return status;
}

static octavo_status plan_one(const char *path, const plan_options *options, octavo_error *error) {
    char *text = NULL;
    json_t *plan = NULL;
    octavo_status status = make_plan(path, options, options->rules, &text, &plan, error);
    if (status == OCTAVO_OK && options->format == FORMAT_JSON)
        printf("%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n"); /* as it was made */
    else if (status == OCTAVO_OK)
        status = print(plan, options->format, error);
    json_decref(plan);
    octavo_text_free(text);
    return status;
}

static octavo_status plan_two(const char *path, const plan_options *options, octavo_error *error) {
    json_t *plans[2] = {NULL, NULL}, *document = NULL;
    octavo_status status = OCTAVO_OK;
    for (int i = 0; i < 2 && status == OCTAVO_OK; i++) {
        char *text = NULL;
        status = make_plan(path, options, options->compare[i], &text, &plans[i], error);
        octavo_text_free(text);
    }
    if (status == OCTAVO_OK) {
        document = octavo_view_compare(options->compare, plans);
        status = document ? print(document, options->format, error)
                          : octavo_fail_memory(error, "comparison", 0);
    }
    json_decref(document);
    json_decref(plans[0]);
    json_decref(plans[1]);
    return status;
}

int octavo_command_plan(const octavo_command *command, int argc, char **argv) {
    plan_options options = {.tokens = 512};
    const octavo_option_group group = {"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = &group, .n_groups = 1};
    octavo_error error;
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status < 0) exit_status = check(&options);
    if (exit_status >= 0) return exit_status;
    const octavo_status status = options.compare[0] ? plan_two(line.arguments[0], &options, &error)
                                                    : plan_one(line.arguments[0], &options, &error);
    /* a mesh or rules that make no sense */
    return status == OCTAVO_ERROR_INVALID ? octavo_cli_usage("%s", error.message)
                                          : octavo_cli_exit(status, &error);
}
