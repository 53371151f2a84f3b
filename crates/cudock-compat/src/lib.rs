//! Whether a program, an image or an environment runs on a GPU, told from the bytes.
//!
//! What is in a subject becomes [`Evidence`], what it is held against becomes a [`Target`], and [`judge`] is a pure
//! function of the two and the tables: will it see and use the card under that driver, and if not, with which error,
//! because of which file, and what to change.

pub mod codes;
pub mod evidence;
mod gather;
mod image_set;
mod judge;

pub use cudock_host::Verdict;
pub use cudock_target::{self as target, StartPath, Target, TargetError, TargetMachine, gate};
pub use evidence::Evidence;
pub use gather::{Context, GatherError, Subject, gather, subject};
pub use image_set::{ImageSet, OnRead};
pub use judge::{ArtifactJudgement, CheckRule, Failure, Judgement, RULES, RuleUse, judge};
