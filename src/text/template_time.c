/* SPDX-License-Identifier: Apache-2.0
 *
 * strftime_now(). Names are English whatever the locale, so that one template gives one prompt.
 */
#include "text/template_eval.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const day_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};
static const char *const month_names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};

static bool is_leap(int year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* From 0. */
static int day_of_year(const octavo_template_time *t) {
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    return before[t->month - 1] + (t->month > 2 && is_leap(t->year)) + t->day - 1;
}

/* From Sunday = 0. */
static int day_of_week(const octavo_template_time *t) {
    int past = t->year - 1;
    return (past + past / 4 - past / 100 + past / 400 + day_of_year(t) + 1) % 7;
}

/* ISO week, and in *year the year it belongs to. */
static int iso_week(const octavo_template_time *t, int *year) {
    int monday = (day_of_week(t) + 6) % 7; /* from Monday = 0 */
    int week = (day_of_year(t) - monday + 10) / 7;
    *year = t->year;
    if (week == 0) {
        const octavo_template_time last = {.year = t->year - 1, .month = 12, .day = 31};
        return iso_week(&last, year);
    }
    if (week == 53) { /* unless Thursday is still in this year, the week is the next one's */
        int days = is_leap(t->year) ? 366 : 365;
        if (day_of_year(t) - monday + 3 >= days) {
            *year = t->year + 1;
            return 1;
        }
    }
    return week;
}

static bool system_time(octavo_template_time *now) {
    struct tm local;
    time_t seconds = time(NULL);
    if (seconds == (time_t)-1 || localtime_r(&seconds, &local) == NULL) return false;
    *now = (octavo_template_time){local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                                  local.tm_hour,        local.tm_min,     local.tm_sec};
    return true;
}

typedef struct number {
    int value;
    int width;
    char fill;
} number;

/* The fields that are numbers; false for any other letter. */
static bool number_field(const octavo_template_time *t, char letter, number *n) {
    int iso_year, week = iso_week(t, &iso_year), weekday = day_of_week(t);
    int hour = t->hour % 12 == 0 ? 12 : t->hour % 12;
    const struct {
        char letter;
        number number;
    } fields[] = {
        {'Y', {t->year, 4, '0'}},
        {'C', {t->year / 100, 2, '0'}},
        {'y', {t->year % 100, 2, '0'}},
        {'m', {t->month, 2, '0'}},
        {'d', {t->day, 2, '0'}},
        {'e', {t->day, 2, ' '}},
        {'H', {t->hour, 2, '0'}},
        {'k', {t->hour, 2, ' '}},
        {'I', {hour, 2, '0'}},
        {'l', {hour, 2, ' '}},
        {'M', {t->minute, 2, '0'}},
        {'S', {t->second, 2, '0'}},
        {'j', {day_of_year(t) + 1, 3, '0'}},
        {'w', {weekday, 1, '0'}},
        {'u', {weekday == 0 ? 7 : weekday, 1, '0'}},
        {'U', {(day_of_year(t) + 7 - weekday) / 7, 2, '0'}},
        {'W', {(day_of_year(t) + 7 - (weekday + 6) % 7) / 7, 2, '0'}},
        {'V', {week, 2, '0'}},
        {'G', {iso_year, 4, '0'}},
        {'g', {iso_year % 100, 2, '0'}},
        {'f', {0, 6, '0'}},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(fields); i++) {
        if (fields[i].letter != letter) continue;
        *n = fields[i].number;
        return true;
    }
    return false;
}

/* What a letter stands for in terms of other fields, or NULL. */
static const char *composed(char letter) {
    switch (letter) {
    case 'c':
        return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
        return "%m/%d/%y";
    case 'F':
        return "%Y-%m-%d";
    case 'r':
        return "%I:%M:%S %p";
    case 'R':
        return "%H:%M";
    case 'T':
    case 'X':
        return "%H:%M:%S";
    case 'n':
        return "\n";
    case 't':
        return "\t";
    case 'z': /* the time has no zone */
    case 'Z':
        return "";
    default:
        return NULL;
    }
}

static void put_format(octavo_tpl_run *run, const octavo_template_time *t, const char *format,
                       size_t size);

static void put_field(octavo_tpl_run *run, const octavo_template_time *t, char flag, char letter) {
    const char *name = NULL;
    size_t length = SIZE_MAX;
    char text[32];
    number n;
    if (letter == '%')
        name = "%";
    else if (letter == 'A' || letter == 'a')
        name = day_names[day_of_week(t)];
    else if (letter == 'B' || letter == 'b' || letter == 'h')
        name = month_names[t->month - 1];
    else if (letter == 'p' || letter == 'P')
        name = t->hour < 12 ? "AM" : "PM";
    if (letter == 'P') name = t->hour < 12 ? "am" : "pm";
    if (letter == 'a' || letter == 'b' || letter == 'h') length = 3;
    if (name != NULL) {
        octavo_tpl_put(run, name, length < strlen(name) ? length : strlen(name));
    } else if (composed(letter) != NULL) {
        put_format(run, t, composed(letter), strlen(composed(letter)));
    } else if (number_field(t, letter, &n)) {
        char fill = flag == '_' ? ' ' : flag == '0' ? '0' : n.fill;
        if (flag == '-')
            snprintf(text, sizeof text, "%d", n.value);
        else if (fill == '0')
            snprintf(text, sizeof text, "%0*d", n.width, n.value);
        else
            snprintf(text, sizeof text, "%*d", n.width, n.value);
        octavo_tpl_puts(run, text);
    } else {
        octavo_tpl_fail(run, "strftime_now: unknown field '%%%c'",
                        letter > ' ' && letter < 0x7f ? letter : '?');
    }
}

static void put_format(octavo_tpl_run *run, const octavo_template_time *t, const char *format,
                       size_t size) {
    for (size_t at = 0; at < size && octavo_tpl_charge(run, 1);) {
        const char *sign = memchr(format + at, '%', size - at);
        size_t plain = sign != NULL ? (size_t)(sign - format) : size;
        octavo_tpl_put(run, format + at, plain - at);
        at = plain + 1;
        if (sign == NULL) break;
        char flag = at < size && strchr("-_0", format[at]) != NULL ? format[at] : '\0';
        at += flag != '\0';
        if (at >= size) {
            octavo_tpl_fail(run, "strftime_now: the format ends with '%%'");
            return;
        }
        put_field(run, t, flag, format[at++]);
    }
}

void octavo_tpl_put_time(octavo_tpl_run *run, const octavo_tpl_string *format) {
    if (!run->has_now && !system_time(&run->now)) {
        octavo_tpl_fail(run, "strftime_now: the system tells no time");
        return;
    }
    run->has_now = true;
    put_format(run, &run->now, format->data, format->size);
}
