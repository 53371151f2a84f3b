//! The part of the CUDA driver API that the engine's buffers need.
//!
//! The driver is opened on first use and not linked: the same program runs without one. Everything happens in the
//! device's primary context, which ONNX Runtime uses, too, so that addresses are valid for both.

#![allow(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, OnceLock};

use cudock_mmap::Mapping;
use libloading::Library;
use ort::ep::{CUDA, TensorRT};

use crate::memory_limit::BufferBudget;

type CudaResult = c_int;
type Handle = *mut c_void;
type DeviceAddress = u64;

/// The result of a query of a stream that is still busy.
const NOT_READY: CudaResult = 600;
/// Streams that do not synchronize with the default stream; events without timing.
const NON_BLOCKING: c_uint = 1;
const WITHOUT_TIMES: c_uint = 2;
/// Pinned memory that every context may access.
const PORTABLE: c_uint = 1;

/// A result with the error message of the driver.
type Result<T> = std::result::Result<T, String>;

/// Opens `libcuda.so.1` and looks up each function once.
macro_rules! driver {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        struct CudaDriver {
            $($name: unsafe extern "C" fn($($argument),*) -> CudaResult,)*
            _library: Library,
        }

        impl CudaDriver {
            fn open() -> Result<Self> {
                // SAFETY: the driver's library has no other side effect when loaded than to set itself up, and is
                // made for being opened by any program.
                let library = unsafe { Library::new("libcuda.so.1") }.map_err(|error| error.to_string())?;
                Ok(Self {
                    // SAFETY: each symbol is declared as cuda.h has it; the function pointers are
                    // not used after the library is closed, because both are in the same value.
                    $($name: *unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> CudaResult>($symbol) }
                        .map_err(|error| error.to_string())?,)*
                    _library: library,
                })
            }
        }
    };
}

driver! {
    init = b"cuInit\0" (c_uint);
    error_string = b"cuGetErrorString\0" (CudaResult, *mut *const c_char);
    device_get = b"cuDeviceGet\0" (*mut c_int, c_int);
    device_name = b"cuDeviceGetName\0" (*mut c_char, c_int, c_int);
    retain = b"cuDevicePrimaryCtxRetain\0" (*mut Handle, c_int);
    set_current = b"cuCtxSetCurrent\0" (Handle);
    host_register = b"cuMemHostRegister_v2\0" (*mut c_void, usize, c_uint);
    host_unregister = b"cuMemHostUnregister\0" (*mut c_void);
    allocate = b"cuMemAlloc_v2\0" (*mut DeviceAddress, usize);
    free = b"cuMemFree_v2\0" (DeviceAddress);
    memory_info = b"cuMemGetInfo_v2\0" (*mut usize, *mut usize);
    stream_create = b"cuStreamCreate\0" (*mut Handle, c_uint);
    stream_destroy = b"cuStreamDestroy_v2\0" (Handle);
    stream_query = b"cuStreamQuery\0" (Handle);
    stream_synchronize = b"cuStreamSynchronize\0" (Handle);
    stream_wait = b"cuStreamWaitEvent\0" (Handle, Handle, c_uint);
    event_create = b"cuEventCreate\0" (*mut Handle, c_uint);
    event_record = b"cuEventRecord\0" (Handle, Handle);
    event_destroy = b"cuEventDestroy_v2\0" (Handle);
    to_device = b"cuMemcpyHtoDAsync_v2\0" (DeviceAddress, *const c_void, usize, Handle);
    to_host = b"cuMemcpyDtoHAsync_v2\0" (*mut c_void, DeviceAddress, usize, Handle);
}

impl CudaDriver {
    fn check(&self, what: &str, code: CudaResult) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the driver writes the address of a text of its own that lives for ever, or null.
        let known = unsafe { (self.error_string)(code, &raw mut text) } == 0 && !text.is_null();
        let message = if known {
            // SAFETY: as above; the text ends with a zero byte.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        } else {
            "unknown error".into()
        };
        Err(format!("{what}: {message} (CUDA error {code})"))
    }
}

fn driver() -> Result<&'static CudaDriver> {
    static DRIVER: OnceLock<Result<CudaDriver>> = OnceLock::new();
    DRIVER.get_or_init(CudaDriver::open).as_ref().map_err(Clone::clone)
}

pub(crate) struct CudaGpu {
    driver: &'static CudaDriver,
    context: Handle,
    pub(crate) name: String,
}

// SAFETY: a context is a handle that any thread may make its own with `cuCtxSetCurrent`.
unsafe impl Send for CudaGpu {}
// SAFETY: as above; nothing of a `CudaGpu` changes after it was opened.
unsafe impl Sync for CudaGpu {}

impl CudaGpu {
    /// Opens the GPU with that index. Its context stays until the process ends, as ONNX Runtime's does.
    pub(crate) fn open(number: u32) -> Result<Arc<Self>> {
        let driver = driver()?;
        let number = c_int::try_from(number).map_err(|_| format!("invalid GPU index {number}"))?;
        let (mut device, mut context) = (0, std::ptr::null_mut());
        let mut name = [0_u8; 128];
        // SAFETY: every pointer is to a local of the type the driver writes; the name's length is passed along and
        // the driver ends it with a zero byte.
        unsafe {
            driver.check("cannot initialize the driver", (driver.init)(0))?;
            driver.check("cannot find the GPU", (driver.device_get)(&raw mut device, number))?;
            let code = (driver.device_name)(name.as_mut_ptr().cast(), 127, device);
            driver.check("cannot read the GPU's name", code)?;
            driver.check("cannot use the GPU", (driver.retain)(&raw mut context, device))?;
        }
        let name = CStr::from_bytes_until_nul(&name)
            .map_or_else(|_| "gpu".into(), CStr::to_string_lossy)
            .into_owned();
        Ok(Arc::new(Self { driver, context, name }))
    }

    /// Bytes of device memory that no process uses.
    pub(crate) fn free_memory(&self) -> Result<usize> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver writes into locals.
        let code = unsafe { (self.driver.memory_info)(&raw mut free, &raw mut total) };
        self.driver.check("cannot read the GPU's free memory", code)?;
        Ok(free)
    }

    /// Makes its context current in this thread, which every other call relies on.
    pub(crate) fn enter(&self) -> Result<()> {
        // SAFETY: the context was retained and is never released.
        self.driver
            .check("cannot enter the GPU's context", unsafe { (self.driver.set_current)(self.context) })
    }
}

pub(crate) struct DeviceMemory {
    gpu: Arc<CudaGpu>,
    budget: Arc<BufferBudget>,
    address: DeviceAddress,
    size: usize,
}

impl DeviceMemory {
    /// Allocates memory, which counts toward the budget while it exists.
    pub(crate) fn new(gpu: &Arc<CudaGpu>, budget: &Arc<BufferBudget>, size: usize) -> Result<Arc<Self>> {
        gpu.enter()?;
        let size = size.max(256);
        budget.reserve(size)?;
        let mut address = 0;
        // SAFETY: the driver writes an address into a local.
        let code = unsafe { (gpu.driver.allocate)(&raw mut address, size) };
        gpu.driver.check("cannot allocate GPU memory", code).inspect_err(|_| budget.release(size))?;
        Ok(Arc::new(Self { gpu: Arc::clone(gpu), budget: Arc::clone(budget), address, size }))
    }

    pub(crate) fn address(&self) -> *mut c_void {
        self.address as *mut c_void
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: the memory came from `cuMemAlloc` and is freed nowhere else; freeing waits
            // for work that uses it.
            unsafe { (self.gpu.driver.free)(self.address) };
        }
        self.budget.release(self.size);
    }
}

/// Host memory that the device accesses directly.
pub(crate) struct PinnedMemory {
    gpu: Arc<CudaGpu>,
    mapping: Arc<Mapping>,
}

impl PinnedMemory {
    pub(crate) fn new(gpu: &Arc<CudaGpu>, mapping: Arc<Mapping>) -> Result<Self> {
        gpu.enter()?;
        // SAFETY: the range is mapped, and stays so while `self` holds the mapping; `Drop` takes it back before.
        let code = unsafe { (gpu.driver.host_register)(mapping.address().cast(), mapping.size(), PORTABLE) };
        gpu.driver.check("cannot pin memory", code)?;
        Ok(Self { gpu: Arc::clone(gpu), mapping })
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: registered in `new`, and the mapping is still there.
            unsafe { (self.gpu.driver.host_unregister)(self.mapping.address().cast()) };
        }
    }
}

/// A stream, and an event that other streams can wait for.
pub(crate) struct CudaStream {
    gpu: Arc<CudaGpu>,
    stream: Handle,
    event: Handle,
}

// SAFETY: streams and events are handles that any thread may use while the context is its own.
unsafe impl Send for CudaStream {}
// SAFETY: as above; the driver's own calls are thread safe.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    pub(crate) fn new(gpu: &Arc<CudaGpu>) -> Result<Self> {
        gpu.enter()?;
        let (mut stream, mut event) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the driver writes handles into locals.
        unsafe {
            let driver = gpu.driver;
            driver.check("cannot create a stream", (driver.stream_create)(&raw mut stream, NON_BLOCKING))?;
            driver.check("cannot create an event", (driver.event_create)(&raw mut event, WITHOUT_TIMES))?;
        }
        Ok(Self { gpu: Arc::clone(gpu), stream, event })
    }

    /// Makes sessions of that provider use this stream, which must outlive them.
    pub(crate) fn assign_to_cuda(&self, provider: CUDA) -> CUDA {
        // SAFETY: the stream is alive, and `SharedSession` drops it after the session.
        unsafe { provider.with_compute_stream(self.stream.cast()) }
    }

    /// Sets the stream of TensorRT; see [`CudaStream::assign_to_cuda`].
    pub(crate) fn assign_to_tensorrt(&self, provider: TensorRT) -> TensorRT {
        // SAFETY: as there.
        unsafe { provider.with_compute_stream(self.stream.cast()) }
    }

    /// Enqueues a copy of the first `bytes` of host memory to the device.
    pub(crate) fn copy_in(&self, from: &Mapping, to: &DeviceMemory, bytes: usize) -> Result<()> {
        let Some(bytes) = checked(bytes, from, to)? else { return Ok(()) };
        // SAFETY: both ranges are valid for `bytes`, as just checked. They live until the copy is over: the
        // caller waits for the stream before it releases either.
        let code = unsafe {
            (self.gpu.driver.to_device)(to.address, from.address().cast_const().cast(), bytes, self.stream)
        };
        self.gpu.driver.check("cannot copy to the GPU", code)
    }

    /// Enqueues a copy of the first `bytes` of device memory to the host.
    pub(crate) fn copy_out(&self, from: &DeviceMemory, to: &Mapping, bytes: usize) -> Result<()> {
        let Some(bytes) = checked(bytes, to, from)? else { return Ok(()) };
        // SAFETY: as in `copy_in`.
        let code =
            unsafe { (self.gpu.driver.to_host)(to.address().cast(), from.address, bytes, self.stream) };
        self.gpu.driver.check("cannot copy from the GPU", code)
    }

    /// Makes everything enqueued here from now on wait for everything enqueued on the other stream until now.
    pub(crate) fn wait_for(&self, other: &Self) -> Result<()> {
        let driver = self.gpu.driver;
        // SAFETY: all handles are alive and of the same context.
        unsafe {
            driver.check("cannot record an event", (driver.event_record)(other.event, other.stream))?;
            driver.check("cannot wait for an event", (driver.stream_wait)(self.stream, other.event, 0))
        }
    }

    /// Waits until the stream is empty.
    pub(crate) fn finish(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        self.gpu.driver.check("the GPU failed", unsafe { (self.gpu.driver.stream_synchronize)(self.stream) })
    }

    /// A sticky error: the context is corrupt, and every later call of this process will fail.
    pub(crate) fn sticky_error(&self) -> Option<String> {
        if let Err(error) = self.gpu.enter() {
            return Some(error);
        }
        // SAFETY: the handle is alive.
        let code = unsafe { (self.gpu.driver.stream_query)(self.stream) };
        if code == NOT_READY { None } else { self.gpu.driver.check("the GPU failed", code).err() }
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: made in `new`, and destroyed nowhere else; the driver does so after the work
            // that is queued.
            unsafe {
                (self.gpu.driver.event_destroy)(self.event);
                (self.gpu.driver.stream_destroy)(self.stream);
            }
        }
    }
}

/// The number of bytes to copy, if there are any.
fn checked(bytes: usize, host: &Mapping, device: &DeviceMemory) -> Result<Option<usize>> {
    if bytes > host.size() || bytes > device.size {
        return Err(format!("a copy of {bytes} bytes is out of bounds"));
    }
    Ok((bytes > 0).then_some(bytes))
}
