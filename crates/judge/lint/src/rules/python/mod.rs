//! pip and uv: which build is installed, whether packages fit together, and what stays in a layer.

mod builds;
mod cache;
mod packages;

use std::collections::{HashMap, HashSet};

use cudock_base::text::format::bytes;
use cudock_compat::codes;
use cudock_dockerfile::StepKind;
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::lookup::{ImageTag, PackageUse, TagVerdict, without_local};
use cudock_facts::tables::{GpuUse, TorchRelease};
use cudock_manifests::{DeclaredPackage, Manager};
use pep440_rs::{Operator, Version, VersionSpecifiers};

use self::packages::{by_pip, newest_in_index, newest_torch, shown, wheel_bytes};
use super::pip::{has_nvcc, install_arg, is_for_gpu, is_pip, rename, source_builds};
use super::target::prediction;
use crate::context::{Installed, LintContext, RunCommand};
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0405",
        name: "onnxruntime-twice",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.12-slim\nRUN pip install --no-cache-dir onnxruntime-gpu==1.22.0 onnxruntime==1.22.0\n",
        good: "FROM python:3.12-slim\nRUN pip install --no-cache-dir onnxruntime-gpu==1.22.0 onnx\n",
        check: onnxruntime_twice,
    },
    Rule {
        code: codes::VERSION_NOT_PINNED,
        name: "unpinned-framework",
        severity: Severity::Warning,
        also: &["DL3013"],
        is_fixable: false,
        bad: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch numpy\n",
        good: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.9.1 numpy\n",
        check: unpinned_framework,
    },
    Rule {
        code: codes::CANNOT_BE_INSTALLED_TOGETHER,
        name: "packages-do-not-fit",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.0.1 torchvision==0.16.0\n",
        good: "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.1.0 torchvision==0.16.0\n",
        check: prediction,
    },
    Rule {
        code: codes::CONTRADICTORY_PINS,
        name: "contradictory-pins",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.0.1 torch==2.1.0\n",
        good: "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.1.0\nRUN pip install --no-cache-dir torch==2.1.1\n",
        check: prediction,
    },
    Rule {
        code: codes::NOT_IN_INDEX,
        name: "version-not-in-index",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.7.1 --index-url https://download.pytorch.org/whl/cu121\n",
        good: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.7.1 --index-url https://download.pytorch.org/whl/cu126\n",
        check: prediction,
    },
    Rule {
        code: "CD0736",
        name: "cuda-version-mismatch",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=8.0\nRUN pip install --no-cache-dir torch==2.11.0\nRUN pip install --no-cache-dir --no-build-isolation torch-scatter==2.1.2\n",
        good: "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=8.0\nRUN pip install --no-cache-dir torch==2.10.0\nRUN pip install --no-cache-dir --no-build-isolation torch-scatter==2.1.2\n",
        check: builds::cuda_version_mismatch,
    },
    Rule {
        code: "CD0737",
        name: "pip-cache-in-layer",
        severity: Severity::Warning,
        also: &["DL3042"],
        is_fixable: true,
        bad: "FROM python:3.12-slim\nRUN pip install torch==2.9.1\n",
        good: "FROM python:3.12-slim\nRUN --mount=type=cache,target=/root/.cache/pip pip install torch==2.9.1\n",
        check: cache::pip_cache_in_layer,
    },
    Rule {
        code: "CD0738",
        name: "cache-mount-not-used",
        severity: Severity::Note,
        also: &[],
        is_fixable: true,
        bad: "FROM python:3.12-slim\nRUN --mount=type=cache,target=/root/.cache/pip pip install --no-cache-dir torch==2.9.1\n",
        good: "FROM python:3.12-slim\nRUN --mount=type=cache,target=/var/cache/apt pip install --no-cache-dir torch==2.9.1\n",
        check: cache::cache_mount_not_used,
    },
    Rule {
        code: "CD0739",
        name: "cuda-twice",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04\nRUN pip install --no-cache-dir torch==2.9.1\n",
        good: "FROM nvidia/cuda:12.8.1-base-ubuntu24.04\nRUN pip install --no-cache-dir torch==2.9.1\n",
        check: cuda_twice,
    },
    Rule {
        code: "CD0740",
        name: "mixed-cuda-majors",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.11.0 nvidia-cudnn-cu12==9.10.2.21\n",
        good: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.10.0 nvidia-cudnn-cu12==9.10.2.21\n",
        check: builds::mixed_cuda_majors,
    },
    Rule {
        code: "CD0741",
        name: "tensorflow-gpu",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "FROM python:3.11-slim\nRUN pip install --no-cache-dir tensorflow-gpu==2.15.0\n",
        good: "FROM python:3.10-slim\nRUN pip install --no-cache-dir tensorflow-gpu==2.11.0\n",
        check: tensorflow_gpu,
    },
    Rule {
        code: "CD0742",
        name: "no-compiler-for-extension",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:12.6.3-runtime-ubuntu22.04\nRUN pip install --no-cache-dir flash-attn==2.8.3 --no-build-isolation\n",
        good: "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nRUN pip install --no-cache-dir flash-attn==2.8.3 --no-build-isolation\n",
        check: no_compiler_for_extension,
    },
    Rule {
        code: "CD0743",
        name: "extra-index-loses",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch --extra-index-url https://download.pytorch.org/whl/cu121\n",
        good: "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1 --extra-index-url https://download.pytorch.org/whl/cu121\n",
        check: builds::extra_index_loses,
    },
    Rule {
        code: "CD0744",
        name: "unquoted-requirement",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch>=2.4,<3 einops\n",
        good: "FROM python:3.12-slim\nRUN pip install --no-cache-dir 'torch>=2.4,<3' einops > /dev/null\n",
        check: unquoted_requirement,
    },
    Rule {
        code: "CD0745",
        name: "no-wheel-for-python",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.13-slim\nRUN pip install --no-cache-dir torch==2.3.1\n",
        good: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.3.1\n",
        check: builds::no_wheel_for_python,
    },
    Rule {
        code: "CD0746",
        name: "mixed-torch-builds",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.11.0\nRUN pip install --no-cache-dir torchvision==0.26.0 --index-url https://download.pytorch.org/whl/cpu\n",
        good: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.11.0 torchvision==0.26.0 --index-url https://download.pytorch.org/whl/cpu\n",
        check: builds::mixed_torch_builds,
    },
    Rule {
        code: "CD0747",
        name: "framework-replaced",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.4.0\nRUN pip install --no-cache-dir torch==2.5.1\n",
        good: "FROM python:3.11-slim AS test\nRUN pip install --no-cache-dir torch==2.4.0\nFROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1\n",
        check: framework_replaced,
    },
];

fn onnxruntime_twice(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        let find = |name: &str| by_pip(context, stage).find(|installed| installed.package.name == name);
        let (Some(plain), Some(_)) = (find("onnxruntime"), find("onnxruntime-gpu")) else { continue };
        let message = "onnxruntime and onnxruntime-gpu overwrite each other's files: the GPU build may be gone, and sessions run on the CPU";
        report.add(plain.package.span, message, "install onnxruntime-gpu alone");
    }
}

fn unpinned_framework(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        let open: Vec<_> =
            context.installed(stage).iter().filter(|one| is_open(context, one.package)).collect();
        if open.is_empty() || !context.is_plain(stage) {
            continue;
        }
        let (newest, pinned) = (newest_torch(context, stage), pinned(context, stage));
        for Installed { package, by } in open.into_iter().copied() {
            let is_pinned = pinned.contains(package.name.as_str());
            if !is_pinned && !is_decided_elsewhere(context, package, by, newest) {
                let mut message = format!(
                    "{} is not pinned: the day of the build decides which CUDA and which GPUs it is for",
                    package.name
                );
                if let Some(newest) = newest.filter(|_| {
                    package.name == "torch" && package.tag.is_none() && package.manager == Manager::Pip
                }) {
                    message = format!(
                        "torch is not pinned: {} of PyPI is a build for CUDA {}, which needs driver {}, and the next may need more",
                        newest.version, newest.cuda, newest.min_driver
                    );
                }
                let sign = if package.manager == Manager::Conda { "=" } else { "==" };
                report.add(package.span, message, format!("write {}{sign}VERSION", package.name));
            }
        }
    }
}

/// Whether a package with GPU code has no version, or no upper bound.
fn is_open(context: &LintContext<'_>, package: &DeclaredPackage) -> bool {
    let is_bounded = |range: &String| {
        range.parse::<VersionSpecifiers>().map_or(true, |range| {
            range.iter().any(|one| {
                !matches!(
                    one.operator(),
                    Operator::GreaterThan | Operator::GreaterThanEqual | Operator::NotEqual
                )
            })
        })
    };
    let has_code = matches!(
        context.facts.packages().find(&package.name),
        PackageUse::Gpu(row, _) if [GpuUse::Framework, GpuUse::Code].contains(&row.uses)
    );
    has_code && package.exact.is_none() && !package.range.as_ref().is_some_and(is_bounded)
}

/// The names of the packages whose version a package of a stage decides: its own, or one that it requires.
fn pinned<'a>(context: &LintContext<'a>, stage: usize) -> HashSet<&'a str> {
    let packages = context.declared.get(stage).map(|declared| declared.packages.as_slice());
    let packages = packages.unwrap_or_default().iter().take(256);
    let exact = packages.filter_map(|package| Some((package.name.as_str(), package.exact.as_ref()?)));
    let required = |(name, version): (&'a str, &'a Version)| {
        context.facts.packages().pins_of(name, version).map(|(name, _)| name)
    };
    exact.flat_map(|package| std::iter::once(package.0).chain(required(package))).collect()
}

/// Whether a constraint or a closed index decides the version.
fn is_decided_elsewhere(
    context: &LintContext<'_>,
    package: &DeclaredPackage,
    by: RunCommand<'_>,
    newest: Option<&TorchRelease>,
) -> bool {
    let constrains = |arg: &str| {
        arg.starts_with("-c") && by.command.program != "conda" && install_arg(by.command).is_some()
            || arg.starts_with("--constraint")
            || arg.starts_with("--override")
    };
    let is_constrained = by.command.args.iter().any(|arg| constrains(&arg.text))
        || context.is_set(by, "PIP_CONSTRAINT")
        || context.is_set(by, "UV_CONSTRAINT");
    let is_frozen = package.exclusive
        && package.tag.as_deref().and_then(|tag| newest_in_index(context, tag))
            < newest.map(|release| &release.version)
        && package.tag.is_some();
    is_constrained || is_frozen
}

fn cuda_twice(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let last = context.build.last();
    let (Some(image), Some(declared)) = (context.cuda_image(last), context.declared.last()) else { return };
    let Some(from) = context.build.base_image(last) else { return };
    if !image.flavor.ends_with("runtime") || !declared.compiled.is_empty() {
        return;
    }
    let Some(torch) = by_pip(context, last).find(|installed| installed.package.name == "torch") else {
        return;
    };
    let own = torch.package.tag.as_deref().is_none_or(|tag| tag.starts_with("cu"));
    // Others may load the libraries of the image.
    let others = declared.packages.iter().any(|package| match context.facts.packages().find(&package.name) {
        PackageUse::Gpu(row, _) => row.name != "torch" && !row.on.iter().any(|on| on == "torch"),
        PackageUse::NoGpu => false,
        PackageUse::Unknown => true,
    });
    let copies_programs = context.build.steps(last).iter().any(|step| match &step.kind {
        StepKind::Copy(copy) => copy.from.is_some(),
        _ => false,
    });
    if !own || others || copies_programs || !declared.cuda_packages.is_empty() {
        return;
    }
    let base = ImageTag { flavor: "base".to_owned(), ..image.clone() };
    if matches!(context.facts.images().tag(&base), TagVerdict::Missing { .. }) {
        return;
    }
    let message = format!(
        "{} brings its own CUDA and cuDNN: those of the flavor `{}` are in the image a second time",
        shown(torch.package),
        image.flavor
    );
    let fix = format!("start from nvidia/cuda:{base}");
    let mut finding = report.finding(from.span, message, fix.clone());
    let cuda = image.cuda.parse().ok();
    finding.saves_bytes =
        cuda.and_then(|cuda| context.facts.images().flavor_saving(cuda, &image.flavor, "base"));
    let written = format!("-{}-", image.flavor);
    let source = context.source(from.span);
    let is_plain = source.matches(&written).count() == 1 && !source.contains(['$', '@']);
    let is_certain = declared.notes.iter().all(|note| !note.decides);
    let edit = context.edit(from.span, source.replace(&written, "-base-"));
    report.push(if is_plain && is_certain { finding.suggest(fix, vec![edit]) } else { finding });
}

fn tensorflow_gpu(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        for Installed { package, .. } in
            by_pip(context, stage).filter(|one| one.package.name == "tensorflow-gpu")
        {
            let has_extra = package.exact.as_ref().is_none_or(|version| *version >= Version::new([2, 14]));
            let is_bounded = package.exact.is_none() && package.range.is_some();
            if package.exact.as_ref().is_some_and(|version| *version < Version::new([2, 12])) || is_bounded {
                continue;
            }
            let name = if has_extra { "tensorflow[and-cuda]" } else { "tensorflow" };
            let message =
                format!("{} was removed: its setup ends with an error that says so", shown(package));
            let fix = format!("install {name}");
            let finding = report.finding(package.span, message, fix.clone());
            let edits = rename(context, package, name);
            report.push(if edits.is_empty() { finding } else { finding.suggest(fix, edits) });
        }
    }
}

fn no_compiler_for_extension(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let mut with_nvcc = HashMap::new();
    for build in source_builds(context) {
        let stage = build.by.stage;
        if *with_nvcc.entry(stage).or_insert_with(|| has_nvcc(context, stage)) != Some(false) {
            continue;
        }
        let (name, unless) = (
            build.name,
            if build.row.tries_wheels { ", unless its releases page has a wheel that fits" } else { "" },
        );
        let message = format!(
            "{name} is compiled with nvcc when it is installed, and the stage has no nvcc: the installation fails{unless}"
        );
        let fix = "install it in a stage of a devel image and copy the environment, or install a wheel of its releases";
        report.add(build.span, message, fix);
    }
}

fn unquoted_requirement(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let programs = ["conda", "mamba", "micromamba", "poetry", "uv"];
    for (_, _, command) in context.commands() {
        if !is_pip(command) && !programs.contains(&&*command.program) {
            continue;
        }
        for span in &command.unquoted {
            let source = context.source(*span);
            let message = format!(
                "`{source}` has no quotes: the shell reads `>` and `<` as redirections, and the bound is lost"
            );
            let fix = format!("write '{source}'");
            let finding = report.finding(*span, message, fix.clone());
            let is_plain = !source.contains(['\'', '"', '\\', '\n']);
            let edit = context.edit(*span, format!("'{source}'"));
            report.push(if is_plain { finding.suggest(fix, vec![edit]) } else { finding });
        }
    }
}

fn framework_replaced(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let last = context.build.last();
    let has_environments = context.run_commands().any(|by| {
        let has = |word: &str| by.command.args.iter().any(|arg| arg.text == word);
        has("venv") || by.command.program == "virtualenv" || has("create")
    });
    if has_environments {
        return;
    }
    let mut seen: Vec<Installed<'_>> = Vec::new();
    for installed in by_pip(context, last).filter(|one| context.is_shipped(one.by.stage)) {
        let (package, run) = (installed.package, installed.by.run);
        if package.exact.is_none() || !is_for_gpu(context, &package.name) {
            continue;
        }
        let Some(earlier) = seen.iter_mut().find(|earlier| earlier.package.name == package.name) else {
            seen.push(installed);
            continue;
        };
        let differs = match (&earlier.package.exact, &package.exact) {
            (Some(before), Some(after)) if after.is_local() => before != after,
            // pip keeps any build of the version.
            (Some(before), Some(after)) => without_local(before) != *after,
            _ => false,
        };
        if differs && earlier.by.run.script != run.script {
            let wheel = wheel_bytes(context, earlier.package);
            let size = wheel.map_or_else(String::new, |wheel| format!(" ({} or more)", bytes(wheel)));
            let message = format!(
                "{} is replaced by {} in a later layer, and stays in the image{size}",
                build(earlier.package),
                build(package)
            );
            let finding = report.finding(
                earlier.package.span,
                message,
                "install the version that is wanted in the end, once",
            );
            report.push(Finding { saves_bytes: wheel, ..finding });
        }
        *earlier = installed;
    }
}

/// A package with its version and the tag of its build.
fn build(package: &DeclaredPackage) -> String {
    let is_shown = package.exact.as_ref().is_some_and(Version::is_local);
    let tag = package.tag.as_deref().filter(|_| !is_shown).map_or_else(String::new, |tag| format!("+{tag}"));
    format!("{}{tag}", shown(package))
}
