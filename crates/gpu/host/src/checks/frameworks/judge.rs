//! Judges how a build fits the driver and the GPUs.

use cudock_facts::finding::Severity;
use cudock_facts::version::DriverVersion;

use crate::checks::{CheckContext, Verdict, codes};
use crate::frameworks::Build;

/// The judgment about a build.
pub(super) struct Judgment {
    pub(super) verdict: Verdict,
    pub(super) error: Option<u16>,
    pub(super) reason: String,
    pub(super) finding: Option<JudgedFinding>,
}

/// The severity, the code and the fix.
type JudgedFinding = (Severity, &'static str, String);

impl Judgment {
    pub(super) fn new(
        verdict: Verdict,
        error: Option<u16>,
        reason: impl Into<String>,
        finding: Option<JudgedFinding>,
    ) -> Self {
        Self { verdict, error, reason: reason.into(), finding }
    }
}

/// The driver is checked first, then GPU code: the first failure is what the user sees.
pub(super) fn judge(context: &CheckContext<'_>, build: &Build) -> Judgment {
    let min_driver = min_driver(context, build);
    if !context.has_gpu() {
        let needs = min_driver.map_or_else(String::new, |driver| format!("; needs driver {driver} or newer"));
        return Judgment::new(Verdict::Unknown, None, format!("no GPU available{needs}"), None);
    }
    if let (Some(driver), Some(minimum)) = (context.driver, min_driver)
        && driver < minimum
        && context.cuda.is_none_or(|cuda| build.cuda_major.is_none_or(|major| cuda.major() < major))
    {
        let reason = format!("driver {driver} is too old, {minimum} is needed (error 35)");
        let fix = build.fix_for_old_driver(context.facts, Some(minimum), context.driver);
        let finding = (Severity::Error, codes::DRIVER_TOO_OLD, fix);
        return Judgment::new(Verdict::Fails, Some(35), reason, Some(finding));
    }
    let judgment = code(context, build);
    match context.blocked_by {
        Some(code) if judgment.verdict.uses_gpu() => {
            let reason = format!("fits the GPU, but cannot use it until {code} is fixed");
            Judgment::new(Verdict::Fails, None, reason, None)
        }
        _ => judgment,
    }
}

fn code(context: &CheckContext<'_>, build: &Build) -> Judgment {
    let fix_for_no_code = build.fix_for_no_code(context.facts, &context.capabilities(), context.driver);
    let Some(sass) = build.sass.as_deref() else {
        let fix = "run a small kernel to find out; newer tables can be added with --facts".to_owned();
        let finding = Some((Severity::Note, codes::BUILD_UNKNOWN, fix));
        return Judgment::new(Verdict::Unknown, None, "its GPU code is not in the tables", finding);
    };
    let ptx = build.ptx.as_deref().unwrap_or_default();
    let ptx_version = build.ptx_isa;
    let supported = context.branch().map(|branch| branch.ptx_isa);
    let mut compiled = None;
    for capability in context.capabilities() {
        if let Some(code) = sass.iter().find(|code| code.runs_on(capability)) {
            compiled.get_or_insert((false, code.to_string()));
            continue;
        }
        if let Some(code) = ptx.iter().find(|code| code.compiles_for(capability)) {
            if let (Some(ptx_version), Some(supported)) = (ptx_version, supported)
                && ptx_version > supported
            {
                let reason = format!(
                    "only PTX {ptx_version} fits capability {capability}, but the driver supports {supported} (error 222)"
                );
                let minimum = min_driver(context, build);
                let fix = build.fix_for_old_driver(context.facts, minimum, context.driver);
                let finding = Some((Severity::Error, codes::PTX_TOO_NEW, fix));
                return Judgment::new(Verdict::Fails, Some(222), reason, finding);
            }
            compiled = Some((true, code.to_string()));
            continue;
        }
        if build.ptx.is_none() {
            let reason = format!("no SASS for capability {capability}, and the tables do not list its PTX");
            let finding = Some((Severity::Warning, codes::BUILD_UNKNOWN, fix_for_no_code.clone()));
            return Judgment::new(Verdict::Unknown, None, reason, finding);
        }
        let list: Vec<String> = sass.iter().map(ToString::to_string).collect();
        let reason = format!("no code for capability {capability}, it has {} (error 209)", list.join(" "));
        let finding = Some((Severity::Error, codes::NO_CODE_FOR_GPU, fix_for_no_code.clone()));
        return Judgment::new(Verdict::Fails, Some(209), reason, finding);
    }
    match compiled {
        Some((true, code)) => {
            let reason =
                format!("runs after the driver compiles its {code} PTX; the first start takes minutes");
            let finding = Some((Severity::Note, codes::JIT_ONLY, fix_for_no_code));
            Judgment::new(Verdict::Jit, None, reason, finding)
        }
        Some((false, code)) => {
            Judgment::new(Verdict::Works, None, format!("will use the GPU with its {code} code"), None)
        }
        None => Judgment::new(Verdict::Unknown, None, "the GPU's compute capability is unknown", None),
    }
}

/// The driver that a build needs: its own minimum, or that of its CUDA version, for Linux or Windows.
fn min_driver(context: &CheckContext<'_>, build: &Build) -> Option<DriverVersion> {
    if build.min_driver.is_some() && !context.is_wsl() {
        return build.min_driver;
    }
    let row = context.facts.drivers().minor_compat(build.cuda_major?)?;
    if context.is_wsl() { row.min_windows } else { Some(row.min_linux) }
}

/// The judgment about a build without GPU support, which only matters if there is a GPU.
pub(super) fn cpu_only(
    context: &CheckContext<'_>,
    reason: &str,
    code: &'static str,
    severity: Severity,
    fix: String,
) -> Judgment {
    let finding = context.has_gpu().then_some((severity, code, fix));
    Judgment::new(Verdict::Cpu, None, reason, finding)
}
