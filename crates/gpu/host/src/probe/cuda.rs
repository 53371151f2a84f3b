use std::collections::BTreeMap;

use cudock_facts::version::{CudaVersion, DriverVersion};

use crate::host::{CudaToolkit, FoundBy};
use crate::loader::Directory;
use crate::{Files, Root};

/// Toolkits in `/usr/local`, without duplicates through symlinks.
pub(super) fn toolkits(root: &Root) -> Vec<CudaToolkit> {
    let mut toolkits: Vec<CudaToolkit> = Vec::new();
    let names =
        root.names("/usr/local").into_iter().filter(|name| *name == "cuda" || name.starts_with("cuda-"));
    for name in names {
        let Some(path) = root.real(&format!("/usr/local/{name}")) else { continue };
        let nvcc = root.is_program(&format!("{path}/bin/nvcc"));
        let has_libraries =
            ["lib64", "targets", "lib"].iter().any(|inside| root.is_dir(&format!("{path}/{inside}")));
        if (nvcc || has_libraries) && !toolkits.iter().any(|known| known.path == path) {
            toolkits.push(CudaToolkit {
                version: version(root, &path),
                compat: compat(root, &path),
                nvcc,
                path,
            });
        }
    }
    toolkits
}

/// The version in `version.json`, in the older `version.txt`, or in the name of the directory.
fn version(root: &Root, path: &str) -> Option<CudaVersion> {
    let minor = |text: &str| -> Option<CudaVersion> {
        let mut parts = text.trim().split('.');
        format!("{}.{}", parts.next()?, parts.next()?).parse().ok()
    };
    let json = root.text(&format!("{path}/version.json")).and_then(|text| {
        let value: serde_json::Value = serde_json::from_str(&text).ok()?;
        minor(value.get("cuda")?.get("version")?.as_str()?)
    });
    let text = || minor(root.line(&format!("{path}/version.txt"))?.strip_prefix("CUDA Version ")?);
    json.or_else(text).or_else(|| minor(path.rsplit_once("/cuda-")?.1))
}

/// The libcuda of cuda-compat, which every nvidia/cuda image contains.
fn compat(root: &Root, path: &str) -> Option<DriverVersion> {
    let names = root.names(&format!("{path}/compat"));
    names.iter().filter_map(|name| name.strip_prefix("libcuda.so.")?.parse().ok()).max()
}

/// Libraries of CUDA, cuDNN, NCCL and TensorRT that the loader finds, by SONAME. Names without a version are for linking and
/// ignored.
pub(super) fn libraries(root: &Root, directories: &[Directory]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for directory in directories.iter().filter(|directory| directory.found_by != FoundBy::NotSearched) {
        for name in root.names(&directory.path) {
            let is_soname = name.split_once(".so.").is_some_and(|(stem, version)| {
                let known = ["libcudart", "libcublas", "libcufft", "libcurand", "libcusolver", "libcusparse"]
                    .iter()
                    .chain(&["libcudnn", "libnccl", "libnvinfer", "libnvrtc", "libnvJitLink", "libcupti"])
                    .any(|prefix| stem.starts_with(prefix));
                known && version.split('.').count() <= 2
            });
            if is_soname && !found.contains_key(&name) {
                let path = format!("{}/{name}", directory.path);
                found.insert(name, path);
            }
        }
    }
    found
}
