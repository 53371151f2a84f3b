//! The GPU for a container: a driver and a request become edits.
//! A container cannot use the GPU until device nodes, a driver's libraries, its programs and
//! sockets are added to it, and until the loader inside can find them. Which ones depends on the
//! driver's version, on its directories in a distribution, on the request and on the layout of the
//! image. [`driver`] reads the driver of a machine, [`request`] the request, and [`edits::edits`]
//! is a pure function of the two. The edits are applied to a root at once ([`apply`]), or written
//! to files for other engines ([`cdi`]).

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
pub use edits::{DeviceNode, Edits, Library, Link, Mount, Placement, Text, edits};
pub use elf::ElfClass;
pub use error::InjectError;
pub use request::{Capabilities, Capability, DeviceName, Devices, Extras, GpuRequest};
