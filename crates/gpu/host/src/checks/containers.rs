use cudock_facts::finding::Severity;

use super::{Area, Check, CheckContext, codes};
use crate::host::ContainerEngine;

/// Checks container engines, which only run on hosts.
pub(super) fn check(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    if context.is_in_container() {
        return;
    }
    let containers = &context.host.containers;
    for engine in &containers.engines {
        if let (Some(config), Some(error)) = (&engine.config, &engine.config_error) {
            let message = format!("cannot read {config}: {error}");
            let fix = format!("correct {config}; {} does not start with it", engine.name);
            checks.push(Check::error(Area::Containers, codes::CONFIG_UNREADABLE, message, fix));
        }
    }
    cdi(context, checks);
    if context.has_gpu() {
        for engine in &containers.engines {
            configured(context, engine, checks);
        }
        reload(context, checks);
    }
    if let Some(version) = containers
        .toolkit_version
        .as_deref()
        .filter(|version| version.starts_with("1.18.0-") || *version == "1.18.0")
    {
        let message =
            format!("NVIDIA Container Toolkit {version}: rootless Docker fails with it (bpf_prog_query)");
        let fix = "for rootless containers use 1.17.9 or a release after 1.18.0, or set no-cgroups";
        checks.push(Check::new(Area::Containers, Severity::Note, codes::TOOLKIT_FAULTY, message, fix));
    }
}

fn cdi(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    for spec in &context.host.containers.cdi {
        if let Some(error) = &spec.error {
            let message = format!("cannot read {}: {error}", spec.path);
            let fix = format!("regenerate it: nvidia-ctk cdi generate --output={}", spec.path);
            checks.push(Check::error(Area::Containers, codes::CDI_UNREADABLE, message, fix));
            continue;
        }
        if !spec.kind.as_deref().is_some_and(|kind| kind.starts_with("nvidia.com/")) {
            continue;
        }
        let of_another = spec.driver.filter(|driver| context.driver.is_some_and(|ours| ours != *driver));
        if spec.missing.is_empty() && of_another.is_none() {
            checks.push(Check::ok(Area::Containers, format!("{} matches the driver", spec.path)));
            continue;
        }
        let why = match (of_another, spec.missing.len()) {
            (Some(driver), _) => format!("is for driver {driver}"),
            (None, count) => format!("lists {count} missing files"),
        };
        let message = format!("{} {why}: containers that request its devices fail to start", spec.path);
        let fix = format!("nvidia-ctk cdi generate --output={}", spec.path);
        let mut check = Check::error(Area::Containers, codes::CDI_STALE, message, fix);
        for path in spec.missing.iter().take(3) {
            check = check.with_evidence(path, "does not exist");
        }
        checks.push(check);
    }
}

fn configured(context: &CheckContext<'_>, engine: &ContainerEngine, checks: &mut Vec<Check>) {
    let containers = &context.host.containers;
    let has_cdi = containers.cdi.iter().any(|spec| spec.error.is_none());
    let has_hook = containers.toolkit.contains_key("nvidia-container-runtime-hook");
    let has_runtime = containers.toolkit.contains_key("nvidia-container-runtime");
    if engine.config_error.is_some() {
        return;
    }
    if !has_hook && !has_runtime && !has_cdi {
        let message = format!("{} is installed, but its containers have no GPU access", engine.name);
        let fix =
            "install nvidia-container-toolkit, then nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml";
        checks.push(Check::warning(Area::Containers, codes::NO_CONTAINER_TOOLKIT, message, fix));
        return;
    }
    let (ready, fix) = match engine.name.as_str() {
        // Docker finds the hook by itself for --gpus; the runtime is needed for --runtime=nvidia and Compose.
        "docker" => (
            engine.nvidia_runtime || has_hook || has_cdi,
            "nvidia-ctk runtime configure --runtime=docker && systemctl restart docker",
        ),
        // Docker comes with its own containerd, which does not use this file.
        "containerd" => {
            let alone = !containers.engines.iter().any(|other| other.name == "docker");
            (
                engine.nvidia_runtime || engine.cdi == Some(true) || !alone,
                "nvidia-ctk runtime configure --runtime=containerd && systemctl restart containerd",
            )
        }
        _ => (has_cdi, "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
    };
    if ready {
        checks.push(Check::ok(Area::Containers, format!("{} supports GPUs in containers", engine.name)));
    } else {
        let message = format!("{} is not configured for GPUs", engine.name);
        checks.push(Check::warning(Area::Containers, codes::ENGINE_NOT_CONFIGURED, message, fix));
    }
}

/// Checks whether `systemctl daemon-reload` revokes GPU access. With systemd's cgroups, a reload
/// rewrites device rules from the nodes linked in /dev/char. The hook adds its nodes without
/// systemd's knowledge; CDI does not.
fn reload(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let containers = &context.host.containers;
    let docker = containers.engines.iter().find(|engine| engine.name == "docker");
    let endangered = docker.is_some_and(|engine| !engine.cgroupfs)
        && containers.systemd
        && containers.cgroup.as_deref() == Some("v2")
        && containers.dev_char_links == Some(false)
        && containers.cdi.is_empty();
    if endangered {
        let message = "systemctl daemon-reload will revoke GPU access of running containers: /dev/char has no links to the device nodes";
        let fix = "nvidia-ctk system create-dev-char-symlinks --create-all, or use CDI";
        checks.push(Check::warning(Area::Containers, codes::RELOAD_TAKES_GPUS, message, fix));
    }
}
