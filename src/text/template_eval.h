/* SPDX-License-Identifier: Apache-2.0
 *
 * The evaluator, in pieces: expressions (template_eval.c), statements and macros (template_exec.c),
 * calls (template_call.c), attributes and items (template_access.c), operators
 * (template_operate.c), and the builtins in the remaining files.
 */
#ifndef OCTAVO_TEXT_TEMPLATE_EVAL_H
#define OCTAVO_TEXT_TEMPLATE_EVAL_H

#include "text/template_ast.h"
#include "text/template_value.h"

/* Variables of the template, one turn of a loop, one call of a macro. A name is looked for in the
 * innermost scope first, then outwards, then among the render's variables, then the globals. */
typedef struct octavo_tpl_scope octavo_tpl_scope;
struct octavo_tpl_scope {
    octavo_tpl_scope *parent;
    octavo_tpl_named *variables; /* [capacity], names interned */
    size_t count, capacity;
    const octavo_tpl_hidden *hidden;
};

/* The value of `loop`. */
typedef struct octavo_tpl_loop {
    const octavo_tpl_node *node;
    octavo_tpl_scope *closure; /* where the loop stands: what a recursive call starts from */
    octavo_tpl_list items;
    size_t index;
    size_t depth;             /* of recursive calls, from 0 */
    octavo_tpl_value changed; /* what loop.changed() was given last */
} octavo_tpl_loop;

/* --- scopes --- */

octavo_tpl_scope *octavo_tpl_scope_new(octavo_tpl_run *run, octavo_tpl_scope *parent,
                                       const octavo_tpl_hidden *hidden); /* NULL on failure */
void octavo_tpl_scope_set(octavo_tpl_run *run, octavo_tpl_scope *scope,
                          const octavo_tpl_string *name, octavo_tpl_value value);
octavo_tpl_value octavo_tpl_lookup(octavo_tpl_run *run, const octavo_tpl_string *name);
/* Finds out which names each scope of the template hides: see octavo_tpl_hidden. */
octavo_status octavo_tpl_resolve_scopes(octavo_template *tmpl, octavo_error *error);

/* --- evaluation --- */

octavo_tpl_value octavo_tpl_eval(octavo_tpl_run *run, const octavo_tpl_node *node);
void octavo_tpl_exec_template(octavo_tpl_run *run);
/* False when evaluation is nested too deeply; else octavo_tpl_pop afterwards. */
bool octavo_tpl_push(octavo_tpl_run *run, const octavo_tpl_node *node);
static inline void octavo_tpl_pop(octavo_tpl_run *run) {
    run->depth--;
}

/* --- calls --- */

octavo_tpl_args octavo_tpl_eval_arguments(octavo_tpl_run *run, const octavo_tpl_node *list);
octavo_tpl_value octavo_tpl_call(octavo_tpl_run *run, octavo_tpl_value callee,
                                 const octavo_tpl_args *args);
octavo_tpl_value octavo_tpl_call_builtin(octavo_tpl_run *run, const octavo_tpl_builtin *builtin,
                                         octavo_tpl_value self, const octavo_tpl_args *args);
octavo_tpl_value octavo_tpl_call_macro(octavo_tpl_run *run, const octavo_tpl_macro *macro,
                                       const octavo_tpl_args *args);
octavo_tpl_value octavo_tpl_call_loop(octavo_tpl_run *run, const octavo_tpl_loop *loop,
                                      const octavo_tpl_args *args);
/* By name, as map and select do. */
octavo_tpl_value octavo_tpl_filter(octavo_tpl_run *run, octavo_tpl_value name,
                                   octavo_tpl_value input, const octavo_tpl_args *args);
octavo_tpl_value octavo_tpl_test(octavo_tpl_run *run, octavo_tpl_value name, octavo_tpl_value input,
                                 const octavo_tpl_args *args);

/* --- attributes and items --- */

octavo_tpl_value octavo_tpl_attribute(octavo_tpl_run *run, octavo_tpl_value object,
                                      const octavo_tpl_string *name);
octavo_tpl_value octavo_tpl_item(octavo_tpl_run *run, octavo_tpl_value object,
                                 octavo_tpl_value key);
/* Bounds are integers or none. */
octavo_tpl_value octavo_tpl_slice(octavo_tpl_run *run, octavo_tpl_value object,
                                  octavo_tpl_value start, octavo_tpl_value stop,
                                  octavo_tpl_value step);
/* A path such as "a.b.0", or an integer, as the filters' `attribute` is. `fallback` stands in for
 * what is undefined, unless it is absent or none. */
octavo_tpl_value octavo_tpl_path(octavo_tpl_run *run, octavo_tpl_value object,
                                 octavo_tpl_value path, octavo_tpl_value fallback);
octavo_tpl_value octavo_tpl_loop_attribute(octavo_tpl_run *run, octavo_tpl_loop *loop,
                                           const octavo_tpl_string *name);

/* --- operators --- */

octavo_tpl_value octavo_tpl_binary(octavo_tpl_run *run, octavo_tpl_token_kind operation,
                                   octavo_tpl_value a, octavo_tpl_value b);
octavo_tpl_value octavo_tpl_sign(octavo_tpl_run *run, bool minus, octavo_tpl_value value);
/* operation: GT, GE, LT or LE. */
bool octavo_tpl_ordered(octavo_tpl_run *run, octavo_tpl_token_kind operation, octavo_tpl_value a,
                        octavo_tpl_value b);
bool octavo_tpl_contains(octavo_tpl_run *run, octavo_tpl_value container, octavo_tpl_value item);
/* Fails for what is undefined, as most operations do. */
bool octavo_tpl_defined(octavo_tpl_run *run, octavo_tpl_value value);

/* --- builtins --- */

/* The entry of that name in a table, or NULL. */
const octavo_tpl_builtin *octavo_tpl_find(const octavo_tpl_builtin *table, size_t count,
                                          const octavo_tpl_string *name);
const octavo_tpl_builtin *octavo_tpl_function_find(const octavo_tpl_string *name);
/* Methods by the kind of their object. */
const octavo_tpl_builtin *octavo_tpl_method_find(octavo_tpl_kind kind,
                                                 const octavo_tpl_string *name);
const octavo_tpl_builtin *octavo_tpl_string_method_find(const octavo_tpl_string *name);
octavo_tpl_value octavo_tpl_string_split(octavo_tpl_run *run, octavo_tpl_value self,
                                         const octavo_tpl_args *args); /* template_split.c */
octavo_tpl_value octavo_tpl_string_rsplit(octavo_tpl_run *run, octavo_tpl_value self,
                                          const octavo_tpl_args *args);
octavo_tpl_value octavo_tpl_bind(octavo_tpl_run *run, octavo_tpl_value self,
                                 const octavo_tpl_builtin *builtin);

/* Filters on sequences (template_sequences.c) and for markup (template_markup.c), as filter_find
 * looks among them. */
const octavo_tpl_builtin *octavo_tpl_sequence_filter_find(const octavo_tpl_string *name);
const octavo_tpl_builtin *octavo_tpl_markup_filter_find(const octavo_tpl_string *name);
octavo_tpl_value octavo_tpl_filter_wordwrap(octavo_tpl_run *run, octavo_tpl_value input,
                                            const octavo_tpl_args *args); /* template_wrap.c */

/* Shared by string methods and filters (template_strings.c). All take any value's
 * text where Jinja does. */
typedef enum octavo_tpl_case {
    OCTAVO_TPL_UPPER,
    OCTAVO_TPL_LOWER,
    OCTAVO_TPL_TITLE,        /* as str.title: a letter after no letter */
    OCTAVO_TPL_FILTER_TITLE, /* as the filter: a letter after a space, hyphen or bracket */
    OCTAVO_TPL_CAPITALIZE,
    OCTAVO_TPL_SWAPCASE,
} octavo_tpl_case;
octavo_tpl_value octavo_tpl_change_case(octavo_tpl_run *run, const octavo_tpl_string *string,
                                        octavo_tpl_case how);
/* `characters` is none or absent for white space, else a string. */
octavo_tpl_value octavo_tpl_strip(octavo_tpl_run *run, const octavo_tpl_string *string,
                                  octavo_tpl_value characters, bool left, bool right);
/* All, or the first `count` if that is not negative. */
octavo_tpl_value octavo_tpl_replace(octavo_tpl_run *run, const octavo_tpl_string *string,
                                    const octavo_tpl_string *from, const octavo_tpl_string *to,
                                    int64_t count);
octavo_tpl_list *octavo_tpl_split_lines(octavo_tpl_run *run, const octavo_tpl_string *string,
                                        bool keep_ends); /* NULL on failure */
octavo_tpl_value octavo_tpl_join(octavo_tpl_run *run, const octavo_tpl_string *separator,
                                 octavo_tpl_list items, bool strings_only);
/* An optional integer argument; `fallback` when absent or none. Fails for other kinds. */
int64_t octavo_tpl_integer_argument(octavo_tpl_run *run, octavo_tpl_value value, int64_t fallback);

/* printf-style and str.format-style (template_format.c). */
octavo_tpl_value octavo_tpl_percent(octavo_tpl_run *run, const octavo_tpl_string *format,
                                    octavo_tpl_value values);
octavo_tpl_value octavo_tpl_format(octavo_tpl_run *run, const octavo_tpl_string *format,
                                   const octavo_tpl_args *args);
/* strftime in English, whatever the locale (template_time.c). */
void octavo_tpl_put_time(octavo_tpl_run *run, const octavo_tpl_string *format);

#endif
