/* SPDX-License-Identifier: Apache-2.0
 *
 * A stack of open tags, and one pass over the text.
 */
#include "markup.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST_OPEN = 64, MOST_NAME = 32, MOST_ATTRIBUTES = 24 };

typedef struct markup {
    const char *text, *at;
    char open[MOST_OPEN][MOST_NAME];
    int n_open;
} markup;

static void refuse(const markup *m, const char *why) {
    fail_msg("%s at byte %td: %.60s", why, m->at - m->text, m->at);
}

static void take_entity(markup *m) {
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        const size_t n = strlen(entities[i]);
        if (strncmp(m->at, entities[i], n) != 0) continue;
        m->at += n;
        return;
    }
    refuse(m, "no entity");
}

/* A name of letters, digits and what may stand between them. */
static void take_name(markup *m, char name[MOST_NAME]) {
    size_t n = 0;
    while (isalnum((unsigned char)*m->at) || *m->at == '-' || *m->at == ':') {
        if (n + 1 == MOST_NAME) refuse(m, "a long name");
        name[n++] = *m->at++;
    }
    name[n] = '\0';
    if (n == 0) refuse(m, "no name");
}

static void take_attribute(markup *m, char name[MOST_NAME]) {
    take_name(m, name);
    if (strncmp(m->at, "=\"", 2) != 0) refuse(m, "an attribute without a quoted value");
    m->at += 2;
    while (*m->at != '"') {
        if (*m->at == '&') {
            take_entity(m);
            continue;
        }
        if (*m->at == '\0' || *m->at == '<' || (unsigned char)*m->at < ' ')
            refuse(m, "a bad byte in an attribute");
        m->at++;
    }
    m->at++;
}

/* Behind "<". */
static void take_start(markup *m) {
    char name[MOST_NAME], attributes[MOST_ATTRIBUTES][MOST_NAME];
    int n = 0;
    take_name(m, name);
    while (*m->at == ' ') {
        m->at++;
        if (n == MOST_ATTRIBUTES) refuse(m, "many attributes");
        take_attribute(m, attributes[n]);
        for (int i = 0; i < n; i++)
            if (strcmp(attributes[i], attributes[n]) == 0) refuse(m, "an attribute twice");
        n++;
    }
    const bool is_empty = strncmp(m->at, "/>", 2) == 0;
    if (!is_empty && *m->at != '>') refuse(m, "no end of a tag");
    m->at += is_empty ? 2 : 1;
    if (is_empty || strcmp(name, "meta") == 0) return;
    if (m->n_open == MOST_OPEN) refuse(m, "deep");
    memcpy(m->open[m->n_open++], name, sizeof name);
}

/* Behind "</". */
static void take_end(markup *m) {
    char name[MOST_NAME];
    take_name(m, name);
    if (m->n_open == 0 || strcmp(m->open[m->n_open - 1], name) != 0) refuse(m, "another tag ends");
    if (*m->at++ != '>') refuse(m, "no end of an end");
    m->n_open--;
}

void markup_check(const char *text) {
    static const char doctype[] = "<!doctype html>";
    markup m = {.text = text, .at = text};
    if (strncmp(text, doctype, sizeof doctype - 1) == 0) m.at += sizeof doctype - 1;
    while (*m.at) {
        if (m.at[0] == '<' && m.at[1] == '/') {
            m.at += 2;
            take_end(&m);
        } else if (*m.at == '<') {
            m.at++;
            take_start(&m);
        } else if (*m.at == '&') {
            take_entity(&m);
        } else {
            if ((unsigned char)*m.at < ' ' && *m.at != '\n') refuse(&m, "a control character");
            if (m.n_open == 0 && *m.at != '\n') refuse(&m, "text outside");
            m.at++;
        }
    }
    if (m.n_open > 0) refuse(&m, "an element without end");
}

void markup_check_alone(const char *text) {
    static const char *const refused[] = {
        "<script",   "javascript:", "url(",   " src=",    "@import", "<link", "<iframe",
        "<object",   "<embed",      "<image", "<img",     "<use",    "<form", "<base",
        "<foreignO", "<animate",    "<set",   " onload=", " style=", "data:", "srcset",
    };
    static const char xmlns[] = "xmlns=\"http://www.w3.org/2000/svg\"";
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strstr(text, refused[i])) fail_msg("holds %s", refused[i]);
    for (const char *p = text; (p = strstr(p, "://")) != NULL; p++)
        if (p - text < 11 || strncmp(p - 11, xmlns, sizeof xmlns - 1) != 0)
            fail_msg("an address: %.40s", p);
    for (const char *p = text; (p = strstr(p, "href=\"")) != NULL; p++)
        if (p[6] != '#') fail_msg("a link: %.40s", p);
}

size_t markup_count(const char *text, const char *name) {
    char tag[MOST_NAME + 1];
    size_t n = 0;
    const int length = snprintf(tag, sizeof tag, "<%s", name);
    for (const char *p = text; (p = strstr(p, tag)) != NULL; p++)
        n += !isalnum((unsigned char)p[length]);
    return n;
}
