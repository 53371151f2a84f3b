//! Predicts from their files whether a program, an image or an environment runs on a GPU.
//!
//! The contents of a subject become [`Evidence`], and [`judge`] is a pure function of that, a [`Target`] and the fact
//! tables: whether the subject will use the GPU with that driver, and if not, with which error, because of which file, and
//! how to fix it.

pub mod codes;
pub mod evidence;
mod gather;
mod image_set;
mod judge;

pub use cudock_host::Verdict;
pub use cudock_target::{self as target, StartPath, Target, TargetError, TargetMachine, gate};
pub use evidence::Evidence;
pub use gather::{
    BuildContext, Context, GatherError, Subject, gather, gather_dockerfile, image as gather_image,
    image_subject, is_file_name, of_declared, subject,
};
pub use image_set::{ImageSet, OnRead};
pub use judge::{ArtifactJudgement, CheckRule, Failure, Judgement, RULES, RuleUse, judge};
