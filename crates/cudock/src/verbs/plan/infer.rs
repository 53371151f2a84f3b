//! What an image, a program or a project's own files say of where it runs.
//!
//! The subject is looked at once and judged for every size on sale, exactly as `cudock check --all-sizes` does; sizes it
//! does not run on leave the plan with that verdict's reason.

mod image;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cudock_compat::{Context, Judgement, Subject, Target, Verdict, gather, judge};
use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::version::{Capability, Date};
use cudock_plan::{Assumption, Verdicts};
use cudock_project::Project;

use super::workload::PlanFlags;
use crate::failure::{Failure, chain};

/// What a subject says.
#[derive(Debug, Default)]
pub(super) struct Inferred {
    /// Where it runs.
    pub(super) verdicts: Verdicts,
    /// The processor it is for, as the tables name it; the inner none if for several, the outer if that is not known.
    #[allow(clippy::option_option, reason = "not known and any are two things")]
    pub(super) architecture: Option<Option<String>>,
    /// How large the image is.
    pub(super) image: Option<ImageSize>,
    /// Whether the driver compiles code of it on some size.
    pub(super) compiles: bool,
    /// What was found, with where.
    pub(super) assumptions: Vec<Assumption>,
}

/// How large an image is, and where that is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageSize {
    /// Bytes that are fetched.
    pub(super) compressed: u64,
    /// Where that figure is from.
    pub(super) source: String,
    /// Bytes on disk, where they were counted.
    pub(super) unpacked: Option<u64>,
}

/// A place to run, by its size or profile, and what came of the question.
type Answer = (String, Target, Option<Judgement>);

/// Files of a project that say what will be installed, the most exact first.
const PROJECT_FILES: [&str; 5] =
    ["uv.lock", "requirements.txt", "environment.yml", "pyproject.toml", "Dockerfile"];

/// Looks at the image or program that is named, or at the project's own files.
pub(super) fn subject(
    facts: &Facts,
    project: &Project,
    flags: &PlanFlags,
    today: Date,
) -> Result<Inferred, Failure> {
    if let Some(name) = &flags.image {
        return named(facts, name, flags.offline, today);
    }
    if let Some(name) = &project.manifest.workload.image {
        return named(facts, &beside(&project.folder, name), flags.offline, today);
    }
    let has_file = project.places != cudock_project::Places::default();
    let found = PROJECT_FILES.iter().map(|name| project.folder.join(name)).find(|path| path.is_file());
    match found.filter(|_| has_file) {
        Some(path) => Ok(of_project(facts, &path, today)),
        None => Ok(Inferred::default()),
    }
}

/// A path that the file names starts in its folder; a name of a registry stays what it is.
fn beside(folder: &Path, name: &str) -> String {
    let (transport, path) = match name.split_once(':') {
        Some((transport @ ("oci" | "oci-archive" | "docker-archive" | "rootfs"), path)) => {
            (Some(transport), path)
        }
        _ => (None, name),
    };
    let inside = folder.join(path);
    match transport {
        Some(transport) => format!("{transport}:{}", inside.display()),
        None if inside.exists() => inside.display().to_string(),
        None => name.to_owned(),
    }
}

fn named(facts: &Facts, name: &str, offline: bool, today: Date) -> Result<Inferred, Failure> {
    let environment = BTreeMap::new();
    match cudock_compat::subject(name)? {
        Subject::Image(source) => image::look(facts, name, &source, offline, targets(facts, today)),
        other => {
            let context = Context { facts, environment: &environment, on_this_machine: false };
            let evidence = gather(&other, name, &context).map_err(crate::verbs::check::gather_failure)?;
            let answers = targets(facts, today).into_iter().map(|(size, target)| {
                let judgement = judge(&evidence, &target, facts);
                (size, target, Some(judgement))
            });
            let mut inferred = Inferred::of(name, answers.collect());
            inferred.architecture =
                evidence.cpu.as_deref().map(|cpu| Some(table_architecture(cpu).to_owned()));
            Ok(inferred)
        }
    }
}

/// What a project's own files say. They say what will be installed, not all that runs: what they leave open stays so,
/// and one that cannot be read is no reason not to plan.
fn of_project(facts: &Facts, path: &Path, today: Date) -> Inferred {
    let name = path.display().to_string();
    let environment = BTreeMap::new();
    let context = Context { facts, environment: &environment, on_this_machine: false };
    let evidence = cudock_compat::subject(&name).and_then(|subject| gather(&subject, &name, &context));
    let evidence = match evidence {
        Ok(evidence) => evidence,
        Err(error) => {
            let mut inferred = Inferred::default();
            let value = "what the project installs could not be read";
            inferred.note("workload.image", value, chain(&error));
            return inferred;
        }
    };
    // Without anything that could use a GPU, what would keep it from one does not matter.
    if evidence.units.is_empty() && evidence.ranges.is_empty() {
        return Inferred::default();
    }
    let answers: Vec<Answer> = targets(facts, today)
        .into_iter()
        .map(|(size, target)| {
            let judgement = judge(&evidence, &target, facts);
            let decided = matches!(judgement.verdict, Verdict::Works | Verdict::Jit | Verdict::Fails);
            (size, target, decided.then_some(judgement))
        })
        .collect();
    Inferred::of(&name, answers)
}

/// Every size that can be had somewhere, and every profile.
fn targets(facts: &Facts, today: Date) -> Vec<(String, Target)> {
    let sizes = Target::all_sizes(facts, None, today).into_iter();
    let profiles = facts.services().profile.iter();
    let profiles = profiles.filter_map(|profile| Target::of_profile(facts, profile).ok());
    sizes.chain(profiles).filter_map(|target| Some((target.sku.clone()?, target))).collect()
}

/// What the tables call a processor.
fn table_architecture(cpu: &str) -> &str {
    match cpu {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

impl Inferred {
    fn note(&mut self, about: &str, value: impl Into<String>, source: impl Into<String>) {
        self.assumptions.push(Assumption {
            about: about.to_owned(),
            value: value.into(),
            source: source.into(),
        });
    }

    /// From judgements to what the planner asks for.
    fn of(name: &str, answers: Vec<Answer>) -> Self {
        let mut inferred = Self::default();
        let (mut runs, mut open, all) = (0_usize, 0_usize, answers.len());
        let mut capabilities: BTreeSet<Capability> = BTreeSet::new();
        for (size, target, judgement) in answers {
            let Some(judgement) = judgement.filter(|judgement| judgement.verdict != Verdict::Unknown) else {
                open += 1;
                continue;
            };
            let verdict = verdict_of(judgement);
            if verdict.runs {
                runs += 1;
                capabilities.extend(target.capability);
            }
            inferred.compiles |= verdict.jit;
            inferred.verdicts.insert(size, verdict);
        }
        let range = match (capabilities.first(), capabilities.last()) {
            (Some(least), Some(greatest)) if least == greatest => format!("{least} alone"),
            (Some(least), Some(greatest)) => format!("{least} to {greatest}"),
            _ if open == all => "not known".to_owned(),
            _ => "none".to_owned(),
        };
        let known = if open > 0 { format!(", {open} not known") } else { String::new() };
        let value = format!("{range}: it runs on {runs} of {all} sizes and profiles{known}");
        inferred.note("needs.capability", value, format!("`cudock check` of {name}"));
        inferred
    }
}

/// A verdict in the planner's words.
fn verdict_of(judgement: Judgement) -> cudock_plan::Verdict {
    let error = judgement.findings.iter().find(|finding| finding.severity == Severity::Error);
    cudock_plan::Verdict {
        runs: matches!(judgement.verdict, Verdict::Works | Verdict::Jit),
        jit: judgement.verdict == Verdict::Jit,
        code: error.map_or(cudock_plan::codes::IMAGE_DOES_NOT_RUN, |finding| finding.code),
        reason: judgement.reason,
    }
}
