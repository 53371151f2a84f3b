//! Evidence from files that say what will be installed.

mod base;
mod compiled;
mod effective;
mod index;
mod ranges;

use cudock_base::{Arch, NamedArch};
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_facts::lookup::{TorchWheel, without_local};
use cudock_facts::version::CudaVersion;
use cudock_host::frameworks::{Build, MissingLibraryEffect, Support, builds};
use cudock_host::host::{Distribution, PythonEnvironment, TorchBuildInfo};
use pep440_rs::Version;

use self::base::Base;
use super::python::package_names::FRAMEWORKS;
use crate::codes;
use crate::evidence::{Artifact, ArtifactKind, Code, Effect, Evidence, Missing, Range, SubjectKind, Unread};
use crate::gather::python::{conflicts, package_names};
use cudock_manifests::{Declared, DeclaredPackage, Manager};

/// The evidence in a declared file, with facts from the tables.
pub(crate) fn evidence(facts: &Facts, name: &str, declared: &Declared, cpu_arch: Arch) -> Evidence {
    let mut evidence = Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Environment,
        cpu: declared.platform.as_deref().and_then(|platform| platform.split('/').nth(1)).map(NamedArch::new),
        environment: declared.environment.clone(),
        ..Evidence::default()
    };
    conflicts::check(facts, name, declared, &mut evidence);
    let image = declared.base_image.as_ref();
    let base = image.map(|image| base::read(facts, image, name, &mut evidence));
    let installed = effective::effective(declared, base.as_ref());
    if let Some(failure) = index::missing_version(facts, name, &installed) {
        evidence.build_failure.get_or_insert(failure);
    }
    let listed = installed.packages.len();
    let installed = &package_names::with_pinned(facts, installed);
    evidence.artifacts.extend(frameworks(facts, name, installed, base.as_ref(), cpu_arch));
    let frameworks_asked = installed.packages.iter().filter(|package| {
        is_by_pip(package) && FRAMEWORKS.contains(&package.name.as_str()) && package.exact.is_none()
    });
    for package in frameworks_asked {
        let variants = ranges::versions(facts, package).into_iter().filter_map(|version| {
            let exact = ranges::pinned(installed, package, &version);
            let mut artifacts = frameworks(facts, name, &exact, base.as_ref(), cpu_arch).into_iter();
            let is_it = |artifact: &Artifact| {
                artifact.build.as_ref().is_some_and(|build| is_called(&build.name, &package.name))
            };
            Some((version.to_string(), artifacts.find(is_it)?))
        });
        let variants: Vec<(String, Artifact)> = variants.collect();
        if variants.is_empty() {
            evidence.artifacts.push(unpinned(name, package));
            continue;
        }
        let asked =
            package.range.clone().or_else(|| package.tag.as_ref().map(|tag| format!("any version of {tag}")));
        evidence.ranges.push(Range {
            name: package.name.clone(),
            asked: asked.unwrap_or_else(|| "any version".to_owned()),
            path: position(name, package),
            variants,
        });
    }
    // Unread files may install another one.
    let is_all_read = declared.notes.iter().all(|note| !note.decides);
    let toolkit = base.as_ref().and_then(|base| base.toolkit).filter(|_| is_all_read);
    package_names::add(facts, name, installed, listed, toolkit, &mut evidence);
    compiled::add(facts, name, installed, &mut evidence);
    if evidence.artifacts.is_empty() && evidence.ranges.is_empty() && starts_nvidia_smi(installed) {
        let (tool, path) = ("nvidia-smi".to_owned(), name.to_owned());
        evidence.artifacts.push(Artifact::new(tool, ArtifactKind::Program, path, Code::None));
    }
    unread(name, declared, &mut evidence);
    evidence
}

/// Adds what the files do not say: unread if it could change the verdict, else a note.
fn unread(name: &str, declared: &Declared, evidence: &mut Evidence) {
    let fix = if declared.base_image.is_some() {
        "build the image and check it: `cudock check docker-daemon:NAME`"
    } else {
        "check the lock file, or the built image"
    };
    for note in &declared.notes {
        let at = format!("{}:{}", note.file.as_deref().unwrap_or(name), note.span.line);
        if note.decides {
            let (what, why) = (note.text.clone(), String::new());
            evidence.unread.push(Unread { what, at, why, fix: fix.to_owned() });
        } else {
            let finding = Finding::new(codes::NOT_READ, Severity::Note, note.text.clone(), fix);
            evidence.findings.push(finding.with_evidence([FindingEvidence::new(at, note.text.clone())]));
        }
    }
}

/// The frameworks whose versions are known.
fn frameworks(
    facts: &Facts,
    name: &str,
    declared: &Declared,
    base: Option<&Base>,
    cpu_arch: Arch,
) -> Vec<Artifact> {
    let python = environment(facts, declared, cpu_arch);
    let of_base = |build: &Build| {
        let package = base.and_then(|base| base.package.as_ref())?;
        let is_kept = declared.packages.contains(package) && is_called(&build.name, &package.name);
        is_kept.then_some(base?)
    };
    let build = |mut build: Build| {
        let of_base = of_base(&build);
        if of_base.is_some_and(|base| base.is_by_conda) {
            base::as_by_conda(facts, &mut build);
        }
        let missing = match of_base {
            Some(base) if base.is_complete => Vec::new(),
            _ => missing(declared, &build, base),
        };
        artifact(declared, name, build, missing)
    };
    builds(facts, &python, cpu_arch).into_iter().map(build).collect()
}

/// Whether a build is of a package: pip's torch is conda's pytorch.
fn is_called(build: &str, package: &str) -> bool {
    build == package
        || build == "torch" && package == "pytorch"
        || build == "tensorflow" && package.starts_with("tensorflow")
}

/// The position of a package in its file: `requirements.txt:3`.
fn position(file: &str, package: &DeclaredPackage) -> String {
    format!("{}:{}", package.file.as_deref().unwrap_or(file), package.span.line)
}

/// Whether the container starts the driver's own tool, which the container runtime brings along.
fn starts_nvidia_smi(declared: &Declared) -> bool {
    let arguments = declared.command.iter().flatten().flat_map(|argument| argument.split_whitespace());
    let mut programs =
        arguments.filter(|argument| !["/bin/sh", "/bin/bash", "sh", "bash", "-c", "exec"].contains(argument));
    programs.next().is_some_and(|program| program == "nvidia-smi" || program.ends_with("/nvidia-smi"))
}

/// Builds of conda are not those of PyPI, which the tables list.
fn is_by_pip(package: &DeclaredPackage) -> bool {
    package.manager != Manager::Conda
}

fn is_torch(package: &DeclaredPackage) -> bool {
    matches!(package.name.as_str(), "torch" | "pytorch")
}

/// The environment the file describes, as if it were installed.
fn environment(facts: &Facts, declared: &Declared, cpu_arch: Arch) -> PythonEnvironment {
    let by_pip = || declared.packages.iter().filter(|package| is_by_pip(package));
    let pinned = by_pip().filter_map(|package| {
        let version = package.exact.clone()?;
        // These are the same builds under another name.
        let name = match package.name.as_str() {
            "pytorch" => "torch".to_owned(),
            "tensorflow-gpu" => "tensorflow".to_owned(),
            name => name.to_owned(),
        };
        Some(distribution(name, version, package))
    });
    // JAX's extras bring a plugin of its own version.
    let plugins =
        by_pip().filter(|package| package.name == "jax" || package.name == "jaxlib").flat_map(|jax| {
            cuda_of_jax(jax).into_iter().filter_map(|major| {
                Some(distribution(format!("jax-cuda{major}-plugin"), jax.exact.clone()?, jax))
            })
        });
    let pinned = pinned.chain(plugins);
    let torch = by_pip().find(|package| is_torch(package));
    PythonEnvironment {
        prefix: String::new(),
        found_by: "file".to_owned(),
        site_packages: Vec::new(),
        distributions: pinned.collect(),
        wheel_libraries: Vec::new(),
        torch: torch.and_then(|torch| torch_build(facts, torch, cpu_arch)),
    }
}

fn distribution(name: String, version: Version, package: &DeclaredPackage) -> Distribution {
    Distribution { name, version, path: format!("line {}", package.span.line), requires: Vec::new() }
}

/// The CUDA majors that JAX's extras and the local versions of old jaxlib wheels (`0.4.7+cuda11.cudnn86`) name.
fn cuda_of_jax(jax: &DeclaredPackage) -> Vec<String> {
    let local = jax.exact.iter().flat_map(|version| version.local().iter().map(ToString::to_string));
    let named = jax.extras.iter().cloned().chain(local);
    named
        .filter_map(|word| match word.strip_prefix("cuda")? {
            // The extra without a number is CUDA 12's.
            "" => Some("12".to_owned()),
            rest => rest.get(..2).map(str::to_owned),
        })
        .collect()
}

/// Which build of torch a line means: its tag, or the one the index has.
fn torch_build(facts: &Facts, package: &DeclaredPackage, cpu_arch: Arch) -> Option<TorchBuildInfo> {
    let version = package.exact.clone()?;
    let local = version.local().iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
    let tag = package.tag.clone().or_else(|| Some(local).filter(|local| !local.is_empty()));
    let frameworks = facts.frameworks();
    let (cuda, hip) = match tag.as_deref() {
        Some("cpu") => (None, None),
        Some(rocm) if rocm.starts_with("rocm") => (None, Some(rocm.trim_start_matches("rocm").to_owned())),
        Some(tag) => (CudaVersion::from_tag(tag), None),
        // On arm, wheels of the public index had no CUDA for long.
        None if cpu_arch == Arch::Aarch64 => {
            (frameworks.torch(&version).and_then(|release| release.aarch64_cuda), None)
        }
        None => {
            let row = frameworks.torch_build(&version, TorchWheel::Pypi).map(|build| build.cuda);
            (row.or_else(|| frameworks.torch(&version).map(|release| release.cuda)), None)
        }
    };
    // A version the tables do not know is not a CPU build.
    let known = tag.is_some() || frameworks.torch(&version).is_some();
    known.then(|| TorchBuildInfo { version: with_tag(&version, tag.as_deref()), cuda, hip })
}

fn with_tag(version: &Version, tag: Option<&str>) -> Version {
    let plain = without_local(version);
    tag.and_then(|tag| format!("{plain}+{tag}").parse().ok()).unwrap_or(plain)
}

/// Libraries that no package in the file contains.
fn missing(declared: &Declared, build: &Build, base: Option<&Base>) -> Vec<Missing> {
    let MissingLibraryEffect::UsesCpu { .. } = build.without else { return Vec::new() };
    let package = declared.packages.iter().find(|package| package.name == build.name);
    let extras = package.map(|package| package.extras.as_slice()).unwrap_or_default();
    let brings_all = extras.iter().any(|extra| {
        matches!(extra.as_str(), "and-cuda" | "cuda" | "cuda12" | "cuda13" | "cuda11-pip" | "cuda12-pip")
    });
    let torch = declared.packages.iter().any(is_torch);
    let conda =
        declared.cuda_packages.iter().any(|found| found.cuda.is_some() || found.name.contains("cudatoolkit"));
    // Libraries in wheels are no help where only the program itself can load them, as `cudock serve` does.
    let loads_first = matches!(build.without, MissingLibraryEffect::UsesCpu { loads_first: true, .. })
        && !declared.packages.iter().any(|package| package.name == "cudock");
    if conda || (brings_all || torch) && !loads_first {
        return Vec::new();
    }
    let by_base = |soname: &str| {
        base.is_some_and(|base| {
            if let Some(major) = soname.strip_prefix("libcudnn.so.") {
                return base.cudnn.is_some_and(|own| own.to_string() == major);
            }
            let right = build.cuda_major.is_none_or(|major| base.cuda_major == Some(major));
            right && base.cuda_major.is_some() && (base.libraries || soname.starts_with("libcudart"))
        })
    };
    let by_wheel = |soname: &str| {
        let stem =
            soname.trim_start_matches("lib").split(".so").next().unwrap_or_default().to_ascii_lowercase();
        let stem = if stem == "cudart" { "cuda-runtime".to_owned() } else { stem.replace("lt", "") };
        brings_all
            || torch
            || declared.packages.iter().any(|package| package.name.starts_with(&format!("nvidia-{stem}")))
    };
    let is_on_path =
        declared.environment.get("LD_LIBRARY_PATH").is_some_and(|path| path.contains("-packages/nvidia"));
    let loaded_by_program = |soname: &str| loads_first && !is_on_path && by_wheel(soname);
    let absent = build
        .needs
        .iter()
        .filter(|soname| !by_base(soname) && (!by_wheel(soname) || loaded_by_program(soname)));
    // tensorflow-gpu takes CUDA from the system, which a list of packages does not describe.
    let by_system = declared.base_image.is_none()
        && declared.packages.iter().any(|package| package.name == "tensorflow-gpu");
    let effect = if by_system && build.name == "tensorflow" { Effect::NotHere } else { Effect::UsesCpu };
    let needed_by = build.path.clone().unwrap_or_default();
    let mut missing: Vec<Missing> = absent
        .map(|soname| {
            let effect = if loaded_by_program(soname) { Effect::LoadedByProgram } else { effect };
            Missing::new(soname.clone(), needed_by.clone(), effect)
        })
        .collect();
    // Libraries that no package contains come first, because they decide.
    missing.sort_by_key(|missing| missing.effect == Effect::LoadedByProgram);
    missing
}

fn artifact(declared: &Declared, file: &str, build: Build, missing: Vec<Missing>) -> Artifact {
    let is_it =
        |package: &&DeclaredPackage| package.name == build.name || build.name == "torch" && is_torch(package);
    let package = declared.packages.iter().find(is_it);
    let path = package.map_or_else(|| format!("{file}:1"), |package| position(file, package));
    let mut artifact = Artifact::of_build(build, path, None, missing);
    artifact.demote_beside_torch(declared.packages.iter().any(is_torch));
    artifact
}

/// A framework without a pinned version: what is installed depends on the day.
fn unpinned(file: &str, package: &DeclaredPackage) -> Artifact {
    let range = package.range.as_ref().map_or_else(String::new, |range| format!(" ({range})"));
    let name = &package.name;
    let why = format!("the version of {name} is not pinned{range}: the installed build depends on the day");
    let fix = format!("pin it: {name}==VERSION, or check the lock file or the built image");
    let (path, code) = (position(file, package), Code::Unknown(why));
    let support = Support::NotInTables { fix };
    Artifact { support, ..Artifact::new(name.clone(), ArtifactKind::Framework, path, code) }
}
