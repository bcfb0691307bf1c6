/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo._octavo: the border between Python and the library. The Python files beside it turn
 * arguments into numbers and tuples; here they become octavo_attention_args, and errors become
 * exceptions. All state that outlives a call is in contexts.c.
 */
#include "arrays.h"
#include "contexts.h"
#include "dlpack.h"
#include "python.h"
#include "xla.h"

#include "octavo/attention.h"

#include <stdbool.h>
#include <string.h>

/* Sets the exception of a failure and returns NULL. A message may quote the environment, which
 * holds any bytes: those that are not UTF-8 are written as \xff. */
static PyObject *raise(octavo_status status, const octavo_error *error) {
    PyObject *text = PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message),
                                          "backslashreplace");
    if (text != NULL)
        PyErr_SetObject(status == OCTAVO_ERROR_MEMORY ? PyExc_MemoryError : PyExc_ValueError, text);
    Py_XDECREF(text);
    return NULL;
}

/* What does not fit a C integer is a value, not an overflow, to the caller. */
static bool value_error_of(const char *name) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "ragged paged attention (%s): it must fit 64 bits", name);
    return false;
}

static bool read_scalar(PyObject *key, PyObject *value, octavo_attention_args *args) {
    Py_ssize_t length = 0;
    const char *name = PyUnicode_AsUTF8AndSize(key, &length);
    if (name == NULL) return false;
    switch (octavo_py_scalar_kind(name, (size_t)length)) {
    case OCTAVO_PY_REAL: {
        const double real = PyFloat_AsDouble(value);
        if (real == -1.0 && PyErr_Occurred()) return value_error_of(name);
        octavo_py_set_real(args, name, (size_t)length, real);
        return true;
    }
    case OCTAVO_PY_INTEGER: {
        const long long integer = PyLong_AsLongLong(value);
        if (integer == -1 && PyErr_Occurred()) return value_error_of(name);
        octavo_py_set_integer(args, name, (size_t)length, integer);
        return true;
    }
    case OCTAVO_PY_UNKNOWN:
        break;
    }
    PyErr_Format(PyExc_ValueError, "ragged paged attention: no scalar is called %s", name);
    return false;
}

static bool read_scalars(PyObject *scalars, octavo_attention_args *args) {
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    while (PyDict_Next(scalars, &at, &key, &value)) {
        if (!read_scalar(key, value, args)) return false;
    }
    return true;
}

/* attention(arrays, scalars, threads, isa, pin) -> None */
static PyObject *attention(PyObject *module, PyObject *parameters) {
    (void)module;
    PyObject *arrays = NULL, *scalars = NULL;
    long long n_threads = 0;
    const char *isa = NULL;
    Py_ssize_t isa_length = 0;
    int pin = 0;
    octavo_error error = {0};
    octavo_attention_args args;
    octavo_py_settings settings;
    octavo_attention_args_init(&args);
    if (!PyArg_ParseTuple(parameters, "OO!Ls#p", &arrays, &PyDict_Type, &scalars, &n_threads, &isa,
                          &isa_length, &pin) ||
        !octavo_py_arrays_read(arrays, &args) || !read_scalars(scalars, &args))
        return NULL;
    octavo_status status =
        octavo_py_settings_make(&settings, n_threads, pin != 0, isa, (size_t)isa_length, &error);
    if (status == OCTAVO_OK) status = octavo_attention_check(&args, &error);
    if (status != OCTAVO_OK) return raise(status, &error);
    if (!octavo_py_arrays_apart(&args)) return NULL;

    Py_BEGIN_ALLOW_THREADS;
    octavo_attention_context *context = NULL;
    status = octavo_py_context_borrow(&context, &settings, &error);
    if (status == OCTAVO_OK) {
        status = octavo_ragged_paged_attention(context, &args, &error);
        octavo_py_context_return(context, &settings);
    }
    Py_END_ALLOW_THREADS;
    if (status != OCTAVO_OK) return raise(status, &error);
    /* a Ctrl-C that came meanwhile is an exception of this call, whose work is done */
    if (PyErr_CheckSignals() != 0) return NULL;
    Py_RETURN_NONE;
}

/* check(arrays, scalars) -> None. Checks a whole call; nothing is written. */
static PyObject *check(PyObject *module, PyObject *parameters) {
    (void)module;
    PyObject *arrays = NULL, *scalars = NULL;
    octavo_error error = {0};
    octavo_attention_args args;
    octavo_attention_args_init(&args);
    if (!PyArg_ParseTuple(parameters, "OO!", &arrays, &PyDict_Type, &scalars) ||
        !octavo_py_arrays_read(arrays, &args) || !read_scalars(scalars, &args))
        return NULL;
    const octavo_status status = octavo_attention_check(&args, &error);
    if (status != OCTAVO_OK) return raise(status, &error);
    Py_RETURN_NONE;
}

static bool read_settings(PyObject *parameters, octavo_py_settings *settings) {
    long long n_threads = 0;
    const char *isa = NULL;
    Py_ssize_t isa_length = 0;
    int pin = 0;
    octavo_error error = {0};
    if (!PyArg_ParseTuple(parameters, "Ls#p", &n_threads, &isa, &isa_length, &pin)) return false;
    const octavo_status status =
        octavo_py_settings_make(settings, n_threads, pin != 0, isa, (size_t)isa_length, &error);
    if (status != OCTAVO_OK) raise(status, &error);
    return status == OCTAVO_OK;
}

/* prepare(threads, isa, pin) -> None. Makes a context with these settings, so that the next call
 * finds it. */
static PyObject *prepare(PyObject *module, PyObject *parameters) {
    (void)module;
    octavo_py_settings settings;
    if (!read_settings(parameters, &settings)) return NULL;
    octavo_error error = {0};
    octavo_status status;
    Py_BEGIN_ALLOW_THREADS;
    octavo_attention_context *context = NULL;
    status = octavo_py_context_borrow(&context, &settings, &error);
    if (status == OCTAVO_OK) octavo_py_context_return(context, &settings);
    Py_END_ALLOW_THREADS;
    if (status != OCTAVO_OK) return raise(status, &error);
    Py_RETURN_NONE;
}

/* release(threads, isa, pin) -> None. Frees the idle contexts with these settings. */
static PyObject *release(PyObject *module, PyObject *parameters) {
    (void)module;
    octavo_py_settings settings;
    if (!read_settings(parameters, &settings)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    octavo_py_contexts_release(&settings);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* page_elements(dtype, page_size, kv_heads, head_dim, value_dim, value_in_key) -> int */
static PyObject *page_elements(PyObject *module, PyObject *parameters) {
    (void)module;
    int dtype = -1, value_in_key = 0;
    long long page_size = 0, n_kv_heads = 0, head_dim = 0, value_dim = 0;
    if (!PyArg_ParseTuple(parameters, "iLLLLp", &dtype, &page_size, &n_kv_heads, &head_dim,
                          &value_dim, &value_in_key))
        return NULL;
    return PyLong_FromLongLong(octavo_attention_page_elements(
        (octavo_dtype)dtype, page_size, n_kv_heads, head_dim, value_dim, value_in_key != 0));
}

/* xla_target(minor) -> capsule: the custom call's address, as jax.ffi.register_ffi_target takes it,
 * for this minor version of XLA's interface. */
static PyObject *xla_target(PyObject *module, PyObject *parameters) {
    (void)module;
    int minor = 0;
    if (!PyArg_ParseTuple(parameters, "i", &minor)) return NULL;
    octavo_py_xla_claim(minor);
    /* a function's address in a data pointer, as every dlsym gives it */
    void *address = NULL;
    octavo_py_xla_handler *const handler = octavo_py_xla_attention;
    memcpy(&address, &handler, sizeof address);
    return PyCapsule_New(address, "xla._CUSTOM_CALL_TARGET", NULL);
}

static PyMethodDef methods[] = {
    {"attention", attention, METH_VARARGS, NULL},
    {"check", check, METH_VARARGS, NULL},
    {"prepare", prepare, METH_VARARGS, NULL},
    {"release", release, METH_VARARGS, NULL},
    {"page_elements", page_elements, METH_VARARGS, NULL},
    {"dlpack", octavo_py_dlpack, METH_O, NULL},
    {"xla_target", xla_target, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module) {
    return PyModule_AddStringConstant(module, "version", octavo_version());
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)0},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_octavo", NULL, 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__octavo(void);

PyMODINIT_FUNC PyInit__octavo(void) {
    static bool is_ready; /* under the interpreter's lock */
    int (*const exec)(PyObject *) = module_exec;
    memcpy(&slots[0].value, &exec, sizeof exec);
    if (!is_ready) octavo_py_contexts_init();
    is_ready = true;
    return PyModuleDef_Init(&definition);
}
