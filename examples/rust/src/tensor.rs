//! Tensors over slices, and weights.

use std::marker::PhantomData;
use std::{ptr, slice};

use crate::ffi::{DLDataType, DLDevice, DLTensor};
use crate::Error;

const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };

/// A type of elements.
///
/// # Safety
/// DTYPE describes the type: its values have all bit patterns of that size.
pub unsafe trait Element: Copy {
    const DTYPE: DLDataType;
}

macro_rules! elements {
    ($($name:ty: $code:expr, $bits:expr;)*) => {$(
        unsafe impl Element for $name {
            const DTYPE: DLDataType = DLDataType { code: $code, bits: $bits, lanes: 1 };
        }
    )*};
}

elements! {
    i8: 0, 8; i16: 0, 16; i32: 0, 32; i64: 0, 64;
    u8: 1, 8; u16: 1, 16; u32: 1, 32; u64: 1, 64;
    f32: 2, 32; f64: 2, 64;
}

pub(crate) fn empty() -> DLTensor {
    DLTensor {
        data: ptr::null_mut(),
        device: CPU,
        ndim: 0,
        dtype: DLDataType { code: 0, bits: 0, lanes: 1 },
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    }
}

/// The elements of a tensor, or None if they have another type or are not contiguous on the CPU.
///
/// # Safety
/// The tensor's memory outlives the slice.
pub(crate) unsafe fn elements<'a, T: Element>(tensor: &DLTensor) -> Option<&'a [T]> {
    if tensor.dtype != T::DTYPE || tensor.device.device_type != CPU.device_type {
        return None;
    }
    let mut count = 1;
    for i in (0..tensor.ndim as usize).rev() {
        let extent = *tensor.shape.add(i);
        if !tensor.strides.is_null() && extent > 1 && *tensor.strides.add(i) != count {
            return None;
        }
        count *= extent;
    }
    if count == 0 {
        return Some(&[]);
    }
    let data = tensor.data.cast::<u8>().add(tensor.byte_offset as usize);
    Some(slice::from_raw_parts(data.cast(), count as usize))
}

/// A tensor over the elements of a slice, which functions may change.
pub struct Tensor<'a> {
    pub(crate) tensor: DLTensor,
    _shape: Vec<i64>,
    _elements: PhantomData<&'a mut ()>,
}

impl<'a> Tensor<'a> {
    pub fn new<T: Element>(elements: &'a mut [T], shape: &[i64]) -> Result<Tensor<'a>, Error> {
        if shape.iter().product::<i64>() != elements.len() as i64 {
            let message = format!("shape {shape:?}: expected {} elements", elements.len());
            return Err(Error::new("ValueError", &message));
        }
        let mut shape = shape.to_vec();
        let tensor = DLTensor {
            data: elements.as_mut_ptr().cast(),
            ndim: shape.len() as i32,
            dtype: T::DTYPE,
            shape: shape.as_mut_ptr(),
            ..empty()
        };
        Ok(Tensor { tensor, _shape: shape, _elements: PhantomData })
    }
}

/// A named tensor of a module: mapped, read-only.
pub struct Weight<'a> {
    tensor: DLTensor,
    _module: PhantomData<&'a ()>,
}

impl<'a> Weight<'a> {
    pub(crate) fn new(tensor: DLTensor) -> Weight<'a> {
        Weight { tensor, _module: PhantomData }
    }

    pub fn shape(&self) -> &'a [i64] {
        match self.tensor.ndim {
            0 => &[],
            ndim => unsafe { slice::from_raw_parts(self.tensor.shape, ndim as usize) },
        }
    }

    pub fn elements<T: Element>(&self) -> Option<&'a [T]> {
        unsafe { elements(&self.tensor) }
    }
}
