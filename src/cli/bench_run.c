/* SPDX-License-Identifier: Apache-2.0
 *
 * Nothing is sampled: what is measured is the model. Ids come from a fixed sequence, so that a run
 * can be repeated.
 */
#include "cli/bench_run.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/terminal.h"

#include <stdbool.h>

typedef struct stream {
    octavo_sequence *sequence;
    uint64_t random;
    int64_t left; /* ids to feed in the phase that runs */
} stream;

typedef struct bench {
    octavo_model *model;
    octavo_model_facts facts;
    const octavo_bench_load *load;
    stream *streams;           /* [streams] */
    octavo_step_input *inputs; /* [streams] */
    int32_t *ids;              /* [chunk] of one step */
    float *logits;             /* [streams, vocabulary] */
    double *speeds;            /* [repeat] */
    octavo_progress progress;
    uint64_t n_done; /* tokens, all phases and repeats */
} bench;

static int32_t next_id(uint64_t *random, int32_t vocabulary) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int32_t)((*random >> 33) % (uint64_t)vocabulary);
}

/* The id at the stream's next position: up to the shared prefix the same for all. */
static int32_t make_id(const bench *b, stream *s, int64_t position) {
    if (position >= b->load->shared_prefix) return next_id(&s->random, b->facts.vocabulary);
    uint64_t random = (uint64_t)position;
    return next_id(&random, b->facts.vocabulary);
}

/* One step: as many ids of as many streams as fit a chunk, `most` of each stream. Logits are wanted
 * where a stream ends its phase or decodes, as in a real run. */
static octavo_status run_step(bench *b, int64_t most, octavo_error *error) {
    int n_inputs = 0, n_ids = 0;
    for (int64_t i = 0; i < b->load->streams && n_ids < b->facts.chunk; i++) {
        stream *s = &b->streams[i];
        int64_t n = s->left < most ? s->left : most;
        if (n > b->facts.chunk - n_ids) n = b->facts.chunk - n_ids;
        if (n == 0) continue;
        s->left -= n;
        octavo_step_input *input = &b->inputs[n_inputs++];
        *input = (octavo_step_input){
            .sequence = s->sequence,
            .ids = b->ids + n_ids,
            .n_ids = (int)n,
            .want = s->left == 0 || most == 1 ? OCTAVO_LOGITS_LAST : OCTAVO_LOGITS_NONE,
            .logits = b->logits + i * b->facts.vocabulary,
        };
        int64_t position = octavo_sequence_length(s->sequence);
        for (int64_t j = 0; j < n; j++)
            b->ids[n_ids++] = make_id(b, s, position + j);
    }
    b->n_done += (uint64_t)n_ids;
    return octavo_model_step(b->model, b->inputs, n_inputs, error);
}

static bool has_work(const bench *b) {
    for (int64_t i = 0; i < b->load->streams; i++)
        if (b->streams[i].left > 0) return true;
    return false;
}

/* Feeds `n` ids to every stream from `depth` on, at most `most` of each in a step. */
static octavo_status run_phase(bench *b, int64_t depth, int64_t n, int64_t most, double *seconds,
                               octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    for (int64_t i = 0; i < b->load->streams; i++) {
        octavo_sequence_truncate(b->streams[i].sequence, depth);
        b->streams[i].left = n;
    }
    int64_t start = octavo_clock_ns();
    while (status == OCTAVO_OK && has_work(b))
        status = run_step(b, most, error);
    *seconds = (double)(octavo_clock_ns() - start) * 1e-9;
    return status;
}

static octavo_status repeat_phase(bench *b, int64_t n, int64_t most, octavo_spread *spread,
                                  octavo_error *error) {
    const octavo_bench_load *load = b->load;
    const uint64_t total =
        (uint64_t)load->streams * (uint64_t)(load->repeat * (load->prompt + load->generate));
    double seconds;
    if (n == 0) return OCTAVO_OK;
    /* Once unmeasured: pages, caches and clocks warm up. */
    octavo_status status =
        run_phase(b, load->depth, n < b->facts.chunk ? n : b->facts.chunk, most, &seconds, error);
    for (int64_t r = 0; r < load->repeat && status == OCTAVO_OK; r++) {
        if ((status = run_phase(b, load->depth, n, most, &seconds, error))) break;
        b->speeds[r] = (double)(n * load->streams) / seconds;
        octavo_progress_update(&b->progress, b->n_done, total + total / 8);
    }
    if (status == OCTAVO_OK) *spread = octavo_spread_of(b->speeds, (size_t)load->repeat);
    return status;
}

int64_t octavo_bench_slots(const octavo_bench_load *load) {
    return load->depth + (load->prompt > load->generate ? load->prompt : load->generate);
}

static octavo_status check_load(const bench *b, octavo_error *error) {
    const octavo_bench_load *load = b->load;
    const octavo_model_facts *facts = &b->facts;
    int64_t slots = octavo_bench_slots(load);
    int64_t pages = (slots + facts->page_size - 1) / facts->page_size * load->streams;
    if (slots > facts->context)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "bench (%lld tokens a stream): longer than the context of %lld; give "
                           "fewer with --prompt, --generate and --depth, or raise --context",
                           (long long)slots, (long long)facts->context);
    if (pages > facts->pages)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "bench (%lld pages): more than the cache's %lld; raise --kv-memory",
                           (long long)pages, (long long)facts->pages);
    return OCTAVO_OK;
}

static octavo_status prepare(bench *b, octavo_error *error) {
    const size_t n = (size_t)b->load->streams, vocabulary = (size_t)b->facts.vocabulary;
    b->streams = octavo_alloc_zero(n, sizeof *b->streams);
    b->inputs = octavo_alloc_zero(n, sizeof *b->inputs);
    b->ids = octavo_alloc_zero((size_t)b->facts.chunk, sizeof *b->ids);
    b->logits = octavo_alloc_zero(n * vocabulary, sizeof *b->logits);
    b->speeds = octavo_alloc_zero((size_t)b->load->repeat, sizeof *b->speeds);
    if (!b->streams || !b->inputs || !b->ids || !b->logits || !b->speeds)
        return octavo_fail_memory(error, "streams", n * vocabulary * sizeof *b->logits);
    for (size_t i = 0; i < n; i++) {
        b->streams[i].random = 0x9e3779b97f4a7c15u * (i + 1);
        octavo_status status = octavo_sequence_create(b->model, &b->streams[i].sequence, error);
        if (status) return status;
    }
    return OCTAVO_OK;
}

static void release(bench *b) {
    for (int64_t i = 0; b->streams && i < b->load->streams; i++)
        octavo_sequence_destroy(&b->streams[i].sequence);
    octavo_free(b->streams);
    octavo_free(b->inputs);
    octavo_free(b->ids);
    octavo_free(b->logits);
    octavo_free(b->speeds);
}

octavo_status octavo_bench_run(octavo_model *model, const octavo_bench_load *load,
                               octavo_bench_speeds *speeds, octavo_error *error) {
    bench b = {.model = model,
               .facts = octavo_model_describe(model),
               .load = load,
               .progress = octavo_progress_start("measuring")};
    octavo_bench_speeds measured = {0};
    double seconds;
    octavo_status status = check_load(&b, error);
    if (status) return status;
    if ((status = prepare(&b, error)) ||
        (status = run_phase(&b, 0, load->depth, b.facts.chunk, &seconds, error)) ||
        (status = repeat_phase(&b, load->prompt, b.facts.chunk, &measured.prefill, error)) ||
        (status = repeat_phase(&b, load->generate, 1, &measured.decode, error)))
        goto cleanup;
    *speeds = measured;
cleanup:
    octavo_terminal_clear_progress();
    release(&b);
    return status;
}
