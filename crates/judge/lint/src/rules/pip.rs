//! Queries of rules about packages from pip and uv: their CUDA, how they are built, and edits of
//! the commands that install them.

use cudock_base::Arch;
use cudock_dockerfile::{Command, CommandArg, StepKind};
use cudock_facts::finding::TextEdit;
use cudock_facts::lookup::{ImageTag, PackageUse, TorchWheel, split_reference};
use cudock_facts::tables::GpuUse;
use cudock_facts::version::{CudaRelease, CudaVersion};
use cudock_manifests::{DeclaredPackage, Manager};

use crate::context::{Compilation, Installed, LintContext, RunCommand};

/// Packages that PyTorch's indexes hold.
pub(super) const TORCH_FAMILY: [&str; 3] = ["torch", "torchvision", "torchaudio"];

/// The CUDA that comes with a torch from pip.
pub(super) fn torch_cuda(
    context: &LintContext<'_>,
    torch: &DeclaredPackage,
    stage: usize,
) -> Option<CudaVersion> {
    if let Some(tag) = &torch.tag {
        return CudaVersion::from_tag(tag);
    }
    let (frameworks, version) = (context.facts.frameworks(), torch.exact.as_ref()?);
    match context.arch_of(stage) {
        Arch::Aarch64 => frameworks.torch(version)?.aarch64_cuda,
        Arch::X86_64 => {
            let build = frameworks.torch_build(version, TorchWheel::Pypi).map(|build| build.cuda);
            build.or_else(|| frameworks.torch(version).map(|release| release.cuda))
        }
    }
}

/// Whether a package itself uses a GPU or contains CUDA.
pub(super) fn is_for_gpu(context: &LintContext<'_>, name: &str) -> bool {
    let uses = |uses| matches!(uses, GpuUse::Framework | GpuUse::Code | GpuUse::Compiler | GpuUse::Library);
    matches!(context.facts.packages().find(name), PackageUse::Gpu(row, _) if uses(row.uses))
}

/// Whether a command is pip's.
pub(super) fn is_pip(command: &Command<'_>) -> bool {
    let version = command.program.strip_prefix("pip");
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// The argument of pip or uv after which options of an installation come: `install`, `sync`, `add`.
pub(super) fn install_arg<'c>(command: &'c Command<'_>) -> Option<&'c CommandArg<'c>> {
    let is_pip = is_pip(command);
    if !is_pip && command.program != "uv" {
        return None;
    }
    let mut words = command.args.iter().filter(|arg| !arg.text.starts_with('-'));
    let first = words.next()?;
    match &*first.text {
        "install" if is_pip => Some(first),
        "pip" if !is_pip => words.next().filter(|word| ["install", "sync"].contains(&&*word.text)),
        "sync" | "add" if !is_pip => Some(first),
        _ => None,
    }
}

/// Options of an installation without a value, and without an effect on where packages come from.
const PLAIN_OPTIONS: [&str; 14] = [
    "--break-system-packages",
    "--force-reinstall",
    "--no-cache",
    "--no-cache-dir",
    "--no-deps",
    "--quiet",
    "--root-user-action=ignore",
    "--system",
    "--upgrade",
    "--user",
    "--verbose",
    "-U",
    "-q",
    "-v",
];

/// Whether a command installs nothing but packages of PyTorch's indexes, by name.
pub(super) fn is_torch_only(command: &Command<'_>) -> bool {
    let Some(install) = install_arg(command) else { return false };
    let mut args = command.args.iter().filter(|arg| arg.span.start > install.span.start);
    args.all(|arg| {
        let name = arg.text.split(['=', '<', '>', '!', '~', '[']).next().unwrap_or_default();
        !arg.is_unresolved && (PLAIN_OPTIONS.contains(&&*arg.text) || TORCH_FAMILY.contains(&name))
    })
}

/// Edits that make a command install a package's build for another tag; none if its text does not say plainly which it is.
pub(super) fn use_index(
    context: &LintContext<'_>,
    by: RunCommand<'_>,
    package: &DeclaredPackage,
    tag: &str,
) -> Vec<TextEdit> {
    let command = by.command;
    if !command.is_exact {
        return Vec::new();
    }
    let Some(old) = &package.tag else {
        let option = format!(" --index-url https://download.pytorch.org/whl/{tag}");
        return is_torch_only(command)
            .then(|| context.insert(command.span.end, option))
            .into_iter()
            .collect();
    };
    let named = command.args.iter().filter_map(|arg| {
        let source = context.source(arg.span);
        let changed = ["+", "/whl/"].iter().fold(source.to_owned(), |text, before| {
            replace_word(&text, &format!("{before}{old}"), &format!("{before}{tag}"))
        });
        (changed != source && !source.contains('$')).then(|| context.edit(arg.span, changed))
    });
    named.collect()
}

/// Replaces a word where no letter or digit follows it.
fn replace_word(text: &str, old: &str, new: &str) -> String {
    let mut parts = text.split(old);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_longer = part.starts_with(|next: char| next.is_ascii_alphanumeric());
        replaced.push_str(if is_longer { old } else { new });
        replaced.push_str(part);
    }
    replaced
}

/// The edit that replaces a package's name and extras; none if they are not written plainly.
pub(super) fn rename(context: &LintContext<'_>, package: &DeclaredPackage, name: &str) -> Vec<TextEdit> {
    let source = context.source(package.span);
    let quotes = source.len() - source.trim_start_matches(['"', '\'']).len();
    let is_plain = source.get(quotes..).is_some_and(|rest| {
        rest.strip_prefix(package.name.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['=', '<', '>', '~', '!', '"', '\'']))
    });
    let mut renamed = source.replacen(&package.name, name, 1);
    // A shell may read brackets as a pattern.
    if quotes == 0 && name.contains('[') {
        renamed = format!("'{renamed}'");
    }
    is_plain.then(|| context.edit(package.span, renamed)).into_iter().collect()
}

/// The packages of all stages that pip compiles with nvcc, as far as the tables know them.
pub(super) fn source_builds<'c, 'a>(context: &'c LintContext<'a>) -> &'c [Compilation<'a>] {
    context.source_builds.get_or_init(|| find_source_builds(context))
}

fn find_source_builds<'a>(context: &LintContext<'a>) -> Vec<Compilation<'a>> {
    let mut found = Vec::new();
    for (stage, _) in context.stages() {
        for Installed { package, by } in context.installed(stage).iter().copied() {
            let is_wheel = package.tag.is_some() || package.manager != Manager::Pip;
            if by.stage != stage || is_wheel {
                continue;
            }
            if let Some(row) = context.facts.packages().source_build(&package.name)
                && !names_an_index(by.command)
            {
                found.push(Compilation { name: &package.name, row, span: package.span, by });
            }
        }
    }
    // One search in the file is faster than one in each argument.
    let has_repositories = context.build.text().contains("git+");
    let commands = context.run_commands().filter(|by| has_repositories && !by.command.is_conditional);
    for by in commands.filter(|by| install_arg(by.command).is_some()) {
        for arg in by.command.args.iter().filter(|arg| arg.text.contains("git+")) {
            let repository = arg.text.split_once("://").map_or("", |(_, rest)| rest);
            let name = repository.split(['@', '#']).next().unwrap_or_default().trim_end_matches('/');
            let name = name.rsplit('/').next().unwrap_or_default().trim_end_matches(".git");
            let name = name.to_ascii_lowercase().replace('_', "-");
            if let Some(row) = context.facts.packages().source_build(&name)
                && let Some(name) = row.names.iter().find(|known| **known == name)
            {
                found.push(Compilation { name, row, span: arg.span, by: *by });
            }
        }
    }
    found
}

/// Whether a command names a place of wheels besides PyPI.
fn names_an_index(command: &Command<'_>) -> bool {
    let options =
        ["-f", "--find-links", "-i", "--index-url", "--extra-index-url", "--index", "--default-index"];
    command.args.iter().any(|arg| {
        let name = arg.text.split('=').next().unwrap_or_default();
        options.contains(&name) || name.starts_with("-f") && name.len() > 2 && !name.starts_with("--")
    })
}

/// The CUDA toolkit of a stage's base image, if it has nvcc.
pub(super) fn toolkit_of_base(context: &LintContext<'_>, stage: usize) -> Option<CudaVersion> {
    let image = context.cuda_image(stage).filter(|image| image.flavor.contains("devel"))?;
    Some(image.cuda.parse::<CudaRelease>().ok()?.version())
}

/// Whether a stage has nvcc; `None` if that is unknown.
pub(super) fn has_nvcc(context: &LintContext<'_>, stage: usize) -> Option<bool> {
    let declared = context.declared.get(stage)?;
    let is_compiler = |name: &str| {
        name == "cuda"
            || [
                "cuda-toolkit",
                "cuda-nvcc",
                "cuda-compiler",
                "nvidia-cuda",
                "cudatoolkit-dev",
                "cuda-minimal-build",
            ]
            .iter()
            .any(|compiler| name.starts_with(compiler))
    };
    let of_packages = declared.packages.iter().any(|package| package.name.starts_with("nvidia-cuda-nvcc"));
    if of_packages || declared.cuda_packages.iter().any(|package| is_compiler(&package.name)) {
        return Some(true);
    }
    let copies = context.build.steps(stage).into_iter().any(|step| match &step.kind {
        StepKind::Copy(copy) => copy.target.text.contains("cuda") || copy.target.text == "/usr/local/",
        StepKind::Run(run) => {
            run.commands.iter().any(|command| command.args.iter().any(|arg| arg.text.contains("cuda_")))
        }
        _ => false,
    });
    if copies {
        return None;
    }
    if let Some(ImageTag { flavor, .. }) = context.cuda_image(stage) {
        return Some(flavor.contains("devel"));
    }
    let reference = &context.build.base_image(stage)?.reference;
    match split_reference(&reference.text).0 {
        "pytorch/pytorch" if reference.unknown.is_none() => {
            let is_devel = reference.text.ends_with("-devel");
            (is_devel || reference.text.ends_with("-runtime")).then_some(is_devel)
        }
        _ => context.is_plain(stage).then_some(false),
    }
}
