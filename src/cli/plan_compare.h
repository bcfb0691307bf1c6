/* SPDX-License-Identifier: Apache-2.0
 *
 * Two plans of one model and mesh, and how the second differs from the first:
 *   {"compare": [{"name", "plan"}, {"name", "plan"}],
 *    "difference": {"memory_per_rank": {...}, "prefill": PHASE, "generate": PHASE}}
 *   PHASE: {"wire_bytes_per_rank", "time": {...}, "collectives": [{"op", "tensor", "axes",
 *           "a": {"count", "wire_bytes"}, "b": {same}}]}
 * Numbers are those of the second less those of the first; collectives are those of which the two
 * have not the same number and bytes.
 */
#ifndef OCTAVO_CLI_PLAN_COMPARE_H
#define OCTAVO_CLI_PLAN_COMPARE_H

#include <jansson.h>

/* Names may be any bytes. The document, which holds references to the plans; NULL without memory.
 */
json_t *octavo_view_compare(const char *const names[2], json_t *const plans[2]);

#endif
