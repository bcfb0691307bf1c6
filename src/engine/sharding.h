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

#endif
