//! Generates CDI specifications.

use std::path::{Path, PathBuf};

use super::spec::{CdiDevice, CdiMount, CdiNode, ContainerEdits, Hook, Specification};
use crate::InjectError;
use crate::driver::Driver;
use crate::edits::{DeviceNode, Edits, Library, Link, Placement, edits};
use crate::elf::ElfClass;
use crate::request::{Capabilities, Capability, DeviceName, Devices, Extras, GpuRequest};

/// Options of a specification.
#[derive(Debug, Clone)]
pub struct CdiOptions {
    /// nvidia.com
    pub vendor: String,
    /// gpu
    pub class: String,
    /// The driver capabilities that every device gets.
    pub capabilities: Capabilities,
    pub extras: Extras,
    /// The program that hooks call.
    pub program: PathBuf,
}

impl CdiOptions {
    /// NVIDIA's names and all driver capabilities.
    pub fn new(program: PathBuf) -> Self {
        Self {
            vendor: "nvidia.com".to_owned(),
            class: "gpu".to_owned(),
            capabilities: Capabilities::all(),
            extras: Extras::default(),
            program,
        }
    }
}

/// Generates the specification of a driver, and warnings about missing parts.
///
/// The common edits are those of a container without a GPU; each device adds its own.
pub fn specification(
    driver: &Driver,
    options: &CdiOptions,
) -> Result<(Specification, Vec<String>), InjectError> {
    check_names(options)?;
    let request = |devices| GpuRequest {
        devices,
        capabilities: options.capabilities.clone(),
        imex_channels: Vec::new(),
        extras: options.extras,
    };
    let common = edits(driver, &request(Devices::None), &Placement::SameAsHost)?;
    let mut devices: Vec<CdiDevice> = Vec::new();
    let mut add = |names: Vec<String>, wanted: Devices| -> Result<(), InjectError> {
        let whole = edits(driver, &request(wanted), &Placement::SameAsHost)?;
        let own = container_edits(&without(whole, &common), options, false);
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            devices.push(CdiDevice { name, container_edits: own.clone(), ..CdiDevice::default() });
        }
        Ok(())
    };
    for gpu in &driver.gpus {
        for mig in &gpu.mig {
            let names = vec![format!("{}:{}", gpu.index, mig.index), mig.uuid.clone().unwrap_or_default()];
            add(names, Devices::Listed(vec![DeviceName::Mig(gpu.index, mig.index)]))?;
        }
        let names = vec![gpu.index.to_string(), gpu.uuid.clone().unwrap_or_default()];
        add(names, Devices::Listed(vec![DeviceName::Index(gpu.index)]))?;
    }
    add(vec!["all".to_owned()], Devices::All)?;
    let mut specification = Specification {
        kind: format!("{}/{}", options.vendor, options.class),
        devices,
        container_edits: container_edits(&common, options, true),
        ..Specification::default()
    };
    specification.cdi_version = specification.lowest_version().to_owned();
    Ok((specification, common.warnings))
}

fn check_names(options: &CdiOptions) -> Result<(), InjectError> {
    let fits = |name: &str, more: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(inner)
    };
    for (option, name) in [("--vendor", &options.vendor), ("--class", &options.class)] {
        if !fits(name, if option == "--vendor" { "_-." } else { "_-" }) {
            let why = "invalid characters for a CDI kind";
            let hint = "begin with a letter and use letters, digits, `-` and `_`, as in nvidia.com and gpu";
            return Err(InjectError::bad_request(option, name, why, hint));
        }
    }
    Ok(())
}

/// The edits of `whole` that are not in `common`.
fn without(whole: Edits, common: &Edits) -> Edits {
    fn rest<T: PartialEq>(whole: Vec<T>, common: &[T]) -> Vec<T> {
        whole.into_iter().filter(|item| !common.contains(item)).collect()
    }
    Edits {
        devices: rest(whole.devices, &common.devices),
        mounts: rest(whole.mounts, &common.mounts),
        links: rest(whole.links, &common.links),
        texts: Vec::new(),
        environment: rest(whole.environment, &common.environment),
        additional_gids: rest(whole.additional_gids, &common.additional_gids),
        libraries: rest(whole.libraries, &common.libraries),
        driver: None,
        warnings: Vec::new(),
    }
}

fn container_edits(edits: &Edits, options: &CdiOptions, common: bool) -> ContainerEdits {
    let mut hooks = Vec::new();
    let mut hook = |args: Vec<String>| {
        let last = std::iter::once("--join".to_owned());
        let args = ["cudock", "cdi-hook"].into_iter().map(str::to_owned).chain(args).chain(last).collect();
        let path = text(&options.program);
        hooks.push(Hook { hook_name: "createRuntime".to_owned(), path, args, env: Vec::new() });
    };
    if !edits.links.is_empty() {
        hook(hook_args("create-symlinks", "--link", edits.links.iter().map(link_arg)));
    }
    if !edits.libraries.is_empty() {
        let mut args = hook_args("update-ldcache", "--library", edits.libraries.iter().map(library_arg));
        args.extend(edits.driver.iter().flat_map(|driver| ["--driver".to_owned(), driver.to_string()]));
        hook(args);
    }
    if common {
        if edits.texts.iter().any(|text| text.path.starts_with("/proc")) {
            hook(vec!["disable-device-node-modification".to_owned()]);
        }
        // The hook reads the container's devices, since several devices of this file may be requested together.
        if options.capabilities.has(Capability::Graphics) && edits.devices.iter().any(is_linux_node) {
            hook(vec!["update-application-profile".to_owned()]);
        }
    }
    ContainerEdits {
        env: edits.environment.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        device_nodes: edits.devices.iter().map(node).collect(),
        hooks,
        mounts: edits.mounts.iter().map(mount).collect(),
        additional_gids: edits.additional_gids.clone(),
    }
}

fn is_linux_node(node: &DeviceNode) -> bool {
    node.container == Path::new("/dev/nvidiactl")
}

fn node(device: &DeviceNode) -> CdiNode {
    let (path, host) = (text(&device.container), text(&device.host));
    CdiNode { host_path: (host != path).then_some(host), path, ..CdiNode::default() }
}

fn mount(mount: &crate::edits::Mount) -> CdiMount {
    CdiMount {
        host_path: text(&mount.host),
        container_path: text(&mount.container),
        options: mount.options.clone(),
        kind: None,
    }
}

fn hook_args(verb: &str, option: &str, values: impl Iterator<Item = String>) -> Vec<String> {
    let pairs = values.flat_map(|value| [option.to_owned(), value]);
    std::iter::once(verb.to_owned()).chain(pairs).collect()
}

fn link_arg(link: &Link) -> String {
    format!("{}::{}", text(&link.target), text(&link.path))
}

fn library_arg(library: &Library) -> String {
    let bits = match library.class {
        ElfClass::Bits32 => "32",
        ElfClass::Bits64 => "64",
    };
    format!("{bits}::{}::{}", library.soname, text(&library.path))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
