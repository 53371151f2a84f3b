//! pip and uv: which build is installed, whether packages fit together, and what stays in a layer.

use std::collections::HashMap;

use cudock_base::Span;
use cudock_base::format::bytes;
use cudock_compat::codes;
use cudock_declared::{DeclaredPackage, Manager};
use cudock_dockerfile::{Command, Mount, Run, StepKind};
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::lookup::{ImageTag, NamedCuda, PackageUse, TagVerdict, TorchWheel};
use cudock_facts::tables::GpuUse;
use cudock_facts::version::CudaVersion;
use pep440_rs::{Operator, Version, VersionSpecifiers};

use super::Rule;
use super::packages::{
    Compilation, TORCH_FAMILY, has_nvcc, install_arg, is_for_gpu, is_pip, is_torch_only, rename, source_builds, toolkit_of_base,
    torch_cuda, use_index,
};
use super::target::prediction;
use crate::context::{Context, Installed, Report, RunCommand, repository};

pub(super) const RULES: &[Rule] = &[
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
        check: cuda_version_mismatch,
    },
    Rule {
        code: "CD0737",
        name: "pip-cache-in-layer",
        severity: Severity::Warning,
        also: &["DL3042"],
        is_fixable: true,
        bad: "FROM python:3.12-slim\nRUN pip install torch==2.9.1\n",
        good: "FROM python:3.12-slim\nRUN --mount=type=cache,target=/root/.cache/pip pip install torch==2.9.1\n",
        check: pip_cache_in_layer,
    },
    Rule {
        code: "CD0738",
        name: "cache-mount-not-used",
        severity: Severity::Note,
        also: &[],
        is_fixable: true,
        bad: "FROM python:3.12-slim\nRUN --mount=type=cache,target=/root/.cache/pip pip install --no-cache-dir torch==2.9.1\n",
        good: "FROM python:3.12-slim\nRUN --mount=type=cache,target=/var/cache/apt pip install --no-cache-dir torch==2.9.1\n",
        check: cache_mount_not_used,
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
        check: mixed_cuda_majors,
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
        check: extra_index_loses,
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
        check: no_wheel_for_python,
    },
    Rule {
        code: "CD0746",
        name: "mixed-torch-builds",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.11.0\nRUN pip install --no-cache-dir torchvision==0.26.0 --index-url https://download.pytorch.org/whl/cpu\n",
        good: "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.11.0 torchvision==0.26.0 --index-url https://download.pytorch.org/whl/cpu\n",
        check: mixed_torch_builds,
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

/// The packages that pip or uv installs in a stage.
fn by_pip<'c, 'a>(context: &'c Context<'a>, stage: usize) -> impl Iterator<Item = Installed<'c, 'a>> {
    context.installed(stage).filter(|installed| installed.package.manager == Manager::Pip)
}

/// A package and its version, as far as it is known.
fn shown(package: &DeclaredPackage) -> String {
    package.exact.as_ref().map_or_else(|| package.name.clone(), |version| format!("{} {version}", package.name))
}

/// The bytes of a release's wheel, as far as the tables know.
fn wheel_bytes(context: &Context<'_>, package: &DeclaredPackage) -> Option<u64> {
    let version = package.exact.as_ref().filter(|_| package.name == "torch")?;
    Some(u64::from(context.facts.frameworks().torch(version)?.wheel_mib?) << 20)
}

fn newest_torch<'c>(context: &'c Context<'_>) -> Option<&'c Version> {
    context.facts.frameworks().torch.iter().map(|release| &release.version).max()
}

/// The newest torch of an index.
fn newest_in_index<'c>(context: &'c Context<'_>, tag: &str) -> Option<&'c Version> {
    let builds = context.facts.frameworks().torch_build.iter().filter(|build| build.tag == tag);
    builds.flat_map(|build| &build.versions).max()
}

fn onnxruntime_twice(context: &Context<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        let find = |name: &str| by_pip(context, stage).find(|installed| installed.package.name == name);
        let (Some(plain), Some(_)) = (find("onnxruntime"), find("onnxruntime-gpu")) else { continue };
        let message = "onnxruntime and onnxruntime-gpu overwrite each other's files: the GPU build may be gone, and sessions run on the CPU";
        report.add(plain.package.span, message, "install onnxruntime-gpu alone");
    }
}

fn unpinned_framework(context: &Context<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages().filter(|(stage, _)| context.is_plain(*stage)) {
        for installed in context.installed(stage) {
            let (package, by) = (installed.package, installed.by);
            if is_open(context, package) && !is_decided_elsewhere(context, stage, package, by) {
                let mut message = format!("{} is not pinned: the day of the build decides which CUDA and which GPUs it is for", package.name);
                let newest = context.facts.frameworks().torch.iter().max_by_key(|release| &release.version);
                if let Some(newest) = newest.filter(|_| package.name == "torch" && package.tag.is_none() && package.manager == Manager::Pip) {
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
fn is_open(context: &Context<'_>, package: &DeclaredPackage) -> bool {
    let is_bounded = |range: &String| {
        range.parse::<VersionSpecifiers>().map_or(true, |range| range.iter().any(|one| {
            !matches!(one.operator(), Operator::GreaterThan | Operator::GreaterThanEqual | Operator::NotEqual)
        }))
    };
    let has_code = matches!(
        context.packages.find(&package.name),
        PackageUse::Gpu(row, _) if [GpuUse::Framework, GpuUse::Code].contains(&row.uses)
    );
    has_code && package.exact.is_none() && !package.range.as_ref().is_some_and(is_bounded)
}

/// Whether a constraint, another package or a closed index decides the version.
fn is_decided_elsewhere(context: &Context<'_>, stage: usize, package: &DeclaredPackage, by: RunCommand<'_>) -> bool {
    let constrains = |arg: &str| arg.starts_with("-c") && by.command.program != "conda" && install_arg(by.command).is_some() || arg.starts_with("--constraint") || arg.starts_with("--override");
    let is_constrained = by.command.args.iter().any(|arg| constrains(&arg.text))
        || context.is_set(by, "PIP_CONSTRAINT")
        || context.is_set(by, "UV_CONSTRAINT");
    let is_frozen = package.exclusive
        && package.tag.as_deref().and_then(|tag| newest_in_index(context, tag)) < newest_torch(context)
        && package.tag.is_some();
    let is_pinned_by = |other: &DeclaredPackage| {
        let same = other.name == package.name && other.exact.is_some();
        let pins = other.exact.as_ref().is_some_and(|version| {
            context.facts.packages().pins_of(&other.name, version).any(|(name, _)| name == package.name)
        });
        same || pins
    };
    let others = context.declared.get(stage).map(|declared| declared.packages.as_slice()).unwrap_or_default();
    is_constrained || is_frozen || others.iter().take(256).any(is_pinned_by)
}

fn cuda_version_mismatch(context: &Context<'_>, report: &mut Report<'_, '_>) {
    let builds = source_builds(context);
    for (stage, base) in toolkits(context) {
        let Some(torch) = by_pip(context, stage).find(|installed| installed.package.name == "torch") else { continue };
        let newest = newest_torch(context).filter(|_| torch.package.exact.is_none() && torch.package.tag.is_none());
        let newest = newest.map(|version| DeclaredPackage { exact: Some(version.clone()), ..torch.package.clone() });
        let package = newest.as_ref().unwrap_or(torch.package);
        let Some(cuda) = torch_cuda(context, package, stage).filter(|cuda| cuda.major() != base.major()) else {
            continue;
        };
        let Some((name, span)) = extension(context, stage, &builds) else { continue };
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
fn toolkits(context: &Context<'_>) -> impl Iterator<Item = (usize, CudaVersion)> {
    let has_other = |stage: usize| {
        let packages = context.declared.get(stage).map(|declared| declared.cuda_packages.as_slice());
        packages.unwrap_or_default().iter().any(|package| package.name == "cuda" || package.name.contains("toolkit") || package.name.contains("nvcc"))
    };
    let with_nvcc = context.stages().filter_map(|(stage, _)| Some((stage, toolkit_of_base(context, stage)?)));
    with_nvcc.filter(move |(stage, _)| !has_other(*stage))
}

/// The first extension of torch that a stage surely compiles.
fn extension(context: &Context<'_>, stage: usize, builds: &[Compilation<'_, '_>]) -> Option<(String, Span)> {
    let compiled = &context.declared.get(stage)?.compiled;
    let own = compiled.iter().find(|compiled| {
        compiled.is_extension && compiled.file.is_none() && !compiled.name.contains("git+")
    });
    let of_tables = || {
        let build = builds.iter().find(|build| build.by.stage == stage && !build.row.tries_wheels)?;
        Some((build.name.to_owned(), build.span))
    };
    own.map(|compiled| (format!("the {}", compiled.name), compiled.span)).or_else(of_tables)
}

/// The tool whose cache an installation fills: pip or uv.
fn tool(command: &Command) -> &'static str {
    if command.program == "uv" { "uv" } else { "pip" }
}

/// Options and variables that switch a cache off, and variables that move it.
struct CacheNames {
    option: &'static str,
    off: &'static str,
    moved: &'static str,
}

fn cache_names(tool: &str) -> CacheNames {
    match tool {
        "uv" => CacheNames { option: "--no-cache", off: "UV_NO_CACHE", moved: "UV_CACHE_DIR" },
        _ => CacheNames { option: "--no-cache-dir", off: "PIP_NO_CACHE_DIR", moved: "PIP_CACHE_DIR" },
    }
}

/// Whether a command has an option that switches its cache off.
fn no_cache_option(command: &Command) -> Option<Span> {
    let names: &[&str] = if command.program == "uv" { &["--no-cache", "--no-cache-dir", "-n"] } else { &["--no-cache-dir"] };
    command.args.iter().find(|arg| names.contains(&arg.text.as_str())).map(|arg| arg.span)
}

/// Whether a mount is at the cache of a tool.
fn is_cache_of(mount: &Mount, tool: &str) -> bool {
    let target = mount.target.trim_end_matches('/');
    mount.kind == "cache" && (target.split('/').any(|part| part == tool) || target.ends_with("/.cache"))
}

fn pip_cache_in_layer(context: &Context<'_>, report: &mut Report<'_, '_>) {
    let mut last_users: Vec<Option<String>> = Vec::new();
    for (stage, own) in context.stages() {
        let inherited = own.base.and_then(|base| last_users.get(base).cloned());
        let mut user = inherited.unwrap_or_else(|| Some("root".to_owned()));
        let is_looked_at = context.is_shipped(stage) && context.is_plain(stage);
        let downloads = if is_looked_at { gpu_downloads(context, stage) } else { HashMap::new() };
        for step in &own.steps {
            match &step.kind {
                StepKind::User(name) => {
                    let name = name.unknown.is_none().then(|| name.text.split(':').next().unwrap_or_default().to_owned());
                    user = name.filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()));
                }
                StepKind::Run(run) if is_looked_at => {
                    cached_by_run(context, report, run, (user.as_deref(), &downloads));
                }
                _ => {}
            }
        }
        last_users.push(user);
    }
}

/// Commands that install packages with GPU code, by the byte they start at, with the bytes of the wheel if it is known.
type Downloads = HashMap<usize, Option<u64>>;

fn gpu_downloads(context: &Context<'_>, stage: usize) -> Downloads {
    let mut downloads = Downloads::new();
    for Installed { package, by } in by_pip(context, stage).filter(|one| is_for_gpu(context, &one.package.name)) {
        let known = downloads.entry(by.command.span.start).or_default();
        *known = wheel_bytes(context, package).max(*known);
    }
    downloads
}

fn cached_by_run(
    context: &Context<'_>,
    report: &mut Report<'_, '_>,
    run: &Run,
    (user, downloads): (Option<&str>, &Downloads),
) {
    let cleans = |command: &Command| {
        let has = |word: &str| command.args.iter().any(|arg| arg.text.contains(word));
        command.program == "rm" && has(".cache") || has("cache") && (has("purge") || has("clean") || has("prune"))
    };
    if run.commands.iter().any(cleans) {
        return;
    }
    for command in &run.commands {
        let (Some(install), Some(by)) = (install_arg(command), context.command_at(command.span)) else { continue };
        let tool = tool(command);
        let names = cache_names(tool);
        let is_off = no_cache_option(command).is_some() || context.is_set(by, names.off);
        let home = user.map(|user| if user == "root" { "/root".to_owned() } else { format!("/home/{user}") });
        let is_moved = [names.moved, "XDG_CACHE_HOME", "HOME"].iter().any(|name| context.is_set(by, name));
        let is_mounted = run.mounts.iter().filter(|mount| mount.kind == "cache").any(|mount| {
            let is_foreign = home.as_ref().is_some_and(|home| {
                ["/root/", "/home/"].iter().any(|other| mount.target.starts_with(other)) && !mount.target.starts_with(home.as_str())
            });
            is_moved || is_cache_of(mount, tool) && !is_foreign
        });
        let wheel = downloads.get(&command.span.start);
        let is_large = wheel.is_some() || installs_list(command) && context.cuda_image(by.stage).is_some();
        if is_off || is_mounted || !is_large {
            continue;
        }
        let wheel = wheel.copied().flatten();
        let least = wheel.map_or_else(String::new, |wheel| format!(", {} or more", bytes(wheel)));
        let message = format!("{tool} keeps what it downloads in the layer{least}");
        let fix = format!("add {}, or mount a cache: --mount=type=cache,target={}/.cache/{tool}", names.option, home.as_deref().unwrap_or("/root"));
        let finding = Finding { saves_bytes: wheel, ..report.finding(command.span, message, fix) };
        let edit = context.insert(install.span.end, format!(" {}", names.option));
        let is_exact = command.is_exact;
        report.push(if is_exact { finding.suggest(format!("add {}", names.option), vec![edit]) } else { finding });
    }
}

/// Whether a command installs what a file lists.
fn installs_list(command: &Command) -> bool {
    let is_list = |text: &str| text.starts_with("-r") || ["--requirement", "."].contains(&text);
    command.is("uv", "sync") || command.args.iter().any(|arg| is_list(&arg.text))
}

fn cache_mount_not_used(context: &Context<'_>, report: &mut Report<'_, '_>) {
    for (_, run, command) in context.commands().filter(|(_, _, command)| install_arg(command).is_some()) {
        let tool = tool(command);
        let (Some(option), Some(mount)) = (no_cache_option(command), run.mounts.iter().find(|mount| is_cache_of(mount, tool))) else {
            continue;
        };
        let message = format!("a cache is mounted at {}, and {} keeps {tool} from using it: every build downloads everything", mount.target, context.source(option));
        let finding = report.finding(option, message, format!("leave {} out", context.source(option)));
        let start = option.start.saturating_sub(1);
        let has_space = context.build.text().as_bytes().get(start) == Some(&b' ');
        let edit = context.edit(context.build.lines.span(start..option.end), "");
        report.push(if command.is_exact && has_space { finding.suggest("remove the option", vec![edit]) } else { finding });
    }
}

fn cuda_twice(context: &Context<'_>, report: &mut Report<'_, '_>) {
    let last = context.build.last();
    let (Some(image), Some(declared)) = (context.cuda_image(last), context.declared.last()) else { return };
    let Some(from) = context.build.base_image(last) else { return };
    if !image.flavour.ends_with("runtime") || !declared.compiled.is_empty() {
        return;
    }
    let Some(torch) = by_pip(context, last).find(|installed| installed.package.name == "torch") else { return };
    let own = torch.package.tag.as_deref().is_none_or(|tag| tag.starts_with("cu"));
    // Others may load the libraries of the image.
    let others = declared.packages.iter().any(|package| match context.packages.find(&package.name) {
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
    let base = ImageTag { flavour: "base".to_owned(), ..image.clone() };
    if matches!(context.facts.images().tag(&base), TagVerdict::Missing { .. }) {
        return;
    }
    let message = format!(
        "{} brings its own CUDA and cuDNN: those of the flavor `{}` are in the image a second time",
        shown(torch.package), image.flavour
    );
    let fix = format!("start from nvidia/cuda:{base}");
    let finding = report.finding(from.span, message, fix.clone());
    let written = format!("-{}-", image.flavour);
    let source = context.source(from.span);
    let is_plain = source.matches(&written).count() == 1 && !source.contains(['$', '@']);
    let is_certain = declared.notes.iter().all(|note| !note.decides);
    let edit = context.edit(from.span, source.replace(&written, "-base-"));
    report.push(if is_plain && is_certain { finding.suggest(fix, vec![edit]) } else { finding });
}

fn mixed_cuda_majors(context: &Context<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        let Some(torch) = by_pip(context, stage).find(|installed| installed.package.name == "torch") else { continue };
        let Some(cuda) = torch_cuda(context, torch.package, stage) else { continue };
        for Installed { package, .. } in by_pip(context, stage) {
            let of_nvidia = ["nvidia-", "tensorrt-", "cupy-"].iter().any(|start| package.name.starts_with(start));
            let Some((_, named)) = NamedCuda::split(&package.name).filter(|_| of_nvidia) else { continue };
            if named.major == cuda.major() {
                continue;
            }
            let message = format!(
                "{} is for CUDA {}, and {} brings CUDA {cuda}: two sets of libraries are installed, and the first that is loaded wins",
                package.name, named.major, shown(torch.package)
            );
            let fix = format!("take the package for CUDA {}, or leave it out: torch brings its own libraries", cuda.major());
            report.add(package.span, message, fix);
        }
    }
}

fn tensorflow_gpu(context: &Context<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        for Installed { package, .. } in by_pip(context, stage).filter(|one| one.package.name == "tensorflow-gpu") {
            let has_extra = package.exact.as_ref().is_none_or(|version| *version >= Version::new([2, 14]));
            let is_bounded = package.exact.is_none() && package.range.is_some();
            if package.exact.as_ref().is_some_and(|version| *version < Version::new([2, 12])) || is_bounded {
                continue;
            }
            let name = if has_extra { "tensorflow[and-cuda]" } else { "tensorflow" };
            let message = format!("{} was removed: its setup ends with an error that says so", shown(package));
            let fix = format!("install {name}");
            let finding = report.finding(package.span, message, fix.clone());
            let edits = rename(context, package, name);
            report.push(if edits.is_empty() { finding } else { finding.suggest(fix, edits) });
        }
    }
}

fn no_compiler_for_extension(context: &Context<'_>, report: &mut Report<'_, '_>) {
    let builds = source_builds(context);
    if builds.is_empty() {
        return;
    }
    let with_nvcc: Vec<_> = context.stages().map(|(stage, _)| has_nvcc(context, stage)).collect();
    for build in builds.iter().filter(|build| with_nvcc.get(build.by.stage) == Some(&Some(false))) {
        let (name, unless) = (build.name, if build.row.tries_wheels { ", unless its releases page has a wheel that fits" } else { "" });
        let message = format!("{name} is compiled with nvcc when it is installed, and the stage has no nvcc: the installation fails{unless}");
        let fix = "install it in a stage of a devel image and copy the environment, or install a wheel of its releases";
        report.add(build.span, message, fix);
    }
}

fn extra_index_loses(context: &Context<'_>, report: &mut Report<'_, '_>) {
    let Some(newest) = newest_torch(context) else { return };
    for (stage, _) in context.stages() {
        for Installed { package, by } in by_pip(context, stage).filter(|one| one.package.name == "torch" && is_pip(one.by.command)) {
            let option = by.command.args.iter().find(|arg| arg.text.starts_with("--extra-index-url"));
            let (Some(tag), Some(option)) = (package.tag.as_deref(), option) else { continue };
            let frameworks = context.facts.frameworks();
            let version = match (&package.exact, &package.range) {
                // A local version is of the index alone.
                (Some(exact), _) if exact.is_local() => continue,
                (Some(exact), _) => exact,
                (None, None) => newest,
                (None, Some(_)) => continue,
            };
            let (Some(release), Some(in_index)) = (frameworks.torch(version), newest_in_index(context, tag)) else { continue };
            if frameworks.torch_build(version, TorchWheel::Tag(tag)).is_some() || in_index >= version {
                continue;
            }
            let message = format!(
                "the index {tag} ends with torch {in_index}, so pip takes {version} from PyPI, which is built for CUDA {}",
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
fn is_only_torch_beside(command: &Command) -> bool {
    let mut rest = command.clone();
    let at = rest.args.iter().position(|arg| arg.text.starts_with("--extra-index-url"));
    if let Some(at) = at {
        let has_value = rest.args.get(at).is_some_and(|arg| arg.text.contains('='));
        rest.args.drain(at..(at + if has_value { 1 } else { 2 }).min(rest.args.len()));
    }
    is_torch_only(&rest)
}

fn unquoted_requirement(context: &Context<'_>, report: &mut Report<'_, '_>) {
    let programs = ["conda", "mamba", "micromamba", "poetry", "uv"];
    for (_, _, command) in context.commands() {
        if !is_pip(command) && !programs.contains(&command.program.as_str()) {
            continue;
        }
        for span in &command.unquoted {
            let source = context.source(*span);
            let message = format!("`{source}` has no quotes: the shell reads `>` and `<` as redirections, and the bound is lost");
            let fix = format!("write '{source}'");
            let finding = report.finding(*span, message, fix.clone());
            let is_plain = !source.contains(['\'', '"', '\\', '\n']);
            let edit = context.edit(*span, format!("'{source}'"));
            report.push(if is_plain { finding.suggest(fix, vec![edit]) } else { finding });
        }
    }
}

fn no_wheel_for_python(context: &Context<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        let Some(python) = python_of_image(context, stage) else { continue };
        for Installed { package, .. } in by_pip(context, stage) {
            let Some(version) = &package.exact else { continue };
            let frameworks = context.facts.frameworks();
            let wheels = match package.name.as_str() {
                "torch" => frameworks.torch(version).map(|release| &release.python),
                "tensorflow" => frameworks.tensorflow(version).map(|release| &release.python),
                "onnxruntime-gpu" => frameworks.onnxruntime_gpu(version).filter(|release| release.version == *version).map(|release| &release.python),
                _ => None,
            };
            let Some(wheels) = wheels.filter(|wheels| !wheels.is_empty() && !wheels.iter().any(|own| own == python)) else {
                continue;
            };
            let message = format!("{} has no wheel for Python {python}: pip finds no matching distribution", shown(package));
            report.add(package.span, message, format!("take Python {}", wheels.join(", ")));
        }
    }
}

/// The Python of a `python` image, if the stage brings no other one.
fn python_of_image<'a>(context: &Context<'a>, stage: usize) -> Option<&'a str> {
    let image = &context.build.base_image(stage)?.reference;
    if repository(&image.text) != "python" || image.unknown.is_some() {
        return None;
    }
    let others = ["conda", "mamba", "micromamba", "pyenv", "uv", "pixi"];
    let brings_another = context.build.steps(stage).iter().any(|step| match &step.kind {
        StepKind::Run(run) => run.commands.iter().any(|command| others.contains(&command.program.as_str())),
        _ => false,
    });
    let tag = context.build.base_image(stage)?.reference.text.rsplit_once(':')?.1;
    let version = tag.split(['-', '@']).next()?;
    let minor = version.match_indices('.').nth(1).map_or(version.len(), |(at, _)| at);
    let version = version.get(..minor)?;
    (!brings_another && version.starts_with("3.")).then_some(version)
}

fn mixed_torch_builds(context: &Context<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        let Some(torch) = by_pip(context, stage).find(|installed| installed.package.name == "torch") else { continue };
        let is_cpu = |package: &DeclaredPackage| package.tag.as_deref() == Some("cpu");
        let is_cuda = |package: &DeclaredPackage| package.tag.as_deref().is_none_or(|tag| tag.starts_with("cu"));
        let others = by_pip(context, stage).filter(|one| TORCH_FAMILY.contains(&one.package.name.as_str()));
        for Installed { package, by } in others {
            let differs = is_cpu(package) && is_cuda(torch.package) || is_cuda(package) && is_cpu(torch.package);
            // Without a version, pip keeps what fits to the torch that is there.
            if package.name == "torch" || !differs || package.exact.is_none() {
                continue;
            }
            let (one, other) = if is_cpu(package) { ("the CPU", "CUDA") } else { ("CUDA", "the CPU") };
            let message = format!(
                "{} is a build for {one}, and {} one for {other}: its operators fail beside that torch",
                shown(package), shown(torch.package)
            );
            let finding = report.finding(package.span, message, "install both from one index");
            let tag = torch.package.tag.as_deref().unwrap_or_default();
            let edits = if tag.is_empty() { Vec::new() } else { use_index(context, by, package, tag) };
            report.push(if edits.is_empty() { finding } else { finding.suggest(format!("take it from {tag}"), edits) });
        }
    }
}

fn framework_replaced(context: &Context<'_>, report: &mut Report<'_, '_>) {
    let last = context.build.last();
    let has_environments = context.run_commands().any(|by| {
        let has = |word: &str| by.command.args.iter().any(|arg| arg.text == word);
        has("venv") || by.command.program == "virtualenv" || has("create")
    });
    if has_environments {
        return;
    }
    let mut seen: Vec<Installed<'_, '_>> = Vec::new();
    for installed in by_pip(context, last).filter(|one| context.is_shipped(one.by.stage)) {
        let (package, run) = (installed.package, installed.by.run);
        if package.exact.is_none() || !is_for_gpu(context, &package.name) {
            continue;
        }
        let Some(earlier) = seen.iter_mut().find(|earlier| earlier.package.name == package.name) else {
            seen.push(installed);
            continue;
        };
        let differs = earlier.package.exact != package.exact || earlier.package.tag != package.tag;
        if differs && earlier.by.run.script != run.script {
            let wheel = wheel_bytes(context, earlier.package);
            let size = wheel.map_or_else(String::new, |wheel| format!(" ({} or more)", bytes(wheel)));
            let message = format!(
                "{} is replaced by {} in a later layer, and stays in the image{size}",
                build(earlier.package), build(package)
            );
            let finding = report.finding(earlier.package.span, message, "install the version that is wanted in the end, once");
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
