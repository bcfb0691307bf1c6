/* SPDX-License-Identifier: Apache-2.0
 *
 * The chat templates of real models, which cannot be kept here: $OCTAVO_ORACLE/chat/chat.jsonl
 * holds conversations with what the templates of $OCTAVO_ORACLE/chat/templates make of them.
 * Skipped without that folder. With $OCTAVO_CANDIDATE set, our lines are written to that file too.
 */
#include "base/buffer.h"

#include "octavo/template.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The clock of the goldens. */
static const octavo_template_time noon = {2026, 1, 15, 12, 0, 0};
static const octavo_template_options at_noon = {sizeof(octavo_template_options), &noon};

/* The whole file, or what is there of it; to be deinitialised. */
static octavo_buffer read_file(const char *folder, const char *name) {
    char path[4096], chunk[4096];
    octavo_buffer text = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return text;
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        octavo_buffer_append(&text, chunk, n);
    fclose(file);
    return text;
}

/* What a template sees: the fields of the line and its keyword arguments. */
static char *variables_of(json_t *line) {
    static const char *const fields[] = {"messages", "tools", "add_generation_prompt", "bos_token",
                                         "eos_token"};
    json_t *variables = json_object();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set(variables, fields[i], json_object_get(line, fields[i]));
    json_object_update(variables, json_object_get(line, "kwargs"));
    char *text = json_dumps(variables, 0);
    json_decref(variables);
    return text;
}

static octavo_status render(const char *folder, json_t *line, char **text, octavo_error *error) {
    char name[256];
    octavo_template *tmpl = NULL;
    snprintf(name, sizeof name, "%s.jinja", json_string_value(json_object_get(line, "template")));
    octavo_buffer source = read_file(folder, name);
    assert_true(source.size > 0);
    octavo_status status = octavo_template_create(source.data, source.size, &tmpl, error);
    assert_int_equal(status, OCTAVO_OK);
    char *variables = variables_of(line);
    status = octavo_template_render(tmpl, variables, &at_noon, text, NULL, error);
    free(variables);
    octavo_template_destroy(&tmpl);
    octavo_buffer_deinit(&source);
    return status;
}

static void write_candidate(FILE *file, const char *text, const octavo_error *error) {
    if (file == NULL) return;
    json_t *line = text != NULL ? json_pack("{s:s}", "expected", text)
                                : json_pack("{s:s}", "error", error->message);
    json_dumpf(line, file, JSON_COMPACT);
    fputc('\n', file);
    json_decref(line);
}

/* An exception of the template's own must be told as such, with its text; one of Python's may have
 * any wording. */
static bool check_line(const char *folder, json_t *line, FILE *candidate) {
    octavo_error error = {0};
    char *text = NULL;
    octavo_status status = render(folder, line, &text, &error);
    const char *expected = json_string_value(json_object_get(line, "expected"));
    const char *wrong = json_string_value(json_object_get(line, "error"));
    const char *raised = octavo_template_raised(&error);
    write_candidate(candidate, text, &error);
    bool good = expected != NULL ? status == OCTAVO_OK && strcmp(text, expected) == 0
                : strncmp(wrong, "TypeError", 9) == 0 || strstr(wrong, "undefined") != NULL
                    ? status == OCTAVO_ERROR_FORMAT
                    : raised != NULL && strcmp(raised, wrong) == 0;
    if (!good)
        print_error("%s %s\n  want %s\n  got  %s\n",
                    json_string_value(json_object_get(line, "template")),
                    json_string_value(json_object_get(line, "case")),
                    expected != NULL ? expected : wrong, text != NULL ? text : error.message);
    octavo_text_free(text);
    return good;
}

static void test_conversations(void **state) {
    (void)state;
    char chat[4096], templates[4096];
    size_t lines = 0, failures = 0;
    snprintf(chat, sizeof chat, "%s/chat", getenv("OCTAVO_ORACLE"));
    snprintf(templates, sizeof templates, "%s/chat/templates", getenv("OCTAVO_ORACLE"));
    const char *to = getenv("OCTAVO_CANDIDATE");
    FILE *candidate = to != NULL ? fopen(to, "w") : NULL;
    octavo_buffer goldens = read_file(chat, "chat.jsonl");
    for (char *at = goldens.data; at != NULL && *at != '\0'; lines++) {
        size_t size = strcspn(at, "\n");
        json_t *line = json_loadb(at, size, 0, NULL);
        assert_non_null(line);
        failures += !check_line(templates, line, candidate);
        json_decref(line);
        at += size + (at[size] == '\n');
    }
    octavo_buffer_deinit(&goldens);
    if (candidate != NULL) fclose(candidate);
    assert_true(lines > 0);
    assert_int_equal(failures, 0);
}

int main(void) {
    if (getenv("OCTAVO_ORACLE") == NULL) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conversations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
