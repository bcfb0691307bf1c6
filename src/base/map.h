/* SPDX-License-Identifier: Apache-2.0
 *
 * Read-only memory maps of whole files.
 */
#ifndef OCTAVO_BASE_MAP_H
#define OCTAVO_BASE_MAP_H

#include "octavo/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct octavo_map {
    const uint8_t *data; /* [size], read-only; NULL for an empty file */
    size_t size;
} octavo_map;

/* Maps the file. Every error names the path: OCTAVO_ERROR_NOT_FOUND, OCTAVO_ERROR_IO for what
 * cannot be read and for folders, devices and pipes, OCTAVO_ERROR_MEMORY without address space. */
OCTAVO_MUST_CHECK octavo_status octavo_map_open(octavo_map *map, const char *path,
                                                octavo_error *error);
/* Tells the system that [offset, offset + size) will be read soon, front to back. */
void octavo_map_will_need(const octavo_map *map, size_t offset, size_t size);
/* Drops the pages wholly inside [offset, offset + size) from this process; they come back when read
 * again. */
void octavo_map_drop(const octavo_map *map, size_t offset, size_t size);
void octavo_map_close(octavo_map *map); /* takes a zero-initialised map too */

#endif
