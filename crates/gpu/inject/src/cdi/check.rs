//! Finds CDI specifications that no longer match the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use cudock_facts::finding::Severity;
use cudock_facts::version::DriverVersion;
use cudock_host::{Files, Root};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::spec::{CdiNode, Specification};
use super::unknown_fields;
use crate::driver::Driver;

/// Known versions of the format.
const VERSIONS: [&str; 10] =
    ["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"];

/// One statement about a specification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpecFinding {
    pub path: String,
    /// An error if containers do not start, or get the wrong files.
    pub severity: Severity,
    pub message: String,
    pub fix: String,
}

/// The machine that specifications are compared with.
#[derive(Debug, Clone)]
pub struct CheckTarget<'a> {
    /// The root of their files and nodes.
    pub root: &'a Root,
    pub driver: Option<&'a Driver>,
}

/// Checks every specification in these directories, the one with the highest precedence last, as in engines. Returns the
/// specifications and the findings.
pub fn check_directories(target: &CheckTarget<'_>, directories: &[&str]) -> (Vec<String>, Vec<SpecFinding>) {
    let mut paths = Vec::new();
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for directory in directories {
        // On most systems /var/run is a link to /run.
        let Some(real) = Files::real(target.root, directory).filter(|real| seen.insert(real.clone())) else {
            continue;
        };
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for name in Files::names(target.root, &real) {
            if ![".yaml", ".json"].iter().any(|ending| name.ends_with(ending)) {
                continue;
            }
            let path = format!("{directory}/{name}");
            let Some(text) = Files::text(target.root, &path) else {
                let message = "cannot be read: not a regular file, too large, or no permission".to_owned();
                let fix = "remove it, or run as a user who may read it".to_owned();
                findings.push(SpecFinding { path: path.clone(), severity: Severity::Error, message, fix });
                paths.push(path);
                continue;
            };
            findings.extend(check(target, &path, &text));
            for device in devices(&text) {
                if let Some(other) = owners.insert(device.clone(), path.clone()) {
                    let message = format!("{device} is also in {other}: engines reject duplicate devices");
                    let fix = "remove one of the two files".to_owned();
                    findings.push(SpecFinding {
                        path: path.clone(),
                        severity: Severity::Error,
                        message,
                        fix,
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

pub fn check(target: &CheckTarget<'_>, path: &str, text: &str) -> Vec<SpecFinding> {
    let mut checker =
        SpecChecker { path, fix: format!("regenerate it: cudock cdi --output {path}"), findings: Vec::new() };
    // JSON is YAML too.
    let value: Value = match cudock_yaml::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            checker.error(format!("cannot be parsed: {error}"));
            return checker.findings;
        }
    };
    let spec: Specification = match serde_json::from_value(value.clone()) {
        Ok(spec) => spec,
        Err(error) => {
            checker.error(format!("not a CDI specification: {error}"));
            return checker.findings;
        }
    };
    for field in unknown_fields::find(&value) {
        checker.error(format!("unknown field `{field}`: engines reject the file"));
    }
    version(&mut checker, &spec);
    if !spec.kind.starts_with("nvidia.com/") && !spec.edits().any(is_nvidia) {
        // Only the vendor's own tool can regenerate it.
        "regenerate it with the tool of its vendor".clone_into(&mut checker.fix);
    }
    files(&mut checker, target, &spec);
    nodes(&mut checker, target, &spec);
    if let Some(driver) = target.driver
        && spec.edits().any(is_nvidia)
    {
        driver_version(&mut checker, driver, &spec);
        gpus(&mut checker, driver, &spec);
    }
    checker.findings
}

struct SpecChecker<'a> {
    path: &'a str,
    fix: String,
    findings: Vec<SpecFinding>,
}

impl SpecChecker<'_> {
    fn error(&mut self, message: String) {
        let (path, fix) = (self.path.to_owned(), self.fix.clone());
        self.findings.push(SpecFinding { path, severity: Severity::Error, message, fix });
    }

    /// Reports names, if there are any.
    fn error_with(&mut self, what: &str, names: &[String]) {
        if !names.is_empty() {
            self.error(format!("{what}: {}", listed(names)));
        }
    }
}

fn is_nvidia(edits: &super::ContainerEdits) -> bool {
    edits.device_nodes.iter().any(|node| node.path.starts_with("/dev/nvidia") || node.path == "/dev/dxg")
}

fn version(checker: &mut SpecChecker<'_>, spec: &Specification) {
    let order = |version: &str| VERSIONS.iter().position(|known| *known == version);
    let (declared, needed) = (spec.cdi_version.trim_start_matches('v'), spec.lowest_version());
    match order(declared) {
        None => {
            let version = &spec.cdi_version;
            checker.error(format!("unknown CDI version `{version}`: engines reject the file"));
        }
        Some(index) if Some(index) < order(needed) => {
            let fields = format!("it declares CDI {declared} but has fields of {needed}");
            checker.error(format!("{fields}: engines reject the file"));
        }
        Some(_) => {}
    }
}

/// The most names in a message.
const MAX_NAMES: usize = 3;

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn files(checker: &mut SpecChecker<'_>, target: &CheckTarget<'_>, spec: &Specification) {
    let gone = |paths: BTreeSet<&String>| -> Vec<String> {
        paths.into_iter().filter(|path| !Files::exists(target.root, path)).cloned().collect()
    };
    let mounts = spec.edits().flat_map(|edits| &edits.mounts).map(|mount| &mount.host_path);
    let what = "mounted files not found, so containers with it do not start";
    checker.error_with(what, &gone(mounts.collect()));
    let hooks = spec.edits().flat_map(|edits| &edits.hooks).map(|hook| &hook.path);
    checker.error_with("programs of its hooks not found", &gone(hooks.collect()));
}

fn nodes(checker: &mut SpecChecker<'_>, target: &CheckTarget<'_>, spec: &Specification) {
    let mut missing = BTreeSet::new();
    let mut moved = BTreeSet::new();
    for node in spec.edits().flat_map(|edits| &edits.device_nodes) {
        let path = node.host_path.as_ref().unwrap_or(&node.path);
        match numbers(target.root, path) {
            None => {
                missing.insert(path.clone());
            }
            Some(there) => moved.extend(changed(node, path, there)),
        }
    }
    checker.error_with("device nodes not found", &Vec::from_iter(missing));
    checker.error_with("device numbers have changed", &Vec::from_iter(moved));
}

/// The numbers of a character device, if it exists.
fn numbers(root: &Root, path: &str) -> Option<(u32, u32)> {
    let real = Files::real(root, path)?;
    let outside: PathBuf = root.base().join(real.trim_start_matches('/'));
    let metadata = fs::metadata(outside).ok()?;
    metadata
        .file_type()
        .is_char_device()
        .then(|| (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev())))
}

fn changed(node: &CdiNode, path: &str, there: (u32, u32)) -> Option<String> {
    let (major, minor) = (node.major?, node.minor?);
    let same = i64::from(there.0) == major && i64::from(there.1) == minor;
    (!same).then(|| format!("{path} is {}:{}, not {major}:{minor}", there.0, there.1))
}

/// Compares the driver's version with the most frequent version in file names; other products have versions, too.
fn driver_version(checker: &mut SpecChecker<'_>, driver: &Driver, spec: &Specification) {
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
        checker.error(format!("it is for driver {written}, but {running} is running"));
    }
}

fn gpus(checker: &mut SpecChecker<'_>, driver: &Driver, spec: &Specification) {
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
    // Without NVML, the UUIDs of unused GPUs and of MIG devices are unknown.
    let gpu_uuids = driver.gpus.iter().all(|gpu| gpu.uuid.is_some());
    let judged = |name: &str| match name {
        name if name.starts_with("MIG-") => mig_uuids,
        name if name.starts_with("GPU-") => gpu_uuids,
        _ => true,
    };
    let written: BTreeSet<&str> = spec.devices.iter().map(|device| device.name.as_str()).collect();
    let gone = written.iter().filter(|name| judged(name) && !known.contains(**name));
    let gone: Vec<String> = gone.map(|name| (*name).to_owned()).collect();
    checker.error_with("GPUs or MIG devices that no longer exist", &gone);
    let unknown: Vec<String> =
        written.iter().filter(|name| !judged(name)).map(|name| (*name).to_owned()).collect();
    if !unknown.is_empty() {
        let fix = "none needed; a file that names devices by index can be checked completely".to_owned();
        let message = format!("cannot check without NVML whether these still exist: {}", listed(&unknown));
        checker.findings.push(SpecFinding {
            path: checker.path.to_owned(),
            severity: Severity::Note,
            message,
            fix,
        });
    }
    let has = |names: &[Option<String>]| names.iter().flatten().any(|name| written.contains(name.as_str()));
    // In a file that names devices by index, missing ones are known even without UUIDs.
    let numbered = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_digit()) || name.starts_with("gpu") || name.starts_with("mig")
    };
    let by_number = written.iter().any(numbered);
    let mut missing = Vec::new();
    for gpu in &driver.gpus {
        let names = [Some(gpu.index.to_string()), Some(format!("gpu{}", gpu.index)), gpu.uuid.clone()];
        // NVIDIA's tool lists the parts of a divided GPU, not the whole.
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
    // A file with `all` alone is complete.
    if written.iter().any(|name| *name != "all") {
        checker.error_with("GPUs or MIG devices missing from it", &missing);
    }
}
