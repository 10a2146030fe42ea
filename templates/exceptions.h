/* exceptions.h: an exception that leaves a C++ function becomes the error of the call.
 *
 * DSO_TRY and DSO_CATCH enclose the call in a wrapper. They are empty in C, and a function that
 * does not throw costs the same with them. The kinds are those of pybind11 and nanobind. */
#ifndef DSO_PACKER_EXCEPTIONS_H
#define DSO_PACKER_EXCEPTIONS_H

#ifdef __cpp_exceptions
#include "dso_abi.h"

#include <cxxabi.h>
#include <new>
#include <stdexcept>
#include <stdio.h>
#include <system_error>

#define DSO_TRY try {
#define DSO_CATCH(failed)        \
  }                              \
  catch (...) {                  \
    return dso_caught((failed)); \
  }

static inline const char *dso_kind_of(const std::exception *error) {
  if (dynamic_cast<const std::bad_alloc *>(error)) return "MemoryError";
  if (dynamic_cast<const std::out_of_range *>(error)) return "IndexError";
  if (dynamic_cast<const std::overflow_error *>(error)) return "OverflowError";
  if (dynamic_cast<const std::invalid_argument *>(error) ||
      dynamic_cast<const std::domain_error *>(error) ||
      dynamic_cast<const std::length_error *>(error) ||
      dynamic_cast<const std::range_error *>(error))
    return "ValueError";
  return "RuntimeError";
}

/* An OSError begins with its number: "[Errno 2] open: No such file or directory". */
static inline int dso_raise_exception(const std::exception &error) {
  char text[1024];
  const std::system_error *numbered = dynamic_cast<const std::system_error *>(&error);
  if (!numbered || (numbered->code().category() != std::generic_category() &&
                    numbered->code().category() != std::system_category()))
    return dso_raise(dso_kind_of(&error), error.what());
  (void)snprintf(text, sizeof text, "[Errno %d] %s", numbered->code().value(), error.what());
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
