use super::{Area, Check, Situation, Status, codes};

pub(super) fn check(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    if situation.wsl() {
        usable(situation, checks);
    } else if situation.host.kernel.version().is_some() && !situation.gpu_withheld() {
        let before = checks.len();
        missing(situation, checks);
        usable(situation, checks);
        if checks.len() == before {
            let count = situation.host.nodes.len();
            checks.push(Check::ok(Area::Devices, format!("{count} device nodes, all usable")));
        }
    }
    environment(situation, checks);
}

fn missing(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let host = situation.host;
    let mut wanted = vec!["/dev/nvidiactl".to_owned(), "/dev/nvidia-uvm".to_owned()];
    // A container is given some of the machine's cards; the machine itself has a node for each.
    if situation.in_container() {
        if !situation.has_gpu_node() {
            wanted.push("/dev/nvidia0".to_owned());
        }
    } else {
        wanted.extend(
            host.kernel.gpus.iter().filter_map(|gpu| gpu.minor).map(|minor| format!("/dev/nvidia{minor}")),
        );
    }
    let missing: Vec<String> = wanted.into_iter().filter(|path| !situation.has_node(path)).collect();
    if missing.is_empty() {
        return;
    }
    if host.kernel.makes_nodes && !situation.in_container() {
        let message = format!("{} missing; nvidia-modprobe makes them at first use", list(&missing));
        let fix = "enable nvidia-persistenced, if containers are to find them before a program has run";
        checks.push(Check::bad(Area::Devices, Status::Note, codes::NODE_MISSING, message, fix));
        return;
    }
    let message = format!("{} missing: CUDA finds no device (error 100 or 999)", list(&missing));
    let fix = if situation.in_container() {
        "start the container with its GPU (docker run --gpus all …) instead of passing single devices by hand"
    } else {
        "nvidia-modprobe -u -c=0 makes them; enable nvidia-persistenced so that they are there after a reboot"
    };
    let mut check = Check::bad(Area::Devices, Status::Problem, codes::NODE_MISSING, message, fix);
    for path in missing {
        check = check.seen(path, "does not exist");
    }
    checks.push(check);
}

fn usable(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    for node in &situation.host.nodes {
        let needed = node.path != "/dev/nvidia-modeset" && !node.path.contains("nvswitch");
        if !needed {
            continue;
        }
        if node.is_device == Some(false) {
            let message =
                format!("{} is a file, not a device: something was mounted or written over it", node.path);
            let fix = format!("rm {} and let nvidia-modprobe make it again", node.path);
            checks.push(Check::bad(Area::Devices, Status::Problem, codes::NODE_MISSING, message, fix));
        } else if node.usable == Some(false) {
            let message = format!("this user may not read and write {}", node.path);
            let fix = "add the user to the node's group (ls -l /dev/nvidia*), or set NVreg_DeviceFileMode=0666 for the module";
            checks.push(
                Check::bad(Area::Devices, Status::Problem, codes::NODE_FORBIDDEN, message, fix)
                    .seen(&node.path, format!("mode {:04o}", node.mode)),
            );
        }
    }
}

fn environment(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let value = |name: &str| situation.host.environment.get(name).map(String::as_str);
    if let Some(devices) = value("CUDA_VISIBLE_DEVICES") {
        let first = devices.split(',').next().unwrap_or_default().trim();
        if first.is_empty() || first.starts_with('-') || first.eq_ignore_ascii_case("NoDevFiles") {
            let message = format!("CUDA_VISIBLE_DEVICES={devices} hides every GPU from CUDA (error 100)");
            let fix = "unset CUDA_VISIBLE_DEVICES";
            checks.push(
                Check::bad(Area::Devices, Status::Problem, codes::HIDDEN_BY_ENVIRONMENT, message, fix)
                    .seen("environment", format!("CUDA_VISIBLE_DEVICES={devices}")),
            );
        }
    }
    if let Some(devices @ ("void" | "none" | "")) = value("NVIDIA_VISIBLE_DEVICES")
        && situation.in_container()
        && !situation.has_gpu_node()
    {
        let message =
            format!("NVIDIA_VISIBLE_DEVICES={devices} told the container toolkit to leave the GPUs out");
        let fix = "start the container with NVIDIA_VISIBLE_DEVICES=all, or with --gpus all";
        checks.push(
            Check::bad(Area::Devices, Status::Problem, codes::HIDDEN_BY_ENVIRONMENT, message, fix)
                .seen("environment", format!("NVIDIA_VISIBLE_DEVICES={devices}")),
        );
    }
    if let Some(capabilities) = value("NVIDIA_DRIVER_CAPABILITIES")
        && situation.in_container()
        && !capabilities.split(',').any(|word| matches!(word.trim(), "all" | "compute" | ""))
    {
        let message =
            format!("NVIDIA_DRIVER_CAPABILITIES={capabilities} leaves out compute: libcuda is not mounted");
        let fix = "set NVIDIA_DRIVER_CAPABILITIES=compute,utility";
        checks.push(
            Check::bad(Area::Devices, Status::Warning, codes::HIDDEN_BY_ENVIRONMENT, message, fix)
                .seen("environment", format!("NVIDIA_DRIVER_CAPABILITIES={capabilities}")),
        );
    }
}

fn list(paths: &[String]) -> String {
    match paths {
        [one] => format!("{one} is"),
        many => format!("{} are", many.join(", ")),
    }
}
