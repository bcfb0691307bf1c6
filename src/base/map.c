/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps whole regular files, read-only and private. If another process cuts a mapped file short,
 * reading past its new end raises SIGBUS: that is the price of not copying, and the same
 * everywhere.
 */
#include "base/map.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The path as messages show it: the end of a very long one, so that the reason has room. */
static const char *shown(const char *path) {
    const size_t length = strlen(path), most = 300;
    return length > most ? path + (length - most) : path;
}

static octavo_status fail_open(const char *path, int code, octavo_error *error) {
    if (code == ENOENT || code == ENOTDIR) {
        return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                           "cannot open file (%s): it does not exist; check the path", shown(path));
    }
    const char *hint = code == EACCES ? "; check its permissions" : "";
    return octavo_fail(error, OCTAVO_ERROR_IO, "cannot open file (%s): %s%s", shown(path),
                       strerror(code), hint);
}

static octavo_status check_regular(const struct stat *info, const char *path, octavo_error *error) {
    if (S_ISDIR(info->st_mode)) {
        return octavo_fail(error, OCTAVO_ERROR_IO,
                           "cannot map file (%s): it is a folder; name a file inside it",
                           shown(path));
    }
    if (!S_ISREG(info->st_mode)) {
        return octavo_fail(error, OCTAVO_ERROR_IO,
                           "cannot map file (%s): it is a device, pipe or socket; "
                           "give a regular file",
                           shown(path));
    }
    if (info->st_size < 0 || (uintmax_t)info->st_size > PTRDIFF_MAX) {
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "cannot map file (%s): it is larger than the address space",
                           shown(path));
    }
    return OCTAVO_OK;
}

octavo_status octavo_map_open(octavo_map *map, const char *path, octavo_error *error) {
    if (map == NULL || path == NULL) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "cannot map file: no path given");
    }
    /* O_NONBLOCK: opening a pipe that nobody writes to must not hang; files ignore it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return fail_open(path, errno, error);

    octavo_status status = OCTAVO_OK;
    struct stat info;
    void *data = NULL;
    size_t size = 0;
    if (fstat(fd, &info) != 0) {
        status = octavo_fail(error, OCTAVO_ERROR_IO, "cannot read the size of file (%s): %s",
                             shown(path), strerror(errno));
        goto done;
    }
    status = check_regular(&info, path, error);
    if (status != OCTAVO_OK) goto done;

    size = (size_t)info.st_size;
    if (size != 0) {
        data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = octavo_fail(error, errno == ENOMEM ? OCTAVO_ERROR_MEMORY : OCTAVO_ERROR_IO,
                                 "cannot map file (%s, %zu bytes): %s", shown(path), size,
                                 strerror(errno));
            goto done;
        }
    }
    *map = (octavo_map){.data = data, .size = size};

done:
    (void)close(fd);
    return status;
}

/* The system's interfaces take a plain pointer, even where they only read. */
static void *plain(const uint8_t *p) {
    return (void *)(uintptr_t)p;
}

static size_t page_bytes(void) {
    long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 0 ? (size_t)bytes : 4096;
}

/* Cuts [*offset, *offset + *size) to the map; false if nothing is left. */
static bool clip(const octavo_map *map, size_t *offset, size_t *size) {
    if (map->data == NULL || *offset >= map->size) return false;
    if (*size > map->size - *offset) *size = map->size - *offset;
    return *size != 0;
}

void octavo_map_will_need(const octavo_map *map, size_t offset, size_t size) {
    if (!clip(map, &offset, &size)) return;
    size_t before = offset % page_bytes();
    (void)madvise(plain(map->data + offset - before), size + before, MADV_WILLNEED);
}

void octavo_map_drop(const octavo_map *map, size_t offset, size_t size) {
    if (!clip(map, &offset, &size)) return;
    size_t page = page_bytes();
    size_t begin = offset + (page - offset % page) % page;
    size_t end = offset + size;
    if (end != map->size) end -= end % page; /* the last page ends with the file */
    if (begin < end) (void)madvise(plain(map->data + begin), end - begin, MADV_DONTNEED);
}

void octavo_map_close(octavo_map *map) {
    if (map->data != NULL) (void)munmap(plain(map->data), map->size);
    *map = (octavo_map){0};
}
