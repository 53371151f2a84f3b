//! Finds programs and libraries outside of Python packages.

use std::collections::BTreeSet;

use cudock_base::text::path::{file_name, parent};
use cudock_facts::Facts;
use cudock_facts::version::{CudaVersion, PtxIsa};

use super::linking::{Dependencies, belongs_to_driver};
use crate::evidence::{Artifact, ArtifactKind, Code, CodeFile, Effect, Role, Runtime};
use crate::gather::code_file::{CodeAt, Completeness, code_file};
use crate::gather::contents::Contents;
use crate::gather::file_facts::{ElfFacts, newest_ptx};
use crate::gather::survey::ArtifactFinder;

impl ArtifactFinder<'_> {
    /// One program or library with everything it loads; none if it has nothing to do with a GPU.
    pub(crate) fn program(&self, path: &str, completeness: Completeness) -> Option<Artifact> {
        let elf = self.files.elf(path)?;
        let dependencies = self.search.dependencies(path, &[]);
        let runtime = self.runtime(&elf, path, &dependencies);
        let is_program = elf.linkage.interpreter.is_some();
        let reaches = if is_program { elf.strings.opens_driver } else { elf.strings.reaches_driver };
        if elf.code.is_none() && runtime.is_none() && !dependencies.links_driver && !reaches {
            return None;
        }
        let opened = elf.strings.opens.iter().filter_map(|name| self.opened(path, name));
        let loaded: BTreeSet<String> = dependencies.found.values().cloned().chain(opened).collect();
        let own = elf.code.clone().map(|code| CodeAt { path: path.to_owned(), code });
        let others = loaded.into_iter().filter_map(|found| {
            let code = self.files.elf(&found)?.code.clone()?;
            Some(CodeAt { path: self.files.real(&found).unwrap_or(found), code })
        });
        let code = own.into_iter().chain(others).map(|at| code_file(at, Role::Program)).collect();
        let effect = if completeness == Completeness::Complete { Effect::Fails } else { Effect::NotHere };
        let kind = if is_program { ArtifactKind::Program } else { ArtifactKind::Library };
        Some(Artifact {
            runtime,
            links_driver: dependencies.links_driver,
            missing: dependencies.into_missing(effect),
            ..Artifact::new(file_name(path).to_owned(), kind, path.to_owned(), known_code(code, &elf))
        })
    }

    /// The path of a library that a program opens with dlopen.
    fn opened(&self, program: &str, name: &str) -> Option<String> {
        if belongs_to_driver(name) || name == "libcuda.so" {
            return None;
        }
        if name.starts_with('/') {
            return self.files.elf(name).map(|_| name.to_owned());
        }
        let directory = parent(program);
        let beside = format!("{directory}/{}", name.trim_start_matches("./"));
        if self.files.elf(&beside).is_some() {
            return Some(beside);
        }
        self.search.find_for(program, name)
    }

    /// The CUDA runtime of a program: a library it links, or one inside it.
    fn runtime(&self, elf: &ElfFacts, path: &str, dependencies: &Dependencies) -> Option<Runtime> {
        let shared = dependencies.found.iter().find(|(name, _)| name.starts_with("libcudart.so"));
        if let Some((name, found)) = shared {
            let real = self.files.real(found).unwrap_or_else(|| found.clone());
            let version = version_in_name(&real).or_else(|| by_package(self.files, &real));
            let major = major_of_runtime(name)?;
            let version = version.filter(|version| version.major() == major);
            return Some(Runtime { major, version, path: real });
        }
        if let Some(major) = elf.linkage.needed.iter().find_map(|name| major_of_runtime(name)) {
            return Some(Runtime { major, version: None, path: path.to_owned() });
        }
        if !elf.strings.runtime_inside {
            return None;
        }
        // The runtime inside is that of the toolkit that linked it; if the machine code does not
        // show its version, the PTX does.
        let code = elf.code.as_ref()?;
        let by_ptx = || toolkit_of(self.facts, newest_ptx(&code.patterns)?);
        Some(Runtime::new(code.toolkit.or_else(by_ptx)?, path.to_owned()))
    }
}

/// 12 of `libcudart.so.12`.
pub(crate) fn major_of_runtime(name: &str) -> Option<u8> {
    name.strip_prefix("libcudart.so.")?.split('.').next()?.parse().ok()
}

/// The GPU code of a program; one without any may generate or load it.
fn known_code(code: Vec<CodeFile>, elf: &ElfFacts) -> Code {
    if code.iter().any(|file| file.role != Role::Vendor) {
        return Code::Files(code);
    }
    if elf.strings.compiles {
        let why = "it compiles GPU code at run time (NVRTC), for this GPU if it requests that";
        return Code::Unknown(why.to_owned());
    }
    if elf.strings.opens_driver && !elf.strings.runtime_inside {
        let why = "it loads GPU code through the driver, but contains none that could be read";
        return Code::Unknown(why.to_owned());
    }
    let links_runtime = elf.linkage.needed.iter().any(|name| name.starts_with("libcudart."));
    if code.is_empty() && elf.linkage.interpreter.is_none() && elf.strings.reaches_driver && !links_runtime {
        return Code::AtRunTime("it loads the NVIDIA driver, but contains no GPU code".to_owned());
    }
    if code.is_empty() { Code::None } else { Code::Files(code) }
}

pub(crate) fn toolkit_of(facts: &Facts, isa: PtxIsa) -> Option<CudaVersion> {
    facts.toolkits().toolkit.iter().filter(|toolkit| toolkit.ptx_isa == isa).map(|toolkit| toolkit.cuda).min()
}

/// 12.4 of `libcudart.so.12.4.127`.
fn version_in_name(path: &str) -> Option<CudaVersion> {
    leading(file_name(path).split_once(".so.")?.1)
}

/// The version of the wheel a library lies in: `…/nvidia/cuda_runtime/lib/libcudart.so.12`.
fn by_package(files: &dyn Contents, path: &str) -> Option<CudaVersion> {
    let (site, _) = path.split_once("/nvidia/")?;
    let mut stems =
        files.names(site).into_iter().filter_map(|name| Some(name.strip_suffix(".dist-info")?.to_owned()));
    leading(stems.find(|name| name.starts_with("nvidia_cuda_runtime"))?.rsplit_once('-')?.1)
}

/// 12.4 of 12.4.127.
fn leading(version: &str) -> Option<CudaVersion> {
    let mut parts = version.split('.').map(|part| part.parse::<u8>().ok());
    Some(CudaVersion::new(parts.next()??, parts.next()??))
}
