//! The GPU stack of a machine or a container: read as plain data, then judged.
//!
//! A GPU goes missing between a kernel module, device nodes, driver libraries, a container toolkit and a
//! framework's wheel, and each of these has an opinion of its own. [`probe`] reads what all of them say, from the
//! machine it runs on or from a directory tree; [`checks`] holds that against the fact tables and says what is
//! wrong and what to do. Reading decides nothing and judging touches nothing, so every judgement can be tested
//! without a GPU.

pub mod checks;
mod files;
pub mod frameworks;
pub mod host;
#[doc(hidden)]
pub mod ld_cache;
pub mod loader;
pub mod nvml;
mod presence;
pub mod probe;
pub mod python;
mod root;

pub use checks::{Area, Check, Diagnosis, FrameworkReport, GpuReport, Status, Verdict, examine};
pub use files::Files;
pub use host::Host;
pub use presence::{first_gpu_name, has_driver_files, has_gpu};
pub use root::{Root, RootError};
