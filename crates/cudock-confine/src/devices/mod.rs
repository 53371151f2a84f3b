//! Which device nodes a container can use.
//!
//! Whoever may make nodes can make the node of any device; permissions of files do not help against that. So the kernel
//! asks, for each opening and making of a node, the cgroup of the process. On cgroup v1 that is a list in a file; on v2
//! it is a program ([`Program`]), attached to the container's cgroup and to nothing else.
//!
//! [`Rule`]s are read in order, and for each kind of access asked for, the last one that speaks of it decides. What no
//! rule speaks of is refused.
//!
//! ```
//! use cudock_confine::devices::{Access, Kind, Program, allowed, standard_rules};
//! let mut rules = standard_rules();
//! rules.push("c 195:255 rw".parse()?);
//! assert!(allowed(&rules, Kind::Char, 195, 255, Access::READ | Access::WRITE));
//! assert!(!allowed(&rules, Kind::Char, 195, 0, Access::READ));
//! let program = Program::new(&rules)?;
//! # Ok::<(), cudock_confine::Error>(())
//! ```

mod attach;
mod program;
mod rule;

pub use crate::bpf::Instruction;
pub use attach::attach;
pub use program::{MOST_RULES, Program, code};
pub use rule::{Access, Kind, Rule, allowed, standard_rules};
