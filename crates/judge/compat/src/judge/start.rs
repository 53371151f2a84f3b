//! Checks whether a container starts, and what is injected into it.

use cudock_facts::finding::Severity;

use super::{Case, Stop, other_error, seen};
use crate::codes;
use cudock_target::StartPath;
use cudock_target::gate::{Gate, GateGpu, GateHost, GateVerdict};

const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";

/// Values that NVIDIA's hook accepts in `NVIDIA_DRIVER_CAPABILITIES`.
const CAPABILITIES: [&str; 8] =
    ["compute", "compat32", "graphics", "utility", "video", "display", "ngx", "all"];

pub(super) fn check(case: &mut Case<'_>) -> Result<(), Stop> {
    if !case.evidence.kind.is_container() {
        return Ok(());
    }
    let devices = case.variable(VISIBLE_DEVICES);
    if case.target.traits.start == StartPath::Cdi {
        if devices.is_some() {
            case.applies("V1", "CDI names devices itself, whatever the variable says");
        }
    } else if matches!(devices.as_deref(), Some("" | "void")) {
        // Nothing is injected, so the requirements are not evaluated either.
        let reason = "NVIDIA_VISIBLE_DEVICES asks for nothing: the container gets no driver";
        return Err(no_devices(case, reason, 35));
    }
    gate(case)?;
    if devices.as_deref() == Some("none") && case.target.traits.start == StartPath::Hook {
        let reason = "NVIDIA_VISIBLE_DEVICES is `none`: the container gets the driver and no GPU";
        return Err(no_devices(case, reason, 100));
    }
    capabilities(case)
}

fn no_devices(case: &mut Case<'_>, reason: &str, error: u16) -> Stop {
    let value = case.variable(VISIBLE_DEVICES).unwrap_or_default();
    case.applies("V1", format!("`{value}`"));
    let evidence = seen(VISIBLE_DEVICES, value);
    let fix =
        "start it with --gpus all, which docker sets after the image's own value, or take the variable out";
    case.fail(codes::NO_DEVICES_ASKED_FOR, case.cuda_error(error), reason, evidence, fix)
}

fn gate(case: &mut Case<'_>) -> Result<(), Stop> {
    let gate = Gate::from_env(&case.evidence.environment);
    if gate.requirements.is_empty() && gate.broken.is_none() {
        return Ok(());
    }
    let target = case.target;
    let gpus = vec![GateGpu { capability: target.capability, brand: target.traits.brand.clone() }];
    let verdict = gate.judge(&GateHost { cuda: target.cuda, driver: target.driver, gpus });
    let Some(printed) = verdict.refusal_message() else {
        case.applies("G1", "the image's requirements hold");
        return Ok(());
    };
    let (code, variable, why) = match &verdict {
        GateVerdict::Refused { variable, closest, .. } => {
            let near =
                format!("nearest is `{}`, where {} does not hold", closest.alternative, closest.failed);
            (codes::GATE_REFUSES, variable.clone(), near)
        }
        GateVerdict::Malformed(error) => (codes::GATE_MALFORMED, error.variable.clone(), error.to_string()),
        _ => return Ok(()),
    };
    let evidence = seen(variable.clone(), shortened(&case.variable(&variable).unwrap_or_default()));
    if target.traits.start == StartPath::Cdi {
        case.applies("G2", format!("{variable} would refuse, and is not evaluated"));
        let message = format!("{variable} would refuse this host; CDI does not evaluate it ({why})");
        let fix = "start it with CDI everywhere, or set NVIDIA_DISABLE_REQUIRE=1";
        case.find(Severity::Warning, codes::GATE_SKIPPED, message, evidence, fix);
        return Ok(());
    }
    let (rule, refuses, fix) = if code == codes::GATE_MALFORMED {
        let fix = "correct the variable, or start the container with NVIDIA_DISABLE_REQUIRE=1";
        (format!("cannot be read: {why}"), format!("cannot be read ({why})"), fix)
    } else {
        let fix = "update the driver, take an image of an older CUDA, or start it with NVIDIA_DISABLE_REQUIRE=1 where the \
                   program itself fits (`--start cdi` shows whether it does)";
        (format!("refuses: {why}"), format!("refuses {target} ({why})"), fix)
    };
    case.applies("G1", format!("{variable} {rule}"));
    let reason = format!("the container does not start: {variable} {refuses}");
    let error = other_error("nvidia-container-cli: requirement error", printed);
    Err(case.fail(code, error, reason, evidence, fix))
}

fn shortened(text: &str) -> String {
    if text.chars().count() > 160 {
        format!("{} …", text.chars().take(160).collect::<String>())
    } else {
        text.to_owned()
    }
}

fn capabilities(case: &mut Case<'_>) -> Result<(), Stop> {
    const NAME: &str = "NVIDIA_DRIVER_CAPABILITIES";
    let Some(value) = case.variable(NAME) else { return Ok(()) };
    let asked: Vec<&str> = value.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let gives_compute = asked.is_empty() || asked.iter().any(|name| matches!(*name, "compute" | "all"));
    let unknown = asked.iter().find(|name| !CAPABILITIES.contains(name));
    let evidence = seen(NAME, value.clone());
    let fix = "set NVIDIA_DRIVER_CAPABILITIES=compute,utility";
    if case.target.traits.start == StartPath::Cdi {
        case.applies("V2", "CDI injects the whole driver");
        return Ok(());
    }
    if let Some(name) = unknown {
        case.applies("V2", format!("`{name}` is not a capability"));
        let reason = format!("the container does not start: `{name}` is not a driver capability");
        let printed = format!("unsupported capabilities found in '{value}'");
        let error = other_error("nvidia-container-runtime-hook", printed);
        return Err(case.fail(codes::NO_COMPUTE_CAPABILITY, error, reason, evidence, fix));
    }
    if gives_compute {
        case.applies("V2", "compute is requested");
        return Ok(());
    }
    case.applies("V2", format!("`{value}` lacks compute"));
    let reason = format!("{NAME} is `{value}`: the container gets no libcuda");
    Err(case.fail(codes::NO_COMPUTE_CAPABILITY, case.cuda_error(35), reason, evidence, fix))
}
