//! Programs that stages compile, and the CUDA libraries they link to.

use std::collections::BTreeSet;
use std::sync::Arc;

use cudock_base::Span;
use cudock_base::text::path::absolute;
use cudock_dockerfile::{Command, StepKind};

use super::sources::{copies, image, source_stage};
use crate::context::LintContext;

/// Maximum number of programs of one stage that are checked.
const MAX_PROGRAMS: usize = 64;

/// The limit for the files of a build that are read.
const MAX_BUILD_FILES: usize = 16;

const LINKERS: [&str; 7] = ["nvcc", "gcc", "g++", "cc", "c++", "clang", "clang++"];

/// Tools that build what a file of the project says.
const BUILDERS: [&str; 7] = ["bazel", "cargo", "cmake", "gmake", "make", "meson", "ninja"];

/// Directories in which builders leave programs.
const OUTPUT_DIRECTORIES: [&str; 9] =
    ["bin", "build", "dist", "install", "lib", "lib64", "out", "output", "release"];

/// Libraries in the `runtime` flavor, as linkers name them. NPP's names begin with `npp`.
const MATH: [&str; 13] = [
    "cublas",
    "cublasLt",
    "cufft",
    "cufftw",
    "cufile",
    "curand",
    "cusolver",
    "cusolverMg",
    "cusparse",
    "nccl",
    "nvJitLink",
    "nvjpeg",
    "nvrtc",
];

/// Where a library of CUDA is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Base,
    Runtime,
    Cudnn,
}

/// The flavor that has a library, by its name for the linker; `None` if it is not one of CUDA's.
pub(super) fn part_of(library: &str) -> Option<Part> {
    match library {
        "cudart" => Some(Part::Base),
        _ if library.ends_with("_static") => None,
        _ if library == "cudnn" || library.starts_with("cudnn_") => Some(Part::Cudnn),
        _ if MATH.contains(&library) || library.starts_with("npp") => Some(Part::Runtime),
        _ => None,
    }
}

/// The program that a command compiles.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Its path, if the command names it.
    pub(super) output: Option<String>,
    /// Other output directories in the command.
    directories: Vec<String>,
    workdir: Arc<str>,
    /// The shared libraries of CUDA that it links to; `None` if the file does not determine them.
    pub(super) libraries: Option<BTreeSet<String>>,
    pub(super) is_cuda: bool,
}

impl Program {
    /// Whether a copy of a path contains it.
    fn is_in(&self, path: &str) -> bool {
        if let Some(output) = &self.output {
            return is_below(output, path);
        }
        let is_output = path.split('/').any(|name| OUTPUT_DIRECTORIES.contains(&name));
        self.directories.iter().any(|directory| is_below(path, directory))
            || is_output && self.workdir.len() > 1 && is_below(path, &self.workdir)
    }
}

/// Whether a path is a directory or below it.
fn is_below(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A program that the last stage copies.
pub(super) struct Copied {
    pub(super) program: Program,
    /// The stage that compiles it.
    pub(super) stage: usize,
    /// The path in the `COPY`.
    pub(super) span: Span,
    pub(super) path: String,
}

/// The programs that the last stage copies from others.
pub(super) fn copied(context: &LintContext<'_>) -> Vec<Copied> {
    let mut compiled: Vec<Option<Vec<Program>>> = vec![None; context.build.stages.len()];
    let mut found = Vec::new();
    for (_, copy) in copies(context) {
        let Some(stage) = source_stage(copy) else { continue };
        let Some(slot) = compiled.get_mut(stage) else { continue };
        let programs = slot.get_or_insert_with(|| programs(context, stage));
        for source in copy.sources.iter().filter(|source| !source.is_unresolved && !is_text(&source.text)) {
            let path = absolute("/", &source.text);
            let contained = programs.iter().filter(|program| program.is_in(&path));
            found.extend(contained.map(|program| Copied {
                program: program.clone(),
                stage,
                span: source.span,
                path: path.clone(),
            }));
        }
    }
    found
}

/// Whether a file is not a program, by its name.
pub(super) fn is_text(path: &str) -> bool {
    let endings = [
        ".cfg", ".conf", ".csv", ".h", ".html", ".ini", ".json", ".md", ".onnx", ".pt", ".py", ".sh",
        ".toml", ".txt", ".whl", ".xml", ".yaml", ".yml",
    ];
    endings.iter().any(|ending| path.ends_with(ending))
}

/// The programs that a stage compiles, with those of the stages it is built on.
fn programs(context: &LintContext<'_>, stage: usize) -> Vec<Program> {
    let of_cuda = image(context, stage)
        .is_some_and(|(repository, tag)| repository == "nvidia/cuda" && tag.contains("devel"));
    let mut in_files = None;
    let runs = context.build.steps(stage).into_iter().filter_map(|step| match &step.kind {
        StepKind::Run(run) => Some(run),
        _ => None,
    });
    let mut programs = Vec::new();
    for command in runs.flat_map(|run| &run.commands).filter(|command| !command.is_conditional) {
        let name = &*command.program;
        if is_linker(command) {
            programs.extend(linked(command));
        } else if BUILDERS.contains(&name) {
            let in_files = in_files.get_or_insert_with(|| in_build_files(context, stage));
            programs.push(Program {
                output: None,
                directories: directories(command),
                workdir: Arc::clone(&command.workdir),
                libraries: in_files.clone(),
                is_cuda: of_cuda,
            });
        }
        if programs.len() >= MAX_PROGRAMS {
            break;
        }
    }
    programs
}

/// Whether a command compiles native code.
pub(super) fn is_compiler(command: &Command<'_>) -> bool {
    let name = &*command.program;
    let of_python =
        name.starts_with("python") && command.args.iter().any(|arg| arg.text.ends_with("setup.py"));
    is_linker(command) || BUILDERS.contains(&name) || of_python
}

fn is_linker(command: &Command<'_>) -> bool {
    let name = &*command.program;
    // `g++-12` is `g++`.
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    LINKERS.contains(&name) || plain != name && LINKERS.contains(&plain)
}

/// The program that a compiler links.
fn linked(command: &Command<'_>) -> Option<Program> {
    let is_other =
        |option: &str| ["-c", "-dc", "-E", "-ptx", "-cubin", "--version", "-dumpversion"].contains(&option);
    if command.args.is_empty() || command.args.iter().any(|arg| is_other(&arg.text)) {
        return None;
    }
    let written = command.value_of("-o").or_else(|| command.value_of("--output-file")).unwrap_or("a.out");
    let is_unresolved = command.args.iter().any(|arg| arg.is_unresolved);
    let is_cuda = command.program.starts_with("nvcc");
    let mut libraries: BTreeSet<String> = BTreeSet::new();
    let mut args = command.args.iter().map(|arg| &*arg.text).peekable();
    while let Some(arg) = args.next() {
        let name = match arg {
            "-l" | "--library" => args.peek().copied(),
            _ => arg.strip_prefix("-l").or_else(|| arg.strip_prefix("--library=")),
        };
        let names = name.into_iter().flat_map(|name| name.split(','));
        libraries.extend(names.filter(|name| part_of(name).is_some()).map(str::to_owned));
    }
    let is_shared = |value: &str| value == "shared";
    if is_cuda && ["-cudart", "--cudart"].iter().any(|option| command.value_of(option).is_some_and(is_shared))
    {
        libraries.insert("cudart".to_owned());
    }
    Some(Program {
        output: Some(absolute(&command.workdir, written)),
        directories: Vec::new(),
        workdir: Arc::clone(&command.workdir),
        libraries: (!is_unresolved).then_some(libraries),
        is_cuda: is_cuda || command.args.iter().any(|arg| arg.text == "-lcudart"),
    })
}

/// Output directories in a builder's arguments.
fn directories(command: &Command<'_>) -> Vec<String> {
    let options = ["-B", "--build", "--prefix", "--install-prefix", "--target-dir"];
    let values = options.iter().filter_map(|option| command.value_of(option));
    let mut directories: Vec<String> = values.map(str::to_owned).collect();
    let definitions = command.args.iter().filter_map(|arg| {
        arg.text.strip_prefix("-DCMAKE_INSTALL_PREFIX=").or_else(|| arg.text.strip_prefix("PREFIX="))
    });
    directories.extend(definitions.map(str::to_owned));
    if command.has("install") || command.has("--install") {
        directories.push("/usr/local/bin".to_owned());
        directories.push("/usr/local/lib".to_owned());
    }
    let directories = directories.into_iter().map(|directory| absolute(&command.workdir, &directory));
    // Every path is below the root.
    directories.filter(|directory| directory != "/").collect()
}

/// The shared libraries of CUDA that the `CMakeLists.txt` which a stage copies always link to.
fn in_build_files(context: &LintContext<'_>, stage: usize) -> Option<BTreeSet<String>> {
    let mut libraries = None;
    let sources = context.build.steps(stage).into_iter().filter_map(|step| match &step.kind {
        StepKind::Copy(copy) if copy.from.is_none() => Some(&copy.sources),
        _ => None,
    });
    let sources = sources.flatten().filter(|source| !source.is_unresolved).take(MAX_BUILD_FILES);
    let mut left = MAX_BUILD_FILES;
    for source in sources {
        let path = absolute("/", &source.text);
        let files = context.files.below(path.trim_start_matches('/'));
        for file in files.iter().filter(|file| file.rsplit('/').next() == Some("CMakeLists.txt")).take(left) {
            left -= 1;
            let Some(text) = context.files.text(file) else { continue };
            libraries.get_or_insert_with(BTreeSet::new).extend(in_cmake(&text));
        }
    }
    libraries
}

/// The libraries of `target_link_libraries` that are not under a condition.
fn in_cmake(text: &str) -> Vec<String> {
    let mut libraries = Vec::new();
    let (mut depth, mut is_linking) = (0_usize, false);
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let lower = line.to_ascii_lowercase();
        let is_call =
            |name: &str| lower.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('('));
        depth += usize::from(["if", "function", "macro", "foreach"].iter().any(|name| is_call(name)));
        let ends = ["endif", "endfunction", "endmacro", "endforeach"].iter().any(|name| is_call(name));
        depth = depth.saturating_sub(usize::from(ends));
        is_linking |= is_call("target_link_libraries");
        if is_linking && depth == 0 {
            let names = line.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | ';'));
            let names = names.map(|name| name.strip_prefix("CUDA::").unwrap_or(name));
            libraries.extend(names.filter(|name| part_of(name).is_some()).map(str::to_owned));
        }
        is_linking &= !line.contains(')');
    }
    libraries
}
