//! ONNX Runtime tensors over our own memory, and the call that runs a model on them.
//!
//! `ort`'s own tensors own their memory or borrow it for a lifetime; lanes keep theirs from batch to batch, where
//! another process or the GPU accesses it, too. So these tensors hold a reference to the memory they view, and nothing
//! is copied.

#![allow(unsafe_code, reason = "ONNX Runtime is a C library")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use cudock_mmap::Mapping;
use cudock_tensor::DType;
use ort::AsPointer;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{RunOptions, Session};
use ort::sys::{OrtApiBase, OrtStatusPtr, OrtTensorTypeAndShapeInfo, OrtValue};
use ort::value::Outlet;

use crate::cuda::DeviceMemory;
use crate::signature::element_type;

/// A result with the error message of the engine.
pub(crate) type Result<T> = std::result::Result<T, String>;

pub(crate) struct OrtTensor {
    value: NonNull<OrtValue>,
    _memory: TensorMemory,
}

/// The memory of a tensor, held to keep it alive.
#[allow(dead_code, reason = "held, not read")]
enum TensorMemory {
    Host(Arc<Mapping>),
    Device(Arc<DeviceMemory>),
    Engine,
}

// SAFETY: a value is used by one thread at a time (nothing here clones it), and the engine ties values to no thread.
unsafe impl Send for OrtTensor {}

impl OrtTensor {
    /// A tensor at the start of host memory.
    pub(crate) fn on_host(memory: Arc<Mapping>, dtype: DType, shape: &[usize]) -> Result<Self> {
        let (address, size) = (memory.address().cast(), memory.size());
        let info = memory_info(AllocationDevice::CPU, 0)?;
        Self::over(&info, address, size, dtype, shape, TensorMemory::Host(memory))
    }

    /// A tensor at the start of device memory.
    pub(crate) fn on_device(
        memory: Arc<DeviceMemory>,
        gpu: u32,
        dtype: DType,
        shape: &[usize],
    ) -> Result<Self> {
        let (address, size) = (memory.address(), memory.size());
        let info = memory_info(AllocationDevice::CUDA, gpu)?;
        Self::over(&info, address, size, dtype, shape, TensorMemory::Device(memory))
    }

    fn over(
        info: &MemoryInfo<'_>,
        address: *mut c_void,
        size: usize,
        dtype: DType,
        shape: &[usize],
        memory: TensorMemory,
    ) -> Result<Self> {
        let bytes = cudock_tensor::elements(shape)
            .zip(dtype.size())
            .and_then(|(elements, size)| elements.checked_mul(size))
            .filter(|bytes| *bytes <= size)
            .ok_or_else(|| format!("{dtype} {shape:?} does not fit into {size} bytes"))?;
        let shape = dimensions(shape)?;
        let mut value = std::ptr::null_mut();
        // SAFETY: the memory is valid for `bytes`, as just checked, and is held for as long as the value lives; the
        // shape's length goes along; the engine writes the value's address into a local.
        let status = unsafe {
            (ort::api().CreateTensorWithDataAsOrtValue)(
                info.ptr(),
                address,
                bytes,
                shape.as_ptr(),
                shape.len(),
                element_type(dtype).into(),
                &raw mut value,
            )
        };
        check(status)?;
        let value = NonNull::new(value).ok_or("the engine returned no tensor")?;
        Ok(Self { value, _memory: memory })
    }

    /// A string tensor from lengths and bytes, in the layout of [`cudock_tensor::Tensor`].
    pub(crate) fn of_strings(shape: &[usize], mut data: &[u8]) -> Result<Self> {
        let count = cudock_tensor::elements(shape).ok_or("the number of strings overflows")?;
        if count > data.len() / 4 {
            return Err(format!("{count} strings do not fit into {} bytes", data.len()));
        }
        let shape = dimensions(shape)?;
        let mut allocator = Allocator::default();
        let mut value = std::ptr::null_mut();
        // SAFETY: the default allocator lives for ever; the shape's length goes along; the address goes into a local.
        let status = unsafe {
            (ort::api().CreateTensorAsOrtValue)(
                allocator.ptr_mut(),
                shape.as_ptr(),
                shape.len(),
                element_type(DType::String).into(),
                &raw mut value,
            )
        };
        check(status)?;
        let value = NonNull::new(value).ok_or("the engine returned no tensor")?;
        let tensor = Self { value, _memory: TensorMemory::Engine };
        for number in 0..count {
            let (string, rest) = data
                .split_first_chunk::<4>()
                .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize))
                .ok_or_else(|| format!("string {number} runs beyond the end"))?;
            data = rest;
            let mut room: *mut c_char = std::ptr::null_mut();
            // SAFETY: the value is a tensor of `count` strings, and `number` is below that. The room the engine gives
            // is as long as requested, and written before anything else is done with the value.
            unsafe {
                check((ort::api().GetResizedStringTensorElementBuffer)(
                    tensor.value.as_ptr(),
                    number,
                    string.len(),
                    &raw mut room,
                ))?;
                if !string.is_empty() {
                    std::ptr::copy_nonoverlapping(string.as_ptr(), room.cast::<u8>(), string.len());
                }
            }
        }
        Ok(tensor)
    }

    pub(crate) fn shape(&self) -> Result<Vec<usize>> {
        let mut info: *mut OrtTensorTypeAndShapeInfo = std::ptr::null_mut();
        let mut rank = 0;
        // SAFETY: the value is alive; the engine writes into locals. The description is released below on every path.
        unsafe {
            check((ort::api().GetTensorTypeAndShape)(self.value.as_ptr(), &raw mut info))?;
            let counted = check((ort::api().GetDimensionsCount)(info, &raw mut rank));
            let mut shape = vec![0_i64; rank];
            let read = counted
                .and_then(|()| check((ort::api().GetDimensions)(info, shape.as_mut_ptr(), shape.len())));
            (ort::api().ReleaseTensorTypeAndShapeInfo)(info);
            read?;
            shape
                .into_iter()
                .map(|size| usize::try_from(size).map_err(|_| format!("invalid dimension {size}")))
                .collect()
        }
    }

    /// The elements of a non-string tensor in host memory.
    pub(crate) fn host_bytes(&self, dtype: DType) -> Result<&[u8]> {
        let size = dtype.size().ok_or("strings have no fixed size")?;
        let bytes = cudock_tensor::elements(&self.shape()?)
            .and_then(|elements| elements.checked_mul(size))
            .ok_or("the number of elements overflows")?;
        if bytes == 0 {
            return Ok(&[]);
        }
        let mut address = std::ptr::null_mut();
        // SAFETY: the value is a tensor, alive for as long as the slice, of the type the signature gives, so that it
        // has `bytes` bytes; values that the engine makes unasked are in host memory.
        unsafe {
            check((ort::api().GetTensorMutableData)(self.value.as_ptr(), &raw mut address))?;
            if address.is_null() {
                return Err("the engine returned a tensor without memory".to_owned());
            }
            Ok(std::slice::from_raw_parts(address.cast_const().cast(), bytes))
        }
    }

    /// The strings of a tensor, as lengths and bytes.
    pub(crate) fn string_bytes(&self) -> Result<Vec<u8>> {
        let count = cudock_tensor::elements(&self.shape()?).ok_or("the number of strings overflows")?;
        let mut length = 0;
        // SAFETY: the value is a tensor of strings (the engine refuses others); the length goes into a local.
        check(unsafe { (ort::api().GetStringTensorDataLength)(self.value.as_ptr(), &raw mut length) })?;
        let (mut text, mut starts) = (vec![0_u8; length], vec![0_usize; count]);
        // SAFETY: the lengths are those of the vectors, which have the sizes that the tensor needs.
        check(unsafe {
            (ort::api().GetStringTensorContent)(
                self.value.as_ptr(),
                text.as_mut_ptr().cast(),
                text.len(),
                starts.as_mut_ptr(),
                starts.len(),
            )
        })?;
        let mut laid_out = Vec::with_capacity(length + 4 * count);
        let ends = starts.iter().skip(1).copied().chain([length]);
        for (start, end) in starts.iter().zip(ends) {
            let string = text.get(*start..end).ok_or("the engine's strings overlap")?;
            let length = u32::try_from(string.len()).map_err(|_| "a string of more than 4 GiB")?;
            laid_out.extend_from_slice(&length.to_le_bytes());
            laid_out.extend_from_slice(string);
        }
        Ok(laid_out)
    }
}

impl Drop for OrtTensor {
    fn drop(&mut self) {
        // SAFETY: the value is ours and released once.
        unsafe { (ort::api().ReleaseValue)(self.value.as_ptr()) };
    }
}

/// The names of a model's inputs and outputs, in signature order.
pub(crate) struct TensorNames {
    inputs: Vec<CString>,
    outputs: Vec<CString>,
}

impl TensorNames {
    pub(crate) fn new(inputs: &[Outlet], outputs: &[Outlet]) -> Result<Self> {
        let name = |outlet: &Outlet| {
            CString::new(outlet.name()).map_err(|_| format!("{:?} has a zero byte", outlet.name()))
        };
        let all = |outlets: &[Outlet]| outlets.iter().map(name).collect::<Result<Vec<CString>>>();
        Ok(Self { inputs: all(inputs)?, outputs: all(outputs)? })
    }
}

/// Runs a model. Outputs with a tensor are written to it; the others are allocated by the engine and returned at the
/// same index.
pub(crate) fn run(
    session: &mut Session,
    options: &RunOptions,
    names: &TensorNames,
    inputs: &[OrtTensor],
    outputs: &[Option<OrtTensor>],
) -> Result<Vec<Option<OrtTensor>>> {
    if inputs.len() != names.inputs.len() || outputs.len() != names.outputs.len() {
        return Err("the number of tensors does not match the model".to_owned());
    }
    let input_names: Vec<*const c_char> = names.inputs.iter().map(|name| name.as_ptr()).collect();
    let output_names: Vec<*const c_char> = names.outputs.iter().map(|name| name.as_ptr()).collect();
    let input_values: Vec<*const OrtValue> =
        inputs.iter().map(|value| value.value.as_ptr().cast_const()).collect();
    let mut output_values: Vec<*mut OrtValue> = outputs
        .iter()
        .map(|value| value.as_ref().map_or(std::ptr::null_mut(), |value| value.value.as_ptr()))
        .collect();
    // SAFETY: session, options, names and values are alive; the lengths are those of the arrays.
    // `&mut Session` excludes other runs of it, and the values' memory is not accessed elsewhere
    // until this returns (`Runner` holds all).
    let status = unsafe {
        (ort::api().Run)(
            session.ptr().cast_mut(),
            options.ptr(),
            input_names.as_ptr(),
            input_values.as_ptr(),
            input_values.len(),
            output_names.as_ptr(),
            output_values.len(),
            output_values.as_mut_ptr(),
        )
    };
    let allocated = output_values
        .into_iter()
        .zip(outputs)
        .map(|(value, bound)| match bound {
            Some(_) => None,
            None => NonNull::new(value).map(|value| OrtTensor { value, _memory: TensorMemory::Engine }),
        })
        .collect();
    check(status)?;
    Ok(allocated)
}

/// The version of the engine's library, such as "1.31.1".
pub(crate) fn library_version(library: &Path) -> Option<String> {
    // SAFETY: the library is open already, `ort` uses it; opening it again only counts up. The function is declared as
    // the engine's header has it, and its text lives as long as the library.
    unsafe {
        let library = libloading::Library::new(library).ok()?;
        let base = library.get::<unsafe extern "C" fn() -> *const OrtApiBase>(b"OrtGetApiBase\0").ok()?();
        let version = ((*NonNull::new(base.cast_mut())?.as_ptr()).GetVersionString)();
        NonNull::new(version.cast_mut())
            .map(|text| CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned())
    }
}

fn memory_info(device: AllocationDevice<'_>, number: u32) -> Result<MemoryInfo<'static>> {
    let number = i32::try_from(number).map_err(|_| format!("invalid GPU index {number}"))?;
    MemoryInfo::new(device, number, AllocatorType::Device, MemoryType::Default)
        .map_err(|error| error.to_string())
}

fn dimensions(shape: &[usize]) -> Result<Vec<i64>> {
    shape.iter().map(|&size| i64::try_from(size).map_err(|_| format!("invalid dimension {size}"))).collect()
}

fn check(status: OrtStatusPtr) -> Result<()> {
    // SAFETY: the status came from a call of the engine and is passed on once.
    unsafe { ort::Error::result_from_status(status) }.map_err(|error| error.to_string())
}
