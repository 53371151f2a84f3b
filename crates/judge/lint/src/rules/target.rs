//! The image on the target: code for its GPU, its driver, its processor; and steps that need a GPU
//! in a build without one.

use cudock_base::bug::Parts;
use std::collections::HashMap;

use cudock_base::Span;
use cudock_base::text::format::bytes;
use cudock_compat::{codes, judge, of_declared};
use cudock_dockerfile::{Command, CommandArg, Setting, StepKind};
use cudock_facts::finding::{Finding, Severity, TextEdit};
use cudock_facts::lookup::NamedCuda;
use cudock_facts::version::Capability;
use cudock_manifests::{DeclaredPackage, Manager, Targets};
use cudock_target::Target;
use pep440_rs::Version;

use super::pip::{has_nvcc, install_arg, rename, source_builds, torch_cuda, use_index};
use crate::LintTarget;
use crate::context::{Installed, LintContext, RunCommand};
use crate::rule::{Report, Rule};

const ARCH_LIST: &str = "TORCH_CUDA_ARCH_LIST";

/// The name of extensions compiled for torch in the findings of cudock-compat.
const EXTENSION: &str = "extension built from";

const BACKEND: &str = "UV_TORCH_BACKEND";

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: codes::CPU_BUILD,
        name: "cpu-build",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "# for: H100, driver 580\nFROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1 --index-url https://download.pytorch.org/whl/cpu\n",
        good: "# for: H100, driver 580\nFROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1 --index-url https://download.pytorch.org/whl/cu124\n",
        check: prediction,
    },
    Rule {
        code: codes::DRIVER_TOO_OLD,
        name: "driver-too-old",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "# for: A100, driver 535\nFROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.11.0\n",
        good: "# for: A100, driver 535\nFROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.11.0 --index-url https://download.pytorch.org/whl/cu126\n",
        check: prediction,
    },
    Rule {
        code: codes::LIBRARY_NOT_INSTALLED,
        name: "cuda-library-not-installed",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "# for: T4, driver 580\nFROM nvidia/cuda:12.8.1-base-ubuntu24.04\nRUN pip install --no-cache-dir onnxruntime-gpu==1.22.0\n",
        good: "# for: T4, driver 580\nFROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04\nRUN pip install --no-cache-dir onnxruntime-gpu==1.22.0\n",
        check: prediction,
    },
    Rule {
        code: codes::BUILT_FOR_ROCM,
        name: "rocm-build",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "# for: H100, driver 580\nFROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1 --index-url https://download.pytorch.org/whl/rocm6.2\n",
        good: "# for: H100, driver 580\nFROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1 --index-url https://download.pytorch.org/whl/cu124\n",
        check: prediction,
    },
    Rule {
        code: codes::CARD_NOT_SUPPORTED,
        name: "gpu-not-supported",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "# for: P100, driver 570\nFROM python:3.12-slim\nRUN pip install --no-cache-dir vllm==0.9.2\n",
        good: "# for: T4, driver 570\nFROM python:3.12-slim\nRUN pip install --no-cache-dir vllm==0.9.2\n",
        check: prediction,
    },
    Rule {
        code: codes::NO_CODE_FOR_GPU,
        name: "no-code-for-gpu",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "# for: H100, driver 580\nFROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.0.1 torchvision==0.15.2\n",
        good: "# for: H100, driver 580\nFROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.0.1 torchvision==0.15.2 --index-url https://download.pytorch.org/whl/cu118\n",
        check: prediction,
    },
    Rule {
        code: codes::JIT_ONLY,
        name: "jit-only",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "# for: H100, driver 580\nFROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nCOPY app.cu .\nRUN nvcc -arch=sm_80 -o app app.cu\n",
        good: "# for: H100, driver 580\nFROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nCOPY app.cu .\nRUN nvcc -arch=sm_90 -o app app.cu\n",
        check: prediction,
    },
    Rule {
        code: codes::PTX_TOO_NEW,
        name: "ptx-too-new",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "# for: A10, driver 550\nFROM nvidia/cuda:12.8.1-devel-ubuntu24.04 AS build\nCOPY app.cu .\nRUN nvcc -gencode arch=compute_80,code=compute_80 -o /app app.cu\nFROM ubuntu:24.04\nCOPY --from=build /app /app\n",
        good: "# for: A10, driver 550\nFROM nvidia/cuda:12.8.1-devel-ubuntu24.04 AS build\nCOPY app.cu .\nRUN nvcc -gencode arch=compute_80,code=sm_80 -o /app app.cu\nFROM ubuntu:24.04\nCOPY --from=build /app /app\n",
        check: prediction,
    },
    Rule {
        code: codes::WRONG_PLATFORM,
        name: "wrong-platform",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "# for: Standard_NC24ads_A100_v4\nFROM --platform=linux/arm64 nvidia/cuda:12.8.1-base-ubuntu24.04\nCMD [\"nvidia-smi\"]\n",
        good: "# for: Standard_NC24ads_A100_v4\nFROM --platform=linux/amd64 nvidia/cuda:12.8.1-base-ubuntu24.04\nCMD [\"nvidia-smi\"]\n",
        check: prediction,
    },
    Rule {
        code: codes::GATE_REFUSES,
        name: "start-gate-refuses",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "# for: T4, driver 525\nFROM nvidia/cuda:12.6.3-base-ubuntu22.04\nCMD [\"nvidia-smi\"]\n",
        good: "# for: T4, driver 535\nFROM nvidia/cuda:12.6.3-base-ubuntu22.04\nCMD [\"nvidia-smi\"]\n",
        check: prediction,
    },
    Rule {
        code: codes::COMPILER_TARGET_UNSUPPORTED,
        name: "unsupported-architecture",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:11.8.0-devel-ubuntu22.04\nCOPY app.cu .\nRUN nvcc -gencode arch=compute_100,code=sm_100 -o app app.cu\n",
        good: "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nCOPY app.cu .\nRUN nvcc -gencode arch=compute_100,code=sm_100 -o app app.cu\n",
        check: prediction,
    },
    Rule {
        code: "CD0726",
        name: "native-architecture",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "# for: H100\nFROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nCOPY . .\nRUN cmake -B build -DCMAKE_CUDA_ARCHITECTURES=native && nvcc -arch=native -o app app.cu\n",
        good: "# for: H100\nFROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nCOPY . .\nRUN gcc -march=native -o app app.c && cmake -B build -DCMAKE_CUDA_ARCHITECTURES=90\n",
        check: native_architecture,
    },
    Rule {
        code: "CD0727",
        name: "plain-virtual-architecture",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nRUN nvcc -gencode arch=compute_120,code=sm_120a -o app app.cu\n",
        good: "FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nRUN nvcc -gencode arch=compute_120a,code=sm_120a -gencode arch=compute_90,code=sm_90 -o app app.cu\n",
        check: plain_virtual_architecture,
    },
    Rule {
        code: "CD0728",
        name: "extension-without-architectures",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nRUN pip install --no-cache-dir torch-scatter==2.1.2\n",
        good: "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"8.0;9.0\"\nRUN pip install --no-cache-dir torch-scatter==2.1.2\n",
        check: extension_without_architectures,
    },
    Rule {
        code: "CD0729",
        name: "cuda-wheels-without-gpu",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "# for: cpu\nFROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.5.1 torchvision==0.20.1\n",
        good: "# for: cpu\nFROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.5.1 torchvision==0.20.1 --index-url https://download.pytorch.org/whl/cpu\n",
        check: cuda_wheels_without_gpu,
    },
    Rule {
        code: "CD0730",
        name: "gpu-query-at-build-time",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime\nRUN python -c \"import torch; assert torch.cuda.is_available()\"\n",
        good: "FROM pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime\nRUN nvidia-smi || true\nRUN python -c \"import torch; print(torch.__version__)\"\n",
        check: gpu_query_at_build_time,
    },
    Rule {
        code: "CD0731",
        name: "architectures-miss-gpu",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "# for: H100\nFROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"7.5;8.0\"\nRUN pip install --no-cache-dir torch-scatter==2.1.2\n",
        good: "# for: H100\nFROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"7.5;8.0+PTX\"\nRUN pip install --no-cache-dir torch-scatter==2.1.2\n",
        check: architectures_miss_gpu,
    },
    Rule {
        code: "CD0732",
        name: "torch-backend-auto",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "# for: H100, driver 580\nFROM python:3.12-slim\nRUN uv pip install --no-cache --system torch==2.9.1 --torch-backend=auto\n",
        good: "# for: H100, driver 580\nFROM python:3.12-slim\nRUN uv pip install --no-cache --system torch==2.9.1 --torch-backend=cu128\n",
        check: torch_backend_auto,
    },
];

/// Findings of cudock-compat in the last stage, for the target if it has a GPU.
pub(super) fn predicted<'c>(context: &'c LintContext<'_>) -> &'c [Finding] {
    context.predicted.get_or_init(|| {
        let Some(declared) = context.declared.last() else { return Vec::new() };
        let mut evidence = of_declared(declared, context.path, context.arch, context.facts);
        // No rule reports what was not read, of which there may be thousands; the verdict depends on whether there is any.
        evidence.unread.truncate(1);
        if let Some(target) = gpu(context) {
            return judge(&evidence, target, context.facts).findings;
        }
        let failure = evidence.build_failure.map(|failure| {
            Finding::new(failure.code, Severity::Error, failure.reason, failure.fix)
                .with_evidence(failure.evidence)
        });
        evidence.findings.into_iter().chain(failure).collect()
    })
}

/// Reports what cudock-compat finds under the rule's code.
pub(super) fn prediction(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let code = report.code();
    for found in predicted(context).iter().filter(|found| found.code == code) {
        let Some(span) = position(context, found) else { continue };
        let by = context.command_at(span);
        let is_guarded = by.is_some_and(|by| by.command.is_conditional);
        if is_guarded || !is_certain(context, found, span) {
            continue;
        }
        let finding = report.finding(span, found.message.clone(), found.fix.clone());
        let finding = Finding { severity: found.severity, ..finding.with_evidence(found.evidence.clone()) };
        let edits = by.map(|by| fitting_build(context, by, span)).unwrap_or_default();
        report.push(match edits {
            Some((tag, edits)) => finding.suggest(format!("install the build for {tag}"), edits),
            None => finding,
        });
    }
}

/// Whether a finding of cudock-compat holds for a Dockerfile, of which it knows less than of an image.
fn is_certain(context: &LintContext<'_>, found: &Finding, span: Span) -> bool {
    // A version that another command replaces does not contradict it.
    let is_replaced = found.code == codes::CONTRADICTORY_PINS && !are_in_one_command(context, found);
    // Without reading the project, it is unknown whether it has GPU code.
    let is_open = found.message.starts_with(EXTENSION);
    // What it does not know is a warning.
    let is_unknown = found.code == codes::LIBRARY_NOT_INSTALLED && found.severity != Severity::Error;
    // The local version of a custom build does not determine its CUDA version.
    let is_own = |package: &DeclaredPackage| {
        package.tag.is_none() && package.exact.as_ref().is_some_and(Version::is_local)
    };
    let packages = context.declared.last().map(|declared| declared.packages.as_slice()).unwrap_or_default();
    let is_own_build = found.code == codes::CPU_BUILD
        && packages.iter().any(|package| package.span == span && is_own(package));
    !is_replaced && !is_open && !is_unknown && !is_own_build
}

fn gpu<'c>(context: &'c LintContext<'_>) -> Option<&'c Target> {
    match context.target? {
        LintTarget::Gpu(target) => Some(target),
        LintTarget::Cpu => None,
    }
}

/// The text that a finding of cudock-compat is about: it names lines of the file, lines of other files, or variables.
fn position(context: &LintContext<'_>, found: &Finding) -> Option<Span> {
    let from = || context.build.base_image(context.build.last()).map(|image| image.span);
    let Some(evidence) = found.evidence.first() else { return from() };
    let Some((file, line)) = evidence.path.rsplit_once(':') else { return from() };
    match line.parse() {
        Ok(line) if file == context.path => on_line(context, line, &found.message).or_else(from),
        Ok(_) => context
            .commands()
            .find_map(|(_, _, command)| {
                let mut args = command.args.iter();
                args.find(|arg| file.ends_with(arg.text.trim_start_matches("./")) && !arg.text.is_empty())
            })
            .map(|arg| arg.span)
            .or_else(from),
        Err(_) => from(),
    }
}

fn are_in_one_command(context: &LintContext<'_>, found: &Finding) -> bool {
    let lines = found.evidence.iter().filter_map(|evidence| evidence.path.rsplit_once(':')?.1.parse().ok());
    let spans = lines.filter_map(|line| on_line(context, line, &found.message));
    let mut starts = spans.filter_map(|span| Some(context.command_at(span)?.command.span.start));
    starts.next().is_some_and(|first| starts.all(|start| start == first))
}

/// The package, the compiler's command or the base image on a line.
fn on_line(context: &LintContext<'_>, line: usize, message: &str) -> Option<Span> {
    let declared = context.declared.last()?;
    let name = message.split([' ', ':', '=']).next().unwrap_or_default();
    let is_there = |package: &&DeclaredPackage| package.file.is_none() && package.span.line == line;
    let packages = || declared.packages.iter().filter(is_there);
    let package = packages().find(|package| package.name == name).or_else(|| packages().next());
    let compiled =
        || declared.compiled.iter().find(|compiled| compiled.file.is_none() && compiled.span.line == line);
    package.map(|package| package.span).or_else(|| compiled().map(|compiled| compiled.span))
}

/// The build of the same torch release that runs on the target, and the edits that choose it.
fn fitting_build(
    context: &LintContext<'_>,
    by: RunCommand<'_>,
    span: Span,
) -> Option<(String, Vec<TextEdit>)> {
    let packages = &context.declared.last()?.packages;
    let torch = packages.iter().find(|package| package.span == span && package.name == "torch")?;
    let tag = fitting_tag(context, torch.exact.as_ref()?)?;
    let edits = use_index(context, by, torch, tag);
    (!edits.is_empty()).then(|| (tag.to_owned(), edits))
}

/// The tag of the newest build of a torch release that runs on the target.
fn fitting_tag<'c>(context: &'c LintContext<'_>, version: &Version) -> Option<&'c str> {
    let target = gpu(context)?;
    let drivers = context.facts.drivers();
    let fits = context.facts.frameworks().torch_builds(version).filter(|build| {
        target.driver.is_none_or(|driver| drivers.runs_toolkit(driver, build.cuda))
            && build.has_code_for(target.capability.as_slice())
    });
    fits.max_by_key(|build| build.cuda).map(|build| build.tag.as_str())
}

/// How a compiler option or a variable names one architecture.
fn architecture(name: &str, card: Capability) -> String {
    match name {
        "-arch" | "--gpu-architecture" => format!("sm_{}", card.number()),
        ARCH_LIST => card.to_string(),
        _ => card.number().to_string(),
    }
}

/// Options and variables whose value can be `native`.
const ARCHITECTURE_SETTINGS: [&str; 5] =
    ["-arch", "--gpu-architecture", "CMAKE_CUDA_ARCHITECTURES", "CUDAARCHS", ARCH_LIST];

fn native_architecture(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let card = gpu(context).and_then(|target| target.capability);
    let mut found = |name: &str, span: Span| {
        let message = format!(
            "`{name}` is `native`, and a build has no GPU to look at: it fails, or compiles for another GPU"
        );
        let fix = format!(
            "name the architectures: {name}={}",
            card.map_or_else(|| "90".to_owned(), |card| architecture(name, card))
        );
        let finding = report.finding(span, message, fix.clone());
        let source = context.source(span);
        let edit = card
            .filter(|_| source.matches("native").count() == 1)
            .map(|card| context.edit(span, source.replace("native", &architecture(name, card))));
        report.push(match edit {
            Some(edit) => finding.suggest(fix, vec![edit]),
            None => finding,
        });
    };
    for setting in
        settings(context).filter(|setting| is_native(setting.value.as_ref().map(|value| value.text.as_str())))
    {
        if let Some(name) = ARCHITECTURE_SETTINGS.into_iter().find(|name| setting.name == *name) {
            found(name, setting.value_span);
        }
    }
    for (_, _, command) in context.commands() {
        let own = command.set.iter().filter(|(_, value)| is_native(value.as_deref()));
        for name in own.filter_map(|(own, _)| ARCHITECTURE_SETTINGS.into_iter().find(|name| own == name)) {
            found(name, command.span);
        }
        let is_compiler = ["nvcc", "cmake"].contains(&&*command.program);
        for (arg, next) in with_next(&command.args).filter(|_| is_compiler) {
            let text = arg.text.strip_prefix("-D").unwrap_or(&arg.text);
            let (name, value) = text
                .split_once('=')
                .map_or((text, next.map(|next| &*next.text)), |(name, value)| (name, Some(value)));
            let name = name.split(':').next().unwrap_or(name);
            let Some(name) = ARCHITECTURE_SETTINGS.into_iter().find(|known| *known == name) else { continue };
            if is_native(value) {
                found(
                    name,
                    if text.contains('=') { arg.span } else { next.map_or(arg.span, |next| next.span) },
                );
            }
        }
    }
}

fn is_native(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("native"))
}

fn with_next<'c>(
    args: &'c [CommandArg<'_>],
) -> impl Iterator<Item = (&'c CommandArg<'c>, Option<&'c CommandArg<'c>>)> {
    args.iter().enumerate().map(|(index, arg)| (arg, args.get(index + 1)))
}

/// The variables that stages set.
fn settings<'a>(context: &LintContext<'a>) -> impl Iterator<Item = &'a Setting> {
    let steps = context.stages().flat_map(|(_, stage)| &stage.steps);
    steps
        .filter_map(|step| match &step.kind {
            StepKind::Env(settings) | StepKind::Arg(settings) => Some(settings),
            _ => None,
        })
        .flatten()
}

fn plain_virtual_architecture(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    const OPTION: &str = "arch=compute_";
    // One search in the file is faster than one in each argument.
    let found: Vec<usize> = context.build.text().match_indices(OPTION).map(|(at, _)| at).collect();
    if found.is_empty() {
        return;
    }
    let within = |span: Span| {
        let first = found.partition_point(|at| *at < span.start);
        found.iter().copied().skip(first).take_while(move |at| at + OPTION.len() <= span.end)
    };
    let args = context
        .commands()
        .filter(|(_, _, command)| command.is_exact && within(command.span).next().is_some())
        .flat_map(|(_, _, command)| &command.args);
    let spans = args.map(|arg| arg.span).chain(settings(context).map(|setting| setting.value_span));
    for span in spans {
        for at in within(span) {
            let option = context.build.text().part(at..span.end);
            let Some((number, real)) = plain_for_special(option) else { continue };
            let start = at + OPTION.len() + number.len();
            let suffix = real.trim_start_matches(|digit: char| digit.is_ascii_digit());
            let message = format!(
                "`sm_{real}` is compiled from plain `compute_{number}`: code for the features of {real} is left out, and kernels that need it trap"
            );
            let fix = format!("write arch=compute_{real},code=sm_{real}");
            let finding = report.finding(span, message, fix.clone());
            report.push(finding.suggest(fix, vec![context.insert(start, suffix)]));
        }
    }
}

/// The numbers of `arch=compute_120,code=sm_120a`.
fn plain_for_special(option: &str) -> Option<(&str, &str)> {
    let rest = option.strip_prefix("arch=compute_")?;
    let (number, code) = rest.split_once(",code=")?;
    let real = code.trim_start_matches(['[', '\\', '"', '\'']).strip_prefix("sm_")?;
    let end = real.find(|next: char| !next.is_ascii_alphanumeric()).unwrap_or(real.len());
    let real = real.get(..end)?;
    let is_alone =
        real.len() == code.trim_start_matches("sm_").len() || !code.get(end + 3..)?.starts_with(',');
    (["a", "f"].contains(&real.strip_prefix(number)?) && is_alone).then_some((number, real))
}

fn extension_without_architectures(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let mut with_nvcc = HashMap::new();
    for build in source_builds(context) {
        if !build.row.uses_torch_list || context.is_set(build.by, ARCH_LIST) {
            continue;
        }
        let stage = build.by.stage;
        if *with_nvcc.entry(stage).or_insert_with(|| has_nvcc(context, stage)) != Some(true) {
            continue;
        }
        let list = gpu(context)
            .and_then(|target| target.capability)
            .map_or_else(|| "8.0;9.0+PTX".to_owned(), |card| card.to_string());
        let message = format!(
            "{} is compiled without {ARCH_LIST}, and a build has no GPU to look at: it stops with `IndexError`, or has no GPU code",
            build.name
        );
        report.add(build.span, message, format!("set {ARCH_LIST} before it: ENV {ARCH_LIST}=\"{list}\""));
    }
}

fn cuda_wheels_without_gpu(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    if !matches!(context.target, Some(LintTarget::Cpu)) {
        return;
    }
    let last = context.build.last();
    for Installed { package, by } in context.installed(last).iter().copied() {
        if package.manager != Manager::Pip {
            continue;
        }
        let shown = package
            .exact
            .as_ref()
            .map_or_else(|| package.name.clone(), |version| format!("{} {version}", package.name));
        let has_cuda_extra =
            package.extras.iter().any(|extra| extra == "and-cuda" || extra.starts_with("cuda"));
        let (fix, edits) = match package.name.as_str() {
            "torch" if is_cuda_build(context, package, last) && !names_backend(context, by) => {
                let fix = "take it from https://download.pytorch.org/whl/cpu".to_owned();
                (fix, use_index(context, by, package, "cpu"))
            }
            "onnxruntime-gpu" => ("install onnxruntime".to_owned(), rename(context, package, "onnxruntime")),
            "tensorflow" | "jax" if has_cuda_extra => {
                (format!("install {} without the extra", package.name), Vec::new())
            }
            name if name.starts_with("nvidia-") && NamedCuda::split(name).is_some() => {
                (format!("leave {name} out"), Vec::new())
            }
            _ => continue,
        };
        let wheel = package.exact.as_ref().filter(|_| package.name == "torch").and_then(|version| {
            let mib = context.facts.frameworks().torch(version)?.wheel_mib?;
            Some(format!("; its wheel alone is {}", bytes(u64::from(mib) << 20)))
        });
        let message = format!(
            "{shown} is a build for CUDA, which a machine without a GPU cannot use{}",
            wheel.unwrap_or_default()
        );
        let finding = report.finding(package.span, message, fix.clone());
        report.push(if edits.is_empty() { finding } else { finding.suggest(fix, edits) });
    }
}

/// Whether a torch is a build for CUDA. On PyPI it is, but for Arm before 2.11.
fn is_cuda_build(context: &LintContext<'_>, package: &DeclaredPackage, stage: usize) -> bool {
    match package.tag.as_deref() {
        Some(tag) => tag.starts_with("cu"),
        None => package.exact.is_none() || torch_cuda(context, package, stage).is_some(),
    }
}

/// Whether the build of torch is selected for uv, by name or by the machine.
fn names_backend(context: &LintContext<'_>, by: RunCommand<'_>) -> bool {
    by.command.value_of("--torch-backend").is_some() || context.is_set(by, BACKEND)
}

/// Python calls that answer only where a GPU is.
const QUERIES: [&str; 6] = [
    "torch.cuda.is_available(",
    "torch.cuda.device_count(",
    "torch.cuda.get_device",
    "torch.cuda.current_device(",
    "list_physical_devices(",
    "is_gpu_available(",
];

fn gpu_query_at_build_time(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, step, run) in context.runs() {
        let has_device = step.instruction.arguments.text.trim_start().starts_with("--")
            && step.instruction.arguments.text.contains("--device");
        for command in run
            .commands
            .iter()
            .filter(|command| !command.is_conditional && command.operator != "||" && !has_device)
        {
            if command.program == "nvidia-smi" {
                let message = "nvidia-smi comes from the driver, which a build does not have: the build stops with exit code 127";
                let finding = report.finding(command.span, message, "run it when the container starts");
                report.push(Finding { severity: Severity::Error, ..finding });
            }
            if let Some(query) = python_query(command) {
                let name = query.trim_end_matches('(');
                let message = format!("`{name}` finds no GPU during a build, whatever the machine has");
                report.add(command.span, message, "ask when the container starts");
            }
        }
    }
}

fn python_query(command: &Command<'_>) -> Option<&'static str> {
    let script = command.program.starts_with("python").then(|| command.value_of("-c")).flatten()?;
    QUERIES.into_iter().find(|query| script.contains(query))
}

fn architectures_miss_gpu(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some((target, card)) = gpu(context).and_then(|target| Some((target, target.capability?))) else {
        return;
    };
    let gpu = target.gpu.as_deref().unwrap_or("the GPU");
    let message = |list: &str| {
        format!("{ARCH_LIST} is `{list}`: extensions have no code for {gpu} ({card}) and fail with error 209")
    };
    let misses = |list: &str| Targets::of_torch_list(list).covers(card) == Some(false);
    for setting in settings(context).filter(|setting| setting.name == ARCH_LIST) {
        let value = setting.value.as_ref().filter(|value| value.unknown.is_none() && misses(&value.text));
        let Some(value) = value else { continue };
        let list = format!("{};{card}", value.text);
        let finding = report.finding(setting.value_span, message(&value.text), format!("add {card}: {list}"));
        let is_plain = context.source(setting.value_span).trim_matches('"') == value.text;
        let edit = context.edit(setting.value_span, format!("\"{list}\""));
        report.push(if is_plain { finding.suggest(format!("add {card}"), vec![edit]) } else { finding });
    }
    for (_, _, command) in context.commands().filter(|(_, _, command)| install_arg(command).is_some()) {
        if let Some(list) = command.variable(ARCH_LIST).filter(|list| misses(list)) {
            report.add(command.span, message(list), format!("add {card}: {list};{card}"));
        }
    }
}

fn torch_backend_auto(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    if matches!(context.target, Some(LintTarget::Cpu)) {
        return;
    }
    let message = "uv chooses the build by the GPU of the building machine, which has none: it installs torch for the CPU";
    let is_auto = |setting: &&Setting| {
        setting.name == BACKEND && setting.value.as_ref().is_some_and(|value| value.text == "auto")
    };
    for setting in settings(context).filter(is_auto) {
        report.add(setting.value_span, message, format!("name the build: {BACKEND}=cu128"));
    }
    let commands = context.run_commands().filter(|by| by.command.program == "uv");
    for by in commands.filter(|by| by.command.value_of("--torch-backend") == Some("auto")) {
        let torch = context
            .installed(by.stage)
            .iter()
            .find(|one| one.package.name == "torch" && one.by.command.span == by.command.span);
        let version = torch.and_then(|torch| torch.package.exact.clone());
        let tag = version.and_then(|version| fitting_tag(context, &version));
        let finding = report.finding(
            by.command.span,
            message,
            format!("name the build: --torch-backend={}", tag.unwrap_or("cu128")),
        );
        let source = context.source(by.command.span);
        let (spaced, joined) = ("--torch-backend auto", "--torch-backend=auto");
        let at = source.find(spaced).or_else(|| source.find(joined)).map(|at| by.command.span.start + at);
        report.push(match (tag, at) {
            (Some(tag), Some(at)) => {
                let option = context.build.lines.span(at..at + joined.len());
                let edit = context.edit(option, format!("--torch-backend={tag}"));
                finding.suggest(format!("name the build {tag}"), vec![edit])
            }
            _ => finding,
        });
    }
}
