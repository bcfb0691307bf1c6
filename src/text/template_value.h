/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a render, and the run that owns them. Everything a render makes lives in the run's
 * arena and dies with it. Values are immutable, but for the attributes of a namespace, the position
 * of a generator, a joiner or a cycler. All strings are valid UTF-8.
 *
 * Errors stick: the first failure is kept in run->status and *run->error; from then on every
 * function here returns quickly with an undefined value, and loops look at the status.
 */
#ifndef OCTAVO_TEXT_TEMPLATE_VALUE_H
#define OCTAVO_TEXT_TEMPLATE_VALUE_H

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/memory.h"

#include "octavo/template.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum octavo_tpl_kind {
    OCTAVO_TPL_ABSENT, /* no value at all: an argument not given, a key not found */
    OCTAVO_TPL_UNDEFINED,
    OCTAVO_TPL_NONE,
    OCTAVO_TPL_BOOL,
    OCTAVO_TPL_INTEGER,
    OCTAVO_TPL_FLOAT,
    OCTAVO_TPL_STRING,
    OCTAVO_TPL_LIST,
    OCTAVO_TPL_TUPLE,
    OCTAVO_TPL_DICT,
    OCTAVO_TPL_RANGE,
    OCTAVO_TPL_VIEW,      /* dict.keys(), .values(), .items() */
    OCTAVO_TPL_GENERATOR, /* what map, select and the like give: can be walked once */
    OCTAVO_TPL_NAMESPACE,
    OCTAVO_TPL_MACRO,
    OCTAVO_TPL_METHOD,   /* a builtin bound to its receiver */
    OCTAVO_TPL_FUNCTION, /* a global function */
    OCTAVO_TPL_LOOP,
    OCTAVO_TPL_JOINER,
    OCTAVO_TPL_CYCLER,
} octavo_tpl_kind;

typedef struct octavo_tpl_value octavo_tpl_value;
typedef struct octavo_tpl_run octavo_tpl_run;
typedef struct octavo_tpl_args octavo_tpl_args;
struct octavo_tpl_node;
struct octavo_tpl_scope;
struct octavo_tpl_loop;

typedef struct octavo_tpl_string {
    const char *data; /* [size], not always terminated */
    size_t size;      /* bytes */
    size_t length;    /* code points */
} octavo_tpl_string;

/* List, tuple, view, generator, cycler. */
typedef struct octavo_tpl_list {
    octavo_tpl_value *items; /* [count] */
    size_t count;
    size_t position;  /* generator and cycler: the next item */
    const char *name; /* view: "dict_keys" and so on; generator: where it is from */
} octavo_tpl_list;

typedef struct octavo_tpl_entry octavo_tpl_entry;
/* Entries in order of insertion; an index of open addressing once there are more than a few. */
typedef struct octavo_tpl_dict {
    octavo_tpl_entry *entries; /* [capacity], count used */
    size_t count;
    size_t capacity;
    uint32_t *index; /* [index_size] entry number + 1, 0 is free; NULL for a small dict */
    size_t index_size;
} octavo_tpl_dict;

typedef struct octavo_tpl_range {
    int64_t start, stop, step;
    size_t count;
} octavo_tpl_range;

typedef struct octavo_tpl_macro {
    const struct octavo_tpl_node *node; /* a MACRO or CALL_BLOCK */
    struct octavo_tpl_scope *closure;   /* where it was defined */
} octavo_tpl_macro;

typedef struct octavo_tpl_joiner {
    const octavo_tpl_string *separator;
    bool used;
} octavo_tpl_joiner;

typedef struct octavo_tpl_method octavo_tpl_method;
typedef struct octavo_tpl_builtin octavo_tpl_builtin;

struct octavo_tpl_value {
    octavo_tpl_kind kind;
    octavo_tpl_kind parent; /* UNDEFINED: kind of the object without the attribute, or ABSENT */
    union {
        bool truth;
        int64_t integer;
        double real;
        const octavo_tpl_string *string; /* STRING; UNDEFINED: the name looked for, or NULL */
        octavo_tpl_list *list;           /* LIST, TUPLE, VIEW, GENERATOR, CYCLER */
        octavo_tpl_dict *dict;           /* DICT, NAMESPACE */
        const octavo_tpl_range *range;
        const octavo_tpl_macro *macro;
        const octavo_tpl_method *method;
        const octavo_tpl_builtin *function;
        struct octavo_tpl_loop *loop;
        octavo_tpl_joiner *joiner;
    } as;
};

struct octavo_tpl_entry {
    octavo_tpl_value key;
    octavo_tpl_value value;
    uint64_t hash;
};

typedef struct octavo_tpl_named {
    const octavo_tpl_string *name;
    octavo_tpl_value value;
} octavo_tpl_named;

/* Arguments of a call. For a builtin with parameters they arrive bound: one item a parameter, in
 * order, ABSENT where not given, and nothing named. */
struct octavo_tpl_args {
    octavo_tpl_value *items; /* [count] */
    size_t count;
    octavo_tpl_named *named; /* [named_count] */
    size_t named_count;
};

/* A filter, test, method or function written in C. `self` is the filtered or tested value or the
 * method's object. */
struct octavo_tpl_builtin {
    const char *name;
    const char *parameters; /* names separated by spaces; NULL: takes any arguments, unbound */
    size_t required;        /* how many of them must be given */
    octavo_tpl_value (*call)(octavo_tpl_run *run, octavo_tpl_value self,
                             const octavo_tpl_args *args);
};

struct octavo_tpl_method {
    octavo_tpl_value self;
    const octavo_tpl_builtin *builtin;
};

/* One render. Owner thread only. */
struct octavo_tpl_run {
    octavo_arena arena;
    octavo_buffer out; /* the text so far; its end doubles as scratch for strings being made */
    octavo_status status;
    octavo_error *error; /* the caller's, may be NULL */
    const octavo_template *tmpl;
    const struct octavo_tpl_node *at; /* what is being evaluated, for messages */
    uint64_t steps;
    unsigned depth;
    struct octavo_tpl_scope *scope;
    octavo_tpl_dict *variables;
    octavo_tpl_value captured; /* what a filter or set block has collected */
    octavo_template_time now;
    bool has_now;
};

/* How deep values and calls may nest: bounds the C stack. */
#define OCTAVO_TPL_MAX_NESTING 400u
#define OCTAVO_TPL_MAX_DEPTH   1000u

/* --- errors and budgets --- */

/* Keeps the first failure (with the line of run->at) and returns an undefined value. */
octavo_tpl_value octavo_tpl_fail(octavo_tpl_run *run, const char *format, ...) OCTAVO_PRINTF(2, 3);
octavo_tpl_value octavo_tpl_fail_limit(octavo_tpl_run *run, const char *format, ...)
    OCTAVO_PRINTF(2, 3);
void octavo_tpl_fail_memory(octavo_tpl_run *run, size_t bytes);
/* Takes `steps` from the budget; false once anything failed. */
bool octavo_tpl_charge(octavo_tpl_run *run, size_t steps);
static inline bool octavo_tpl_failed(const octavo_tpl_run *run) {
    return run->status != OCTAVO_OK;
}

/* Zeroed memory of the run; NULL after a failure. */
void *octavo_tpl_alloc(octavo_tpl_run *run, size_t count, size_t size);

/* --- making values --- */

static inline octavo_tpl_value octavo_tpl_absent(void) {
    return (octavo_tpl_value){.kind = OCTAVO_TPL_ABSENT};
}
static inline octavo_tpl_value octavo_tpl_undefined(const octavo_tpl_string *name) {
    return (octavo_tpl_value){.kind = OCTAVO_TPL_UNDEFINED, .as.string = name};
}
static inline octavo_tpl_value octavo_tpl_none(void) {
    return (octavo_tpl_value){.kind = OCTAVO_TPL_NONE};
}
static inline octavo_tpl_value octavo_tpl_bool(bool truth) {
    return (octavo_tpl_value){.kind = OCTAVO_TPL_BOOL, .as.truth = truth};
}
static inline octavo_tpl_value octavo_tpl_integer(int64_t integer) {
    return (octavo_tpl_value){.kind = OCTAVO_TPL_INTEGER, .as.integer = integer};
}
static inline octavo_tpl_value octavo_tpl_float(double real) {
    return (octavo_tpl_value){.kind = OCTAVO_TPL_FLOAT, .as.real = real};
}
octavo_tpl_value octavo_tpl_from_string(const octavo_tpl_string *string);
octavo_tpl_value octavo_tpl_text(octavo_tpl_run *run, const char *data, size_t size); /* copies */
octavo_tpl_value octavo_tpl_text_view(octavo_tpl_run *run, const char *data, size_t size);
octavo_tpl_value octavo_tpl_literal(octavo_tpl_run *run, const char *text); /* text lives forever */
octavo_tpl_list *octavo_tpl_list_new(octavo_tpl_run *run, size_t count);    /* NULL on failure */
octavo_tpl_value octavo_tpl_from_list(octavo_tpl_kind kind, octavo_tpl_list *list);
octavo_tpl_value octavo_tpl_generator(octavo_tpl_list *list, const char *name);
octavo_tpl_value octavo_tpl_pair(octavo_tpl_run *run, octavo_tpl_value a, octavo_tpl_value b);

/* --- dicts --- */

octavo_tpl_dict *octavo_tpl_dict_new(octavo_tpl_run *run, size_t capacity); /* NULL on failure */
octavo_tpl_value octavo_tpl_from_dict(octavo_tpl_kind kind, octavo_tpl_dict *dict);
/* Only while the dict is being made, or on a namespace. */
void octavo_tpl_dict_set(octavo_tpl_run *run, octavo_tpl_dict *dict, octavo_tpl_value key,
                         octavo_tpl_value value);
/* ABSENT when there is no such key. */
octavo_tpl_value octavo_tpl_dict_get(octavo_tpl_run *run, const octavo_tpl_dict *dict,
                                     octavo_tpl_value key);
octavo_tpl_value octavo_tpl_dict_get_text(octavo_tpl_run *run, const octavo_tpl_dict *dict,
                                          const octavo_tpl_string *key);

/* --- what values do --- */

const char *octavo_tpl_type(octavo_tpl_value value); /* Python's name of the type */
bool octavo_tpl_truth(octavo_tpl_value value);
bool octavo_tpl_equal(octavo_tpl_run *run, octavo_tpl_value a, octavo_tpl_value b);
/* Negative, zero, positive; fails for kinds that have no order. */
int octavo_tpl_compare(octavo_tpl_run *run, octavo_tpl_value a, octavo_tpl_value b);
bool octavo_tpl_string_equal(const octavo_tpl_string *a, const octavo_tpl_string *b);
bool octavo_tpl_is(const octavo_tpl_string *string, const char *text);
bool octavo_tpl_is_number(octavo_tpl_value value);                    /* BOOL, INTEGER, FLOAT */
bool octavo_tpl_is_integer(octavo_tpl_value value, int64_t *integer); /* BOOL, INTEGER */
double octavo_tpl_real(octavo_tpl_value number);
bool octavo_tpl_iterable(octavo_tpl_value value);
/* -1 when it has none. */
int64_t octavo_tpl_length(octavo_tpl_value value);
/* The items that a loop over `value` sees; a generator is used up. Empty after a failure. */
octavo_tpl_list octavo_tpl_items(octavo_tpl_run *run, octavo_tpl_value value);
octavo_tpl_value octavo_tpl_range_at(const octavo_tpl_range *range, size_t i);

/* --- writing text (template_print.c) --- */

/* Strings are made at the end of run->out: open, put and close; close cuts the text off again and
 * returns it as a value. Opens nest. */
size_t octavo_tpl_open(octavo_tpl_run *run);
void octavo_tpl_put(octavo_tpl_run *run, const char *data, size_t size);
void octavo_tpl_puts(octavo_tpl_run *run, const char *text);
void octavo_tpl_put_repeated(octavo_tpl_run *run, const char *data, size_t size, size_t times);
void octavo_tpl_put_codepoint(octavo_tpl_run *run, int32_t codepoint);
void octavo_tpl_put_value(octavo_tpl_run *run, octavo_tpl_value value); /* Python's str() */
void octavo_tpl_put_repr(octavo_tpl_run *run, octavo_tpl_value value);  /* Python's repr() */
void octavo_tpl_put_float(octavo_tpl_run *run, double real);
octavo_tpl_value octavo_tpl_close(octavo_tpl_run *run, size_t mark);
octavo_tpl_value octavo_tpl_str(octavo_tpl_run *run, octavo_tpl_value value);

/* --- JSON (template_json.c) --- */

void octavo_tpl_put_json(octavo_tpl_run *run, octavo_tpl_value value, const octavo_tpl_args *args);
octavo_tpl_dict *octavo_tpl_parse_variables(octavo_tpl_run *run, const char *json);

#endif
