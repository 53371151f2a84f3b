//! Whether the frameworks of the active environment will find the GPU, without importing them.

mod judge;
mod torch;

use self::judge::{Judgement, cpu_only, judge};
use super::{Area, Check, FrameworkReport, Situation, Status, Verdict, codes};
use crate::frameworks::{Alarm, Build, Support, Without, builds};
use crate::host::PythonEnvironment;

pub(super) fn check(situation: &Situation<'_>, checks: &mut Vec<Check>) -> Vec<FrameworkReport> {
    let Some(python) = &situation.host.python else { return Vec::new() };
    let mut reports = Vec::new();
    for build in builds(situation.facts, python, &situation.host.surroundings.cpu_arch) {
        let judgement = judgement(situation, python, &build);
        tell(checks, &mut reports, (&build.name, build.version.clone(), build.label.clone()), judgement);
    }
    torch::check(python, checks);
    two_onnxruntimes(python, checks);
    library_path(situation, python, checks);
    reports
}

fn judgement(situation: &Situation<'_>, python: &PythonEnvironment, build: &Build) -> Judgement {
    match &build.support {
        Support::Cuda => {}
        Support::Cpu { reason, alarm, fix } => {
            let status = match alarm {
                Alarm::Problem => Status::Problem,
                Alarm::Warning => Status::Warning,
                Alarm::Note => Status::Note,
            };
            return cpu_only(situation, reason, codes::CPU_BUILD, status, fix.clone());
        }
        Support::OtherVendor { fix } => {
            let reason = "built for AMD's GPUs";
            return cpu_only(situation, reason, codes::BUILT_FOR_ROCM, Status::Problem, fix.clone());
        }
        Support::NotInTables { fix } => {
            return Judgement {
                verdict: Verdict::Unknown,
                error: None,
                reason: "this release is not in the tables".to_owned(),
                finding: Some((Status::Note, codes::BUILD_UNKNOWN, fix.clone())),
            };
        }
    }
    let Without::UsesCpu { fix, how, loads_first } = &build.without else { return judge(situation, build) };
    if let Some(first) = build.needs.iter().find(|soname| !has_library(situation, python, soname)) {
        let reason = format!("{first} is not installed: {how}");
        return cpu_only(situation, &reason, codes::LIBRARY_NOT_INSTALLED, Status::Problem, fix.clone());
    }
    let mut judgement = judge(situation, build);
    // Libraries in wheels are not on the loader's path: the program has to load them first.
    let in_wheels = build.needs.iter().any(|soname| !situation.host.cuda_libraries.contains_key(soname));
    if judgement.verdict == Verdict::Works && *loads_first && in_wheels {
        judgement.reason.push_str(", once onnxruntime.preload_dlls() or import torch has loaded CUDA");
    }
    judgement
}

fn two_onnxruntimes(python: &PythonEnvironment, checks: &mut Vec<Check>) {
    let (Some(cpu), Some(gpu)) = (python.get("onnxruntime"), python.get("onnxruntime-gpu")) else { return };
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

/// Adds a report and its check.
fn tell(
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
    (name, version, build): (&str, String, String),
    judgement: Judgement,
) {
    let Judgement { verdict, error, reason, finding } = judgement;
    let message = format!("{name} {version}, {build}: {reason}");
    checks.push(match finding {
        None => Check {
            status: if verdict == Verdict::Works { Status::Ok } else { Status::Note },
            ..Check::ok(Area::Frameworks, message)
        },
        Some((status, code, fix)) => Check::bad(Area::Frameworks, status, code, message, fix),
    });
    reports.push(FrameworkReport { name: name.to_owned(), version, build, verdict, error, reason });
}

/// Whether a library can be found by the loader or in NVIDIA's wheels.
fn has_library(situation: &Situation<'_>, python: &PythonEnvironment, soname: &str) -> bool {
    situation.host.cuda_libraries.contains_key(soname)
        || python.wheel_libraries.iter().any(|name| name == soname)
}

/// A CUDA in `LD_LIBRARY_PATH` replaces libraries that wheels bring, because theirs are found later.
fn library_path(situation: &Situation<'_>, python: &PythonEnvironment, checks: &mut Vec<Check>) {
    let path = situation.host.environment.get("LD_LIBRARY_PATH").map_or("", String::as_str);
    let shadowing = situation.host.cuda_libraries.iter().find(|(soname, found)| {
        let folder = found.rsplit_once('/').map_or("", |(folder, _)| folder);
        let second_level = soname.starts_with("libnvJitLink") || soname.starts_with("libcudnn_");
        second_level
            && path.split(':').any(|entry| entry.trim_end_matches('/') == folder)
            && python.wheel_libraries.iter().any(|name| name == *soname)
    });
    if let Some((soname, found)) = shadowing {
        let message = format!(
            "LD_LIBRARY_PATH puts {found} before the {soname} of the wheels: versions mix, symbols go missing"
        );
        let fix = "unset LD_LIBRARY_PATH for programs that bring their CUDA as wheels";
        checks.push(
            Check::bad(Area::Frameworks, Status::Warning, codes::LIBRARY_PATH_SHADOWS, message, fix)
                .seen(found, "found first"),
        );
    }
}
