//! Checks the companions of PyTorch and the libraries it pins.

use cudock_facts::lookup::without_local;
use pep440_rs::Version;

use crate::checks::{Area, Check, codes};
use crate::host::{Distribution, PythonEnvironment};

pub(super) fn check(python: &PythonEnvironment, checks: &mut Vec<Check>) {
    let Some(info) = &python.torch else { return };
    let uses_cuda = info.cuda.is_some() && info.hip.is_none();
    if let Some(torch) = python.get("torch").filter(|_| uses_cuda) {
        requirements(&missing_requirements(python, torch), "torch", checks);
        companions(python, &info.version, checks);
    }
}

/// torchvision and torchaudio are compiled for one version of torch, which they pin.
fn companions(python: &PythonEnvironment, torch: &Version, checks: &mut Vec<Check>) {
    for companion in ["torchvision", "torchaudio"].iter().filter_map(|name| python.get(name)) {
        let pinned = companion.requires.iter().find(|requirement| requirement.name == "torch");
        let Some(wanted) = pinned.and_then(|requirement| requirement.exactly.as_ref()) else { continue };
        if without_local(wanted) == without_local(torch) {
            continue;
        }
        let message = format!(
            "{} {} was built for torch {wanted}, but {torch} is installed",
            companion.name, companion.version
        );
        let fix = format!(
            "pip install torch=={wanted} {0}=={1}, or the {0} of this torch (`cudock facts torch {2}`)",
            companion.name,
            companion.version,
            without_local(torch)
        );
        checks.push(
            Check::warning(Area::Frameworks, codes::TORCHVISION_DIFFERS, message, fix)
                .with_evidence(&companion.path, format!("requires torch=={wanted}")),
        );
    }
}

/// A required library that is missing or has the wrong version.
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
                Check::error(Area::Frameworks, codes::LIBRARY_NOT_INSTALLED, message, fix)
            }
            Some(installed) => {
                let message = format!(
                    "{framework} was built with {}{wanted}, but {installed} is installed",
                    library.name
                );
                Check::warning(Area::Frameworks, codes::LIBRARY_OF_OTHER_VERSION, message, fix)
            }
        });
    }
}
