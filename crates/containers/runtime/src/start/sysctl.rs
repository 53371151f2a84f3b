//! Kernel parameters that belong to a container's own namespaces. Any other would change the host.

use crate::container::config::{Ipc, NetworkMode};
use crate::error::RuntimeError;

const OF_IPC: [&str; 8] = [
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
];

/// Whether a parameter may be set in a container with these namespaces.
pub fn check(name: &str, ipc: Ipc, network: &NetworkMode) -> Result<(), RuntimeError> {
    let refused = |why: &str| Err(RuntimeError::Request(format!("--sysctl {name}: {why}")));
    if name.contains('/') || name.split('.').any(|part| part.is_empty() || part == "..") {
        return refused("write it with dots, as in net.core.somaxconn=1024");
    }
    let of_ipc = OF_IPC.contains(&name) || name.starts_with("fs.mqueue.");
    match () {
        () if of_ipc && ipc == Ipc::Host => refused("it would change the host, whose IPC the container uses"),
        () if name.starts_with("net.") && *network == NetworkMode::Host => {
            refused("it would change the host, whose network the container uses")
        }
        () if of_ipc || name.starts_with("net.") => Ok(()),
        () => refused(
            "not a namespaced parameter, it would change the host: allowed are net.*, fs.mqueue.* and the IPC \
             parameters kernel.msg*, kernel.sem and kernel.shm*",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_of_the_containers_own_namespaces_are_allowed() {
        let own = |name| check(name, Ipc::Private, &NetworkMode::None).is_ok();
        for name in
            ["net.core.somaxconn", "net.ipv4.ip_forward", "kernel.shmmax", "kernel.sem", "fs.mqueue.msg_max"]
        {
            assert!(own(name), "{name}");
        }
        for name in [
            "vm.swappiness",
            "kernel.core_pattern",
            "kernel.hostname",
            "fs.file-max",
            "net/../kernel/core_pattern",
            "net...kernel.core_pattern",
            "net.",
            "",
        ] {
            assert!(!own(name), "{name}");
        }
        assert!(check("net.core.somaxconn", Ipc::Private, &NetworkMode::Host).is_err());
        assert!(check("kernel.shmmax", Ipc::Host, &NetworkMode::None).is_err());
    }
}
