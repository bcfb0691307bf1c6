/* SPDX-License-Identifier: Apache-2.0
 *
 * Meshes as text, and degrees that are to be inferred.
 */
#include "base/error.h"
#include "sharding/mesh.h"
#include "sharding/quote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AXES_HINT "axes are data, expert, seq and model, as in \"data=2,model=4\""

static const char *const axis_names[OCTAVO_MESH_AXES] = {"data", "expert", "seq", "model"};

const char *octavo_mesh_axis_name(int axis) {
    return axis_names[axis];
}

int octavo_mesh_axis_find(const char *name, size_t length) {
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        if (strlen(axis_names[a]) == length && memcmp(axis_names[a], name, length) == 0) return a;
    return -1;
}

static void print(const int64_t *degrees, char *text) {
    size_t at = 0;
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        at += (size_t)snprintf(text + at, OCTAVO_MESH_TEXT - at, "%s%s=%" PRId64, a ? "," : "",
                               axis_names[a], degrees[a]);
}

static void to_degrees(const octavo_mesh *mesh, int64_t *degrees) {
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        degrees[a] = mesh->degree[a];
}

void octavo_mesh_print(const octavo_mesh *mesh, char text[OCTAVO_MESH_TEXT]) {
    int64_t degrees[OCTAVO_MESH_AXES];
    to_degrees(mesh, degrees);
    print(degrees, text);
}

/* The axis that is to be inferred, or -1; the product of the others in *product. */
static octavo_status check_degrees(const int64_t *degrees, const char *where, int *inferred,
                                   int64_t *product, octavo_error *error) {
    *inferred = -1;
    *product = 1;
    for (int a = 0; a < OCTAVO_MESH_AXES; a++) {
        if (degrees[a] == -1 && *inferred >= 0)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "%s: both %s and %s are -1; one axis may be inferred, give the "
                               "other its degree",
                               where, axis_names[*inferred], axis_names[a]);
        if (degrees[a] == -1) {
            *inferred = a;
            continue;
        }
        if (degrees[a] < 1)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "%s: %s has degree %" PRId64 "; a degree is 1 or more, or -1 for as "
                               "many as the devices leave over",
                               where, axis_names[a], degrees[a]);
        if (degrees[a] > OCTAVO_MAX_RANKS || *product * degrees[a] > OCTAVO_MAX_RANKS)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "%s: with degree %" PRId64 " of %s there are more ranks than %d; "
                               "take smaller degrees",
                               where, degrees[a], axis_names[a], OCTAVO_MAX_RANKS);
        *product *= degrees[a];
    }
    return OCTAVO_OK;
}

/* A mesh of so many devices that keeps most of the given one: one axis of another degree, the
 * innermost that can be. There is always one: else model takes all. */
static void suggest(const int64_t *degrees, int64_t product, int devices, char *text) {
    int64_t changed[OCTAVO_MESH_AXES] = {1, 1, 1, devices};
    for (int a = OCTAVO_MESH_AXES - 1; a >= 0; a--) {
        const int64_t others = product / degrees[a];
        if (devices % others != 0) continue;
        memcpy(changed, degrees, sizeof changed);
        changed[a] = devices / others;
        break;
    }
    print(changed, text);
}

octavo_status octavo_mesh_infer(const int64_t degrees[OCTAVO_MESH_AXES], int devices,
                                const char *where, octavo_mesh *mesh, octavo_error *error) {
    int64_t full[OCTAVO_MESH_AXES], product;
    int inferred;
    char text[OCTAVO_MESH_TEXT];
    if (devices < 0 || devices > OCTAVO_MAX_RANKS)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: %d devices; there may be 1 to %d, or 0 for as many as the degrees "
                           "make",
                           where, devices, OCTAVO_MAX_RANKS);
    octavo_status status = check_degrees(degrees, where, &inferred, &product, error);
    if (status) return status;
    memcpy(full, degrees, sizeof full);
    if (inferred >= 0) {
        if (devices == 0)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "%s: %s is -1, but there is no number of devices to infer it from; "
                               "give the devices or its degree",
                               where, axis_names[inferred]);
        full[inferred] = 1;
        if (devices % product != 0) {
            suggest(full, product, devices, text);
            return octavo_fail(
                error, OCTAVO_ERROR_INVALID,
                "%s: %s cannot be inferred, since the product of the others, %" PRId64
                ", does not divide the devices, %d; %s would fit",
                where, axis_names[inferred], product, devices, text);
        }
        full[inferred] = devices / product;
        product = devices;
    }
    if (devices > 0 && product != devices) {
        suggest(full, product, devices, text);
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: the product of the degrees is %" PRId64
                           ", but the devices are %d; %s would fit",
                           where, product, devices, text);
    }
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        mesh->degree[a] = (int)full[a];
    return OCTAVO_OK;
}

/* A whole number at *at, which is moved behind it. Saturates: what is too large is told later. */
static bool read_degree(const char **at, int64_t *degree) {
    const bool is_negative = **at == '-';
    const char *digit = *at + is_negative;
    int64_t value = 0;
    if (*digit < '0' || *digit > '9') return false;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        if (value <= OCTAVO_MAX_RANKS) value = value * 10 + (*digit - '0');
    *at = digit;
    *degree = is_negative ? -value : value;
    return true;
}

/* "AXIS=DEGREE" of `length` bytes. */
static octavo_status read_item(const char *item, size_t length, int64_t *degrees, bool *is_given,
                               const char *where, octavo_error *error) {
    const char *equals = memchr(item, '=', length);
    if (!equals)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: %s is not of the form AXIS=DEGREE; " AXES_HINT, where,
                           octavo_quote(item, length).text);
    const size_t name_length = (size_t)(equals - item);
    const int axis = octavo_mesh_axis_find(item, name_length);
    if (axis < 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "%s: unknown axis %s; " AXES_HINT, where,
                           octavo_quote(item, name_length).text);
    if (is_given[axis])
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: axis \"%s\" is given twice; leave one of them out", where,
                           axis_names[axis]);
    const char *at = equals + 1;
    if (!read_degree(&at, &degrees[axis]) || at != item + length)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: the degree of %s is %s, which is no whole number; give one from 1, "
                           "or -1",
                           where, axis_names[axis],
                           octavo_quote(equals + 1, length - name_length - 1).text);
    is_given[axis] = true;
    return OCTAVO_OK;
}

octavo_status octavo_mesh_parse(const char *text, int devices, octavo_mesh *mesh,
                                octavo_error *error) {
    int64_t degrees[OCTAVO_MESH_AXES] = {1, 1, 1, 1};
    bool is_given[OCTAVO_MESH_AXES] = {false};
    char where[sizeof(octavo_quoted) + 8];
    snprintf(where, sizeof where, "mesh %s", octavo_quote(text, strlen(text)).text);
    for (const char *item = text; *text;) {
        const size_t length = strcspn(item, ",");
        octavo_status status = read_item(item, length, degrees, is_given, where, error);
        if (status) return status;
        item += length;
        if (!*item) break;
        item++;
    }
    return octavo_mesh_infer(degrees, devices, where, mesh, error);
}
