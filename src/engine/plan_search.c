/* SPDX-License-Identifier: Apache-2.0
 *
 * The search of rules. From the rules at hand one group of tensors after the other takes the option
 * with which a step takes least time, until none is better than what there is. Each set of rules
 * that was tried on the way is a candidate; the partitioner looks at them with few states, and with
 * all of them at the best ones only.
 */
#include "base/error.h"
#include "base/memory.h"
#include "engine/plan_choices.h"
#include "engine/plan_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEW_STATES = 12,   /* of the partitioner, for candidates */
    MOST_PASSES = 3,   /* over all groups */
    RESERVE = 2,       /* candidates that are looked at beside the wanted ones */
    MOST_TRIED = 1024, /* sets of rules */
};

/* What a rank may need of memory, as a multiple of what it needs by the rules at hand. */
#define MOST_MEMORY 1.25

/* Two sets of rules with which times differ by less, relatively, are as good as one another. */
#define ALIKE 1e-3

/* A set of rules: of each group an option from 1, 0 as it is. */
typedef struct candidate {
    uint8_t option[OCTAVO_CHOICES];
    bool is_legal;
    int n_overrides;
    double seconds[OCTAVO_PHASES], total;
    double memory;         /* weights and cache */
    octavo_buffer rules;   /* JSON, of the best ones */
    octavo_buffer summary; /* likewise */
} candidate;

/* Partitions of one that is looked at closely, or who has an equal one. */
typedef struct close_look {
    octavo_partition partitions[OCTAVO_PHASES];
    int owner[OCTAVO_PHASES];
} close_look;

typedef struct search {
    octavo_planner *planner;
    octavo_plan_choice *choices; /* [OCTAVO_CHOICES] */
    candidate *tried;            /* [n] */
    int n;
    int n_given; /* overrides of the rules at hand */
    double most_memory;
    octavo_error *error;
} search;

/* ---- one set of rules ---- */

static octavo_status apply(search *s, const candidate *c) {
    octavo_rules *rules = &s->planner->rules;
    rules->n_overrides = s->n_given;
    for (int g = 0; g < OCTAVO_CHOICES; g++) {
        if (c->option[g] == 0) continue;
        const octavo_plan_option *option = &s->choices[g].options[c->option[g] - 1];
        for (int i = 0; i < option->n; i++) {
            octavo_status status = octavo_rules_add(rules, &option->overrides[i], s->error);
            if (status) return status;
        }
    }
    return OCTAVO_OK;
}

/* Another set, of the first n, that says the same of a phase, or NULL. */
static const candidate *same_in_phase(const search *s, const candidate *c, octavo_phase phase,
                                      int n) {
    for (int i = 0; i < n; i++) {
        bool is_same = s->tried[i].is_legal && &s->tried[i] != c;
        for (int g = 0; g < OCTAVO_CHOICES && is_same; g++)
            is_same = !s->choices[g].is_in[phase] || s->tried[i].option[g] == c->option[g];
        if (is_same) return &s->tried[i];
    }
    return NULL;
}

/* Time and memory. What cannot be honoured is no error here. */
static octavo_status estimate(search *s, candidate *c) {
    octavo_planner *planner = s->planner;
    octavo_error why;
    octavo_status status = apply(s, c);
    if (status) return status;
    c->n_overrides = planner->rules.n_overrides;
    c->total = 0.0;
    c->is_legal = !octavo_rules_check_norms(&planner->rules, &planner->mesh, &why);
    if (!c->is_legal) return OCTAVO_OK;
    c->memory = octavo_plan_placed_bytes(planner);
    c->is_legal = c->memory <= s->most_memory;
    for (int phase = 0; phase < OCTAVO_PHASES && c->is_legal; phase++) {
        octavo_partition partition;
        if (!octavo_planner_wants(planner, (octavo_phase)phase)) continue;
        const candidate *known = same_in_phase(s, c, (octavo_phase)phase, s->n);
        if (known) {
            c->seconds[phase] = known->seconds[phase];
        } else {
            status = octavo_planner_partition(planner, (octavo_phase)phase, &partition, &why);
            if (status == OCTAVO_ERROR_MEMORY)
                return octavo_fail_memory(s->error, "plan", sizeof partition);
            c->is_legal = !status;
            c->seconds[phase] = partition.seconds;
            octavo_partition_deinit(&partition);
        }
        c->total += c->seconds[phase];
    }
    return OCTAVO_OK;
}

/* To some nine digits, so that the order of a sum's terms makes no difference. */
static double rounded(double x) {
    int exponent;
    const double fraction = frexp(x, &exponent);
    return ldexp(round(ldexp(fraction, 30)), exponent - 30);
}

static int order(double a, double b) {
    const double x = rounded(a), y = rounded(b);
    return (x > y) - (x < y);
}

/* By time; of equally fast ones by memory, then the plainer one. */
static int compare(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->is_legal != y->is_legal) return y->is_legal - x->is_legal;
    const int by_time = order(x->total, y->total), by_memory = order(x->memory, y->memory);
    if (by_time || by_memory) return by_time ? by_time : by_memory;
    if (x->n_overrides != y->n_overrides) return x->n_overrides - y->n_overrides;
    return memcmp(x->option, y->option, sizeof x->option);
}

/* ---- the search ---- */

/* Tries what was not tried yet: *at becomes its number, or -1 where there is no room for more. */
static octavo_status try_options(search *s, const uint8_t option[OCTAVO_CHOICES], int *at) {
    for (*at = 0; *at < s->n; ++*at)
        if (memcmp(s->tried[*at].option, option, sizeof s->tried->option) == 0) return OCTAVO_OK;
    if (s->n == MOST_TRIED) {
        *at = -1;
        return OCTAVO_OK;
    }
    candidate *c = &s->tried[*at];
    memcpy(c->option, option, sizeof c->option);
    octavo_status status = estimate(s, c);
    if (!status) s->n++;
    return status;
}

/* Worth an override: faster, or as fast with less memory. */
static bool is_gain(const candidate *c, const candidate *best) {
    if (!c->is_legal || !best->is_legal) return c->is_legal;
    if (c->total < (1.0 - ALIKE) * best->total) return true;
    return order(c->total, best->total) <= 0 && c->memory < 0.99 * best->memory;
}

static octavo_status descend(search *s) {
    uint8_t best[OCTAVO_CHOICES] = {0};
    int at = 0, best_at = 0;
    octavo_status status = try_options(s, best, &best_at);
    bool is_better = true;
    for (int pass = 0; pass < MOST_PASSES && is_better && !status; pass++) {
        is_better = false;
        for (int g = 0; g < OCTAVO_CHOICES && !status; g++) {
            uint8_t option[OCTAVO_CHOICES];
            memcpy(option, best, sizeof option);
            for (int o = 0; o <= s->choices[g].n && !status; o++) {
                option[g] = (uint8_t)o;
                status = try_options(s, option, &at);
                if (status || at < 0 || !is_gain(&s->tried[at], &s->tried[best_at])) continue;
                best_at = at;
                is_better = true;
            }
            memcpy(best, s->tried[best_at].option, sizeof best);
        }
    }
    return status;
}

static void swap(candidate *a, candidate *b) {
    const candidate other = *a;
    *a = *b;
    *b = other;
}

/* As fast as a, nearly, with no less memory. */
static bool is_like(const candidate *a, const candidate *b) {
    return fabs(b->total - a->total) <= ALIKE * a->total && a->memory <= 1.01 * b->memory;
}

/* Sorts. Of those that are nearly alike the plainest stays; all that stay are at the front. */
static int sort(candidate *list, int n) {
    int kept = 0;
    qsort(list, (size_t)n, sizeof *list, compare);
    for (int i = 0; i < n && list[i].is_legal; i++) {
        int k = 0;
        while (k < kept && !is_like(&list[k], &list[i]))
            k++;
        if (k == kept)
            swap(&list[kept++], &list[i]);
        else if (list[i].n_overrides < list[k].n_overrides && is_like(&list[i], &list[k]))
            swap(&list[k], &list[i]);
    }
    qsort(list, (size_t)kept, sizeof *list, compare);
    return kept;
}

/* The rules at hand are among those that are looked at closely, however slow. */
static void keep_given(const search *s, int n, int *n_close) {
    static const uint8_t given[OCTAVO_CHOICES];
    for (int i = *n_close; i < n; i++) {
        if (memcmp(s->tried[i].option, given, sizeof given) != 0) continue;
        swap(&s->tried[*n_close], &s->tried[i]);
        ++*n_close;
        return;
    }
}

/* All states, and the texts. Partitions of a phase that others among the n before it have, too, are
 * theirs; the others are left in close[n]. */
static octavo_status look_closely(search *s, int n, close_look *close) {
    candidate *c = &s->tried[n];
    octavo_partition partitions[OCTAVO_PHASES] = {0};
    octavo_status status = apply(s, c);
    c->total = 0.0;
    for (int phase = 0; phase < OCTAVO_PHASES && !status; phase++) {
        octavo_partition *own = &close[n].partitions[phase];
        if (!octavo_planner_wants(s->planner, (octavo_phase)phase)) continue;
        const candidate *known = same_in_phase(s, c, (octavo_phase)phase, n);
        if (!known)
            status = octavo_planner_partition(s->planner, (octavo_phase)phase, own, s->error);
        close[n].owner[phase] = known ? close[known - s->tried].owner[phase] : n;
        partitions[phase] = close[close[n].owner[phase]].partitions[phase];
        c->total += partitions[phase].seconds;
    }
    if (status) return status;
    octavo_rules_dump_json(&s->planner->rules, &c->rules);
    octavo_plan_put_summary(s->planner, partitions, &c->summary);
    return OCTAVO_OK;
}

static octavo_status look_at_all(search *s, int n) {
    close_look *close = octavo_alloc_zero((size_t)n, sizeof *close);
    octavo_status status = OCTAVO_OK;
    if (!close) return octavo_fail_memory(s->error, "search of rules", (size_t)n * sizeof *close);
    for (int i = 0; i < n && !status; i++)
        status = look_closely(s, i, close);
    for (int i = 0; i < n; i++)
        for (int phase = 0; phase < OCTAVO_PHASES; phase++)
            octavo_partition_deinit(&close[i].partitions[phase]);
    octavo_free(close);
    return status;
}

static octavo_status find_best(search *s, int wanted, int *n_best) {
    octavo_planner *planner = s->planner;
    s->most_memory = MOST_MEMORY * octavo_plan_placed_bytes(planner);
    planner->costs.most_states = FEW_STATES;
    octavo_status status = descend(s);
    planner->costs.most_states = 0;
    if (status) return status;
    const int n = sort(s->tried, s->n);
    int n_close = wanted + RESERVE < n ? wanted + RESERVE : n;
    keep_given(s, s->n, &n_close);
    status = look_at_all(s, n_close);
    if (status) return status;
    *n_best = sort(s->tried, n_close);
    if (*n_best > wanted) *n_best = wanted;
    return OCTAVO_OK;
}

static void put_found(const search *s, int n, octavo_buffer *out) {
    octavo_buffer_putc(out, '{');
    octavo_plan_put_head(s->planner, out);
    octavo_buffer_puts(out, "\"search\":[");
    for (int i = 0; i < n; i++) {
        const candidate *c = &s->tried[i];
        out->failed |= c->rules.failed || c->summary.failed;
        octavo_buffer_puts(out, i ? ",{\"rules\":" : "{\"rules\":");
        octavo_buffer_append(out, c->rules.data, c->rules.size);
        octavo_buffer_puts(out, ",\"summary\":");
        octavo_buffer_append(out, c->summary.data, c->summary.size);
        octavo_buffer_putc(out, '}');
    }
    octavo_buffer_puts(out, "]}\n");
}

octavo_status octavo_plan_search(octavo_planner *planner, octavo_buffer *out, octavo_error *error) {
    search s = {.planner = planner, .n_given = planner->rules.n_overrides, .error = error};
    octavo_status status = OCTAVO_OK;
    int n_best = 0;
    s.choices = octavo_alloc_zero(OCTAVO_CHOICES, sizeof *s.choices);
    s.tried = octavo_alloc_zero(MOST_TRIED, sizeof *s.tried);
    if (s.choices && s.tried) {
        octavo_plan_choices(planner, s.choices);
        status = find_best(&s, planner->options.search, &n_best);
        if (!status) put_found(&s, n_best, out);
    } else {
        status = octavo_fail_memory(error, "search of rules", MOST_TRIED * sizeof *s.tried);
    }
    for (int i = 0; s.tried && i < MOST_TRIED; i++) {
        octavo_buffer_deinit(&s.tried[i].rules);
        octavo_buffer_deinit(&s.tried[i].summary);
    }
    octavo_free(s.choices);
    octavo_free(s.tried);
    return status;
}
