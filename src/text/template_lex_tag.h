/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the two files of the lexer.
 */
#ifndef OCTAVO_TEXT_TEMPLATE_LEX_TAG_H
#define OCTAVO_TEXT_TEMPLATE_LEX_TAG_H

#include "text/template_lex.h"

/* The next token inside a tag, its end included. */
octavo_tpl_token octavo_tpl_next_in_tag(octavo_tpl_lexer *lexer);

/* Behind the end of the open tag when that is what stands at lexer->at, else 0. */
size_t octavo_tpl_tag_end(const octavo_tpl_lexer *lexer);

#endif
