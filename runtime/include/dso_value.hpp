/* dso_value.hpp: errors, arguments, results and tensors of dso.hpp. C++11. */
#ifndef DSO_VALUE_HPP
#define DSO_VALUE_HPP

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dso.h"

namespace dso {

class Module;
class Function;

/* An error of a library or of libdso. what() is "<Kind>: <message>". */
class Error : public std::runtime_error {
public:
  Error(const std::string &kind, const std::string &message)
      : std::runtime_error(kind + ": " + message), kind_(kind) {}

  const std::string &kind() const noexcept { return kind_; } /* "ValueError", ... */
  const char *message() const noexcept { return what() + kind_.size() + 2; }

  /* This thread's last error of dso.h. */
  static Error last() {
    const std::string kind = dso_last_error_kind(), text = dso_last_error();
    const bool has_kind = text.compare(0, kind.size() + 2, kind + ": ") == 0;
    return Error(kind, has_kind ? text.substr(kind.size() + 2) : text);
  }

private:
  std::string kind_;
};

inline void check(int status) {
  if (status != 0) throw Error::last();
}

template <class T> T *check(T *pointer) {
  if (pointer == nullptr) throw Error::last();
  return pointer;
}

/* ---- Tensors over the program's memory ---- */

template <class T> DLDataType dtype() {
  static_assert(std::is_arithmetic<T>::value && !std::is_same<T, bool>::value,
                "expected a type of numbers");
  const int code = std::is_floating_point<T>::value ? 2 : std::is_signed<T>::value ? 0 : 1;
  return DLDataType{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(sizeof(T) * 8), 1};
}

/* The number of elements, if T is their type and the tensor is contiguous in the CPU's memory. */
template <class T> std::size_t elements_of(const DLTensor &tensor) {
  const DLDataType expected = dtype<T>();
  if (tensor.dtype.code != expected.code || tensor.dtype.bits != expected.bits ||
      tensor.dtype.lanes != 1)
    throw Error("TypeError", "tensor: expected elements of another type");
  if (tensor.device.device_type != 1)
    throw Error("ValueError", "tensor: expected one in the CPU's memory");
  std::int64_t count = 1;
  for (std::int32_t i = tensor.ndim; i-- > 0; count *= tensor.shape[i])
    if (tensor.strides != nullptr && tensor.shape[i] > 1 && tensor.strides[i] != count)
      throw Error("ValueError", "tensor: expected a contiguous one");
  return static_cast<std::size_t>(count);
}

/* The first element. The memory of weights is read-only. */
template <class T> T *data_of(const DLTensor &tensor) {
  (void)elements_of<typename std::remove_const<T>::type>(tensor);
  return reinterpret_cast<T *>(static_cast<char *>(tensor.data) + tensor.byte_offset);
}

/* A DLTensor over memory that the caller keeps. */
class Tensor {
public:
  Tensor(void *data, DLDataType dtype, std::vector<std::int64_t> shape,
         DLDevice device = DLDevice{1, 0})
      : shape_(std::move(shape)), tensor_() {
    tensor_.data = data;
    tensor_.device = device;
    tensor_.dtype = dtype;
    tensor_.ndim = static_cast<std::int32_t>(shape_.size());
    tensor_.shape = shape_.data();
  }
  Tensor(const Tensor &other) : shape_(other.shape_), tensor_(other.tensor_) {
    tensor_.shape = shape_.data();
  }
  Tensor &operator=(const Tensor &other) {
    shape_ = other.shape_;
    tensor_ = other.tensor_;
    tensor_.shape = shape_.data();
    return *this;
  }

  const DLTensor *get() const { return &tensor_; }
  const DLTensor &operator*() const { return tensor_; }
  const DLTensor *operator->() const { return &tensor_; }

private:
  std::vector<std::int64_t> shape_;
  DLTensor tensor_;
};

/* The elements of a vector, which must neither grow nor end before the tensor. */
template <class T> Tensor tensor(std::vector<T> &elements, std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) count *= extent;
  if (count < 0 || static_cast<std::size_t>(count) != elements.size())
    throw Error("ValueError", "tensor: expected a shape of " + std::to_string(elements.size()) +
                                  " elements, found " + std::to_string(count));
  return Tensor(elements.data(), dtype<T>(), std::move(shape));
}

template <class T> Tensor tensor(std::vector<T> &elements) {
  return tensor(elements, {static_cast<std::int64_t>(elements.size())});
}

/* ---- Values ---- */

/* A borrowed value: an argument of a function of the program. */
class View {
public:
  explicit View(const dso_any &value) : any_(value) {}

  const dso_any &any() const { return any_; }
  int type_index() const { return any_.type_index; } /* DSO_INT, ... */
  bool is_none() const { return any_.type_index == DSO_NONE; }

  /* A number, a std::string, a Module, a Function, a DLTensor * or a std::vector of numbers; an
   * Error if the value has another type, or the number does not fit. */
  template <class T> T as() const;

  /* The same without a name: `std::int64_t n = module["add"](40, 2);` */
  template <class T> operator T() const { return as<T>(); }

  /* Borrowed from the value. */
  const DLTensor &tensor() const { return *as<const DLTensor *>(); }

protected:
  dso_any any_;
};

/* An owned value: a result. */
class Value : public View {
public:
  Value() : View(dso_none()) {}
  Value(Value &&other) noexcept : View(other.release()) {}
  Value(const Value &other) : View(other.any_) { retain(); }
  Value &operator=(Value other) noexcept {
    std::swap(any_, other.any_);
    return *this;
  }
  ~Value() { dso_release(&any_); }

  /* Take the ownership of a result of dso.h. */
  static Value adopt(const dso_any &any) {
    Value value;
    value.any_ = any;
    return value;
  }

  /* Give the ownership to the caller. */
  dso_any release() noexcept {
    const dso_any any = any_;
    any_ = dso_none();
    return any;
  }

private:
  void retain() {
    if (any_.type_index >= DSO_OBJECT && any_.v_ptr != nullptr)
      dso_object_retain(static_cast<dso_object *>(any_.v_ptr));
  }
};

} // namespace dso

#include "dso_convert.hpp"

#endif
