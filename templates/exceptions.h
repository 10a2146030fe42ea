/* exceptions.h: an exception that leaves a C++ function becomes the error of the call.
 *
 * DSO_TRY and DSO_CATCH enclose the call in a wrapper. They are empty in C, and a function that
 * does not throw costs the same with them. pybind11 and nanobind use the same kinds.
 *
 * <stdexcept> and <system_error> would take three quarters of the compilation of the wrappers. So
 * the classes are named by their symbols here, and std::system_error is read by its layout: both
 * are fixed by the Itanium C++ ABI and are the same in libstdc++ and libc++. */
#ifndef DSO_PACKER_EXCEPTIONS_H
#define DSO_PACKER_EXCEPTIONS_H

#ifdef __cpp_exceptions
#include <cxxabi.h>
#include <new>

#define DSO_TRY try {
#define DSO_CATCH(failed)        \
  }                              \
  catch (...) {                  \
    return dso_caught((failed)); \
  }

/* The type information of a class; its address is NULL if nothing that is linked has the class. */
#define DSO_CLASS(name, symbol)             \
  extern const char name DSO_SYMBOL(symbol) \
  DSO_WEAK
extern "C" {
extern const char dso_exception DSO_SYMBOL("_ZTISt9exception");
DSO_CLASS(dso_out_of_range, "_ZTISt12out_of_range");
DSO_CLASS(dso_overflow_error, "_ZTISt14overflow_error");
DSO_CLASS(dso_invalid_argument, "_ZTISt16invalid_argument");
DSO_CLASS(dso_domain_error, "_ZTISt12domain_error");
DSO_CLASS(dso_length_error, "_ZTISt12length_error");
DSO_CLASS(dso_range_error, "_ZTISt11range_error");
DSO_CLASS(dso_system_error, "_ZTISt12system_error");
DSO_CLASS(dso_system_error_of_llvm, "_ZTINSt3__112system_errorE");

/* dynamic_cast; `hint` is 0 for classes that begin with the object's. */
const void *dso_dynamic_cast(const void *object, const char *from, const char *to, ptrdiff_t hint)
    DSO_SYMBOL("__dynamic_cast");
}

static inline const void *dso_as(const std::exception *error, const char *type) {
  return type ? dso_dynamic_cast(error, &dso_exception, type, 0) : NULL;
}

static inline const char *dso_kind_of(const std::exception *error) {
  if (dynamic_cast<const std::bad_alloc *>(error)) return "MemoryError";
  if (dso_as(error, &dso_out_of_range)) return "IndexError";
  if (dso_as(error, &dso_overflow_error)) return "OverflowError";
  if (dso_as(error, &dso_invalid_argument) || dso_as(error, &dso_domain_error) ||
      dso_as(error, &dso_length_error) || dso_as(error, &dso_range_error))
    return "ValueError";
  return "RuntimeError";
}

/* std::error_category and std::system_error. */
struct dso_category {
  virtual ~dso_category();
  virtual const char *name() const;
};
struct dso_numbered {
  void *runtime_error[2]; /* of the virtual functions, and of the text */
  int number;
  const dso_category *category;
};

/* An OSError begins with its number: "[Errno 2] open: No such file or directory". */
static inline int dso_raise_exception(const std::exception &error) {
  char text[1024];
  const void *found = dso_as(&error, &dso_system_error);
  const dso_numbered *numbered =
      (const dso_numbered *)(found ? found : dso_as(&error, &dso_system_error_of_llvm));
  const char *category = numbered ? numbered->category->name() : "";
  if (__builtin_strcmp(category, "generic") && __builtin_strcmp(category, "system"))
    return dso_raise(dso_kind_of(&error), error.what());
  (void)__builtin_snprintf(text, sizeof text, "[Errno %d] %s", numbered->number, error.what());
  return dso_raise("OSError", text);
}

/* Raise the exception that is being handled, unless a callback failed before: its error stays. */
__attribute__((cold, noinline, unused)) static int dso_caught(int failed) {
  try {
    throw;
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind &) { /* pthread_exit: the thread ends here */
    throw;
#endif
  } catch (const std::exception &error) {
    return failed ? -1 : dso_raise_exception(error);
  } catch (...) { return failed ? -1 : dso_raise("RuntimeError", "unknown C++ exception"); }
}
#else
#define DSO_TRY
#define DSO_CATCH(failed)
#endif

#endif
