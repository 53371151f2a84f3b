//! Reads Python environments without running Python.

use std::collections::BTreeMap;

use cudock_facts::version::CudaVersion;
use pep440_rs::Version;

use crate::files::Files;
use crate::host::{Distribution, PackageRequirement, PythonEnvironment, TorchBuildInfo};

/// Relevant distributions, besides `nvidia-*`, `jax-cuda*` and `cupy-*`.
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

/// The environment that `python3` would run in.
pub fn read(files: &dyn Files, environment: &BTreeMap<String, String>) -> Option<PythonEnvironment> {
    let (prefix, found_by) = prefix(files, environment)?;
    let site_packages = site_packages(files, &prefix);
    Some(at(files, prefix, found_by, site_packages))
}

/// The environment with these package directories.
pub fn at(
    files: &dyn Files,
    prefix: String,
    found_by: &str,
    site_packages: Vec<String>,
) -> PythonEnvironment {
    let mut distributions: Vec<Distribution> = Vec::new();
    for directory in &site_packages {
        for name in files.names(directory) {
            if let Some(found) = distribution(files, directory, &name) {
                // Python imports the first one on the path.
                if !distributions.iter().any(|known| known.name == found.name) {
                    distributions.push(found);
                }
            }
        }
    }
    let conda = files.names(&format!("{prefix}/conda-meta"));
    for file in conda {
        if let Some(found) = conda_package(files, &format!("{prefix}/conda-meta/{file}"))
            && !distributions.iter().any(|known| known.name == found.name)
        {
            distributions.push(found);
        }
    }
    let torch = site_packages.iter().find_map(|directory| torch_build(files, directory));
    let wheel_libraries =
        site_packages.iter().flat_map(|directory| wheel_libraries(files, directory)).collect();
    PythonEnvironment {
        prefix,
        found_by: found_by.to_owned(),
        site_packages,
        distributions,
        wheel_libraries,
        torch,
    }
}

/// The prefix, from `VIRTUAL_ENV` or `CONDA_PREFIX`, else from the `python3` in `PATH`.
pub fn prefix(files: &dyn Files, environment: &BTreeMap<String, String>) -> Option<(String, &'static str)> {
    let on_path = paths_of(environment, "PATH");
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        // An environment that is not on the path is not the one `python3` runs in.
        let named = environment.get(variable).map(|path| path.trim_end_matches('/').to_owned());
        if let Some(prefix) = named.filter(|prefix| files.is_dir(prefix)) {
            let first = on_path.iter().position(|path| files.is_program(&format!("{path}/python3")));
            let ours = on_path.iter().position(|path| *path == format!("{prefix}/bin"));
            if on_path.is_empty() || ours.is_some() && ours <= first {
                return Some((prefix, variable));
            }
        }
    }
    let python = program(files, environment, "python3").or_else(|| program(files, environment, "python"))?;
    if let Some(prefix) = pyenv(files, environment, &python) {
        return Some((prefix, "PATH"));
    }
    // A virtual environment has this file next to its links; otherwise the links lead to the installation.
    let own = python.rsplit_once("/bin/")?.0.to_owned();
    if files.exists(&format!("{own}/pyvenv.cfg")) {
        return Some((own, "PATH"));
    }
    let real = files.real(&python)?;
    let prefix = real.rsplit_once("/bin/")?.0;
    Some((if prefix.is_empty() { "/usr".to_owned() } else { prefix.to_owned() }, "PATH"))
}

/// The directories in a variable such as `PATH`.
pub(crate) fn paths_of(environment: &BTreeMap<String, String>, variable: &str) -> Vec<String> {
    let value = environment.get(variable).map_or("", String::as_str);
    value
        .split(':')
        .filter(|path| path.starts_with('/'))
        .map(|path| path.trim_end_matches('/').to_owned())
        .collect()
}

/// Finds a program in `PATH`, then in the usual directories.
pub fn program(files: &dyn Files, environment: &BTreeMap<String, String>, name: &str) -> Option<String> {
    let usual = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let directories = paths_of(environment, "PATH").into_iter().chain(usual.map(str::to_owned));
    directories.map(|directory| format!("{directory}/{name}")).find(|path| files.is_program(path))
}

/// pyenv puts scripts on the path; the version they run is in a file.
fn pyenv(files: &dyn Files, environment: &BTreeMap<String, String>, python: &str) -> Option<String> {
    let shims = python.strip_suffix("/shims/python3")?;
    let base = environment.get("PYENV_ROOT").map_or(shims, String::as_str);
    let version = files.line(&format!("{base}/version"))?;
    let prefix = format!("{base}/versions/{}", version.split(':').next()?);
    files.is_dir(&prefix).then_some(prefix)
}

/// The package directories of a prefix, in Python's order.
pub fn site_packages(files: &dyn Files, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    let libraries_of = |prefix: &str, found: &mut Vec<String>| {
        for lib in ["lib", "lib64", "local/lib"] {
            for name in files.names(&format!("{prefix}/{lib}")) {
                let is_python =
                    name.strip_prefix("python3").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
                for packages in ["site-packages", "dist-packages"] {
                    let path = format!("{prefix}/{lib}/{name}/{packages}");
                    let real = files.real(&path);
                    let new = real.is_some() && !found.iter().any(|known| files.real(known) == real);
                    if is_python && new {
                        found.push(path);
                    }
                }
            }
        }
    };
    libraries_of(prefix, &mut found);
    // A virtual environment may include the packages of its base installation.
    let config = files.text(&format!("{prefix}/pyvenv.cfg")).unwrap_or_default();
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

/// Whether a distribution is relevant for GPUs, by its normalized name.
pub fn is_watched(name: &str) -> bool {
    WATCHED.contains(&name)
        || ["nvidia-", "jax-cuda", "cupy-", "tensorrt"].iter().any(|prefix| name.starts_with(prefix))
}

/// Normalizes a name as package indexes do.
pub fn normalized(name: &str) -> String {
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

/// Reads a distribution from its metadata directory, if the name is relevant.
fn distribution(files: &dyn Files, directory: &str, dist_info: &str) -> Option<Distribution> {
    let stem = dist_info.strip_suffix(".dist-info")?;
    let name = normalized(stem.rsplit_once('-')?.0);
    if !is_watched(&name) {
        return None;
    }
    let path = format!("{directory}/{dist_info}");
    let metadata = files.text(&format!("{path}/METADATA"))?;
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

/// Parses `nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux"` without its marker; none if it belongs to an extra.
pub fn requirement(text: &str) -> Option<PackageRequirement> {
    let (what, marker) = text.split_once(';').unwrap_or((text, ""));
    if marker.contains("extra ==") || marker.contains("extra==") {
        return None;
    }
    let what = what.trim();
    let end = what.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).unwrap_or(what.len());
    let (name, rest) = what.split_at(end);
    let exactly = rest.split_once("==").map(|(_, version)| version.trim_matches([' ', ')', '(']));
    Some(PackageRequirement {
        name: normalized(name),
        exactly: exactly.and_then(|version| version.parse().ok()),
    })
}

/// Reads conda's record of a package.
fn conda_package(files: &dyn Files, file: &str) -> Option<Distribution> {
    let name_of_file = file.rsplit('/').next()?.strip_suffix(".json")?;
    let name = normalized(name_of_file.rsplitn(3, '-').nth(2)?);
    let name = if name == "pytorch" { "torch".to_owned() } else { name };
    if !is_watched(&name) {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(&files.text(file)?).ok()?;
    let version: Version = value.get("version")?.as_str()?.parse().ok()?;
    Some(Distribution { name, version, path: file.to_owned(), requires: Vec::new() })
}

/// Reads the build information of PyTorch.
fn torch_build(files: &dyn Files, directory: &str) -> Option<TorchBuildInfo> {
    let text = files.text(&format!("{directory}/torch/version.py"))?;
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

/// SONAMEs in `nvidia/*/lib`, where NVIDIA's wheels have their libraries.
fn wheel_libraries(files: &dyn Files, directory: &str) -> Vec<String> {
    let nvidia = format!("{directory}/nvidia");
    let components = files.names(&nvidia).into_iter();
    components
        .flat_map(|component| files.names(&format!("{nvidia}/{component}/lib")))
        .filter(|name| name.contains(".so."))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_requirement_keeps_its_version_and_extras_are_ignored() {
        let pinned = requirement("nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == \"Linux\"").unwrap();
        assert_eq!(
            (pinned.name.as_str(), pinned.exactly.unwrap().to_string()),
            ("nvidia-cudnn-cu12", "9.1.0.70".into())
        );
        assert!(requirement("nvidia-cudnn-cu12==9.3; extra == 'and-cuda'").is_none());
        assert!(requirement("nvidia-nccl-cu12<3.0,>=2.25").unwrap().exactly.is_none());
    }

    #[test]
    fn names_are_normalized_like_package_indexes_do() {
        assert_eq!(normalized("NVIDIA_cuda.Runtime"), "nvidia-cuda-runtime");
    }
}
