/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a template, rendered with the variables of a conversation. Whatever parses is
 * rendered twice: both must agree.
 */
#include "octavo/template.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char variables[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"},"
    " {\"role\": \"user\", \"content\": \" Gr\\u00fc\\u00dfe \\ud83d\\ude00\\n\"},"
    " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"c1\", \"function\":"
    " {\"name\": \"add\", \"arguments\": {\"a\": 2.5, \"b\": [1, true, {}]}}}]}],"
    " \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"add\"}}],"
    " \"add_generation_prompt\": true, \"bos_token\": \"<s>\", \"eos_token\": \"</s>\","
    " \"n\": 7, \"f\": -0.5, \"s\": \"Hello World\", \"xs\": [3, 1, 2],"
    " \"d\": {\"a\": 1, \"items\": 2}}";

static const octavo_template_time noon = {2026, 1, 15, 12, 0, 0};
static const octavo_template_options at_noon = {sizeof(octavo_template_options), &noon};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    octavo_template *tmpl = NULL;
    octavo_error error = {0};
    char *first = NULL, *second = NULL;
    size_t n_first = 0, n_second = 0;
    if (octavo_template_create((const char *)data, size, &tmpl, &error) != OCTAVO_OK) {
        if (error.offset > (int64_t)size || error.message[0] == '\0') abort();
        return 0;
    }
    octavo_status a = octavo_template_render(tmpl, variables, &at_noon, &first, &n_first, &error);
    octavo_status b = octavo_template_render(tmpl, variables, &at_noon, &second, &n_second, NULL);
    if (a != b || (first == NULL) != (a != OCTAVO_OK)) abort();
    if (first != NULL && (n_first != n_second || memcmp(first, second, n_first) != 0)) abort();
    octavo_text_free(first);
    octavo_text_free(second);
    octavo_template_destroy(&tmpl);
    return 0;
}
