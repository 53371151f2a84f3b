//! Classifies packages by their names: whether they use a GPU, do not, or are unknown.

use std::collections::BTreeSet;

use cudock_facts::Facts;
use cudock_facts::lookup::{NamedCuda, PackageUse};
use cudock_facts::tables::{GpuPackage, GpuUse, Packages};
use cudock_facts::version::CudaVersion;
use cudock_host::frameworks::Support;
use pep440_rs::{Version, VersionSpecifiers};

use super::conda;
use crate::evidence::{Artifact, ArtifactKind, Code, Evidence, PackageCode, Runtime, Unread};
use cudock_manifests::{Declared, DeclaredPackage, Manager};

/// Frameworks that are judged by the tables of their builds.
pub(crate) const FRAMEWORKS: [&str; 9] = [
    "torch",
    "pytorch",
    "tensorflow",
    "tensorflow-gpu",
    "tensorflow-cpu",
    "onnxruntime-gpu",
    "onnxruntime",
    "jax",
    "jaxlib",
];

/// Maximum number of unknown packages that are listed.
const MOST_NAMES: usize = 8;

/// The packages a file requests, with those that they pin: vllm 0.9.2 requires torch 2.7.0.
pub(crate) fn with_pinned(facts: &Facts, mut declared: Declared) -> Declared {
    let table = facts.packages();
    let asked = declared.packages.clone();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for package in asked.iter().filter(|package| package.manager == Manager::Pip) {
        let Some(version) = package.exact.as_ref().filter(|_| done.insert(&package.name)) else { continue };
        // Of what is not listed only frameworks matter: extensions are judged by them.
        for (name, needs) in facts.packages().pins_of(&package.name, version) {
            let same = |other: &&mut DeclaredPackage| row_name(table, &other.name) == row_name(table, name);
            match declared.packages.iter_mut().find(same) {
                Some(listed) if listed.exact.is_none() && allows(listed.range.as_deref(), needs) => {
                    listed.exact = Some(needs.clone());
                }
                Some(_) => {}
                None if !FRAMEWORKS.contains(&name) => {}
                None => declared.packages.push(DeclaredPackage {
                    name: name.to_owned(),
                    extras: Vec::new(),
                    exact: Some(needs.clone()),
                    range: None,
                    ..package.clone()
                }),
            }
        }
    }
    declared
}

pub(crate) fn allows(range: Option<&str>, version: &Version) -> bool {
    range.is_none_or(|range| {
        range.parse::<VersionSpecifiers>().is_ok_and(|specifiers| specifiers.contains(version))
    })
}

/// The name of a package's row: `torch` for `pytorch`, `cupy` for `cupy-cuda12x`.
fn row_name<'a>(table: &'a Packages, name: &'a str) -> &'a str {
    match table.find(name) {
        PackageUse::Gpu(row, _) => &row.name,
        _ => name,
    }
}

/// Adds an artifact for each package that uses a GPU and is not a framework of its own, and lists the unknown ones.
///
/// The first `listed` packages are those that the file names; the others are pinned by them.
/// `toolkit` is the CUDA in the base image, with which packages compile at run time.
pub(crate) fn add(
    facts: &Facts,
    file: &str,
    declared: &Declared,
    listed: usize,
    toolkit: Option<CudaVersion>,
    evidence: &mut Evidence,
) {
    let toolkit = toolkit.filter(|_| !brings_compiler(declared));
    let table = facts.packages();
    let names = |packages: &'_ [DeclaredPackage]| -> BTreeSet<String> {
        packages.iter().map(|package| row_name(table, &package.name).to_owned()).collect()
    };
    let by_file = names(declared.packages.get(..listed).unwrap_or_default());
    let listed = names(&declared.packages);
    let mut unknown: Vec<&DeclaredPackage> = Vec::new();
    // What needs other packages to do anything with a GPU.
    let mut helpers: Vec<Artifact> = Vec::new();
    let plain: BTreeSet<&str> = declared.packages.iter().map(|package| package.name.as_str()).collect();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for package in &declared.packages {
        let is_judged_there = package.manager == Manager::Conda && conda::is_framework(&package.name);
        if is_judged_there || !done.insert(&package.name) {
            continue;
        }
        let (row, cuda) = match table.find(&package.name) {
            PackageUse::NoGpu if !asks_for_gpu(package) => continue,
            PackageUse::NoGpu | PackageUse::Unknown => {
                unknown.push(package);
                continue;
            }
            PackageUse::Gpu(row, cuda) => (row, cuda),
        };
        let question = PackageContext { file, package, row, cuda, toolkit };
        let runs_on_listed = row.on.iter().any(|wanted| listed.contains(wanted)) && !asks_for_gpu(package);
        // Where the file names an extension and not the framework below it, the extension is what it is about.
        let is_main = !row.on.is_empty() && !row.on.iter().any(|wanted| by_file.contains(wanted));
        match row.uses {
            GpuUse::Framework if FRAMEWORKS.contains(&package.name.as_str()) => {}
            // Plugins of a framework: `jax-cuda12-plugin` is judged with jax.
            GpuUse::Framework if plain.contains(row.name.as_str()) => {}
            GpuUse::Wraps | GpuUse::Compiler if runs_on_listed => {}
            GpuUse::Library | GpuUse::Driver => helpers.push(question.artifact()),
            GpuUse::Wraps => evidence.artifacts.push(question.without_base()),
            GpuUse::Code | GpuUse::Compiler if !row.on.is_empty() && !runs_on_listed => {
                evidence.artifacts.push(question.without_base());
            }
            GpuUse::Framework | GpuUse::Code | GpuUse::Compiler | GpuUse::OtherApi => {
                let kind = if is_main { ArtifactKind::Framework } else { ArtifactKind::Extension };
                evidence.artifacts.push(Artifact { kind, ..question.artifact() });
            }
        }
    }
    evidence.artifacts.extend(conda::artifacts(facts, file, declared));
    evidence.unread.extend(unread(file, &unknown));
    if evidence.artifacts.is_empty() && evidence.unread.is_empty() {
        evidence.artifacts.extend(helpers);
    }
}

/// Whether a package contains a compiler in addition to that of the base image.
fn brings_compiler(declared: &Declared) -> bool {
    let brings = |name: &str| {
        let compiles = |word: &str| word.contains("nvrtc") || word.contains("nvcc");
        compiles(name) || name.starts_with("cuda") || matches!(name, "torch" | "pytorch")
    };
    declared.packages.iter().any(|package| brings(&package.name) || asks_for_ctk(package))
        || declared.cuda_packages.iter().any(|package| brings(&package.name))
}

/// Whether an extra brings a CUDA toolkit: `cupy-cuda12x[ctk]`.
fn asks_for_ctk(package: &DeclaredPackage) -> bool {
    package.extras.iter().any(|extra| extra == "ctk")
}

/// Whether an extra brings a GPU build of something: `rembg[gpu]`, `spacy[cuda12x]`.
fn asks_for_gpu(package: &DeclaredPackage) -> bool {
    package.extras.iter().any(|extra| extra == "gpu" || extra.starts_with("cuda") || extra.starts_with("cu1"))
}

/// One entry for all packages that are not in the tables.
fn unread(file: &str, unknown: &[&DeclaredPackage]) -> Option<Unread> {
    let first = unknown.first()?;
    let names: BTreeSet<&str> = unknown.iter().map(|package| package.name.as_str()).collect();
    let listed = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more packages"),
    };
    let are = if names.len() > 1 { "are" } else { "is" };
    Some(Unread {
        what: format!("{listed}{more}"),
        at: format!("{file}:{}", first.span.line),
        why: format!("{are} not in the tables of packages"),
        fix: installed(first),
    })
}

/// How to find out what a package really holds.
fn installed(package: &DeclaredPackage) -> String {
    if package.manager == Manager::Conda {
        return "check the installed environment: `cudock check \"$CONDA_PREFIX\" --gpu NAME`".to_owned();
    }
    let version = package.exact.as_ref().map_or_else(String::new, |version| format!("=={version}"));
    format!(
        "check the installed environment (`cudock check .venv`), or the wheel: `pip download --no-deps {}{version}`, then \
         `cudock check FILE.whl`",
        package.name
    )
}

/// A package that uses a GPU, and where it is declared.
struct PackageContext<'a> {
    file: &'a str,
    package: &'a DeclaredPackage,
    row: &'a GpuPackage,
    cuda: Option<NamedCuda>,
    /// The CUDA in the base image.
    toolkit: Option<CudaVersion>,
}

impl PackageContext<'_> {
    /// A package that runs on another, which nothing in the file brings.
    fn without_base(&self) -> Artifact {
        let on = self.row.on.join(", ");
        let one = if self.row.on.len() > 1 { "one of " } else { "" };
        let why = format!("it runs on {one}{on}, which the file does not list");
        let first = self.row.on.first().map_or("it", String::as_str);
        let fix = format!("list {first} with its version, or {}", installed(self.package));
        Artifact { support: Support::NotInTables { fix }, runtime: None, ..self.with(Code::Unknown(why)) }
    }

    fn artifact(&self) -> Artifact {
        let (why, compiles) = match self.row.uses {
            GpuUse::Driver => return self.with(Code::None),
            GpuUse::Compiler => ("it compiles GPU code at run time with an unknown CUDA version", true),
            GpuUse::OtherApi => ("it uses OpenCL or Vulkan, which is not checked", false),
            GpuUse::Library => {
                ("it is a library for other packages, and the file lists none that uses it", false)
            }
            _ => ("it has GPU code that is not in the tables", false),
        };
        let min_capability = self.row.min_capability;
        let (why, fix) = (why.to_owned(), installed(self.package));
        let to_machine_code = self.row.compiles_to_machine_code;
        self.with(Code::Package(PackageCode { why, fix, compiles, to_machine_code, min_capability }))
    }

    fn with(&self, code: Code) -> Artifact {
        let Self { file, package, row, cuda, toolkit } = self;
        let path = format!("{file}:{}", package.span.line);
        let by_tag = package.tag.as_deref().and_then(CudaVersion::from_tag);
        let by_release = || package.exact.as_ref().and_then(|version| row.cuda_major(version));
        let major = by_tag.map(CudaVersion::major).or(cuda.map(|cuda| cuda.major)).or_else(by_release);
        let compiles_with = toolkit.filter(|_| row.uses == GpuUse::Compiler);
        let version = by_tag
            .or(cuda.and_then(|cuda| cuda.version))
            .or(compiles_with.filter(|toolkit| major == Some(toolkit.major())));
        let shown = package.exact.as_ref().map_or_else(String::new, |version| format!(" {version}"));
        Artifact {
            runtime: major.map(|major| Runtime { major, version, path: path.clone() }),
            ..Artifact::new(format!("{}{shown}", package.name), ArtifactKind::Extension, path, code)
        }
    }
}
