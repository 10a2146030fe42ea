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
#define DSO_CATCH(function) \
  }                         \
  catch (...) {             \
    return dso_caught();    \
  }

/* An OSError begins with its number: "[Errno 2] open: No such file or directory". */
static inline int dso_raise_system_error(const std::system_error &error) {
  const std::error_category &category = error.code().category();
  if (category != std::generic_category() && category != std::system_category())
    return dso_raise("RuntimeError", error.what());
  char text[1024];
  (void)snprintf(text, sizeof text, "[Errno %d] %s", error.code().value(), error.what());
  return dso_raise("OSError", text);
}

/* Raise the exception that is being handled. */
__attribute__((cold, noinline, unused)) static int dso_caught() {
  try {
    throw;
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind &) { /* pthread_exit: the thread ends here */
    throw;
#endif
  } catch (const std::bad_alloc &error) {
    return dso_raise("MemoryError", error.what());
  } catch (const std::out_of_range &error) {
    return dso_raise("IndexError", error.what());
  } catch (const std::invalid_argument &error) {
    return dso_raise("ValueError", error.what());
  } catch (const std::domain_error &error) {
    return dso_raise("ValueError", error.what());
  } catch (const std::length_error &error) {
    return dso_raise("ValueError", error.what());
  } catch (const std::range_error &error) {
    return dso_raise("ValueError", error.what());
  } catch (const std::overflow_error &error) {
    return dso_raise("OverflowError", error.what());
  } catch (const std::system_error &error) {
    return dso_raise_system_error(error);
  } catch (const std::exception &error) {
    return dso_raise("RuntimeError", error.what());
  } catch (...) { return dso_raise("RuntimeError", "unknown C++ exception"); }
}
#else
#define DSO_TRY
#define DSO_CATCH(function)
#endif

#endif
