use std::collections::BTreeMap;

use cudock_facts::version::CudaVersion;
use pep440_rs::Version;

use super::{paths_of, program};
use crate::host::{Distribution, PythonEnvironment, Requirement, TorchBuildInfo};
use crate::root::Root;

/// Distributions that are looked at closely, besides `nvidia-*`, `jax-cuda*` and `cupy-*`.
const WATCHED: [&str; 14] = [
    "jax",
    "jaxlib",
    "onnxruntime",
    "onnxruntime-gpu",
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorrt",
    "torch",
    "torchaudio",
    "torchvision",
    "triton",
    "pytorch-triton",
    "vllm",
];

/// The environment that `python3` would run in, as the shell that started us has it.
pub(super) fn read(root: &Root, environment: &BTreeMap<String, String>) -> Option<PythonEnvironment> {
    let (prefix, found_by) = prefix(root, environment)?;
    let site_packages = site_packages(root, &prefix);
    let mut distributions: Vec<Distribution> = Vec::new();
    for directory in &site_packages {
        for name in root.names(directory) {
            if let Some(found) = distribution(root, directory, &name) {
                // The first on the path is the one Python imports.
                if !distributions.iter().any(|known| known.name == found.name) {
                    distributions.push(found);
                }
            }
        }
    }
    let conda = root.names(&format!("{prefix}/conda-meta"));
    for file in conda {
        if let Some(found) = conda_package(root, &format!("{prefix}/conda-meta/{file}"))
            && !distributions.iter().any(|known| known.name == found.name)
        {
            distributions.push(found);
        }
    }
    let torch = site_packages.iter().find_map(|directory| torch_build(root, directory));
    let wheel_libraries =
        site_packages.iter().flat_map(|directory| wheel_libraries(root, directory)).collect();
    Some(PythonEnvironment {
        prefix,
        found_by: found_by.to_owned(),
        site_packages,
        distributions,
        wheel_libraries,
        torch,
    })
}

/// `VIRTUAL_ENV` and `CONDA_PREFIX` say it outright; otherwise the `python3` that `PATH` leads to says it.
fn prefix(root: &Root, environment: &BTreeMap<String, String>) -> Option<(String, &'static str)> {
    let on_path = paths_of(environment, "PATH");
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        // An environment that is named but not on the path is not the one `python3` runs in.
        let named = environment.get(variable).map(|path| path.trim_end_matches('/').to_owned());
        if let Some(prefix) = named.filter(|prefix| root.is_dir(prefix)) {
            let first = on_path.iter().position(|path| root.is_program(&format!("{path}/python3")));
            let ours = on_path.iter().position(|path| *path == format!("{prefix}/bin"));
            if on_path.is_empty() || ours.is_some() && ours <= first {
                return Some((prefix, variable));
            }
        }
    }
    let python = program(root, environment, "python3").or_else(|| program(root, environment, "python"))?;
    if let Some(prefix) = pyenv(root, environment, &python) {
        return Some((prefix, "PATH"));
    }
    // A virtual environment's own folder has the file; otherwise the links lead to the installation.
    let own = python.rsplit_once("/bin/")?.0.to_owned();
    if root.exists(&format!("{own}/pyvenv.cfg")) {
        return Some((own, "PATH"));
    }
    let real = root.real(&python)?.to_string_lossy().into_owned();
    let prefix = real.rsplit_once("/bin/")?.0;
    Some((if prefix.is_empty() { "/usr".to_owned() } else { prefix.to_owned() }, "PATH"))
}

/// pyenv puts scripts on the path; the version they run is in a file.
fn pyenv(root: &Root, environment: &BTreeMap<String, String>, python: &str) -> Option<String> {
    let shims = python.strip_suffix("/shims/python3")?;
    let base = environment.get("PYENV_ROOT").map_or(shims, String::as_str);
    let version = root.line(&format!("{base}/version"))?;
    let prefix = format!("{base}/versions/{}", version.split(':').next()?);
    root.is_dir(&prefix).then_some(prefix)
}

fn site_packages(root: &Root, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    let libraries_of = |prefix: &str, found: &mut Vec<String>| {
        for lib in ["lib", "lib64", "local/lib"] {
            for name in root.names(&format!("{prefix}/{lib}")) {
                let is_python =
                    name.strip_prefix("python3").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
                for packages in ["site-packages", "dist-packages"] {
                    let path = format!("{prefix}/{lib}/{name}/{packages}");
                    let real = root.real(&path);
                    let new = real.is_some() && !found.iter().any(|known| root.real(known) == real);
                    if is_python && new {
                        found.push(path);
                    }
                }
            }
        }
    };
    libraries_of(prefix, &mut found);
    // A virtual environment may look into the installation it was made from.
    let config = root.text(&format!("{prefix}/pyvenv.cfg")).unwrap_or_default();
    let setting = |name: &str| {
        config
            .lines()
            .filter_map(|line| line.split_once('='))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
    };
    if setting("include-system-site-packages") == Some("true")
        && let Some(base) = setting("home").and_then(|home| home.strip_suffix("/bin"))
    {
        libraries_of(base, &mut found);
        libraries_of(&format!("{base}/local"), &mut found);
    } else if prefix == "/usr" {
        libraries_of("/usr/local", &mut found);
    }
    found
}

fn is_watched(name: &str) -> bool {
    WATCHED.contains(&name)
        || ["nvidia-", "jax-cuda", "cupy-", "tensorrt"].iter().any(|prefix| name.starts_with(prefix))
}

/// A name as package indexes compare them.
fn normalised(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            _ => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// A distribution from its metadata folder; the name says whether it is worth opening.
fn distribution(root: &Root, directory: &str, folder: &str) -> Option<Distribution> {
    let stem = folder.strip_suffix(".dist-info")?;
    let name = normalised(stem.rsplit_once('-')?.0);
    if !is_watched(&name) {
        return None;
    }
    let path = format!("{directory}/{folder}");
    let metadata = root.text(&format!("{path}/METADATA"))?;
    let headers: Vec<(&str, &str)> = metadata
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(": "))
        .collect();
    let version = headers.iter().find(|(key, _)| *key == "Version")?.1.trim().parse().ok()?;
    let requires =
        headers.iter().filter(|(key, _)| *key == "Requires-Dist").filter_map(|(_, text)| requirement(text));
    Some(Distribution { name, version, path, requires: requires.collect() })
}

/// `nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux"` without its marker; none if an extra must ask for it.
fn requirement(text: &str) -> Option<Requirement> {
    let (what, marker) = text.split_once(';').unwrap_or((text, ""));
    if marker.contains("extra ==") || marker.contains("extra==") {
        return None;
    }
    let what = what.trim();
    let end = what.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).unwrap_or(what.len());
    let (name, rest) = what.split_at(end);
    let exactly = rest.split_once("==").map(|(_, version)| version.trim_matches([' ', ')', '(']));
    Some(Requirement { name: normalised(name), exactly: exactly.and_then(|version| version.parse().ok()) })
}

/// conda's record of a package. PyTorch's build string says what its version does not.
fn conda_package(root: &Root, file: &str) -> Option<Distribution> {
    let name_of_file = file.rsplit('/').next()?.strip_suffix(".json")?;
    let name = normalised(name_of_file.rsplitn(3, '-').nth(2)?);
    let name = if name == "pytorch" { "torch".to_owned() } else { name };
    if !is_watched(&name) {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(&root.text(file)?).ok()?;
    let version: Version = value.get("version")?.as_str()?.parse().ok()?;
    Some(Distribution { name, version, path: file.to_owned(), requires: Vec::new() })
}

/// What PyTorch says of its own build, read and not run.
fn torch_build(root: &Root, directory: &str) -> Option<TorchBuildInfo> {
    let text = root.text(&format!("{directory}/torch/version.py"))?;
    // `cuda: Optional[str] = '13.0'` today, `cuda = '11.7'` in older releases.
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (left, right) = line.split_once('=')?;
            let variable = left.split(':').next()?.trim();
            (variable == name).then(|| right.trim().trim_matches(['\'', '"']).to_owned())
        })
    };
    let known = |name: &str| value(name).filter(|value| value != "None");
    Some(TorchBuildInfo {
        version: value("__version__")?.parse().ok()?,
        cuda: known("cuda").and_then(|cuda| cuda.parse::<CudaVersion>().ok()),
        hip: known("hip"),
    })
}

/// SONAMEs in `nvidia/*/lib`, where NVIDIA's wheels put their libraries.
fn wheel_libraries(root: &Root, directory: &str) -> Vec<String> {
    let nvidia = format!("{directory}/nvidia");
    let components = root.names(&nvidia).into_iter();
    components
        .flat_map(|component| root.names(&format!("{nvidia}/{component}/lib")))
        .filter(|name| name.contains(".so."))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_requirement_keeps_its_version_and_an_extra_is_left_out() {
        let pinned = requirement("nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == \"Linux\"").unwrap();
        assert_eq!(
            (pinned.name.as_str(), pinned.exactly.unwrap().to_string()),
            ("nvidia-cudnn-cu12", "9.1.0.70".into())
        );
        assert!(requirement("nvidia-cudnn-cu12==9.3; extra == 'and-cuda'").is_none());
        assert!(requirement("nvidia-nccl-cu12<3.0,>=2.25").unwrap().exactly.is_none());
    }

    #[test]
    fn names_compare_as_package_indexes_compare_them() {
        assert_eq!(normalised("NVIDIA_cuda.Runtime"), "nvidia-cuda-runtime");
    }
}
