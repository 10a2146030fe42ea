/* A blob, parsed by the same code as in libdso.
 *
 * libdso's loaders check the payloads of its types; their modules are freed again, since Python
 * reads the payloads that were accepted when it makes its modules. Payloads of types that Python
 * registered go to its loaders. */
#include "python/parse_blob.h"

#include <string.h>

#include "abi/raised.h"
#include "blob/blob.h"
#include "module/loaders.h"
#include "python/container.h"
#include "python/payload.h"
#include "python/proof.h"

struct parse {
  struct blob blob;
  Reader *reader;  /* of the blob */
  int is_complete; /* the end of a payload is known although its key has no loader */
  PyObject *load;  /* for types of Python; NULL before the first one */
};

/* ---- A module that Python made, as an object of the blob */

struct python_module {
  dso_object object;
  PyObject *module; /* NULL for a payload that is carried */
  int carries_imports;
};

static void python_module_delete(void *object, int flags) {
  struct python_module *self = object;
  if ((flags & DSO_DELETE_STRONG) != 0) Py_CLEAR(self->module);
  object_free(object, flags);
}

static dso_object *python_module_new(PyObject *module, int carries_imports) {
  struct python_module *self = object_new(sizeof *self, DSO_MODULE, python_module_delete);
  if (self == NULL) return raised_null("OutOfMemoryError", "no memory for a module");
  self->module = Py_XNewRef(module);
  self->carries_imports = carries_imports;
  return &self->object;
}

static const struct python_module *python_module_of(const dso_object *object) {
  return object->deleter == python_module_delete ? (const void *)object : NULL;
}

/* ---- The loaders for blob_parse. With an exception set, what they raise here is dropped. */

static int keep_made(PyObject *made, dso_object **module) {
  PyObject *carries = PyObject_GetAttrString(made, "_carries_imports");
  if (carries == NULL) return -1;
  *module = python_module_new(made, PyObject_IsTrue(carries) == 1);
  Py_DECREF(carries);
  return *module != NULL ? 1 : -1;
}

static int import_load(struct parse *self) {
  if (self->load != NULL) return 0;
  PyObject *file = PyImport_ImportModule("runtime.payloads"); /* imported at first use */
  if (file == NULL) return -1;
  self->load = PyObject_CallMethod(file, "payload_loader", "i", self->is_complete);
  Py_DECREF(file);
  return self->load != NULL ? 0 : -1;
}

static int load_in_python(struct parse *self, struct span key, struct reader *reader,
                          dso_object **module) {
  if (import_load(self) != 0) return -1;
  const struct blob_entry *entry = &self->blob.entries[self->blob.num_entries - 1];
  PyObject *part = reader_part(self->reader, reader->offset, reader->end);
  if (part == NULL) return -1;
  ((Reader *)part)->reader.is_last_entry = reader->is_last_entry;
  PyObject *made = PyObject_CallFunction(self->load, "s#nO", key.data, (Py_ssize_t)key.size,
                                         (Py_ssize_t)entry->offset, part);
  reader->offset = ((Reader *)part)->reader.offset;
  Py_DECREF(part);
  if (made == NULL) return -1;
  int status = made != Py_None ? keep_made(made, module) : 0;
  Py_DECREF(made);
  return status;
}

static int load(void *context, struct span key, struct reader *reader, dso_object **module) {
  int status = loaders.load(loaders.context, key, reader, module);
  return status != 0 ? status : load_in_python(context, key, reader, module);
}

static dso_object *carry(void *context, struct span key, struct span payload, dso_object *owner) {
  const struct parse *self = context;
  (void)key, (void)owner;
  if (proof_make(self->reader->reader.proof, payload.data, (Py_ssize_t)payload.size, 1) != 0)
    return NULL;
  return python_module_new(NULL, 0);
}

static int carries_imports(void *context, const dso_object *object) {
  const struct python_module *made = python_module_of(object);
  (void)context;
  return made != NULL ? made->carries_imports : loaders.carries_imports(loaders.context, object);
}

/* ---- The result */

static PyObject *entry_tuple(const struct blob_entry *entry) {
  const struct python_module *made = entry->module ? python_module_of(entry->module) : NULL;
  int is_carried = made != NULL && made->module == NULL;
  return Py_BuildValue("s#nnOO", entry->key.data, (Py_ssize_t)entry->key.size,
                       (Py_ssize_t)entry->offset, (Py_ssize_t)entry->nbytes,
                       made != NULL && !is_carried ? made->module : Py_None,
                       is_carried ? Py_True : Py_False);
}

static PyObject *entries_list(const struct blob *blob) {
  PyObject *list = PyList_New((Py_ssize_t)blob->num_entries);
  for (size_t i = 0; list != NULL && i < blob->num_entries; i++)
    list_fill(&list, i, entry_tuple(&blob->entries[i]));
  return list;
}

static PyObject *numbers_tuple(const uint64_t *numbers, size_t count) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; tuple != NULL && i < count; i++)
    tuple_fill(&tuple, i, PyLong_FromUnsignedLongLong(numbers[i]));
  return tuple;
}

static PyObject *result_of(const struct blob *blob) {
  if (!blob->has_tree) return Py_BuildValue("(NOO)", entries_list(blob), Py_None, Py_None);
  return Py_BuildValue("(NNN)", entries_list(blob), numbers_tuple(blob->row_ptr, blob->num_row_ptr),
                       numbers_tuple(blob->child_indices, blob->num_children));
}

/* ---- Parsing */

static PyObject *parse(struct parse *self, struct span manifest, PyObject *structure) {
  const struct blob_loader callbacks = {.context = self,
                                        .load = load,
                                        .carry = carry,
                                        .refuse = loaders.refuse,
                                        .carries_imports = carries_imports};
  struct reader reader = self->reader->reader;
  self->is_complete = manifest.data != NULL || reader.dialect == DIALECT_TVM_FFI;
  (void)reader_take_place();
  if (blob_parse(&reader, &callbacks, manifest, &self->blob) != 0)
    return payload_refused(self->reader->path);
  int status = 0;
  if (structure != Py_None)
    status = blob_check_structure(&reader, &self->blob, (uint32_t)PyLong_AsUnsignedLong(structure));
  if (PyErr_Occurred()) status = -1; /* a verification, whose error a loader passed over */
  PyObject *result = status == 0 ? result_of(&self->blob) : payload_refused(self->reader->path);
  blob_clear(&self->blob);
  return result;
}

PyObject *core_parse_blob(PyObject *Py_UNUSED(core), PyObject *args) {
  Py_buffer manifest;
  PyObject *structure, *result = NULL;
  struct parse self = {.load = NULL};
  int is_symbol;
  if (!PyArg_ParseTuple(args, "O!z*Op:parse_blob", &Reader_Type, &self.reader, &manifest,
                        &structure, &is_symbol))
    return NULL;
  if (!is_symbol || reader_skip_header(self.reader) == 0)
    result =
        parse(&self, (struct span){manifest.buf, manifest.buf != NULL ? (size_t)manifest.len : 0},
              structure);
  Py_XDECREF(self.load);
  if (manifest.buf != NULL) PyBuffer_Release(&manifest);
  return result;
}
