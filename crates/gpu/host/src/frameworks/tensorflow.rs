//! TensorFlow, which silently falls back to the CPU.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;

use super::{Build, MissingLibraryEffect, Support, ptx_isa};
use crate::host::PythonEnvironment;

pub(super) fn builds(facts: &Facts, python: &PythonEnvironment) -> Vec<Build> {
    let mut builds = Vec::new();
    if let Some(cpu) = python.get("tensorflow-cpu").filter(|_| python.get("tensorflow").is_none()) {
        let fix = "pip uninstall tensorflow-cpu; pip install 'tensorflow[and-cuda]'".to_owned();
        let support = Support::Cpu { reason: "cannot use a GPU".to_owned(), severity: Severity::Error, fix };
        builds.push(Build::of(cpu, "CPU build", support));
    }
    let Some(found) = python.get("tensorflow") else { return builds };
    let row = facts.frameworks().tensorflow(&found.version);
    let cuda = row.and_then(|row| row.cuda);
    let label = cuda.map_or_else(|| "build of unknown CUDA".to_owned(), |cuda| format!("CUDA {cuda} build"));
    // The and-cuda extra leaves no trace except its libraries.
    let needs = row.and_then(|row| Some((row.cuda?.major(), row.cudnn_major?))).map(|(cuda, cudnn)| {
        let cudart = if cuda == 11 { "libcudart.so.11.0".to_owned() } else { format!("libcudart.so.{cuda}") };
        vec![cudart, format!("libcudnn.so.{cudnn}")]
    });
    builds.push(Build {
        cuda_major: cuda.map(cudock_facts::version::CudaVersion::major),
        cuda,
        sass: row.and_then(|row| row.sass.clone()),
        ptx: row.and_then(|row| row.ptx.clone()),
        ptx_isa: row.and_then(|row| row.ptx_isa).or_else(|| ptx_isa(facts, cuda)),
        needs: needs.unwrap_or_default(),
        without: MissingLibraryEffect::UsesCpu {
            fix: format!("pip install 'tensorflow[and-cuda]=={}'", found.version),
            how: "it starts and silently uses the CPU".to_owned(),
            loads_first: false,
        },
        ..Build::of(found, label, Support::Cuda)
    });
    builds
}
