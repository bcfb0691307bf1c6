/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules from JSON. Nothing in a file is ignored: what is not known is an error that says where it
 * stands.
 */
#include "base/error.h"
#include "base/map.h"
#include "sharding/quote.h"
#include "sharding/rules.h"
#include "sharding/rules_part.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NAME_SHOWN = 150 };

/* What is read, and where: begins every message. */
typedef struct place {
    char text[2 * MAX_NAME_SHOWN];
} place;

typedef struct reader {
    octavo_rules *rules;
    bool is_of_program;
    octavo_error *error;
} reader;

/* The end of a very long name, so that the reason has room. */
static place place_of(const char *name) {
    place at;
    const size_t length = strlen(name);
    snprintf(at.text, sizeof at.text, "rules (%s)",
             length > MAX_NAME_SHOWN ? name + (length - MAX_NAME_SHOWN) : name);
    for (char *c = at.text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
    return at;
}

/* "PLACE: key", "PLACE: key.key". */
static place inside(const place *outer, const char *key) {
    place at = *outer;
    const size_t used = strlen(at.text);
    const octavo_quoted quoted = octavo_quote(key, strlen(key));
    snprintf(at.text + used, sizeof at.text - used, "%s%.*s", strstr(at.text, "): ") ? "." : ": ",
             (int)strlen(quoted.text) - 2, quoted.text + 1);
    return at;
}

static octavo_status wrong(reader *r, const place *at, const char *why) {
    return octavo_fail(r->error, OCTAVO_ERROR_INVALID, "%s: %s", at->text, why);
}

/* An object with no other keys than `legal`, a list that ends with NULL. */
static octavo_status check_object(reader *r, const place *at, json_t *value,
                                  const char *const *legal) {
    char list[160] = "";
    const char *key;
    json_t *unused;
    for (int i = 0; legal[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s\"%s\"",
                 i == 0         ? ""
                 : legal[i + 1] ? ", "
                                : " and ",
                 legal[i]);
    if (!json_is_object(value))
        return octavo_fail(r->error, OCTAVO_ERROR_INVALID,
                           "%s: this is no object; write {\"KEY\": ...} with %s", at->text, list);
    json_object_foreach(value, key, unused) {
        int i = 0;
        while (legal[i] && strcmp(legal[i], key) != 0)
            i++;
        if (legal[i]) continue;
        const place inner = inside(at, key);
        return octavo_fail(r->error, OCTAVO_ERROR_INVALID,
                           "%s: there is no such key; here may be %s", inner.text, list);
    }
    return OCTAVO_OK;
}

/* ---- overrides ---- */

static octavo_status find_tensor(reader *r, const place *at, const char *name, int *tensor) {
    *tensor = octavo_named_tensor_find(name);
    if (*tensor >= 0) return OCTAVO_OK;
    int alike[OCTAVO_NEAREST];
    octavo_named_tensor_nearest(name, alike);
    return octavo_fail(
        r->error, OCTAVO_ERROR_INVALID,
        "%s: there is no tensor %s; the names most alike are \"%s\", \"%s\" and "
        "\"%s\"",
        at->text, octavo_quote(name, strlen(name)).text, octavo_named_tensor_at(alike[0])->name,
        octavo_named_tensor_at(alike[1])->name, octavo_named_tensor_at(alike[2])->name);
}

/* {"TENSOR": RULE} for the phases that `scope` holds for. */
static octavo_status read_rules(reader *r, const place *at, json_t *object,
                                const octavo_override *scope) {
    const char *name;
    json_t *rule;
    if (!json_is_object(object)) return wrong(r, at, "this is no object; write {\"TENSOR\": RULE}");
    json_object_foreach(object, name, rule) {
        const place inner = inside(at, name);
        octavo_override override = *scope;
        octavo_status status = find_tensor(r, &inner, name, &override.tensor);
        if (!status && scope->part)
            status = octavo_rules_part_check(scope->part, override.tensor, inner.text, r->error);
        if (!status)
            status = octavo_spec_from_json(rule, octavo_named_tensor_at(override.tensor)->axes,
                                           inner.text, &override.spec, r->error);
        if (!status) status = octavo_rules_add(r->rules, &override, r->error);
        if (status) return status;
    }
    return OCTAVO_OK;
}

/* `all` first, then the phases. */
static octavo_status read_phases(reader *r, const place *at, json_t *object,
                                 const octavo_rules_part *part) {
    static const struct {
        const char *key;
        bool is_in[OCTAVO_PHASES];
    } groups[] = {
        {"all", {true, true}},
        {"prefill", {true, false}},
        {"generate", {false, true}},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(groups); i++) {
        json_t *rules = json_object_get(object, groups[i].key);
        if (!rules) continue;
        const place inner = inside(at, groups[i].key);
        const octavo_override scope = {.is_in = {groups[i].is_in[0], groups[i].is_in[1]},
                                       .is_of_program = r->is_of_program,
                                       .part = part};
        octavo_status status = read_rules(r, &inner, rules, &scope);
        if (status) return status;
    }
    return OCTAVO_OK;
}

static octavo_status read_part(reader *r, const place *at, json_t *object) {
    static const char *const keys[] = {"layers", "block", "all", "prefill", "generate", NULL};
    octavo_rules_part *part = NULL;
    octavo_status status = check_object(r, at, object, keys);
    if (status) return status;
    const place layers = inside(at, "layers"), block = inside(at, "block");
    status = octavo_rules_part_make(r->rules, json_object_get(object, "layers"), layers.text,
                                    json_object_get(object, "block"), block.text, &part, r->error);
    return status ? status : read_phases(r, at, object, part);
}

static octavo_status read_logical_rules(reader *r, const place *at, json_t *object) {
    static const char *const keys[] = {"all", "prefill", "generate", "parts", NULL};
    octavo_status status = check_object(r, at, object, keys);
    if (!status) status = read_phases(r, at, object, NULL);
    json_t *parts = json_object_get(object, "parts");
    if (status || !parts) return status;
    if (!json_is_array(parts)) {
        const place inner = inside(at, "parts");
        return wrong(r, &inner, "this is no array; write [{\"layers\": \"0-3\", \"all\": {...}}]");
    }
    if (json_array_size(parts) > OCTAVO_RULES_MAX_PARTS)
        return octavo_fail(r->error, OCTAVO_ERROR_INVALID,
                           "%s.parts: %zu are more than there may be (%d); name several ranges "
                           "of layers in one, as in \"0-3,8\"",
                           at->text, json_array_size(parts), OCTAVO_RULES_MAX_PARTS);
    for (size_t i = 0; i < json_array_size(parts) && !status; i++) {
        char key[32];
        snprintf(key, sizeof key, "parts[%zu]", i);
        const place inner = inside(at, key);
        status = read_part(r, &inner, json_array_get(parts, i));
    }
    return status;
}

/* ---- the rest of a file ---- */

static octavo_status read_base(reader *r, const place *at, json_t *object, octavo_phase phase) {
    octavo_spec *base = r->rules->base[phase];
    const char *name;
    json_t *rule;
    if (!json_is_object(object)) return wrong(r, at, "this is no object; write {\"TENSOR\": RULE}");
    for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++)
        base[i] = octavo_spec_whole((int)strlen(octavo_named_tensor_at(i)->axes));
    json_object_foreach(object, name, rule) {
        const place inner = inside(at, name);
        int tensor;
        octavo_status status = find_tensor(r, &inner, name, &tensor);
        if (!status)
            status = octavo_spec_from_json(rule, octavo_named_tensor_at(tensor)->axes, inner.text,
                                           &base[tensor], r->error);
        if (status) return status;
    }
    return OCTAVO_OK;
}

static octavo_status read_default_rules(reader *r, const place *at, json_t *object) {
    static const char *const phases[] = {"prefill", "generate", NULL};
    octavo_status status = check_object(r, at, object, phases);
    for (int phase = 0; phase < OCTAVO_PHASES && !status; phase++) {
        json_t *rules = json_object_get(object, phases[phase]);
        if (!rules) continue;
        const place inner = inside(at, phases[phase]);
        status = read_base(r, &inner, rules, (octavo_phase)phase);
    }
    return status;
}

static octavo_status read_strategy(reader *r, const place *at, json_t *object) {
    static const char *const keys[OCTAVO_MESH_AXES + 1] = {
        [OCTAVO_MESH_DATA] = "data_parallelism",
        [OCTAVO_MESH_EXPERT] = "expert_parallelism",
        [OCTAVO_MESH_SEQ] = "sequence_parallelism",
        [OCTAVO_MESH_MODEL] = "tensor_parallelism",
    };
    octavo_status status = check_object(r, at, object, keys);
    for (int axis = 0; axis < OCTAVO_MESH_AXES && !status; axis++) {
        const json_t *degree = json_object_get(object, keys[axis]);
        if (!degree) continue;
        const place inner = inside(at, keys[axis]);
        const json_int_t value = json_integer_value(degree); /* 0 for what is no number */
        if (value < -1 || value == 0)
            return wrong(r, &inner,
                         "this is no degree; a degree is a whole number from 1, or -1 "
                         "for as many as the devices leave over");
        r->rules->degrees[axis] = value;
        r->rules->has_strategy = true;
    }
    return status;
}

static octavo_status read_file(reader *r, const place *at, json_t *root) {
    static const char *const top[] = {"sharding", NULL};
    static const char *const keys[] = {"sharding_strategy", "logical_rules", "default_rules", NULL};
    octavo_status status = check_object(r, at, root, top);
    json_t *sharding = json_object_get(root, "sharding");
    if (status || !sharding) return status;
    static const struct {
        const char *key;
        octavo_status (*read)(reader *, const place *, json_t *);
    } sections[] = {
        {"sharding_strategy", read_strategy},
        {"default_rules", read_default_rules},
        {"logical_rules", read_logical_rules},
    };
    const place outer = inside(at, "sharding");
    status = check_object(r, &outer, sharding, keys);
    for (size_t i = 0; i < OCTAVO_COUNT(sections) && !status; i++) {
        json_t *section = json_object_get(sharding, sections[i].key);
        if (!section) continue;
        const place inner = inside(&outer, sections[i].key);
        status = sections[i].read(r, &inner, section);
    }
    return status;
}

/* ---- bytes ---- */

/* *root is the caller's. */
static octavo_status load(const void *data, size_t size, const place *at, json_t **root,
                          octavo_error *error) {
    json_error_t problem;
    if (size > OCTAVO_RULES_MAX_BYTES)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "%s: %zu bytes are more than rules may have (%d); this is something "
                           "else",
                           at->text, size, OCTAVO_RULES_MAX_BYTES);
    if (size == 0)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "%s: there is nothing in it; write at least {}", at->text);
    json_t *parsed = json_loadb(data, size, JSON_REJECT_DUPLICATES, &problem);
    if (parsed) {
        *root = parsed;
        return OCTAVO_OK;
    }
    /* memory that runs out before the first token leaves no text */
    if (json_error_code(&problem) == json_error_out_of_memory || !problem.text[0])
        return octavo_fail_memory(error, "sharding rules", size);
    for (char *c = problem.text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
    if (json_error_code(&problem) == json_error_duplicate_key)
        return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, problem.position,
                              "%s: line %d has a key that was there before: %.100s; leave one of "
                              "them out",
                              at->text, problem.line, problem.text);
    return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, problem.position,
                          "%s: line %d is no legal JSON: %.100s; rules are an object, as in "
                          "{\"sharding\": {\"logical_rules\": {...}}}",
                          at->text, problem.line, problem.text);
}

octavo_status octavo_rules_parse(octavo_rules *rules, const void *data, size_t size,
                                 const char *name, octavo_error *error) {
    const place at = place_of(name);
    reader r = {.rules = rules, .error = error};
    json_t *root = NULL;
    octavo_status status = load(data, size, &at, &root, error);
    if (!status) status = read_file(&r, &at, root);
    json_decref(root);
    return status;
}

octavo_status octavo_rules_read(octavo_rules *rules, const char *path, octavo_error *error) {
    octavo_map map = {0};
    octavo_status status = octavo_map_open(&map, path, error);
    if (status) return status;
    status = octavo_rules_parse(rules, map.data, map.size, path, error);
    octavo_map_close(&map);
    return status;
}

/* ---- the program's ---- */

/* What the file says of a phase holds no longer. */
static void forget(octavo_rules *rules, const bool *phases) {
    int kept = 0;
    for (int i = 0; i < rules->n_overrides; i++) {
        octavo_override override = rules->overrides[i];
        bool holds = false;
        for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
            if (phases[phase]) override.is_in[phase] = false;
            holds |= override.is_in[phase];
        }
        if (holds) rules->overrides[kept++] = override;
    }
    rules->n_overrides = kept;
}

octavo_status octavo_rules_replace(octavo_rules *rules, const char *all, const char *prefill,
                                   const char *generate, octavo_error *error) {
    const struct {
        const char *key, *text;
    } given[] = {{"all", all}, {"prefill", prefill}, {"generate", generate}};
    const bool phases[OCTAVO_PHASES] = {all || prefill, all || generate};
    const place at = place_of("of the program");
    reader r = {.rules = rules, .is_of_program = true, .error = error};
    octavo_status status = OCTAVO_OK;
    json_t *objects = json_object();
    if (!objects) return octavo_fail_memory(error, "sharding rules", sizeof *objects);
    for (size_t i = 0; i < OCTAVO_COUNT(given) && !status; i++) {
        json_t *object = NULL;
        if (!given[i].text) continue;
        const place inner = inside(&at, given[i].key);
        status = load(given[i].text, strlen(given[i].text), &inner, &object, error);
        if (!status && json_object_set_new(objects, given[i].key, object))
            status = octavo_fail_memory(error, "sharding rules", strlen(given[i].text));
    }
    if (!status) {
        forget(rules, phases);
        status = read_phases(&r, &at, objects, NULL);
    }
    json_decref(objects);
    return status;
}
