use crate::host::SystemInfo;
use crate::root::Root;

pub(super) fn read(root: &Root) -> SystemInfo {
    let kernel = root.line("/proc/sys/kernel/osrelease");
    let wsl = kernel.as_deref().is_some_and(|kernel| kernel.to_ascii_lowercase().contains("microsoft"));
    SystemInfo {
        os: os_name(root),
        cpu_arch: cpu_arch(root),
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

/// The name of the program loader reveals the architecture of a tree.
fn cpu_arch(root: &Root) -> String {
    if root.is_live() {
        return std::env::consts::ARCH.to_owned();
    }
    let arm =
        ["/lib/ld-linux-aarch64.so.1", "/usr/lib/aarch64-linux-gnu"].iter().any(|path| root.exists(path));
    if arm { "aarch64" } else { "x86_64" }.to_owned()
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
