/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/comm_load.h"

#include "base/error.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where `cmake --install` puts libraries, relative to the prefix. */
#ifndef OCTAVO_LIBDIR
#define OCTAVO_LIBDIR "lib"
#endif

/* What was tried and what came of it, for the error message. */
typedef struct attempts {
    char text[600];
} attempts;

static void note(attempts *tried, const char *what, const char *why) {
    size_t used = strlen(tried->text);
    if (used + 260 > sizeof(tried->text)) return;
    (void)snprintf(tried->text + used, sizeof(tried->text) - used, "%s%.120s: %.120s",
                   used > 0 ? "; " : "", what, why);
}

/* The folder of the program or shared library that this code is in; false when it cannot be told.
 */
static bool own_folder(char *folder, size_t bytes) {
    static const char here = 0;
    char path[PATH_MAX];
    Dl_info info;
    memset(&info, 0, sizeof(info));
    void *library = NULL;
    if (dladdr(&here, &info) == 0 || info.dli_fname == NULL) return false;
    /* A program's own name is what it was called by: only the kernel knows the file. A shared
     * library can be opened anew by its name, a program cannot. */
    if (strstr(info.dli_fname, ".so") != NULL)
        library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL) {
        (void)dlclose(library);
        if (realpath(info.dli_fname, path) == NULL) return false;
    } else {
        ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
        if (length <= 0) return false;
        path[length] = '\0';
    }
    int length = snprintf(folder, bytes, "%s", dirname(path));
    return length > 0 && (size_t)length < bytes;
}

/* Loads the module in `path` into t->library and t->module. */
static bool load(octavo_transport *t, const char *path, attempts *tried) {
    /* When a process dies UCX, under MPICH, gives up in the others with long traces of its own. It
     * reads this while it is loaded. */
    (void)setenv("UCX_HANDLE_ERRORS", "none", 0);
    t->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (t->library == NULL) {
        const char *why = dlerror();
        note(tried, path, why != NULL ? why : "cannot be loaded");
        return false;
    }
    t->module = dlsym(t->library, OCTAVO_MPI_MODULE_SYMBOL);
    if (t->module == NULL) {
        note(tried, path, "not a transport module");
        return false;
    }
    if (t->module->version != OCTAVO_MPI_MODULE_VERSION) {
        note(tried, path, "made for another version of octavo");
        return false;
    }
    return true;
}

/* Starts the loaded module; it must find the processes that the launcher told of. */
static bool start(octavo_transport *t, const char *path, int processes, attempts *tried) {
    char why[200];
    t->state = octavo_alloc_zero(1, t->module->state_bytes);
    if (t->state == NULL) {
        note(tried, path, "out of memory");
        return false;
    }
    int code = t->module->start(t->state, &t->process, &t->processes, &t->most_tag, t->name,
                                sizeof(t->name));
    if (code == 0 && t->processes == processes) return true;
    if (code != 0) {
        t->module->describe(code, why, sizeof(why));
    } else {
        (void)snprintf(why, sizeof(why), "finds a world of %d", t->processes);
        (void)t->module->stop(t->state);
    }
    note(tried, path, why);
    octavo_free(t->state);
    t->state = NULL;
    return false;
}

static bool is_file(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* One MPI's module in the folders where it may be; the first that is there counts. */
static bool try_name(octavo_transport *t, const char *name, const char *folder, int processes,
                     attempts *tried) {
    static const char *const places[] = {"", "/octavo", "/../" OCTAVO_LIBDIR "/octavo"};
    char path[PATH_MAX + 64];
    for (size_t i = 0; i < OCTAVO_COUNT(places); i++) {
        (void)snprintf(path, sizeof(path), "%s%s/octavo_%s.so", folder, places[i], name);
        if (!is_file(path)) continue;
        return load(t, path, tried) && start(t, path, processes, tried);
    }
    (void)snprintf(path, sizeof(path), "octavo_%s.so", name);
    note(tried, path, "not found");
    return false;
}

octavo_status octavo_transport_start(octavo_transport *transport, const octavo_launch *launch,
                                     octavo_error *error) {
    static const char *const names[] = {"openmpi", "mpich"};
    char own[PATH_MAX];
    attempts tried = {.text = ""};
    octavo_transport t = {0};
    const char *given = octavo_launch_module();
    bool started = false;
    if (given != NULL && !is_folder(given)) {
        started = load(&t, given, &tried) && start(&t, given, launch->processes, &tried);
    } else {
        const char *folder = given;
        if (folder == NULL && own_folder(own, sizeof(own))) folder = own;
        if (folder == NULL) note(&tried, "own folder", "not known");
        const bool second_first = launch->first != NULL && strcmp(launch->first, names[1]) == 0;
        for (size_t i = 0; folder != NULL && !started && i < OCTAVO_COUNT(names); i++) {
            started =
                try_name(&t, names[i ^ (size_t)second_first], folder, launch->processes, &tried);
        }
    }
    if (!started) {
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "MPI (%d processes, started by %s): no module that can join them (%s); "
                           "install the module of the launcher's MPI, or name it in "
                           "OCTAVO_MPI_MODULE",
                           launch->processes, launch->launcher, tried.text);
    }
    *transport = t;
    return OCTAVO_OK;
}

void octavo_transport_stop(octavo_transport *transport) {
    if (transport->state != NULL) (void)transport->module->stop(transport->state);
    octavo_free(transport->state);
    *transport = (octavo_transport){0};
}
