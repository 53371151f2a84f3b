//! A safe wrapper of the CUDA driver API: the only module with `unsafe`.
//!
//! Every function returns a [`CudaError`] if the driver call fails. Resources are released on drop, so that nothing leaks
//! after an error; explicit release reports whether it succeeded.

#![allow(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr;

use libloading::Library;

use crate::kernel;

/// An error code of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CudaError(pub(crate) c_int);

const SUCCESS: c_int = 0;
const INVALID_VALUE: CudaError = CudaError(1);
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const ELEMENT_SIZE: usize = size_of::<u32>();

type CudaStatus = c_int;
type Handle = *mut c_void;
type Address = u64;

#[derive(Debug)]
pub(crate) enum LibraryError {
    /// The loader failed, with this message.
    Loader(String),
    MissingSymbol(&'static str),
}

macro_rules! functions {
    (
        needed { $($name:ident = $($symbol:literal)|+ ($($argument:ty),*);)* }
        optional { $($optional:ident = $optional_symbol:literal ($($optional_argument:ty),*);)* }
    ) => {
        /// A driver library, open until the process ends.
        pub(crate) struct CudaDriver {
            $($name: unsafe extern "C" fn($($argument),*) -> CudaStatus,)*
            $($optional: Option<unsafe extern "C" fn($($optional_argument),*) -> CudaStatus>,)*
        }

        impl CudaDriver {
            /// Opens a library by path, or by name to let the loader search for it.
            pub(crate) fn open(library: &OsStr) -> Result<Self, LibraryError> {
                let library = load(library).map_err(LibraryError::Loader)?;
                Ok(Self {
                    $($name: {
                        type Function = unsafe extern "C" fn($($argument),*) -> CudaStatus;
                        // SAFETY: each symbol has the signature of cuda.h, for all versions listed here.
                        unsafe { function::<Function>(&library, &[$($symbol),+]) }
                            .ok_or(LibraryError::MissingSymbol(first(&[$($symbol),+])))?
                    },)*
                    $($optional: {
                        type Function = unsafe extern "C" fn($($optional_argument),*) -> CudaStatus;
                        // SAFETY: as above.
                        unsafe { function::<Function>(&library, &[$optional_symbol]) }
                    },)*
                })
            }
        }
    };
}

functions! {
    needed {
        init = "cuInit" (c_uint);
        driver_version = "cuDriverGetVersion" (*mut c_int);
        device_count = "cuDeviceGetCount" (*mut c_int);
        device_get = "cuDeviceGet" (*mut c_int, c_int);
        device_name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
        device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
        device_memory = "cuDeviceTotalMem_v2" (*mut usize, c_int);
        device_bus = "cuDeviceGetPCIBusId" (*mut c_char, c_int, c_int);
        retain = "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
        release = "cuDevicePrimaryCtxRelease_v2" | "cuDevicePrimaryCtxRelease" (c_int);
        set_current = "cuCtxSetCurrent" (Handle);
        synchronize = "cuCtxSynchronize" ();
        memory_info = "cuMemGetInfo_v2" (*mut usize, *mut usize);
        allocate = "cuMemAlloc_v2" (*mut Address, usize);
        free = "cuMemFree_v2" (Address);
        to_device = "cuMemcpyHtoD_v2" (Address, *const c_void, usize);
        to_host = "cuMemcpyDtoH_v2" (*mut c_void, Address, usize);
        module_load = "cuModuleLoadData" (*mut Handle, *const c_void);
        module_unload = "cuModuleUnload" (Handle);
        module_function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
        launch = "cuLaunchKernel" (
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
        );
    }
    optional {
        uuid_of_instance = "cuDeviceGetUuid_v2" (*mut [u8; 16], c_int);
        uuid_of_gpu = "cuDeviceGetUuid" (*mut [u8; 16], c_int);
        error_name = "cuGetErrorName" (c_int, *mut *const c_char);
        error_string = "cuGetErrorString" (c_int, *mut *const c_char);
    }
}

/// Loads a library and never unloads it: the driver has threads and exit handlers in it, and this process ends soon. A
/// loaded library is later found by its SONAME, without a search.
pub(crate) fn preload(library: &OsStr) -> bool {
    load(library).is_ok()
}

fn load(library: &OsStr) -> Result<ManuallyDrop<Library>, String> {
    // SAFETY: loading runs the initializers of the library. They are NVIDIA's or the C library's, or those of an image, whose
    // code is about to run in this container anyway; callers are documented to drop privileges first.
    unsafe { Library::new(library) }.map(ManuallyDrop::new).map_err(|error| error.to_string())
}

/// The first symbol that the library has.
///
/// # Safety
///
/// `F` must be a function pointer with the signature of all these symbols, and the library must never be closed.
unsafe fn function<F: Copy>(library: &Library, symbols: &[&str]) -> Option<F> {
    // SAFETY: guaranteed by the caller. The pointer outlives the borrow because the library stays open.
    symbols.iter().find_map(|symbol| unsafe { library.get::<F>(*symbol) }.ok().map(|found| *found))
}

const fn first(symbols: &[&'static str]) -> &'static str {
    match symbols {
        [first, ..] => first,
        [] => "",
    }
}

fn check(status: CudaStatus) -> Result<(), CudaError> {
    if status == SUCCESS { Ok(()) } else { Err(CudaError(status)) }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceHandle(c_int);

impl CudaDriver {
    pub(crate) fn init(&self) -> Result<(), CudaError> {
        // SAFETY: zero is the only valid flag.
        check(unsafe { (self.init)(0) })
    }

    /// 13000 for CUDA 13.0.
    pub(crate) fn version(&self) -> Result<i32, CudaError> {
        // SAFETY: the driver writes one number.
        output(0, |version| unsafe { (self.driver_version)(version) })
    }

    pub(crate) fn count(&self) -> Result<i32, CudaError> {
        // SAFETY: as above.
        output(0, |count| unsafe { (self.device_count)(count) })
    }

    pub(crate) fn device(&self, ordinal: u32) -> Result<DeviceHandle, CudaError> {
        let ordinal = c_int::try_from(ordinal).map_err(|_| INVALID_VALUE)?;
        // SAFETY: as above.
        output(0, |device| unsafe { (self.device_get)(device, ordinal) }).map(DeviceHandle)
    }

    pub(crate) fn name(&self, device: DeviceHandle) -> Result<String, CudaError> {
        // SAFETY: the driver writes at most `size` bytes, which is the size of the buffer.
        text(|buffer, size| unsafe { (self.device_name)(buffer, size, device.0) })
    }

    /// The PCI address, such as `0000:1B:00.0`.
    pub(crate) fn bus(&self, device: DeviceHandle) -> Result<String, CudaError> {
        // SAFETY: as above.
        text(|buffer, size| unsafe { (self.device_bus)(buffer, size, device.0) })
    }

    /// The UUID of the device, or of the MIG instance. None with old drivers.
    pub(crate) fn uuid_of_instance(&self, device: DeviceHandle) -> Result<Option<[u8; 16]>, CudaError> {
        uuid(self.uuid_of_instance, device)
    }

    /// The UUID of the whole GPU. None with old drivers.
    pub(crate) fn uuid_of_gpu(&self, device: DeviceHandle) -> Result<Option<[u8; 16]>, CudaError> {
        uuid(self.uuid_of_gpu, device)
    }

    /// Major and minor.
    pub(crate) fn capability(&self, device: DeviceHandle) -> Result<(i32, i32), CudaError> {
        // SAFETY: the driver writes one number.
        let get = |which| output(0, |number| unsafe { (self.device_attribute)(number, which, device.0) });
        Ok((get(CAPABILITY_MAJOR)?, get(CAPABILITY_MINOR)?))
    }

    pub(crate) fn total_memory(&self, device: DeviceHandle) -> Result<u64, CudaError> {
        // SAFETY: as above.
        output(0, |bytes| unsafe { (self.device_memory)(bytes, device.0) }).map(|bytes| bytes as u64)
    }

    /// Retains the primary context of the device, which frameworks use. It is not current yet.
    pub(crate) fn retain(&self, device: DeviceHandle) -> Result<Context<'_>, CudaError> {
        // SAFETY: the driver writes one handle.
        let context = output(ptr::null_mut(), |context| unsafe { (self.retain)(context, device.0) })?;
        Ok(Context { driver: self, device, context })
    }

    /// The name of an error, such as `CUDA_ERROR_NO_DEVICE`.
    pub(crate) fn error_name(&self, code: CudaError) -> Option<String> {
        static_text(self.error_name, code)
    }

    /// The description of an error, such as "no CUDA-capable device is detected".
    pub(crate) fn error_string(&self, code: CudaError) -> Option<String> {
        static_text(self.error_string, code)
    }
}

/// The value that a driver call writes to its argument.
fn output<T: Copy>(mut value: T, call: impl FnOnce(*mut T) -> CudaStatus) -> Result<T, CudaError> {
    check(call(&raw mut value))?;
    Ok(value)
}

fn text(fill: impl FnOnce(*mut c_char, c_int) -> CudaStatus) -> Result<String, CudaError> {
    let mut buffer = [0_u8; 256];
    check(fill(buffer.as_mut_ptr().cast(), 255))?;
    let text = CStr::from_bytes_until_nul(&buffer).map_err(|_| INVALID_VALUE)?;
    Ok(text.to_string_lossy().into_owned())
}

fn uuid(
    function: Option<unsafe extern "C" fn(*mut [u8; 16], c_int) -> CudaStatus>,
    device: DeviceHandle,
) -> Result<Option<[u8; 16]>, CudaError> {
    // SAFETY: the driver writes sixteen bytes.
    function.map(|function| output([0; 16], |uuid| unsafe { function(uuid, device.0) })).transpose()
}

fn static_text(
    function: Option<unsafe extern "C" fn(c_int, *mut *const c_char) -> CudaStatus>,
    code: CudaError,
) -> Option<String> {
    let function = function?;
    // SAFETY: the driver writes the address of a static string, or null.
    let text = output(ptr::null(), |text| unsafe { function(code.0, text) }).ok()?;
    // SAFETY: if not null, the string is NUL-terminated and lives as long as the library, which is never closed.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// The primary context of a device, retained until dropped.
pub(crate) struct Context<'d> {
    driver: &'d CudaDriver,
    device: DeviceHandle,
    context: Handle,
}

impl Context<'_> {
    /// Makes it the current context of this thread, which all other calls require.
    pub(crate) fn enter(&self) -> Result<(), CudaError> {
        // SAFETY: the context is retained, and released only when `self` is dropped.
        check(unsafe { (self.driver.set_current)(self.context) })
    }

    /// Free memory in bytes.
    pub(crate) fn free_memory(&self) -> Result<u64, CudaError> {
        let mut total = 0;
        // SAFETY: the driver writes one number to each of two variables.
        let free = output(0, |free| unsafe { (self.driver.memory_info)(free, &raw mut total) })?;
        Ok(free as u64)
    }

    /// Allocates memory for `len` numbers.
    pub(crate) fn allocate(&self, len: usize) -> Result<Memory<'_>, CudaError> {
        let bytes = len.checked_mul(ELEMENT_SIZE).ok_or(INVALID_VALUE)?;
        // SAFETY: the driver writes one address.
        let address = output(0, |address| unsafe { (self.driver.allocate)(address, bytes) })?;
        Ok(Memory { driver: self.driver, address, len, _context: self })
    }

    /// Lets the driver compile [`kernel::PTX`].
    pub(crate) fn load_kernel(&self) -> Result<Module<'_>, CudaError> {
        let text = kernel::PTX.as_ptr().cast();
        // SAFETY: the text is NUL-terminated; the driver writes one handle.
        let module = output(ptr::null_mut(), |module| unsafe { (self.driver.module_load)(module, text) })?;
        Ok(Module { driver: self.driver, module, _context: self })
    }

    /// Waits for all pending work. Errors of a kernel are reported here.
    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: no arguments; waits for the current context of this thread.
        check(unsafe { (self.driver.synchronize)() })
    }

    pub(crate) fn release(self) -> Result<(), CudaError> {
        ManuallyDrop::new(self).release_raw()
    }

    fn release_raw(&self) -> Result<(), CudaError> {
        // SAFETY: called once, by `release` or `drop`; afterwards this thread has no current context.
        unsafe {
            (self.driver.set_current)(ptr::null_mut());
            check((self.driver.release)(self.device.0))
        }
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        self.release_raw().ok();
    }
}

/// An array of numbers on the device.
pub(crate) struct Memory<'c> {
    driver: &'c CudaDriver,
    address: Address,
    len: usize,
    _context: &'c Context<'c>,
}

impl Memory<'_> {
    pub(crate) fn copy_in(&self, from: &[u32]) -> Result<(), CudaError> {
        if from.len() != self.len {
            return Err(INVALID_VALUE);
        }
        // SAFETY: both arrays have this size, as just checked, and host memory is no longer accessed after the call returns.
        check(unsafe { (self.driver.to_device)(self.address, from.as_ptr().cast(), size_of_val(from)) })
    }

    pub(crate) fn copy_out(&self, to: &mut [u32]) -> Result<(), CudaError> {
        if to.len() != self.len {
            return Err(INVALID_VALUE);
        }
        let bytes = size_of_val(to);
        // SAFETY: as above; all bit patterns are valid numbers.
        check(unsafe { (self.driver.to_host)(to.as_mut_ptr().cast(), self.address, bytes) })
    }

    pub(crate) fn free(self) -> Result<(), CudaError> {
        ManuallyDrop::new(self).release_raw()
    }

    fn release_raw(&self) -> Result<(), CudaError> {
        // SAFETY: the address was allocated by the driver; called once, by `free` or `drop`.
        check(unsafe { (self.driver.free)(self.address) })
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        self.release_raw().ok();
    }
}

/// The test kernel, compiled for a device.
pub(crate) struct Module<'c> {
    driver: &'c CudaDriver,
    module: Handle,
    _context: &'c Context<'c>,
}

/// The kernel function of a [`Module`].
pub(crate) struct Kernel<'m> {
    driver: &'m CudaDriver,
    function: Handle,
    _module: &'m Module<'m>,
}

impl Module<'_> {
    pub(crate) fn kernel(&self) -> Result<Kernel<'_>, CudaError> {
        let find = self.driver.module_function;
        // SAFETY: the module is loaded, the name is NUL-terminated, the driver writes one handle.
        let function = output(ptr::null_mut(), |to| unsafe { find(to, self.module, kernel::NAME.as_ptr()) })?;
        Ok(Kernel { driver: self.driver, function, _module: self })
    }

    pub(crate) fn unload(self) -> Result<(), CudaError> {
        ManuallyDrop::new(self).release_raw()
    }

    fn release_raw(&self) -> Result<(), CudaError> {
        // SAFETY: the handle came from the driver; called once, by `unload` or `drop`.
        check(unsafe { (self.driver.module_unload)(self.module) })
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        self.release_raw().ok();
    }
}

impl Kernel<'_> {
    /// Launches `out[i] = factor * in[i] + i` for all elements; both arrays must have the same size.
    pub(crate) fn launch(
        &self,
        out: &Memory<'_>,
        input: &Memory<'_>,
        mut factor: u32,
    ) -> Result<(), CudaError> {
        if out.len != input.len {
            return Err(INVALID_VALUE);
        }
        let mut count = u32::try_from(out.len).map_err(|_| INVALID_VALUE)?;
        let (mut out, mut input) = (out.address, input.address);
        let mut arguments: [*mut c_void; 4] = [
            (&raw mut out).cast(),
            (&raw mut input).cast(),
            (&raw mut factor).cast(),
            (&raw mut count).cast(),
        ];
        let blocks = count.div_ceil(kernel::BLOCK);
        // SAFETY: the kernel in `PTX` takes these four arguments with these sizes, and the driver copies them before it
        // returns. The kernel accesses only the first `count` elements, and both arrays have that many.
        check(unsafe {
            (self.driver.launch)(
                self.function,
                blocks,
                1,
                1,
                kernel::BLOCK,
                1,
                1,
                0,
                ptr::null_mut(),
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }
}
