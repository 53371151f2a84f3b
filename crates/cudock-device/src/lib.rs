//! Asks the CUDA driver what a process can see, and has every GPU compute something.
//!
//! That device nodes and libraries are in a container does not mean that CUDA works in it: a node may be refused by
//! the cgroup, libcuda may be another than the kernel's, the compiler for PTX may be missing. Only a program that uses
//! the GPU finds out. This is that program, without anything in the image: it is meant to run in a process that has
//! joined the container, from code that was loaded outside it.
//!
//! So it needs no file of its own, opens `libcuda.so.1` as the loader finds it there, and calls nothing but the
//! driver. What the caller has to see to:
//!
//! - Call [`prepare`] before joining, so that the C library's parts come from one place.
//! - Drop privileges first. The image may hold a libcuda of its own, and loading it runs it.
//! - Give the process the container's environment and [`ENVIRONMENT`].
//! - Set a limit of time. A broken driver can hang in any call; each [`Step`] is announced before it is taken.
//! - End the process afterwards. The driver starts threads, and its library is never closed.

mod driver_api;
mod error;
mod kernel;
mod proof;
mod query;
mod report;
mod search;
mod step;
mod words;

pub use error::{DeviceError, Failure};
pub use query::{prepare, query, query_library};
pub use report::{Device, Outcome, Report};
pub use step::{Action, Step};

/// Variables that the asking process should have beside the container's: without them the driver leaves a cache of
/// compiled kernels in the home folder of the image's user.
pub const ENVIRONMENT: [(&str, &str); 1] = [("CUDA_CACHE_DISABLE", "1")];
