//! Files that layers keep, and the order that decides which are built again.

use std::collections::{BTreeMap, HashMap};

use cudock_base::Span;
use cudock_base::text::path::absolute;
use cudock_dockerfile::{Command, Step, StepKind};
use cudock_facts::finding::Severity;

use super::packages::{installed, removed};
use crate::context::LintContext;
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0777",
        name: "copy-before-install",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\nCOPY . .\nRUN pip install -r requirements.txt\n",
        good: "\
FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
COPY requirements.txt .
RUN pip install -r requirements.txt
COPY . .
RUN pip install -e .
",
        check: copy_before_install,
    },
    Rule {
        code: "CD0783",
        name: "files-kept-in-layer",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "\
FROM ubuntu:22.04
WORKDIR /tmp
RUN wget https://example.com/cuda_12.4.1_550.54.15_linux.run
RUN sh cuda_12.4.1_550.54.15_linux.run --silent --toolkit && rm cuda_12.4.1_550.54.15_linux.run
",
        good: "\
FROM ubuntu:22.04
WORKDIR /tmp
RUN wget https://example.com/cuda_12.4.1_550.54.15_linux.run && \\
    sh cuda_12.4.1_550.54.15_linux.run --silent --toolkit && rm cuda_12.4.1_550.54.15_linux.run
",
        check: files_kept_in_layer,
    },
];

/// Packages whose wheels or dependencies take gigabytes.
const LARGE_PACKAGES: [&str; 10] = [
    "torch",
    "tensorflow",
    "jax",
    "vllm",
    "sglang",
    "xformers",
    "flash-attn",
    "deepspeed",
    "onnxruntime-gpu",
    "tensorrt",
];

fn copy_before_install(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (index, stage) in context.stages().filter(|(index, _)| context.needed.get(*index) == Some(&true)) {
        let mut copied = None;
        for step in &stage.steps {
            match &step.kind {
                StepKind::Copy(copy) if copy.from.is_none() => {
                    let is_all =
                        copy.sources.iter().any(|source| [".", "./"].contains(&source.text.as_str()));
                    copied = copied.or(is_all.then_some(step.instruction.span));
                }
                StepKind::Run(run) => {
                    let mut installs = run.commands.iter().filter(|command| is_install(command));
                    let Some(install) = installs.next() else { continue };
                    // An install before the copy satisfies the rule, and that of the project needs
                    // the copy.
                    let Some(span) = copied.filter(|_| installs_dependencies(install)) else { break };
                    let is_cached = run.mounts.iter().any(|mount| mount.kind == "cache");
                    if !is_cached && !install.is_conditional && is_gpu_stage(context, index) {
                        let program = &install.program;
                        let message = format!(
                            "every change of a source file runs {program} again, which downloads gigabytes"
                        );
                        let fix =
                            "copy only the files that name the dependencies before it, and the rest after it";
                        report.add(span, message, fix);
                    }
                    break;
                }
                _ => {}
            }
        }
    }
}

/// Whether a command installs packages of Python or conda, the project's own included.
fn is_install(command: &Command<'_>) -> bool {
    let is_local = |text: &str| text.starts_with('.') || text == "-e" || text == "--editable";
    installs_dependencies(command) || is_pip(command) && command.args.iter().any(|arg| is_local(&arg.text))
}

fn is_pip(command: &Command<'_>) -> bool {
    let program = &*command.program;
    program.starts_with("pip") && command.is(program, "install")
        || command.is("uv", "pip") && command.has("install")
}

/// Whether a command installs packages that do not depend on the project's own sources.
fn installs_dependencies(command: &Command<'_>) -> bool {
    let program = &*command.program;
    if ["conda", "mamba", "micromamba"].contains(&program) {
        return command.subcommand().is_some_and(|(subcommand, args)| match subcommand {
            "env" => args.first().is_some_and(|action| ["create", "update"].contains(&&*action.text)),
            "install" | "create" => true,
            _ => false,
        });
    }
    let is_file = |text: &str| text.starts_with("-r") || text.starts_with("--requirement");
    let is_large = |text: &str| {
        let name = text.split(['=', '<', '>', '[', '~', '!', ' ']).next().unwrap_or_default();
        LARGE_PACKAGES.contains(&name)
    };
    is_pip(command) && command.args.iter().any(|arg| is_file(&arg.text) || is_large(&arg.text))
}

fn is_gpu_stage(context: &LintContext<'_>, stage: usize) -> bool {
    let base = context.build.base_image(stage).map(|image| image.reference.text.as_str()).unwrap_or_default();
    let declared = context.declared.get(stage);
    ["cuda", "nvidia", "pytorch", "tensorflow", "rapids", "vllm"].iter().any(|name| base.contains(name))
        || declared.is_some_and(|declared| {
            declared.packages.iter().any(|package| LARGE_PACKAGES.contains(&package.name.as_str()))
        })
}

/// A file that a step adds to the image.
struct AddedFile {
    step: usize,
    span: Span,
    is_installer: bool,
}

fn files_kept_in_layer(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let mut files: BTreeMap<String, AddedFile> = BTreeMap::new();
    let mut packages: HashMap<&str, usize> = HashMap::new();
    for (at, step) in context.image_steps().iter().enumerate() {
        add_copied(&mut files, at, step);
        let StepKind::Run(run) = &step.kind else { continue };
        for command in run.commands.iter().filter(|command| !command.is_conditional) {
            if let Some(path) = downloaded_file(command) {
                let is_installer = is_large_installer(&path);
                files.insert(path, AddedFile { step: at, span: command.span, is_installer });
            }
            packages.extend(installed(command).map(|(_, name)| (name, at)));
            let earlier =
                removed(command).find(|(_, name)| packages.get(*name).is_some_and(|added| *added < at));
            if let Some((arg, name)) = earlier {
                let message = format!("removing `{name}` frees nothing: an earlier layer holds it");
                report.add(
                    arg.span,
                    message,
                    "remove it in the RUN that installs it, or build in another stage",
                );
            }
            if command.program == "rm" {
                remove(&mut files, at, command, report);
            }
        }
    }
    for (path, file) in files.into_iter().filter(|(_, file)| file.is_installer) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let message = format!("the installer `{name}` of several gigabytes stays in the layer");
        report.add(
            file.span,
            message,
            "remove it in the same RUN, or install from NVIDIA's network repository",
        );
    }
}

/// Archives and installers that are copied from the build context.
fn add_copied(files: &mut BTreeMap<String, AddedFile>, at: usize, step: &Step<'_>) {
    let StepKind::Copy(copy) = &step.kind else { return };
    let archives = [".deb", ".run", ".rpm", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".zip", ".whl"];
    // `ADD` unpacks archives.
    let is_add = step.instruction.keyword == "ADD";
    for source in copy.sources.iter().filter(|source| !source.is_unresolved && !is_add) {
        let name = source.text.rsplit('/').next().unwrap_or_default();
        if archives.iter().any(|end| name.ends_with(end)) && !name.contains('*') {
            let target = copy.target.text.as_str();
            let path = if target.ends_with('/') { format!("{target}{name}") } else { target.to_owned() };
            files.insert(path, AddedFile { step: at, span: source.span, is_installer: false });
        }
    }
}

fn remove(
    files: &mut BTreeMap<String, AddedFile>,
    at: usize,
    command: &Command<'_>,
    report: &mut Report<'_, '_>,
) {
    for arg in command.args.iter().filter(|arg| !arg.text.starts_with('-') && !arg.is_unresolved) {
        let path = absolute(&command.workdir, &arg.text);
        let start = path.split('*').next().unwrap_or_default().to_owned();
        let end = path.get(start.len()..).and_then(|rest| rest.rsplit_once('*')).map(|(_, end)| end);
        let covers = |file: &str| {
            let rest = file.strip_prefix(&start).unwrap_or_default();
            match end {
                // A pattern that ends with `*` takes directories, too.
                Some(end) => end.is_empty() || rest.ends_with(end) && !rest.contains('/'),
                None => rest.is_empty() || rest.starts_with('/'),
            }
        };
        let gone: Vec<String> = files
            .range(start.clone()..)
            .map(|(file, _)| file)
            .take_while(|file| file.starts_with(&start))
            .filter(|file| covers(file))
            .cloned()
            .collect();
        let removed: Vec<AddedFile> = gone.iter().filter_map(|file| files.remove(file)).collect();
        if let (Some(file), true) = (gone.first(), removed.iter().any(|file| file.step < at)) {
            let message = format!("removing `{file}` frees nothing: the layer that added it keeps it");
            report.add(
                arg.span,
                message,
                "add and remove it in one RUN, or mount it: `RUN --mount=type=bind`",
            );
        }
    }
}

/// The file that a command downloads to the image.
fn downloaded_file(command: &Command<'_>) -> Option<String> {
    if !["wget", "curl"].contains(&&*command.program) {
        return None;
    }
    let url = command.args.iter().find(|arg| arg.text.contains("://"))?;
    let name = || {
        let path = url.text.split(['?', '#']).next()?;
        path.rsplit('/').next().filter(|name| !name.is_empty() && !url.is_unresolved)
    };
    let file = match &*command.program {
        "wget" => match command.value_of("-O").or_else(|| command.value_of("--output-document")) {
            Some(file) => Some(file),
            None if command.args.iter().any(|arg| arg.text.starts_with("-P") || arg.text.contains("O-")) => {
                None
            }
            None => name(),
        },
        "curl" => command.value_of("-o").or_else(|| command.value_of("--output")).or_else(|| {
            let is_remote = |arg: &str| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('O');
            let writes = command.args.iter().any(|arg| is_remote(&arg.text) || arg.text == "--remote-name");
            writes.then(name).flatten()
        }),
        _ => None,
    }?;
    (file != "-" && !file.starts_with('$')).then(|| absolute(&command.workdir, file))
}

/// Whether a file is one of NVIDIA's installers of gigabytes: `cuda_12.4.1_550.54.15_linux.run`, local repositories.
fn is_large_installer(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_run = name.starts_with("cuda_") && name.ends_with(".run");
    let is_repository = name.ends_with(".deb") && name.contains("-local")
        || name.ends_with(".rpm") && name.contains("-local");
    let starts = ["cuda-repo-", "cudnn-local-repo", "nv-tensorrt-local"];
    is_run || is_repository && starts.iter().any(|start| name.starts_with(start))
}
