//! Container groups as Azure Container Instances describe them, for running them on one machine.
//!
//! The file that `az container create --file` takes is read into a [`Group`]. Everything wrong in it is found at once,
//! each with its place and the way out; what Azure knows and one machine does not is noted. What follows is
//! three policies without a clock or a process: [`restart`] says whether and when a container runs again, [`probe`]
//! when it is asked after and what its answers mean, and [`sequence`] what the whole group does next.
//!
//! ```
//! let text = "
//! name: hello
//! properties:
//!   containers:
//!   - name: web
//!     properties:
//!       image: nginx
//!       resources: {requests: {cpu: 1, memoryInGB: 1.5}}
//! ";
//! let reading = cudock_group::read(text)?;
//! assert_eq!(reading.group.containers[0].image, "nginx");
//!
//! let error = cudock_group::read(&text.replace("image", "imgae")).unwrap_err();
//! let fault = &error.faults[0];
//! assert_eq!((fault.span.line, fault.span.column), (7, 7));
//! assert_eq!(fault.hint, "did you mean `image`?");
//! # Ok::<(), cudock_group::GroupError>(())
//! ```

mod api_version;
mod fault;
mod group;
mod note;
pub mod probe;
mod read;
mod recognize;
mod resources;
pub mod restart;
pub mod sequence;

pub use cudock_base::Span;
pub use cudock_yaml::LARGEST;

pub use api_version::{NEWEST, OLDEST};
pub use fault::{Fault, GroupError};
pub use group::{
    Address, Container, Credential, Dns, Group, HttpGet, Mount, Os, Port, PortProtocol, Probe, ProbeAction,
    Security, Variable, VariableValue, Volume, VolumeKind,
};
pub use note::{Note, NoteKind};
pub use read::{GROUP_NAME_RULE, Reading, is_group_name, read};
pub use recognize::{first_image, is_group};
pub use resources::{GPUS_ENDED, RequestedGpu, Resources};
