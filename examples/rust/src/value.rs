//! Arguments and results of calls.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::slice;

use crate::ffi::{self, Any, ByteArray, DLTensor, Object, Payload};
use crate::tensor::{elements, Element, Tensor};

pub(crate) fn none() -> Any {
    Any { type_index: ffi::NONE, small_len: 0, payload: Payload { int: 0 } }
}

/// An argument, which borrows what it is made of.
pub struct Arg<'a> {
    any: Any,
    _borrowed: PhantomData<&'a ()>,
}

impl<'a> Arg<'a> {
    fn new(type_index: i32, payload: Payload) -> Arg<'a> {
        Arg { any: Any { type_index, payload, ..none() }, _borrowed: PhantomData }
    }

    pub(crate) fn any(&self) -> Any {
        self.any
    }
}

impl From<i64> for Arg<'_> {
    fn from(int: i64) -> Self {
        Arg::new(ffi::INT, Payload { int })
    }
}

impl From<bool> for Arg<'_> {
    fn from(truth: bool) -> Self {
        Arg::new(ffi::BOOL, Payload { int: truth.into() })
    }
}

impl From<f64> for Arg<'_> {
    fn from(float: f64) -> Self {
        Arg::new(ffi::FLOAT, Payload { float })
    }
}

impl<'a> From<&'a CStr> for Arg<'a> {
    fn from(text: &'a CStr) -> Self {
        Arg::new(ffi::RAW_STR, Payload { pointer: text.as_ptr() as *mut _ })
    }
}

impl<'a> From<&'a mut Tensor<'_>> for Arg<'a> {
    fn from(tensor: &'a mut Tensor<'_>) -> Self {
        let pointer: *mut DLTensor = &mut tensor.tensor;
        Arg::new(ffi::DLTENSOR_PTR, Payload { pointer: pointer.cast() })
    }
}

/// A result. None of its accessors converts: they return None if the value has another type.
pub struct Value(pub(crate) Any);

impl Value {
    pub fn as_int(&self) -> Option<i64> {
        let is_int = matches!(self.0.type_index, ffi::INT | ffi::BOOL);
        is_int.then(|| unsafe { self.0.payload.int })
    }

    pub fn as_float(&self) -> Option<f64> {
        (self.0.type_index == ffi::FLOAT).then(|| unsafe { self.0.payload.float })
    }

    pub fn as_bytes(&self) -> Option<&[u8]> {
        unsafe {
            match self.0.type_index {
                ffi::SMALL_STR => Some(&self.0.payload.bytes[..self.0.small_len as usize]),
                ffi::STR => {
                    let array =
                        &*self.0.payload.pointer.cast::<Object>().add(1).cast::<ByteArray>();
                    Some(slice::from_raw_parts(array.data, array.size as usize))
                }
                _ => None,
            }
        }
    }

    /// The elements of a tensor.
    pub fn as_elements<T: Element>(&self) -> Option<&[T]> {
        (self.0.type_index == ffi::TENSOR).then_some(())?;
        unsafe { elements(&*self.0.payload.pointer.cast::<Object>().add(1).cast::<DLTensor>()) }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        unsafe {
            if self.0.type_index >= ffi::OBJECT && !self.0.payload.pointer.is_null() {
                ffi::release(self.0.payload.pointer.cast());
            }
        }
    }
}
