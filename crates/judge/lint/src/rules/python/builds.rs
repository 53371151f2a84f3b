//! Builds of torch: for which CUDA, from which index, and for which Python.

use cudock_base::Span;
use cudock_dockerfile::{Command, StepKind};
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::lookup::{NamedCuda, TorchWheel, split_reference};
use cudock_facts::version::CudaVersion;
use cudock_manifests::DeclaredPackage;

use super::super::pip::{
    TORCH_FAMILY, is_pip, is_torch_only, source_builds, toolkit_of_base, torch_cuda, use_index,
};
use super::packages::{by_pip, newest_in_index, newest_torch, shown};
use crate::context::{Compilation, Installed, LintContext};
use crate::rule::Report;

pub(super) fn cuda_version_mismatch(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let builds = source_builds(context);
    for (stage, base) in toolkits(context) {
        let Some(torch) = by_pip(context, stage).find(|installed| installed.package.name == "torch") else {
            continue;
        };
        let newest = newest_torch(context, stage)
            .filter(|_| torch.package.exact.is_none() && torch.package.tag.is_none());
        let newest = newest
            .map(|release| DeclaredPackage { exact: Some(release.version.clone()), ..torch.package.clone() });
        let package = newest.as_ref().unwrap_or(torch.package);
        let Some(cuda) = torch_cuda(context, package, stage).filter(|cuda| cuda.major() != base.major())
        else {
            continue;
        };
        let Some((name, span)) = extension(context, stage, builds) else { continue };
        let message = format!(
            "{name} is compiled with nvcc {base} for {}, which is built for CUDA {cuda}: torch refuses another major version",
            shown(package)
        );
        let tags = package.exact.iter().flat_map(|version| context.facts.frameworks().torch_builds(version));
        let fitting = tags.filter(|build| build.cuda.major() == base.major()).max_by_key(|build| build.cuda);
        let fix = fitting.map_or_else(
            || format!("take a devel image of CUDA {}", cuda.major()),
            |build| format!("install torch from https://download.pytorch.org/whl/{}, or take a devel image of CUDA {}", build.tag, cuda.major()),
        );
        let finding = report.finding(span, message, fix);
        // Without a version, the build that is newest today decides.
        let severity = if newest.is_some() { Severity::Warning } else { Severity::Error };
        report.push(Finding { severity, ..finding });
    }
}

/// Stages with nvcc from an nvidia/cuda image, and with no other.
fn toolkits(context: &LintContext<'_>) -> impl Iterator<Item = (usize, CudaVersion)> {
    let has_other = |stage: usize| {
        let packages = context.declared.get(stage).map(|declared| declared.cuda_packages.as_slice());
        packages.unwrap_or_default().iter().any(|package| {
            package.name == "cuda" || package.name.contains("toolkit") || package.name.contains("nvcc")
        })
    };
    let with_nvcc = context.stages().filter_map(|(stage, _)| Some((stage, toolkit_of_base(context, stage)?)));
    with_nvcc.filter(move |(stage, _)| !has_other(*stage))
}

/// The first extension of torch that a stage surely compiles.
fn extension(context: &LintContext<'_>, stage: usize, builds: &[Compilation<'_>]) -> Option<(String, Span)> {
    let compiled = &context.declared.get(stage)?.compiled;
    let own = compiled.iter().find(|compiled| {
        // These may be anything; a project that was read has GPU code.
        let is_unread = ["git+", "setup.py"].iter().any(|source| compiled.name.contains(source));
        compiled.is_extension && compiled.file.is_none() && !is_unread
    });
    let of_tables = || {
        let build = builds.iter().find(|build| build.by.stage == stage && !build.row.tries_wheels)?;
        Some((build.name.to_owned(), build.span))
    };
    own.map(|compiled| (format!("the {}", compiled.name), compiled.span)).or_else(of_tables)
}

pub(super) fn extra_index_loses(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        for Installed { package, by } in
            by_pip(context, stage).filter(|one| one.package.name == "torch" && is_pip(one.by.command))
        {
            let option = by.command.args.iter().find(|arg| arg.text.starts_with("--extra-index-url"));
            let (Some(tag), Some(option)) = (package.tag.as_deref(), option) else { continue };
            let url = by.command.value_of("--extra-index-url").unwrap_or_default();
            if package.exclusive || !url.trim_end_matches('/').ends_with(tag) {
                continue;
            }
            let Some(newest) = newest_torch(context, stage) else { continue };
            let frameworks = context.facts.frameworks();
            let version = match (&package.exact, &package.range) {
                // A local version is of the index alone.
                (Some(exact), _) if exact.is_local() => continue,
                (Some(exact), _) => exact,
                (None, None) => &newest.version,
                (None, Some(_)) => continue,
            };
            let (Some(release), Some(in_index)) = (frameworks.torch(version), newest_in_index(context, tag))
            else {
                continue;
            };
            if frameworks.torch_build(version, TorchWheel::Tag(tag)).is_some() || in_index >= version {
                continue;
            }
            let message = format!(
                "the index {tag} ends with torch {in_index}, so pip takes {version} of PyPI, which is built for CUDA {}",
                release.cuda
            );
            let fix = "name the index with --index-url";
            let finding = report.finding(option.span, message, fix);
            let source = context.source(option.span);
            let is_plain = by.command.is_exact && is_only_torch_beside(by.command) && package.exact.is_none();
            let edit = context.edit(option.span, source.replacen("--extra-index-url", "--index-url", 1));
            report.push(if is_plain { finding.suggest(fix, vec![edit]) } else { finding });
        }
    }
}

/// Whether a command installs packages of PyTorch's indexes alone, besides the option for the index.
fn is_only_torch_beside(command: &Command<'_>) -> bool {
    let mut rest = command.clone();
    let at = rest.args.iter().position(|arg| arg.text.starts_with("--extra-index-url"));
    if let Some(at) = at {
        let has_value = rest.args.get(at).is_some_and(|arg| arg.text.contains('='));
        rest.args.drain(at..(at + if has_value { 1 } else { 2 }).min(rest.args.len()));
    }
    is_torch_only(&rest)
}

pub(super) fn no_wheel_for_python(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages().filter(|(stage, _)| by_pip(context, *stage).next().is_some()) {
        let Some(python) = python_of_image(context, stage) else { continue };
        for Installed { package, .. } in by_pip(context, stage) {
            let Some(version) = &package.exact else { continue };
            let frameworks = context.facts.frameworks();
            let wheels = match package.name.as_str() {
                "torch" => frameworks.torch(version).map(|release| &release.python),
                "tensorflow" => frameworks.tensorflow(version).map(|release| &release.python),
                "onnxruntime-gpu" => frameworks
                    .onnxruntime_gpu(version)
                    .filter(|release| release.version == *version)
                    .map(|release| &release.python),
                _ => None,
            };
            let Some(wheels) =
                wheels.filter(|wheels| !wheels.is_empty() && !wheels.iter().any(|own| own == python))
            else {
                continue;
            };
            let message = format!(
                "{} has no wheel for Python {python}: pip finds no matching distribution",
                shown(package)
            );
            report.add(package.span, message, format!("take Python {}", wheels.join(", ")));
        }
    }
}

/// The Python of a `python` image, if the stage brings no other one.
fn python_of_image<'a>(context: &LintContext<'a>, stage: usize) -> Option<&'a str> {
    let image = &context.build.base_image(stage)?.reference;
    if split_reference(&image.text).0 != "python" || image.unknown.is_some() {
        return None;
    }
    let others = ["conda", "mamba", "micromamba", "pyenv", "uv", "pixi"];
    let brings_another = context.build.steps(stage).iter().any(|step| match &step.kind {
        StepKind::Run(run) => run.commands.iter().any(|command| others.contains(&&*command.program)),
        _ => false,
    });
    let tag = context.build.base_image(stage)?.reference.text.rsplit_once(':')?.1;
    let version = tag.split(['-', '@']).next()?;
    let minor = version.match_indices('.').nth(1).map_or(version.len(), |(at, _)| at);
    let version = version.get(..minor)?;
    (!brings_another && version.starts_with("3.")).then_some(version)
}

pub(super) fn mixed_torch_builds(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        let Some(torch) = by_pip(context, stage).find(|installed| installed.package.name == "torch") else {
            continue;
        };
        let is_cpu = |package: &DeclaredPackage| package.tag.as_deref() == Some("cpu");
        let is_cuda =
            |package: &DeclaredPackage| package.tag.as_deref().is_none_or(|tag| tag.starts_with("cu"));
        let others = by_pip(context, stage).filter(|one| TORCH_FAMILY.contains(&one.package.name.as_str()));
        for Installed { package, by } in others {
            let differs =
                is_cpu(package) && is_cuda(torch.package) || is_cuda(package) && is_cpu(torch.package);
            // Without a version, pip keeps what fits to the torch that is there.
            if package.name == "torch" || !differs || package.exact.is_none() {
                continue;
            }
            let (one, other) = if is_cpu(package) { ("the CPU", "CUDA") } else { ("CUDA", "the CPU") };
            let message = format!(
                "{} is a build for {one}, and {} one for {other}: its operators fail beside that torch",
                shown(package),
                shown(torch.package)
            );
            let finding = report.finding(package.span, message, "install both from one index");
            let tag = torch.package.tag.as_deref().unwrap_or_default();
            let edits = if tag.is_empty() { Vec::new() } else { use_index(context, by, package, tag) };
            report.push(if edits.is_empty() {
                finding
            } else {
                finding.suggest(format!("take it from {tag}"), edits)
            });
        }
    }
}

pub(super) fn mixed_cuda_majors(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        let Some(torch) = by_pip(context, stage).find(|installed| installed.package.name == "torch") else {
            continue;
        };
        let Some(cuda) = torch_cuda(context, torch.package, stage) else { continue };
        for Installed { package, .. } in by_pip(context, stage) {
            let of_nvidia =
                ["nvidia-", "tensorrt-", "cupy-"].iter().any(|start| package.name.starts_with(start));
            let Some((_, named)) = NamedCuda::split(&package.name).filter(|_| of_nvidia) else { continue };
            if named.major == cuda.major() {
                continue;
            }
            let message = format!(
                "{} is for CUDA {}, and {} brings CUDA {cuda}: two sets of libraries are installed, and the first that is loaded wins",
                package.name,
                named.major,
                shown(torch.package)
            );
            let fix = format!(
                "take the package for CUDA {}, or leave it out: torch brings its own libraries",
                cuda.major()
            );
            report.add(package.span, message, fix);
        }
    }
}
