/* A Python module that lets the n-th allocation of Python's allocators fail, as the core's
 * fail_allocation does for the core's. */
#include <Python.h>

static PyMemAllocatorEx before[2];
static long until_failure;

static int is_refused(void) {
  if (until_failure <= 0) return 0;
  return --until_failure == 0;
}

static void *allocate(void *context, size_t nbytes) {
  PyMemAllocatorEx *next = context;
  return is_refused() ? NULL : next->malloc(next->ctx, nbytes);
}

static void *allocate_zeroed(void *context, size_t count, size_t itemsize) {
  PyMemAllocatorEx *next = context;
  return is_refused() ? NULL : next->calloc(next->ctx, count, itemsize);
}

static void *resize(void *context, void *block, size_t nbytes) {
  PyMemAllocatorEx *next = context;
  return is_refused() ? NULL : next->realloc(next->ctx, block, nbytes);
}

static void release(void *context, void *block) {
  PyMemAllocatorEx *next = context;
  next->free(next->ctx, block);
}

/* The raw domain, which is used without the GIL, is left alone. */
static void install(void) {
  const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
  for (int i = 0; i < 2; i++) {
    PyMem_GetAllocator(domains[i], &before[i]);
    PyMemAllocatorEx ours = {&before[i], allocate, allocate_zeroed, resize, release};
    PyMem_SetAllocator(domains[i], &ours);
  }
}

/* A small integer is not allocated, so calling this cannot fail. */
static PyObject *fail_allocation(PyObject *module, PyObject *number) {
  long missing = until_failure;
  (void)module;
  until_failure = 0;
  until_failure = PyLong_AsLong(number);
  return missing > 0 ? Py_NewRef(Py_True) : PyLong_FromLong(missing);
}

static PyMethodDef methods[] = {{"fail_allocation", fail_allocation, METH_O, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "failing_allocator", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_failing_allocator(void) {
  install();
  return PyModule_Create(&definition);
}
