//! The driver's C interface, made safe: the one module with `unsafe`.
//!
//! Every function answers a [`Code`] where the driver refuses. What is taken from the driver is given back when its
//! owner is dropped, so that an error on the way leaves nothing behind; giving back by name tells whether it worked.

#![allow(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr;

use libloading::Library;

use crate::kernel;

/// What the driver answered instead of success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

const SUCCESS: c_int = 0;
const INVALID_VALUE: Code = Code(1);
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const WORD: usize = size_of::<u32>();

type Status = c_int;
type Handle = *mut c_void;
type Address = u64;

/// Why a library is not a driver.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The loader's words.
    Loader(String),
    /// A function that is not in it.
    Lacks(&'static str),
}

macro_rules! functions {
    (
        needed { $($name:ident = $($symbol:literal)|+ ($($argument:ty),*);)* }
        optional { $($optional:ident = $optional_symbol:literal ($($optional_argument:ty),*);)* }
    ) => {
        /// A driver's library, open until the process ends.
        pub(crate) struct Driver {
            $($name: unsafe extern "C" fn($($argument),*) -> Status,)*
            $($optional: Option<unsafe extern "C" fn($($optional_argument),*) -> Status>,)*
        }

        impl Driver {
            /// Opens a library by its path, or by its name where the loader is to search for it.
            pub(crate) fn open(library: &OsStr) -> Result<Self, OpenError> {
                let library = load(library).map_err(OpenError::Loader)?;
                Ok(Self {
                    $($name: {
                        type Function = unsafe extern "C" fn($($argument),*) -> Status;
                        // SAFETY: each symbol is declared as cuda.h has it, for all of its versions named here.
                        unsafe { function::<Function>(&library, &[$($symbol),+]) }
                            .ok_or(OpenError::Lacks(first(&[$($symbol),+])))?
                    },)*
                    $($optional: {
                        type Function = unsafe extern "C" fn($($optional_argument),*) -> Status;
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

/// Loads a library and keeps it, whatever comes: the driver has threads and exit handlers in it, and the process that
/// asks ends soon. A library that is loaded is found by its SONAME from then on, without a search.
pub(crate) fn keep_loaded(library: &OsStr) -> bool {
    load(library).is_ok()
}

fn load(library: &OsStr) -> Result<ManuallyDrop<Library>, String> {
    // SAFETY: loading runs the library's initialisers. They are NVIDIA's or the C library's, or those of an image,
    // whose code is about to run in this container anyway; the crate's documentation asks callers to be confined.
    unsafe { Library::new(library) }.map(ManuallyDrop::new).map_err(|error| error.to_string())
}

/// The first of the symbols that the library has.
///
/// # Safety
///
/// `F` is a function pointer of the type that all of the symbols have, and the library is never closed.
unsafe fn function<F: Copy>(library: &Library, symbols: &[&str]) -> Option<F> {
    // SAFETY: the caller's word. The pointer outlives the borrow because the library stays open.
    symbols.iter().find_map(|symbol| unsafe { library.get::<F>(*symbol) }.ok().map(|found| *found))
}

const fn first(symbols: &[&'static str]) -> &'static str {
    match symbols {
        [first, ..] => first,
        [] => "",
    }
}

fn check(status: Status) -> Result<(), Code> {
    if status == SUCCESS { Ok(()) } else { Err(Code(status)) }
}

/// The driver's handle of a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceHandle(c_int);

impl Driver {
    pub(crate) fn init(&self) -> Result<(), Code> {
        // SAFETY: zero is the only flag there is.
        check(unsafe { (self.init)(0) })
    }

    /// 13000 for CUDA 13.0.
    pub(crate) fn version(&self) -> Result<i32, Code> {
        let mut version = 0;
        // SAFETY: the driver writes one number into a local.
        check(unsafe { (self.driver_version)(&raw mut version) })?;
        Ok(version)
    }

    pub(crate) fn count(&self) -> Result<i32, Code> {
        let mut count = 0;
        // SAFETY: as above.
        check(unsafe { (self.device_count)(&raw mut count) })?;
        Ok(count)
    }

    pub(crate) fn device(&self, ordinal: u32) -> Result<DeviceHandle, Code> {
        let ordinal = c_int::try_from(ordinal).map_err(|_| INVALID_VALUE)?;
        let mut device = 0;
        // SAFETY: as above.
        check(unsafe { (self.device_get)(&raw mut device, ordinal) })?;
        Ok(DeviceHandle(device))
    }

    pub(crate) fn name(&self, device: DeviceHandle) -> Result<String, Code> {
        text(|buffer, size| {
            // SAFETY: the driver writes at most `size` bytes, which `text` has.
            unsafe { (self.device_name)(buffer, size, device.0) }
        })
    }

    /// Such as `0000:1B:00.0`.
    pub(crate) fn bus(&self, device: DeviceHandle) -> Result<String, Code> {
        text(|buffer, size| {
            // SAFETY: as above.
            unsafe { (self.device_bus)(buffer, size, device.0) }
        })
    }

    /// The UUID of what the process may use, which is a slice where the GPU is cut by MIG. None from old drivers.
    pub(crate) fn uuid_of_instance(&self, device: DeviceHandle) -> Result<Option<[u8; 16]>, Code> {
        uuid(self.uuid_of_instance, device)
    }

    /// The UUID of the whole GPU. None from old drivers.
    pub(crate) fn uuid_of_gpu(&self, device: DeviceHandle) -> Result<Option<[u8; 16]>, Code> {
        uuid(self.uuid_of_gpu, device)
    }

    /// Major and minor.
    pub(crate) fn capability(&self, device: DeviceHandle) -> Result<(i32, i32), Code> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the driver writes one number into a local each time.
        unsafe {
            check((self.device_attribute)(&raw mut major, CAPABILITY_MAJOR, device.0))?;
            check((self.device_attribute)(&raw mut minor, CAPABILITY_MINOR, device.0))?;
        }
        Ok((major, minor))
    }

    pub(crate) fn total_memory(&self, device: DeviceHandle) -> Result<u64, Code> {
        let mut bytes = 0;
        // SAFETY: the driver writes one number into a local.
        check(unsafe { (self.device_memory)(&raw mut bytes, device.0) })?;
        Ok(bytes as u64)
    }

    /// The device's primary context, the one that frameworks use. It is not entered yet.
    pub(crate) fn retain(&self, device: DeviceHandle) -> Result<Context<'_>, Code> {
        let mut context = ptr::null_mut();
        // SAFETY: the driver writes one handle into a local.
        check(unsafe { (self.retain)(&raw mut context, device.0) })?;
        Ok(Context { driver: self, device, context })
    }

    /// Such as `CUDA_ERROR_NO_DEVICE`.
    pub(crate) fn error_name(&self, code: Code) -> Option<String> {
        words(self.error_name, code)
    }

    /// Such as "no CUDA-capable device is detected".
    pub(crate) fn error_string(&self, code: Code) -> Option<String> {
        words(self.error_string, code)
    }
}

fn text(fill: impl FnOnce(*mut c_char, c_int) -> Status) -> Result<String, Code> {
    let mut buffer = [0_u8; 256];
    check(fill(buffer.as_mut_ptr().cast(), 255))?;
    let text = CStr::from_bytes_until_nul(&buffer).map_err(|_| INVALID_VALUE)?;
    Ok(text.to_string_lossy().into_owned())
}

fn uuid(
    function: Option<unsafe extern "C" fn(*mut [u8; 16], c_int) -> Status>,
    device: DeviceHandle,
) -> Result<Option<[u8; 16]>, Code> {
    let Some(function) = function else { return Ok(None) };
    let mut uuid = [0; 16];
    // SAFETY: the driver writes sixteen bytes into a local.
    check(unsafe { function(&raw mut uuid, device.0) })?;
    Ok(Some(uuid))
}

fn words(
    function: Option<unsafe extern "C" fn(c_int, *mut *const c_char) -> Status>,
    code: Code,
) -> Option<String> {
    let mut text: *const c_char = ptr::null();
    // SAFETY: the driver writes the address of a text of its own, or null.
    check(unsafe { function?(code.0, &raw mut text) }).ok()?;
    // SAFETY: a text that is not null ends with a zero byte and lives as long as the library, which is for ever.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A device's primary context, held until it is released.
pub(crate) struct Context<'d> {
    driver: &'d Driver,
    device: DeviceHandle,
    context: Handle,
}

impl Context<'_> {
    /// Makes it the context of this thread, which all that follows relies on.
    pub(crate) fn enter(&self) -> Result<(), Code> {
        // SAFETY: the context was retained and is released only when `self` goes.
        check(unsafe { (self.driver.set_current)(self.context) })
    }

    /// Memory in bytes that nobody uses.
    pub(crate) fn free_memory(&self) -> Result<u64, Code> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver writes one number into each of two locals.
        check(unsafe { (self.driver.memory_info)(&raw mut free, &raw mut total) })?;
        Ok(free as u64)
    }

    /// Memory for so many numbers.
    pub(crate) fn allocate(&self, words: usize) -> Result<Memory<'_>, Code> {
        let bytes = words.checked_mul(WORD).ok_or(INVALID_VALUE)?;
        let mut address = 0;
        // SAFETY: the driver writes one address into a local.
        check(unsafe { (self.driver.allocate)(&raw mut address, bytes) })?;
        Ok(Memory { driver: self.driver, address, words, _context: self })
    }

    /// Has the driver compile [`kernel::PTX`].
    pub(crate) fn load_kernel(&self) -> Result<Module<'_>, Code> {
        let mut module = ptr::null_mut();
        // SAFETY: the text ends with a zero byte; the driver writes one handle into a local.
        check(unsafe { (self.driver.module_load)(&raw mut module, kernel::PTX.as_ptr().cast()) })?;
        Ok(Module { driver: self.driver, module, _context: self })
    }

    /// Waits until all that was started is done. Errors of a kernel come out here.
    pub(crate) fn synchronize(&self) -> Result<(), Code> {
        // SAFETY: takes nothing, and waits for the context of this thread.
        check(unsafe { (self.driver.synchronize)() })
    }

    /// Gives the context back.
    pub(crate) fn release(self) -> Result<(), Code> {
        ManuallyDrop::new(self).give_back()
    }

    fn give_back(&self) -> Result<(), Code> {
        // SAFETY: called once, by `release` or by `drop`; no context is left to this thread that might be gone.
        unsafe {
            (self.driver.set_current)(ptr::null_mut());
            check((self.driver.release)(self.device.0))
        }
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        self.give_back().ok();
    }
}

/// Numbers on the device.
pub(crate) struct Memory<'c> {
    driver: &'c Driver,
    address: Address,
    words: usize,
    _context: &'c Context<'c>,
}

impl Memory<'_> {
    pub(crate) fn copy_in(&self, from: &[u32]) -> Result<(), Code> {
        if from.len() != self.words {
            return Err(INVALID_VALUE);
        }
        // SAFETY: both sides have this many bytes, as just checked, and the copy is over when the call returns, as far
        // as host memory is concerned.
        check(unsafe { (self.driver.to_device)(self.address, from.as_ptr().cast(), size_of_val(from)) })
    }

    pub(crate) fn copy_out(&self, to: &mut [u32]) -> Result<(), Code> {
        if to.len() != self.words {
            return Err(INVALID_VALUE);
        }
        let bytes = size_of_val(to);
        // SAFETY: as above; any bytes are numbers.
        check(unsafe { (self.driver.to_host)(to.as_mut_ptr().cast(), self.address, bytes) })
    }

    /// Gives the memory back.
    pub(crate) fn free(self) -> Result<(), Code> {
        ManuallyDrop::new(self).give_back()
    }

    fn give_back(&self) -> Result<(), Code> {
        // SAFETY: the address came from the driver; called once, by `free` or by `drop`.
        check(unsafe { (self.driver.free)(self.address) })
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        self.give_back().ok();
    }
}

/// Our kernel, compiled for a device.
pub(crate) struct Module<'c> {
    driver: &'c Driver,
    module: Handle,
    _context: &'c Context<'c>,
}

/// The kernel's entry in a [`Module`].
pub(crate) struct Kernel<'m> {
    driver: &'m Driver,
    function: Handle,
    _module: &'m Module<'m>,
}

impl Module<'_> {
    pub(crate) fn kernel(&self) -> Result<Kernel<'_>, Code> {
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with a zero byte, the driver writes one handle into a local.
        check(unsafe {
            (self.driver.module_function)(&raw mut function, self.module, kernel::NAME.as_ptr())
        })?;
        Ok(Kernel { driver: self.driver, function, _module: self })
    }

    /// Gives the module back.
    pub(crate) fn unload(self) -> Result<(), Code> {
        ManuallyDrop::new(self).give_back()
    }

    fn give_back(&self) -> Result<(), Code> {
        // SAFETY: the handle came from the driver; called once, by `unload` or by `drop`.
        check(unsafe { (self.driver.module_unload)(self.module) })
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        self.give_back().ok();
    }
}

impl Kernel<'_> {
    /// Starts `out[i] = factor * in[i] + i` for all of both, which must be of one size.
    pub(crate) fn launch(&self, out: &Memory<'_>, input: &Memory<'_>, mut factor: u32) -> Result<(), Code> {
        if out.words != input.words {
            return Err(INVALID_VALUE);
        }
        let mut count = u32::try_from(out.words).map_err(|_| INVALID_VALUE)?;
        let (mut out, mut input) = (out.address, input.address);
        let mut arguments: [*mut c_void; 4] = [
            (&raw mut out).cast(),
            (&raw mut input).cast(),
            (&raw mut factor).cast(),
            (&raw mut count).cast(),
        ];
        let blocks = count.div_ceil(kernel::BLOCK);
        // SAFETY: the kernel in `PTX` takes these four arguments, of these sizes; the driver copies them before it
        // returns. The kernel touches no element beyond `count`, and both sides have that many.
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
