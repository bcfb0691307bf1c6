/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns from JSON. Texts come from the model file: control characters never get to a terminal.
 */
#include "cli/inspect_text.h"

#include "base/buffer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_WIDTH = 90 };

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "?";
}

static double number_of(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

/* "1.23 GB": by 1000, as sizes of files go. */
static void print_amount(double value, const char *const units[4]) {
    int i = 0;
    for (; value >= 1000.0 && i < 3; i++)
        value /= 1000.0;
    printf(i == 0 ? "%.0f%s" : "%.2f%s", value, units[i]);
}

static void print_bytes(double bytes) {
    static const char *const units[] = {" B", " kB", " MB", " GB"};
    print_amount(bytes, units);
}

static void print_count(double count) {
    static const char *const units[] = {"", " thousand", " million", " billion"};
    print_amount(count, units);
}

/* One line of at most VALUE_WIDTH bytes, cut at a whole character. */
static void print_line(const char *text) {
    size_t length = strlen(text), n = length < VALUE_WIDTH ? length : VALUE_WIDTH;
    while (n < length && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++)
        putchar((unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i]);
    if (n < length) printf("...");
}

static void print_value(const json_t *value) {
    if (json_is_string(value)) {
        print_line(json_string_value(value));
        return;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    if (text) print_line(text);
    /* jansson's own allocation, hence its own way to free it. */
    json_malloc_t take;
    json_free_t give;
    json_get_alloc_funcs(&take, &give);
    give(text);
}

static void print_summary(const json_t *document) {
    json_t *tokenizer = json_object_get(document, "tokenizer");
    const char *chat = json_string_value(json_object_get(document, "chat_template"));
    print_line(text_of(document, "path"));
    printf("\n  architecture  ");
    print_line(text_of(document, "architecture"));
    printf("\n  parameters    ");
    print_count(number_of(document, "parameters"));
    printf("\n  weights       ");
    print_bytes(number_of(document, "bytes"));
    printf("\n  file          %s", text_of(document, "format"));
    if (json_is_number(json_object_get(document, "version")))
        printf(" version %.0f", number_of(document, "version"));
    printf(", %.0f part%s\n", number_of(document, "parts"),
           number_of(document, "parts") > 1.0 ? "s" : "");
    if (json_is_object(tokenizer)) {
        printf("  tokenizer     ");
        print_line(text_of(tokenizer, "model"));
        if (json_is_string(json_object_get(tokenizer, "pre"))) {
            printf(", ");
            print_line(text_of(tokenizer, "pre"));
        }
        printf(", %.0f tokens\n", number_of(tokenizer, "tokens"));
    } else {
        printf("  tokenizer     none\n");
    }
    if (chat)
        printf("  chat template %zu bytes\n", strlen(chat));
    else
        printf("  chat template none\n");
}

static void print_types(const json_t *types) {
    const char *name;
    json_t *type;
    printf("\nTypes\n");
    json_object_foreach((json_t *)(uintptr_t)types, name, type) {
        printf("  %-8s %5.0f tensors  ", name, number_of(type, "tensors"));
        print_bytes(number_of(type, "bytes"));
        putchar('\n');
    }
}

static void print_metadata(const json_t *metadata) {
    const char *key;
    json_t *value;
    printf("\nMetadata\n");
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value) {
        printf("  ");
        print_line(key);
        printf(" = ");
        print_value(value);
        putchar('\n');
    }
}

/* "49152 x 576" */
static void print_shape(const json_t *shape, int width) {
    octavo_buffer text = {0};
    size_t i;
    json_t *extent;
    octavo_buffer_puts(&text, "");
    json_array_foreach(shape, i, extent) {
        if (i > 0) octavo_buffer_puts(&text, " x ");
        if (json_is_string(extent))
            octavo_buffer_puts(&text, json_string_value(extent));
        else
            octavo_buffer_printf(&text, "%lld", (long long)json_integer_value(extent));
    }
    printf("%-*s", width, text.data ? text.data : "");
    octavo_buffer_deinit(&text);
}

static void print_tensors(const json_t *tensors) {
    size_t i;
    json_t *tensor;
    printf("\nTensors\n");
    json_array_foreach(tensors, i, tensor) {
        printf("  %-32s %-8s ", text_of(tensor, "name"), text_of(tensor, "type"));
        print_shape(json_object_get(tensor, "shape"), 20);
        printf(" ");
        print_bytes(number_of(tensor, "bytes"));
        putchar('\n');
    }
}

/* "%12 activation_td[3]": a tensor of the program and its layer. */
static void print_operand(const json_t *tensors, json_int_t id) {
    const json_t *tensor = json_array_get(tensors, (size_t)id);
    json_int_t layer = json_integer_value(json_object_get(tensor, "layer"));
    printf("%%%lld %s", (long long)id, text_of(tensor, "name"));
    if (layer >= 0) printf("[%lld]", (long long)layer);
}

static void print_program(const json_t *program) {
    const json_t *tensors = json_object_get(program, "tensors");
    size_t i, j;
    json_t *item, *id;
    printf("\nProgram of a step of %.0f tokens; ", number_of(program, "max_tokens"));
    print_bytes(number_of(program, "arena_bytes"));
    printf(" of activations, ");
    print_bytes(number_of(program, "packed_bytes"));
    printf(" of weights (%s)\n\nTensors of the program\n", text_of(program, "weights"));
    json_array_foreach(tensors, i, item) {
        printf("  %%%-4zu %-28s %5.0f  %-10s %-6s %-5s ", i, text_of(item, "name"),
               number_of(item, "layer"), text_of(item, "kind"), text_of(item, "type"),
               text_of(item, "axes"));
        print_shape(json_object_get(item, "shape"), 0);
        putchar('\n');
    }
    printf("\nOperations\n");
    json_array_foreach(json_object_get(program, "ops"), i, item) {
        printf("  %-4zu ", i);
        print_operand(tensors, json_integer_value(json_object_get(item, "out")));
        printf(" = %s(", text_of(item, "op"));
        json_array_foreach(json_object_get(item, "in"), j, id) {
            if (j > 0) printf(", ");
            print_operand(tensors, json_integer_value(id));
        }
        printf(")\n");
    }
}

void octavo_inspect_print(const json_t *document) {
    const json_t *program = json_object_get(document, "program");
    print_summary(document);
    print_types(json_object_get(document, "types"));
    print_metadata(json_object_get(document, "metadata"));
    print_tensors(json_object_get(document, "tensors"));
    if (program) print_program(program);
}
