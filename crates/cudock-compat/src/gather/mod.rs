//! Evidence from what is there: an image, a folder, a program, a wheel, a file of requirements.

mod components;
mod contents;
mod declared;
mod driver_copies;
mod frameworks;
mod kept;
mod linking;
mod loose;
mod programs;
mod subject;
mod wheel;
mod words;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cudock_facts::Facts;
use cudock_facts::finding::{Evidence as Seen, Finding, Severity};
use cudock_host::Files;
use cudock_host::host::PythonEnvironment;
use cudock_host::python;
use cudock_image::{Image, ImageError, Limits, NodeKind, Tree, walk_folder};

pub use kept::{compute, sm};
pub use subject::{Subject, subject};

use crate::codes;
use crate::declared::DeclaredError;
use crate::evidence::{Evidence, SubjectKind, Unit, UnitKind};
use contents::{Contents, Disk, TreeFiles};
use frameworks::{CodeAt, Wholeness};
use kept::Kept;
use linking::Search;

/// Why there is no evidence.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// There is nothing.
    #[error("no file or folder is called {}", path.display())]
    NotFound {
        /// Where.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is nothing that can be checked.
    #[error("{} is nothing that can be checked", path.display())]
    NotASubject {
        /// The file.
        path: PathBuf,
    },
    /// The image cannot be read.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The file of requirements is broken.
    #[error("{file}:{}:{}: {}", error.line, error.column, error.message)]
    Declared {
        /// The file.
        file: String,
        /// What is wrong, and where.
        error: DeclaredError,
    },
    /// The program is broken.
    #[error("{}: {message}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

/// What to look at besides the subject itself.
pub struct Context<'a> {
    /// The tables.
    pub facts: &'a Facts,
    /// Variables that are set when it starts, over the image's own.
    pub environment: &'a BTreeMap<String, String>,
    /// Whether a program will run on this machine, in the environment of this process.
    pub on_this_machine: bool,
}

/// Evidence of anything but an image.
pub fn gather(subject: &Subject, name: &str, context: &Context<'_>) -> Result<Evidence, GatherError> {
    match subject {
        Subject::Image(_) => Err(GatherError::NotASubject { path: PathBuf::from(name) }),
        Subject::Root(folder) => {
            let tree = walk_folder(folder, false, kept::look)?;
            Ok(of_tree(&tree, name, None, context.environment.clone(), context.facts))
        }
        Subject::Folder(folder) => folder_evidence(folder, name, context),
        Subject::Program(path) => program_evidence(path, name, context),
        Subject::Wheel(path) => wheel::evidence(path, name, context),
        Subject::Environment(path, kind) => {
            let text =
                std::fs::read(path).map_err(|source| GatherError::Io { path: path.clone(), source })?;
            let text = String::from_utf8_lossy(&text);
            let declared = crate::declared::read(*kind, name, &text)
                .map_err(|error| GatherError::Declared { file: name.to_owned(), error })?;
            let arch = if declared.platform.as_deref().is_some_and(|platform| platform.contains("arm64")) {
                "aarch64"
            } else {
                "x86_64"
            };
            let mut evidence = declared::evidence(context.facts, name, &declared, arch);
            evidence.environment.extend(context.environment.clone());
            Ok(evidence)
        }
    }
}

/// What an image's configuration alone says.
pub fn image_start(image: &Image, name: &str, environment: &BTreeMap<String, String>) -> Evidence {
    let mut set = image.config.config.environment();
    set.extend(environment.clone());
    Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Image,
        cpu: Some(image.platform.architecture.clone()).filter(|architecture| !architecture.is_empty()),
        environment: set,
        ..Evidence::default()
    }
}

/// Evidence of an image, from all of its layers.
pub fn image(
    image: &Image,
    name: &str,
    environment: &BTreeMap<String, String>,
    facts: &Facts,
) -> Result<Evidence, GatherError> {
    let start = image_start(image, name, environment);
    let tree = image.walk(Limits::default(), kept::look)?;
    Ok(of_tree(&tree, name, start.cpu, start.environment, facts))
}

fn cpu_arch(cpu: Option<&str>) -> &'static str {
    if cpu == Some("arm64") { "aarch64" } else { "x86_64" }
}

fn of_tree(
    tree: &Tree<Kept>,
    name: &str,
    cpu: Option<String>,
    environment: BTreeMap<String, String>,
    facts: &Facts,
) -> Evidence {
    let files = TreeFiles(tree);
    let cpu = cpu.or_else(|| machine_of(tree));
    let search = Search::new(&files, &environment, cpu_arch(cpu.as_deref()));
    let mut evidence = Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Image,
        cpu,
        environment,
        ..Evidence::default()
    };
    evidence.driver_copies = driver_copies::find(&files, search.directories());
    let mut code = Vec::new();
    let mut programs = Vec::new();
    for (path, node) in tree.iter() {
        let NodeKind::File { kept: Some(Kept::Elf(facts)), .. } = &node.kind else { continue };
        let path = format!("/{path}");
        evidence.components.extend(components::component(&path));
        damage(&mut evidence, &path, facts);
        if let Some(found) = &facts.code {
            code.push(CodeAt { path: path.clone(), code: found.clone() });
        }
        let links = |name: &String| name.starts_with("libcudart.") || name == "libcuda.so.1";
        let uses_cuda = facts.code.is_some()
            || facts.words.runtime_inside
            || facts.words.opens_driver
            || facts.linkage.needed.iter().any(links);
        if facts.linkage.interpreter.is_some()
            && uses_cuda
            && !programs::is_toolkit_file(&path)
            && !is_in_packages(&path)
        {
            programs.push(path);
        }
    }
    let environments = python_environments(tree, &files, &evidence.environment);
    for python in &environments {
        let arch = cpu_arch(evidence.cpu.as_deref());
        let (units, late) =
            frameworks::units(facts, &files, &search, python, arch, Wholeness::Whole, &mut code);
        evidence.units.extend(units);
        evidence.findings.extend(late);
    }
    rest(facts, &files, &search, &programs, code, Wholeness::Whole, &mut evidence);
    evidence
}

/// Whether a file belongs to a Python distribution: tests and tools of frameworks are not what an image is for.
fn is_in_packages(path: &str) -> bool {
    path.contains("/site-packages/") || path.contains("/dist-packages/")
}

/// Programs, and then libraries that no program and no framework was found to load.
fn rest(
    facts: &Facts,
    files: &dyn Contents,
    search: &Search<'_>,
    programs: &[String],
    mut code: Vec<CodeAt>,
    wholeness: Wholeness,
    evidence: &mut Evidence,
) {
    for path in programs {
        let Some(unit) = programs::unit(facts, files, search, path, wholeness) else { continue };
        if let crate::evidence::Code::Files(used) = &unit.code {
            code.retain(|at| !used.iter().any(|file| file.path == at.path));
        }
        evidence.units.push(unit);
    }
    code.retain(|at| !programs::is_toolkit_file(&at.path));
    let alone: Vec<String> = code.into_iter().map(|at| at.path).collect();
    for path in alone {
        evidence.units.extend(programs::unit(facts, files, search, &path, Wholeness::Part));
    }
}

fn damage(evidence: &mut Evidence, path: &str, facts: &kept::ElfFacts) {
    if let Some(damage) = &facts.damage {
        evidence.findings.push(Finding {
            code: codes::UNREADABLE_BINARY,
            severity: Severity::Warning,
            message: format!("{path} is damaged: {damage}"),
            evidence: vec![Seen::new(path, damage.clone())],
            fix: "install it again: a broken download or a full disk leaves such files".to_owned(),
        });
    }
}

/// The processor most programs of a tree are for.
fn machine_of(tree: &Tree<Kept>) -> Option<String> {
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    for (_, node) in tree.iter() {
        if let Some(Kept::Elf(facts)) = node.kept() {
            *counts.entry(facts.linkage.machine).or_default() += 1;
        }
    }
    counts.remove(&0);
    architecture(counts.into_iter().max_by_key(|(_, count)| *count)?.0).map(str::to_owned)
}

fn architecture(machine: u16) -> Option<&'static str> {
    match machine {
        62 => Some("amd64"),
        183 => Some("arm64"),
        21 => Some("ppc64le"),
        243 => Some("riscv64"),
        22 => Some("s390x"),
        _ => None,
    }
}

/// The environment a program of the image would run in, or all that hold packages of interest where none is active.
fn python_environments(
    tree: &Tree<Kept>,
    files: &TreeFiles<'_>,
    environment: &BTreeMap<String, String>,
) -> Vec<PythonEnvironment> {
    if let Some(active) = python::read(files, environment).filter(|active| !active.distributions.is_empty()) {
        return vec![active];
    }
    let mut sites: Vec<String> = Vec::new();
    for (path, node) in tree.iter() {
        let site = path
            .strip_suffix("/METADATA")
            .and_then(|folder| folder.rsplit_once('/'))
            .map(|(site, _)| format!("/{site}"));
        if let Some(site) = site.filter(|_| node.kept().is_some())
            && !sites.contains(&site)
        {
            sites.push(site);
        }
    }
    let at = |site: String| python::at(files, site.clone(), "found", vec![site]);
    sites.into_iter().map(at).collect()
}

/// Variables that steer a program's start, from this process.
fn own_variables() -> BTreeMap<String, String> {
    let matters = |name: &str| {
        name.starts_with("CUDA_")
            || name.starts_with("NVIDIA_")
            || matches!(name, "LD_LIBRARY_PATH" | "PATH" | "VIRTUAL_ENV" | "CONDA_PREFIX")
    };
    std::env::vars().filter(|(name, _)| matters(name)).collect()
}

fn local_environment(context: &Context<'_>) -> BTreeMap<String, String> {
    let mut environment = if context.on_this_machine { own_variables() } else { BTreeMap::new() };
    environment.extend(context.environment.clone());
    environment
}

fn program_evidence(path: &Path, name: &str, context: &Context<'_>) -> Result<Evidence, GatherError> {
    let real = path.canonicalize().map_err(|source| GatherError::Io { path: path.to_owned(), source })?;
    let real = real.to_string_lossy().into_owned();
    let bytes = cudock_map::map(Path::new(&real)).map_err(ImageError::from)?;
    let broken = |message: String| GatherError::Broken { path: path.to_owned(), message };
    let binary = cudock_fatbin::read(&bytes).map_err(|error| broken(error.to_string()))?;
    let files = Disk::new();
    let environment = local_environment(context);
    let cpu = architecture(binary.linkage.machine).map(str::to_owned);
    let search = Search::new(&files, &environment, cpu_arch(cpu.as_deref()));
    let wholeness = if context.on_this_machine { Wholeness::Whole } else { Wholeness::Part };
    let mut evidence = Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Program,
        cpu,
        environment,
        ..Evidence::default()
    };
    let unit = if binary.linkage.machine == 0 {
        loose(&bytes, &real)
    } else {
        programs::unit(context.facts, &files, &search, &real, wholeness)
    };
    if let Some(facts) = files.elf(&real) {
        damage(&mut evidence, &real, &facts);
    }
    let unit = unit.map(|unit| {
        let refused = context.on_this_machine && unit.kind == UnitKind::Program && !files.is_program(&real);
        Unit { barred: refused.then(|| "the file has no execute permission".to_owned()), ..unit }
    });
    evidence.units.extend(unit);
    Ok(evidence)
}

/// A fat binary or a cubin by itself: loaded by some program through the driver.
fn loose(bytes: &[u8], path: &str) -> Option<Unit> {
    let code = kept::read(bytes).code?;
    Some(Unit {
        name: path.rsplit('/').next().unwrap_or(path).to_owned(),
        kind: UnitKind::Library,
        path: path.to_owned(),
        support: cudock_host::frameworks::Support::Cuda,
        runtime: None,
        links_driver: false,
        own_floor: None,
        code: crate::evidence::Code::Files(vec![frameworks::code_file(
            CodeAt { path: path.to_owned(), code },
            crate::evidence::Role::Program,
        )]),
        missing: Vec::new(),
        barred: None,
        build: None,
    })
}

fn folder_evidence(folder: &Path, name: &str, context: &Context<'_>) -> Result<Evidence, GatherError> {
    let real = folder.canonicalize().map_err(|source| GatherError::Io { path: folder.to_owned(), source })?;
    let prefix = real.to_string_lossy().into_owned();
    let tree = walk_folder(&real, true, kept::look)?;
    let files = Disk::new();
    let environment = local_environment(context);
    let cpu = machine_of(&tree);
    let search = Search::new(&files, &environment, cpu_arch(cpu.as_deref()));
    let wholeness = if context.on_this_machine { Wholeness::Whole } else { Wholeness::Part };
    let arch = cpu_arch(cpu.as_deref());
    let mut evidence = Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Folder,
        cpu,
        environment,
        ..Evidence::default()
    };
    let (mut code, mut programs) = (Vec::new(), Vec::new());
    for (path, node) in tree.iter() {
        let NodeKind::File { kept: Some(Kept::Elf(facts)), .. } = &node.kind else { continue };
        let path = format!("{prefix}/{path}");
        evidence.components.extend(components::component(&path));
        damage(&mut evidence, &path, facts);
        if let Some(found) = &facts.code {
            code.push(CodeAt { path: path.clone(), code: found.clone() });
        }
        let links = |name: &String| name.starts_with("libcudart.") || name == "libcuda.so.1";
        let uses_cuda = facts.code.is_some()
            || facts.words.runtime_inside
            || facts.words.opens_driver
            || facts.linkage.needed.iter().any(links);
        if facts.linkage.interpreter.is_some() && uses_cuda && !is_in_packages(&path) {
            programs.push(path);
        }
    }
    for python in python_environments_below(&tree, &files, &prefix) {
        let (units, late) =
            frameworks::units(context.facts, &files, &search, &python, arch, wholeness, &mut code);
        evidence.units.extend(units);
        evidence.findings.extend(late);
    }
    rest(context.facts, &files, &search, &programs, code, wholeness, &mut evidence);
    Ok(evidence)
}

/// The directories of packages below a folder, as paths of this machine.
fn python_environments_below(tree: &Tree<Kept>, files: &Disk, prefix: &str) -> Vec<PythonEnvironment> {
    let tree_files = TreeFiles(tree);
    let below = python_environments(tree, &tree_files, &BTreeMap::new());
    let mut sites: Vec<String> = below
        .into_iter()
        .flat_map(|environment| environment.site_packages)
        .map(|site| format!("{prefix}{}", site.trim_end_matches('/')))
        .collect();
    sites.dedup();
    sites.into_iter().map(|site| python::at(files, site.clone(), "found", vec![site])).collect()
}
