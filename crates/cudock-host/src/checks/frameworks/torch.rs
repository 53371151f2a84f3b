//! PyTorch, which says in a file of its own what it was built for.

use cudock_facts::lookup::{TorchWheel, without_local};
use pep440_rs::Version;

use super::judge::{Build, cpu_only, judge, min_driver};
use super::tell;
use crate::checks::{Area, Check, FrameworkReport, Situation, Status, codes};
use crate::host::{Distribution, PythonEnvironment};

pub(super) fn check(
    situation: &Situation<'_>,
    python: &PythonEnvironment,
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
) {
    let Some(info) = &python.torch else { return };
    let frameworks = situation.facts.frameworks();
    let version = info.version.to_string();
    let identity = |build: &str| ("torch", version.clone(), build.to_owned());
    if let Some(hip) = &info.hip {
        let fix = "install the CUDA build: pip install torch".to_owned();
        let judgement =
            cpu_only(situation, "built for AMD's GPUs", codes::BUILT_FOR_ROCM, Status::Problem, fix);
        tell(checks, reports, identity(&format!("ROCm {hip} build")), judgement);
        return;
    }
    let Some(cuda) = info.cuda else {
        let fix = "install a CUDA build: pip install --force-reinstall torch (with the CUDA index of PyTorch where the platform's \
                   default is the CPU build)"
            .to_owned();
        let judgement = cpu_only(
            situation,
            "cannot use a GPU, torch.cuda.is_available() is False",
            codes::CPU_BUILD,
            Status::Problem,
            fix,
        );
        tell(checks, reports, identity("CPU build"), judgement);
        return;
    };
    let tag = format!("cu{}{}", cuda.major(), cuda.minor());
    let row = frameworks.torch_build(&info.version, TorchWheel::Tag(&tag));
    let release = frameworks.torch(&info.version);
    // The arm wheels have a list of their own.
    let arm = situation.host.surroundings.cpu_arch == "aarch64";
    let sass = if arm {
        release
            .filter(|release| release.aarch64_cuda == Some(cuda))
            .and_then(|release| release.aarch64_sass.as_deref())
    } else {
        row.and_then(|row| row.sass.as_deref())
    };
    let other_builds: Vec<&str> = frameworks
        .torch_builds(&info.version)
        .filter(|build| {
            let code = build.sass.as_deref().unwrap_or_default();
            situation.capabilities().iter().all(|card| code.iter().any(|code| code.runs_on(*card)))
        })
        .map(|build| build.tag.as_str())
        .collect();
    let fix_for_no_code = if other_builds.is_empty() {
        format!(
            "no build of torch {} has code for this GPU; take a newer torch (`cudock facts torch`)",
            info.version
        )
    } else {
        format!("install the {} build of this torch from PyTorch's index", other_builds.join(" or "))
    };
    let fix_for_old_driver = format!(
        "update the driver to {} or newer, or install a torch built for an older CUDA (`cudock facts torch {}`)",
        min_driver(situation, cuda.major())
            .map_or_else(|| "a newer branch".to_owned(), |driver| driver.to_string()),
        without_local(&info.version),
    );
    let build = Build {
        name: "torch",
        version: version.clone(),
        label: format!("CUDA {cuda} build"),
        cuda_major: cuda.major(),
        cuda: Some(cuda),
        min_driver: min_driver(situation, cuda.major()),
        sass,
        ptx: row.and_then(|row| row.ptx.as_deref()),
        fix_for_old_driver,
        fix_for_no_code,
    };
    let missing = python.get("torch").map(|torch| missing_requirements(python, torch)).unwrap_or_default();
    let judgement = judge(situation, &build);
    tell(checks, reports, (build.name, build.version, build.label), judgement);
    requirements(&missing, "torch", checks);

    companions(python, &info.version, checks);
}

/// torchvision and torchaudio are compiled against one torch, and say which.
fn companions(python: &PythonEnvironment, torch: &Version, checks: &mut Vec<Check>) {
    for companion in ["torchvision", "torchaudio"].iter().filter_map(|name| python.get(name)) {
        let pinned = companion.requires.iter().find(|requirement| requirement.name == "torch");
        let Some(wanted) = pinned.and_then(|requirement| requirement.exactly.as_ref()) else { continue };
        if without_local(wanted) == without_local(torch) {
            continue;
        }
        let message = format!(
            "{} {} was built for torch {wanted}, and {torch} is installed",
            companion.name, companion.version
        );
        let fix = format!(
            "pip install torch=={wanted} {0}=={1}, or the {0} of this torch (`cudock facts torch {2}`)",
            companion.name,
            companion.version,
            without_local(torch)
        );
        checks.push(
            Check::bad(Area::Frameworks, Status::Warning, codes::TORCHVISION_DIFFERS, message, fix)
                .seen(&companion.path, format!("requires torch=={wanted}")),
        );
    }
}

/// A library that is required and absent, or pinned and of another version.
struct Unmet {
    name: String,
    wanted: Option<Version>,
    installed: Option<Version>,
}

fn missing_requirements(python: &PythonEnvironment, distribution: &Distribution) -> Vec<Unmet> {
    let required = distribution.requires.iter().filter(|requirement| requirement.name.starts_with("nvidia-"));
    required
        .filter_map(|requirement| {
            let installed = python.get(&requirement.name).map(|found| found.version.clone());
            let met = match (&installed, &requirement.exactly) {
                (None, _) => false,
                (Some(installed), Some(wanted)) => installed == wanted,
                (Some(_), None) => true,
            };
            let wanted = requirement.exactly.clone();
            (!met).then(|| Unmet { name: requirement.name.clone(), wanted, installed })
        })
        .collect()
}

fn requirements(unmet: &[Unmet], framework: &str, checks: &mut Vec<Check>) {
    for library in unmet {
        let wanted = library.wanted.as_ref().map_or_else(String::new, |version| format!("=={version}"));
        let fix = format!("pip install {}{wanted}", library.name);
        checks.push(match &library.installed {
            None => {
                let message = format!(
                    "{framework} needs {}{wanted}, which is not installed: import fails",
                    library.name
                );
                Check::bad(Area::Frameworks, Status::Problem, codes::LIBRARY_NOT_INSTALLED, message, fix)
            }
            Some(installed) => {
                let message = format!(
                    "{framework} was built with {}{wanted}, and {installed} is installed",
                    library.name
                );
                Check::bad(Area::Frameworks, Status::Warning, codes::LIBRARY_OF_OTHER_VERSION, message, fix)
            }
        });
    }
}
