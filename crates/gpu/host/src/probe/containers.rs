use std::collections::{BTreeMap, BTreeSet};

use cudock_facts::version::DriverVersion;

use crate::host::{CdiSpec, ContainerEngine, Containers};
use crate::python::program;
use crate::{Files, Root};

const TOOLKIT_PROGRAMS: [&str; 5] = [
    "nvidia-container-runtime",
    "nvidia-container-runtime-hook",
    "nvidia-container-cli",
    "nvidia-ctk",
    "nvidia-cdi-hook",
];

pub(super) fn read(root: &Root, environment: &BTreeMap<String, String>) -> Containers {
    let toolkit = TOOLKIT_PROGRAMS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), program(root, environment, name)?)))
        .collect();
    let engines = [docker(root, environment), containerd(root, environment), podman(root, environment)];
    Containers {
        toolkit,
        toolkit_version: package_version(root, "nvidia-container-toolkit"),
        engines: engines.into_iter().flatten().collect(),
        cdi: cdi(root),
        systemd: root.is_dir("/run/systemd/system"),
        cgroup: cgroup(root),
        dev_char_links: dev_char_links(root),
    }
}

/// A package's version in Debian's package database; other databases can only be read with their own tools.
fn package_version(root: &Root, package: &str) -> Option<String> {
    let status = root.text("/var/lib/dpkg/status")?;
    let entry =
        status.split("\n\n").find(|entry| entry.lines().any(|line| line == format!("Package: {package}")))?;
    entry.lines().any(|line| line.starts_with("Status:") && line.ends_with(" installed")).then_some(())?;
    Some(entry.lines().find_map(|line| line.strip_prefix("Version: "))?.to_owned())
}

fn docker(root: &Root, environment: &BTreeMap<String, String>) -> Option<ContainerEngine> {
    program(root, environment, "dockerd")?;
    let mut engine = engine("docker");
    let path = "/etc/docker/daemon.json";
    if let Some(text) = root.text(path) {
        engine.config = Some(path.to_owned());
        match serde_json::from_str::<serde_json::Value>(&text) {
            Err(error) => engine.config_error = Some(format!("invalid JSON: {error}")),
            Ok(value) => {
                engine.nvidia_runtime = value.pointer("/runtimes/nvidia").is_some();
                engine.cdi = value.pointer("/features/cdi").and_then(serde_json::Value::as_bool);
                let options = value.get("exec-opts").and_then(serde_json::Value::as_array);
                let mut options = options.into_iter().flatten();
                engine.cgroupfs = options.any(|option| option == "native.cgroupdriver=cgroupfs");
            }
        }
    }
    Some(engine)
}

fn containerd(root: &Root, environment: &BTreeMap<String, String>) -> Option<ContainerEngine> {
    program(root, environment, "containerd")?;
    let mut engine = engine("containerd");
    let path = "/etc/containerd/config.toml";
    if let Some(text) = root.text(path) {
        engine.config = Some(path.to_owned());
        match text.parse::<toml::Table>() {
            Err(error) => engine.config_error = Some(format!("invalid TOML: {}", error.message())),
            Ok(table) => {
                // The name of the plugin changed between configuration versions 2 and 3.
                let plugins = table.get("plugins").and_then(toml::Value::as_table).into_iter().flatten();
                for (_, plugin) in plugins {
                    let runtimes = plugin.get("containerd").and_then(|containerd| containerd.get("runtimes"));
                    engine.nvidia_runtime |=
                        runtimes.is_some_and(|runtimes| runtimes.get("nvidia").is_some());
                    engine.cdi = plugin.get("enable_cdi").and_then(toml::Value::as_bool).or(engine.cdi);
                }
            }
        }
    }
    Some(engine)
}

/// Podman needs no configuration: it reads CDI specifications by itself.
fn podman(root: &Root, environment: &BTreeMap<String, String>) -> Option<ContainerEngine> {
    program(root, environment, "podman")?;
    Some(engine("podman"))
}

fn engine(name: &str) -> ContainerEngine {
    ContainerEngine { name: name.to_owned(), ..ContainerEngine::default() }
}

fn cdi(root: &Root) -> Vec<CdiSpec> {
    let mut specs = Vec::new();
    for directory in ["/etc/cdi", "/run/cdi", "/var/run/cdi"] {
        // On most systems, /var/run is a symlink to /run.
        if directory == "/var/run/cdi" && root.real(directory) == root.real("/run/cdi") {
            continue;
        }
        for name in root.names(directory) {
            if [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending)) {
                let path = format!("{directory}/{name}");
                let text = root.text(&path).unwrap_or_default();
                specs.push(cdi_spec(root, path, &text));
            }
        }
    }
    specs
}

fn cdi_spec(root: &Root, path: String, text: &str) -> CdiSpec {
    let mut spec = CdiSpec { path, ..CdiSpec::default() };
    // JSON is valid YAML.
    let value: serde_json::Value = match cudock_yaml::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            spec.error = Some(error.to_string());
            return spec;
        }
    };
    spec.kind = value.get("kind").and_then(|kind| kind.as_str()).map(str::to_owned);
    if spec.kind.is_none() {
        spec.error = Some("missing kind".to_owned());
    }
    let devices = value.get("devices").and_then(|devices| devices.as_array());
    let name = |device: &serde_json::Value| Some(device.get("name")?.as_str()?.to_owned());
    spec.devices = devices.into_iter().flatten().filter_map(name).collect();

    let mut paths = BTreeSet::new();
    host_paths(&value, &mut paths);
    // The most frequent version, because single files may have the version of another product.
    let mut versions: BTreeMap<DriverVersion, usize> = BTreeMap::new();
    for path in &paths {
        let version = path.rsplit_once(".so.").and_then(|(_, version)| version.parse::<DriverVersion>().ok());
        if let Some(version) = version.filter(|version| version.is_exact()) {
            *versions.entry(version).or_default() += 1;
        }
    }
    spec.driver = versions.into_iter().max_by_key(|(_, count)| *count).map(|(version, _)| version);
    spec.missing = paths.into_iter().filter(|path| !root.exists(path)).collect();
    spec
}

/// All host files that a specification mounts or creates nodes for.
fn host_paths(value: &serde_json::Value, paths: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Array(items) => items.iter().for_each(|item| host_paths(item, paths)),
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), field) {
                    ("hostPath", serde_json::Value::String(path)) => {
                        paths.insert(path.clone());
                    }
                    ("deviceNodes", serde_json::Value::Array(nodes)) => {
                        for node in nodes {
                            let path = node.get("hostPath").or_else(|| node.get("path"));
                            paths.extend(path.and_then(|path| path.as_str()).map(str::to_owned));
                        }
                    }
                    _ => host_paths(field, paths),
                }
            }
        }
        _ => {}
    }
}

fn cgroup(root: &Root) -> Option<String> {
    let unified = root.exists("/sys/fs/cgroup/cgroup.controllers");
    let legacy = root.is_dir("/sys/fs/cgroup/devices") || root.is_dir("/sys/fs/cgroup/memory");
    let hybrid = root.exists("/sys/fs/cgroup/unified/cgroup.controllers");
    match (unified, legacy, hybrid) {
        (true, _, _) => Some("v2"),
        (false, true, true) => Some("hybrid"),
        (false, true, false) => Some("v1"),
        _ => None,
    }
    .map(str::to_owned)
}

/// NVIDIA's character devices have the major number 195.
fn dev_char_links(root: &Root) -> Option<bool> {
    root.is_dir("/dev/char").then(|| root.names("/dev/char").iter().any(|name| name.starts_with("195:")))
}
