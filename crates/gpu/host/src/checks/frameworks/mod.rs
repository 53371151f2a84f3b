//! Whether the installed frameworks can use the GPU, without importing them.

mod judge;
mod torch;

use cudock_base::text::path::parent;
use cudock_facts::finding::Severity;

use self::judge::{Judgment, cpu_only, judge};
use super::{Area, Check, CheckContext, FrameworkReport, Verdict, codes};
use crate::frameworks::{Build, MissingLibraryEffect, Support, builds};
use crate::host::PythonEnvironment;

pub(super) fn check(context: &CheckContext<'_>, checks: &mut Vec<Check>) -> Vec<FrameworkReport> {
    let Some(python) = &context.host.python else { return Vec::new() };
    let mut reports = Vec::new();
    for build in builds(context.facts, python, context.host.system.cpu_arch) {
        let judgment = judgment(context, python, &build);
        push_report(checks, &mut reports, build, judgment);
    }
    torch::check(python, checks);
    two_onnxruntimes(python, checks);
    library_path(context, python, checks);
    reports
}

fn judgment(context: &CheckContext<'_>, python: &PythonEnvironment, build: &Build) -> Judgment {
    match &build.support {
        Support::Cuda => {}
        Support::Cpu { reason, severity, fix } => {
            return cpu_only(context, reason, codes::CPU_BUILD, *severity, fix.clone());
        }
        Support::OtherVendor { fix } => {
            let reason = "built for AMD's GPUs";
            return cpu_only(context, reason, codes::BUILT_FOR_ROCM, Severity::Error, fix.clone());
        }
        Support::NotInTables { fix } => {
            let finding = Some((Severity::Note, codes::BUILD_UNKNOWN, fix.clone()));
            return Judgment::new(Verdict::Unknown, None, "this release is not in the tables", finding);
        }
    }
    let MissingLibraryEffect::UsesCpu { fix, how, loads_first } = &build.without else {
        return judge(context, build);
    };
    if let Some(first) = build.needs.iter().find(|soname| !has_library(context, python, soname)) {
        let reason = format!("{first} is not installed: {how}");
        return cpu_only(context, &reason, codes::LIBRARY_NOT_INSTALLED, Severity::Error, fix.clone());
    }
    let mut judgment = judge(context, build);
    // Libraries in wheels are not on the loader's path: the program must load them first.
    let in_wheels = build.needs.iter().any(|soname| !context.host.cuda_libraries.contains_key(soname));
    if judgment.verdict == Verdict::Works && *loads_first && in_wheels {
        judgment.reason.push_str(", once onnxruntime.preload_dlls() or import torch has loaded CUDA");
    }
    judgment
}

fn two_onnxruntimes(python: &PythonEnvironment, checks: &mut Vec<Check>) {
    let (Some(cpu), Some(gpu)) = (python.get("onnxruntime"), python.get("onnxruntime-gpu")) else { return };
    let message = format!(
        "onnxruntime {} and onnxruntime-gpu {} install to the same directory: the last one installed wins",
        cpu.version, gpu.version
    );
    let fix = "pip uninstall onnxruntime onnxruntime-gpu, then pip install onnxruntime-gpu";
    checks.push(
        Check::warning(Area::Frameworks, codes::PACKAGES_COLLIDE, message, fix)
            .with_evidence(&cpu.path, "installed")
            .with_evidence(&gpu.path, "installed"),
    );
}

fn push_report(
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
    build: Build,
    judgment: Judgment,
) {
    let Judgment { verdict, error, reason, finding } = judgment;
    let Build { name, version, label, .. } = build;
    let message = format!("{name} {version}, {label}: {reason}");
    checks.push(match finding {
        None => Check {
            severity: (verdict != Verdict::Works).then_some(Severity::Note),
            ..Check::ok(Area::Frameworks, message)
        },
        Some((severity, code, fix)) => Check::new(Area::Frameworks, severity, code, message, fix),
    });
    reports.push(FrameworkReport { name, version, build: label, verdict, error, reason });
}

/// Whether the loader or NVIDIA's wheels have a library.
fn has_library(context: &CheckContext<'_>, python: &PythonEnvironment, soname: &str) -> bool {
    context.host.cuda_libraries.contains_key(soname)
        || python.wheel_libraries.iter().any(|name| name == soname)
}

/// A CUDA in `LD_LIBRARY_PATH` replaces libraries of wheels, which are searched later.
fn library_path(context: &CheckContext<'_>, python: &PythonEnvironment, checks: &mut Vec<Check>) {
    let path = context.host.environment.get("LD_LIBRARY_PATH").map_or("", String::as_str);
    let shadowing = context.host.cuda_libraries.iter().find(|(soname, found)| {
        let directory = parent(found);
        let second_level = soname.starts_with("libnvJitLink") || soname.starts_with("libcudnn_");
        second_level
            && path.split(':').any(|entry| entry.trim_end_matches('/') == directory)
            && python.wheel_libraries.iter().any(|name| name == *soname)
    });
    if let Some((soname, found)) = shadowing {
        let message = format!(
            "LD_LIBRARY_PATH puts {found} before the {soname} of the wheels: versions mix, symbols go missing"
        );
        let fix = "unset LD_LIBRARY_PATH for programs that get CUDA from wheels";
        checks.push(
            Check::warning(Area::Frameworks, codes::LIBRARY_PATH_SHADOWS, message, fix)
                .with_evidence(found, "found first"),
        );
    }
}
