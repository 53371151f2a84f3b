//! Whether the frameworks of the active environment will find the GPU, without importing them.

mod jax;
mod judge;
mod onnxruntime;
mod tensorflow;
mod torch;

use self::judge::Judgement;
use super::{Area, Check, FrameworkReport, Situation, Status, Verdict, codes};
use crate::host::PythonEnvironment;

pub(super) fn check(situation: &Situation<'_>, checks: &mut Vec<Check>) -> Vec<FrameworkReport> {
    let Some(python) = &situation.host.python else { return Vec::new() };
    let mut reports = Vec::new();
    torch::check(situation, python, checks, &mut reports);
    tensorflow::check(situation, python, checks, &mut reports);
    onnxruntime::check(situation, python, checks, &mut reports);
    jax::check(situation, python, checks, &mut reports);
    library_path(situation, python, checks);
    reports
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
