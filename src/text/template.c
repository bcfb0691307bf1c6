/* SPDX-License-Identifier: Apache-2.0
 *
 * The public face of chat templates: create, render, destroy.
 */
#include "octavo/template.h"

#include "base/error.h"
#include "text/template_eval.h"
#include "text/template_parse.h"
#include "text/template_string.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RAISED "template raised: "

/* --- failures of a run --- */

static OCTAVO_PRINTF(3, 0) octavo_tpl_value
    keep_failure(octavo_tpl_run *run, octavo_status status, const char *format, va_list args) {
    char why[300];
    if (run->status != OCTAVO_OK) return octavo_tpl_undefined(NULL);
    vsnprintf(why, sizeof why, format, args);
    octavo_tpl_place place =
        octavo_tpl_find_place(run->tmpl->source, run->at != NULL ? run->at->offset : 0);
    run->status = octavo_fail(run->error, status, "chat template (line %zu, column %zu): %s",
                              place.line, place.column, why);
    return octavo_tpl_undefined(NULL);
}

octavo_tpl_value octavo_tpl_fail(octavo_tpl_run *run, const char *format, ...) {
    va_list args;
    va_start(args, format);
    octavo_tpl_value undefined = keep_failure(run, OCTAVO_ERROR_FORMAT, format, args);
    va_end(args);
    return undefined;
}

octavo_tpl_value octavo_tpl_fail_limit(octavo_tpl_run *run, const char *format, ...) {
    va_list args;
    va_start(args, format);
    octavo_tpl_value undefined = keep_failure(run, OCTAVO_ERROR_LIMIT, format, args);
    va_end(args);
    return undefined;
}

void octavo_tpl_fail_memory(octavo_tpl_run *run, size_t bytes) {
    if (run->status == OCTAVO_OK)
        run->status = octavo_fail_memory(run->error, "rendering a chat template", bytes);
}

/* --- create --- */

/* Copies `text` with \r\n and \r made \n, without one last line end. Returns the new size. */
static size_t normalise(const char *text, size_t length, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '\r') {
            out[n++] = text[i];
            continue;
        }
        out[n++] = '\n';
        if (i + 1 < length && text[i + 1] == '\n') i++;
    }
    return n > 0 && out[n - 1] == '\n' ? n - 1 : n;
}

/* Where byte `offset` of the normalised text stands in the original. */
static int64_t original_offset(const char *text, size_t length, int64_t offset) {
    size_t i = 0;
    for (int64_t n = 0; n < offset && i < length; n++)
        i += text[i] == '\r' && i + 1 < length && text[i + 1] == '\n' ? 2 : 1;
    return (int64_t)i;
}

static octavo_status check_text(const char *text, size_t length, octavo_error *error) {
    size_t bad;
    if (length > OCTAVO_TEMPLATE_MAX_TEXT)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "chat template: it has %zu bytes, more than %u", length,
                           OCTAVO_TEMPLATE_MAX_TEXT);
    if (!octavo_utf8_valid(text, length, &bad))
        return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, (int64_t)bad,
                              "chat template (byte %zu): not UTF-8", bad);
    return OCTAVO_OK;
}

static octavo_status parse(octavo_template *tmpl, const char *text, size_t length,
                           octavo_error *error) {
    octavo_tpl_parser parser = {.arena = &tmpl->arena};
    tmpl->source = octavo_arena_alloc(&tmpl->arena, length + 1);
    if (tmpl->source == NULL) return octavo_fail_memory(error, "chat template", length);
    tmpl->size = normalise(text, length, tmpl->source);
    parser.lexer.source = tmpl->source;
    parser.lexer.size = tmpl->size;
    parser.lexer.arena = &tmpl->arena;
    parser.lexer.error = error;
    tmpl->body = octavo_tpl_parse(&parser);
    tmpl->name_caller = octavo_tpl_intern(&parser, "caller", 6);
    tmpl->name_varargs = octavo_tpl_intern(&parser, "varargs", 7);
    tmpl->name_kwargs = octavo_tpl_intern(&parser, "kwargs", 6);
    tmpl->name_loop = octavo_tpl_intern(&parser, "loop", 4);
    octavo_status status = parser.lexer.status;
    if (status != OCTAVO_OK && error != NULL && error->offset > 0)
        error->offset = original_offset(text, length, error->offset);
    return status;
}

octavo_status octavo_template_create(const char *text, size_t length, octavo_template **out,
                                     octavo_error *error) {
    octavo_assert(out != NULL && (text != NULL || length == 0));
    octavo_status status = check_text(text, length, error);
    if (status != OCTAVO_OK) return status;
    octavo_template *tmpl = octavo_alloc_zero(1, sizeof *tmpl);
    if (tmpl == NULL) return octavo_fail_memory(error, "chat template", sizeof *tmpl);
    status = parse(tmpl, text, length, error);
    if (status == OCTAVO_OK) status = octavo_tpl_resolve_scopes(tmpl, error);
    if (status == OCTAVO_OK)
        *out = tmpl;
    else
        octavo_template_destroy(&tmpl);
    return status;
}

void octavo_template_destroy(octavo_template **tmpl) {
    if (*tmpl == NULL) return;
    octavo_arena_deinit(&(*tmpl)->arena);
    octavo_free(*tmpl);
    *tmpl = NULL;
}

/* --- render --- */

static bool valid_time(const octavo_template_time *t) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (t->year < 1 || t->year > 9999 || t->month < 1 || t->month > 12) return false;
    bool leap = (t->year % 4 == 0 && t->year % 100 != 0) || t->year % 400 == 0;
    return t->day >= 1 && t->day <= days[t->month - 1] + (leap && t->month == 2) && t->hour >= 0 &&
           t->hour < 24 && t->minute >= 0 && t->minute < 60 && t->second >= 0 && t->second <= 60;
}

static void prepare(octavo_tpl_run *run, const char *variables_json,
                    const octavo_template_options *options) {
    static const octavo_tpl_string none_when_absent[] = {{"tools", 5, 5}, {"documents", 9, 9}};
    if (options != NULL && options->now != NULL) {
        run->now = *options->now;
        run->has_now = true;
        if (!valid_time(&run->now)) {
            run->status = octavo_fail(run->error, OCTAVO_ERROR_FORMAT,
                                      "template options: `now` is no time of the calendar");
            return;
        }
    }
    run->variables = octavo_tpl_parse_variables(run, variables_json);
    for (size_t i = 0; i < OCTAVO_COUNT(none_when_absent) && !octavo_tpl_failed(run); i++) {
        const octavo_tpl_string *name = &none_when_absent[i];
        if (octavo_tpl_dict_get_text(run, run->variables, name).kind == OCTAVO_TPL_ABSENT)
            octavo_tpl_dict_set(run, run->variables, octavo_tpl_from_string(name),
                                octavo_tpl_none());
    }
}

octavo_status octavo_template_render(const octavo_template *tmpl, const char *variables_json,
                                     const octavo_template_options *options, char **text,
                                     size_t *length, octavo_error *error) {
    octavo_assert(tmpl != NULL && variables_json != NULL && text != NULL);
    octavo_tpl_run run = {.tmpl = tmpl, .error = error};
    prepare(&run, variables_json, options);
    if (!octavo_tpl_failed(&run)) octavo_tpl_exec_template(&run);
    if (!octavo_tpl_failed(&run)) {
        const size_t size = run.out.size;
        octavo_buffer_append(&run.out, "", 0); /* an empty text is a text too */
        char *result = octavo_buffer_take(&run.out);
        if (result == NULL) result = octavo_strdup("");
        if (result == NULL) {
            octavo_tpl_fail_memory(&run, 1);
        } else {
            *text = result;
            if (length != NULL) *length = size;
        }
    }
    octavo_buffer_deinit(&run.out);
    octavo_arena_deinit(&run.arena);
    return run.status;
}

const char *octavo_template_raised(const octavo_error *error) {
    if (error == NULL || error->status != OCTAVO_ERROR_INVALID ||
        strncmp(error->message, RAISED, strlen(RAISED)) != 0)
        return NULL;
    return error->message + strlen(RAISED);
}

void octavo_text_free(char *text) {
    octavo_free(text);
}
