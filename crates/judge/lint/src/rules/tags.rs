//! Image references: tags that are missing, moving, deleted or misspelled, and platforms that do not fit.

use std::collections::HashMap;

use cudock_base::Arch;
use cudock_dockerfile::{Stage, StepKind};
use cudock_facts::finding::Severity;
use cudock_facts::lookup::{CudaImage, ImageTag, split_reference};
use cudock_facts::tables::{System, TagStatus};
use cudock_facts::version::CudaRelease;

use crate::context::LintContext;
use crate::rule::{Report, Rule};

/// Arguments that `BuildKit` sets by itself.
const PLATFORM_ARGS: [&str; 8] = [
    "BUILDARCH",
    "BUILDOS",
    "BUILDPLATFORM",
    "BUILDVARIANT",
    "TARGETARCH",
    "TARGETOS",
    "TARGETPLATFORM",
    "TARGETVARIANT",
];

/// The last CUDA version with images for ppc64le.
const LAST_FOR_PPC64LE: &str = "12.4.1";

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0613",
        name: "image-does-not-exist",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.4.1-cudnn8-runtime-ubuntu22.04\n",
        good: "FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\n",
        check: image_does_not_exist,
    },
    Rule {
        code: "CD0614",
        name: "image-past-support",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.4.0-base-ubuntu22.04\n",
        good: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n",
        check: image_past_support,
    },
    Rule {
        code: "CD0702",
        name: "missing-tag",
        severity: Severity::Warning,
        also: &["DL3006"],
        is_fixable: false,
        bad: "FROM nvcr.io/nvidia/pytorch\n",
        good: "FROM nvcr.io/nvidia/pytorch:25.09-py3\n",
        check: missing_tag,
    },
    Rule {
        code: "CD0703",
        name: "latest-tag",
        severity: Severity::Warning,
        also: &["DL3007"],
        is_fixable: false,
        bad: "FROM pytorch/pytorch:latest\n",
        good: "FROM pytorch/pytorch:2.6.0-cuda12.6-cudnn9-runtime\n",
        check: latest_tag,
    },
    Rule {
        code: "CD0704",
        name: "end-of-life-distribution",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:11.8.0-base-ubuntu18.04\n",
        good: "FROM nvidia/cuda:11.8.0-base-ubuntu22.04\n",
        check: end_of_life_distribution,
    },
    Rule {
        code: "CD0705",
        name: "digest-without-tag",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
        good: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
        check: digest_without_tag,
    },
    Rule {
        code: "CD0706",
        name: "undefined-argument-in-from",
        severity: Severity::Error,
        also: &["UndefinedArgInFrom"],
        is_fixable: false,
        bad: "FROM nvidia/cuda:${CUDA_VERSION}-base-ubuntu22.04\nARG CUDA_VERSION=12.4.1\n",
        good: "ARG CUDA_VERSION=12.4.1\nFROM nvidia/cuda:${CUDA_VERSION}-base-ubuntu22.04\n",
        check: undefined_argument_in_from,
    },
    Rule {
        code: "CD0707",
        name: "argument-without-default",
        severity: Severity::Note,
        also: &["InvalidDefaultArgInFrom"],
        is_fixable: false,
        bad: "ARG CUDA_VERSION\nFROM nvidia/cuda:${CUDA_VERSION}-base-ubuntu22.04\n",
        good: "ARG CUDA_VERSION=12.4.1\nFROM nvidia/cuda:${CUDA_VERSION}-base-ubuntu22.04\n",
        check: argument_without_default,
    },
    Rule {
        code: "CD0708",
        name: "platform-without-image",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "FROM --platform=linux/ppc64le nvidia/cuda:12.6.3-base-ubuntu22.04\n",
        good: "FROM --platform=linux/arm64 nvidia/cuda:12.6.3-base-ubuntu22.04\n",
        check: platform_without_image,
    },
];

/// Stages whose image is an image, not another stage, and known.
fn images<'a>(context: &LintContext<'a>) -> impl Iterator<Item = (usize, &'a Stage<'a>, &'a str)> {
    let known = |(index, stage): (usize, &'a Stage<'a>)| {
        let reference = &stage.image.reference;
        let is_image = stage.base.is_none() && reference.unknown.is_none() && reference.text != "scratch";
        is_image.then_some((index, stage, reference.text.as_str()))
    };
    context.stages().filter_map(known)
}

/// Whether the tables know the tags of a repository, so that [`image_does_not_exist`] judges them.
fn has_listed_tags(context: &LintContext<'_>, repository: &str) -> bool {
    repository == "nvidia/cuda"
        || context.facts.images().renamed.iter().any(|row| row.repository == repository)
}

/// Whether it is an image of a distribution or a language.
fn is_plain(context: &LintContext<'_>, repository: &str) -> bool {
    context.facts.images().plain.iter().any(|row| row.repository == repository)
}

fn missing_tag(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, stage, image) in images(context) {
        let (repository, tag) = split_reference(image);
        // One word may be the name of a build context, which is given to the build.
        let is_image = repository.contains('/') || is_plain(context, repository);
        if is_image && tag.is_empty() && !image.contains('@') && !has_listed_tags(context, repository) {
            let message = format!("`{image}` has no tag: the build takes whatever `latest` is that day");
            report.add(stage.image.span, message, "name a tag");
        }
    }
}

fn latest_tag(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, stage, image) in images(context) {
        let (repository, tag) = split_reference(image);
        if tag == "latest" && !image.contains('@') && !has_listed_tags(context, repository) {
            let message =
                format!("`{image}` moves with every release: the next build may have other libraries");
            report.add(stage.image.span, message, "name the tag of a version");
        }
    }
}

fn image_does_not_exist(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let tables = context.facts.images();
    for (index, stage, image) in images(context).filter(|(_, _, image)| !image.contains('@')) {
        let (repository, tag) = split_reference(image);
        let (reason, near) = if repository == "nvidia/cuda" {
            match context.listed_image(tag) {
                Some(CudaImage::Missing { reason, near }) => (reason.clone(), near.clone()),
                _ => continue,
            }
        } else {
            let renamed = tables.renamed.iter().find(|row| row.repository == repository);
            let Some(renamed) = renamed else { continue };
            (renamed.text.clone(), tables.nearest(tag))
        };
        // A default such as `notset` stands for a value that the build is given.
        let is_placeholder = !tag.starts_with(|first: char| first.is_ascii_digit());
        if is_placeholder && stage.from.arguments.text.contains('$') {
            continue;
        }
        let same = near.iter().find(|near| is_same_image(tag, near));
        let fix = near.first().map_or_else(
            || "choose a tag that `cudock facts image` lists".to_owned(),
            |near| format!("use nvidia/cuda:{near}"),
        );
        let message = format!("`{image}` does not exist: {reason} (\"manifest unknown\")");
        let mut finding = report.finding(stage.image.span, message, fix);
        if context.needed.get(index) == Some(&false) {
            // A build of the last stage does not pull it.
            finding.severity = Severity::Note;
        }
        if let Some(same) = same.filter(|_| repository == "nvidia/cuda")
            && let Some(edit) = context.replace_in_image(index, tag, same)
        {
            finding = finding.suggest(format!("use {same}"), vec![edit]);
        }
        report.push(finding);
    }
}

/// Whether a tag means the same image as another, but for the spelling of cuDNN and the patch number.
fn is_same_image(written: &str, near: &str) -> bool {
    let (Some(written), Some(near)) = (ImageTag::parse(written), ImageTag::parse(near)) else { return false };
    let plain = |tag: &ImageTag| tag.flavor.rsplit('-').next().map(str::to_owned);
    let has_cudnn = |tag: &ImageTag| tag.flavor.starts_with("cudnn");
    let minor = |tag: &ImageTag| tag.cuda.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    minor(&written) == minor(&near)
        && written.os == near.os
        && plain(&written) == plain(&near)
        && has_cudnn(&written) == has_cudnn(&near)
}

fn image_past_support(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let tables = context.facts.images();
    let mut successors: HashMap<&str, Option<ImageTag>> = HashMap::new();
    for (index, stage, image) in images(context) {
        let (repository, written) = split_reference(image);
        if repository != "nvidia/cuda" || written.is_empty() {
            continue;
        }
        let Some(CudaImage::Found { tag, row: Some(row) }) = context.listed_image(written) else { continue };
        if row.status != TagStatus::Unsupported {
            continue;
        }
        let successor = successors.entry(written).or_insert_with(|| tables.successor(tag)).as_ref();
        let fix = match successor {
            Some(next) => format!("use nvidia/cuda:{next}"),
            None => "choose a tag that `cudock facts image` lists".to_owned(),
        };
        let message = format!(
            "NVIDIA ended support for the images of CUDA {}: their tags may be deleted at any time",
            row.cuda
        );
        let mut finding = report.finding(stage.image.span, message, fix);
        let minor = |tag: &ImageTag| tag.cuda.parse::<CudaRelease>().ok().map(CudaRelease::version);
        // Another minor version is not a drop-in.
        if let Some(next) = successor.filter(|next| minor(next) == minor(tag))
            && let Some(edit) = context.replace_in_image(index, written, &next.to_string())
        {
            finding = finding.suggest(format!("use {next}"), vec![edit]);
        }
        report.push(finding);
    }
}

fn end_of_life_distribution(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let tables = context.facts.images();
    for (index, stage, image) in images(context) {
        let (repository, tag) = split_reference(image);
        let Some(system) = tables.system(repository, tag) else { continue };
        let Some(end) = system.end_of_life.filter(|end| *end <= tables.table.as_of) else { continue };
        let is_missing = repository == "nvidia/cuda"
            && matches!(context.listed_image(tag), Some(CudaImage::Missing { .. }));
        if is_missing || context.needed.get(index) == Some(&false) {
            continue;
        }
        let moved = moved_packages(context, index, system).map_or_else(String::new, |host| {
            format!(", and its packages moved to {host}: installing any fails")
        });
        let message = format!("{} has no updates since {end}{moved}", system.name);
        report.add(stage.image.span, message, "use an image of a newer release of the distribution");
    }
}

/// The host that a stage's packages moved to, if it installs some and the file does not name that host.
fn moved_packages<'a>(context: &LintContext<'_>, index: usize, system: &'a System) -> Option<&'a str> {
    let host = system.packages_moved_to.as_deref()?;
    let installs = context.commands().any(|(stage, _, command)| {
        stage == index && ["apt-get", "apt", "yum", "dnf"].contains(&&*command.program)
    });
    (installs && !context.build.text().contains(host)).then_some(host)
}

fn digest_without_tag(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, stage, image) in images(context) {
        let (repository, tag) = split_reference(image);
        let tells_cuda = repository == "nvidia/cuda"
            || repository.contains("pytorch")
            || repository.contains("tensorflow");
        if image.contains('@') && tag.is_empty() && tells_cuda {
            let message =
                "a digest alone hides which CUDA the image has, from readers and from tools that update it";
            report.add(
                stage.image.span,
                message,
                format!("write the tag before the digest: `{repository}:TAG@sha256:…`"),
            );
        }
    }
}

/// The unknown variable of each `FROM`, and whether it is declared before the first one.
fn unknown_arguments<'a>(
    context: &'a LintContext<'_>,
) -> impl Iterator<Item = (&'a Stage<'a>, &'a str, bool)> {
    let declared = move |name: &str| {
        context.build.head.iter().any(|step| match &step.kind {
            StepKind::Arg(settings) => settings.iter().any(|setting| setting.name == name),
            _ => false,
        })
    };
    context.stages().filter_map(move |(_, stage)| {
        let name = stage.image.reference.unknown.as_deref()?;
        (!PLATFORM_ARGS.contains(&name)).then(|| (stage, name, declared(name)))
    })
}

fn undefined_argument_in_from(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, name, _) in unknown_arguments(context).filter(|(_, _, is_declared)| !is_declared) {
        let message =
            format!("`${name}` is empty here: `FROM` sees only arguments declared before the first `FROM`");
        report.add(stage.image.span, message, format!("write `ARG {name}=…` above the first `FROM`"));
    }
}

fn argument_without_default(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let declared = |name: &str| {
        let settings = context.build.head.iter().filter_map(|step| match &step.kind {
            StepKind::Arg(settings) => Some(settings),
            _ => None,
        });
        settings.flatten().find(|setting| setting.name == name && setting.value.is_none())
    };
    for (_, name, _) in unknown_arguments(context) {
        let Some(setting) = declared(name) else { continue };
        let message =
            format!("the build fails without `--build-arg {name}=…`, and nothing can check the image");
        report.add(setting.span, message, format!("give it a default: `ARG {name}=…`"));
    }
}

/// The processor of a constant `--platform`, as images name it.
fn processor<'c>(stage: &'c Stage<'_>) -> Option<&'c str> {
    let platform = stage.platform.as_ref().filter(|platform| platform.unknown.is_none())?;
    platform.text.split('/').nth(1).map(Arch::to_oci)
}

fn platform_without_image(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let last: Option<CudaRelease> = LAST_FOR_PPC64LE.parse().ok();
    for (_, stage, image) in images(context) {
        let (repository, tag) = split_reference(image);
        let cuda = ImageTag::parse(tag).and_then(|tag| tag.cuda.parse::<CudaRelease>().ok());
        let Some(processor) = processor(stage).filter(|_| repository == "nvidia/cuda") else { continue };
        let exists = Arch::parse(processor).is_some() || processor == "ppc64le" && cuda <= last;
        if !exists {
            let message = format!("`{image}` does not exist for {processor}");
            report.add(stage.from.span, message, "build for linux/amd64 or linux/arm64");
        }
    }
}
