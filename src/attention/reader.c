/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading ahead; see the header.
 */
#include "attention/reader.h"

#include "base/compiler.h"

enum {
    BLOCK = OCTAVO_SOFTMAX_BLOCK,
    NEAR = 96 << 10, /* it stays so far ahead at least, */
    FAR = 160 << 10, /* and at most: with what is in use it shares the level 2 cache */
    POSITIONS = 40,  /* that is asked for ahead in between: a block's keys are used up when half of
                        its time has passed */
    LINE = 64,
    KERNEL_STEPS = 16, /* that kernels between two calls take at least */
};

int64_t attention_position_bytes(const attention_pages *pages, int32_t n_heads) {
    const int64_t row = (int64_t)(pages->key_words * 4 + LINE - 1) / LINE * LINE;
    return pages->layout == OCTAVO_KV_COLUMNS
               ? n_heads * (int64_t)pages->head_bytes / pages->page_size
               : 2 * n_heads * row;
}

/* Up to a block of a page in columns: the keys, then the values of head after head, in as many
 * bytes each. Returns its positions. */
static int64_t piece_of_page(octavo_ahead *a, const attention_pages *pages,
                             const attention_source *from, const uint8_t *base, int64_t slot,
                             int64_t n) {
    if (n > BLOCK) n = BLOCK;
    const int64_t groups = (slot + n - 1) / OCTAVO_KEY_GROUP - slot / OCTAVO_KEY_GROUP + 1;
    const int64_t keys = slot / OCTAVO_KEY_GROUP * (int64_t)pages->group_bytes;
    const int64_t values = (int64_t)pages->value_offset + slot * pages->slot_bytes;
    const int64_t key_bytes = groups * (int64_t)pages->group_bytes, bytes = n * pages->slot_bytes;
    const bool has_keys = pages->group_bytes > 0; /* of their own */
    a->slot = base + (has_keys ? keys : values);
    a->run_bytes = key_bytes > bytes ? key_bytes : bytes;
    a->run_stride = values - keys;
    a->slot_stride = (int64_t)pages->head_bytes;
    a->runs = has_keys ? 2 : 1;
    a->slots_left = from->n_heads;
    return n;
}

/* Gives `ahead` the slots of the next page, or of a part of it. False: there are no more. */
static bool next_page(attention_reader *r) {
    const attention_pages *pages = r->pages;
    const attention_source *from = &r->source;
    while (r->next >= from->range.end) {
        if (!r->follow(r->arg, &r->source)) return false;
        r->next = from->range.begin;
        r->before = r->given;
    }
    int64_t position = r->next, n = from->range.end - r->next;
    if (pages->splits.n_parts > 1) {
        const int64_t in_split = r->next % OCTAVO_KV_SPLIT;
        position =
            attention_split(&pages->splits, r->next / OCTAVO_KV_SPLIT) * OCTAVO_KV_SPLIT + in_split;
        if (n > OCTAVO_KV_SPLIT - in_split) n = OCTAVO_KV_SPLIT - in_split;
    }
    const int64_t page = position / pages->page_size, slot = position % pages->page_size;
    if (n > pages->page_size - slot) n = pages->page_size - slot;
    const uint8_t *base = from->cache + from->table[page] * pages->page_bytes;
    octavo_ahead *a = &r->ahead;
    if (pages->layout == OCTAVO_KV_COLUMNS && n == pages->page_size && n <= BLOCK) {
        a->slot = base; /* heads one after another */
        a->run_bytes = from->n_heads * (int64_t)pages->head_bytes;
        a->run_stride = 0;
        a->slot_stride = 0;
        a->runs = 1;
        a->slots_left = 1;
    } else if (pages->layout == OCTAVO_KV_COLUMNS) {
        n = piece_of_page(a, pages, from, base, slot, n);
    } else {
        a->slot = base + slot * pages->slot_bytes;
        a->run_bytes = (int64_t)(pages->key_words * 4 + LINE - 1) / LINE * LINE;
        a->run_stride = (int64_t)pages->row_bytes;
        a->runs = 2 * from->n_heads;
        if (a->run_bytes == a->run_stride) { /* without padding */
            a->run_bytes *= a->runs;
            a->runs = 1;
        }
        a->slot_stride = pages->slot_bytes;
        a->slots_left = (int32_t)n;
    }
    a->runs_left = a->runs;
    a->run = a->at = a->slot;
    a->left = a->run_bytes;
    r->given += n * attention_position_bytes(pages, from->n_heads);
    r->next += n;
    return true;
}

/* Bytes of what was given that have not been asked for. */
static int64_t pending(const attention_reader *r) {
    const octavo_ahead *a = &r->ahead;
    if (a->slots_left == 0) return 0;
    return a->left + a->run_bytes * (a->runs_left - 1 + (int64_t)a->runs * (a->slots_left - 1));
}

/* Asks for `bytes` at once. */
static void ask(attention_reader *r, int64_t bytes) {
    octavo_ahead *a = &r->ahead;
    while (bytes > 0 && (a->slots_left > 0 || next_page(r))) {
        OCTAVO_PREFETCH(a->at);
        a->at += LINE;
        a->left -= LINE;
        bytes -= LINE;
        if (a->left <= 0) octavo_ahead_next(a);
    }
}

/* How far ahead of a source's beginning. */
static int64_t first_part(const attention_reader *r) {
    int64_t distance = POSITIONS * attention_position_bytes(r->pages, r->source.n_heads);
    if (distance < NEAR) distance = NEAR;
    return distance < FAR ? distance : FAR;
}

void attention_reader_start(attention_reader *r, const attention_source *source) {
    r->ahead = (octavo_ahead){.steps = 0};
    r->source = *source;
    r->next = source->range.begin;
    r->before = r->given = 0;
    r->due = first_part(r);
    ask(r, r->due);
}

void attention_reader_arrive(attention_reader *r) {
    r->due = r->before + first_part(r);
}

void attention_reader_pace(attention_reader *reader, int64_t bytes) {
    enum { STEP = OCTAVO_AHEAD_STEP, MOST = 4 * KERNEL_STEPS * STEP };
    attention_reader *r = reader;
    r->due += bytes;
    if (r->ahead.slots_left == 0 && !next_page(r)) {
        r->ahead.steps = 0;
        return;
    }
    int64_t late = r->due - (r->given - pending(r));
    if (late > MOST) {
        ask(r, late - MOST);
        late = MOST;
    }
    r->ahead.steps = late > 0 ? (int32_t)(late / STEP) : 0;
}
