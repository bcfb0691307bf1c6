/* SPDX-License-Identifier: Apache-2.0
 *
 * The renderings of a document of octavo_plan: of a plan, of --search, or of --compare
 * (cli/plan_compare.h). Nothing but the document goes into them.
 */
#ifndef OCTAVO_CLI_PLAN_VIEW_H
#define OCTAVO_CLI_PLAN_VIEW_H

#include "base/buffer.h"

#include <jansson.h>

/* Columns of text, 100 wide. */
void octavo_view_put_text(octavo_buffer *out, const json_t *document);
/* One drawing; of --search there is none, and `out` stays empty. */
void octavo_view_put_svg(octavo_buffer *out, const json_t *document);
/* One page that needs nothing else. */
void octavo_view_put_html(octavo_buffer *out, const json_t *document);

#endif
