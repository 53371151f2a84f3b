//! Judges the GPU code of an artifact.

use cudock_base::text::path::file_name;
use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_facts::version::{Capability, CudaVersion, PtxIsa, SmArch, Variant};
use cudock_host::Verdict;

use super::ArtifactCase;
use crate::codes;
use crate::evidence::{ArtifactKind, Code, CodeFile, Pattern, Role};
use crate::judge::code::{self, Card, Jit, Loads};
use crate::judge::libcuda::Driver;
use crate::judge::{Stop, other_error, seen};

/// The reason for artifacts without GPU code of their own.
const BY_LIBRARIES: &str = "uses the GPU through libraries alone";

/// NVIDIA's libraries whose kernels programs rely on; others have a module or two that are never launched.
const RELIED_ON: [&str; 11] = [
    "libcublas.",
    "libcublasLt.",
    "libcudnn_",
    "libcufft.",
    "libcurand.",
    "libcusolver.",
    "libcusparse.",
    "libcutensor.",
    "libnccl.",
    "libnvinfer.",
    "libnpp",
];

/// Those among them that choose kernels by the GPU and fail on GPUs they do not know.
const CHOOSE_BY_CARD: [&str; 3] = ["libcublas.", "libcublasLt.", "libcudnn_"];

/// The basis of a verdict on GPU code.
pub(super) struct CodeEvidence {
    pub(super) evidence: Vec<FindingEvidence>,
    /// The library, and how many of how many of its modules do not load, where some do.
    pub(super) part: Option<(String, u64, u64)>,
}

impl ArtifactCase<'_, '_> {
    pub(super) fn gpu_code(&mut self, driver: &Driver) -> Result<Stop, Stop> {
        let Some(capability) = self.case.target.capability else {
            return Err(Stop::new(Verdict::Unknown, "the compute capability of the GPU is unknown"));
        };
        let card = Card { capability, cuda: driver.cuda, ptx_isa: driver.ptx_isa, jit: self.jit() };
        match &self.artifact.code {
            Code::None => Ok(Stop::new(Verdict::Works, BY_LIBRARIES)),
            Code::Unknown(why) => {
                let fix = "check the built image or the wheel itself, where the code can be read";
                Err(self.unknown(codes::BUILD_UNKNOWN, why, self.seen(why), fix))
            }
            Code::AtRunTime(how) => {
                let reason = format!("its GPU code is made at run time: {how}");
                let fix = "see the package's documentation for supported GPUs, or run it on the GPU";
                Err(self.unknown(codes::CODE_MADE_AT_RUN_TIME, reason, self.seen(how), fix))
            }
            Code::Package(code) => self.package(capability, code),
            Code::Table { sass, ptx, isa } => {
                self.by_table(card, driver.version, (sass, ptx.as_deref(), *isa))
            }
            Code::Files(files) => self.by_files(card, files),
        }
    }

    /// Whether PTX is compiled, by the environment and the machine.
    fn jit(&self) -> Jit {
        let is_set =
            |name: &str| self.case.variable(name).is_some_and(|value| !matches!(value.as_str(), "" | "0"));
        if is_set("CUDA_DISABLE_PTX_JIT") || is_set("CUDA_DISABLE_JIT") {
            return Jit::Off;
        }
        if self.case.target.traits.machine.as_ref().is_some_and(|machine| !machine.has_jit) {
            return Jit::Missing;
        }
        if is_set("CUDA_FORCE_PTX_JIT") { Jit::Forced } else { Jit::AsNeeded }
    }

    fn by_files(&mut self, card: Card, files: &[CodeFile]) -> Result<Stop, Stop> {
        let artifact = self.artifact;
        let of = |role: Role| files.iter().filter(move |file| file.role == role);
        for file in of(Role::Vendor) {
            self.vendor(card, file);
        }
        let programs = of(Role::Program).filter_map(|file| Some((code::judge(file, card)?.decides, file)));
        // The libraries of a framework belong together; those of a package may be features of single GPUs.
        let libraries: Vec<&CodeFile> = of(Role::Framework).collect();
        let pool = code::pooled(&libraries).filter(|_| artifact.kind == ArtifactKind::Framework);
        let package = match &pool {
            Some(pool) => code::judge(pool, card).map(|verdict| (verdict.decides, pool)),
            None => code::package(&libraries, card),
        };
        let worst = programs.chain(package).max_by_key(|(loads, _)| *loads);
        // NVIDIA's libraries decide if they are the subject themselves.
        let is_nvidias = of(Role::Vendor).any(|file| file.path == artifact.path);
        let worst = match worst {
            None if is_nvidias => code::package(&of(Role::Vendor).collect::<Vec<_>>(), card),
            worst => worst,
        };
        let Some((answer, file)) = worst else { return Ok(Stop::new(Verdict::Works, BY_LIBRARIES)) };
        // If everything fails, details about parts do not matter.
        if answer.works() {
            self.gaps(card, &files.iter().filter(|other| other.role != Role::Vendor).collect::<Vec<_>>());
        }
        let has_ptx = file.patterns.iter().any(|pattern| !pattern.ptx.is_empty());
        let without_code = match (file.device_linked, file.loose && has_ptx) {
            (true, _) => 500,
            (false, true) => 218,
            (false, false) => 209,
        };
        let (failing, modules, patterns) = code::failing(file, card);
        let is_pool = pool.is_some() && file.role == Role::Framework;
        let judged = if is_pool { libraries } else { vec![file] };
        let evidence = judged.into_iter().map(targets_of).collect();
        if answer == Loads::Nothing
            && let Some(code) = code::closed_group(&file.patterns, card.capability)
        {
            self.applies("R1", format!("{code} is in a group"));
            let reason = format!(
                "its {code} code is in a group (nvcc --concat), which drivers before CUDA 13.4 do not read"
            );
            let fix = "build it without --concat, or update the driver";
            let error = self.case.cuda_error(without_code);
            return Err(self.fail(codes::NO_CODE_FOR_GPU, error, reason, evidence, fix));
        }
        if let Loads::Jit(_) = answer
            && let Some(stop) = self.math_library(card, file)
        {
            return Err(stop);
        }
        // Do not list targets of modules that load in a finding about those that do not.
        let shown = if answer.works() { &file.patterns } else { &patterns };
        let part = (failing < modules && !answer.works())
            .then(|| (file_name(&file.path).to_owned(), failing, modules));
        self.conclude(card, (answer, shown), without_code, CodeEvidence { evidence, part })
    }

    /// Reports a math library that is linked in and older than the GPU: the driver compiles its
    /// PTX, and the library has no kernels to choose for such a GPU.
    fn math_library(&mut self, card: Card, file: &CodeFile) -> Option<Stop> {
        let library = *file.embeds.first()?;
        let (first, needed) = self.first_toolkit(card.capability)?;
        let isa = code::newest_isa(file).filter(|isa| *isa < needed)?;
        let capability = card.capability;
        self.applies("R3", format!("{library} of PTX {isa}, {capability} needs CUDA {first}"));
        let evidence = seen(file.path.clone(), format!("{library} is linked in; the newest PTX is {isa}"));
        // Seen with cuBLAS of CUDA 10 on A100, A10 and RTX 30 (facebookresearch/faiss, issues 2064, 2027 and 1807).
        let refuses = library == "cuBLAS" && isa < PtxIsa::new(7, 0);
        let follows = if refuses { "calls into it fail" } else { "whether its calls work is unknown" };
        let reason = format!(
            "{library} is linked in from a release before CUDA {first}, the first for capability {capability}: {follows}"
        );
        let fix = format!("take a build for CUDA {first} or newer");
        if !refuses {
            return Some(self.unknown(codes::MATH_LIBRARY_TOO_OLD, reason, evidence, fix));
        }
        let error = other_error("CUBLAS_STATUS_EXECUTION_FAILED", "cublas failed (13)");
        Some(self.fail(codes::MATH_LIBRARY_TOO_OLD, error, reason, evidence, fix))
    }

    /// The first toolkit that compiles for a GPU, and its PTX version.
    fn first_toolkit(&self, capability: Capability) -> Option<(CudaVersion, PtxIsa)> {
        let row = self.case.facts.drivers().architecture_of(capability)?;
        let first = row.first_toolkit_of.get(&capability).copied().or(row.first_toolkit)?;
        Some((first, self.case.facts.toolkits().toolkit(first)?.ptx_isa))
    }

    /// Reports the libraries of a package that have nothing for the GPU, and the modules of the
    /// others that do not load.
    fn gaps(&mut self, card: Card, files: &[&CodeFile]) {
        let capability = card.capability;
        let mut optional = Vec::new();
        for file in files {
            let (failing, modules, patterns) = code::failing(file, card);
            if failing > 0 && failing == modules && file.role == Role::Framework {
                optional.push(*file);
            } else if failing > 0 {
                self.partly(capability, file, (failing, modules, &patterns));
            }
        }
        if optional.is_empty() {
            return;
        }
        let names: Vec<&str> = optional.iter().map(|file| file_name(&file.path)).collect();
        let names = names.join(", ");
        self.applies("R2", format!("{names} have nothing for {capability}"));
        let message = format!(
            "{} of {} libraries have no code for capability {capability}, and features that need them are unavailable: {names}",
            optional.len(),
            files.len(),
        );
        let evidence = optional.into_iter().map(targets_of).collect();
        let fix = "nothing to do where the package falls back to other kernels; see its documentation";
        self.case.find(Severity::Note, codes::OPTIONAL_LIBRARY_WITHOUT_CODE, message, evidence, fix);
    }

    /// Says which modules of a file do not load.
    fn partly(
        &mut self,
        capability: Capability,
        file: &CodeFile,
        (failing, modules, patterns): (u64, u64, &[Pattern]),
    ) {
        let detail = format!("{}: {failing} of {modules} modules have nothing for {capability}", file.path);
        self.case.applies("A3", detail);
        let message = format!(
            "{}: {failing} of {modules} modules ({}) have no code for capability {capability}; kernels in them fail or fall back",
            file_name(&file.path),
            code::targets(patterns),
        );
        let evidence = seen(file.path.clone(), code::targets(&file.patterns));
        let fix = "nothing to do where those kernels are not used; `cudock inspect --kernels` lists them";
        self.case.find(Severity::Note, codes::SOME_MODULES_WITHOUT_CODE, message, evidence, fix);
    }

    fn vendor(&mut self, card: Card, file: &CodeFile) {
        let name = file_name(&file.path);
        let Some(verdict) = code::judge(file, card) else { return };
        let is_of = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
        let evidence = vec![targets_of(file)];
        let capability = card.capability;
        if !verdict.decides.works() && is_of(&RELIED_ON) {
            let message = format!("{name} has no code for capability {capability}: calls into it fail");
            let fix = "use the library of a CUDA release that supports the GPU (`cudock facts arch`)";
            self.case.find(Severity::Warning, codes::VENDOR_LIBRARY_WITHOUT_CODE, message, evidence, fix);
        } else if matches!(verdict.decides, Loads::Jit(_))
            && is_of(&CHOOSE_BY_CARD)
            && let Some((first, needed)) = self.first_toolkit(capability)
            && code::newest_isa(file).is_some_and(|isa| isa < needed)
        {
            let message = format!(
                "{name} was built before CUDA {first}, the first for capability {capability}: it has PTX alone, and calls into it may fail"
            );
            let fix = format!("take the library of CUDA {first} or newer");
            self.case.find(Severity::Warning, codes::MATH_LIBRARY_TOO_OLD, message, evidence, fix);
        }
    }

    /// The fix for a GPU that an artifact has no code for.
    fn fix_for_no_code(&self, capability: Capability) -> String {
        let number = capability.number();
        match (&self.artifact.build, self.artifact.kind) {
            (Some(build), _) => {
                build.fix_for_no_code(self.case.facts, &[capability], self.case.target.driver)
            }
            (None, ArtifactKind::Framework) => {
                "install a release for a CUDA that supports the card: `conda install -c conda-forge 'cuda-version>=12.8'` with the \
                 newest release of it"
                    .to_owned()
            }
            (None, _) => format!("also compile it for this GPU: nvcc -gencode arch=compute_{number},code=sm_{number}, with PTX for later ones (code=compute_{number})"),
        }
    }

    /// The verdict, with its rule and finding.
    pub(super) fn conclude(
        &mut self,
        card: Card,
        (answer, patterns): (Loads, &[Pattern]),
        without_code: u16,
        CodeEvidence { evidence, part }: CodeEvidence,
    ) -> Result<Stop, Stop> {
        let capability = card.capability;
        let fix_for_no_code = self.fix_for_no_code(capability);
        match answer {
            Loads::Sass(code) => {
                self.applies(rule_of(code, capability), format!("{code} runs on {capability}"));
                let reason = format!("its {code} code runs on capability {capability}");
                Ok(Stop::new(Verdict::Works, reason))
            }
            Loads::Jit(code) => {
                let rule = if code.variant() == Variant::Family { "F1" } else { "P1" };
                self.applies(rule, format!("{code} compiles for {capability}"));
                let reason =
                    format!("the driver compiles its {code} PTX for capability {capability} at first use");
                self.find(Severity::Note, codes::JIT_ONLY, &reason, evidence, fix_for_no_code);
                Ok(Stop::new(Verdict::Jit, reason))
            }
            Loads::TooNew(code, isa) => {
                let understood = card.ptx_isa.map_or_else(|| "less".to_owned(), |isa| isa.to_string());
                self.applies("P2", format!("PTX {isa}, the driver knows {understood}"));
                let reason = format!(
                    "only its {code} PTX fits capability {capability}, written in PTX {isa}, and the driver understands {understood}"
                );
                let branches = self.case.facts.drivers().branch.iter();
                let needed = branches.filter(|row| row.ptx_isa >= isa).map(|row| row.branch).min();
                let update = needed.map_or_else(String::new, |branch| {
                    format!("update the driver to R{branch} or newer, or ")
                });
                let fix = format!("{update}{fix_for_no_code}");
                let error = self.case.cuda_error(222);
                Err(self.fail(codes::PTX_TOO_NEW, error, reason, evidence, fix))
            }
            Loads::NotCompiled(code) => {
                let (error, why, fix) = if card.jit == Jit::Missing {
                    let why = "the driver's PTX compiler, libnvidia-ptxjitcompiler.so.1, was not found";
                    (221, why, "install all of the driver's libraries")
                } else {
                    let why = "the environment forbids to compile it";
                    (223, why, "unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT")
                };
                self.applies("P4", why);
                let reason = format!("only its {code} PTX fits capability {capability}, and {why}");
                let error = self.case.cuda_error(error);
                Err(self.fail(codes::JIT_SWITCHED, error, reason, evidence, fix))
            }
            Loads::Nothing => {
                let forced = card.jit == Jit::Forced;
                let why = if forced { " but machine code, which CUDA_FORCE_PTX_JIT passes over" } else { "" };
                self.applies("R1", format!("nothing for {capability}"));
                if let Some(rule) = refusing(patterns).filter(|_| !forced) {
                    self.applies(rule, format!("its PTX does not compile for {capability}"));
                }
                let has = code::targets(patterns);
                let reason = match part {
                    None => format!("no code for capability {capability}{why}; it has {has}"),
                    Some((file, failing, modules)) => format!(
                        "{failing} of {modules} modules of {file} have no code for capability {capability}{why}; they have {has}"
                    ),
                };
                let (code, fix) = if forced {
                    (codes::JIT_SWITCHED, "unset CUDA_FORCE_PTX_JIT".to_owned())
                } else {
                    (codes::NO_CODE_FOR_GPU, fix_for_no_code)
                };
                let error = self.case.cuda_error(without_code);
                Err(self.fail(code, error, reason, evidence, fix))
            }
        }
    }
}

fn targets_of(file: &CodeFile) -> FindingEvidence {
    FindingEvidence::new(file.path.clone(), format!("has {}", code::targets(&file.patterns)))
}

/// The rule by which PTX cannot run on a GPU: a family's stays in the family, plain PTX never runs
/// on older GPUs.
fn refusing(patterns: &[Pattern]) -> Option<&'static str> {
    let mut ptx = patterns.iter().flat_map(|pattern| &pattern.ptx).peekable();
    ptx.peek()?;
    Some(if ptx.any(|(code, _)| code.variant() == Variant::Family) { "F1" } else { "P5" })
}

fn rule_of(code: SmArch, card: Capability) -> &'static str {
    let renumbered = [Capability::new(10, 1), Capability::new(11, 0)];
    if code.variant() == Variant::Specific {
        "A1"
    } else if code.capability() != card && renumbered.contains(&card) {
        "S3"
    } else if [Capability::new(7, 2), Capability::new(8, 7)].contains(&card) {
        "S2"
    } else {
        "S1"
    }
}
