//! The declarations of dso.h, dso_value.h and dso_abi.h that the safe types use.

use std::os::raw::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLDevice {
    pub device_type: i32,
    pub device_id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
pub struct DLDataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

#[repr(C)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device: DLDevice,
    pub ndim: i32,
    pub dtype: DLDataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

pub const NONE: i32 = 0;
pub const INT: i32 = 1;
pub const BOOL: i32 = 2;
pub const FLOAT: i32 = 3;
pub const DLTENSOR_PTR: i32 = 7;
pub const RAW_STR: i32 = 8;
pub const SMALL_STR: i32 = 11;
pub const OBJECT: i32 = 64;
pub const STR: i32 = 65;
pub const TENSOR: i32 = 70;

#[repr(C)]
#[derive(Clone, Copy)]
pub union Payload {
    pub int: i64,
    pub float: f64,
    pub pointer: *mut c_void,
    pub bytes: [u8; 8],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Any {
    pub type_index: i32,
    pub small_len: u32,
    pub payload: Payload,
}

#[repr(C)]
pub struct Object {
    pub combined_ref_count: AtomicU64,
    pub type_index: i32,
    pub padding: u32,
    pub deleter: Option<unsafe extern "C" fn(*mut c_void, c_int)>,
}

/// Follows the header of a Str object.
#[repr(C)]
pub struct ByteArray {
    pub data: *const u8,
    pub size: u64,
}

#[repr(C)]
pub struct Function {
    pub object: Object,
    pub safe_call: unsafe extern "C" fn(*mut c_void, *const Any, i32, *mut Any) -> c_int,
    pub cpp_call: *mut c_void,
}

#[repr(C)]
pub struct Module {
    _private: [u8; 0],
}

/// `dso_options` up to the last member that is used here; `size` tells libdso where it ends.
#[repr(C)]
pub struct Options {
    pub size: usize,
    pub verify:
        Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_void, usize) -> c_int>,
    pub verify_context: *mut c_void,
}

extern "C" {
    pub fn dso_version() -> *const c_char;
    pub fn dso_last_error() -> *const c_char;
    pub fn dso_last_error_kind() -> *const c_char;
    pub fn dso_set_error(kind: *const c_char, message: *const c_char) -> c_int;
    pub fn dso_load(path: *const c_char, options: *const Options) -> *mut Module;
    pub fn dso_module_retain(module: *mut Module);
    pub fn dso_module_release(module: *mut Module);
    pub fn dso_module_function(module: *mut Module, name: *const c_char) -> *mut Function;
    pub fn dso_module_entry(module: *mut Module) -> *const c_char;
    pub fn dso_module_weight(m: *mut Module, name: *const c_char, tensor: *mut DLTensor) -> c_int;
}

/// `dso_object_release`, which is inline in C: drop one strong reference.
///
/// # Safety
/// The caller owns the reference.
pub unsafe fn release(object: *mut Object) {
    const STRONG: u64 = 1;
    const WEAK: u64 = 1 << 32;
    let before = (*object).combined_ref_count.fetch_sub(STRONG, Ordering::AcqRel);
    if before as u32 != 1 {
        return;
    }
    if let Some(deleter) = (*object).deleter {
        if before == STRONG | WEAK {
            return deleter(object.cast(), 3);
        }
        deleter(object.cast(), 1);
        let before = (*object).combined_ref_count.fetch_sub(WEAK, Ordering::AcqRel);
        if before >> 32 == 1 {
            deleter(object.cast(), 2);
        }
    }
}
