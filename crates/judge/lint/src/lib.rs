//! Lints Dockerfiles of GPU images.
//!
//! A [`Rule`] is an entry of one table: its code, its severity, a function over the model of the file, and two examples that
//! the tests and the documentation use. A finding is computed for a target where there is one, and fixes are edits of the
//! original text, so that everything that is not fixed stays as it is, byte for byte.
#![allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "file names in images are case-sensitive"
)]

pub mod codes;

mod context;
mod discover;
mod files;
mod fix;
mod ignore;
mod linter;
mod online;
mod report;
mod rule;
mod rules;
mod selection;
mod source;
mod threads;

use cudock_base::Arch;
use cudock_dockerfile::{Build, SyntaxError};
use cudock_facts::Facts;
use cudock_facts::finding::Finding;
use cudock_manifests::{Files, NoFiles};
use cudock_target::Target;

pub use context::LintContext;
pub use files::{FixMode, LintError, LintedFile, dockerfiles};
pub use fix::{Fixed, apply, fix_all};
pub use linter::{LintFlags, LintSettings, Linter, SettingsError};
pub use online::ImageCheck;
pub use report::{FileReport, FindingReport, RuleReport, Totals, rule_reports};
pub use rule::{Report, Rule};
pub use rules::{RULES, rule};
pub use selection::Selection;
pub use source::LARGEST;

/// The machine for which a Dockerfile is linted.
#[derive(Debug, Clone)]
pub enum LintTarget {
    Gpu(Box<Target>),
    /// A machine without a GPU.
    Cpu,
}

/// Inputs of linting a file, besides its text.
pub struct LintOptions<'a> {
    pub facts: &'a Facts,
    pub target: Option<&'a LintTarget>,
    /// The files of the build context.
    pub files: &'a dyn Files,
    /// The processor that the image is built for, unless the file says so.
    pub arch: Arch,
    pub selection: &'a Selection,
    /// The check whether images exist in registries; without it, no request is sent.
    pub images: Option<&'a ImageCheck>,
}

impl<'a> LintOptions<'a> {
    /// All rules at their own severity, for any GPU, without a build context.
    pub fn new(facts: &'a Facts) -> Self {
        Self {
            facts,
            target: None,
            files: &NoFiles,
            arch: Arch::X86_64,
            selection: Selection::ALL,
            images: None,
        }
    }
}

/// Lints one Dockerfile. `path` is what findings name.
pub fn lint(path: &str, text: &str, options: &LintOptions<'_>) -> Result<Vec<Finding>, SyntaxError> {
    let threads = threads::count(text);
    let (arch, files) = (options.arch, options.files);
    let preload = || {
        if threads > 1 {
            preload(options.facts);
        }
    };
    let (file, ()) = threads::both(threads, || cudock_dockerfile::parse(text), preload);
    let file = file?;
    let (build, declared) =
        threads::both(threads, || Build::read(&file), || cudock_manifests::read_stages(&file, arch, files));
    let build = build?;
    let context = LintContext::new(&build, &declared, path, options);
    let ignores = ignore::Ignores::read(&build);
    let rules = RULES.iter().flat_map(|group| group.iter());
    let (own, of_check): (Vec<_>, Vec<_>) = rules.partition(|rule| rule.code.starts_with("CD07"));
    // The rules of `cudock check` wait for one prediction. It starts first, and they come last.
    let rules = std::iter::once(None).chain(own.into_iter().chain(of_check).map(Some));
    let mut findings = threads::flat_map(threads, &rules.collect::<Vec<_>>(), |rule, findings| match rule {
        Some(rule) => (rule.check)(&context, &mut Report::new(rule, &context, findings)),
        None => rules::predict(&context),
    });
    if let Some(images) = options.images {
        images.check(&context, &mut findings);
    }
    findings.retain(|finding| options.selection.has(finding.code) && !ignores.covers(finding));
    for finding in &mut findings {
        finding.severity = options.selection.severity(finding);
    }
    // The findings of a rule keep their order, whichever thread it ran in.
    findings.sort_by_key(|finding| {
        let span = finding.location.as_ref().map(|location| location.region.span);
        (span.map(|span| (span.start, span.end)), finding.code)
    });
    findings.dedup();
    drop(context);
    // Both are many small texts.
    threads::both(threads, || drop(build), || drop(declared));
    Ok(findings)
}

/// Reads the tables that almost every prediction needs.
fn preload(facts: &Facts) {
    facts.images();
    facts.packages();
}
