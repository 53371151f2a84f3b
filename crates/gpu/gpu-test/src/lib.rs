//! Queries the CUDA driver and runs a test computation on every GPU.
//!
//! Device nodes and libraries in a container do not mean that CUDA works: the cgroup may deny a
//! device, libcuda may not match the kernel module, the PTX compiler may be missing. Only a program
//! that uses the GPU can find out. This is that program, and it needs nothing in the image: it runs
//! in a process that has joined the container, with code that was loaded outside of it.
//!
//! So it needs no files of its own, opens `libcuda.so.1` as the loader would find it in the container, and calls only the
//! driver. The caller must:
//!
//! - Call [`prepare`] before joining, so that all parts of the C library have the same version.
//! - Drop privileges first. The image may contain its own libcuda, and loading it runs its code.
//! - Give the process the environment of the container and [`ENVIRONMENT`].
//! - Set a time limit. A broken driver can hang in any call; each [`QueryStep`] is announced before it starts.
//! - End the process afterwards. The driver starts threads, and its library is never closed.

mod compute_check;
mod driver_api;
mod error;
mod explanations;
mod kernel;
mod query;
mod report;
mod search;
mod step;
mod tracker;

pub use error::{CudaFailure, DeviceError};
pub use query::{prepare, query, query_library};
pub use report::{ComputeResult, DeviceInfo, DeviceReport};
pub use step::{QueryAction, QueryStep};

/// Environment variables that the process should have in addition to the container's: otherwise the driver leaves a kernel
/// cache in the home directory of the image's user.
pub const ENVIRONMENT: [(&str, &str); 1] = [("CUDA_CACHE_DISABLE", "1")];
