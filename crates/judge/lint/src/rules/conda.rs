//! conda, mamba and micromamba: channels, CUDA without a GPU in the build, and how environments are used and cleaned.

use cudock_base::Span;
use cudock_dockerfile::{Command, StepKind};
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::version::{CudaRelease, CudaVersion};
use cudock_manifests::{DeclaredPackage, Manager};
use pep440_rs::Version;

use super::pip::{install_arg, is_pip};
use crate::LintTarget;
use crate::context::{LintContext, RunCommand};
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0748",
        name: "unpinned-conda-installer",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM nvidia/cuda:12.8.1-base-ubuntu24.04\nRUN curl -fsSLo conda.sh https://repo.anaconda.com/miniconda/Miniconda3-latest-Linux-x86_64.sh && bash conda.sh -b -p /opt/conda\n",
        good: "FROM nvidia/cuda:12.8.1-base-ubuntu24.04\nRUN curl -fsSLo conda.sh https://github.com/conda-forge/miniforge/releases/download/25.3.1-0/Miniforge3-25.3.1-0-Linux-x86_64.sh && bash conda.sh -b -p /opt/conda\n",
        check: unpinned_installer,
    },
    Rule {
        code: "CD0749",
        name: "mixed-conda-channels",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM condaforge/miniforge3:25.3.1-0\nRUN conda install -y -c defaults -c conda-forge numpy=2.2 && conda clean --all --yes\n",
        good: "FROM condaforge/miniforge3:25.3.1-0\nRUN conda install -y -c conda-forge numpy=2.2 && conda clean --all --yes\n",
        check: mixed_channels,
    },
    Rule {
        code: "CD0750",
        name: "dead-pytorch-channel",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "FROM continuumio/miniconda3:25.3.1-1\nRUN conda install -y -c pytorch -c nvidia pytorch=2.7.1 && conda clean --all --yes\n",
        good: "FROM continuumio/miniconda3:25.3.1-1\nRUN conda install -y -c pytorch -c nvidia pytorch=2.5.1 pytorch-cuda=12.4 && conda clean --all --yes\n",
        check: dead_channel,
    },
    Rule {
        code: "CD0751",
        name: "conda-cuda-selectors",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "FROM continuumio/miniconda3:25.3.1-1\nRUN conda install -y -c pytorch -c nvidia pytorch=2.5.1 pytorch-cuda=12.6 && conda clean --all --yes\n",
        good: "FROM continuumio/miniconda3:25.3.1-1\nRUN conda install -y -c pytorch -c nvidia pytorch=2.5.1 pytorch-cuda=12.4 && conda clean --all --yes\n",
        check: cuda_selectors,
    },
    Rule {
        code: "CD0752",
        name: "conda-override-cuda-missing",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "# for: H100, driver 580\nFROM condaforge/miniforge3:25.3.1-0\nRUN conda install -y -c conda-forge pytorch=2.7.1 && conda clean --all --yes\n",
        good: "# for: H100, driver 580\nFROM condaforge/miniforge3:25.3.1-0\nRUN CONDA_OVERRIDE_CUDA=12.8 conda install -y -c conda-forge pytorch=2.7.1 && conda clean --all --yes\n",
        check: override_missing,
    },
    Rule {
        code: "CD0753",
        name: "conda-run-captures-output",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM condaforge/miniforge3:25.3.1-0\nENTRYPOINT [\"conda\", \"run\", \"-n\", \"app\", \"python\", \"serve.py\"]\n",
        good: "FROM condaforge/miniforge3:25.3.1-0\nENTRYPOINT [\"conda\", \"run\", \"--no-capture-output\", \"-n\", \"app\", \"python\", \"serve.py\"]\n",
        check: run_captures_output,
    },
    Rule {
        code: "CD0754",
        name: "conda-activate-without-effect",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM condaforge/miniforge3:25.3.1-0\nSHELL [\"/bin/bash\", \"-lc\"]\nRUN conda activate app\nRUN python -m pip install --no-cache-dir numpy\n",
        good: "FROM condaforge/miniforge3:25.3.1-0\nSHELL [\"/bin/bash\", \"-lc\"]\nRUN conda activate app && python -m pip install --no-cache-dir numpy\n",
        check: activate_without_effect,
    },
    Rule {
        code: "CD0755",
        name: "conda-not-cleaned",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM condaforge/miniforge3:25.3.1-0\nRUN conda install -y -c conda-forge numpy=2.2\nRUN conda clean --all --yes\n",
        good: "FROM condaforge/miniforge3:25.3.1-0 AS build\nRUN conda create -y -p /env -c conda-forge numpy=2.2\nFROM debian:12-slim\nCOPY --from=build /env /env\n",
        check: not_cleaned,
    },
    Rule {
        code: "CD0756",
        name: "conda-update-of-base",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM condaforge/miniforge3:25.3.1-0\nCOPY environment.yml .\nRUN mamba env update -n base -f environment.yml && mamba clean --all --yes\n",
        good: "FROM mambaorg/micromamba:2.3.0\nCOPY environment.yml .\nRUN micromamba install -y -n base -f environment.yml && micromamba clean --all --yes\n",
        check: update_of_base,
    },
    Rule {
        code: "CD0757",
        name: "conda-for-pip-alone",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "FROM condaforge/miniforge3:25.3.1-0\nRUN conda create -y -n app python=3.12 && conda clean --all --yes\nRUN conda run -n app pip install --no-cache-dir torch==2.9.1\n",
        good: "FROM condaforge/miniforge3:25.3.1-0\nRUN conda create -y -n app -c conda-forge python=3.12 gdal=3.10 && conda clean --all --yes\nRUN conda run -n app pip install --no-cache-dir torch==2.9.1\n",
        check: conda_for_pip_alone,
    },
];

const PROGRAMS: [&str; 3] = ["conda", "mamba", "micromamba"];

fn is_conda(command: &Command<'_>) -> bool {
    PROGRAMS.contains(&&*command.program)
}

/// Whether a command installs packages with conda: `conda install`, `mamba env create`.
fn installs(command: &Command<'_>) -> bool {
    let Some((subcommand, rest)) = command.subcommand().filter(|_| is_conda(command)) else { return false };
    match subcommand {
        "install" | "create" | "update" | "upgrade" => true,
        "env" => rest.iter().any(|arg| ["create", "update"].contains(&&*arg.text)),
        _ => false,
    }
}

/// The installations of all stages that no condition guards.
fn installations<'a>(context: &LintContext<'a>) -> impl Iterator<Item = RunCommand<'a>> {
    context.run_commands().copied().filter(|by| installs(by.command) && !by.command.is_conditional)
}

/// The channels that a command names, in order.
fn channels<'c>(command: &'c Command<'_>) -> Vec<&'c str> {
    let mut found = Vec::new();
    let mut args = command.args.iter();
    while let Some(arg) = args.next() {
        let value = match arg.text.split_once('=') {
            Some(("-c" | "--channel", value)) => Some(value),
            None if ["-c", "--channel"].contains(&&*arg.text) => args.next().map(|next| &*next.text),
            _ => None,
        };
        found
            .extend(value.map(|channel| channel.trim_end_matches('/').rsplit('/').next().unwrap_or(channel)));
    }
    found
}

fn unpinned_installer(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let moving =
        ["miniconda3-latest", "miniforge/releases/latest/", "micro.mamba.pm/api/micromamba/linux-64/latest"];
    let commands = context.commands().filter(|(_, _, command)| ["curl", "wget"].contains(&&*command.program));
    for arg in commands.flat_map(|(_, _, command)| &command.args) {
        let url = arg.text.to_ascii_lowercase();
        if url.contains("://") && moving.iter().any(|moving| url.contains(moving)) {
            let message = "the newest conda is installed, whatever it is that day: its Python and its solver change between builds";
            report.add(arg.span, message, "name a release in the URL, and check its hash");
        }
    }
}

fn mixed_channels(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for by in installations(context) {
        let channels = channels(by.command);
        let of_anaconda = channels.iter().find(|channel| ["defaults", "anaconda", "main"].contains(channel));
        if let Some(other) = of_anaconda.filter(|_| channels.contains(&"conda-forge")) {
            let message = format!(
                "packages of `{other}` and `conda-forge` are mixed: their libraries are built against different ones"
            );
            report.add(by.command.span, message, "keep one of the channels, with --override-channels");
        }
    }
}

/// The last release on PyTorch's own channel.
const LAST_ON_CHANNEL: [u64; 3] = [2, 5, 1];

fn dead_channel(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let last = Version::new(LAST_ON_CHANNEL);
    for by in installations(context) {
        let channels = channels(by.command);
        if channels.contains(&"conda-forge") || !channels.iter().any(|channel| channel.starts_with("pytorch"))
        {
            continue;
        }
        let Some(package) = context.conda_packages(by).iter().find(|package| package.name == "pytorch")
        else {
            continue;
        };
        let (message, severity) = match asked(package) {
            Some(version) if version.release() > last.release() => (
                format!("PyTorch's channel ends with {last} and has no pytorch {version}: the solver fails"),
                Severity::Error,
            ),
            Some(_) => continue,
            None => (
                format!(
                    "PyTorch's channel ends with {last}, of October 2024: newer releases and code for newer GPUs never come"
                ),
                Severity::Warning,
            ),
        };
        let finding =
            report.finding(package.span, message, "take pytorch from conda-forge, or the wheel with pip");
        report.push(Finding { severity, ..finding });
    }
}

/// The requested version, or the beginning of it: 2.6 of `=2.6` and `2.6.*`.
fn asked(package: &DeclaredPackage) -> Option<Version> {
    let start = |range: &String| {
        let bare = range.trim_start_matches('=');
        bare.trim_end_matches('*').trim_end_matches('.').parse().ok()
    };
    package.exact.clone().or_else(|| package.range.as_ref().and_then(start))
}

fn cuda_selectors(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for by in installations(context) {
        let find = |name: &str| context.conda_cuda_packages(by).iter().find(|package| package.name == name);
        let (toolkit, selector) = (find("cudatoolkit"), find("pytorch-cuda"));
        let other = selector.or_else(|| find("cuda-version"));
        if let Some(cuda) = toolkit.and_then(|toolkit| toolkit.cuda).filter(|cuda| cuda.major() >= 12)
            && let Some(toolkit) = toolkit
        {
            let message =
                format!("cudatoolkit {cuda} does not exist: 11.8 is the last version, and the solver fails");
            report.add(toolkit.span, message, format!("write cuda-version={cuda}"));
        } else if let (Some(toolkit), Some(other)) = (toolkit, other)
            && let (Some(one), Some(two)) = (toolkit.cuda, other.cuda)
            && one != two
        {
            let message =
                format!("cudatoolkit {one} and {} {two} ask for different CUDA versions", other.name);
            report.add(
                toolkit.span,
                message,
                format!("leave cudatoolkit out: {} chooses the CUDA", other.name),
            );
        }
        let torch = context.conda_packages(by).iter().find(|package| package.name == "pytorch");
        if let (Some(torch), Some(selector)) = (torch, selector)
            && let (Some(version), Some(cuda)) = (&torch.exact, selector.cuda)
        {
            no_such_build(context, report, version, (cuda, selector.span));
        }
    }
}

/// PyTorch's channel had the builds that its indexes of wheels have.
fn no_such_build(
    context: &LintContext<'_>,
    report: &mut Report<'_, '_>,
    version: &Version,
    (cuda, span): (CudaVersion, Span),
) {
    let built: Vec<CudaVersion> =
        context.facts.frameworks().torch_builds(version).map(|build| build.cuda).collect();
    if built.is_empty()
        || built.contains(&cuda)
        || version.release() > Version::new(LAST_ON_CHANNEL).release()
    {
        return;
    }
    let built = built.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let message = format!("pytorch {version} does not exist for pytorch-cuda {cuda}: the solver fails");
    report.add(span, message, format!("choose one of {built}"));
}

/// Frameworks of which conda-forge has builds for the CPU and for CUDA.
const FRAMEWORKS: [&str; 9] = [
    "jaxlib",
    "libtorch",
    "onnxruntime",
    "pytorch",
    "pytorch-gpu",
    "tensorflow",
    "tensorflow-base",
    "tensorflow-gpu",
    "torchvision",
];

fn override_missing(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    if matches!(context.target, Some(LintTarget::Cpu)) {
        return;
    }
    for by in installations(context) {
        let channels = channels(by.command);
        let is_forge = channels.contains(&"conda-forge")
            && !channels.iter().any(|channel| channel.starts_with("pytorch"));
        let packages = context.conda_packages(by);
        let is_for_cpu = |package: &&DeclaredPackage| {
            package.tag.as_deref() == Some("cpu") || package.name.ends_with("-cpu")
        };
        if !is_forge || context.is_set(by, "CONDA_OVERRIDE_CUDA") || packages.iter().any(is_for_cpu) {
            continue;
        }
        let Some(package) = packages.iter().find(|package| FRAMEWORKS.contains(&package.name.as_str()))
        else {
            continue;
        };
        let message = format!(
            "conda sees no GPU during a build and takes the CPU build of {}, without a word",
            package.name
        );
        let cuda = cuda_for(context, by);
        let shown = cuda.map_or_else(|| "12.8".to_owned(), |cuda| cuda.to_string());
        let fix = format!("set CONDA_OVERRIDE_CUDA={shown} for the command");
        let finding = report.finding(package.span, message, fix.clone());
        let edit = context.insert(by.command.span.start, format!("CONDA_OVERRIDE_CUDA={shown} "));
        let is_certain = by.command.is_exact && cuda.is_some();
        report.push(if is_certain { finding.suggest(fix, vec![edit]) } else { finding });
    }
}

/// The CUDA version that the environment is for: that of the command, of the base image, or of the
/// target driver.
fn cuda_for(context: &LintContext<'_>, by: RunCommand<'_>) -> Option<CudaVersion> {
    let asked = context.conda_cuda_packages(by).iter().find_map(|package| package.cuda);
    let of_image = || Some(context.cuda_image(by.stage)?.cuda.parse::<CudaRelease>().ok()?.version());
    let of_target = || match context.target {
        Some(LintTarget::Gpu(target)) => target.cuda,
        _ => None,
    };
    asked.or_else(of_image).or_else(of_target)
}

fn run_captures_output(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for step in context.stages().flat_map(|(_, stage)| &stage.steps) {
        let arguments = step.instruction.arguments.text.as_str();
        let captures = match &step.kind {
            StepKind::Cmd(start) | StepKind::Entrypoint(start) => start.commands.iter().any(|command| {
                let words = command.args.iter().map(|arg| &*arg.text);
                command.is("conda", "run") && words.into_iter().all(|word| !STREAMS.contains(&word))
            }),
            StepKind::Shell(shell) => {
                let mut words = shell.iter().map(String::as_str);
                words.next().is_some_and(|program| program.ends_with("conda"))
                    && words.next() == Some("run")
                    && words.all(|word| !STREAMS.contains(&word))
            }
            _ => false,
        };
        if !captures {
            continue;
        }
        let span = step.instruction.span;
        let message = "`conda run` holds output back until the program ends: logs are lost when the container is killed";
        let fix = "add --no-capture-output, or put the environment's bin directory first in PATH";
        let finding = report.finding(span, message, fix);
        let source = context.source(span);
        let (written, option) = if arguments.starts_with('[') {
            ("\"run\"", ", \"--no-capture-output\"")
        } else {
            ("conda run", " --no-capture-output")
        };
        let at = source.find(written).filter(|_| source.matches(written).count() == 1);
        let edit = at.map(|at| context.insert(span.start + at + written.len(), option));
        report.push(match edit {
            Some(edit) => finding.suggest("add --no-capture-output", vec![edit]),
            None => finding,
        });
    }
}

/// Options with which `conda run` passes output on.
const STREAMS: [&str; 3] = ["--no-capture-output", "--live-stream", "-s"];

fn activate_without_effect(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, _, run) in context.runs() {
        let Some(last) = run.commands.last() else { continue };
        let name = match &*last.program {
            "conda" | "mamba" | "micromamba" => {
                last.subcommand().filter(|(word, _)| *word == "activate").map(|(_, rest)| rest)
            }
            "source" | "." => last
                .args
                .split_first()
                .filter(|(first, _)| first.text.rsplit('/').next() == Some("activate"))
                .map(|(_, rest)| rest),
            _ => None,
        };
        let Some(name) = name else { continue };
        let name = name.first().map_or("base", |arg| &*arg.text);
        let message = format!(
            "`{name}` is activated in a shell that ends with this RUN: later instructions do not see it"
        );
        let fix = format!("set ENV PATH=/opt/conda/envs/{name}/bin:$PATH, or activate it in the same RUN");
        report.add(last.span, message, fix);
    }
}

fn not_cleaned(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let is_clean = |command: &Command<'_>| {
        is_conda(command) && command.subcommand().is_some_and(|(word, _)| word == "clean")
    };
    let removes = |command: &Command<'_>| {
        command.program == "rm" && command.args.iter().any(|arg| arg.text.contains("pkgs"))
    };
    let cleans = |command: &Command<'_>| is_clean(command) || removes(command);
    let last_clean =
        context.run_commands().filter(|by| cleans(by.command)).map(|by| by.command.span.start).max();
    for (stage, _, run) in context.runs().filter(|(stage, _, _)| context.is_shipped(*stage)) {
        let has_cache = run.mounts.iter().any(|mount| {
            mount.kind == "cache"
                && (mount.target.contains("pkgs")
                    || mount.target.contains("conda")
                    || mount.target.contains("mamba"))
        });
        if has_cache || run.commands.iter().any(cleans) {
            continue;
        }
        let installs = |command: &&Command<'_>| installs(command) && !command.is_conditional;
        let Some(command) = run.commands.iter().rev().find(installs) else { continue };
        let is_moved = context.is_set(RunCommand { stage, run, command }, "CONDA_PKGS_DIRS");
        if is_moved {
            continue;
        }
        let is_later = last_clean.is_some_and(|clean| clean > command.span.start);
        let message = if is_later {
            "downloaded packages are removed in a later layer, so they stay in this one"
        } else {
            "downloaded packages stay in the layer, beside those that were installed from them"
        };
        let program = &command.program;
        let fix = format!("end the RUN with {program} clean --all --yes");
        let finding = report.finding(command.span, message, fix);
        let edit = context.insert(command.span.end, format!(" && {program} clean --all --yes"));
        let is_simple = command.is_exact
            && ["", "&&"].contains(&command.operator.trim())
            && command.outputs.is_empty()
            && command.unquoted.is_empty();
        report.push(if is_simple { finding.suggest("clean in the same RUN", vec![edit]) } else { finding });
    }
}

fn update_of_base(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for by in installations(context).filter(|by| by.command.program != "micromamba") {
        let is_update = by.command.is(&by.command.program, "env") && by.command.has("update");
        let name = by.command.value_of("-n").or_else(|| by.command.value_of("--name"));
        if is_update && name == Some("base") {
            let message = "the environment that conda itself runs in is changed: a package of the file can break conda, and its own stay in the image";
            report.add(
                by.command.span,
                message,
                "create an environment of its own: env create -n NAME, or -p /env",
            );
        }
    }
}

fn conda_for_pip_alone(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (stage, _) in context.stages() {
        let Some(declared) = context.declared.get(stage) else { continue };
        let by_conda = declared
            .packages
            .iter()
            .any(|package| package.manager == Manager::Conda && package.name != "pip")
            || declared.cuda_packages.iter().any(|package| package.manager == Manager::Conda);
        let own = || context.stages().nth(stage).into_iter().flat_map(|(_, stage)| &stage.steps);
        let runs = || {
            own().filter_map(|step| match &step.kind {
                StepKind::Run(run) => Some(run),
                _ => None,
            })
        };
        let commands = || runs().flat_map(|run| &run.commands);
        let is_bare = |command: &&Command<'_>| {
            installs(command)
                && !command.args.iter().any(|arg| {
                    arg.is_unresolved
                        || ["-f", "--file", "--clone"].contains(&&*arg.text)
                        || arg.text.starts_with("--file=")
                })
        };
        let uses_files = commands().filter(|command| installs(command)).any(|command| !is_bare(&command));
        let uses_pip = commands().any(|command| is_pip(command) && install_arg(command).is_some());
        let Some(create) =
            commands().find(|command| command.is(&command.program, "create") && is_bare(command))
        else {
            continue;
        };
        if by_conda || uses_files || !uses_pip {
            continue;
        }
        let message = "conda installs nothing but Python here, and pip all the rest: conda's own installation is in the image for that alone";
        report.add(create.span, message, "let uv bring Python: uv venv --python 3.12 /env, uv pip install …");
    }
}
