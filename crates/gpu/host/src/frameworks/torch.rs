//! PyTorch, which has a file with its build information.

use cudock_base::Arch;
use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::lookup::TorchWheel;
use cudock_facts::version::{Capability, CudaVersion, DriverVersion};
use pep440_rs::Version;

use super::{Build, Support, ptx_isa};
use crate::host::{PythonEnvironment, TorchBuildInfo};

pub(super) fn build(facts: &Facts, python: &PythonEnvironment, cpu_arch: Arch) -> Option<Build> {
    let path = python.get("torch").map(|torch| torch.path.clone());
    let Some(info) = python.torch.clone().or_else(|| by_metadata(facts, python)) else {
        let fix = "torch.version.cuda says what it was built for; newer tables can be added with --facts"
            .to_owned();
        let version = python.get("torch")?.version.to_string();
        return Some(Build::new(
            "torch",
            version,
            "unknown build".to_owned(),
            path,
            Support::NotInTables { fix },
        ));
    };
    let new_build =
        |label: String, support| Build::new("torch", info.version.to_string(), label, path.clone(), support);
    if let Some(hip) = &info.hip {
        let fix = "install the CUDA build: pip install torch".to_owned();
        return Some(new_build(format!("ROCm {hip} build"), Support::OtherVendor { fix }));
    }
    let Some(cuda) = info.cuda else {
        let fix = "install a CUDA build: pip install --force-reinstall torch (with the CUDA index of PyTorch where the platform's \
                   default is the CPU build)"
            .to_owned();
        let reason = "cannot use a GPU, torch.cuda.is_available() is False".to_owned();
        return Some(new_build(
            "CPU build".to_owned(),
            Support::Cpu { reason, severity: Severity::Error, fix },
        ));
    };
    let frameworks = facts.frameworks();
    let tag = format!("cu{}{}", cuda.major(), cuda.minor());
    let row = frameworks.torch_build(&info.version, TorchWheel::Tag(&tag));
    // The aarch64 wheels have their own list.
    let sass = if cpu_arch == Arch::Aarch64 {
        let release = frameworks.torch(&info.version).filter(|release| release.aarch64_cuda == Some(cuda));
        release.and_then(|release| release.aarch64_sass.clone())
    } else {
        row.and_then(|row| row.sass.clone())
    };
    Some(Build {
        cuda_major: Some(cuda.major()),
        cuda: Some(cuda),
        sass,
        ptx: row.and_then(|row| row.ptx.clone()),
        ptx_isa: ptx_isa(facts, Some(cuda)),
        ..new_build(format!("CUDA {cuda} build"), Support::Cuda)
    })
}

/// The build without that file: by the local version, or by the fact tables, which list the builds on PyPI.
fn by_metadata(facts: &Facts, python: &PythonEnvironment) -> Option<TorchBuildInfo> {
    let version = python.get("torch")?.version.clone();
    let tag = version.local().iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
    let (cuda, hip) = match tag.as_str() {
        "cpu" => (None, None),
        "" => (Some(facts.frameworks().torch_build(&version, TorchWheel::Pypi)?.cuda), None),
        tag if tag.starts_with("rocm") => (None, Some(tag.trim_start_matches("rocm").to_owned())),
        tag => (Some(CudaVersion::from_tag(tag)?), None),
    };
    Some(TorchBuildInfo { version, cuda, hip })
}

/// Names builds with code for the GPUs that also run on the driver.
pub(super) fn fix_for_no_code(
    facts: &Facts,
    version: &str,
    capabilities: &[Capability],
    driver: Option<DriverVersion>,
) -> String {
    let Ok(parsed) = version.parse::<Version>() else { return "use another torch".to_owned() };
    let public = parsed.clone().without_local();
    let runs = |build: &&cudock_facts::tables::TorchBuild| {
        let starts = driver.is_none_or(|driver| facts.drivers().runs_toolkit(driver, build.cuda));
        !capabilities.is_empty() && starts && build.has_code_for(capabilities)
    };
    let others: Vec<&str> =
        facts.frameworks().torch_builds(&parsed).filter(runs).map(|build| build.tag.as_str()).collect();
    if !others.is_empty() {
        return format!("install the {} build of this torch from PyTorch's index", others.join(" or "));
    }
    match facts
        .frameworks()
        .newest_torch(facts.drivers(), driver, capabilities)
        .filter(|_| !capabilities.is_empty())
    {
        Some((newest, build)) => {
            let tag = &build.tag;
            format!(
                "no build of torch {public} fits this GPU and driver; torch {newest}+{tag} is the newest that does: \
                 pip install torch=={newest} --index-url https://download.pytorch.org/whl/{tag}"
            )
        }
        None => {
            "no build of torch in the tables fits this GPU and driver; update the driver first".to_owned()
        }
    }
}
