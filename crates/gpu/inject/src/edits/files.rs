use std::path::{Path, PathBuf};

use super::{Edits, Placement, READ_ONLY, SOCKET};
use crate::driver::{Driver, DriverKind, HostFile, MPS, Role};
use crate::request::{Capabilities, Capability, GpuRequest};

/// The variable with the directory of the service's pipes.
const MPS_VARIABLE: &str = "CUDA_MPS_PIPE_DIRECTORY";

pub(super) fn add(edits: &mut Edits, driver: &Driver, request: &GpuRequest, placement: &Placement) {
    let capabilities = &request.capabilities;
    for file in driver.files.iter().filter(|file| wanted(file, request)) {
        let options = match file.role {
            Role::Socket(_) => SOCKET,
            _ => READ_ONLY,
        };
        edits.mount(file.host.clone(), target(file, placement), &options);
        if file.role == Role::Socket(Capability::Compute) && file.inside != MPS {
            edits.environment.push((MPS_VARIABLE.to_owned(), file.inside.clone()));
        }
        if file.role == Role::Store && file.inside.ends_with("/nvidia-smi") {
            edits.link(PathBuf::from("/usr/bin/nvidia-smi"), &file.inside);
        }
    }
    let smi = driver.files.iter().any(|file| file.inside.ends_with("/nvidia-smi"));
    if capabilities.has(Capability::Utility) && !smi {
        edits.warnings.push("the driver has no nvidia-smi: the program is missed, NVML is not".to_owned());
    }
    let firmware = driver.files.iter().any(|file| file.role == Role::Firmware);
    if driver.kind == DriverKind::Linux && !firmware && capabilities.is_all() {
        // Only monitoring tools in containers look for it; the host's kernel loads its own.
        edits.warnings.push(format!("no firmware of driver {} was found", driver.suffix));
    }
}

fn wanted(file: &HostFile, request: &GpuRequest) -> bool {
    let has = |capability: Capability, capabilities: &Capabilities| {
        capabilities.has(capability)
            || capability == Capability::Graphics && capabilities.has(Capability::Display)
    };
    match file.role {
        Role::Program(capability) | Role::Socket(capability) | Role::Setting(capability) => {
            has(capability, &request.capabilities)
        }
        Role::OtherProgram => request.capabilities.is_all(),
        Role::Firmware | Role::Store => true,
        Role::Gds => request.extras.gds,
    }
}

/// The path in the container: programs are mounted in a directory of the image's `PATH`, everything
/// else has a fixed path.
fn target(file: &HostFile, placement: &Placement) -> PathBuf {
    let program = matches!(file.role, Role::Program(_) | Role::OtherProgram);
    match (placement, Path::new(&file.inside).file_name()) {
        (Placement::Directory(_), Some(name)) if program => Path::new("/usr/bin").join(name),
        _ => PathBuf::from(&file.inside),
    }
}
