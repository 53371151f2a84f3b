//! The GPU for a container: a driver and a request become edits.
//!
//! A container is blind to the GPU until device nodes, a driver's libraries, its programs and sockets are put into it,
//! and until the loader inside knows of them. Which ones depends on the driver's version, on where a distribution
//! keeps it, on what was asked for and on how the image is laid out. [`driver`] reads what a machine has,
//! [`request`] what was asked for, and [`edits::edits`] is a pure function of the two. The edits are applied to a
//! root at once ([`apply`]), or written down for other engines ([`cdi`]).

pub mod apply;
pub mod cdi;
pub mod driver;
pub mod edits;
mod elf;
mod error;
pub mod ld_cache;
pub mod request;
pub mod requirements;

pub use apply::{library_directory, prepare_root};
pub use driver::{Driver, DriverGpu, DriverKind, DriverRoots, MigDevice};
pub use edits::{DeviceNode, Edits, ElfClass, Library, Link, Mount, Placement, Text, edits};
pub use error::InjectError;
pub use request::{Capabilities, Capability, DeviceName, Devices, Extras, GpuRequest};
