//! Drivers, toolkits and package repositories of NVIDIA inside an image.

use std::borrow::Cow;
use std::collections::HashSet;

use cudock_dockerfile::{Command, CommandArg, Copy, StepKind};
use cudock_facts::finding::Severity;
use cudock_facts::lookup::ImageTag;
use cudock_facts::version::{CudaRelease, CudaVersion};

use super::packages::{does, installed, is_apt, removed};
use crate::context::LintContext;
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0758",
        name: "driver-in-image",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM ubuntu:22.04\nRUN apt-get update && apt-get install -y nvidia-utils-535\n",
        good: "FROM ubuntu:22.04\nRUN apt-get update && apt-get install -y cuda-toolkit-12-4 libnvidia-ml-dev\n",
        check: driver_in_image,
    },
    Rule {
        code: "CD0759",
        name: "toolkit-on-cuda-image",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN apt-get update && apt-get install -y cuda-toolkit-12-4\n",
        good: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN apt-get update && apt-get install -y cuda-nvcc-12-4\n",
        check: toolkit_on_cuda_image,
    },
    Rule {
        code: "CD0760",
        name: "container-toolkit-in-image",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM ubuntu:22.04\nRUN apt-get update && apt-get install -y nvidia-container-toolkit\n",
        good: "FROM ubuntu:22.04\nRUN apt-get update && apt-get install -y docker.io nvidia-container-toolkit\n",
        check: container_toolkit_in_image,
    },
    Rule {
        code: "CD0761",
        name: "rotated-repository-key",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "\
FROM ubuntu:20.04
ARG REPO=https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64
RUN curl -fsSL $REPO/7fa2af80.pub | apt-key add - && echo \"deb $REPO /\" > /etc/apt/sources.list.d/cuda.list
",
        good: "\
FROM ubuntu:20.04
ARG REPO=https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64
RUN curl -fsSL $REPO/3bf863cc.pub | apt-key add - && echo \"deb $REPO /\" > /etc/apt/sources.list.d/cuda.list
",
        check: rotated_repository_key,
    },
    Rule {
        code: "CD0762",
        name: "retired-repository",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "\
FROM ubuntu:20.04
RUN echo 'deb https://developer.download.nvidia.com/compute/machine-learning/repos/ubuntu2004/x86_64 /' > /etc/apt/sources.list.d/ml.list
",
        good: "\
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
RUN rm -f /etc/apt/sources.list.d/machine-learning.list
",
        check: retired_repository,
    },
    Rule {
        code: "CD0763",
        name: "key-workaround",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN apt-key del 7fa2af80\n",
        good: "FROM ubuntu:20.04\nRUN apt-key del 7fa2af80\n",
        check: key_workaround,
    },
    Rule {
        code: "CD0773",
        name: "compat-removed",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN apt-get purge -y cuda-compat-12-4\n",
        good: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN apt-get purge -y vim && rm -rf /src/compat\n",
        check: compat_removed,
    },
    Rule {
        code: "CD0774",
        name: "upgraded-cuda-packages",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN apt-get update && apt-get -y upgrade\n",
        good: "\
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
RUN apt-mark hold 'cuda-*' && apt-get update && apt-get -y upgrade
",
        check: upgraded_cuda_packages,
    },
];

/// Starts of the names of packages with libraries, programs or modules of the driver.
const DRIVER_PACKAGES: [&str; 20] = [
    "nvidia-driver",
    "nvidia-headless",
    "nvidia-utils",
    "nvidia-compute-utils",
    "nvidia-kernel",
    "nvidia-dkms",
    "nvidia-open",
    "nvidia-smi",
    "libcuda1",
    "libnvidia-cfg1",
    "libnvidia-compute",
    "libnvidia-decode",
    "libnvidia-encode",
    "libnvidia-fbc1",
    "libnvidia-gl-",
    "libnvidia-ml1",
    "xserver-xorg-video-nvidia",
    "cuda-drivers",
    "kmod-nvidia",
    "akmod-nvidia",
];

fn driver_in_image(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    const FIX: &str = "remove it: the container runtime mounts the driver of the host";
    // The image of a driver container brings the driver to its host on purpose.
    let is_driver_container = context.image_steps().iter().any(|step| match &step.kind {
        StepKind::Cmd(start) | StepKind::Entrypoint(start) => {
            start.commands.iter().any(|command| command.program == "nvidia-driver")
        }
        _ => false,
    });
    if is_driver_container {
        return;
    }
    for (_, command) in context.image_commands() {
        for (arg, name) in installed(command) {
            let what = if DRIVER_PACKAGES.iter().any(|start| name.starts_with(start)) {
                "is a part of the NVIDIA driver"
            } else if brings_driver(name) {
                "installs the NVIDIA driver with the toolkit"
            } else {
                continue;
            };
            let message = format!(
                "`{name}` {what}: on a host with another driver, programs fail with a driver/library version mismatch"
            );
            let fix = match name.strip_prefix("cuda-runtime") {
                Some(version) => format!("install `cuda-libraries{version}`, which has no driver"),
                None if brings_driver(name) => {
                    format!("install `{}`, which has no driver", name.replacen("cuda", "cuda-toolkit", 1))
                }
                None => FIX.to_owned(),
            };
            report.add(arg.span, message, fix);
        }
        if let Some(installer) = run_installer(command)
            && (installer.text.contains("NVIDIA-Linux-") || command.has("--driver"))
        {
            let message = "the installer puts the NVIDIA driver into the image: on a host with another driver, \
                programs fail with a driver/library version mismatch";
            report.add(installer.span, message, FIX);
        }
    }
}

/// Whether a package of NVIDIA's repository depends on the driver: `cuda`, `cuda-12-4`, `cuda-runtime-12-4`.
fn brings_driver(name: &str) -> bool {
    let rest = name.strip_prefix("cuda-runtime").or_else(|| name.strip_prefix("cuda"));
    rest.is_some_and(|rest| {
        let is_version = rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        rest.is_empty() || rest.starts_with('-') && is_version
    })
}

/// The `.run` file that a command executes.
fn run_installer<'f>(command: &Command<'f>) -> Option<CommandArg<'f>> {
    let is_installer = |text: &str| {
        let name = || text.rsplit('/').next().unwrap_or_default();
        text.ends_with(".run") && (name().starts_with("NVIDIA-Linux-") || name().starts_with("cuda_"))
    };
    if is_installer(&command.program) {
        let text = command.program.clone();
        return Some(CommandArg { text, is_unresolved: false, span: command.span });
    }
    let is_shell = ["sh", "bash"].contains(&&*command.program);
    command.args.first().filter(|arg| is_shell && is_installer(&arg.text)).cloned()
}

fn toolkit_on_cuda_image(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, command) in context.needed_commands() {
        let is_candidate = installed(command).next().is_some() || run_installer(command).is_some();
        let Some(image) = is_candidate.then(|| context.cuda_image(stage)).flatten() else { continue };
        let Ok(release) = image.cuda.parse::<CudaRelease>() else { continue };
        for (arg, name) in installed(command) {
            let Some(what) = what_is_installed(name, image, release.version()) else { continue };
            let message = format!("`{name}` {what}");
            report.add(
                arg.span,
                message,
                "remove it, or start from the image of the CUDA version that is needed",
            );
        }
        let file = run_installer(command);
        let version = file.as_ref().and_then(|file| file.text.split("cuda_").nth(1)?.split('_').next());
        if let (Some(file), Some(version)) = (&file, version) {
            let message = format!(
                "the installer of CUDA {version} adds a toolkit to an image that has CUDA {}",
                image.cuda
            );
            report.add(
                file.span,
                message,
                "start from the `-devel` image of the CUDA version that is needed",
            );
        }
    }
}

/// The problem with installing a package in an nvidia/cuda image, if there is one.
fn what_is_installed(name: &str, image: &ImageTag, own: CudaVersion) -> Option<String> {
    let is_devel = image.flavor.contains("devel");
    if name.starts_with("libcudnn") && image.flavor.contains("cudnn") {
        // Other packages of cuDNN, such as the samples, are not in the image.
        let is_in_image = !name.contains("sample") && (is_devel || !name.contains("-dev"));
        let is_other = image.flavor.contains("cudnn8") && name.starts_with("libcudnn9");
        return (is_in_image && !is_other).then(|| {
            format!("is in the `{}` image already, where apt holds it at its version", image.flavor)
        });
    }
    match name {
        "cuda" | "cuda-toolkit" => {
            return Some(format!("installs the newest CUDA of the repository next to the image's {own}"));
        }
        "nvidia-cuda-toolkit" => {
            return Some(format!("installs the distribution's older CUDA next to the image's {own}"));
        }
        _ => {}
    }
    let parts = ["toolkit", "compiler", "nvcc", "libraries", "minimal-build", "command-line-tools", "cudart"];
    let rest = name.strip_prefix("cuda-")?;
    let start = rest.find(|first: char| first.is_ascii_digit())?;
    let (part, version) = rest.split_at_checked(start)?;
    let part = part.trim_end_matches('-').trim_end_matches("-dev");
    let version: CudaVersion = version.replace('-', ".").parse().ok()?;
    if !part.is_empty() && !parts.contains(&part) {
        return None;
    }
    if version != own {
        Some(format!("installs CUDA {version} next to the image's {own}"))
    } else if is_devel {
        let rest = if part == "toolkit" { ", apart from profilers and samples" } else { "" };
        Some(format!("is in the `-devel` image of CUDA {own} already{rest}"))
    } else {
        None
    }
}

fn container_toolkit_in_image(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let engines = ["docker", "containerd", "podman", "moby-engine", "cri-o"];
    let has_engine = context
        .image_commands()
        .flat_map(|(_, command)| installed(command))
        .any(|(_, name)| engines.iter().any(|engine| name.starts_with(engine)));
    let base = context.build.base_image(context.build.last()).map(|image| image.reference.text.as_str());
    if has_engine || base.is_none_or(|base| base.contains("docker:") || base.contains("dind")) {
        return;
    }
    let parts =
        ["nvidia-container-toolkit", "nvidia-container-runtime", "nvidia-docker", "libnvidia-container"];
    for (_, command) in context.image_commands() {
        let mut packages = installed(command);
        let is_part = |name: &str| parts.iter().any(|part| name.starts_with(part));
        if let Some((arg, name)) = packages.find(|(_, name)| is_part(name)) {
            let message = format!(
                "`{name}` belongs on the host: in an image without a container engine it does nothing"
            );
            report.add(arg.span, message, "remove it, and install it where the containers are started");
        }
    }
}

/// The sources of `ADD`, and the arguments of commands, with the stages that have them.
fn sources<'c, 'a>(context: &'c LintContext<'a>) -> &'c [(usize, &'a str, CommandArg<'a>)] {
    context.nvidia_sources.get_or_init(|| find_sources(context).collect())
}

fn find_sources<'a>(context: &LintContext<'a>) -> impl Iterator<Item = (usize, &'a str, CommandArg<'a>)> {
    let added = context.stages().flat_map(|(stage, own)| {
        own.steps.iter().filter_map(move |step| match &step.kind {
            StepKind::Copy(Copy { sources, .. }) => Some((stage, sources)),
            _ => None,
        })
    });
    let is_of_nvidia = |text: &str| text.contains("nvidia") || text.contains("7fa2af80");
    let added = added.flat_map(move |(stage, sources)| {
        sources.iter().filter(move |source| is_of_nvidia(&source.text)).map(move |source| {
            let (text, span) = (Cow::Borrowed(&*source.text), source.span);
            (stage, "ADD", CommandArg { text, is_unresolved: source.is_unresolved, span })
        })
    });
    let args = context.needed_commands().flat_map(move |(stage, command)| {
        let args = command.args.iter().filter(move |arg| is_of_nvidia(&arg.text));
        args.map(move |arg| (stage, &*command.program, arg.clone()))
    });
    args.chain(added)
}

fn rotated_repository_key(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let (mut renewed, mut subscribed, mut keys) = (HashSet::new(), HashSet::new(), Vec::new());
    for (stage, program, arg) in sources(context) {
        if arg.text.contains("3bf863cc") || arg.text.contains("cuda-keyring") {
            renewed.insert(*stage);
        } else if arg.text.contains("7fa2af80") {
            // A local repository has the key that signs it.
            let is_key = arg.text.contains("://")
                && arg.text.contains("7fa2af80.pub")
                && !arg.text.contains("machine-learning");
            keys.extend((is_key && !["rm", "echo"].contains(program)).then_some((*stage, arg)));
        } else if arg.text.contains("compute/cuda/repos") {
            subscribed.insert(*stage);
        }
    }
    for (stage, arg) in keys {
        let has_repository = subscribed.contains(&stage) && !renewed.contains(&stage);
        if !has_repository || context.cuda_image(stage).is_some() {
            continue;
        }
        let message = "key 7fa2af80 no longer signs NVIDIA's repositories since April 2022: `apt-get update` stops \
            with NO_PUBKEY A4B469963BF863CC";
        let mut finding =
            report.finding(arg.span, message, "install the package cuda-keyring, or fetch 3bf863cc.pub");
        let written = context.source(arg.span);
        let is_debian = arg.text.contains("/ubuntu") || arg.text.contains("/debian");
        if let Some(at) = written.find("7fa2af80.pub").filter(|_| is_debian) {
            let start = arg.span.start + at;
            let span = context.build.lines.span(start..start + "7fa2af80".len());
            finding = finding.suggest("fetch the current key", vec![context.edit(span, "3bf863cc")]);
        }
        report.push(finding);
    }
}

fn retired_repository(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, program, arg) in sources(context) {
        // Where the base image still names the repository, its key is needed.
        let is_key = arg.text.ends_with(".pub");
        if *program != "rm" && !is_key && arg.text.contains("compute/machine-learning/repos") {
            let message = "NVIDIA's machine-learning repository has had no packages since 2022 and is signed by the \
                old key: cuDNN, NCCL and TensorRT are in the CUDA repository";
            report.add(arg.span, message, "remove it, and install those packages from the CUDA repository");
        }
    }
}

fn key_workaround(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, command) in context.needed_commands() {
        let is_key =
            command.is("apt-key", "del") && command.args.iter().any(|arg| arg.text.contains("7fa2af80"));
        let lists = ["/etc/apt/sources.list.d/cuda.list", "/etc/apt/sources.list.d/nvidia-ml.list"];
        let is_list = command.program == "rm" && command.args.iter().any(|arg| lists.contains(&&*arg.text));
        if !(is_key || is_list) || context.cuda_image(stage).is_none() {
            continue;
        }
        let message = if is_key {
            "the image has had the current key since 2022: removing the old one has no effect"
        } else {
            "current images do not have this file: the workaround of 2022 has no effect, or fails without `-f`"
        };
        report.add(command.span, message, "remove the command");
    }
}

fn compat_removed(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some(image) = context.image_base() else { return };
    for (_, command) in context.image_commands() {
        let is_package = removed(command).any(|(_, name)| name.starts_with("cuda-compat"))
            || command.program == "dpkg"
                && ["-r", "-P", "--remove", "--purge"].iter().any(|option| command.has(option))
                && command.args.iter().any(|arg| arg.text.starts_with("cuda-compat"));
        let is_directory = command.program == "rm"
            && command.args.iter().any(|arg| {
                arg.text.starts_with("/usr/local/cuda")
                    && arg.text.trim_end_matches(['/', '*']).ends_with("/compat")
            });
        if is_package || is_directory {
            let message = format!(
                "without cuda-compat, data-center GPUs with a driver older than that of CUDA {} cannot run this image",
                image.cuda
            );
            report.add(command.span, message, "keep it: the toolkit uses it only where the driver needs it");
        }
    }
}

fn upgraded_cuda_packages(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let mut holding = None;
    for (stage, command) in context.needed_commands() {
        if command.is("apt-mark", "hold") && command.args.iter().any(|arg| arg.text.contains("cuda")) {
            holding = Some(stage);
        }
        let is_upgrade = if is_apt(command) {
            does(command, &["upgrade", "dist-upgrade", "full-upgrade"])
        } else {
            // With names, only those are upgraded.
            does(command, &["upgrade", "update"])
                && command.args.iter().filter(|arg| !arg.text.starts_with('-')).count() == 1
        };
        if !is_upgrade || holding == Some(stage) || command.program == "apk" {
            continue;
        }
        let Some(image) = context.cuda_image(stage) else { continue };
        let message = format!(
            "the upgrade may replace cuda-compat and other packages of the {} image by those of that day",
            image.cuda
        );
        report.add(command.span, message, "take a newer tag, or hold them first: `apt-mark hold 'cuda-*'`");
    }
}
