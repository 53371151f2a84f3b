//! Whether a unit has GPU code for the card, and what the driver makes of it.

use cudock_facts::finding::{Evidence as Seen, Severity};
use cudock_facts::version::{Capability, PtxIsa, SmArch, Variant};
use cudock_host::Verdict;

use super::package::package;
use crate::codes;
use crate::evidence::{Code, CodeFile, Pattern, Role, Unit, UnitKind};
use crate::judge::code::{self, Card, Jit, Loads};
use crate::judge::libcuda::Driver;
use crate::judge::{Case, Failure, Stop, fails};

pub(super) fn gpu_code(case: &mut Case<'_>, unit: &Unit, driver: &Driver) -> Result<Stop, Stop> {
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
        Code::Package(code) => package(case, unit, capability, code),
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
        format!("has {}, by the tables", code::targets(std::slice::from_ref(&pattern))),
    )];
    told(case, unit, card, (answer, std::slice::from_ref(&pattern)), 209, seen)
}

fn by_files(case: &mut Case<'_>, unit: &Unit, card: Card, files: &[CodeFile]) -> Result<Stop, Stop> {
    let of = |role: Role| files.iter().filter(move |file| file.role == role);
    for file in of(Role::Vendor) {
        vendor(case, card, file);
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
    // Where all of it fails, there is nothing to say about parts.
    for file in files.iter().filter(|file| answer.works() && file.role != Role::Vendor) {
        gaps(case, card, file);
    }
    let has_ptx = file.patterns.iter().any(|pattern| !pattern.ptx.is_empty());
    let without_code = match (file.device_linked, file.loose && has_ptx) {
        (true, _) => 500,
        (false, true) => 218,
        (false, false) => 209,
    };
    // A framework is judged by all of its files, and each is evidence of its own code alone.
    let judged = files.iter().filter(|other| {
        if file.role == Role::Framework { other.role == file.role } else { other.path == file.path }
    });
    let seen = judged
        .map(|file| Seen::new(file.path.clone(), format!("has {}", code::targets(&file.patterns))))
        .collect();
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
    told(case, unit, card, (answer, &file.patterns), without_code, seen)
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
    (answer, patterns): (Loads, &[Pattern]),
    without_code: u16,
    seen: Vec<Seen>,
) -> Result<Stop, Stop> {
    let capability = card.capability;
    let number = capability.number();
    let fix_for_no_code = match (&unit.build, unit.kind) {
        (Some(build), _) => build.fix_for_no_code(case.facts, &[capability]),
        (None, UnitKind::Framework) => {
            "install a release for a CUDA that supports the card: `conda install -c conda-forge 'cuda-version>=12.8'` with the \
             newest release of it"
                .to_owned()
        }
        (None, _) => format!("compile it for this card too: nvcc -gencode arch=compute_{number},code=sm_{number}, with PTX for later ones (code=compute_{number})"),
    };
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
            if let Some(rule) = refusing(patterns).filter(|_| !forced) {
                case.applies(rule, format!("{}: its PTX does not compile for {capability}", unit.name));
            }
            let has = format!("; it has {}", code::targets(patterns));
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
