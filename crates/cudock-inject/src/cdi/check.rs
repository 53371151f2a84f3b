//! Whether specifications on a machine still say what is true.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use cudock_facts::version::DriverVersion;
use cudock_host::{Files, Root};
use serde::Serialize;
use serde_json::Value;

use super::spec::{Node, Specification};
use super::spell;
use crate::driver::Driver;

/// Versions of the format there are.
const VERSIONS: [&str; 10] =
    ["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"];

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Worth knowing.
    Note,
    /// Containers do not start, or start with the wrong thing.
    Problem,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The specification.
    pub path: String,
    /// How bad it is.
    pub level: Level,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: String,
}

/// What specifications are held against.
#[derive(Debug, Clone)]
pub struct Machine<'a> {
    /// Where their files and nodes should be.
    pub root: &'a Root,
    /// The driver in use; none if there is none, or it is not to be looked at.
    pub driver: Option<&'a Driver>,
}

/// Checks every specification in these directories of the machine, the most important last, as engines have them. Returns
/// how many there were, and what is wrong.
pub fn check_directories(machine: &Machine<'_>, directories: &[&str]) -> (Vec<String>, Vec<Finding>) {
    let mut paths = Vec::new();
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for directory in directories {
        // On most systems /var/run is a link to /run.
        let Some(real) = Files::real(machine.root, directory).filter(|real| seen.insert(real.clone())) else {
            continue;
        };
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for name in Files::names(machine.root, &real) {
            if ![".yaml", ".json"].iter().any(|ending| name.ends_with(ending)) {
                continue;
            }
            let path = format!("{directory}/{name}");
            let Some(text) = Files::text(machine.root, &path) else {
                findings.push(Finding {
                    path: path.clone(),
                    level: Level::Problem,
                    message: "cannot be read: not a regular file, too large, or no permission".to_owned(),
                    fix: "remove it, or run as a user who may read it".to_owned(),
                });
                paths.push(path);
                continue;
            };
            findings.extend(check(machine, &path, &text));
            for device in devices(&text) {
                if let Some(other) = owners.insert(device.clone(), path.clone()) {
                    findings.push(Finding {
                        path: path.clone(),
                        level: Level::Problem,
                        message: format!("{device} is in {other} too: engines then refuse to give it"),
                        fix: "remove one of the two files".to_owned(),
                    });
                }
            }
            paths.push(path);
        }
    }
    (paths, findings)
}

fn devices(text: &str) -> Vec<String> {
    let Ok(spec) = cudock_yaml::from_str::<Specification>(text) else { return Vec::new() };
    spec.devices.iter().map(|device| format!("{}={}", spec.kind, device.name)).collect()
}

/// Checks one specification.
pub fn check(machine: &Machine<'_>, path: &str, text: &str) -> Vec<Finding> {
    let mut found =
        Found { path, fix: format!("write it anew: cudock cdi --output {path}"), findings: Vec::new() };
    // JSON is YAML too.
    let value: Value = match cudock_yaml::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            found.problem(format!("it cannot be read: {error}"));
            return found.findings;
        }
    };
    let spec: Specification = match serde_json::from_value(value.clone()) {
        Ok(spec) => spec,
        Err(error) => {
            found.problem(format!("it is not a CDI specification: {error}"));
            return found.findings;
        }
    };
    for field in spell::unknown(&value) {
        found.problem(format!("`{field}` is no field of CDI: engines refuse the file"));
    }
    version(&mut found, &spec);
    if !spec.kind.starts_with("nvidia.com/") && !spec.edits().any(is_nvidia) {
        // Another vendor's: how it is written is for its own tool to say.
        "write it anew with the tool of its vendor".clone_into(&mut found.fix);
    }
    files(&mut found, machine, &spec);
    nodes(&mut found, machine, &spec);
    if let Some(driver) = machine.driver
        && spec.edits().any(is_nvidia)
    {
        driver_version(&mut found, driver, &spec);
        gpus(&mut found, driver, &spec);
    }
    found.findings
}

struct Found<'a> {
    path: &'a str,
    fix: String,
    findings: Vec<Finding>,
}

impl Found<'_> {
    fn problem(&mut self, message: String) {
        let (path, fix) = (self.path.to_owned(), self.fix.clone());
        self.findings.push(Finding { path, level: Level::Problem, message, fix });
    }
}

fn is_nvidia(edits: &super::ContainerEdits) -> bool {
    edits.device_nodes.iter().any(|node| node.path.starts_with("/dev/nvidia") || node.path == "/dev/dxg")
}

fn version(found: &mut Found<'_>, spec: &Specification) {
    let order = |version: &str| VERSIONS.iter().position(|known| *known == version);
    let (said, needed) = (spec.cdi_version.trim_start_matches('v'), spec.lowest_version());
    match order(said) {
        None => {
            let version = &spec.cdi_version;
            found.problem(format!("`{version}` is no version of CDI: engines refuse the file"));
        }
        Some(said_at) if Some(said_at) < order(needed) => {
            found.problem(format!("it says CDI {said}, and has fields of {needed}: engines refuse the file"));
        }
        Some(_) => {}
    }
}

/// At most this many names go into a message.
const NAMED: usize = 3;

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn files(found: &mut Found<'_>, machine: &Machine<'_>, spec: &Specification) {
    let gone = |paths: BTreeSet<&String>| -> Vec<String> {
        paths.into_iter().filter(|path| !Files::exists(machine.root, path)).cloned().collect()
    };
    let mounts = spec.edits().flat_map(|edits| &edits.mounts).map(|mount| &mount.host_path);
    let missing = gone(mounts.collect());
    if !missing.is_empty() {
        found.problem(format!(
            "files it mounts do not exist, and containers that ask for it do not start: {}",
            listed(&missing)
        ));
    }
    let hooks = spec.edits().flat_map(|edits| &edits.hooks).map(|hook| &hook.path);
    let missing = gone(hooks.collect());
    if !missing.is_empty() {
        found.problem(format!("programs its hooks call do not exist: {}", listed(&missing)));
    }
}

fn nodes(found: &mut Found<'_>, machine: &Machine<'_>, spec: &Specification) {
    let mut missing = BTreeSet::new();
    let mut moved = BTreeSet::new();
    for node in spec.edits().flat_map(|edits| &edits.device_nodes) {
        let path = node.host_path.as_ref().unwrap_or(&node.path);
        match numbers(machine.root, path) {
            None => {
                missing.insert(path.clone());
            }
            Some(there) => moved.extend(changed(node, path, there)),
        }
    }
    if !missing.is_empty() {
        let missing: Vec<String> = missing.into_iter().collect();
        found.problem(format!("device nodes it gives do not exist: {}", listed(&missing)));
    }
    if !moved.is_empty() {
        let moved: Vec<String> = moved.into_iter().collect();
        found.problem(format!("device numbers have changed: {}", listed(&moved)));
    }
}

/// The numbers of a character device; none if there is none.
fn numbers(root: &Root, path: &str) -> Option<(u32, u32)> {
    let real = Files::real(root, path)?;
    let outside: PathBuf = root.base().join(real.trim_start_matches('/'));
    let metadata = fs::metadata(outside).ok()?;
    metadata
        .file_type()
        .is_char_device()
        .then(|| (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev())))
}

fn changed(node: &Node, path: &str, there: (u32, u32)) -> Option<String> {
    let (major, minor) = (node.major?, node.minor?);
    let same = i64::from(there.0) == major && i64::from(there.1) == minor;
    (!same).then(|| format!("{path} is {}:{}, not {major}:{minor}", there.0, there.1))
}

/// The version most files carry: one that another product left in a name does not count.
fn driver_version(found: &mut Found<'_>, driver: &Driver, spec: &Specification) {
    let mut versions: BTreeMap<DriverVersion, usize> = BTreeMap::new();
    for mount in spec.edits().flat_map(|edits| &edits.mounts) {
        let suffix = mount.host_path.rsplit_once(".so.").map(|(_, suffix)| suffix);
        if let Some(version) = suffix.and_then(|suffix| suffix.parse::<DriverVersion>().ok())
            && version.is_exact()
        {
            *versions.entry(version).or_default() += 1;
        }
    }
    let written = versions.into_iter().max_by_key(|(_, count)| *count).map(|(version, _)| version);
    if let (Some(written), Some(running)) = (written, driver.version)
        && written != running
    {
        found.problem(format!("it is for driver {written}, and {running} is running"));
    }
}

fn gpus(found: &mut Found<'_>, driver: &Driver, spec: &Specification) {
    if driver.gpus.is_empty() {
        return;
    }
    let mut known = BTreeSet::from(["all".to_owned()]);
    let mut mig_uuids = true;
    for gpu in &driver.gpus {
        known.extend([gpu.index.to_string(), format!("gpu{}", gpu.index)]);
        known.extend(gpu.uuid.clone());
        for mig in &gpu.mig {
            known.extend([format!("{}:{}", gpu.index, mig.index), format!("mig{}:{}", gpu.index, mig.index)]);
            mig_uuids &= mig.uuid.is_some();
            known.extend(mig.uuid.clone());
        }
    }
    // Without NVML the names of GPUs that were never used, and of MIG devices, are not known.
    let gpu_uuids = driver.gpus.iter().all(|gpu| gpu.uuid.is_some());
    let judged = |name: &str| match name {
        name if name.starts_with("MIG-") => mig_uuids,
        name if name.starts_with("GPU-") => gpu_uuids,
        _ => true,
    };
    let written: BTreeSet<&str> = spec.devices.iter().map(|device| device.name.as_str()).collect();
    let gone: Vec<String> = written
        .iter()
        .filter(|name| judged(name) && !known.contains(**name))
        .map(|name| (*name).to_owned())
        .collect();
    if !gone.is_empty() {
        found.problem(format!("GPUs or MIG devices it names are gone: {}", listed(&gone)));
    }
    let unknown: Vec<String> =
        written.iter().filter(|name| !judged(name)).map(|name| (*name).to_owned()).collect();
    if !unknown.is_empty() {
        let fix = "none needed; a file that names devices by number can be checked fully".to_owned();
        let message =
            format!("the driver's files do not tell whether these are still there: {}", listed(&unknown));
        found.findings.push(Finding { path: found.path.to_owned(), level: Level::Note, message, fix });
    }
    let has = |names: &[Option<String>]| names.iter().flatten().any(|name| written.contains(name.as_str()));
    // A file that names by number forgot what has no number in it, whether or not UUIDs are known.
    let numbered = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_digit()) || name.starts_with("gpu") || name.starts_with("mig")
    };
    let by_number = written.iter().any(numbered);
    let mut missing = Vec::new();
    for gpu in &driver.gpus {
        let names = [Some(gpu.index.to_string()), Some(format!("gpu{}", gpu.index)), gpu.uuid.clone()];
        // NVIDIA's tool names the parts of a divided GPU and not the whole.
        if gpu.mig.is_empty() && !has(&names) && (by_number || judged("GPU-")) {
            missing.push(gpu.index.to_string());
        }
        for mig in &gpu.mig {
            let (short, long) =
                (format!("{}:{}", gpu.index, mig.index), format!("mig{}:{}", gpu.index, mig.index));
            if !has(&[Some(short.clone()), Some(long), mig.uuid.clone()]) && (by_number || judged("MIG-")) {
                missing.push(short);
            }
        }
    }
    // A file with `all` alone is one of a choice: there is no GPU that it forgot.
    if !missing.is_empty() && written.iter().any(|name| *name != "all") {
        found.problem(format!("GPUs or MIG devices that are here are not in it: {}", listed(&missing)));
    }
}
