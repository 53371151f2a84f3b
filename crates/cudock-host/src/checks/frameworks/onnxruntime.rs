//! ONNX Runtime, which comes in two packages that overwrite each other.

use super::judge::{Build, Judgement, cpu_only, judge, min_driver};
use super::{has_library, tell};
use crate::checks::{Area, Check, FrameworkReport, Situation, Status, Verdict, codes};
use crate::host::PythonEnvironment;

pub(super) fn check(
    situation: &Situation<'_>,
    python: &PythonEnvironment,
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
) {
    let (cpu, gpu) = (python.get("onnxruntime"), python.get("onnxruntime-gpu"));
    if let (Some(cpu), Some(gpu)) = (cpu, gpu) {
        let message = format!(
            "onnxruntime {} and onnxruntime-gpu {} write to the same folder: the one installed last wins",
            cpu.version, gpu.version
        );
        let fix = "pip uninstall onnxruntime onnxruntime-gpu, then pip install onnxruntime-gpu";
        checks.push(
            Check::bad(Area::Frameworks, Status::Warning, codes::PACKAGES_COLLIDE, message, fix)
                .seen(&cpu.path, "installed")
                .seen(&gpu.path, "installed"),
        );
    }
    if let Some(cpu) = cpu.filter(|_| gpu.is_none()) {
        // Many packages pull it in for small work on the CPU: worth a word, no alarm.
        let fix = "pip uninstall onnxruntime; pip install onnxruntime-gpu, if it is meant to use the GPU"
            .to_owned();
        let judgement = cpu_only(
            situation,
            "has no CUDA provider, sessions run on the CPU",
            codes::CPU_BUILD,
            Status::Note,
            fix,
        );
        tell(checks, reports, ("onnxruntime", cpu.version.to_string(), "CPU build".to_owned()), judgement);
    }
    let Some(found) = gpu else { return };
    let Some(row) = situation.facts.frameworks().onnxruntime_gpu(&found.version) else {
        let fix =
            "assert session.get_providers() in your program; newer tables can be laid over with --facts"
                .to_owned();
        let judgement = Judgement {
            verdict: Verdict::Unknown,
            error: None,
            reason: "this release is not in the tables".to_owned(),
            finding: Some((Status::Note, codes::BUILD_UNKNOWN, fix)),
        };
        tell(
            checks,
            reports,
            ("onnxruntime-gpu", found.version.to_string(), "GPU build".to_owned()),
            judgement,
        );
        return;
    };
    let label = format!(
        "CUDA {} build",
        row.cuda.map_or_else(|| row.cuda_major.to_string(), |cuda| cuda.to_string())
    );
    let identity = ("onnxruntime-gpu", found.version.to_string(), label.clone());
    let needed = row.needs.iter().filter(|soname| *soname != "libcuda.so.1");
    let absent: Vec<&str> =
        needed.clone().filter(|soname| !has_library(situation, python, soname)).map(String::as_str).collect();
    if let Some(first) = absent.first() {
        let fix = format!(
            "pip install 'onnxruntime-gpu[cuda,cudnn]=={}', and call onnxruntime.preload_dlls() first",
            found.version
        );
        let reason = format!("{first} is not installed: sessions silently run on the CPU");
        let judgement = cpu_only(situation, &reason, codes::LIBRARY_NOT_INSTALLED, Status::Problem, fix);
        tell(checks, reports, identity, judgement);
        return;
    }
    let build = Build {
        name: "onnxruntime-gpu",
        version: found.version.to_string(),
        label,
        cuda_major: row.cuda_major,
        cuda: row.cuda,
        min_driver: min_driver(situation, row.cuda_major),
        sass: Some(&row.sass),
        ptx: Some(&row.ptx),
        fix_for_old_driver:
            "update the driver, or take a release for an older CUDA (`cudock facts onnxruntime`)".to_owned(),
        fix_for_no_code: "take a release with code for this GPU (`cudock facts onnxruntime`)".to_owned(),
    };
    let mut judgement = judge(situation, &build);
    // Libraries in wheels are not on the loader's path: the program has to load them first.
    let in_wheels = needed.clone().any(|soname| !situation.host.cuda_libraries.contains_key(soname));
    if judgement.verdict == Verdict::Works && in_wheels {
        judgement.reason.push_str(", once onnxruntime.preload_dlls() or import torch has loaded CUDA");
    }
    tell(checks, reports, identity, judgement);
}
