//! Which device nodes a container can use.
//!
//! A process that may create nodes can create the node of any device, so file permissions do not help. The kernel therefore
//! consults the cgroup of the process whenever a node is opened or created: a list in a file on cgroup v1, a BPF program
//! ([`Program`]) on v2.
//!
//! Access is denied unless a [`DeviceRule`] allows it.
//!
//! ```
//! use cudock_confine::devices::{Access, DeviceKind, DeviceRule, Program, allowed, standard_rules};
//! let mut rules = standard_rules();
//! rules.push(DeviceRule::new(DeviceKind::Char, 195, 255, Access::READ | Access::WRITE));
//! assert!(allowed(&rules, DeviceKind::Char, 195, 255, Access::READ | Access::WRITE));
//! assert!(!allowed(&rules, DeviceKind::Char, 195, 0, Access::READ));
//! let program = Program::new(&rules)?;
//! # Ok::<(), cudock_confine::ConfineError>(())
//! ```

mod attach;
mod program;
mod rule;

pub use crate::bpf::Instruction;
pub use attach::attach;
pub use program::{MAX_RULES, Program, code};
pub use rule::{Access, DeviceKind, DeviceRule, allowed, standard_rules};
