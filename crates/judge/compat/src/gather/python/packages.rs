//! Finds Python packages other than frameworks: extensions with GPU code, NVIDIA's libraries, and packages that generate
//! their GPU code at run time.

use std::collections::BTreeMap;

use cudock_base::text::path::file_name;
use cudock_facts::version::CudaVersion;
use cudock_host::python::normalized;

use crate::evidence::{Artifact, ArtifactKind, Code, CodeFile, Role, Runtime};
use crate::gather::binary::components::vendor_library;
use crate::gather::binary::programs::{major_of_runtime, toolkit_of};
use crate::gather::code_file::{CodeAt, code_file};
use crate::gather::contents::Contents;
use crate::gather::file_facts::newest_ptx;
use crate::gather::survey::{ArtifactFinder, Survey};

/// Directories of site-packages that hold NVIDIA's libraries or its tools, whatever their files are called.
const NVIDIA_DIRECTORIES: [&str; 4] = ["nvidia", "tensorrt", "nvidia_cutlass_dsl", "cutlass"];

/// `tensorrt_libs`, `tensorrt_lean_libs`, `tensorrt_rtx_libs`: but not `tensorrt_llm`.
fn is_nvidias(top: &str) -> bool {
    NVIDIA_DIRECTORIES.contains(&top) || (top.starts_with("tensorrt_") && top.ends_with("_libs"))
}

/// Profiling libraries: they hold a module or two, which say nothing about the package that brings them.
const PROFILERS: [&str; 4] = ["libcupti", "libcheckpoint", "libnvperf", "libpcsampling"];

impl ArtifactFinder<'_> {
    /// The packages of an environment that have GPU code. Those of NVIDIA, and those that make their code at run time, are
    /// put aside in the survey: they count where there is nothing else.
    pub(crate) fn extensions(&self, sites: &[String], survey: &mut Survey) -> Vec<Artifact> {
        let owners = Owners::read(self.files, sites);
        let mut groups: BTreeMap<String, Vec<CodeAt>> = BTreeMap::new();
        let mut nvidias: BTreeMap<String, Vec<CodeAt>> = BTreeMap::new();
        for at in std::mem::take(&mut survey.code) {
            let Some(package) = owners.of(&at.path) else {
                survey.code.push(at);
                continue;
            };
            if PROFILERS.iter().any(|profiler| file_name(&at.path).starts_with(profiler)) {
                continue;
            }
            let group = if package.is_nvidias { &mut nvidias } else { &mut groups };
            group.entry(package.name).or_default().push(at);
        }
        let mut reaching: BTreeMap<String, String> = BTreeMap::new();
        for path in std::mem::take(&mut survey.reaching) {
            if let Some(package) = owners.of(&path) {
                reaching.entry(package.name).or_insert(path);
            } else {
                survey.reaching.push(path);
            }
        }
        reaching.retain(|name, _| !groups.contains_key(name) && !nvidias.contains_key(name));
        let in_role = |role| move |(name, code)| self.package(name, code, role);
        survey.nvidias.extend(nvidias.into_iter().map(in_role(Role::Vendor)));
        survey.compiling.extend(reaching.into_iter().map(|(name, path)| at_run_time(name, path)));
        groups.into_iter().map(in_role(Role::Framework)).collect()
    }

    pub(crate) fn package(&self, name: String, code: Vec<CodeAt>, role: Role) -> Artifact {
        let path = code.first().map(|at| at.path.clone()).unwrap_or_default();
        let runtime = self.runtime_of_package(&code);
        let kind = if role == Role::Vendor { ArtifactKind::Library } else { ArtifactKind::Extension };
        let files = code.into_iter().map(|at| CodeFile { role, ..code_file(at, role) }).collect();
        Artifact { runtime, ..Artifact::new(name, kind, path, Code::Files(files)) }
    }

    /// The CUDA runtime of a package: the oldest of its files, because packages bring the same library for several CUDA
    /// versions and load the one that fits.
    fn runtime_of_package(&self, code: &[CodeAt]) -> Option<Runtime> {
        let found = |at: &CodeAt| {
            let elf = self.files.elf(&at.path)?;
            let needed = || elf.linkage.needed.iter().filter(|name| name.starts_with("libcudart.so."));
            let has_runtime = needed().next().is_some() || elf.strings.runtime_inside;
            let of_ptx = || toolkit_of(self.facts, newest_ptx(&at.code.patterns).filter(|_| has_runtime)?);
            let version = at.code.toolkit.or_else(of_ptx);
            let by_name = || needed().next().and_then(|name| major_of_runtime(name));
            let major = version.map(CudaVersion::major).or_else(by_name)?;
            Some(Runtime { major, version, path: at.path.clone() })
        };
        code.iter().filter_map(found).min_by_key(|runtime| (runtime.major, runtime.version))
    }
}

/// A package that opens the driver and holds no GPU code.
fn at_run_time(name: String, path: String) -> Artifact {
    let file = file_name(&path);
    let how = format!("{file} loads the NVIDIA driver, but the package contains no GPU code");
    Artifact::new(name, ArtifactKind::Extension, path, Code::AtRunTime(how))
}

/// The package that a file of site-packages belongs to.
struct Package {
    name: String,
    is_nvidias: bool,
}

/// Which distribution brought a file, by the lists that installers leave (`RECORD`).
struct Owners<'s> {
    sites: &'s [String],
    by_path: BTreeMap<String, String>,
}

impl<'s> Owners<'s> {
    fn read(files: &dyn Contents, sites: &'s [String]) -> Self {
        let mut by_path = BTreeMap::new();
        for site in sites {
            for directory in files.names(site) {
                let stem = directory.strip_suffix(".dist-info").and_then(|stem| stem.rsplit_once('-'));
                let Some((name, version)) = stem else { continue };
                let record = files.text(&format!("{site}/{directory}/RECORD")).unwrap_or_default();
                let paths = record.lines().filter_map(|line| line.split(',').next());
                for path in paths.filter(|path| path.contains(".so")) {
                    by_path.insert(format!("{site}/{path}"), format!("{} {version}", normalized(name)));
                }
            }
        }
        Self { sites, by_path }
    }

    /// The package of a file, by the list, or by the directory below site-packages; none if it is
    /// elsewhere.
    fn of(&self, path: &str) -> Option<Package> {
        let inside =
            self.sites.iter().find_map(|site| path.strip_prefix(site.as_str())?.strip_prefix('/'))?;
        let mut parts = inside.split('/');
        let top = parts.next().unwrap_or(inside);
        let is_nvidias = vendor_library(path).is_some() || is_nvidias(top);
        let named = || {
            if let ("nvidia", Some(component)) = (top, parts.next()) {
                return format!("nvidia/{component}");
            }
            // auditwheel puts libraries of `x` into `x.libs`.
            let name = top.split(".cpython").next().unwrap_or(top);
            name.trim_end_matches(".so").trim_end_matches(".libs").to_owned()
        };
        Some(Package { name: self.by_path.get(path).cloned().unwrap_or_else(named), is_nvidias })
    }
}
