//! The values of `--device`: device nodes of this machine, and GPUs by their CDI names.

use std::path::{Component, PathBuf};

use cudock_base::UsageError;

use crate::container::config::DeviceConfig;

const GPU_KIND: &str = "nvidia.com/gpu";

#[derive(Debug, PartialEq, Eq)]
pub enum Device {
    /// A node, or a directory of nodes.
    Node(DeviceConfig),
    /// A GPU by its name in CDI: `all`, an index, a UUID, a MIG device.
    Gpu(String),
}

/// Parses one: `PATH[:TARGET[:rwm]]`, or `VENDOR/CLASS=NAME`.
pub fn device(text: &str) -> Result<Device, UsageError> {
    let wrong = |why: &str| {
        UsageError::new(format!("--device {text}: {why}"))
            .hint("--device /dev/fuse, --device /dev/sda:/dev/xvda:r, --device nvidia.com/gpu=all")
    };
    if let Some((kind, name)) = text.split_once('=').filter(|(kind, _)| !kind.starts_with('/')) {
        return match kind {
            GPU_KIND if !name.is_empty() => Ok(Device::Gpu(name.to_owned())),
            GPU_KIND => Err(wrong("it names no GPU")),
            _ if kind.contains('/') => {
                Err(UsageError::new(format!("--device {text}: CDI devices of kind {kind} are not supported"))
                    .hint("GPUs are nvidia.com/gpu=all; other kinds run with --engine docker or podman"))
            }
            _ => Err(wrong("not a path")),
        };
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (host, container, access) = match parts.as_slice() {
        [host] => (*host, *host, "rwm"),
        // The second part is a target or, as in docker, the access alone.
        [host, second] if is_access(second) => (*host, *host, *second),
        [host, target] => (*host, *target, "rwm"),
        [host, target, access] if is_access(access) => (*host, *target, *access),
        [_, _, _] => return Err(wrong("access must be a combination of r, w and m")),
        _ => return Err(wrong("it has too many parts")),
    };
    if !host.starts_with('/') || !container.starts_with('/') {
        return Err(wrong("paths of devices are absolute"));
    }
    let config = DeviceConfig {
        host: PathBuf::from(host),
        container: PathBuf::from(container),
        // The node is created by cudock, so the permission to create one (m) is never needed.
        access: access.replace('m', ""),
    };
    let parts = || config.container.components();
    let stays_below = parts().count() > 2 && parts().all(|part| part != Component::ParentDir);
    if container != host && !(config.container.starts_with("/dev/") && stays_below) {
        return Err(wrong("its target must be below /dev"));
    }
    if config.access.is_empty() {
        return Err(wrong("device access must include r or w"));
    }
    Ok(Device::Node(config))
}

fn is_access(text: &str) -> bool {
    !text.is_empty() && text.len() <= 3 && text.chars().all(|letter| "rwm".contains(letter))
}

/// CDI names of GPUs as a value of `--gpus`.
pub fn cdi_gpus(names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    if names.iter().any(|name| name == "all") {
        return Some("all".to_owned());
    }
    Some(format!("\"device={}\"", names.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_docker_reads_them() {
        let node = |host: &str, container: &str, access: &str| {
            Device::Node(DeviceConfig {
                host: host.into(),
                container: container.into(),
                access: access.to_owned(),
            })
        };
        for (text, expected) in [
            ("/dev/fuse", node("/dev/fuse", "/dev/fuse", "rw")),
            ("/dev/sda:/dev/xvda", node("/dev/sda", "/dev/xvda", "rw")),
            ("/dev/sda:/dev/xvda:r", node("/dev/sda", "/dev/xvda", "r")),
            ("/dev/sda:r", node("/dev/sda", "/dev/sda", "r")),
            ("/dev/sda:/dev/xvda:rwm", node("/dev/sda", "/dev/xvda", "rw")),
            ("nvidia.com/gpu=all", Device::Gpu("all".into())),
            ("nvidia.com/gpu=0", Device::Gpu("0".into())),
            ("nvidia.com/gpu=GPU-5a", Device::Gpu("GPU-5a".into())),
        ] {
            assert_eq!(device(text).unwrap(), expected, "{text}");
        }
        for wrong in [
            "",
            "fuse",
            "/dev/fuse:/etc/passwd",
            "/dev/fuse:/dev/../etc/x",
            "/dev/fuse:/dev",
            "/dev/fuse:relative",
            "/dev/a:/dev/b:x",
            "/dev/a:/dev/b:r:w",
            "/dev/a:/dev/b:m",
            "nvidia.com/gpu=",
            "vendor.com/nic=all",
            "gpu=all",
        ] {
            assert!(device(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cdi_names_become_gpus() {
        let names = |names: &[&str]| cdi_gpus(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(names(&[]), None);
        assert_eq!(names(&["all"]).as_deref(), Some("all"));
        assert_eq!(names(&["0"]).as_deref(), Some("\"device=0\""));
        assert_eq!(names(&["0", "GPU-5a"]).as_deref(), Some("\"device=0,GPU-5a\""));
    }
}
