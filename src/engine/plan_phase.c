/* SPDX-License-Identifier: Apache-2.0
 *
 * The document of a plan: what moves in a phase, and when.
 */
#include "engine/plan_json.h"
#include "program/op.h"

#include <string.h>

static const char *phase_name(octavo_phase phase) {
    return phase == OCTAVO_PHASE_PREFILL ? "prefill" : "generate";
}

static void put_layer(octavo_buffer *out, int layer) {
    if (layer < 0)
        octavo_buffer_puts(out, "\"layer\":null");
    else
        octavo_buffer_printf(out, "\"layer\":%d", layer);
}

static const octavo_tensor *tensor_of(const octavo_planner *planner,
                                      const octavo_partition *partition, int value) {
    return &planner->program.tensors[partition->values[value].tensor];
}

/* ---- collectives ---- */

/* One collective as it is told of: a sum that is completed on shards and then gathered again is an
 * all-reduce. */
typedef struct told {
    octavo_transfer transfer;
    int n; /* steps that it is */
} told;

static told tell(const octavo_partition *partition, int index) {
    const octavo_partition_step *step = &partition->steps[index];
    told one = {.transfer = step->transfer, .n = 1};
    if (step->transfer.collective != OCTAVO_COLLECTIVE_REDUCE_SCATTER ||
        index + 1 == partition->n_steps)
        return one;
    const octavo_partition_step *next = step + 1;
    octavo_layout whole = partition->values[step->in[0]].layout;
    whole.partial = (octavo_split){0};
    if (next->kind != OCTAVO_STEP_RESHARD || next->in[0] != step->out ||
        next->transfer.collective != OCTAVO_COLLECTIVE_ALL_GATHER ||
        next->transfer.axes != step->transfer.axes ||
        !octavo_layout_equal(&whole, &partition->values[next->out].layout))
        return one;
    one.transfer.collective = OCTAVO_COLLECTIVE_ALL_REDUCE;
    one.transfer.bytes = next->transfer.bytes;
    one.transfer.wire_bytes += next->transfer.wire_bytes;
    one.n = 2;
    return one;
}

static void print_layout(const octavo_tensor *tensor, const octavo_layout *layout,
                         char text[OCTAVO_SPEC_TEXT]) {
    octavo_spec spec = {.n = (int)strlen(tensor->axes)};
    for (int i = 0; i < spec.n; i++)
        spec.split[i] = layout->split[i];
    octavo_spec_print(&spec, text);
}

/* How many rows such an exchange moves is known when it runs. */
static void put_routing(const octavo_planner *planner, const octavo_partition *partition,
                        const octavo_partition_step *step, octavo_buffer *text) {
    const octavo_layout *from = &partition->values[step->in[0]].layout;
    const bool is_back = octavo_is_routed(tensor_of(planner, partition, step->out), from);
    const octavo_split *experts =
        is_back ? &from->experts : &partition->values[step->out].layout.experts;
    const double share = octavo_routed_share(&planner->program, step->layer,
                                             octavo_split_degree(experts, &partition->mesh));
    octavo_buffer_printf(text,
                         "%s: %.0f %% of the tokens are expected for each rank, if all experts are "
                         "chosen alike; ",
                         is_back ? "combine: a token gets one row from each rank that has any of "
                                   "its experts, the sum of theirs"
                                 : "dispatch: a token's row goes once to each rank that has any of "
                                   "its experts",
                         100.0 * share);
}

static void put_reason(const octavo_planner *planner, const octavo_partition *partition, int index,
                       int n, octavo_buffer *out) {
    const octavo_partition_step *step = &partition->steps[index];
    const octavo_partition_step *last = &partition->steps[index + n - 1];
    const octavo_op *op = &planner->program.ops[step->op];
    const octavo_layout *from = &partition->values[step->in[0]].layout;
    const octavo_layout *to = &partition->values[last->out].layout;
    const octavo_tensor *tensor = tensor_of(planner, partition, step->out);
    octavo_buffer text = {0};
    char spec[OCTAVO_SPEC_TEXT];
    print_layout(tensor, to, spec);
    if (step->choices != OCTAVO_NO_TENSOR)
        put_routing(planner, partition, step, &text);
    else if (from->is_owned)
        octavo_buffer_puts(&text, "each row is on the ranks that have its part of the table; ");
    else if (octavo_is_records(&planner->program, partition->values[step->in[0]].tensor, from))
        octavo_buffer_puts(&text, "each rank has attended to its own positions; ");
    else if (from->partial.n > 0)
        octavo_buffer_puts(&text, "each rank has the sum over its own shard; ");
    switch (step->cause) {
    case OCTAVO_CAUSE_RULE:
        octavo_buffer_printf(&text, "%s is kept %s by its rule", tensor->name, spec);
        break;
    case OCTAVO_CAUSE_INPUT:
        octavo_buffer_printf(&text, "%s takes its input kept %s by that input's rule",
                             planner->program.tensors[op->in[1]].name, spec);
        break;
    case OCTAVO_CAUSE_OPERAND:
        octavo_buffer_printf(&text, "%s that makes %s takes it %s, the cheapest way on from here",
                             octavo_op_info_of(op->kind)->name,
                             planner->program.tensors[op->out].name, spec);
        break;
    }
    octavo_buffer_puts(out, ",\"reason\":");
    octavo_buffer_json_string(out, text.data ? text.data : "", text.size);
    out->failed |= text.failed;
    octavo_buffer_deinit(&text);
}

static void put_collective(const octavo_planner *planner, const octavo_partition *partition,
                           int index, const told *one, octavo_buffer *out) {
    const octavo_partition_step *step = &partition->steps[index];
    const octavo_transfer *t = &one->transfer;
    octavo_buffer_printf(out, "{\"op\":\"%s\",\"tensor\":\"%s\",",
                         octavo_collective_name(t->collective),
                         tensor_of(planner, partition, step->out)->name);
    put_layer(out, step->layer);
    octavo_buffer_puts(out, ",\"axes\":[");
    bool is_first = true;
    for (int a = 0; a < OCTAVO_MESH_AXES; a++) {
        if (!(t->axes >> a & 1)) continue;
        octavo_buffer_printf(out, "%s\"%s\"", is_first ? "" : ",", octavo_mesh_axis_name(a));
        is_first = false;
    }
    octavo_buffer_printf(out, "],\"group\":%d,\"bytes\":%.0f,\"wire_bytes\":%.0f", t->group,
                         t->bytes, t->wire_bytes);
    put_reason(planner, partition, index, one->n, out);
    octavo_buffer_putc(out, '}');
}

static void put_collectives(const octavo_planner *planner, const octavo_partition *partition,
                            octavo_buffer *out) {
    bool is_first = true;
    octavo_buffer_puts(out, "\"collectives\":[");
    for (int i = 0; i < partition->n_steps;) {
        const told one = tell(partition, i);
        if (one.transfer.collective != OCTAVO_COLLECTIVE_NONE) {
            if (!is_first) octavo_buffer_putc(out, ',');
            put_collective(planner, partition, i, &one, out);
            is_first = false;
        }
        i += one.n;
    }
    octavo_buffer_puts(out, "],");
}

/* ---- time ---- */

static bool is_moving(const octavo_partition_step *step) {
    return step->transfer.collective != OCTAVO_COLLECTIVE_NONE;
}

static void put_time(const octavo_planner *planner, const octavo_partition *partition,
                     octavo_buffer *out) {
    double wire_bytes = 0.0, computing = 0.0, moving = 0.0;
    for (int i = 0; i < partition->n_steps; i++) {
        const octavo_partition_step *step = &partition->steps[i];
        wire_bytes += step->transfer.wire_bytes;
        if (is_moving(step))
            moving += step->seconds;
        else
            computing += step->seconds;
    }
    const double total = computing + moving;
    octavo_buffer_printf(out,
                         "\"wire_bytes_per_rank\":%.0f,\"time\":{\"compute_s\":%.6g,\"wire_s\":"
                         "%.6g,\"total_s\":%.6g,\"tokens_per_s\":%.6g}",
                         wire_bytes, computing, moving, total,
                         total > 0.0 ? (double)planner->options.tokens / total : 0.0);
}

/* What a layer does, so that of equal ones the first is shown. */
static uint64_t hash_of_layer(const octavo_planner *planner, const octavo_partition *partition,
                              int begin, int end) {
    uint64_t h = 1469598103934665603u;
    for (int i = begin; i < end; i++) {
        const octavo_partition_step *step = &partition->steps[i];
        if (step->seconds <= 0.0) continue; /* not shown */
        const uint64_t parts[] = {
            (uint64_t)step->kind,
            (uint64_t)planner->program.ops[step->op].kind,
            (uint64_t)(step->transfer.wire_bytes + 0.5),
            (uint64_t)(uintptr_t)tensor_of(planner, partition, step->out)->name,
            (uint64_t)(step->seconds * 1e12 + 0.5),
        };
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            h = (h ^ parts[k]) * 1099511628211u;
    }
    return h;
}

static void put_steps(const octavo_planner *planner, const octavo_partition *partition, int begin,
                      int end, double *start, bool *is_first, octavo_buffer *out) {
    for (int i = begin; i < end; i++) {
        const octavo_partition_step *step = &partition->steps[i];
        if (step->seconds <= 0.0) continue;
        const bool is_wire = is_moving(step);
        octavo_buffer_printf(out, "%s{\"op\":\"%s\",\"tensor\":\"%s\",", *is_first ? "" : ",",
                             is_wire ? octavo_collective_name(step->transfer.collective)
                                     : octavo_op_info_of(planner->program.ops[step->op].kind)->name,
                             tensor_of(planner, partition, step->out)->name);
        put_layer(out, step->layer);
        octavo_buffer_printf(out, ",\"start_s\":%.6g,\"seconds\":%.6g,\"kind\":\"%s\"}", *start,
                             step->seconds, is_wire ? "collective" : "compute");
        *start += step->seconds;
        *is_first = false;
    }
}

enum { MOST_KINDS = 64 };

static void put_timeline(const octavo_planner *planner, const octavo_partition *partition,
                         octavo_buffer *out) {
    uint64_t seen[MOST_KINDS];
    int n_seen = 0;
    double start = 0.0;
    bool is_first = true;
    octavo_buffer_puts(out, ",\"timeline\":[");
    for (int begin = 0, end; begin < partition->n_steps; begin = end) {
        const int layer = partition->steps[begin].layer;
        end = begin + 1;
        if (partition->steps[begin].seconds <= 0.0) continue;
        /* what takes no time may be made for all layers in the middle of one */
        while (end < partition->n_steps &&
               (partition->steps[end].layer == layer || partition->steps[end].seconds <= 0.0))
            end++;
        if (layer >= 0) {
            const uint64_t hash = hash_of_layer(planner, partition, begin, end);
            int k = 0;
            while (k < n_seen && seen[k] != hash)
                k++;
            if (k < n_seen || n_seen == MOST_KINDS) continue;
            seen[n_seen++] = hash;
        }
        put_steps(planner, partition, begin, end, &start, &is_first, out);
    }
    octavo_buffer_putc(out, ']');
}

void octavo_plan_put_phase(const octavo_planner *planner, const octavo_partition *partition,
                           octavo_buffer *out) {
    octavo_buffer_printf(out, ",\"%s\":{", phase_name(partition->phase));
    put_collectives(planner, partition, out);
    put_time(planner, partition, out);
    put_timeline(planner, partition, out);
    octavo_buffer_putc(out, '}');
}

void octavo_plan_put_times(const octavo_planner *planner, const octavo_partition *partitions,
                           octavo_buffer *out) {
    bool is_first = true;
    for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
        if (!octavo_planner_wants(planner, (octavo_phase)phase)) continue;
        octavo_buffer_printf(out, "%s\"%s\":{", is_first ? "" : ",",
                             phase_name((octavo_phase)phase));
        put_time(planner, &partitions[phase], out);
        octavo_buffer_putc(out, '}');
        is_first = false;
    }
}
