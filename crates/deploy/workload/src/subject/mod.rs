//! Finds the sizes that an image, a program or the files of a project run on.
//!
//! The subject is inspected once and judged for every size on sale, as `cudock check --all-skus` does; a plan rejects the
//! sizes it does not run on with the reason of the verdict.

mod image;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cudock_base::NamedArch;
use cudock_base::text::error_chain;
use cudock_compat::{
    Context, GatherError, Judgement, Subject, Target, Verdict, gather, image_subject, is_file_name, judge,
};
use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::version::{Capability, Date};
use cudock_plan::{Assumption, ImageLayer, Verdicts};
use cudock_project::{ManifestText, Project, WorkloadFlags};

use crate::Notify;

#[derive(Debug, Default)]
pub(crate) struct Inspection {
    pub(crate) verdicts: Verdicts,
    pub(crate) architecture: Option<Processor>,
    pub(crate) image: Option<ImageSize>,
    /// Whether the driver compiles code of it on some size.
    pub(crate) compiles: bool,
    /// Values that were read from the subject, with their origin.
    pub(crate) assumptions: Vec<Assumption>,
}

/// The processor that a subject is built for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Processor {
    /// Images of it exist for several.
    Any,
    /// One architecture, as the tables name it.
    One(NamedArch),
}

/// How large an image is, and where that is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageSize {
    /// Bytes that are fetched.
    pub(crate) compressed: u64,
    pub(crate) source: String,
    /// Bytes on disk, if they were counted.
    pub(crate) unpacked: Option<u64>,
    pub(crate) layers: Vec<ImageLayer>,
}

/// A size or profile, and its verdict if that is known.
type SizeJudgement = (Target, Option<Judgement>);

/// Files of a project that declare what it installs, the most precise first.
const PROJECT_FILES: [&str; 5] =
    ["uv.lock", "requirements.txt", "environment.yml", "pyproject.toml", "Dockerfile"];

/// Inspects the image or program that is named, or else the project's own files.
pub(crate) fn inspect(
    facts: &Facts,
    project: &Project,
    flags: &WorkloadFlags,
    today: Date,
    notify: &Notify<'_>,
) -> Result<Inspection, GatherError> {
    let named = flags.image.clone().or_else(|| {
        let name = project.manifest.workload.image.as_ref();
        name.map(|name| relative_to(&project.directory, name))
    });
    if let Some(name) = named {
        return inspect_named(facts, &name, flags.offline, today, notify);
    }
    let has_file = project.text != ManifestText::default();
    let found = PROJECT_FILES.iter().map(|name| project.directory.join(name)).find(|path| path.is_file());
    match found.filter(|_| has_file) {
        Some(path) => Ok(inspect_project_file(facts, &path, today)),
        None => Ok(Inspection::default()),
    }
}

/// A path in the project's file is relative to its directory; a name in a registry stays what it is.
fn relative_to(directory: &Path, name: &str) -> String {
    let (transport, path) = match name.split_once(':') {
        Some((transport @ ("oci" | "oci-archive" | "docker-archive" | "rootfs"), path)) => {
            (Some(transport), path)
        }
        _ => (None, name),
    };
    let inside = directory.join(path);
    match transport {
        Some(transport) => format!("{transport}:{}", inside.display()),
        None if is_file_name(name) && inside.exists() => inside.display().to_string(),
        None => name.to_owned(),
    }
}

fn inspect_named(
    facts: &Facts,
    name: &str,
    offline: bool,
    today: Date,
    notify: &Notify<'_>,
) -> Result<Inspection, GatherError> {
    match image_subject(name)? {
        Subject::Image(source) => {
            image::inspect(facts, name, &source, offline, targets(facts, today), notify)
        }
        other => {
            let environment = BTreeMap::new();
            let context = Context { facts, environment: &environment, on_this_machine: false };
            let evidence = gather(&other, name, &context)?;
            let judgements = targets(facts, today).into_iter().map(|target| {
                let judgement = judge(&evidence, &target, facts);
                (target, Some(judgement))
            });
            let mut inspection = Inspection::of(name, judgements.collect());
            inspection.architecture = evidence.cpu.as_ref().map(|cpu| Processor::One(cpu.with_kernel_name()));
            Ok(inspection)
        }
    }
}

/// Inspects a file that declares what is installed, which is not everything that runs: the rest stays unknown. A file
/// that cannot be read does not prevent planning.
fn inspect_project_file(facts: &Facts, path: &Path, today: Date) -> Inspection {
    let name = path.display().to_string();
    let environment = BTreeMap::new();
    let context = Context { facts, environment: &environment, on_this_machine: false };
    let evidence = cudock_compat::subject(&name).and_then(|subject| gather(&subject, &name, &context));
    let evidence = match evidence {
        Ok(evidence) => evidence,
        Err(error) => {
            let value = "the dependencies of the project could not be read";
            let unread = Assumption::new("workload.image", value, error_chain(&error));
            return Inspection { assumptions: vec![unread], ..Inspection::default() };
        }
    };
    // If nothing in it uses a GPU, what would keep it from using one does not matter.
    if evidence.artifacts.is_empty() && evidence.ranges.is_empty() {
        return Inspection::default();
    }
    let judgements: Vec<SizeJudgement> = targets(facts, today)
        .into_iter()
        .map(|target| {
            let judgement = judge(&evidence, &target, facts);
            let decided = matches!(judgement.verdict, Verdict::Works | Verdict::Jit | Verdict::Fails);
            (target, decided.then_some(judgement))
        })
        .collect();
    Inspection::of(&name, judgements)
}

/// Every size that is on sale somewhere, and every serverless profile.
fn targets(facts: &Facts, today: Date) -> Vec<Target> {
    let sizes = Target::all_sizes(facts, None, today).into_iter();
    let profiles = facts.services().profile.iter();
    let profiles = profiles.filter_map(|profile| Target::of_profile(facts, profile).ok());
    sizes.chain(profiles).filter(|target| target.sku.is_some()).collect()
}

impl Inspection {
    fn of(name: &str, judgements: Vec<SizeJudgement>) -> Self {
        let mut inspection = Self::default();
        let (mut runs, mut unknown, all) = (0_usize, 0_usize, judgements.len());
        let mut capabilities: BTreeSet<Capability> = BTreeSet::new();
        for (target, judgement) in judgements {
            let judgement = judgement.filter(|judgement| judgement.verdict != Verdict::Unknown);
            let (Some(judgement), Some(size)) = (judgement, target.sku) else {
                unknown += 1;
                continue;
            };
            let verdict = plan_verdict(judgement);
            if verdict.runs {
                runs += 1;
                capabilities.extend(target.capability);
            }
            inspection.compiles |= verdict.jit;
            inspection.verdicts.insert(size, verdict);
        }
        let range = match (capabilities.first(), capabilities.last()) {
            (Some(least), Some(greatest)) if least == greatest => format!("{least} only"),
            (Some(least), Some(greatest)) => format!("{least} to {greatest}"),
            _ if unknown == all => "unknown".to_owned(),
            _ => "none".to_owned(),
        };
        let rest = if unknown > 0 { format!(", {unknown} unknown") } else { String::new() };
        let value = format!("{range}: runs on {runs} of {all} sizes and profiles{rest}");
        let source = format!("`cudock check` of {name}");
        inspection.assumptions.push(Assumption::new("needs.capability", value, source));
        inspection
    }
}

fn plan_verdict(judgement: Judgement) -> cudock_plan::SizeVerdict {
    let error = judgement.findings.iter().find(|finding| finding.severity == Severity::Error);
    cudock_plan::SizeVerdict {
        runs: judgement.verdict.uses_gpu(),
        jit: judgement.verdict == Verdict::Jit,
        code: error.map_or(cudock_plan::codes::IMAGE_DOES_NOT_RUN, |finding| finding.code),
        reason: judgement.reason,
    }
}
