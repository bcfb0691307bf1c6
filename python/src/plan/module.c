/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo._plan: octavo/plan.h for Python. A module of its own, since it holds the whole library,
 * which needs more of the system than attention does.
 */
#include "../python.h"

#include "octavo/plan.h"
#include "octavo/template.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* Sets the exception of a failure and returns NULL. A message may quote a file, which holds any
 * bytes: those that are not UTF-8 are written as \xff. */
static PyObject *raise(octavo_status status, const octavo_error *error) {
    PyObject *type = status == OCTAVO_ERROR_MEMORY      ? PyExc_MemoryError
                     : status == OCTAVO_ERROR_NOT_FOUND ? PyExc_FileNotFoundError
                     : status == OCTAVO_ERROR_IO        ? PyExc_OSError
                                                        : PyExc_ValueError;
    PyObject *text = PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message),
                                          "backslashreplace");
    if (text != NULL) PyErr_SetObject(type, text);
    Py_XDECREF(text);
    return NULL;
}

/* plan(path, mesh, devices, rules, all, prefill, generate, tokens, phases, dtype, logits_all,
 *      link_gbps, memory_gbps, search) -> str. Paths are bytes; mesh, rules and overrides may be
 * None. */
static PyObject *plan(PyObject *module, PyObject *parameters) {
    (void)module;
    const char *path = NULL;
    PyObject *rules = NULL;
    long long tokens = 0;
    int logits_all = 0;
    char *json = NULL;
    octavo_error error = {0};
    octavo_plan_options options;
    octavo_plan_options_init(&options);
    if (!PyArg_ParseTuple(parameters, "yziOzzzLispddi", &path, &options.mesh, &options.devices,
                          &rules, &options.all, &options.prefill, &options.generate, &tokens,
                          &options.phases, &options.dtype, &logits_all, &options.link_gbps,
                          &options.memory_gbps, &options.search))
        return NULL;
    if (rules != Py_None && (options.rules = PyBytes_AsString(rules)) == NULL) return NULL;
    options.tokens = tokens;
    options.logits_all = logits_all != 0;

    octavo_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = octavo_plan(path, &options, &json, &error);
    Py_END_ALLOW_THREADS;
    if (status != OCTAVO_OK) return raise(status, &error);
    PyObject *text = PyUnicode_DecodeUTF8(json, (Py_ssize_t)strlen(json), "strict");
    octavo_text_free(json);
    return text;
}

static PyMethodDef methods[] = {
    {"plan", plan, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_plan", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__plan(void);

PyMODINIT_FUNC PyInit__plan(void) {
    return PyModule_Create(&definition);
}
