/* Reader: the primitives of a blob for Python, by the reader of libdso.
 *
 * One file: its methods read the fields of one object, and a third of it is their documentation. */
#include "python/reader.h"

#include <stdio.h>
#include <string.h>
#include <structmember.h>

#include "abi/text.h"
#include "blob/blob.h"
#include "python/container.h"
#include "python/exception.h"
#include "python/payload.h"
#include "python/proof.h"

static const char *const dialects[] = {"tvm", "tvm-ffi"};

static PyObject *refuse(const Reader *self) { return payload_refused(self->path); }

/* ---- Making */

static int find_dialect(const char *name) {
  for (int i = 0; i < 2; i++)
    if (strcmp(name, dialects[i]) == 0) return i;
  return raise_format(PyExc_ValueError, "dialect '%s' is not known; known: tvm, tvm-ffi", name);
}

static int is_bytes_view(PyObject *data) {
  const Py_buffer *buffer = PyMemoryView_Check(data) ? PyMemoryView_GET_BUFFER(data) : NULL;
  return buffer != NULL && buffer->readonly && buffer->ndim == 1 && buffer->format != NULL &&
         strcmp(buffer->format, "B") == 0 && PyBuffer_IsContiguous(buffer, 'C');
}

/* The bytes of a buffer, without a copy. */
static PyObject *bytes_view(PyObject *data) {
  if (is_bytes_view(data)) return Py_NewRef(data);
  PyObject *view = PyMemoryView_FromObject(data);
  if (view != NULL) Py_SETREF(view, PyObject_CallMethod(view, "cast", "s", "B"));
  if (view != NULL) Py_SETREF(view, PyObject_CallMethod(view, "toreadonly", NULL));
  return view;
}

static PyObject *make(PyTypeObject *type, PyObject *view, PyObject *path, PyObject *where,
                      PyObject *where_text) {
  Reader *self = (Reader *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->view = Py_NewRef(view);
  self->path = Py_NewRef(path);
  self->where = Py_NewRef(where);
  self->where_text = Py_NewRef(where_text);
  self->reader.where = PyBytes_AS_STRING(where_text);
  return (PyObject *)self;
}

static PyObject *reader_make(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"data", "path", "where", "dialect", NULL};
  PyObject *data, *path = Py_None, *where = NULL, *self = NULL;
  const char *dialect = dialects[0];
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$OUs:Reader", names, &data, &path, &where,
                                   &dialect))
    return NULL;
  int index = find_dialect(dialect);
  if (index < 0) return NULL;
  where = where != NULL ? Py_NewRef(where) : PyUnicode_FromString("blob");
  PyObject *text = where != NULL ? PyUnicode_AsEncodedString(where, "utf-8", "replace") : NULL;
  PyObject *view = text != NULL ? bytes_view(data) : NULL;
  if (view != NULL && (self = make(type, view, path, where, text)) != NULL) {
    struct reader *reader = &((Reader *)self)->reader;
    reader->bytes = PyMemoryView_GET_BUFFER(view)->buf;
    reader->end = (size_t)PyMemoryView_GET_BUFFER(view)->len;
    reader->proof = proof_of(view);
    reader->dialect = index;
    reader->is_last_entry = 1;
  }
  Py_XDECREF(view);
  Py_XDECREF(text);
  Py_XDECREF(where);
  return self;
}

/* As for a Span: a library's code may cache a function whose module keeps a reader. */
static int reader_traverse(Reader *self, visitproc visit, void *arg) {
  Py_VISIT(self->view);
  return 0;
}

static void reader_dealloc(Reader *self) {
  PyObject_GC_UnTrack(self);
  Py_XDECREF(self->view);
  Py_XDECREF(self->path);
  Py_XDECREF(self->where);
  Py_XDECREF(self->where_text);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

PyObject *reader_part(Reader *self, size_t start, size_t end) {
  PyObject *part = make(Py_TYPE(self), self->view, self->path, self->where, self->where_text);
  if (part == NULL) return NULL;
  struct reader *reader = &((Reader *)part)->reader;
  *reader = self->reader;
  reader->offset = start;
  reader->end = end;
  reader->is_last_entry = 1;
  return part;
}

int reader_skip_header(Reader *self) {
  size_t nbytes = self->reader.end;
  if (blob_skip_header(&self->reader) != 0) {
    (void)refuse(self);
    return -1;
  }
  PyObject *body =
      PySequence_GetSlice(self->view, (Py_ssize_t)(nbytes - self->reader.end), (Py_ssize_t)nbytes);
  if (body == NULL) return -1;
  Py_SETREF(self->view, body);
  return 0;
}

PyObject *reader_view(const Reader *self, const void *bytes, size_t nbytes) {
  Py_ssize_t start = (const uint8_t *)bytes - self->reader.bytes;
  return PySequence_GetSlice(self->view, start, start + (Py_ssize_t)nbytes);
}

static PyObject *part(Reader *self, PyObject *args) {
  Py_ssize_t start, end, size = PyMemoryView_GET_BUFFER(self->view)->len;
  if (!PyArg_ParseTuple(args, "nn:part", &start, &end)) return NULL;
  if (0 <= start && start <= end && end <= size)
    return reader_part(self, (size_t)start, (size_t)end);
  return PyErr_Format(PyExc_ValueError, "part: from %zd to %zd, expected a range of %zd bytes",
                      start, end, size);
}

/* ---- Numbers */

static PyObject *read_u64(Reader *self, PyObject *Py_UNUSED(none)) {
  uint64_t value;
  return reader_u64(&self->reader, &value) == 0 ? PyLong_FromUnsignedLongLong(value) : refuse(self);
}

static PyObject *read_u32(Reader *self, PyObject *Py_UNUSED(none)) {
  uint32_t value;
  return reader_u32(&self->reader, &value) == 0 ? PyLong_FromUnsignedLong(value) : refuse(self);
}

static PyObject *read_i64(Reader *self, PyObject *Py_UNUSED(none)) {
  int64_t value;
  return reader_i64(&self->reader, &value) == 0 ? PyLong_FromLongLong(value) : refuse(self);
}

static PyObject *read_i32(Reader *self, PyObject *Py_UNUSED(none)) {
  int32_t value;
  return reader_i32(&self->reader, &value) == 0 ? PyLong_FromLong(value) : refuse(self);
}

static PyObject *read_dtype(Reader *self, PyObject *Py_UNUSED(none)) {
  DLDataType dtype;
  return reader_dtype(&self->reader, &dtype) == 0 ? payload_dtype(dtype) : refuse(self);
}

/* ---- Bytes and text */

/* A number that has no u64 is refused as the greatest one: no file has so many bytes. */
static int take_nbytes(PyObject *number, uint64_t *nbytes) {
  *nbytes = PyLong_AsUnsignedLongLong(number);
  if (*nbytes != UINT64_MAX || !PyErr_Occurred()) return 0;
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
  PyErr_Clear();
  return 0;
}

static PyObject *take(Reader *self, PyObject *args, PyObject *keywords,
                      int (*read)(struct reader *, uint64_t, const char *, const uint8_t **)) {
  static char *names[] = {"nbytes", "what", NULL};
  const char *what = "bytes";
  PyObject *number;
  uint64_t nbytes;
  const uint8_t *bytes;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|s:read_raw", names, &PyLong_Type, &number,
                                   &what) ||
      take_nbytes(number, &nbytes) != 0)
    return NULL;
  if (read(&self->reader, nbytes, what, &bytes) != 0) return refuse(self);
  return reader_view(self, bytes, (size_t)nbytes);
}

static PyObject *read_raw(Reader *self, PyObject *args, PyObject *keywords) {
  return take(self, args, keywords, reader_raw);
}

static PyObject *read_data(Reader *self, PyObject *args, PyObject *keywords) {
  return take(self, args, keywords, reader_skip);
}

static PyObject *read_bytes(Reader *self, PyObject *Py_UNUSED(none)) {
  struct span bytes;
  return reader_bytes(&self->reader, &bytes) == 0 ? reader_view(self, bytes.data, bytes.size)
                                                  : refuse(self);
}

static PyObject *read_name(Reader *self, PyObject *Py_UNUSED(none)) {
  struct span text;
  if (reader_string(&self->reader, &text) != 0) return refuse(self);
  return PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "surrogateescape");
}

static PyObject *read_string(Reader *self, PyObject *Py_UNUSED(none)) {
  enum { MOST_SHOWN = 81 };
  struct span text;
  size_t start = self->reader.offset;
  if (reader_string(&self->reader, &text) != 0) return refuse(self);
  PyObject *decoded = PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, NULL);
  if (decoded != NULL || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return decoded;
  PyErr_Clear();
  struct text shown = {0};
  text_shown_bytes(&shown, text.data, text.size < MOST_SHOWN ? text.size : MOST_SHOWN);
  (void)reader_fail(&self->reader, start, "text %s, expected UTF-8", text_of(&shown));
  text_free(&shown);
  return refuse(self);
}

static PyObject *read_sized(Reader *self, PyObject *Py_UNUSED(none)) {
  struct reader inner;
  return reader_sized(&self->reader, &inner) == 0 ? reader_part(self, inner.offset, inner.end)
                                                  : refuse(self);
}

/* ---- Counts and containers */

/* Read a count of elements. Returns -1 with an exception set. */
static Py_ssize_t take_count(Reader *self, Py_ssize_t min_nbytes, unsigned long long most) {
  size_t count;
  if (min_nbytes < 1)
    return raise_format(PyExc_ValueError, "min_nbytes: %zd, expected at least 1", min_nbytes);
  if (reader_count(&self->reader, (size_t)min_nbytes, most, &count) == 0) return (Py_ssize_t)count;
  (void)refuse(self);
  return -1;
}

static PyObject *read_count(Reader *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"min_nbytes", "most", NULL};
  Py_ssize_t min_nbytes;
  unsigned long long most = UINT64_MAX;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "n|K:read_count", names, &min_nbytes, &most))
    return NULL;
  Py_ssize_t count = take_count(self, min_nbytes, most);
  return count >= 0 ? PyLong_FromSsize_t(count) : NULL;
}

static PyObject *read_vector(Reader *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"read_element", "min_nbytes", "most", NULL};
  PyObject *read_element;
  Py_ssize_t min_nbytes = 1;
  unsigned long long most = UINT64_MAX;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|nK:read_vector", names, &read_element,
                                   &min_nbytes, &most))
    return NULL;
  Py_ssize_t count = take_count(self, min_nbytes, most);
  PyObject *list = count >= 0 ? PyList_New(0) : NULL; /* grows: no memory for a count alone */
  for (Py_ssize_t i = 0; list != NULL && i < count; i++)
    list_add(&list, PyObject_CallNoArgs(read_element));
  return list;
}

static PyObject *read_u64_vector(Reader *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"most", NULL};
  unsigned long long most = UINT64_MAX;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|K:read_u64_vector", names, &most)) return NULL;
  Py_ssize_t count = take_count(self, 8, most);
  PyObject *tuple = count >= 0 ? PyTuple_New(count) : NULL;
  for (Py_ssize_t i = 0; tuple != NULL && i < count; i++)
    tuple_fill(&tuple, (size_t)i, read_u64(self, NULL));
  return tuple;
}

/* Of equal keys the first is kept. Returns 0, or -1 with an exception set. */
static int read_pair(Reader *self, PyObject *dict, PyObject *read_value) {
  PyObject *key = read_name(self, NULL);
  PyObject *value = key != NULL ? PyObject_CallNoArgs(read_value) : NULL;
  PyObject *kept = value != NULL ? PyDict_SetDefault(dict, key, value) : NULL; /* borrowed */
  Py_XDECREF(key);
  Py_XDECREF(value);
  return kept != NULL ? 0 : -1;
}

static PyObject *read_map(Reader *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"read_value", "min_nbytes", NULL};
  PyObject *read_value;
  Py_ssize_t min_nbytes = 1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|n:read_map", names, &read_value, &min_nbytes))
    return NULL;
  Py_ssize_t count = take_count(self, min_nbytes < 0 ? 0 : 8 + min_nbytes, UINT64_MAX);
  PyObject *dict = count >= 0 ? PyDict_New() : NULL;
  for (Py_ssize_t i = 0; dict != NULL && i < count; i++)
    if (read_pair(self, dict, read_value) != 0) Py_CLEAR(dict);
  return dict;
}

/* ---- Errors, and the end */

static PyObject *error(Reader *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"what", "offset", NULL};
  PyObject *what, *offset = Py_None;
  char place[32]; /* PyUnicode_FromFormat has no %zx before 3.12 */
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|O:error", names, &what, &offset)) return NULL;
  size_t at = offset == Py_None ? self->reader.offset : PyLong_AsSize_t(offset);
  if (at == (size_t)-1 && PyErr_Occurred()) return NULL;
  (void)snprintf(place, sizeof place, "0x%zx", at);
  PyObject *text = PyUnicode_FromFormat("%U at %s: %U", self->where, place, what);
  return text != NULL ? payload_error(self->path, text, at) : NULL;
}

static PyObject *ends_entry(Reader *self, PyObject *Py_UNUSED(none)) {
  int ends = reader_ends_entry(&self->reader);
  return PyErr_Occurred() ? NULL : PyBool_FromLong(ends); /* of a verification */
}

/* ---- Attributes */

static PyObject *get_remaining(Reader *self, void *Py_UNUSED(closure)) {
  return PyLong_FromSize_t(reader_remaining(&self->reader));
}

static PyObject *get_dialect(Reader *self, void *Py_UNUSED(closure)) {
  return PyUnicode_InternFromString(dialects[self->reader.dialect]);
}

static PyObject *get_offset(Reader *self, void *Py_UNUSED(closure)) {
  return PyLong_FromSize_t(self->reader.offset);
}

static int set_offset(Reader *self, PyObject *value, void *Py_UNUSED(closure)) {
  size_t offset = value != NULL ? PyLong_AsSize_t(value) : 0;
  if (offset == (size_t)-1 && PyErr_Occurred()) return -1;
  if (value != NULL && offset <= self->reader.end) {
    self->reader.offset = offset;
    return 0;
  }
  return raise_format(PyExc_ValueError, "offset: expected at most %zu", self->reader.end);
}

static PyObject *get_last_entry(Reader *self, void *Py_UNUSED(closure)) {
  return PyBool_FromLong(self->reader.is_last_entry);
}

static int set_last_entry(Reader *self, PyObject *value, void *Py_UNUSED(closure)) {
  self->reader.is_last_entry = value != NULL && PyObject_IsTrue(value) == 1;
  return 0;
}

/* ---- The type */

static const char READER_DOC[] =
    "Reader(data, *, path=None, where='blob', dialect='tvm')\n"
    "--\n"
    "\n"
    "Read primitives from a view; each size is checked against the remaining bytes first.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "data : buffer\n"
    "    The bytes of a blob, without its nbytes header.\n"
    "path : str, optional\n"
    "    The library that contains them, for messages.\n"
    "where : str\n"
    "    Their name in messages: usually the blob's symbol.\n"
    "dialect : {\"tvm\", \"tvm-ffi\"}\n"
    "    The format: some payloads differ.\n"
    "\n"
    "Attributes\n"
    "----------\n"
    "offset : int\n"
    "    Position in bytes from the start of the blob.\n"
    "last_entry : bool\n"
    "    True while the payload of the last entry is read; `blob.parse` sets it.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "Views that a Reader returns are slices of `data`: nothing is copied, and they keep the memory\n"
    "of `data` alive.";

#define NO_ARGUMENTS(name, text) \
  {#name, (PyCFunction)name, METH_NOARGS, #name "($self, /)\n--\n\n" text}
#define WITH_KEYWORDS(name, signature, text)                               \
  {#name, (PyCFunction)(void (*)(void))name, METH_VARARGS | METH_KEYWORDS, \
   #name "($self, " signature ")\n--\n\n" text}

static PyMethodDef reader_methods[] = {
    WITH_KEYWORDS(error, "what, offset=None",
                  "Make a BlobFormatError that names the file and an offset; the current one by "
                  "default.\n\n`what` is \"<what>, expected <x>, found <y>\"."),
    NO_ARGUMENTS(read_u64, "Read a u64. Raises BlobFormatError at the end of the data."),
    NO_ARGUMENTS(read_u32, "Read a u32. Raises BlobFormatError at the end of the data."),
    NO_ARGUMENTS(read_i64, "Read an i64. Raises BlobFormatError at the end of the data."),
    NO_ARGUMENTS(read_i32, "Read an i32. Raises BlobFormatError at the end of the data."),
    NO_ARGUMENTS(read_dtype, "Read a DLDataType (code, bits, lanes). Raises BlobFormatError at the "
                             "end of the data."),
    WITH_KEYWORDS(read_raw, "nbytes, what='bytes'",
                  "Read a read-only view of `nbytes` bytes; raise BlobFormatError if fewer "
                  "remain."),
    WITH_KEYWORDS(
        read_data, "nbytes, what='bytes'",
        "As `read_raw`, for the data of tensors: a Tensor verifies them when it is used."),
    NO_ARGUMENTS(read_bytes, "Read a length, then a view of that many bytes. Raises "
                             "BlobFormatError if fewer remain."),
    NO_ARGUMENTS(read_string, "Read a length, then UTF-8 text. Raises BlobFormatError if it is "
                              "neither."),
    NO_ARGUMENTS(
        read_name,
        "Read a length, then text; TVM permits any bytes.\n\n"
        "Bytes that are not UTF-8 become lone surrogates, as in names of files: b\"\\xff\" "
        "is\n\"\\udcff\", and `Writer.write_string` writes the byte again. Raises "
        "BlobFormatError at\nthe end of the data."),
    NO_ARGUMENTS(read_sized, "Read a length; return a reader of that many bytes, whose offsets "
                             "continue this one's. Raises BlobFormatError if fewer remain."),
    WITH_KEYWORDS(read_count, "min_nbytes, most=18446744073709551615",
                  "Read a count of elements that take at least `min_nbytes` each.\n\n"
                  "Raises BlobFormatError if it exceeds `most`, or if the remaining bytes cannot "
                  "contain that\nmany; nothing is allocated for them."),
    WITH_KEYWORDS(read_vector, "read_element, min_nbytes=1, most=18446744073709551615",
                  "Read a vector: a count as `read_count` does, then as many elements by "
                  "`read_element()`."),
    WITH_KEYWORDS(read_u64_vector, "most=18446744073709551615",
                  "Read a vector<u64> of at most `most`. Raises BlobFormatError when it does not "
                  "fit."),
    WITH_KEYWORDS(read_map, "read_value, min_nbytes=1",
                  "Read a map whose keys are names; of equal keys the first is kept, as in TVM.\n\n"
                  "Raises BlobFormatError if it exceeds the remaining bytes, or if an entry is "
                  "malformed."),
    {"part", (PyCFunction)part, METH_VARARGS,
     "part($self, start, end, /)\n--\n\n"
     "Return a reader of a range of these bytes, with the same offsets."},
    {"accepted", (PyCFunction)payload_accepted, METH_O,
     "accepted($self, type_key, /)\n--\n\n"
     "Read a payload that the core accepts; return a reader of it, or raise BlobFormatError."},
    NO_ARGUMENTS(
        ends_entry,
        "Return True if a payload can end here: at the blob's end, or before another "
        "key.\n\nFor a type key with two layouts, this decides which of them was written."),
    {"_read_ndarray", (PyCFunction)payload_ndarray, METH_NOARGS, NULL},
    {"_weights_header", (PyCFunction)payload_weights_header, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef reader_members[] = {
    {"path", T_OBJECT, offsetof(Reader, path), READONLY, NULL},
    {"where", T_OBJECT, offsetof(Reader, where), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef reader_getset[] = {
    {"remaining", (getter)get_remaining, NULL, "The number of remaining bytes.", NULL},
    {"dialect", (getter)get_dialect, NULL, NULL, NULL},
    {"offset", (getter)get_offset, (setter)set_offset, NULL, NULL},
    {"last_entry", (getter)get_last_entry, (setter)set_last_entry, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Reader_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.Reader",
    .tp_doc = READER_DOC,
    .tp_basicsize = sizeof(Reader),
    .tp_new = reader_make,
    .tp_dealloc = (destructor)reader_dealloc,
    .tp_methods = reader_methods,
    .tp_members = reader_members,
    .tp_getset = reader_getset,
    .tp_traverse = (traverseproc)reader_traverse,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
};
