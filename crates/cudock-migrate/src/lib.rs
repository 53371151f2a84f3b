//! Old choices of Azure GPUs, and what to choose now.
//!
//! Tutorials, scripts and templates name sizes that ended years ago, and nothing tells before the deployment fails.
//! [`read`] finds such choices in a text of any kind: command lines, container groups, templates, programs, notes. It
//! knows the shape of each kind as far as that tells what a name is for, and is content with text that is cut off,
//! templated or wrong: what looks like a GPU size is found in any case. [`judge`] holds the choices against the tables.
//!
//! ```
//! use cudock_facts::Facts;
//! use cudock_migrate::{Status, decode, judge, read};
//!
//! let text = decode(b"az vm create -g ml -n trainer \\\n  --size Standard_NC6 -l westeurope\n")?;
//! let reading = read(&text);
//! let choice = &reading.choices[0];
//! assert_eq!((choice.span.line, choice.span.column), (2, 10));
//! assert_eq!(choice.region.as_deref(), Some("westeurope"));
//!
//! let facts = Facts::embedded();
//! let findings = judge(&facts, "2026-11-15".parse().unwrap(), None, &reading.choices);
//! assert!(matches!(findings[0].status, Status::Retired { .. }));
//! assert_eq!(findings[0].replacements[0].name, "Standard_NC4as_T4_v3");
//! # Ok::<(), cudock_migrate::MigrateError>(())
//! ```

mod choice;
mod judge;
mod read;
mod text;

pub use choice::{Choice, Interface, Service, What};
pub use judge::{Against, Change, ChoiceFinding, Fit, Gpu, Old, Priced, Replacement, Status, codes, judge};
pub use read::{MOST_CHOICES, Reading, read};
pub use text::{LARGEST, MigrateError, Span, decode};
