/* ElfFile: the symbols of a shared object on disk. */
#include "python/elf_file.h"

#include <string.h>
#include <structmember.h>

#include "elf/layout.h"
#include "elf/separate.h"
#include "library/checked_file.h"
#include "library/cpu_levels.h"
#include "library/needed.h"
#include "python/container.h"
#include "python/exception.h"
#include "python/library.h"
#include "python/names.h"
#include "python/path.h"
#include "python/span.h"
#include "python/verify_checksums.h"

typedef struct {
  PyObject_HEAD
  PyObject *path; /* str */
  struct checked_file file;
} ElfFile;

static int check_path(ElfFile *self, PyObject *path, uint16_t machine) {
  struct load_error error;
  int status;
  Py_BEGIN_ALLOW_THREADS
  status = checked_file_open(PyBytes_AS_STRING(path), machine, &self->file, &error);
  Py_END_ALLOW_THREADS
  if (status == 0) return 0;
  return as_status(raise_load_error(self->path, error.reason, "%s", error.message));
}

static int parse_machine(PyObject *argument, uint16_t *machine) {
  *machine = elf_native_machine();
  if (argument == Py_None) return 0;
  long number = PyLong_AsLong(argument);
  if (number == -1 && PyErr_Occurred()) return -1;
  *machine = (uint16_t)number;
  if (number == *machine) return 0;
  return raise_format(PyExc_ValueError, "machine, expected 0 to 65535, found %ld", number);
}

static PyObject *elf_file_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"path", "machine", "name", NULL};
  PyObject *argument, *machine_argument = Py_None, *name = NULL;
  uint16_t machine;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O$U:ElfFile", names, &argument,
                                   &machine_argument, &name))
    return NULL;
  if (parse_machine(machine_argument, &machine) != 0) return NULL;
  PyObject *path = path_bytes(argument);
  ElfFile *self = path ? (ElfFile *)type->tp_alloc(type, 0) : NULL;
  if (self != NULL) {
    self->path = name != NULL ? Py_NewRef(name) : path_str(path);
    if (self->path == NULL || check_path(self, path, machine) != 0) Py_CLEAR(self);
  }
  Py_XDECREF(path);
  return (PyObject *)self;
}

static void elf_file_dealloc(ElfFile *self) {
  checked_file_close(&self->file);
  Py_XDECREF(self->path);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

/* 1 if found, 0 if absent, -1 with an exception set. */
static int find(const ElfFile *self, PyObject *name, struct elf_symbol *symbol) {
  const char *text = PyUnicode_AsUTF8(name);
  if (text == NULL) return -1;
  return elf_lookup(&self->file.image, elf_at_file, self->file.bytes, text, symbol);
}

static PyObject *range_of(const ElfFile *self, PyObject *name, const struct elf_symbol *symbol) {
  const struct elf_segment *segment =
      elf_segment_of(&self->file.image, symbol->value, symbol->size);
  if (segment == NULL)
    return raise_symbol_error(self->path, "blob", "", name, symbol->value,
                              "is not stored in the file");
  uint64_t offset = segment->offset + (symbol->value - segment->vaddr);
  return Py_BuildValue("(KK)", (unsigned long long)offset, (unsigned long long)symbol->size);
}

static PyObject *elf_file_symbol(ElfFile *self, PyObject *name) {
  struct elf_symbol symbol;
  int found = find(self, name, &symbol);
  if (found == 0) Py_RETURN_NONE;
  return found < 0 ? NULL : range_of(self, name, &symbol);
}

/* Accepts the symbols that Library.data can read. */
static PyObject *elf_file_data(ElfFile *self, PyObject *name) {
  struct elf_symbol symbol;
  int found = find(self, name, &symbol);
  if (found == 0) Py_RETURN_NONE;
  if (found < 0) return NULL;
  const char *wrong = elf_not_data(&self->file.image, &symbol);
  if (wrong != NULL) return raise_symbol_error(self->path, "blob", "", name, symbol.value, wrong);
  return range_of(self, name, &symbol);
}

static PyObject *elf_file_is_separate(ElfFile *self, PyObject *name) {
  const struct checked_file *file = &self->file;
  struct elf_symbol symbol;
  int found = find(self, name, &symbol);
  if (found < 0) return NULL;
  return PyBool_FromLong(found > 0 && elf_not_data(&file->image, &symbol) == NULL &&
                         elf_is_separate(file->bytes, file->nbytes, &file->image, &symbol));
}

/* The bytes of such a symbol, in the mapped file. */
static PyObject *elf_file_view(ElfFile *self, PyObject *name) {
  PyObject *range = elf_file_data(self, name);
  unsigned long long offset, nbytes;
  if (range == NULL || range == Py_None) return range;
  int ok = PyArg_ParseTuple(range, "KK", &offset, &nbytes);
  Py_DECREF(range);
  if (!ok) return NULL;
  return span_view((PyObject *)self, self->file.bytes + offset, (Py_ssize_t)nbytes, 1);
}

static PyObject *elf_file_symbols(ElfFile *self, PyObject *argument) {
  const char *prefix = PyUnicode_AsUTF8(argument);
  if (prefix == NULL) return NULL;
  return symbol_names(&self->file.image, elf_at_file, self->file.bytes, prefix);
}

static PyObject *elf_file_checksums(ElfFile *self, PyObject *name) {
  const char *symbol = PyUnicode_AsUTF8(name);
  if (symbol == NULL) return NULL;
  return verify_checksums(self->path, symbol, checked_file_find, &self->file);
}

static PyObject *elf_file_check_cpu(ElfFile *self, PyObject *Py_UNUSED(none)) {
  struct load_error error;
  if (cpu_levels_check(checked_file_find, &self->file, &error) == 0) Py_RETURN_NONE;
  return raise_load_error(self->path, error.reason, "%s", error.message);
}

/* True if the linker found a needed library that defines a version of this undefined symbol. */
static int is_bound(const uint8_t *versions, uint64_t index) {
  uint16_t version = 0;
  if (versions != NULL) memcpy(&version, versions + index * sizeof version, sizeof version);
  return (version & VERSION_INDEX) > VER_NDX_GLOBAL;
}

static PyObject *elf_file_unbound(ElfFile *self, PyObject *Py_UNUSED(none)) {
  const struct elf_image *image = &self->file.image;
  uint64_t vaddr = elf_dynamic_value(image, elf_at_file, self->file.bytes, DT_VERSYM);
  const uint8_t *versions = vaddr ? elf_at_file(self->file.bytes, image, vaddr) : NULL;
  PyObject *names = PyList_New(0);
  for (uint64_t i = 1; names != NULL && i < image->num_symbols; i++) {
    struct elf_symbol symbol;
    const char *text = elf_symbol_at(image, elf_at_file, self->file.bytes, i, &symbol);
    if (symbol.section == SHN_UNDEF && symbol.bind != STB_WEAK && !is_bound(versions, i))
      list_add(&names, PyUnicode_DecodeFSDefault(text));
  }
  return names;
}

/* The texts of DT_NEEDED, DT_SONAME, DT_RPATH or DT_RUNPATH, in order. */
static PyObject *elf_file_dynamic_names(ElfFile *self, PyObject *argument) {
  unsigned long long tag = PyLong_AsUnsignedLongLong(argument);
  if (tag == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
  if (tag != DT_NEEDED && tag != DT_SONAME && tag != DT_RPATH && tag != DT_RUNPATH)
    return PyErr_Format(PyExc_ValueError, "tag %llu, expected one whose value is a name", tag);
  PyObject *names = PyList_New(0);
  const char *text;
  size_t index = 0;
  while (names != NULL && (text = elf_dynamic_text(&self->file.image, elf_at_file, self->file.bytes,
                                                   tag, &index)) != NULL)
    list_add(&names, PyUnicode_DecodeFSDefault(text));
  return names;
}

/* ---- Needed libraries */

/* Call `open` for the next library, which is open as needed->descriptor; `open` owns that. Returns 0,
 * 1 with *error of the loader filled, or -1 with an exception set. */
static int open_one(struct needed *needed, PyObject *open) {
  PyObject *opened = PyObject_CallFunction(open, "O&O&iO", PyUnicode_DecodeFSDefault, needed->name,
                                           PyUnicode_DecodeFSDefault, needed->path,
                                           needed->descriptor, needed->is_own ? Py_True : Py_False);
  if (opened == NULL) return -1;
  int status = -1;
  if (!PyObject_TypeCheck(opened, &Library_Type))
    PyErr_SetString(PyExc_TypeError, "open_needed: expected a Library");
  else {
    const Library *library = (const Library *)opened;
    status = needed_check_opened(needed, library->loaded.handle, library->descriptor) != 0;
  }
  Py_DECREF(opened);
  return status;
}

static PyObject *elf_file_open_needed(ElfFile *self, PyObject *args) {
  PyObject *folder, *open;
  int opens_all, found, status = 0;
  if (!PyArg_ParseTuple(args, "O&pO:open_needed", PyUnicode_FSConverter, &folder, &opens_all,
                        &open))
    return NULL;
  struct load_error error;
  struct needed *needed = PyMem_Calloc(1, sizeof *needed);
  if (needed == NULL) {
    Py_DECREF(folder);
    return PyErr_NoMemory();
  }
  needed->file = &self->file;
  needed->folder = PyBytes_AS_STRING(folder);
  needed->opens_all = opens_all;
  needed->error = &error;
  do {
    Py_BEGIN_ALLOW_THREADS
    found = needed_next(needed);
    Py_END_ALLOW_THREADS
    if (found > 0) status = open_one(needed, open);
  } while (found > 0 && status == 0);
  PyMem_Free(needed);
  Py_DECREF(folder);
  if (found < 0 || status > 0)
    return raise_load_error(self->path, error.reason, "%s", error.message);
  return status == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef elf_file_methods[] = {
    {"symbol", (PyCFunction)elf_file_symbol, METH_O, NULL},
    {"data", (PyCFunction)elf_file_data, METH_O, NULL},
    {"is_separate", (PyCFunction)elf_file_is_separate, METH_O, NULL},
    {"view", (PyCFunction)elf_file_view, METH_O, NULL},
    {"symbols", (PyCFunction)elf_file_symbols, METH_O, NULL},
    {"checksums", (PyCFunction)elf_file_checksums, METH_O, NULL},
    {"check_cpu", (PyCFunction)elf_file_check_cpu, METH_NOARGS, NULL},
    {"open_needed", (PyCFunction)elf_file_open_needed, METH_VARARGS, NULL},
    {"dynamic_names", (PyCFunction)elf_file_dynamic_names, METH_O, NULL},
    {"unbound", (PyCFunction)elf_file_unbound, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef elf_file_members[] = {
    {"machine", T_USHORT, offsetof(ElfFile, file.image.machine), READONLY, NULL},
    {"path", T_OBJECT, offsetof(ElfFile, path), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject ElfFile_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.ElfFile",
    .tp_basicsize = sizeof(ElfFile),
    .tp_new = elf_file_new,
    .tp_dealloc = (destructor)elf_file_dealloc,
    .tp_methods = elf_file_methods,
    .tp_members = elf_file_members,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};
