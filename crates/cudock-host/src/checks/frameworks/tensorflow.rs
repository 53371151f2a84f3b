//! TensorFlow, which falls back to the CPU without a word.

use cudock_facts::version::CudaVersion;

use super::judge::{Build, cpu_only, judge, min_driver};
use super::{has_library, tell};
use crate::checks::{Check, FrameworkReport, Situation, Status, codes};
use crate::host::PythonEnvironment;

pub(super) fn check(
    situation: &Situation<'_>,
    python: &PythonEnvironment,
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
) {
    if let Some(cpu) = python.get("tensorflow-cpu").filter(|_| python.get("tensorflow").is_none()) {
        let fix = "pip uninstall tensorflow-cpu; pip install 'tensorflow[and-cuda]'".to_owned();
        let judgement = cpu_only(situation, "cannot use a GPU", codes::CPU_BUILD, Status::Problem, fix);
        tell(checks, reports, ("tensorflow-cpu", cpu.version.to_string(), "CPU build".to_owned()), judgement);
    }
    let Some(found) = python.get("tensorflow") else { return };
    let row = situation.facts.frameworks().tensorflow(&found.version);
    let cuda = row.and_then(|row| row.cuda);
    let label = cuda.map_or_else(|| "build of unknown CUDA".to_owned(), |cuda| format!("CUDA {cuda} build"));
    let identity = ("tensorflow", found.version.to_string(), label.clone());
    // The and-cuda extra leaves no trace but its libraries.
    let wanted = row.and_then(|row| Some((row.cuda?.major(), row.cudnn_major?))).map(|(cuda, cudnn)| {
        let cudart = if cuda == 11 { "libcudart.so.11.0".to_owned() } else { format!("libcudart.so.{cuda}") };
        [cudart, format!("libcudnn.so.{cudnn}")]
    });
    let absent: Vec<&String> =
        wanted.iter().flatten().filter(|soname| !has_library(situation, python, soname)).collect();
    if let Some(first) = absent.first() {
        let fix = format!("pip install 'tensorflow[and-cuda]=={}'", found.version);
        let reason = format!("{first} is not installed: it starts and uses the CPU without a word");
        let judgement = cpu_only(situation, &reason, codes::LIBRARY_NOT_INSTALLED, Status::Problem, fix);
        tell(checks, reports, identity, judgement);
        return;
    }
    let build = Build {
        name: "tensorflow",
        version: found.version.to_string(),
        label,
        cuda_major: cuda.map_or(12, CudaVersion::major),
        cuda,
        min_driver: cuda.and_then(|cuda| min_driver(situation, cuda.major())),
        sass: row.and_then(|row| row.sass.as_deref()),
        ptx: row.and_then(|row| row.ptx.as_deref()),
        fix_for_old_driver: "update the driver".to_owned(),
        fix_for_no_code: "take a newer TensorFlow, or NVIDIA's container of it".to_owned(),
    };
    tell(checks, reports, identity, judge(situation, &build));
}
