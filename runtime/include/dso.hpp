/* dso.hpp: load packed libraries and run them, from C++11 and later; over dso.h, header-only.
 *
 *     dso::Module model = dso::Module::load("model.so");
 *     std::vector<float> x = {1, 2, 3, 4};
 *     std::vector<float> y = model["main"](dso::tensor(x, {2, 2}));
 *
 * A call that fails throws dso::Error. Objects are references that are counted: copy them freely. */
#ifndef DSO_HPP
#define DSO_HPP

#include "dso_value.hpp"

namespace dso {

/* A function that is held: called without look-up. It keeps its module alive. */
class Function {
public:
  /* Take the ownership of a function of dso.h. */
  static Function adopt(dso_function *function) { return Function(function); }

  /* A function that calls a callable of the program: a lambda whose parameters and result have
   * types that View::as and detail::owned convert. An exception becomes the caller's error. */
  template <class F> static Function of(F callable);

  Function(const Function &other) : function_(other.function_) {
    dso_object_retain(&function_->object);
  }
  Function(Function &&other) noexcept : function_(other.function_) { other.function_ = nullptr; }
  Function &operator=(Function other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  ~Function() { dso_function_release(function_); }

  dso_function *get() const { return function_; }

  template <class... Arguments> Value operator()(const Arguments &...arguments) const {
    const dso_any list[] = {detail::argument(arguments)..., dso_none()};
    dso_any result = dso_none();
    check(dso_function_call(function_, &result, list, sizeof...(Arguments)));
    return Value::adopt(result);
  }

private:
  explicit Function(dso_function *function) : function_(function) {}
  dso_function *function_;
};

/* A node of a module tree. */
class Module {
public:
  static Module load(const std::string &path, const dso_options *options = nullptr) {
    return adopt(check(dso_load(path.c_str(), options)));
  }
  /* Load a file if `verify(path, bytes, nbytes)` allows it, and each library that it needs: it throws
   * to refuse one, and dso::Error of the load is what it threw (dso_options.verify in dso.h). */
  template <class F> static Module load_verified(const std::string &path, F verify);
  static Module load_bytes(const void *bytes, std::size_t nbytes,
                           const dso_options *options = nullptr) {
    return adopt(check(dso_load_bytes(bytes, nbytes, options)));
  }
  static Module system_library(const std::string &prefix = "") {
    return adopt(check(dso_system_library(prefix.c_str())));
  }
  /* Take the ownership of a module of dso.h. */
  static Module adopt(dso_module *module) { return Module(module); }
  static Module borrow(dso_module *module) {
    dso_module_retain(module);
    return adopt(module);
  }

  Module(const Module &other) : module_(other.module_) { dso_module_retain(module_); }
  Module(Module &&other) noexcept : module_(other.module_) { other.module_ = nullptr; }
  Module &operator=(Module other) noexcept {
    std::swap(module_, other.module_);
    return *this;
  }
  ~Module() { dso_module_release(module_); }

  dso_module *get() const { return module_; }
  std::string type_key() const { return dso_module_type_key(module_); }
  std::string entry() const { return check(dso_module_entry(module_)); }
  /* The JSON text of dso_module_metadata; empty without. */
  std::string metadata() const {
    const char *json = nullptr;
    check(dso_module_metadata(module_, &json));
    return json == nullptr ? "" : json;
  }

  /* A function of the module, else of its imports, depth first in import order. */
  Function operator[](const std::string &name) const {
    return Function::adopt(check(dso_module_function(module_, name.c_str())));
  }

  /* Call the entry. */
  template <class... Arguments> Value operator()(const Arguments &...arguments) const {
    return (*this)[entry()](arguments...);
  }

  /* The names of the module's functions, without the functions of its imports. */
  std::vector<std::string> function_names() const {
    std::vector<std::string> names;
    check(dso_module_functions(
        module_,
        [](void *context, const char *name, const char *) {
          return append(static_cast<std::vector<std::string> *>(context), name);
        },
        &names));
    return names;
  }

  std::vector<Module> imports() const {
    dso_module *const *imported = nullptr;
    const std::size_t count = dso_module_imports(module_, &imported);
    std::vector<Module> modules;
    for (std::size_t i = 0; i < count; i++) modules.push_back(borrow(imported[i]));
    return modules;
  }
  void import_module(const Module &imported) {
    check(dso_module_import(module_, imported.module_));
  }

  /* A named tensor of the module or its imports: borrowed from the module, and read-only. */
  DLTensor weight(const std::string &name) const {
    DLTensor tensor;
    check(dso_module_weight(module_, name.c_str(), &tensor));
    return tensor;
  }
  std::vector<std::string> weight_names() const {
    std::vector<std::string> names;
    check(dso_module_weights(
        module_,
        [](void *context, const char *name, const DLTensor *) {
          return append(static_cast<std::vector<std::string> *>(context), name);
        },
        &names));
    return names;
  }

private:
  explicit Module(dso_module *module) : module_(module) {}

  static int append(std::vector<std::string> *names, const char *name) noexcept {
    try {
      names->push_back(name);
      return 0;
    } catch (...) { return dso_set_error("OutOfMemoryError", "list of names: out of memory"); }
  }

  dso_module *module_;
};

/* Give a function a global name, by which the code of libraries finds it. */
inline void register_function(const std::string &name, const Function &function) {
  check(dso_register_function(name.c_str(), function.get()));
}

namespace detail {

inline dso_any argument(const Module &module) { return dso_module_value(module.get()); }
inline dso_any argument(const Function &function) {
  return dso_object_value(&function.get()->object);
}

template <> struct convert<Module> {
  static Module from(const dso_any &value) { return Module::borrow(check(dso_module_of(&value))); }
};

template <> struct convert<Function> {
  static Function from(const dso_any &value) {
    if (value.type_index != DSO_FUNCTION) wrong_type("function", value);
    dso_function *function = static_cast<dso_function *>(value.v_ptr);
    dso_object_retain(&function->object);
    return Function::adopt(function);
  }
};

/* A parameter: DLTensor & of a DLTensor *, View of the value, the others by View::as. */
template <class T> struct parameter {
  static T from(const dso_any &value) { return convert<T>::from(value); }
};
template <> struct parameter<DLTensor> {
  static DLTensor &from(const dso_any &value) { return *convert<DLTensor *>::from(value); }
};
template <> struct parameter<View> {
  static View from(const dso_any &value) { return View(value); }
};

template <std::size_t... i> struct indices {};
template <std::size_t n, std::size_t... i>
struct make_indices : make_indices<n - 1, n - 1, i...> {};
template <std::size_t... i> struct make_indices<0, i...> {
  using type = indices<i...>;
};

template <class R, class... P> struct typed {
  static const std::int32_t count = sizeof...(P);

  template <class F, std::size_t... i>
  static dso_any call(F &callable, const dso_any *args, indices<i...>, std::false_type) {
    (void)args;
    return owned(callable(parameter<typename std::decay<P>::type>::from(args[i])...));
  }
  template <class F, std::size_t... i>
  static dso_any call(F &callable, const dso_any *args, indices<i...>, std::true_type) {
    (void)args;
    callable(parameter<typename std::decay<P>::type>::from(args[i])...);
    return dso_none();
  }
  template <class F> static dso_any call(F &callable, const dso_any *args) {
    return call(callable, args, typename make_indices<sizeof...(P)>::type(), std::is_void<R>());
  }
};

/* The parameters and the result of a callable: a function, or an object with one operator(). */
template <class F> struct signature : signature<decltype(&F::operator())> {};
template <class R, class... P> struct signature<R (*)(P...)> : typed<R, P...> {};
template <class C, class R, class... P> struct signature<R (C::*)(P...)> : typed<R, P...> {};
template <class C, class R, class... P> struct signature<R (C::*)(P...) const> : typed<R, P...> {};
#if __cplusplus >= 201703L
template <class R, class... P> struct signature<R (*)(P...) noexcept> : typed<R, P...> {};
template <class C, class R, class... P>
struct signature<R (C::*)(P...) const noexcept> : typed<R, P...> {};
#endif

/* Call `run`; an exception becomes the error. */
template <class F> int guard(const F &run) noexcept {
  try {
    run();
    return 0;
  } catch (const Error &error) {
    return dso_set_error(error.kind().c_str(), error.message());
  } catch (const std::bad_alloc &) {
    return dso_set_error("OutOfMemoryError", "out of memory in a function of the program");
  } catch (const std::invalid_argument &error) {
    return dso_set_error("ValueError", error.what());
  } catch (const std::out_of_range &error) {
    return dso_set_error("IndexError", error.what());
  } catch (const std::exception &error) {
    return dso_set_error("RuntimeError", error.what());
  } catch (...) {
    return dso_set_error("RuntimeError", "a function of the program threw an unknown exception");
  }
}

template <class F>
int call_callable(void *handle, const dso_any *args, std::int32_t num_args,
                  dso_any *result) noexcept {
  return guard([&] {
    if (num_args != signature<F>::count)
      throw Error("TypeError", "expected " + std::to_string(signature<F>::count) +
                                   " arguments, found " + std::to_string(num_args));
    *result = signature<F>::call(*static_cast<F *>(handle), args);
  });
}

template <class F>
int verify_by(void *callable, const char *path, const void *bytes, std::size_t nbytes) noexcept {
  return guard([&] { (*static_cast<F *>(callable))(path, bytes, nbytes); });
}

template <class F> void delete_callable(void *handle) noexcept { delete static_cast<F *>(handle); }

} // namespace detail

template <class F> Function Function::of(F callable) {
  F *copy = new F(std::move(callable));
  dso_function *function =
      dso_function_new(detail::call_callable<F>, copy, detail::delete_callable<F>);
  if (function == nullptr) delete copy;
  return adopt(check(function));
}

template <class F> Module Module::load_verified(const std::string &path, F verify) {
  dso_options options = dso_options();
  options.size = sizeof options;
  options.verify = detail::verify_by<F>;
  options.verify_context = &verify;
  return load(path, &options);
}

} // namespace dso

#endif
