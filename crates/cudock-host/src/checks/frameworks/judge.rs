//! How a build fits the driver and the cards, whatever framework it is of.

use cudock_facts::version::DriverVersion;

use crate::checks::{Situation, Status, Verdict, codes};
use crate::frameworks::Build;

/// How a build fits the driver and the cards.
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    pub(super) error: Option<u16>,
    pub(super) reason: String,
    pub(super) finding: Option<(Status, &'static str, String)>,
}

/// Driver first, then GPU code: what fails first is what the user sees.
pub(super) fn judge(situation: &Situation<'_>, build: &Build) -> Judgement {
    let min_driver = min_driver(situation, build);
    if !situation.has_gpu() {
        let needs = min_driver.map_or_else(String::new, |driver| format!("; needs driver {driver} or newer"));
        let reason = format!("no GPU here to use{needs}");
        return Judgement { verdict: Verdict::Unknown, error: None, reason, finding: None };
    }
    if let (Some(driver), Some(minimum)) = (situation.driver, min_driver)
        && driver < minimum
        && situation.cuda.is_none_or(|cuda| build.cuda_major.is_none_or(|major| cuda.major() < major))
    {
        let reason = format!("driver {driver} is too old, {minimum} is needed (error 35)");
        let finding = Some((
            Status::Problem,
            codes::DRIVER_TOO_OLD,
            build.fix_for_old_driver(situation.facts, Some(minimum), situation.driver),
        ));
        return Judgement { verdict: Verdict::Fails, error: Some(35), reason, finding };
    }
    let judgement = code(situation, build);
    match situation.blocked_by {
        Some(code) if matches!(judgement.verdict, Verdict::Works | Verdict::Jit) => {
            let reason = format!("fits the GPU, and cannot use it before {code} is solved");
            Judgement { verdict: Verdict::Fails, error: None, reason, finding: None }
        }
        _ => judgement,
    }
}

fn code(situation: &Situation<'_>, build: &Build) -> Judgement {
    let fix_for_no_code = build.fix_for_no_code(situation.facts, &situation.capabilities(), situation.driver);
    let Some(sass) = build.sass.as_deref() else {
        let reason = "its GPU code is not in the tables".to_owned();
        let fix = "run a small kernel to find out; newer tables can be laid over with --facts".to_owned();
        return Judgement {
            verdict: Verdict::Unknown,
            error: None,
            reason,
            finding: Some((Status::Note, codes::BUILD_UNKNOWN, fix)),
        };
    };
    let ptx = build.ptx.as_deref().unwrap_or_default();
    let language = build.ptx_isa;
    let understood = situation.branch().map(|branch| branch.ptx_isa);
    let mut compiled = None;
    for capability in situation.capabilities() {
        if let Some(code) = sass.iter().find(|code| code.runs_on(capability)) {
            compiled.get_or_insert((false, code.to_string()));
            continue;
        }
        if let Some(code) = ptx.iter().find(|code| code.compiles_for(capability)) {
            if let (Some(language), Some(understood)) = (language, understood)
                && language > understood
            {
                let reason = format!(
                    "only PTX {language} fits capability {capability}, and the driver understands {understood} (error 222)"
                );
                let finding = Some((
                    Status::Problem,
                    codes::PTX_TOO_NEW,
                    build.fix_for_old_driver(situation.facts, min_driver(situation, build), situation.driver),
                ));
                return Judgement { verdict: Verdict::Fails, error: Some(222), reason, finding };
            }
            compiled = Some((true, code.to_string()));
            continue;
        }
        if build.ptx.is_none() {
            let reason = format!(
                "no machine code for capability {capability}, and whether it has PTX is not in the tables"
            );
            let finding = Some((Status::Warning, codes::BUILD_UNKNOWN, fix_for_no_code.clone()));
            return Judgement { verdict: Verdict::Unknown, error: None, reason, finding };
        }
        let list: Vec<String> = sass.iter().map(ToString::to_string).collect();
        let reason = format!("no code for capability {capability}, it has {} (error 209)", list.join(" "));
        let finding = Some((Status::Problem, codes::NO_CODE_FOR_GPU, fix_for_no_code.clone()));
        return Judgement { verdict: Verdict::Fails, error: Some(209), reason, finding };
    }
    match compiled {
        Some((true, code)) => Judgement {
            verdict: Verdict::Jit,
            error: None,
            reason: format!("runs after the driver compiles its {code} PTX; the first start takes minutes"),
            finding: Some((Status::Note, codes::JIT_ONLY, fix_for_no_code.clone())),
        },
        Some((false, code)) => Judgement {
            verdict: Verdict::Works,
            error: None,
            reason: format!("will use the GPU with its {code} code"),
            finding: None,
        },
        None => Judgement {
            verdict: Verdict::Unknown,
            error: None,
            reason: "the GPU's capability is not known".to_owned(),
            finding: None,
        },
    }
}

/// The driver a build needs: by its own rule, or by its CUDA's, in the column of the system the driver belongs to.
fn min_driver(situation: &Situation<'_>, build: &Build) -> Option<DriverVersion> {
    if build.min_driver.is_some() && !situation.wsl() {
        return build.min_driver;
    }
    let row = situation.facts.drivers().minor_compat(build.cuda_major?)?;
    if situation.wsl() { row.min_windows } else { Some(row.min_linux) }
}

/// A build that cannot use a GPU matters where there is one.
pub(super) fn cpu_only(
    situation: &Situation<'_>,
    reason: &str,
    code: &'static str,
    status: Status,
    fix: String,
) -> Judgement {
    let finding = situation.has_gpu().then_some((status, code, fix));
    Judgement { verdict: Verdict::Cpu, error: None, reason: reason.to_owned(), finding }
}
