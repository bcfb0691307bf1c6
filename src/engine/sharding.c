/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/sharding.h: mesh and rules from options.
 */
#include "engine/sharding.h"

#include "base/cpu.h"
#include "base/error.h"
#include "sharding/comm.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert((int)OCTAVO_SHARDING_DATA == (int)OCTAVO_MESH_DATA &&
                  (int)OCTAVO_SHARDING_EXPERT == (int)OCTAVO_MESH_EXPERT &&
                  (int)OCTAVO_SHARDING_SEQ == (int)OCTAVO_MESH_SEQ &&
                  (int)OCTAVO_SHARDING_MODEL == (int)OCTAVO_MESH_MODEL,
              "the public axes are the mesh's");

void octavo_sharding_options_init(octavo_sharding_options *options) {
    *options = (octavo_sharding_options){.size = sizeof *options};
}

/* Whether a degree is -1, without being legal otherwise. */
static bool has_inferred(const octavo_sharding_options *options, const octavo_rules *rules) {
    if (options->mesh) return strstr(options->mesh, "=-1") != NULL;
    for (int axis = 0; axis < OCTAVO_MESH_AXES; axis++)
        if (rules->degrees[axis] == -1) return true;
    return false;
}

static octavo_status make_mesh(const octavo_sharding_options *options, const octavo_rules *rules,
                               octavo_mesh *mesh, octavo_error *error) {
    int devices = options->devices;
    if (devices == 0 && has_inferred(options, rules)) devices = octavo_cpu_numa_nodes();
    if (options->mesh) return octavo_mesh_parse(options->mesh, devices, mesh, error);
    char where[200] = "mesh (default)";
    if (rules->has_strategy)
        snprintf(where, sizeof where, "rules (%.150s): sharding.sharding_strategy", options->rules);
    return octavo_mesh_infer(rules->degrees, devices, where, mesh, error);
}

octavo_status octavo_sharding_read(const octavo_sharding_options *options, octavo_mesh *mesh,
                                   octavo_rules *rules, octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    octavo_rules_init(rules);
    if (options->rules) status = octavo_rules_read(rules, options->rules, error);
    if (!status) status = make_mesh(options, rules, mesh, error);
    if (!status)
        status =
            octavo_rules_replace(rules, options->all, options->prefill, options->generate, error);
    return status ? status : octavo_rules_check_norms(rules, mesh, error);
}

octavo_status octavo_sharding_create(const octavo_sharding_options *options,
                                     octavo_sharding **sharding, octavo_error *error) {
    if (!options || options->size != sizeof *options || !sharding)
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID,
            "octavo_sharding_create (arguments): options of this version and a place "
            "for the result are needed; fill them with octavo_sharding_options_init");
    octavo_sharding *made = octavo_alloc_zero(1, sizeof *made);
    if (!made) return octavo_fail_memory(error, "sharding", sizeof *made);
    octavo_status status = octavo_sharding_read(options, &made->mesh, &made->rules, error);
    if (status)
        octavo_sharding_destroy(&made);
    else
        *sharding = made;
    return status;
}

void octavo_sharding_destroy(octavo_sharding **sharding) {
    if (!sharding || !*sharding) return;
    octavo_rules_deinit(&(*sharding)->rules);
    octavo_free(*sharding);
    *sharding = NULL;
}

int octavo_sharding_degree(const octavo_sharding *sharding, octavo_sharding_axis axis) {
    return (unsigned)axis < OCTAVO_MESH_AXES ? sharding->mesh.degree[axis] : 0;
}

int octavo_sharding_ranks(const octavo_sharding *sharding) {
    return octavo_mesh_ranks(&sharding->mesh);
}

int octavo_processes_launched(int *process) {
    return octavo_comm_launched(process);
}

octavo_status octavo_sharding_dump(const octavo_sharding *sharding, octavo_sharding_text which,
                                   char **text, octavo_error *error) {
    octavo_buffer out = {0};
    switch (which) {
    case OCTAVO_SHARDING_OVERRIDES:
        octavo_rules_dump_overrides(&sharding->rules, &out);
        break;
    case OCTAVO_SHARDING_TABLE:
        octavo_rules_dump_table(&sharding->rules, &out);
        break;
    case OCTAVO_SHARDING_FILE:
        octavo_buffer_puts(&out, "{\"sharding\": {\"logical_rules\": ");
        octavo_rules_dump_json(&sharding->rules, &out);
        octavo_buffer_puts(&out, "}}\n");
        break;
    default:
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "octavo_sharding_dump (which %d): no such text; give one of "
                           "octavo_sharding_text",
                           (int)which);
    }
    const size_t size = out.size;
    char *taken = octavo_buffer_take(&out);
    if (!taken) return octavo_fail_memory(error, "text of the rules", size + 1);
    *text = taken;
    return OCTAVO_OK;
}
