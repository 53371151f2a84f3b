//! Packages of one file that cannot be installed together, or not be imported together.

use std::collections::{BTreeMap, HashSet};

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_facts::lookup::without_local;
use cudock_facts::version::CudaVersion;
use pep440_rs::Version;

use super::package_names::allows;
use crate::codes;
use crate::evidence::{BuildFailure, Evidence};
use cudock_manifests::{Declared, DeclaredPackage, Manager};

/// Finds the first conflict of a file. In a Dockerfile one command may undo the installation of
/// another, so it only warns. Files, extras and groups that need not be installed together do not
/// conflict.
pub(crate) fn check(facts: &Facts, file: &str, declared: &Declared, evidence: &mut Evidence) {
    let mut files: Vec<&Option<String>> = declared.packages.iter().map(|package| &package.file).collect();
    files.sort();
    files.dedup();
    for own in files {
        let name = own.as_deref().unwrap_or(file);
        if let Some(conflict) = first_conflict(facts, own.as_ref(), declared) {
            return report(conflict, name, declared, evidence);
        }
    }
}

fn first_conflict(facts: &Facts, file: Option<&String>, declared: &Declared) -> Option<Conflict> {
    let noted = declared.notes.iter().filter(|note| note.file.as_ref() == file);
    let noted: HashSet<usize> = noted.map(|note| note.span.line).collect();
    let conditional = |package: &DeclaredPackage| noted.contains(&package.span.line);
    let sure = declared.packages.iter().filter(|package| {
        package.manager == Manager::Pip
            && package.file.as_ref() == file
            && package.group.is_none()
            && !conditional(package)
    });
    let mut by_name: BTreeMap<&str, Vec<&DeclaredPackage>> = BTreeMap::new();
    for package in sure {
        by_name.entry(&package.name).or_default().push(package);
    }
    let mut firsts = by_name.values().filter_map(|lines| lines.first());
    let twice = by_name.values().filter(|_| !declared.is_lock).find_map(|lines| twice(lines));
    twice
        .or_else(|| firsts.find_map(|first| pinned(facts, first, &by_name)))
        .or_else(|| builds(by_name.get("torch")?.first()?, by_name.get("torchvision")?.first()?))
}

fn report(conflict: Conflict, file: &str, declared: &Declared, evidence: &mut Evidence) {
    let Conflict { code, message, error, fix, lines } = conflict;
    let seen =
        lines.into_iter().map(|(line, what)| FindingEvidence::new(format!("{file}:{line}"), what)).collect();
    if declared.base_image.is_some() {
        let finding = Finding::new(code, Severity::Warning, message, fix);
        evidence.findings.push(Finding { evidence: seen, ..finding });
    } else {
        let (reason, tool) = (message, "pip".to_owned());
        evidence.build_failure =
            Some(BuildFailure { code, reason, evidence: seen, fix, error: tool, message: error });
    }
}

struct Conflict {
    code: &'static str,
    message: String,
    error: String,
    fix: String,
    lines: Vec<(usize, String)>,
}

/// Two lines for one package that no version satisfies.
fn twice(lines: &[&DeclaredPackage]) -> Option<Conflict> {
    let differ = |a: &DeclaredPackage, b: &DeclaredPackage| match (&a.exact, &b.exact) {
        (Some(a), Some(b)) => !same(a, b),
        (Some(exact), None) => !allows(b.range.as_deref(), exact),
        (None, Some(exact)) => !allows(a.range.as_deref(), exact),
        (None, None) => false,
    };
    // An extra may replace what is installed without it, so only lines of one group are compared.
    let (a, b) = lines.windows(2).find_map(|pair| match pair {
        [a, b] if a.group == b.group && differ(a, b) => Some((*a, *b)),
        _ => None,
    })?;
    let (first, second) = (asked(a), asked(b));
    Some(Conflict {
        code: codes::CONTRADICTORY_PINS,
        message: format!("{first} and {second} contradict each other: pip installs neither"),
        error: cannot_install(&first, &second),
        fix: format!("keep one line for {}", a.name),
        lines: vec![(a.span.line, first), (b.span.line, second)],
    })
}

/// A package that requires one version of another, which the file does not allow.
fn pinned(
    facts: &Facts,
    package: &DeclaredPackage,
    by_name: &BTreeMap<&str, Vec<&DeclaredPackage>>,
) -> Option<Conflict> {
    let version = package.exact.as_ref()?;
    let (other, needs) = facts.packages().pins_of(&package.name, version).find_map(|(name, needs)| {
        let other = by_name.get(name)?.first()?;
        let together = package.group == other.group || package.group.is_none() || other.group.is_none();
        let fits = match &other.exact {
            Some(exact) => same(exact, needs),
            None => allows(other.range.as_deref(), needs),
        };
        (together && !fits).then_some((*other, needs))
    })?;
    let (first, second) = (asked(package), asked(other));
    let tag = package.tag.as_ref().or(other.tag.as_ref()).map_or_else(String::new, |tag| format!("+{tag}"));
    Some(Conflict {
        code: codes::CANNOT_BE_INSTALLED_TOGETHER,
        message: format!("{first} requires {}=={needs}, and the file asks for {second}", other.name),
        error: cannot_install(&first, &second),
        fix: format!(
            "pin {}=={needs}{tag}, or take the release of {} for {second}",
            other.name, package.name
        ),
        lines: vec![(package.span.line, first), (other.span.line, second)],
    })
}

/// The error in pip's words.
fn cannot_install(first: &str, second: &str) -> String {
    format!(
        "ERROR: Cannot install {first} and {second} because these package versions have conflicting dependencies."
    )
}

/// torchvision checks on import that it was built for the CUDA of torch: for its major, before 0.16 for its minor too.
fn builds(torch: &DeclaredPackage, vision: &DeclaredPackage) -> Option<Conflict> {
    let cuda = |package: &DeclaredPackage| package.tag.as_deref().and_then(CudaVersion::from_tag);
    let (of_torch, of_vision) = (cuda(torch)?, cuda(vision)?);
    let strict = vision.exact.as_ref().is_some_and(|version| *version < Version::new([0, 16]));
    if of_torch.major() == of_vision.major() && (!strict || of_torch == of_vision) {
        return None;
    }
    let message =
        format!("{} is built for CUDA {of_vision}, and {} for CUDA {of_torch}", asked(vision), asked(torch));
    Some(Conflict {
        code: codes::CANNOT_BE_INSTALLED_TOGETHER,
        message,
        error: format!(
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA versions. PyTorch has CUDA \
             Version={of_torch} and torchvision has CUDA Version={of_vision}."
        ),
        fix: "take both from one index, such as https://download.pytorch.org/whl/cu126".to_owned(),
        lines: vec![(torch.span.line, asked(torch)), (vision.span.line, asked(vision))],
    })
}

/// Equal, where a version without a local part stands for all of its builds.
fn same(a: &Version, b: &Version) -> bool {
    if a.is_local() && b.is_local() { a == b } else { without_local(a) == without_local(b) }
}

fn asked(package: &DeclaredPackage) -> String {
    match (&package.exact, &package.range) {
        (Some(version), _) => format!("{}=={version}", package.name),
        (None, Some(range)) => format!("{}{range}", package.name),
        (None, None) => package.name.clone(),
    }
}
