//! Finds programs and libraries outside of Python packages.

use std::collections::BTreeSet;
use std::sync::Arc;

use cudock_facts::Facts;
use cudock_facts::version::{CudaVersion, PtxIsa};

use super::components::vendor_library;
use super::contents::Contents;
use super::file_facts::ElfFacts;
use super::frameworks::{CodeAt, Completeness, code_file};
use super::linking::{Dependencies, Search, belongs_to_driver};
use crate::evidence::{Artifact, ArtifactKind, Code, CodeFile, Effect, Role, Runtime};

/// One program or library with everything it loads; none if it has nothing to do with a GPU.
pub(crate) fn artifact(
    facts: &Facts,
    files: &dyn Contents,
    search: &Search<'_>,
    path: &str,
    completeness: Completeness,
) -> Option<Artifact> {
    let elf = files.elf(path)?;
    let dependencies = search.dependencies(path, &[]);
    let runtime = runtime(facts, files, &elf, path, &dependencies);
    let is_program = elf.linkage.interpreter.is_some();
    let reaches = if is_program { elf.strings.opens_driver } else { elf.strings.reaches_driver };
    if elf.code.is_none() && runtime.is_none() && !dependencies.links_driver && !reaches {
        return None;
    }
    let mut code: Vec<CodeFile> = Vec::new();
    if let Some(own) = &elf.code {
        code.push(code_file(CodeAt { path: path.to_owned(), code: own.clone() }, Role::Program));
    }
    let opened = elf.strings.opens.iter().filter_map(|name| opened(files, search, path, name));
    for found in dependencies.found.values().cloned().chain(opened).collect::<BTreeSet<_>>() {
        let found = &found;
        if let Some(code_in) = files.elf(found).and_then(|facts| facts.code.clone()) {
            let real = files.real(found).unwrap_or_else(|| found.clone());
            code.push(code_file(CodeAt { path: real, code: code_in }, Role::Program));
        }
    }
    let effect = if completeness == Completeness::Complete { Effect::Fails } else { Effect::NotHere };
    Some(Artifact {
        runtime,
        links_driver: dependencies.links_driver,
        missing: dependencies.into_missing(effect),
        ..Artifact::new(
            path.rsplit('/').next().unwrap_or(path).to_owned(),
            if is_program { ArtifactKind::Program } else { ArtifactKind::Library },
            path.to_owned(),
            known_code(code, &elf),
        )
    })
}

/// The GPU code of a program; one without any may generate or load it.
fn known_code(code: Vec<CodeFile>, elf: &ElfFacts) -> Code {
    if code.iter().any(|file| file.role != Role::Vendor) {
        return Code::Files(code);
    }
    if elf.strings.compiles {
        return Code::Unknown(
            "it compiles GPU code at run time (NVRTC), for this GPU if it requests that".to_owned(),
        );
    }
    if elf.strings.opens_driver && !elf.strings.runtime_inside {
        return Code::Unknown(
            "it loads GPU code through the driver, but contains none that could be read".to_owned(),
        );
    }
    let links_runtime = elf.linkage.needed.iter().any(|name| name.starts_with("libcudart."));
    if code.is_empty() && elf.linkage.interpreter.is_none() && elf.strings.reaches_driver && !links_runtime {
        return Code::AtRunTime("it loads the NVIDIA driver, but contains no GPU code".to_owned());
    }
    if code.is_empty() { Code::None } else { Code::Files(code) }
}

/// The path of a library that a program opens with dlopen.
fn opened(files: &dyn Contents, search: &Search<'_>, program: &str, name: &str) -> Option<String> {
    if belongs_to_driver(name) || name == "libcuda.so" {
        return None;
    }
    if name.starts_with('/') {
        return files.elf(name).map(|_| name.to_owned());
    }
    let directory = program.rsplit_once('/').map_or("", |(directory, _)| directory);
    let beside = format!("{directory}/{}", name.trim_start_matches("./"));
    if files.elf(&beside).is_some() {
        return Some(beside);
    }
    search.find_for(program, name)
}

/// The CUDA runtime of a program: a library it links, or one inside it.
fn runtime(
    facts: &Facts,
    files: &dyn Contents,
    elf: &Arc<ElfFacts>,
    path: &str,
    dependencies: &Dependencies,
) -> Option<Runtime> {
    let shared = dependencies.found.iter().find(|(name, _)| name.starts_with("libcudart.so"));
    if let Some((name, found)) = shared {
        let real = files.real(found).unwrap_or_else(|| found.clone());
        let version = version_in_name(&real).or_else(|| by_package(files, &real));
        let major = name.strip_prefix("libcudart.so.")?.split('.').next()?.parse().ok()?;
        return Some(Runtime {
            major,
            version: version.filter(|version| version.major() == major),
            linked_in: false,
            path: real,
        });
    }
    let wanted = elf.linkage.needed.iter().find_map(|name| name.strip_prefix("libcudart.so."));
    if let Some(major) = wanted.and_then(|major| major.split('.').next()?.parse().ok()) {
        return Some(Runtime { major, version: None, linked_in: false, path: path.to_owned() });
    }
    if !elf.strings.runtime_inside {
        return None;
    }
    // The toolkit that linked it is the one whose runtime is inside; PTX tells where machine code does not.
    let code = elf.code.as_ref()?;
    let newest_ptx = code.patterns.iter().flat_map(|pattern| pattern.ptx.iter().map(|(_, isa)| *isa)).max();
    let version = code.toolkit.or_else(|| newest_ptx.and_then(|isa| toolkit_of(facts, isa)))?;
    Some(Runtime { major: version.major(), version: Some(version), linked_in: true, path: path.to_owned() })
}

pub(crate) fn toolkit_of(facts: &Facts, isa: PtxIsa) -> Option<CudaVersion> {
    facts.toolkits().toolkit.iter().filter(|toolkit| toolkit.ptx_isa == isa).map(|toolkit| toolkit.cuda).min()
}

/// 12.4 of `libcudart.so.12.4.127`.
fn version_in_name(path: &str) -> Option<CudaVersion> {
    let (_, version) = path.rsplit('/').next()?.split_once(".so.")?;
    let mut parts = version.split('.').map(|part| part.parse::<u8>().ok());
    Some(CudaVersion::new(parts.next()??, parts.next()??))
}

/// The version of the wheel a library lies in: `…/nvidia/cuda_runtime/lib/libcudart.so.12`.
fn by_package(files: &dyn Contents, path: &str) -> Option<CudaVersion> {
    let (site, _) = path.split_once("/nvidia/")?;
    let directory = files
        .names(site)
        .into_iter()
        .find(|name| name.starts_with("nvidia_cuda_runtime") && name.ends_with(".dist-info"))?;
    let version = directory.strip_suffix(".dist-info")?.rsplit_once('-')?.1.to_owned();
    let mut parts = version.split('.').map(|part| part.parse::<u8>().ok());
    Some(CudaVersion::new(parts.next()??, parts.next()??))
}

/// Whether a file belongs to a CUDA toolkit: its tools and samples are not what an image is for.
pub(crate) fn is_toolkit_file(path: &str) -> bool {
    let top = ["/usr/local/cuda", "/opt/nvidia/", "/usr/lib/nvidia-cuda-toolkit"];
    top.iter().any(|prefix| path.starts_with(prefix))
        || path.contains("/nsight-")
        || vendor_library(path).is_some()
}
