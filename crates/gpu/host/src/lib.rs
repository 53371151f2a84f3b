//! Reads and diagnoses the GPU stack of a machine or a container.
//!
//! GPU access can break in the kernel module, device nodes, driver libraries, the container toolkit or a framework's wheel.
//! [`probe`] reads the state of all of them, from the running machine or from a directory tree; [`checks`] compares it with
//! the fact tables and reports what is wrong and how to fix it. Probing does not judge and checks do no I/O, so that every
//! check can be tested without a GPU.

pub mod checks;
mod files;
pub mod frameworks;
pub mod host;
pub mod ld_cache;
pub mod loader;
pub mod nvml;
mod presence;
pub mod probe;
pub mod python;
mod root;

pub use checks::{Area, Check, Diagnosis, FrameworkReport, GpuReport, Verdict, examine};
pub use files::Files;
pub use host::Host;
pub use presence::{first_gpu_name, has_driver_files, has_gpu};
pub use root::{Root, RootError};
