/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport module: compiled once for each MPI, into octavo_openmpi.so and octavo_mpich.so.
 */
#include "sharding/comm_module.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* All traffic has a communicator of its own, so that a program which uses MPI itself may go on. */
typedef struct module_state {
    MPI_Comm comm;
    bool is_ours; /* MPI was not initialised before */
} module_state;

/* "MPICH Version: 4.0.2\n..." and "Open MPI v4.1.4, package: ..." to their beginning. */
static void library_name(char *name, size_t bytes) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) text[0] = '\0';
    text[strcspn(text, ",\n")] = '\0';
    size_t used = 0;
    bool blank = false;
    for (const char *c = text; *c != '\0' && used + 2 < bytes; c++) {
        if (*c == ' ' || *c == '\t' || *c == ':') {
            blank = used > 0;
            continue;
        }
        if (blank) name[used++] = ' ';
        blank = false;
        name[used++] = *c;
    }
    name[used] = '\0';
}

static int module_start(void *state, int *process, int *processes, int *most_tag, char *name,
                        size_t name_bytes) {
    module_state *s = state;
    int is_there = 0;
    int code = MPI_Initialized(&is_there);
    if (code != MPI_SUCCESS) return code;
    s->is_ours = !is_there;
    int provided = MPI_THREAD_SINGLE;
    if (s->is_ours) code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (code != MPI_SUCCESS) return code;
    /* Which communicator an error of MPI_Testsome belongs to differs between versions of MPI. */
    if (s->is_ours) {
        code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (code != MPI_SUCCESS) return code;
        code = MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        if (code != MPI_SUCCESS) return code;
    }
    code = MPI_Comm_dup(MPI_COMM_WORLD, &s->comm);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_rank(s->comm, process);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_size(s->comm, processes);
    if (code != MPI_SUCCESS) return code;
    void *value = NULL;
    int is_set = 0;
    *most_tag = 32767; /* what the standard promises */
    code = MPI_Comm_get_attr(s->comm, MPI_TAG_UB, &value, &is_set);
    if (code == MPI_SUCCESS && is_set) *most_tag = *(int *)value;
    library_name(name, name_bytes);
    return MPI_SUCCESS;
}

static int module_stop(void *state) {
    module_state *s = state;
    int code = MPI_Comm_free(&s->comm);
    if (!s->is_ours) return code;
    int last = MPI_Finalize();
    return code != MPI_SUCCESS ? code : last;
}

/* The slots are n requests, then n statuses, then n indices; the two behind are only written. */
static void *behind(void *begin, size_t bytes) {
    const size_t align = 16;
    return (char *)begin + (bytes + align - 1) / align * align;
}

static void module_clear(void *slots, int n) {
    MPI_Request *requests = slots;
    for (int i = 0; i < n; i++) {
        requests[i] = MPI_REQUEST_NULL;
    }
}

static int module_send(void *state, void *slots, int slot, const void *data, int bytes, int process,
                       int tag) {
    const module_state *s = state;
    MPI_Request *requests = slots;
    return MPI_Isend(data, bytes, MPI_BYTE, process, tag, s->comm, &requests[slot]);
}

/* Any tag: the caller looks whether it is the one it expects. */
static int module_receive(void *state, void *slots, int slot, void *data, int bytes, int process) {
    const module_state *s = state;
    MPI_Request *requests = slots;
    return MPI_Irecv(data, bytes, MPI_BYTE, process, MPI_ANY_TAG, s->comm, &requests[slot]);
}

static int module_test(void *state, void *slots, int n, octavo_mpi_done *done, int *n_done) {
    const module_state *s = state;
    MPI_Request *requests = slots;
    MPI_Status *statuses = behind(requests, (size_t)n * sizeof(*requests));
    int *indices = behind(statuses, (size_t)n * sizeof(*statuses));
    int count = 0;
    *n_done = 0;
    if (n == 0) return MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, s->comm, &count, MPI_STATUS_IGNORE);
    int code = MPI_Testsome(n, requests, &count, indices, statuses);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
    if (count == MPI_UNDEFINED) return MPI_SUCCESS;
    for (int i = 0; i < count; i++) {
        int bytes = 0;
        int failed = code == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : MPI_SUCCESS;
        if (failed == MPI_SUCCESS) failed = MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
        done[i] = (octavo_mpi_done){
            .slot = indices[i], .code = failed, .tag = statuses[i].MPI_TAG, .bytes = bytes};
    }
    *n_done = count;
    return MPI_SUCCESS;
}

static void module_describe(int code, char *text, size_t bytes) {
    char whole[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, whole, &length) != MPI_SUCCESS) whole[0] = '\0';
    (void)snprintf(text, bytes, "%s", whole[0] != '\0' ? whole : "unknown error");
}

extern const octavo_mpi_module octavo_mpi_module_table;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const octavo_mpi_module octavo_mpi_module_table = {
    .version = OCTAVO_MPI_MODULE_VERSION,
    .state_bytes = sizeof(module_state),
    .slot_bytes = sizeof(MPI_Request) + sizeof(MPI_Status) + sizeof(int),
    .start = module_start,
    .stop = module_stop,
    .clear = module_clear,
    .send = module_send,
    .receive = module_receive,
    .test = module_test,
    .describe = module_describe,
};
