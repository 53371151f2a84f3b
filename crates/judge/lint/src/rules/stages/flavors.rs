//! Whether the flavor of the last stage has what its programs link to, and not more.

use std::collections::{BTreeMap, BTreeSet};

use cudock_base::text::format;
use cudock_base::text::path::absolute;
use cudock_dockerfile::StepKind;
use cudock_facts::lookup::ImageTag;
use cudock_facts::version::CudaRelease;

use super::programs::{self, Copied, Part, part_of};
use super::sources::{copies, source_stage, system};
use crate::context::LintContext;
use crate::rule::Report;

/// Commands that add no program which could load a library.
const ADDS_NO_PROGRAM: &str = "adduser apt apt-get chmod chown dnf echo groupadd ldconfig ln microdnf mkdir rm set update-ca-certificates useradd yum";

/// The parts of CUDA in a flavor.
fn has(flavor: &str, part: Part) -> bool {
    match part {
        Part::Base => true,
        Part::Runtime => flavor.contains("runtime") || flavor.contains("devel"),
        Part::Cudnn => flavor.starts_with("cudnn"),
    }
}

/// The name of a flavor of this release and system with some parts, if there is one.
fn flavor_with(context: &LintContext<'_>, tag: &ImageTag, parts: &BTreeSet<Part>) -> Option<ImageTag> {
    let tags = context.facts.images().all_tags().filter(|known| known.cuda == tag.cuda && known.os == tag.os);
    let is_enough = |known: &ImageTag| {
        !known.flavor.contains("devel")
            && !known.flavor.contains("tensorrt")
            && parts.iter().all(|part| has(&known.flavor, *part))
    };
    let size = |known: &ImageTag| [Part::Runtime, Part::Cudnn].map(|part| has(&known.flavor, part));
    tags.filter(is_enough).min_by_key(size)
}

pub(super) fn library_missing(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let last = context.build.last();
    let Some(declared) = context.declared.get(last) else { return };
    if !declared.cuda_packages.is_empty() || !declared.packages.is_empty() {
        return;
    }
    let tag = context.cuda_image(last);
    let is_plain = system(context, last).is_some();
    if tag.is_none() && !is_plain {
        return;
    }
    let mut is_copied = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for Copied { program, span, path, .. } in programs::copied(context) {
        let Some(libraries) = &program.libraries else { continue };
        let is_missing = |library: &&String| {
            let part = part_of(library);
            part.is_some_and(|part| tag.is_none_or(|tag| !has(&tag.flavor, part)))
                && !*is_copied.entry((*library).clone()).or_insert_with(|| copies_library(context, library))
        };
        let missing: Vec<&String> = libraries.iter().filter(is_missing).collect();
        if missing.is_empty() || !seen.insert(span.start) {
            continue;
        }
        let names = missing.iter().map(|library| format!("lib{library}.so")).collect::<Vec<_>>().join(", ");
        let parts: BTreeSet<Part> = libraries.iter().filter_map(|library| part_of(library)).collect();
        let better = tag.and_then(|tag| flavor_with(context, tag, &parts));
        let lacking = match tag {
            Some(tag) => format!("the flavor `{}`", tag.flavor),
            None => "this image".to_owned(),
        };
        let message = format!("`{path}` links to {names}, which {lacking} does not have");
        let Some(better) = better else {
            report.add(span, message, "start the last stage from an image of nvidia/cuda that has it");
            continue;
        };
        let finding =
            report.finding(span, message, format!("start the last stage from nvidia/cuda:{better}"));
        let edit = tag.and_then(|tag| context.replace_in_image(last, &tag.to_string(), &better.to_string()));
        report.push(match edit {
            Some(edit) => finding.suggest(format!("use {better}"), vec![edit]),
            None => finding,
        });
    }
}

/// Whether the last stage copies a library, or a directory that may hold it.
fn copies_library(context: &LintContext<'_>, library: &str) -> bool {
    let directories = ["/cuda", "/deps", "/lib", "/lib64", "/libs", "/targets", "/usr/local", "linux-gnu"];
    let mut sources = copies(context).flat_map(|(_, copy)| copy.sources.iter().chain([&copy.target]));
    sources.any(|path| {
        let path = path.text.trim_end_matches('/');
        [library, ".so", "/cuda/", "/cuda-"].iter().any(|part| path.contains(part))
            || directories.iter().any(|directory| path.ends_with(directory))
    })
}

/// The tag of the last stage and the parts of CUDA that its programs link to, if everything in it is known.
fn linked_parts(context: &LintContext<'_>) -> Option<(ImageTag, BTreeSet<Part>)> {
    let last = context.build.last();
    let tag = context.cuda_image(last)?.clone();
    let declared = context.declared.get(last)?;
    if !declared.packages.is_empty() || !declared.cuda_packages.is_empty() {
        return None;
    }
    let copied = programs::copied(context);
    if copied.is_empty() {
        return None;
    }
    for step in context.build.steps(last) {
        let is_known = match &step.kind {
            StepKind::Run(run) => run.commands.iter().all(|command| {
                ADDS_NO_PROGRAM.split(' ').any(|known| known == command.program)
                    && !command.args.iter().any(|arg| arg.text.contains("python") || arg.is_unresolved)
            }),
            StepKind::Copy(copy) => {
                source_stage(copy).is_some()
                    || copy.from.is_none()
                        && copy.sources.iter().all(|source| programs::is_text(&source.text))
            }
            _ => true,
        };
        if !is_known {
            return None;
        }
    }
    let is_program = |path: &str| {
        let path = absolute("/", path);
        programs::is_text(&path) || copied.iter().any(|one| one.path == path && one.program.output.is_some())
    };
    let from_stages = copies(context).filter(|(_, copy)| copy.from.is_some());
    let mut sources = from_stages.flat_map(|(_, copy)| &copy.sources).take(64);
    if !sources.all(|source| !source.is_unresolved && is_program(&source.text)) {
        return None;
    }
    let mut parts = BTreeSet::new();
    for one in &copied {
        // A directory may hold more than the program in it.
        if one.program.output.as_deref() != Some(one.path.as_str()) {
            return None;
        }
        parts.extend(one.program.libraries.as_ref()?.iter().filter_map(|library| part_of(library)));
    }
    Some((tag, parts))
}

pub(super) fn unused_math_libraries(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some((tag, parts)) = linked_parts(context) else { return };
    if tag.flavor.contains("runtime") && parts.iter().all(|part| *part == Part::Base) {
        let what = "links to none of the math libraries, NCCL and cuDNN";
        smaller(context, report, &tag, &parts, what);
    }
}

pub(super) fn unused_cudnn(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some((tag, parts)) = linked_parts(context) else { return };
    if has(&tag.flavor, Part::Cudnn)
        && tag.flavor.contains("runtime")
        && parts.contains(&Part::Runtime)
        && !parts.contains(&Part::Cudnn)
    {
        smaller(context, report, &tag, &parts, "does not link to cuDNN");
    }
}

fn smaller(
    context: &LintContext<'_>,
    report: &mut Report<'_, '_>,
    tag: &ImageTag,
    parts: &BTreeSet<Part>,
    what: &str,
) {
    let last = context.build.last();
    let Some(better) = flavor_with(context, tag, parts).filter(|better| better != tag) else { return };
    let (Some(span), Ok(cuda)) =
        (context.build.base_image(last).map(|image| image.span), tag.cuda.parse::<CudaRelease>())
    else {
        return;
    };
    let saving = context.facts.images().flavor_saving(cuda, &tag.flavor, &better.flavor);
    let size =
        saving.map_or_else(String::new, |bytes| format!(": at least {} for nothing", format::bytes(bytes)));
    let message = format!("what this stage runs {what}{size}");
    let mut finding = report.finding(span, message, format!("use nvidia/cuda:{better}"));
    finding.saves_bytes = saving;
    let edit = context.replace_in_image(last, &tag.to_string(), &better.to_string());
    report.push(match edit {
        Some(edit) => finding.suggest(format!("use {better}"), vec![edit]),
        None => finding,
    });
}
