use cudock_facts::finding::Severity;

use super::{Area, Check, CheckContext, codes};

pub(super) fn check(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    if context.is_wsl() {
        usable(context, checks);
    } else if context.host.kernel.version().is_some() && !context.is_gpu_withheld() {
        let before = checks.len();
        missing(context, checks);
        usable(context, checks);
        if checks.len() == before {
            let count = context.host.nodes.len();
            checks.push(Check::ok(Area::Devices, format!("{count} device nodes, all usable")));
        }
    }
    environment(context, checks);
}

fn missing(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let host = context.host;
    let mut wanted = vec!["/dev/nvidiactl".to_owned(), "/dev/nvidia-uvm".to_owned()];
    // A container has only some of the machine's GPUs; the machine itself has a node for each.
    if context.is_in_container() {
        if !context.has_gpu_node() {
            wanted.push("/dev/nvidia0".to_owned());
        }
    } else {
        wanted.extend(
            host.kernel.gpus.iter().filter_map(|gpu| gpu.minor).map(|minor| format!("/dev/nvidia{minor}")),
        );
    }
    let missing: Vec<String> = wanted.into_iter().filter(|path| !context.has_node(path)).collect();
    if missing.is_empty() {
        return;
    }
    if host.kernel.makes_nodes && !context.is_in_container() {
        let message = format!("{} missing; nvidia-modprobe creates them on first use", list(&missing));
        let fix = "enable nvidia-persistenced so that containers find them before a program has run";
        checks.push(Check::new(Area::Devices, Severity::Note, codes::NODE_MISSING, message, fix));
        return;
    }
    let message = format!("{} missing: CUDA finds no device (error 100 or 999)", list(&missing));
    let fix = if context.is_in_container() {
        "start the container with its GPU (docker run --gpus all …) instead of passing single devices by hand"
    } else {
        "run nvidia-modprobe -u -c=0; enable nvidia-persistenced so that they exist after a reboot"
    };
    let mut check = Check::error(Area::Devices, codes::NODE_MISSING, message, fix);
    for path in missing {
        check = check.with_evidence(path, "does not exist");
    }
    checks.push(check);
}

fn usable(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    for node in &context.host.nodes {
        let needed = node.path != "/dev/nvidia-modeset" && !node.path.contains("nvswitch");
        if !needed {
            continue;
        }
        if node.is_device == Some(false) {
            let message =
                format!("{} is a file, not a device: something was mounted or written over it", node.path);
            let fix = format!("rm {} and let nvidia-modprobe create it again", node.path);
            checks.push(Check::error(Area::Devices, codes::NODE_MISSING, message, fix));
        } else if node.usable == Some(false) {
            let message = format!("permission denied: this user cannot read and write {}", node.path);
            let fix = "add the user to the node's group (ls -l /dev/nvidia*), or set NVreg_DeviceFileMode=0666 for the module";
            checks.push(
                Check::error(Area::Devices, codes::NODE_FORBIDDEN, message, fix)
                    .with_evidence(&node.path, format!("mode {:04o}", node.mode)),
            );
        }
    }
}

fn environment(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let value = |name: &str| context.host.environment.get(name).map(String::as_str);
    if let Some(devices) = value("CUDA_VISIBLE_DEVICES") {
        let first = devices.split(',').next().unwrap_or_default().trim();
        if first.is_empty() || first.starts_with('-') || first.eq_ignore_ascii_case("NoDevFiles") {
            let message = format!("CUDA_VISIBLE_DEVICES={devices} hides every GPU from CUDA (error 100)");
            let fix = "unset CUDA_VISIBLE_DEVICES";
            checks.push(
                Check::error(Area::Devices, codes::HIDDEN_BY_ENVIRONMENT, message, fix)
                    .with_evidence("environment", format!("CUDA_VISIBLE_DEVICES={devices}")),
            );
        }
    }
    if let Some(devices @ ("void" | "none" | "")) = value("NVIDIA_VISIBLE_DEVICES")
        && context.is_in_container()
        && !context.has_gpu_node()
    {
        let message =
            format!("NVIDIA_VISIBLE_DEVICES={devices} tells the container toolkit to expose no GPUs");
        let fix = "start the container with NVIDIA_VISIBLE_DEVICES=all, or with --gpus all";
        checks.push(
            Check::error(Area::Devices, codes::HIDDEN_BY_ENVIRONMENT, message, fix)
                .with_evidence("environment", format!("NVIDIA_VISIBLE_DEVICES={devices}")),
        );
    }
    if let Some(capabilities) = value("NVIDIA_DRIVER_CAPABILITIES")
        && context.is_in_container()
        && !capabilities.split(',').any(|word| matches!(word.trim(), "all" | "compute" | ""))
    {
        let message = format!(
            "NVIDIA_DRIVER_CAPABILITIES={capabilities} does not include compute: libcuda is not mounted"
        );
        let fix = "set NVIDIA_DRIVER_CAPABILITIES=compute,utility";
        checks.push(
            Check::warning(Area::Devices, codes::HIDDEN_BY_ENVIRONMENT, message, fix)
                .with_evidence("environment", format!("NVIDIA_DRIVER_CAPABILITIES={capabilities}")),
        );
    }
}

fn list(paths: &[String]) -> String {
    match paths {
        [one] => format!("{one} is"),
        many => format!("{} are", many.join(", ")),
    }
}
