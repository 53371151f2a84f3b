//! Finds retired choices of Azure GPUs in files, and their replacements.
//!
//! Tutorials, scripts and templates name sizes that were retired years ago, which shows only when a deployment fails.
//! [`read`] finds such choices in any text: command lines, container groups, templates, programs, notes. It parses each
//! language only as far as needed to know what a name is for, and accepts truncated, templated or invalid text: anything
//! that looks like a GPU size is found. [`judge`] compares the choices with the tables. [`translate`] writes the files
//! that replace a sweep of `HyperDrive`, a container group, or a program for an old client.
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
mod rewrite;
mod text;

pub use choice::{Choice, ChoiceKind, Interface};
pub use judge::{
    Change, ChoiceFinding, Fit, HourlyPrice, MachineGpu, OldMachine, PriceComparison, Replacement, Status,
    codes, judge,
};
pub use read::{MAX_CHOICES, Reading, read};
pub use rewrite::{NewFile, Translation, translate};
pub use text::{ChoiceSpan, MAX_FILE_SIZE, MigrateError, decode};
