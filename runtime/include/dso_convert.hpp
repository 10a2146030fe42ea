/* dso_convert.hpp: how dso.hpp converts values of C++ to values of the ABI, and back. C++11. */
#ifndef DSO_CONVERT_HPP
#define DSO_CONVERT_HPP

#include "dso_value.hpp"

namespace dso {
namespace detail {

template <bool condition> using if_ = typename std::enable_if<condition, int>::type;

template <class T> struct is_integer {
  static const bool value = std::is_integral<T>::value && !std::is_same<T, bool>::value;
};

/* ---- Arguments. They borrow what they are made of. ---- */

inline dso_any argument(std::nullptr_t) { return dso_none(); }
template <class T, if_<std::is_same<T, bool>::value> = 0> dso_any argument(T truth) {
  return dso_bool(truth);
}
template <class T, if_<is_integer<T>::value> = 0> dso_any argument(T integer) {
  dso_any value = dso_int(static_cast<std::int64_t>(integer));
  if (std::is_unsigned<T>::value && value.v_int64 < 0) value.small_len = DSO_UNSIGNED;
  return value;
}
template <class T, if_<std::is_floating_point<T>::value> = 0> dso_any argument(T number) {
  return dso_float(static_cast<double>(number));
}
inline dso_any argument(const char *text) { return dso_string(text); }
inline dso_any argument(const std::string &text) {
  if (text.find('\0') != std::string::npos)
    throw Error("ValueError", "string: expected no NUL character");
  return dso_string(text.c_str());
}
inline dso_any argument(const DLTensor *tensor) {
  return dso_tensor(const_cast<DLTensor *>(tensor));
}
inline dso_any argument(const DLTensor &tensor) { return argument(&tensor); }
inline dso_any argument(const Tensor &tensor) { return argument(tensor.get()); }
inline dso_any argument(DLDevice device) {
  return dso_device(device.device_type, device.device_id);
}
inline dso_any argument(void *pointer) { return dso_pointer(pointer); }
inline dso_any argument(const View &value) { return value.any(); }
dso_any argument(const Module &module);
dso_any argument(const Function &function);

/* ---- Results of the program's functions. The caller owns them. ---- */

struct string_object {
  dso_object object;
  dso_byte_array bytes;
};

inline void delete_string(void *self, int flags) {
  if (flags & DSO_DELETE_WEAK) std::free(self);
}

/* A Str object. Its text follows it. */
inline dso_any owned(const std::string &text) {
  void *block = std::malloc(sizeof(string_object) + text.size() + 1);
  if (block == nullptr) throw std::bad_alloc();
  char *copy = static_cast<char *>(block) + sizeof(string_object);
  std::memcpy(copy, text.c_str(), text.size() + 1);
  string_object *string = new (block) string_object();
  string->object.combined_ref_count = (std::uint64_t(1) << 32) | 1;
  string->object.type_index = DSO_STR;
  string->object.deleter = delete_string;
  string->bytes.data = copy;
  string->bytes.size = text.size();
  return dso_object_value(&string->object);
}
inline dso_any owned(const char *text) { return owned(std::string(text)); }
inline dso_any owned(std::nullptr_t) { return dso_none(); }
template <class T, if_<std::is_arithmetic<T>::value> = 0> dso_any owned(T number) {
  return argument(number);
}
inline dso_any owned(Value value) { return value.release(); }
inline dso_any owned_object(const dso_any &value) {
  dso_object_retain(static_cast<dso_object *>(value.v_ptr));
  return value;
}
inline dso_any owned(const Module &module) { return owned_object(argument(module)); }
inline dso_any owned(const Function &function) { return owned_object(argument(function)); }

/* ---- Values of the ABI, as types of C++ ---- */

inline std::string type_name(const dso_any &value) {
  switch (value.type_index) {
    case DSO_NONE: return "None";
    case DSO_INT: return "int";
    case DSO_BOOL: return "bool";
    case DSO_FLOAT: return "float";
    case DSO_RAW_STR:
    case DSO_SMALL_STR:
    case DSO_STR: return "str";
    case DSO_DLTENSOR_PTR:
    case DSO_TENSOR: return "a tensor";
    default: return "a value of type index " + std::to_string(value.type_index);
  }
}

[[noreturn]] inline void wrong_type(const char *expected, const dso_any &value) {
  throw Error("TypeError", std::string("expected ") + expected + ", found " + type_name(value));
}

inline bool is_number(const dso_any &value) {
  return value.type_index == DSO_INT || value.type_index == DSO_BOOL;
}

template <class T, class = int> struct convert; /* another type: not supported */

template <> struct convert<bool> {
  static bool from(const dso_any &value) {
    if (!is_number(value)) wrong_type("bool", value);
    return value.v_int64 != 0;
  }
};

template <class T> struct convert<T, if_<is_integer<T>::value>> {
  static T from(const dso_any &value) {
    if (!is_number(value)) wrong_type("int", value);
    const T integer = static_cast<T>(value.v_int64);
    const bool is_unsigned = value.type_index == DSO_INT && value.small_len == DSO_UNSIGNED;
    if (static_cast<std::int64_t>(integer) != value.v_int64 ||
        (integer < 0) != (value.v_int64 < 0 && !is_unsigned))
      throw Error("OverflowError", "the integer does not fit in the type of the result");
    return integer;
  }
};

template <class T> struct convert<T, if_<std::is_floating_point<T>::value>> {
  static T from(const dso_any &value) {
    if (value.type_index == DSO_FLOAT) return static_cast<T>(value.v_float64);
    if (!is_number(value)) wrong_type("float", value);
    return static_cast<T>(value.v_int64);
  }
};

template <> struct convert<std::string> {
  static std::string from(const dso_any &value) {
    if (value.type_index == DSO_RAW_STR) return value.v_c_str;
    if (value.type_index == DSO_SMALL_STR || value.type_index == DSO_SMALL_BYTES)
      return std::string(value.v_bytes, value.small_len);
    const void *bytes = value.v_ptr;
    if (value.type_index == DSO_STR || value.type_index == DSO_BYTES)
      bytes = static_cast<const dso_object *>(value.v_ptr) + 1;
    else if (value.type_index != DSO_BYTE_ARRAY_PTR) wrong_type("str", value);
    const dso_byte_array *array = static_cast<const dso_byte_array *>(bytes);
    return std::string(array->data, static_cast<std::size_t>(array->size));
  }
};

template <> struct convert<DLTensor *> {
  static DLTensor *from(const dso_any &value) {
    DLTensor *tensor = dso_tensor_of(&value);
    if (tensor == nullptr) wrong_type("tensor", value);
    return tensor;
  }
};

template <> struct convert<const DLTensor *> {
  static const DLTensor *from(const dso_any &value) { return convert<DLTensor *>::from(value); }
};

template <class T> struct convert<std::vector<T>> {
  static std::vector<T> from(const dso_any &value) {
    const DLTensor &tensor = *convert<DLTensor *>::from(value);
    const T *data = data_of<const T>(tensor);
    return std::vector<T>(data, data + elements_of<T>(tensor));
  }
};

} // namespace detail

template <class T> T View::as() const { return detail::convert<T>::from(any_); }

} // namespace dso

#endif
