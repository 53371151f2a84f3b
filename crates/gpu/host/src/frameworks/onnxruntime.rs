//! ONNX Runtime, which has two packages that overwrite each other.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;

use super::{Build, MissingLibraryEffect, Support, ptx_isa};
use crate::host::PythonEnvironment;

pub(super) fn builds(facts: &Facts, python: &PythonEnvironment) -> Vec<Build> {
    let (cpu, gpu) = (python.get("onnxruntime"), python.get("onnxruntime-gpu"));
    if let Some(cpu) = cpu.filter(|_| gpu.is_none()) {
        // Many packages depend on it for small tasks on the CPU, so this is only a note.
        let fix =
            "pip uninstall onnxruntime; pip install onnxruntime-gpu, if it should use the GPU".to_owned();
        let reason = "has no CUDA provider, sessions run on the CPU".to_owned();
        let support = Support::Cpu { reason, severity: Severity::Note, fix };
        return vec![Build::of(cpu, "CPU build", support)];
    }
    let Some(found) = gpu else { return Vec::new() };
    let Some(row) = facts.frameworks().onnxruntime_gpu(&found.version) else {
        let fix = "assert session.get_providers() in your program; newer tables can be added with --facts"
            .to_owned();
        return vec![Build::of(found, "GPU build", Support::NotInTables { fix })];
    };
    let cuda = row.cuda.map_or_else(|| row.cuda_major.to_string(), |cuda| cuda.to_string());
    vec![Build {
        cuda_major: Some(row.cuda_major),
        cuda: row.cuda,
        sass: Some(row.sass.clone()),
        ptx: Some(row.ptx.clone()),
        ptx_isa: row.ptx_isa.or_else(|| ptx_isa(facts, row.cuda)),
        needs: row.needs.iter().filter(|soname| *soname != "libcuda.so.1").cloned().collect(),
        without: MissingLibraryEffect::UsesCpu {
            fix: format!(
                "pip install 'onnxruntime-gpu[cuda,cudnn]=={}', and call onnxruntime.preload_dlls() first",
                found.version
            ),
            how: "sessions silently run on the CPU".to_owned(),
            loads_first: true,
        },
        ..Build::of(found, format!("CUDA {cuda} build"), Support::Cuda)
    }]
}
