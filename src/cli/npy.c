/* SPDX-License-Identifier: Apache-2.0
 *
 * The header is a Python dict, padded so that the data begin at a multiple of 64 bytes.
 */
#include "cli/npy.h"

#include "base/error.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX_BYTES = 10, HEADER_BYTES = 128 };

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FLOAT32_TYPE ">f4"
#else
#define FLOAT32_TYPE "<f4"
#endif

static octavo_status fail_write(const octavo_npy *npy, octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_IO, "file (%s): cannot be written: %s", npy->path,
                       strerror(errno));
}

static octavo_status write_header(octavo_npy *npy, int64_t rows, int64_t columns,
                                  octavo_error *error) {
    char header[HEADER_BYTES + 1];
    const int dict_bytes = HEADER_BYTES - PREFIX_BYTES;
    static const unsigned char magic[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    memset(header, ' ', HEADER_BYTES);
    memcpy(header, magic, sizeof magic);
    header[8] = (char)(dict_bytes & 0xff);
    header[9] = (char)(dict_bytes >> 8);
    int n = snprintf(header + PREFIX_BYTES, (size_t)dict_bytes,
                     "{'descr': '" FLOAT32_TYPE "', 'fortran_order': False, 'shape': (%lld, %lld), "
                     "}",
                     (long long)rows, (long long)columns);
    header[PREFIX_BYTES + n] = ' ';
    header[HEADER_BYTES - 1] = '\n';
    if (fwrite(header, 1, HEADER_BYTES, npy->stream) != HEADER_BYTES) return fail_write(npy, error);
    return OCTAVO_OK;
}

octavo_status octavo_npy_open(octavo_npy *npy, const char *path, int64_t rows, int64_t columns,
                              octavo_error *error) {
    octavo_npy opened = {.path = path};
    opened.stream = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    if (!opened.stream) return fail_write(&opened, error);
    octavo_status status = write_header(&opened, rows, columns, error);
    if (status)
        octavo_npy_discard(&opened);
    else
        *npy = opened;
    return status;
}

octavo_status octavo_npy_write(octavo_npy *npy, const float *values, size_t n,
                               octavo_error *error) {
    return fwrite(values, sizeof *values, n, npy->stream) == n ? OCTAVO_OK : fail_write(npy, error);
}

octavo_status octavo_npy_close(octavo_npy *npy, octavo_error *error) {
    if (fflush(npy->stream) != 0) {
        octavo_status status = fail_write(npy, error);
        octavo_npy_discard(npy);
        return status;
    }
    if (npy->stream != stdout) fclose(npy->stream);
    *npy = (octavo_npy){0};
    return OCTAVO_OK;
}

void octavo_npy_discard(octavo_npy *npy) {
    struct stat facts;
    if (!npy->stream) return;
    if (npy->stream != stdout) {
        bool is_file = fstat(fileno(npy->stream), &facts) == 0 && S_ISREG(facts.st_mode);
        fclose(npy->stream);
        if (is_file) (void)unlink(npy->path);
    }
    *npy = (octavo_npy){0};
}
