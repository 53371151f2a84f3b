//! The evidence about a subject, as plain data: the only input of the verdict besides target and
//! fact tables.

use std::collections::BTreeMap;

use cudock_base::NamedArch;
use cudock_facts::finding::{Finding, FindingEvidence};
use cudock_facts::version::{Capability, CudaVersion, DriverVersion, PtxArch, PtxIsa, SmArch};
use cudock_host::frameworks::{Build, Support};
use cudock_host::host::{FoundBy, LibraryKind};
use schemars::JsonSchema;
use serde::Serialize;

/// The evidence about one subject.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// The name that the user gave for the subject.
    pub subject: String,
    pub kind: SubjectKind,
    /// The processor it is for, as images name it: amd64, arm64.
    pub cpu: Option<NamedArch>,
    /// The variables it is started with.
    pub environment: BTreeMap<String, String>,
    /// Copies of libcuda inside it, in the order in which the loader would find them.
    pub driver_copies: Vec<DriverCopy>,
    pub artifacts: Vec<Artifact>,
    /// Frameworks of which a range of versions is requested.
    pub ranges: Vec<Range>,
    /// CUDA libraries and other components for the report.
    pub components: Vec<Component>,
    /// Findings made while reading it, independent of the target.
    pub findings: Vec<Finding>,
    /// Unread or unknown content that could change the verdict. A verdict of `cpu`, or of `fails`
    /// for a missing library, needs positive evidence: with anything in this list it is `unknown`.
    pub unread: Vec<Unread>,
    /// The reason why there will be nothing to start.
    pub build_failure: Option<BuildFailure>,
}

/// A framework whose version is one of several.
#[derive(Debug, Clone)]
pub struct Range {
    pub name: String,
    /// The requested range: ">=1.23.2,<1.24".
    pub asked: String,
    /// Where it is written.
    pub path: String,
    /// The possible artifacts, oldest version first, each with its version.
    pub variants: Vec<(String, Artifact)>,
}

/// Why an image cannot be built or an environment cannot be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFailure {
    pub code: &'static str,
    pub reason: String,
    /// Where it is written.
    pub evidence: Vec<FindingEvidence>,
    pub fix: String,
    /// The tool that reports the error.
    pub error: String,
    /// The message that the tool will print.
    pub message: String,
}

/// Something with unknown contents that may use a GPU or contain a library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unread {
    /// The unread subject: "requirements/gpu.txt", "sglang 0.5.0".
    pub what: String,
    /// The reference to it: "Dockerfile:7".
    pub at: String,
    /// Why it is not known, as a clause that follows `what`: "is not in the build context". Empty where `what` is a
    /// clause of its own.
    pub why: String,
    pub fix: String,
}

impl Unread {
    /// The unread content and the reason, as one clause.
    pub(crate) fn describe(&self) -> String {
        format!("{} {}", self.what, self.why).trim_end().to_owned()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubjectKind {
    /// A container image, or a root file system.
    #[default]
    Image,
    Program,
    Directory,
    Wheel,
    /// A Dockerfile or another dependency file.
    Environment,
}

impl SubjectKind {
    /// Whether a container runtime starts it, and gives it the driver.
    pub fn is_container(self) -> bool {
        matches!(self, SubjectKind::Image | SubjectKind::Environment)
    }
}

/// A copy of libcuda that is not the host's own.
#[derive(Debug, Clone)]
pub struct DriverCopy {
    pub path: String,
    pub kind: LibraryKind,
    /// The version of the driver that it belongs to.
    pub version: Option<DriverVersion>,
    /// The note of a library from a cuda-compat package.
    pub note: Option<CompatNote>,
    /// How programs find it.
    pub reach: Reach,
}

/// The note in a cuda-compat libcuda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompatNote {
    /// The CUDA version it brings.
    pub cuda: Option<CudaVersion>,
    /// The driver branches it runs on.
    pub branches: Vec<u16>,
}

/// How programs find a copy of libcuda.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The loader finds it. Its default directories are where the host's copy is put, too.
    Loader(FoundBy),
    /// The directory in which the container toolkit looks for cuda-compat.
    CompatDirectory,
}

/// Something that could use a GPU: a program, a framework, an extension.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// "torch 2.15.0", or the program's name.
    pub name: String,
    pub kind: ArtifactKind,
    /// Its file, or its metadata.
    pub path: String,
    /// Whether it was built to use an NVIDIA GPU.
    pub support: Support,
    pub runtime: Option<Runtime>,
    /// Whether it names libcuda among the libraries it cannot start without.
    pub links_driver: bool,
    /// The lowest driver it accepts by its own rule.
    pub own_floor: Option<DriverVersion>,
    pub code: Code,
    /// Libraries it needs and will not find.
    pub missing: Vec<Missing>,
    /// Why the system would not run it, whatever is in it.
    pub barred: Option<String>,
    /// The framework's build, where it is one.
    pub build: Option<Build>,
}

impl Artifact {
    /// Something that uses CUDA and needs nothing else that is known.
    pub(crate) fn new(name: String, kind: ArtifactKind, path: String, code: Code) -> Self {
        Self {
            name,
            kind,
            path,
            support: Support::Cuda,
            runtime: None,
            links_driver: false,
            own_floor: None,
            code,
            missing: Vec::new(),
            barred: None,
            build: None,
        }
    }

    /// A framework's build, with the code that was found of it; without any, what the tables say counts.
    pub(crate) fn of_build(build: Build, path: String, code: Option<Code>, missing: Vec<Missing>) -> Self {
        let name = format!("{} {}", build.name, build.version);
        let by_tables = || match &build.sass {
            Some(sass) => Code::Table { sass: sass.clone(), ptx: build.ptx.clone(), isa: build.ptx_isa },
            None => Code::Unknown(format!("the GPU code of {name} is not in the tables")),
        };
        let code = code.unwrap_or_else(by_tables);
        let version = build.cuda;
        Self {
            support: build.support.clone(),
            runtime: build.cuda_major.map(|major| Runtime { major, version, path: path.clone() }),
            own_floor: build.min_driver,
            missing,
            build: Some(build),
            ..Self::new(name, ArtifactKind::Framework, path, code)
        }
    }

    /// Demotes a framework whose libraries the program must load, if there is torch: that has its
    /// own verdict.
    pub(crate) fn demote_beside_torch(&mut self, has_torch: bool) {
        let is_open = self.missing.first().is_some_and(|missing| missing.effect == Effect::LoadedByProgram);
        if has_torch && is_open {
            self.kind = ArtifactKind::Extension;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArtifactKind {
    Program,
    /// A library that is checked by itself.
    Library,
    Framework,
    /// A Python extension or a plugin that is not a framework's own.
    Extension,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    pub major: u8,
    /// 12.4, where it is known.
    pub version: Option<CudaVersion>,
    /// Where it is, or how it is known.
    pub path: String,
}

impl Runtime {
    pub(crate) fn new(version: CudaVersion, path: String) -> Self {
        Self { major: version.major(), version: Some(version), path }
    }

    /// Its version, as far as it is known.
    pub(crate) fn named(&self) -> String {
        self.version.map_or_else(|| self.major.to_string(), |version| version.to_string())
    }
}

/// The GPU code of an artifact.
#[derive(Debug, Clone)]
pub enum Code {
    /// Read from these files.
    Files(Vec<CodeFile>),
    Table {
        sass: Vec<SmArch>,
        /// PTX; none if the tables do not say.
        ptx: Option<Vec<PtxArch>>,
        /// The language it is written in.
        isa: Option<PtxIsa>,
    },
    /// The code of a package that is known by its name.
    Package(PackageCode),
    /// Not known, and why.
    Unknown(String),
    /// Made when it runs: it opens the driver, and its files hold none. Says how that is known.
    AtRunTime(String),
    /// It has none, and needs none of its own.
    None,
}

/// Facts about the GPU code of a package, known from its name alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageCode {
    /// The unknown property, as a sentence.
    pub why: String,
    pub fix: String,
    /// Whether it compiles its code at run time.
    pub compiles: bool,
    /// Whether that is machine code, and never PTX that later GPUs could run.
    pub to_machine_code: bool,
    /// The lowest capability its documentation supports.
    pub min_capability: Option<Capability>,
}

#[derive(Debug, Clone)]
pub struct CodeFile {
    pub path: String,
    /// How much its gaps matter.
    pub role: Role,
    /// Its modules, those alike together.
    pub patterns: Vec<Pattern>,
    /// Whether its modules were linked on the device side: then what is missing is a symbol (error 500).
    pub device_linked: bool,
    /// Whether it is data of a program, loaded by the driver as it is: then PTX for a later GPU is
    /// invalid (218).
    pub loose: bool,
    pub toolkit: Option<CudaVersion>,
    /// NVIDIA's libraries that are linked into it statically and choose kernels by the GPU: cuBLAS, cuDNN.
    pub embeds: Vec<&'static str>,
    /// Libraries it cannot be loaded without, by name.
    pub needed: Vec<String>,
}

/// How much the gaps of a file matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Every module is there to be used: one that does not load fails.
    Program,
    /// A library of a framework or a package: most modules are used, some by one kind of GPU only,
    /// and a library without any for the GPU is optional if another one covers it.
    Framework,
    /// A library of NVIDIA's, which chooses among its modules by the GPU.
    Vendor,
}

/// Modules with the same targets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pattern {
    pub sass: Vec<SmArch>,
    /// Machine code in groups (`nvcc --concat`), which older drivers do not open.
    pub grouped: Vec<SmArch>,
    /// PTX and its language.
    pub ptx: Vec<(PtxArch, PtxIsa)>,
    pub modules: u64,
}

impl Pattern {
    /// Counts these modules with those that have the same targets.
    pub(crate) fn add_to(self, patterns: &mut Vec<Self>) {
        let is_alike = |known: &&mut Self| {
            known.sass == self.sass && known.ptx == self.ptx && known.grouped == self.grouped
        };
        match patterns.iter_mut().find(is_alike) {
            Some(known) => known.modules += self.modules,
            None => patterns.push(self),
        }
    }
}

/// A library that is needed and will not be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// libcudnn.so.9
    pub library: String,
    pub needed_by: String,
    /// The missing symbol version, if the library exists but lacks it.
    pub version: Option<String>,
    /// A file of that name that comes first and is not a library.
    pub broken: Option<String>,
    pub effect: Effect,
}

impl Missing {
    pub(crate) fn new(library: String, needed_by: String, effect: Effect) -> Self {
        Self { library, needed_by, version: None, broken: None, effect }
    }
}

/// The effect of a missing library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The loader stops, or the import fails.
    Fails,
    /// The framework falls back to the CPU.
    UsesCpu,
    /// It is in a wheel that the loader does not search: the program loads it first, or the
    /// framework uses the CPU.
    LoadedByProgram,
    /// It may be on the target, which was not searched.
    NotHere,
}

/// A library worth listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Component {
    /// cudart, cublas, cudnn, nccl, tensorrt …
    pub name: String,
    /// Its version, as far as its name tells.
    pub version: String,
    pub path: String,
}
