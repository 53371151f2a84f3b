//! The configuration of an image: how it starts, and what it says about itself.

use std::collections::{BTreeMap, BTreeSet};

use cudock_base::{Arch, Timestamp};
use cudock_facts::version::Capability;
use cudock_image::Platform;
use cudock_image::write::{History, NewConfig};
use cudock_project::ImageBuild;

use crate::input::RUNTIME;
use crate::layers::WrittenLayer;

/// The user of programs that nothing else was said about, as in other minimal images.
pub(crate) const USER: (u32, u32) = (65532, 65532);
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where `cudock serve` listens.
pub(crate) const SERVE_PORT: u16 = 8000;
/// The directory of the project in an image.
pub(crate) const APP: &str = "app";

/// Inputs of the image configuration.
#[derive(Debug)]
pub(crate) struct ConfigInput<'a> {
    pub(crate) title: Option<&'a str>,
    pub(crate) image: &'a ImageBuild,
    pub(crate) arch: Arch,
    pub(crate) time: u64,
    pub(crate) cuda: Option<&'a str>,
    /// The oldest driver that the CUDA version runs on.
    pub(crate) minimum_driver: Option<String>,
    pub(crate) targets: &'a [Capability],
    /// The digest of the lock file.
    pub(crate) lock: String,
    /// `libonnxruntime.so.1.31.1`, in an image that serves a model by itself.
    pub(crate) runtime: Option<&'a str>,
    pub(crate) entrypoint: Vec<String>,
    pub(crate) layers: &'a [WrittenLayer],
}

/// The configuration of an image.
pub(crate) fn config(input: &ConfigInput<'_>) -> NewConfig {
    let created = Timestamp::from_millis(input.time.saturating_mul(1000)).to_string();
    let mut env: BTreeMap<String, String> = BTreeMap::from([("PATH".to_owned(), PATH.to_owned())]);
    let mut set = |name: &str, value: String| drop(env.insert(name.to_owned(), value));
    set("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt".to_owned());
    set("HOME", "/home/nonroot".to_owned());
    if let Some(library) = input.runtime {
        set("CUDOCK_ONNXRUNTIME", format!("/{RUNTIME}/{library}"));
    }
    if !input.targets.is_empty() {
        set("NVIDIA_VISIBLE_DEVICES", "all".to_owned());
        set("NVIDIA_DRIVER_CAPABILITIES", "compute,utility".to_owned());
        if let Some(cuda) = input.cuda {
            // Libraries run on every driver of their CUDA major: the image has machine code and needs no newer compiler.
            let major = cuda.split('.').next().unwrap_or(cuda);
            set("NVIDIA_REQUIRE_CUDA", format!("cuda>={major}.0"));
            set("CUDA_VERSION", cuda.to_owned());
        }
    }
    env.extend(input.image.env.clone());
    let user = input.image.user.clone().unwrap_or_else(|| format!("{}:{}", USER.0, USER.1));
    let ports = if input.runtime.is_some() && input.image.ports.is_empty() {
        vec![SERVE_PORT]
    } else {
        input.image.ports.clone()
    };
    NewConfig {
        created: Some(created.clone()),
        env: env.into_iter().collect(),
        entrypoint: input.entrypoint.clone(),
        working_dir: input.image.workdir.clone().unwrap_or_else(|| format!("/{APP}")),
        user,
        exposed_ports: ports.iter().map(|port| format!("{port}/tcp")).collect::<BTreeSet<_>>(),
        labels: labels(input, &created),
        history: history(input, &created),
        ..NewConfig::new(Platform::linux(input.arch.oci_name()))
    }
}

fn labels(input: &ConfigInput<'_>, created: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        ("org.opencontainers.image.created".to_owned(), created.to_owned()),
        ("io.cudock.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("io.cudock.lock".to_owned(), input.lock.clone()),
    ]);
    labels.extend(input.title.map(|title| ("org.opencontainers.image.title".to_owned(), title.to_owned())));
    if !input.targets.is_empty() {
        labels.insert("io.cudock.gpu".to_owned(), architectures(input.targets));
        labels.extend(input.cuda.map(|cuda| ("io.cudock.cuda".to_owned(), cuda.to_owned())));
        labels.extend(
            input.minimum_driver.clone().map(|driver| ("io.cudock.driver.minimum".to_owned(), driver)),
        );
    }
    labels
}

/// `sm_75,sm_90`
pub(crate) fn architectures(targets: &[Capability]) -> String {
    targets.iter().map(|one| format!("sm_{}", one.number())).collect::<Vec<_>>().join(",")
}

fn history(input: &ConfigInput<'_>, created: &str) -> Vec<History> {
    let layers = input.layers.iter().map(|layer| History {
        created: Some(created.to_owned()),
        created_by: format!("cudock build: {}", group_name(layer.group)),
        comment: String::new(),
        empty_layer: false,
    });
    layers.collect()
}

/// The name of a group in reports.
pub(crate) fn group_name(group: cudock_lock::LayerGroup) -> &'static str {
    use cudock_lock::LayerGroup::{Cuda, Dependencies, Framework, Model, Program, Python, System};
    match group {
        System => "system",
        Python => "python",
        Cuda => "cuda",
        Framework => "framework",
        Dependencies => "dependencies",
        Model => "model",
        Program => "program",
    }
}
