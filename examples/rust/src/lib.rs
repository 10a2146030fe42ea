//! Load packed libraries and run them: safe types over dso.h.
//!
//! ```no_run
//! # fn main() -> Result<(), dso::Error> {
//! let model = dso::Module::load("model.so")?;
//! let sum = model.function("add")?.call(&[40.into(), 2.into()])?;
//! assert_eq!(sum.as_int(), Some(42));
//! # Ok(())
//! # }
//! ```

pub mod ffi;
mod tensor;
mod value;

use std::ffi::{CStr, CString, OsStr};
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::{fmt, mem, ptr, slice};

pub use tensor::{Element, Tensor, Weight};
pub use value::{Arg, Value};

/// An error of a library or of libdso.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// `"LibraryLoadError"`, `"ValueError"`, ...
    pub kind: String,
    /// `"<Kind>: <message>"`.
    pub text: String,
}

impl Error {
    pub(crate) fn new(kind: &str, message: &str) -> Error {
        Error { kind: kind.into(), text: format!("{kind}: {message}") }
    }

    fn last() -> Error {
        unsafe {
            Error { kind: text(ffi::dso_last_error_kind()), text: text(ffi::dso_last_error()) }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

unsafe fn text(pointer: *const c_char) -> String {
    CStr::from_ptr(pointer).to_string_lossy().into_owned()
}

fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::new("ValueError", "string: expected no NUL character"))
}

/// The kind of the error of a library that a closure refused.
const REFUSED: &[u8] = b"ValueError\0";

/// The version of libdso.
pub fn version() -> String {
    unsafe { text(ffi::dso_version()) }
}

/// A node of a module tree.
pub struct Module(*mut ffi::Module);

// dso.h: any thread may call any function.
unsafe impl Send for Module {}
unsafe impl Sync for Module {}

impl Module {
    pub fn load(path: &str) -> Result<Module, Error> {
        Module::open(path, ptr::null())
    }

    /// Load a file if `verify` allows it, and each library that it needs: it gets the path and the
    /// bytes that will run, or says why they must not (`dso_options.verify`).
    pub fn load_verified<F>(path: &str, mut verify: F) -> Result<Module, Error>
    where
        F: FnMut(&Path, &[u8]) -> Result<(), String>,
    {
        let options = ffi::Options {
            size: mem::size_of::<ffi::Options>(),
            verify: Some(verify_by::<F>),
            verify_context: (&mut verify as *mut F).cast(),
        };
        Module::open(path, &options)
    }

    fn open(path: &str, options: *const ffi::Options) -> Result<Module, Error> {
        let path = c_string(path)?;
        let module = unsafe { ffi::dso_load(path.as_ptr(), options) };
        if module.is_null() {
            Err(Error::last())
        } else {
            Ok(Module(module))
        }
    }

    /// Find a function of the module or its imports, to call it often.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        let name = c_string(name)?;
        let function = unsafe { ffi::dso_module_function(self.0, name.as_ptr()) };
        if function.is_null() {
            Err(Error::last())
        } else {
            Ok(Function(function))
        }
    }

    /// The name of the function that runs the model.
    pub fn entry(&self) -> Result<String, Error> {
        let name = unsafe { ffi::dso_module_entry(self.0) };
        if name.is_null() {
            Err(Error::last())
        } else {
            Ok(unsafe { text(name) })
        }
    }

    /// A named tensor, which is borrowed from the module.
    pub fn weight(&self, name: &str) -> Result<Weight<'_>, Error> {
        let name = c_string(name)?;
        let mut tensor = tensor::empty();
        match unsafe { ffi::dso_module_weight(self.0, name.as_ptr(), &mut tensor) } {
            0 => Ok(Weight::new(tensor)),
            _ => Err(Error::last()),
        }
    }
}

/// `dso_options.verify` of a closure; a panic refuses the library.
unsafe extern "C" fn verify_by<F>(
    context: *mut c_void,
    path: *const c_char,
    bytes: *const c_void,
    nbytes: usize,
) -> c_int
where
    F: FnMut(&Path, &[u8]) -> Result<(), String>,
{
    let verify = &mut *context.cast::<F>();
    let path = Path::new(OsStr::from_bytes(CStr::from_ptr(path).to_bytes()));
    let bytes = slice::from_raw_parts(bytes.cast(), nbytes);
    let found = panic::catch_unwind(AssertUnwindSafe(|| verify(path, bytes)));
    let message = match found {
        Ok(Ok(())) => return 0,
        Ok(Err(message)) => c_string(&message).unwrap_or_default(),
        Err(_) => CString::default(),
    };
    ffi::dso_set_error(REFUSED.as_ptr().cast(), message.as_ptr())
}

impl Clone for Module {
    fn clone(&self) -> Module {
        unsafe { ffi::dso_module_retain(self.0) };
        Module(self.0)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        unsafe { ffi::dso_module_release(self.0) }
    }
}

/// A function that is held. It keeps its module alive.
pub struct Function(*mut ffi::Function);

unsafe impl Send for Function {}
unsafe impl Sync for Function {}

impl Function {
    pub fn call(&self, args: &[Arg<'_>]) -> Result<Value, Error> {
        // dso_function_call, which is inline in C.
        let args: Vec<ffi::Any> = args.iter().map(Arg::any).collect();
        let mut result = value::none();
        let status = unsafe {
            ((*self.0).safe_call)(self.0.cast(), args.as_ptr(), args.len() as i32, &mut result)
        };
        let result = Value(result);
        if status == 0 {
            Ok(result)
        } else {
            Err(Error::last())
        }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        unsafe { ffi::release(self.0.cast()) }
    }
}
