//! Files that the last stage copies: whether they exist, and whether they run there.

use std::collections::BTreeSet;

use cudock_base::text::path::absolute;
use cudock_base::text::suggest;
use cudock_dockerfile::{Command, CopyFrom, Stage, StepKind};
use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::lookup::split_reference;
use cudock_facts::version::CudaRelease;
use pep440_rs::Version;

use super::programs::{self, Copied};
use super::sources::{copies, image, source_stage, stage_name, system};
use crate::context::LintContext;
use crate::rule::Report;

/// The first glibc whose programs do not start on any older one: they need `__libc_start_main` of this version.
const SINGLE_LIBRARY_GLIBC: [u64; 2] = [2, 34];

/// The limit for the stages whose names are compared with an unknown one.
const MAX_SUGGESTED_STAGES: usize = 32;

/// Directories that images have.
const OF_SYSTEM: &str =
    "bin boot dev etc home lib lib32 lib64 libx32 media mnt opt proc root run sbin srv sys tmp usr var";

/// Commands that write to the paths in their arguments, to the working directory or to directories of the system.
const PREDICTABLE: &str = "
    [ [[ ]] : add-apt-repository apt apt-get apt-key cat cc c++ cd chmod chown clang clang++ cp curl dnf dpkg echo export exit
    false g++ gcc git groupadd install ldconfig ln microdnf mkdir mv nvcc pip pip3 popd printf pushd rm sed set strip tar test
    touch true unzip useradd wget yum";

/// The CUDA major of a stage's image.
fn cuda_major(context: &LintContext<'_>, stage: usize) -> Option<u8> {
    let release: CudaRelease = context.cuda_image(stage)?.cuda.parse().ok()?;
    Some(release.version().major())
}

/// The names of a library's files in a CUDA major.
fn sonames<'a>(facts: &'a Facts, library: &str, major: u8) -> &'a [String] {
    let row = facts.toolkits().soname.iter().find(|row| row.library == library);
    row.map_or(&[], |row| match major {
        11 => &row.cuda11,
        12 => &row.cuda12,
        13 => &row.cuda13,
        _ => &[],
    })
}

pub(super) fn stages_differ_in_cuda(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some(own) = cuda_major(context, context.build.last()) else { return };
    let mut seen = BTreeSet::new();
    for Copied { program, stage, span, path } in programs::copied(context) {
        let Some(other) = cuda_major(context, stage).filter(|other| *other != own) else { continue };
        let name = stage_name(context, stage);
        let fix = format!("start the last stage from an image of CUDA {other}");
        let missing = program.libraries.as_ref().map(|libraries| {
            libraries.iter().find_map(|library| {
                let needed = sonames(context.facts, library, other).first()?;
                (!sonames(context.facts, library, own).contains(needed)).then_some(needed)
            })
        });
        if missing == Some(None) || !program.is_cuda || !seen.insert(span.start) {
            continue;
        }
        if let Some(library) = missing.flatten() {
            let message = format!(
                "`{path}` needs {library} of CUDA {other} from {name}, and this image has CUDA {own}"
            );
            report.add(span, message, fix);
            continue;
        }
        let message = format!(
            "`{path}` was built with CUDA {other} in {name}, and this image has the libraries of CUDA {own}"
        );
        let mut finding = report.finding(span, message, fix);
        finding.severity = Severity::Warning;
        report.push(finding);
    }
}

pub(super) fn older_glibc(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some(own) = system(context, context.build.last()) else { return };
    let Some(own_glibc) = &own.glibc else { return };
    let mut seen = BTreeSet::new();
    for Copied { stage, span, path, .. } in programs::copied(context) {
        let Some(other) = system(context, stage) else { continue };
        let Some(glibc) = other.glibc.as_ref().filter(|glibc| *glibc > own_glibc) else { continue };
        if !seen.insert(span.start) {
            continue;
        }
        let message = format!(
            "`{path}` was linked to glibc {glibc} ({}), and {} has {own_glibc}: \"version `GLIBC_{glibc}' not found\"",
            other.name, own.name
        );
        let fix = format!("build it on {}, or start the last stage from {}", own.name, other.name);
        let mut finding = report.finding(span, message, fix);
        let is_new = |version: &Version| version.release() >= SINGLE_LIBRARY_GLIBC.as_slice();
        // Within one generation it depends on the functions that the program calls.
        if is_new(glibc) == is_new(own_glibc) {
            finding.severity = Severity::Warning;
        }
        report.push(finding);
    }
}

pub(super) fn musl(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let is_alpine = |stage| {
        image(context, stage)
            .is_some_and(|(repository, tag)| repository == "alpine" || tag.contains("alpine"))
    };
    let last = context.build.last();
    if !is_alpine(last) || installs_glibc(context, last) {
        return;
    }
    let mut seen = BTreeSet::new();
    for Copied { program, stage, span, path } in programs::copied(context) {
        if program.is_cuda && !is_alpine(stage) && seen.insert(span.start) {
            let message =
                format!("`{path}` and CUDA need glibc, and Alpine has musl: \"not found\" at its start");
            report.add(span, message, "start the last stage from nvidia/cuda:…-base-ubuntu…");
        }
    }
}

fn installs_glibc(context: &LintContext<'_>, stage: usize) -> bool {
    let mut steps = context.build.steps(stage).into_iter();
    steps.any(|step| {
        matches!(&step.kind, StepKind::Run(_)) && {
            let text = step.instruction.arguments.text.as_str();
            text.contains("glibc") || text.contains("gcompat") || text.contains("libc6-compat")
        }
    })
}

pub(super) fn unknown_stage(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let count = context.build.stages.len();
    for (index, stage) in context.stages() {
        for step in &stage.steps {
            let StepKind::Copy(copy) = &step.kind else { continue };
            let Some(CopyFrom::Image(name)) = &copy.from else { continue };
            let is_image = name.contains(['/', ':', '.', '@', '$']) || is_known_image(context, name);
            let written = format!("--from={name}");
            let Some(at) = step.instruction.arguments.text.find(&written).filter(|_| !is_image) else {
                continue;
            };
            let bytes = step.instruction.arguments.source_range(at..at + written.len());
            let span = context.build.lines.span(bytes);
            if let Ok(number) = name.parse::<usize>() {
                let before = cudock_base::text::format::count(index, "stage");
                let message = format!("no stage {number} to copy from: {before} before this one");
                report.add(span, message, "write the number or the name of an earlier stage");
                continue;
            }
            let defined = context.build.stages.iter().position(|other| is_called(other, name));
            if let Some(defined) = defined.filter(|defined| (index..count).contains(defined)) {
                let own = if defined == index { "this stage itself" } else { "a later stage" };
                report.add(
                    span,
                    format!("`{name}` is {own}, and only earlier ones can be copied from"),
                    "move it up",
                );
                continue;
            }
            let earlier = context.build.stages.iter().take(index).rev().take(MAX_SUGGESTED_STAGES);
            let earlier = earlier.filter_map(|stage| stage.name.as_deref());
            let near = suggest::nearest(name, earlier);
            let Some(nearest) = near.first() else { continue };
            let finding = report.finding(
                span,
                format!("no stage is called `{name}`"),
                format!("write `--from={nearest}`"),
            );
            let is_certain = near.len() == 1;
            let edit = || vec![context.edit(span, format!("--from={nearest}"))];
            report.push(if is_certain {
                finding.suggest(format!("copy from `{nearest}`"), edit())
            } else {
                finding
            });
        }
    }
}

fn is_called(stage: &Stage<'_>, name: &str) -> bool {
    stage.name.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(name))
}

fn is_known_image(context: &LintContext<'_>, name: &str) -> bool {
    let (repository, _) = split_reference(name);
    context.facts.images().plain.iter().any(|row| row.repository == repository)
}

pub(super) fn path_not_created(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    // What a stage mentions, once for each stage that is copied from.
    let mut mentioned: Vec<Option<Option<String>>> = vec![None; context.build.stages.len()];
    for (_, copy) in copies(context) {
        let Some(stage) = source_stage(copy) else { continue };
        let Some(slot) = mentioned.get_mut(stage) else { continue };
        let Some(text) = slot.get_or_insert_with(|| mentions(context, stage)) else { continue };
        for source in copy.sources.iter().filter(|source| !source.is_unresolved) {
            let path = absolute("/", &source.text);
            let Some(top) =
                path.split('/').nth(1).filter(|top| top.len() > 1 && !top.contains(['*', '?', '[']))
            else {
                continue;
            };
            if OF_SYSTEM.split(' ').any(|own| own == top) || text.contains(&format!("/{top}")) {
                continue;
            }
            let name = stage_name(context, stage);
            report.add(
                source.span,
                format!("nothing in {name} creates `/{top}`: \"not found\""),
                format!("copy from a path that {name} writes to"),
            );
        }
    }
}

/// The text of all steps of a stage, if no command writes to paths that it does not name.
fn mentions(context: &LintContext<'_>, stage: usize) -> Option<String> {
    let (repository, _) = image(context, stage)?;
    let tables = context.facts.images();
    let is_plain =
        repository == "nvidia/cuda" || tables.system.iter().any(|row| row.repository == repository);
    let is_predictable = |command: &Command<'_>| {
        PREDICTABLE.split_whitespace().any(|known| known == command.program)
            && !command.args.iter().any(|arg| arg.is_unresolved)
            && !["", "/"].contains(&&*command.workdir)
    };
    let mut text = String::new();
    for step in context.build.steps(stage) {
        match &step.kind {
            StepKind::Run(run) if run.commands.is_empty() || !run.commands.iter().all(is_predictable) => {
                return None;
            }
            StepKind::Copy(copy) if copy.target.is_unresolved || copy.target.text == "/" => return None,
            StepKind::Copy(copy) => text.push_str(&copy.target.text),
            // A relative one is below the root, or below an earlier one.
            StepKind::Workdir(_) => text.push('/'),
            StepKind::Other => return None,
            _ => {}
        }
        text.push_str(&step.instruction.arguments.text);
        text.push('\n');
    }
    is_plain.then_some(text)
}

pub(super) fn unused_stage(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    // With names from arguments, stages are alternatives.
    let is_chosen = |stage: &Stage<'_>| {
        stage.base.is_some() && stage.from.arguments.text.contains('$')
            || stage.steps.iter().any(|step| match &step.kind {
                StepKind::Copy(copy) => {
                    copy.flags.iter().any(|flag| flag.starts_with("--from=") && flag.contains('$'))
                }
                _ => false,
            })
    };
    if context.build.stages.iter().any(is_chosen) {
        return;
    }
    let is_used = |index: usize| {
        let of_stage = |stage: &Stage<'_>| {
            stage.base == Some(index)
                || stage.steps.iter().any(|step| match &step.kind {
                    StepKind::Copy(copy) => source_stage(copy) == Some(index),
                    StepKind::Run(run) => run
                        .mounts
                        .iter()
                        .any(|mount| mount.from.as_ref().and_then(CopyFrom::stage) == Some(index)),
                    _ => false,
                })
        };
        context.build.stages.iter().skip(index + 1).any(of_stage)
    };
    let unneeded = context.stages().zip(&context.needed).filter(|(_, needed)| !**needed);
    // Looking at all later stages for each one would be slow for a file of hundreds.
    for ((index, stage), _) in unneeded.take(16) {
        // A stage with a name is mostly a target of its own; one that builds is not.
        let is_target =
            stage.name.as_deref().is_some_and(|name| !name.to_ascii_lowercase().starts_with("build"));
        if !is_target && !is_used(index) {
            let name = stage_name(context, index);
            let message = format!("nothing uses {name}: `docker build` skips it");
            report.add(stage.from.span, message, "copy its results with `COPY --from`, or remove it");
        }
    }
}

pub(super) fn packages_of_another_python(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some((repository, tag)) = image(context, context.build.last()) else { return };
    let minor = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut parts = text.get(..end)?.split('.').filter(|part| !part.is_empty());
        Some(format!("{}.{}", parts.next()?, parts.next()?))
    };
    let Some(own) = minor(tag).filter(|_| repository == "python") else { return };
    for (_, copy) in copies(context).filter(|(_, copy)| copy.from.is_some()) {
        let Some((_, rest)) = copy.target.text.split_once("/usr/local/lib/python") else { continue };
        let Some(other) = minor(rest).filter(|other| *other != own && !copy.target.is_unresolved) else {
            continue;
        };
        let message = format!("Python {own} of this image does not look into the packages of Python {other}");
        report.add(copy.target.span, message, format!("install them with Python {own}"));
    }
}
