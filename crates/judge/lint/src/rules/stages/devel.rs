//! Compilers and headers in the image that is shipped.

use cudock_base::Span;
use cudock_base::text::format;
use cudock_dockerfile::{Command, CommandArg, CopyFrom, StepKind};
use cudock_facts::lookup::{ImageTag, PackageUse, split_reference};
use cudock_facts::tables::GpuUse;
use cudock_facts::version::{CudaRelease, CudaVersion};
use cudock_manifests::Manager;

use super::programs::{is_compiler, is_text};
use super::sources::{copies, image};
use crate::context::LintContext;
use crate::rule::Report;

/// Programs that people start to work inside of the container.
const INTERACTIVE: &str =
    "bash code code-server fish jupyter jupyter-lab jupyter-notebook sh sleep sshd tail tmux zsh";

/// Words in the paths of files whose images are for building and testing.
const DEVELOPMENT: [&str; 9] =
    ["build", "builder", "ci", "dev", "devcontainer", "devel", "development", "test", "tests"];

/// Texts of programs that compile CUDA at run time.
const COMPILING_TEXTS: [&str; 6] =
    ["cpp_extension", "load_inline", "nvcc", "numba", "triton", "torch.compile"];

/// Packages of distributions that are only good for building.
const BUILD_TOOLS: [&str; 10] = [
    "build-essential",
    "clang",
    "cmake",
    "g++",
    "gcc",
    "gfortran",
    "make",
    "nasm",
    "ninja-build",
    "nvidia-cuda-toolkit",
];

/// A last stage on a `devel` image.
struct DevelStage {
    /// The image with `runtime` in place of `devel`.
    smaller: String,
    saving: Option<u64>,
}

/// Why the last stage needs what a `devel` image has.
#[derive(PartialEq, Eq)]
enum Need {
    /// It compiles at run time, or people work in it.
    AtRunTime,
    /// Something is compiled in it, or may be.
    Perhaps,
    No,
}

fn devel_stage(context: &LintContext<'_>) -> Option<DevelStage> {
    let last = context.build.last();
    let (repository, tag) = image(context, last)?;
    let tables = context.facts.images();
    let smaller = format!("{repository}:{}", tag.replace("devel", "runtime"));
    if repository == "nvidia/cuda" {
        let tag = ImageTag::parse(tag).filter(|tag| tag.flavor.ends_with("devel"))?;
        let cuda: CudaRelease = tag.cuda.parse().ok()?;
        let saving = tables.flavor_saving(cuda, &tag.flavor, &tag.flavor.replace("devel", "runtime"));
        return Some(DevelStage { smaller, saving });
    }
    let found = tables.framework_image(repository, tag).filter(|found| found.flavor == "devel")?;
    // The other flavor is not built on an image of nvidia/cuda at all.
    let cuda: Option<CudaVersion> = found.cuda.and_then(|cuda| cuda.parse().ok());
    let releases = tables.flavor_size.iter().filter(|row| Some(row.cuda.version()) == cuda);
    let saving = releases.filter_map(|row| tables.flavor_saving(row.cuda, "devel", "base")).min();
    Some(DevelStage { smaller, saving })
}

fn need(context: &LintContext<'_>) -> Need {
    let last = context.build.last();
    let Some(declared) = context.declared.get(last) else { return Need::AtRunTime };
    let mut names = context.path.split(['/', '.', '-', '_']);
    if names.any(|name| DEVELOPMENT.contains(&name)) {
        return Need::AtRunTime;
    }
    let mut need = Need::No;
    for package in &declared.packages {
        match context.facts.packages().find(&package.name) {
            PackageUse::Gpu(row, _) if row.uses == GpuUse::Compiler => return Need::AtRunTime,
            PackageUse::Gpu(row, _) if row.uses == GpuUse::Code => need = Need::Perhaps,
            PackageUse::Unknown if package.manager == Manager::Pip => need = Need::Perhaps,
            _ => {}
        }
    }
    let chain: Vec<usize> = context.build.chain(last).map(|(index, _)| index).collect();
    let is_own = |span: Span| {
        let next = context.build.stages.partition_point(|stage| stage.from.span.start <= span.start);
        next.checked_sub(1).is_some_and(|stage| chain.contains(&stage))
    };
    // Notes of other stages are about what is copied.
    if declared.notes.iter().any(|note| note.decides && (note.file.is_some() || is_own(note.span))) {
        need = Need::Perhaps;
    }
    let (mut starts, mut has_program) = (None, false);
    for step in context.build.steps(last) {
        match &step.kind {
            StepKind::Cmd(start) | StepKind::Entrypoint(start) => starts = Some(start),
            StepKind::Run(run)
                if run.commands.iter().any(|command| is_compiler(command) || installs_tools(command)) =>
            {
                need = Need::Perhaps;
            }
            StepKind::Copy(copy) => {
                has_program |= !copy.sources.iter().all(|source| is_text(&source.text));
                let texts = copy.sources.iter().filter(|_| copy.from.is_none());
                let mut texts =
                    texts.filter_map(|source| context.files.text(source.text.trim_start_matches("./")));
                if texts.any(|text| COMPILING_TEXTS.iter().any(|part| text.contains(part))) {
                    return Need::AtRunTime;
                }
            }
            StepKind::Other if step.instruction.keyword == "ONBUILD" => return Need::AtRunTime,
            _ => {}
        }
    }
    let commands = starts.map(|start| start.commands.as_slice()).unwrap_or_default();
    let is_interactive = |command: &Command<'_>| {
        let is_shell = INTERACTIVE.split(' ').any(|known| known == command.program);
        is_shell && !command.args.iter().any(|arg| arg.text.ends_with(".sh") || arg.text.ends_with(".py"))
    };
    if commands.iter().any(|command| is_interactive(command) || is_compiler(command)) {
        return Need::AtRunTime;
    }
    match commands {
        // Others build on it, or work in it.
        [] if !has_program => Need::AtRunTime,
        [] => Need::Perhaps,
        _ => need,
    }
}

/// The build tools that a command installs.
fn tools<'c>(command: &'c Command<'_>) -> impl Iterator<Item = &'c CommandArg<'c>> {
    let manages = ["apt-get", "apt", "dnf", "yum", "microdnf", "apk"].contains(&&*command.program);
    let (_, packages) = command
        .subcommand()
        .filter(|(name, _)| manages && ["install", "add"].contains(name))
        .unwrap_or_default();
    packages.iter().filter(|arg| {
        let name = arg.text.split(['=', ':']).next().unwrap_or_default();
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
        BUILD_TOOLS.contains(&plain) || name.starts_with("cuda-toolkit") || name.starts_with("cuda-nvcc")
    })
}

fn installs_tools(command: &Command<'_>) -> bool {
    tools(command).next().is_some()
}

fn at_least(saving: Option<u64>) -> String {
    saving
        .map_or_else(String::new, |bytes| format!(", at least {} more than `runtime`", format::bytes(bytes)))
}

pub(super) fn devel_in_final_stage(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some(stage) = devel_stage(context).filter(|_| need(context) == Need::No) else { return };
    let last = context.build.last();
    let Some(span) = context.build.base_image(last).map(|image| image.span) else { return };
    let message = format!(
        "nothing in the last stage compiles, and it ships nvcc, headers and static libraries{}",
        at_least(stage.saving)
    );
    let mut finding = report.finding(span, message, format!("start it from {}", stage.smaller));
    finding.saves_bytes = stage.saving;
    // Frameworks call the image's C compiler for some features.
    let has_packages = context.declared.get(last).is_some_and(|declared| !declared.packages.is_empty());
    let edit = context.replace_in_image(last, "devel", "runtime").filter(|_| !has_packages);
    report.push(match edit {
        Some(edit) => finding.suggest(format!("use {}", stage.smaller), vec![edit]),
        None => finding,
    });
}

pub(super) fn compiler_shipped(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    // Python packages may compile at run time: DeepSpeed, Triton, CuPy.
    let managers = ["conda", "mamba", "micromamba", "pip", "pip3", "pixi", "poetry", "uv"];
    let has_python = context.image_commands().any(|(_, command)| managers.contains(&&*command.program));
    let stage = devel_stage(context).filter(|_| !has_python && need(context) == Need::Perhaps);
    let Some(stage) = stage else { return };
    let Some(span) = context.build.base_image(context.build.last()).map(|image| image.span) else { return };
    let message = format!("the image ships nvcc, headers and static libraries{}", at_least(stage.saving));
    let fix = format!(
        "compile in a stage of its own and start the last one from {}, unless something compiles at run time",
        stage.smaller
    );
    let mut finding = report.finding(span, message, fix);
    finding.saves_bytes = stage.saving;
    report.push(finding);
}

pub(super) fn build_tools(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let last = context.build.last();
    let has_stage = copies(context).any(|(_, copy)| matches!(copy.from, Some(CopyFrom::Stage(_))));
    let is_known = context.declared.get(last).is_some_and(|declared| declared.packages.is_empty());
    if !has_stage || !is_known || context.cuda_image(last).is_none() {
        return;
    }
    let runs = context.build.steps(last).into_iter().filter_map(|step| match &step.kind {
        StepKind::Run(run) => Some(run),
        _ => None,
    });
    let commands: Vec<&Command<'_>> = runs.flat_map(|run| &run.commands).collect();
    // What else runs may need them: pip, a script, a removal in the same layer.
    let quiet = [
        "apt-get", "apt", "cd", "chmod", "chown", "echo", "ldconfig", "ln", "mkdir", "rm", "set", "useradd",
        "groupadd",
    ];
    let removes = |command: &&Command<'_>| {
        command.subcommand().is_some_and(|(name, _)| ["autoremove", "purge", "remove"].contains(&name))
    };
    if !commands.iter().all(|command| quiet.contains(&&*command.program)) || commands.iter().any(removes) {
        return;
    }
    for command in commands {
        for tool in tools(command) {
            let message = format!("`{}` is only good for building, which another stage does", tool.text);
            report.add(tool.span, message, "install it in the stage that builds");
        }
    }
}

pub(super) fn toolkit_copied(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, copy) in copies(context) {
        let reference = match &copy.from {
            Some(CopyFrom::Stage(stage)) => image(context, *stage),
            Some(CopyFrom::Image(name)) => Some(split_reference(name)),
            None => None,
        };
        let Some(("nvidia/cuda", tag)) = reference else { continue };
        let Some(tag) = ImageTag::parse(tag).filter(|tag| tag.flavor.ends_with("devel")) else { continue };
        let is_toolkit = |path: &str| {
            let path = path.trim_end_matches('/');
            path == "/usr/local/cuda"
                || path.strip_prefix("/usr/local/cuda-").is_some_and(|version| !version.contains('/'))
        };
        for source in copy.sources.iter().filter(|source| is_toolkit(&source.text)) {
            if need(context) == Need::AtRunTime {
                return;
            }
            let runtime = tag.flavor.replace("devel", "runtime");
            let cuda = tag.cuda.parse::<CudaRelease>().ok();
            let saving =
                cuda.and_then(|cuda| context.facts.images().flavor_saving(cuda, &tag.flavor, &runtime));
            let message = format!(
                "this copies the whole toolkit, with nvcc, headers and static libraries{}",
                at_least(saving)
            );
            let fix = format!("start the stage from nvidia/cuda:{}-{runtime}-{}", tag.cuda, tag.os);
            let mut finding = report.finding(source.span, message, fix);
            finding.saves_bytes = saving;
            report.push(finding);
        }
    }
}
