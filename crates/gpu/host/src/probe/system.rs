use crate::host::SystemInfo;
use crate::{Files, Root};

pub(super) fn read(root: &Root) -> SystemInfo {
    let kernel = root.line("/proc/sys/kernel/osrelease");
    let wsl = kernel.as_deref().is_some_and(|kernel| kernel.to_ascii_lowercase().contains("microsoft"));
    SystemInfo {
        os: os_name(root),
        cpu_arch: root.cpu_arch(),
        container: container(root),
        wsl: wsl || root.exists("/dev/dxg"),
        kernel,
    }
}

fn os_name(root: &Root) -> Option<String> {
    let release = root.text("/etc/os-release").or_else(|| root.text("/usr/lib/os-release"))?;
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// Detects containers, by marker files or by cgroup paths of older hosts.
fn container(root: &Root) -> Option<String> {
    for marker in ["/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io"] {
        if root.exists(marker) {
            return Some(marker.to_owned());
        }
    }
    let cgroup = root.text("/proc/1/cgroup").unwrap_or_default();
    let marked =
        ["docker", "kubepods", "libpod", "containerd", "lxc"].iter().any(|name| cgroup.contains(name));
    marked.then(|| "/proc/1/cgroup".to_owned())
}
