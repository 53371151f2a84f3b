use std::path::{Path, PathBuf};

use super::spec::{ContainerEdits, Device, Hook, Mount, Node, Specification};
use crate::InjectError;
use crate::driver::Driver;
use crate::edits::{DeviceNode, Edits, Library, Link, Placement, Word, edits};
use crate::request::{Capabilities, Capability, DeviceName, Devices, Extras, GpuRequest};

/// How a specification is written.
#[derive(Debug, Clone)]
pub struct Options {
    /// nvidia.com
    pub vendor: String,
    /// gpu
    pub class: String,
    /// What of the driver goes in. Whoever asks for a device by CDI gets all of it.
    pub capabilities: Capabilities,
    /// What is given only when it is asked for.
    pub extras: Extras,
    /// The program that hooks call: this one, wherever it is installed.
    pub program: PathBuf,
}

impl Options {
    /// NVIDIA's names, everything of the driver, and `program` for the hooks.
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

/// A driver as a specification, and what is missing from it.
///
/// What all devices need is what a container without a GPU would get; a device is what is added to that.
pub fn specification(
    driver: &Driver,
    options: &Options,
) -> Result<(Specification, Vec<String>), InjectError> {
    names(options)?;
    let request = |devices| GpuRequest {
        devices,
        capabilities: options.capabilities.clone(),
        imex_channels: Vec::new(),
        extras: options.extras,
    };
    let common = edits(driver, &request(Devices::None), &Placement::SameAsHost)?;
    let mut devices: Vec<Device> = Vec::new();
    let mut add = |names: Vec<String>, wanted: Devices| -> Result<(), InjectError> {
        let whole = edits(driver, &request(wanted), &Placement::SameAsHost)?;
        let own = written(&without(whole, &common), options, false);
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            devices.push(Device { name, container_edits: own.clone(), ..Device::default() });
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
        container_edits: written(&common, options, true),
        ..Specification::default()
    };
    specification.cdi_version = specification.lowest_version().to_owned();
    Ok((specification, common.warnings))
}

/// Vendors are like host names, classes like file names.
fn names(options: &Options) -> Result<(), InjectError> {
    let fits = |name: &str, more: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(inner)
    };
    for (option, name) in [("--vendor", &options.vendor), ("--class", &options.class)] {
        if !fits(name, if option == "--vendor" { "_-." } else { "_-" }) {
            return Err(InjectError::BadRequest {
                wherein: option.to_owned(),
                text: name.clone(),
                why: "letters that no CDI kind may have",
                hint: "begin with a letter, go on with letters, digits, `-` and `_`, as in nvidia.com and gpu",
            });
        }
    }
    Ok(())
}

/// What `whole` has and `common` has not.
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

fn written(edits: &Edits, options: &Options, common: bool) -> ContainerEdits {
    let mut hooks = Vec::new();
    let mut hook = |words: Vec<String>| {
        let last = std::iter::once("--join".to_owned());
        let args = ["cudock", "cdi-hook"].into_iter().map(str::to_owned).chain(words).chain(last).collect();
        let path = shown(&options.program);
        hooks.push(Hook { hook_name: "createRuntime".to_owned(), path, args, env: Vec::new() });
    };
    if !edits.links.is_empty() {
        hook(words("create-symlinks", "--link", edits.links.iter().map(link_word)));
    }
    if !edits.libraries.is_empty() {
        let mut words = words("update-ldcache", "--library", edits.libraries.iter().map(library_word));
        words.extend(edits.driver.iter().flat_map(|driver| ["--driver".to_owned(), driver.to_string()]));
        hook(words);
    }
    if common {
        if edits.texts.iter().any(|text| text.path.starts_with("/proc")) {
            hook(vec!["disable-device-node-modification".to_owned()]);
        }
        // It looks at the container's devices itself: two devices of this file may be asked for together.
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

fn node(device: &DeviceNode) -> Node {
    let (path, host) = (shown(&device.container), shown(&device.host));
    Node { host_path: (host != path).then_some(host), path, ..Node::default() }
}

fn mount(mount: &crate::edits::Mount) -> Mount {
    Mount {
        host_path: shown(&mount.host),
        container_path: shown(&mount.container),
        options: mount.options.clone(),
        kind: None,
    }
}

fn words(verb: &str, option: &str, values: impl Iterator<Item = String>) -> Vec<String> {
    let pairs = values.flat_map(|value| [option.to_owned(), value]);
    std::iter::once(verb.to_owned()).chain(pairs).collect()
}

fn link_word(link: &Link) -> String {
    format!("{}::{}", shown(&link.target), shown(&link.path))
}

fn library_word(library: &Library) -> String {
    let word = match library.word {
        Word::Bits32 => "32",
        Word::Bits64 => "64",
    };
    format!("{word}::{}::{}", library.soname, shown(&library.path))
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
