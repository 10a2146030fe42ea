/* CType and CMember: made by runtime.structs.members of a library's record. */
#include "python/call/c_type.h"

#include <structmember.h>

/* ---- CMember */

static int member_traverse(CMember *self, visitproc visit, void *arg) {
  Py_VISIT((PyObject *)self->type);
  return 0;
}

static int member_clear(CMember *self) {
  Py_CLEAR(self->type);
  return 0;
}

static void member_dealloc(CMember *self) {
  PyObject_GC_UnTrack(self);
  (void)member_clear(self);
  PyObject_GC_Del(self);
}

static PyMemberDef member_members[] = {
    {"type", T_OBJECT_EX, offsetof(CMember, type), READONLY, NULL},
    {"offset", T_PYSSIZET, offsetof(CMember, offset), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject CMember_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.CMember",
    .tp_basicsize = sizeof(CMember),
    .tp_traverse = (traverseproc)member_traverse,
    .tp_clear = (inquiry)member_clear,
    .tp_dealloc = (destructor)member_dealloc,
    .tp_members = member_members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

/* A member that the struct does not contain, or a bit-field that its integer does not. */
static int is_outside(const CType *self, const CMember *member) {
  Py_ssize_t size = member->type->size;
  if (member->offset < 0 || member->offset > self->size || size > self->size - member->offset)
    return 1;
  if (member->width > 0 && size > 8) return 1;
  return member->bit < 0 || member->width < 0 || member->bit + member->width > 8 * size ||
         member->bit > 64;
}

/* (type, offset, bit, width) */
static CMember *member_new(const CType *self, PyObject *given) {
  CMember *member = PyObject_GC_New(CMember, &CMember_Type);
  if (member == NULL) return NULL;
  member->type = NULL;
  PyObject_GC_Track(member);
  if (PyArg_ParseTuple(given, "O!nii:members", &CType_Type, &member->type, &member->offset,
                       &member->bit, &member->width)) {
    Py_INCREF(member->type);
    if (!is_outside(self, member)) return member;
    PyErr_Format(PyExc_ValueError,
                 "struct '%U': expected members within its %zd bytes; export again", self->name,
                 self->size);
  } else member->type = NULL;
  Py_DECREF(member);
  return NULL;
}

/* ---- CType */

static PyObject *type_new(PyTypeObject *class, PyObject *args, PyObject *keywords) {
  static char *names[] = {"name",  "code",     "how",    "size",      "target",
                          "count", "is_const", "format", "alignment", NULL};
  PyObject *name, *code, *target = Py_None, *format = Py_None;
  Py_ssize_t size, count = 0;
  int how, is_const = 0, alignment = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OUCn|OnpOi:CType", names, &name, &code, &how,
                                   &size, &target, &count, &is_const, &format, &alignment))
    return NULL;
  if (size < 0 || count < 0 || (name != Py_None && !PyUnicode_CheckExact(name)) ||
      (format != Py_None && !PyBytes_Check(format)) ||
      (target != Py_None && !c_type_check(target)) ||
      (target == Py_None && (how == C_ARRAY || how == C_POINTER)))
    return PyErr_Format(PyExc_ValueError, "CType: expected a C type, found %R", code);
  CType *self = (CType *)class->tp_alloc(class, 0);
  if (self == NULL) return NULL;
  if (name != Py_None) {
    self->name = Py_NewRef(name);
    PyUnicode_InternInPlace(&self->name);
  }
  self->code = Py_NewRef(code);
  self->target = target != Py_None ? (CType *)Py_NewRef(target) : NULL;
  self->format = format != Py_None ? Py_NewRef(format) : NULL;
  self->how = how, self->size = size, self->count = count, self->is_const = is_const;
  self->alignment = alignment;
  return (PyObject *)self;
}

/* Names that a Handle itself has: such a member is read as an item. */
static int is_own_name(PyObject *handle_dict, PyObject *name) {
  return PyDict_Contains(handle_dict, name);
}

static PyObject *type_set_members(CType *self, PyObject *args) {
  PyObject *given, *own, *name, *value;
  Py_ssize_t at = 0;
  if (!PyArg_ParseTuple(args, "O!O!:set_members", &PyDict_Type, &given, &PyDict_Type, &own))
    return NULL;
  PyObject *members = PyDict_New(), *attributes = PyDict_New();
  int status = members != NULL && attributes != NULL ? 0 : -1;
  while (status == 0 && PyDict_Next(given, &at, &name, &value)) {
    PyObject *member = (PyObject *)member_new(self, value);
    status = member != NULL ? PyDict_SetItem(members, name, member) : -1;
    int is_own = status == 0 ? is_own_name(own, name) : -1;
    if (is_own == 0) status = PyDict_SetItem(attributes, name, member);
    else if (is_own < 0) status = -1;
    Py_XDECREF(member);
  }
  if (status == 0) {
    Py_XSETREF(self->members, Py_NewRef(members));
    Py_XSETREF(self->attributes, Py_NewRef(attributes));
  }
  Py_XDECREF(members);
  Py_XDECREF(attributes);
  return status == 0 ? Py_NewRef(Py_None) : NULL;
}

static int type_traverse(CType *self, visitproc visit, void *arg) {
  Py_VISIT((PyObject *)self->target);
  Py_VISIT(self->members);
  Py_VISIT(self->attributes);
  return 0;
}

static int type_clear(CType *self) {
  Py_CLEAR(self->members);
  Py_CLEAR(self->attributes);
  return 0;
}

static void type_dealloc(CType *self) {
  PyObject_GC_UnTrack(self);
  (void)type_clear(self);
  Py_XDECREF((PyObject *)self->target);
  Py_XDECREF(self->name);
  Py_XDECREF(self->code);
  Py_XDECREF(self->format);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef type_members[] = {
    {"name", T_OBJECT, offsetof(CType, name), READONLY, NULL},
    {"code", T_OBJECT_EX, offsetof(CType, code), READONLY, NULL},
    {"format", T_OBJECT, offsetof(CType, format), READONLY, NULL},
    {"target", T_OBJECT, offsetof(CType, target), READONLY, NULL},
    {"members", T_OBJECT, offsetof(CType, members), READONLY, NULL},
    {"size", T_PYSSIZET, offsetof(CType, size), READONLY, NULL},
    {"count", T_PYSSIZET, offsetof(CType, count), READONLY, NULL},
    {"alignment", T_INT, offsetof(CType, alignment), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef type_methods[] = {
    {"set_members", (PyCFunction)type_set_members, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject CType_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.CType",
    .tp_basicsize = sizeof(CType),
    .tp_new = type_new,
    .tp_traverse = (traverseproc)type_traverse,
    .tp_clear = (inquiry)type_clear,
    .tp_dealloc = (destructor)type_dealloc,
    .tp_members = type_members,
    .tp_methods = type_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
};
