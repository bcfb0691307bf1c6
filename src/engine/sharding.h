/* SPDX-License-Identifier: Apache-2.0
 *
 * What is behind octavo/sharding.h.
 */
#ifndef OCTAVO_ENGINE_SHARDING_H
#define OCTAVO_ENGINE_SHARDING_H

#include "sharding/rules.h"

#include "octavo/sharding.h"

struct octavo_sharding {
    octavo_mesh mesh;
    octavo_rules rules;
};

/* What octavo_sharding_create does, into the caller's own. *rules is to be ended with
 * octavo_rules_deinit, after a failure too. */
OCTAVO_MUST_CHECK octavo_status octavo_sharding_read(const octavo_sharding_options *options,
                                                     octavo_mesh *mesh, octavo_rules *rules,
                                                     octavo_error *error);

#endif
