//! What one unit will do: its libraries, its runtime, its GPU code.

use cudock_facts::finding::{Evidence as Seen, Severity};
use cudock_facts::version::{Capability, DriverVersion, PtxIsa, SmArch, Variant};
use cudock_host::Verdict;
use cudock_host::frameworks::{Alarm, Build, Support, Without};

use super::code::{self, Card, Jit, Loads};
use super::libcuda::{Driver, Libcuda};
use super::{Case, Failure, Stop, UnitJudgement, fails, other_error};
use crate::codes;
use crate::evidence::{Code, CodeFile, Effect, Missing, Pattern, Role, Runtime, Unit, UnitKind};

pub(super) fn judge(
    case: &mut Case<'_>,
    unit: &Unit,
    libcuda: &Libcuda,
    stop: Option<&Stop>,
) -> UnitJudgement {
    let outcome = questions(case, unit, libcuda, stop).unwrap_or_else(|stop| stop);
    UnitJudgement {
        name: unit.name.clone(),
        path: unit.path.clone(),
        verdict: outcome.verdict,
        error: outcome.error,
        reason: outcome.reason,
    }
}

fn questions(case: &mut Case<'_>, unit: &Unit, libcuda: &Libcuda, stop: Option<&Stop>) -> Result<Stop, Stop> {
    support(case, unit)?;
    barred(case, unit)?;
    libraries(case, unit)?;
    let driver = driver(case, unit, libcuda)?;
    // The runtime compares versions before it asks for a card.
    runtime(case, unit, &driver)?;
    if let Some(stop) = stop {
        return Err(Stop { verdict: stop.verdict, error: stop.error.clone(), reason: stop.reason.clone() });
    }
    gpu_code(case, unit, &driver)
}

fn support(case: &mut Case<'_>, unit: &Unit) -> Result<(), Stop> {
    let seen = vec![Seen::new(unit.path.clone(), unit.build.as_ref().map_or("", |build| &build.label))];
    match &unit.support {
        Support::Cuda => Ok(()),
        Support::Cpu { reason, alarm, fix } => {
            let severity = match alarm {
                Alarm::Problem => Severity::Error,
                Alarm::Warning => Severity::Warning,
                Alarm::Note => Severity::Note,
            };
            let message = format!("{}: {reason}", unit.name);
            case.find(severity, codes::CPU_BUILD, message, seen, fix.clone());
            Err(Stop { verdict: Verdict::Cpu, error: None, reason: reason.clone() })
        }
        Support::OtherVendor { fix } => {
            let reason = "built for AMD's GPUs".to_owned();
            case.find(
                Severity::Error,
                codes::BUILT_FOR_ROCM,
                format!("{}: {reason}", unit.name),
                seen,
                fix.clone(),
            );
            Err(Stop { verdict: Verdict::Cpu, error: None, reason })
        }
        Support::NotInTables { fix } => {
            // What its files say is better than what tables would.
            if matches!(unit.code, Code::Files(_)) {
                return Ok(());
            }
            let (code, reason) = match &unit.code {
                Code::Unknown(why) if unit.build.is_none() => (codes::VERSION_NOT_PINNED, why.clone()),
                _ => (
                    codes::BUILD_UNKNOWN,
                    "this release is not in the tables, and its files are not here".to_owned(),
                ),
            };
            case.find(Severity::Warning, code, format!("{}: {reason}", unit.name), seen, fix.clone());
            Err(Stop { verdict: Verdict::Unknown, error: None, reason })
        }
    }
}

/// What the system has against starting it.
fn barred(case: &mut Case<'_>, unit: &Unit) -> Result<(), Stop> {
    let Some(why) = &unit.barred else { return Ok(()) };
    case.applies("Q1", format!("{}: {why}", unit.name));
    let seen = vec![Seen::new(unit.path.clone(), why.clone())];
    let reason = format!("it cannot be started: {why}");
    case.find(
        Severity::Error,
        codes::NOT_EXECUTABLE,
        reason.clone(),
        seen,
        format!("chmod +x {}", unit.path),
    );
    Err(fails(other_error("permission denied", "Permission denied"), reason))
}

fn libraries(case: &mut Case<'_>, unit: &Unit) -> Result<(), Stop> {
    for missing in unit.missing.iter().filter(|missing| missing.effect == Effect::NotHere) {
        let message =
            format!("{} needs {}, which is not here; the target must have it", unit.name, missing.library);
        let seen = vec![Seen::new(missing.needed_by.clone(), format!("needs {}", missing.library))];
        case.find(
            Severity::Note,
            codes::LIBRARY_NOT_FOUND,
            message,
            seen,
            "check it in the image it will run in",
        );
    }
    let Some(missing) = unit.missing.iter().find(|missing| missing.effect != Effect::NotHere) else {
        case.applies("L1", format!("{}: every library is found", unit.name));
        return Ok(());
    };
    let seen: Vec<Seen> = unit
        .missing
        .iter()
        .filter(|other| other.effect != Effect::NotHere)
        .map(|other| Seen::new(other.needed_by.clone(), wanting(other)))
        .collect();
    let wanting = wanting(missing);
    if missing.effect == Effect::UsesCpu {
        case.applies("L2", format!("{}: {wanting}", unit.name));
        let (fix, how) = match unit.build.as_ref().map(|build| &build.without) {
            Some(Without::UsesCpu { fix, how, .. }) => (fix.clone(), how.clone()),
            _ => (install(&missing.library), "it uses the CPU".to_owned()),
        };
        let reason = format!("{wanting}: {how}");
        case.find(
            Severity::Error,
            codes::LIBRARY_NOT_INSTALLED,
            format!("{}: {reason}", unit.name),
            seen,
            fix,
        );
        return Err(Stop { verdict: Verdict::Cpu, error: None, reason });
    }
    if let Some(version) = &missing.version {
        case.applies("L3", format!("{}: {wanting}", unit.name));
        let reason = format!(
            "{} needs {version}, which the {} found does not have",
            missing.needed_by, missing.library
        );
        let fix = "build it on an older system, or take a newer base image";
        case.find(Severity::Error, codes::GLIBC_TOO_OLD, reason.clone(), seen, fix);
        let printed =
            format!("{}: version `{version}' not found (required by {})", missing.library, missing.needed_by);
        return Err(fails(other_error("loader", printed), reason));
    }
    case.applies("L1", format!("{}: {wanting}", unit.name));
    let reason =
        format!("{} is not found, and {} cannot start without it", missing.library, missing.needed_by);
    case.find(Severity::Error, codes::LIBRARY_NOT_FOUND, reason.clone(), seen, install(&missing.library));
    let error = if unit.kind == UnitKind::Program {
        format!(
            "error while loading shared libraries: {}: cannot open shared object file: No such file or directory",
            missing.library
        )
    } else {
        format!("ImportError: {}: cannot open shared object file: No such file or directory", missing.library)
    };
    Err(fails(other_error("loader", error), reason))
}

fn wanting(missing: &Missing) -> String {
    match &missing.version {
        Some(version) => format!("needs {version} of {}", missing.library),
        None => format!("{} is not installed", missing.library),
    }
}

/// What brings a library, as far as its name tells.
fn install(library: &str) -> String {
    let of = |prefix: &str| library.starts_with(prefix);
    let package = if of("libcudnn") {
        "cuDNN: pip install nvidia-cudnn-cu12 or -cu13, or the -cudnn- flavour of the base image"
    } else if of("libnccl") {
        "NCCL: pip install nvidia-nccl-cu12 or -cu13, or apt-get install libnccl2"
    } else if of("libnvinfer") {
        "TensorRT: pip install tensorrt, or apt-get install libnvinfer10"
    } else if of("libcu") || of("libnv") || of("libnpp") {
        "the CUDA library: take the -runtime- flavour of the base image, or NVIDIA's wheel of it"
    } else if of("libGL") || of("libglib") || of("libgthread") {
        "the system library: apt-get install libgl1 libglib2.0-0"
    } else {
        "the library, or add its folder to the program's RUNPATH or to LD_LIBRARY_PATH"
    };
    format!("install {package}")
}

fn driver(case: &mut Case<'_>, unit: &Unit, libcuda: &Libcuda) -> Result<Driver, Stop> {
    match libcuda {
        Libcuda::Usable(driver) => Ok(driver.clone()),
        Libcuda::Broken(stop) => {
            Err(Stop { verdict: stop.verdict, error: stop.error.clone(), reason: stop.reason.clone() })
        }
        Libcuda::Absent(reason) if unit.links_driver => {
            case.applies("L1", format!("{}: libcuda.so.1 is not found", unit.name));
            let short = reason.starts_with("an empty");
            let what = if short {
                "file too short"
            } else {
                "cannot open shared object file: No such file or directory"
            };
            let printed = format!("error while loading shared libraries: libcuda.so.1: {what}");
            Err(fails(other_error("loader", printed), reason.clone()))
        }
        Libcuda::Absent(reason) => {
            case.applies("D6", format!("{}: {reason}", unit.name));
            let goes_on = |build: &Build| matches!(build.without, Without::UsesCpu { .. });
            if unit.build.as_ref().is_some_and(goes_on) {
                // These ask first, and go on without.
                return Err(Stop {
                    verdict: Verdict::Cpu,
                    error: Some(case.cuda_error(35)),
                    reason: reason.clone(),
                });
            }
            Err(fails(case.cuda_error(35), reason.clone()))
        }
    }
}

/// Whether the driver is new enough for the CUDA runtime.
fn runtime(case: &mut Case<'_>, unit: &Unit, driver: &Driver) -> Result<(), Stop> {
    let Some(runtime) = &unit.runtime else { return Ok(()) };
    let Some(version) = driver.version else { return Ok(()) };
    let named = runtime.version.map_or_else(|| runtime.major.to_string(), |version| version.to_string());
    // A branch older than the tables has a CUDA older than they know.
    let own = driver.cuda;
    let has = own.map_or_else(String::new, |own| format!(" (CUDA {own})"));
    if own.is_some_and(|own| own.major() > runtime.major) {
        case.applies("D1", format!("{}: CUDA {named} on driver {version}{has}", unit.name));
        return Ok(());
    }
    let floor = floor(case, unit, runtime);
    let newer = runtime.version.filter(|runtime| own.is_none_or(|own| *runtime > own));
    let too_old = match floor {
        // Its own CUDA, or an older one of the major: that needs no floor.
        Some(floor) => version < floor && (newer.is_some() || runtime.version.is_none()),
        None => newer.is_some() || own.is_some_and(|own| own.major() < runtime.major),
    };
    let seen = vec![Seen::new(runtime.path.clone(), format!("CUDA runtime {named}"))];
    if too_old {
        let needed = words(floor);
        case.applies("D2", format!("{}: CUDA {named} needs driver {needed}, {version} is older", unit.name));
        let reason =
            format!("driver {version}{has} is too old for CUDA {named}, which needs {needed} or newer");
        let fix = unit.build.as_ref().map_or_else(
            || format!("update the driver to {needed} or newer, or build with a CUDA the driver has"),
            |build| build.fix_for_old_driver(floor),
        );
        case.find(Severity::Error, codes::DRIVER_TOO_OLD, format!("{}: {reason}", unit.name), seen, fix);
        return Err(fails(case.cuda_error(35), reason));
    }
    let Some(newer) = newer else {
        case.applies("D2", format!("{}: CUDA {named} on driver {version}", unit.name));
        return Ok(());
    };
    case.applies("D3", format!("{}: CUDA {newer} on driver {version}{has}", unit.name));
    let message = format!(
        "{} brings CUDA {newer}, newer than the driver's{has}: machine code runs, PTX compiled at run time does not (error 222)",
        unit.name
    );
    let fix = "nothing to do, unless it generates PTX at run time: then update the driver";
    case.find(Severity::Note, codes::RUNTIME_NEWER_THAN_DRIVER, message, seen, fix);
    Ok(())
}

/// The lowest driver for a runtime: its major's floor, or before there were such, that of its toolkit; a framework may
/// ask for more, never for less.
fn floor(case: &Case<'_>, unit: &Unit, runtime: &Runtime) -> Option<DriverVersion> {
    let wsl = case.target.traits.wsl;
    let row = case.facts.drivers().minor_compat(runtime.major);
    let of_major = row.and_then(|row| if wsl { row.min_windows } else { Some(row.min_linux) });
    let of_toolkit = || {
        let releases = case.facts.toolkits().releases_of(runtime.version?);
        releases.filter_map(|release| if wsl { release.min_windows } else { release.min_linux }).min()
    };
    let own = unit.own_floor.filter(|_| !wsl);
    of_major.or_else(of_toolkit).max(own)
}

fn words(floor: Option<DriverVersion>) -> String {
    floor.map_or_else(|| "a newer one".to_owned(), |floor| floor.to_string())
}

fn gpu_code(case: &mut Case<'_>, unit: &Unit, driver: &Driver) -> Result<Stop, Stop> {
    let unknown = |reason: String| Stop { verdict: Verdict::Unknown, error: None, reason };
    let Some(capability) = case.target.capability else {
        return Err(unknown("the card's compute capability is not known".to_owned()));
    };
    let card = Card { capability, cuda: driver.cuda, ptx_isa: driver.ptx_isa, jit: jit(case) };
    match &unit.code {
        Code::None => Ok(Stop {
            verdict: Verdict::Works,
            error: None,
            reason: "uses the GPU through libraries alone".to_owned(),
        }),
        Code::Unknown(why) => {
            let fix = "check the built image or the wheel itself, where the code can be read";
            case.find(
                Severity::Warning,
                codes::BUILD_UNKNOWN,
                format!("{}: {why}", unit.name),
                vec![Seen::new(unit.path.clone(), why.clone())],
                fix,
            );
            Err(unknown(why.clone()))
        }
        Code::Table { sass, ptx, isa } => by_table(case, unit, card, sass, ptx.as_deref(), *isa),
        Code::Files(files) => by_files(case, unit, card, files),
    }
}

/// How PTX is treated, by the environment and by what the machine has.
fn jit(case: &mut Case<'_>) -> Jit {
    let is_set = |name: &str| {
        case.evidence.environment.get(name).is_some_and(|value| !matches!(value.as_str(), "" | "0"))
    };
    if is_set("CUDA_DISABLE_PTX_JIT") || is_set("CUDA_DISABLE_JIT") {
        return Jit::Off;
    }
    if case.target.traits.machine.as_ref().is_some_and(|machine| !machine.has_jit) {
        return Jit::Missing;
    }
    if is_set("CUDA_FORCE_PTX_JIT") { Jit::Forced } else { Jit::AsNeeded }
}

fn by_table(
    case: &mut Case<'_>,
    unit: &Unit,
    card: Card,
    sass: &[cudock_facts::version::SmArch],
    ptx: Option<&[cudock_facts::version::PtxArch]>,
    isa: Option<PtxIsa>,
) -> Result<Stop, Stop> {
    // A language that is not known is taken as one the driver knows, and said.
    let assumed = isa.or(card.ptx_isa).unwrap_or(PtxIsa::new(1, 0));
    let pattern = Pattern {
        sass: sass.to_vec(),
        ptx: ptx.unwrap_or_default().iter().map(|code| (*code, assumed)).collect(),
        modules: 1,
        ..Pattern::default()
    };
    let toolkit = unit.build.as_ref().and_then(|build| build.cuda);
    let answer = code::loads(&pattern, card, toolkit);
    if answer == Loads::Nothing && ptx.is_none() {
        let reason = format!(
            "no machine code for capability {}, and whether it has PTX is not in the tables",
            card.capability
        );
        let fix = unit
            .build
            .as_ref()
            .map_or_else(String::new, |build| build.fix_for_no_code(case.facts, &[card.capability]));
        case.find(
            Severity::Warning,
            codes::BUILD_UNKNOWN,
            format!("{}: {reason}", unit.name),
            vec![Seen::new(unit.path.clone(), "by the tables")],
            fix,
        );
        return Err(Stop { verdict: Verdict::Unknown, error: None, reason });
    }
    let seen = vec![Seen::new(
        unit.path.clone(),
        format!("by the tables: {}", code::targets(std::slice::from_ref(&pattern))),
    )];
    told(case, unit, card, answer, 209, seen)
}

fn by_files(case: &mut Case<'_>, unit: &Unit, card: Card, files: &[CodeFile]) -> Result<Stop, Stop> {
    let of = |role: Role| files.iter().filter(move |file| file.role == role);
    for file in of(Role::Vendor) {
        vendor(case, card, file);
    }
    for file in of(Role::Framework) {
        gaps(case, card, file);
    }
    let pool = code::pooled(&of(Role::Framework).collect::<Vec<_>>());
    let judged = of(Role::Program).chain(pool.as_ref());
    let worst = judged
        .filter_map(|file| Some((code::judge(file, card)?.decides, file)))
        .max_by_key(|(loads, _)| *loads);
    let Some((answer, file)) = worst else {
        let reason = "uses the GPU through libraries alone".to_owned();
        return Ok(Stop { verdict: Verdict::Works, error: None, reason });
    };
    for file in of(Role::Program).filter(|_| answer.works()) {
        gaps(case, card, file);
    }
    let has_ptx = file.patterns.iter().any(|pattern| !pattern.ptx.is_empty());
    let without_code = match (file.device_linked, file.loose && has_ptx) {
        (true, _) => 500,
        (false, true) => 218,
        (false, false) => 209,
    };
    let seen = vec![Seen::new(file.path.clone(), format!("has {}", code::targets(&file.patterns)))];
    if answer == Loads::Nothing
        && let Some(code) = code::closed_group(&file.patterns, card.capability)
    {
        case.applies("R1", format!("{}: {code} lies in a group", unit.name));
        let reason = format!(
            "its {code} code lies in a group (nvcc --concat), which drivers before CUDA 13.4 do not open"
        );
        let fix = "build it without --concat, or update the driver";
        case.find(Severity::Error, codes::NO_CODE_FOR_GPU, format!("{}: {reason}", unit.name), seen, fix);
        return Err(fails(case.cuda_error(without_code), reason));
    }
    told(case, unit, card, answer, without_code, seen)
}

/// Says which modules of a file do not load.
fn gaps(case: &mut Case<'_>, card: Card, file: &CodeFile) {
    let Some(verdict) = code::judge(file, card) else { return };
    let total: u64 = file.patterns.iter().map(|pattern| pattern.modules).sum();
    let (bad, total) = verdict.gaps.unwrap_or((if verdict.decides.works() { 0 } else { total }, total));
    if bad == 0 {
        return;
    }
    case.applies(
        "A3",
        format!("{}: {bad} of {total} modules have nothing for {}", file.path, card.capability),
    );
    let message = format!(
        "{}: {bad} of {total} modules ({}) have no code for capability {}; kernels in them fail or fall back",
        short(&file.path),
        verdict.gap_targets.join(" "),
        card.capability
    );
    let seen = vec![Seen::new(file.path.clone(), code::targets(&file.patterns))];
    let fix = "nothing to do where those kernels are not used; `cudock inspect --kernels` lists them";
    case.find(Severity::Note, codes::SOME_MODULES_WITHOUT_CODE, message, seen, fix);
}

fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// NVIDIA's libraries whose kernels programs rely on; others hold a module or two that nobody launches.
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

fn vendor(case: &mut Case<'_>, card: Card, file: &CodeFile) {
    let name = short(&file.path);
    let works = code::judge(file, card).is_none_or(|verdict| verdict.decides.works());
    if works || !RELIED_ON.iter().any(|prefix| name.starts_with(prefix)) {
        return;
    }
    let message = format!("{name} has no code for capability {}: calls into it fail", card.capability);
    let seen = vec![Seen::new(file.path.clone(), format!("has {}", code::targets(&file.patterns)))];
    let fix = "take the library of a CUDA release that supports the card (`cudock facts arch`)";
    case.find(Severity::Warning, codes::VENDOR_LIBRARY_WITHOUT_CODE, message, seen, fix);
}

/// The answer in words.
fn told(
    case: &mut Case<'_>,
    unit: &Unit,
    card: Card,
    answer: Loads,
    without_code: u16,
    seen: Vec<Seen>,
) -> Result<Stop, Stop> {
    let capability = card.capability;
    let number = capability.number();
    let fix_for_no_code = unit.build.as_ref().map_or_else(
        || format!("compile it for this card too: nvcc -gencode arch=compute_{number},code=sm_{number}, with PTX for later ones (code=compute_{number})"),
        |build| build.fix_for_no_code(case.facts, &[capability]),
    );
    let known: Option<PtxIsa> = card.ptx_isa;
    match answer {
        Loads::Sass(code) => {
            case.applies(rule_of(code, capability), format!("{}: {code} runs on {capability}", unit.name));
            Ok(Stop {
                verdict: Verdict::Works,
                error: None,
                reason: format!("its {code} code runs on capability {capability}"),
            })
        }
        Loads::Jit(code) => {
            let rule = if code.variant() == Variant::Family { "F1" } else { "P1" };
            case.applies(rule, format!("{}: {code} compiles for {capability}", unit.name));
            let reason =
                format!("the driver compiles its {code} PTX for capability {capability} at first use");
            case.find(
                Severity::Note,
                codes::JIT_ONLY,
                format!("{}: {reason}", unit.name),
                seen,
                fix_for_no_code,
            );
            Ok(Stop { verdict: Verdict::Jit, error: None, reason })
        }
        Loads::TooNew(code, isa) => {
            let understood = known.map_or_else(|| "less".to_owned(), |isa| isa.to_string());
            case.applies("P2", format!("{}: PTX {isa}, the driver knows {understood}", unit.name));
            let reason = format!(
                "only its {code} PTX fits capability {capability}, written in PTX {isa}, and the driver understands {understood}"
            );
            let needed = case
                .facts
                .drivers()
                .branch
                .iter()
                .filter(|branch| branch.ptx_isa >= isa)
                .min_by_key(|branch| branch.branch);
            let update = needed.map_or_else(String::new, |branch| {
                format!("update the driver to R{} or newer, or ", branch.branch)
            });
            case.find(
                Severity::Error,
                codes::PTX_TOO_NEW,
                format!("{}: {reason}", unit.name),
                seen,
                format!("{update}{fix_for_no_code}"),
            );
            Err(fails(case.cuda_error(222), reason))
        }
        Loads::NotCompiled(code) => {
            let (error, why, fix) = if card.jit == Jit::Missing {
                (
                    221,
                    "the driver's PTX compiler, libnvidia-ptxjitcompiler.so.1, is not there",
                    "install all of the driver's libraries",
                )
            } else {
                (
                    223,
                    "the environment forbids to compile it",
                    "unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT",
                )
            };
            case.applies("P4", format!("{}: {why}", unit.name));
            let reason = format!("only its {code} PTX fits capability {capability}, and {why}");
            case.find(Severity::Error, codes::JIT_SWITCHED, format!("{}: {reason}", unit.name), seen, fix);
            Err(fails(case.cuda_error(error), reason))
        }
        Loads::Nothing => {
            let forced = card.jit == Jit::Forced;
            let why = if forced { " but machine code, which CUDA_FORCE_PTX_JIT passes over" } else { "" };
            case.applies("R1", format!("{}: nothing for {capability}", unit.name));
            let ptx = seen.iter().any(|seen| seen.detail.contains("compute_"));
            if ptx && !forced {
                case.applies(
                    refusing(&seen),
                    format!("{}: its PTX does not compile for {capability}", unit.name),
                );
            }
            let has = seen.first().map_or_else(String::new, |seen| format!("; it {}", seen.detail));
            let reason = format!("no code for capability {capability}{why}{has}");
            let (code, fix) = if forced {
                (codes::JIT_SWITCHED, "unset CUDA_FORCE_PTX_JIT".to_owned())
            } else {
                (codes::NO_CODE_FOR_GPU, fix_for_no_code)
            };
            case.find(Severity::Error, code, format!("{}: {reason}", unit.name), seen, fix);
            let error: Failure = case.cuda_error(without_code);
            Err(fails(error, reason))
        }
    }
}

/// The rule that keeps PTX from a card: a family's stays in the family, plain PTX never goes back.
fn refusing(seen: &[Seen]) -> &'static str {
    let family = |word: &str| word.starts_with("compute_") && word.ends_with('f');
    if seen.iter().any(|seen| seen.detail.split(' ').any(family)) { "F1" } else { "P5" }
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
