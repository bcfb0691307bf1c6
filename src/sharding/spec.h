/* SPDX-License-Identifier: Apache-2.0
 *
 * How a tensor is split: for each of its axes the mesh axes that split it, major first. "a+b" is
 * split over a, then b inside a.
 */
#ifndef OCTAVO_SHARDING_SPEC_H
#define OCTAVO_SHARDING_SPEC_H

#include "sharding/mesh.h"

#include <jansson.h>

enum { OCTAVO_SPEC_AXES = 4 };

/* Compared with octavo_split_equal; axis[i >= n] is 0. */
typedef struct octavo_split {
    uint8_t n; /* 0: whole */
    uint8_t axis[OCTAVO_MESH_AXES];
} octavo_split;

typedef struct octavo_spec {
    int n; /* axes of the tensor */
    octavo_split split[OCTAVO_SPEC_AXES];
} octavo_spec;

bool octavo_split_equal(const octavo_split *a, const octavo_split *b);
bool octavo_split_has(const octavo_split *split, int axis);
unsigned octavo_split_bits(const octavo_split *split);       /* 1 << axis, or-ed */
octavo_split octavo_split_add(octavo_split split, int axis); /* inside the others */
/* Into how many shards, and which of them is at this place. */
int octavo_split_degree(const octavo_split *split, const octavo_mesh *mesh);
int octavo_split_index(const octavo_split *split, const octavo_mesh *mesh,
                       const octavo_place *place);
/* Without axes of degree 1, which split nothing. */
octavo_split octavo_split_reduce(const octavo_split *split, const octavo_mesh *mesh);

bool octavo_spec_equal(const octavo_spec *a, const octavo_spec *b);
octavo_spec octavo_spec_whole(int n);

/* ---- text (spec_text.c) and JSON (spec_json.c) ---- */

enum { OCTAVO_SPEC_TEXT = 128 };
/* "(data, -, model+expert)". */
void octavo_spec_print(const octavo_spec *spec, char text[OCTAVO_SPEC_TEXT]);

/* The other way. `axes` are the tensor's letters, "td": a rule has an entry for each, and no mesh
 * axis twice. `where` begins the messages: "FILE: sharding.logical_rules.all.activation_td".
 * OCTAVO_ERROR_INVALID */
OCTAVO_MUST_CHECK octavo_status octavo_spec_parse(const char *text, const char *axes,
                                                  const char *where, octavo_spec *spec,
                                                  octavo_error *error);
/* null (whole), or an array with null, "axis" or ["axis", "axis"] for each of the tensor's axes; of
 * a tensor with one axis also that entry alone. OCTAVO_ERROR_INVALID */
OCTAVO_MUST_CHECK octavo_status octavo_spec_from_json(const json_t *rule, const char *axes,
                                                      const char *where, octavo_spec *spec,
                                                      octavo_error *error);
/* Appends one entry's mesh axis by name, with the checks and messages of both. */
OCTAVO_MUST_CHECK octavo_status octavo_spec_add(octavo_spec *spec, int entry, const char *name,
                                                size_t length, const char *axes, const char *where,
                                                octavo_error *error);

#endif
