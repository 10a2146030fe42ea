/* CType: the type of a C value that Python reads and writes in place (docs/format.md, "Structs"). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject CType_Type;
extern PyTypeObject CMember_Type;

/* Kinds of values. Other letters are numbers, as the struct module names them. */
enum {
  C_OPAQUE = 'O',   /* void, or a struct without a known layout */
  C_STRUCT = '{',   /* a struct or union: `members` */
  C_ARRAY = '[',    /* `count` values of type `target` */
  C_POINTER = '*',  /* a pointer to a value of type `target` */
  C_CHARS = 'c',    /* an array of char: text, of `count` bytes at most */
  C_FUNCTION = 'F', /* a function, of the type in `code` */
  C_TEXT = 's',     /* char *, which NUL terminates */
  C_LONGDOUBLE = 'g',
  C_CONVERTED = 'x' /* a number that Python code converts, by `code` */
};

typedef struct c_type {
  PyObject_HEAD
  PyObject *name;        /* interned str: the kind of a handle of such a value; or NULL */
  PyObject *code;        /* str */
  PyObject *format;      /* bytes: the item's format in a buffer (PEP 3118); or NULL */
  struct c_type *target; /* or NULL */
  PyObject *members;     /* dict: name -> CMember; NULL but for a struct */
  PyObject *attributes;  /* the same without the names that a Handle has itself */
  Py_ssize_t size, count;
  int is_const;  /* of a pointer: its target is const */
  int alignment; /* of a struct, or of an array of them; else 0 */
  int how;
} CType;

typedef struct {
  PyObject_HEAD
  CType *type;
  Py_ssize_t offset;
  int bit, width; /* of a bit-field; `width` is 0 for other members */
} CMember;

static inline int c_type_check(PyObject *object) { return Py_IS_TYPE(object, &CType_Type); }
