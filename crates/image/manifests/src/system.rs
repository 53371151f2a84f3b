//! Recognizes packages of conda and of distributions that contain CUDA, and their CUDA version.

use cudock_facts::version::CudaVersion;

use super::is_listed;

/// conda packages of CUDA and its libraries, besides `cuda-…` and `lib…`.
const OF_CONDA: &str = "
    __cuda cuda cudatoolkit cudatoolkit-dev cudnn cupti cutensor cutensornet nccl pytorch-cuda";

/// Python bindings, which do not contain CUDA.
const BINDINGS: [&str; 4] = ["cuda-bindings", "cuda-core", "cuda-pathfinder", "cuda-python"];

const LIBRARIES: [&str; 13] = [
    "cublas",
    "cudnn",
    "cufft",
    "cufile",
    "curand",
    "cusolver",
    "cusparse",
    "cutensor",
    "nccl",
    "npp",
    "nvinfer",
    "nvjitlink",
    "nvjpeg",
];

fn is_library(name: &str) -> bool {
    let name = name.strip_prefix("lib");
    name.is_some_and(|name| LIBRARIES.iter().any(|library| name.starts_with(library)))
}

pub(super) fn is_cuda_in_conda(name: &str) -> bool {
    let has_prefix = name.starts_with("cuda-") && !BINDINGS.contains(&name);
    has_prefix || is_listed(OF_CONDA, name) || is_library(name)
}

/// Whether a distribution package is CUDA or the NVIDIA driver.
pub(super) fn is_cuda_in_system(name: &str) -> bool {
    let starts =
        ["cuda-", "nvidia-driver", "nvidia-cuda-", "nvidia-utils", "nvidia-headless", "nvidia-compute-utils"];
    let libraries = ["libnvidia-", "libcuda1", "libcudart", "tensorrt", "datacenter-gpu-manager"];
    name == "cuda" || starts.iter().chain(&libraries).any(|start| name.starts_with(start)) || is_library(name)
}

/// The CUDA version of a conda package, if its own version is that of CUDA.
pub(super) fn cuda_of_conda(name: &str, version: &str) -> Option<CudaVersion> {
    let follows_cuda = ["__cuda", "cuda", "cudatoolkit", "cudatoolkit-dev", "pytorch-cuda"].contains(&name)
        || name.starts_with("cuda-") && name != "cuda-compat";
    let first = version.split([',', '|']).next()?.trim_start_matches(['=', ' ', '~', '^']);
    follows_cuda.then(|| leading(first)).flatten()
}

/// The CUDA version in the name (`cuda-toolkit-12-4`) or version (`8.9.2.26-1+cuda12.1`) of a package.
pub(super) fn cuda_of_system(name: &str, version: Option<&str>) -> Option<CudaVersion> {
    let by_version = || leading(version?.split_once("cuda")?.1);
    let by_name = || {
        let mut numbers = name.rsplit('-');
        let (minor, major) = (numbers.next()?, numbers.next()?);
        format!("{major}.{minor}").parse().ok()
    };
    let by_own_version =
        || leading(version?).filter(|_| ["cuda", "cuda-toolkit", "cuda-runtime"].contains(&name));
    by_name().or_else(by_version).or_else(by_own_version)
}

/// `12.4` of `12.4.1`, `12.4.*` and `12.4-1`.
fn leading(text: &str) -> Option<CudaVersion> {
    let end = text.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(text.len());
    let mut parts = text.get(..end)?.split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    format!("{major}.{minor}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions_determine_the_cuda_version() {
        let cases = [
            ("cuda-toolkit-12-4", None, Some("12.4")),
            ("cuda-compat-12-4", Some("550.54.15-1"), Some("12.4")),
            ("libcudnn8", Some("8.9.2.26-1+cuda12.1"), Some("12.1")),
            ("libcudnn9-cuda-12", None, None),
            ("cuda", Some("12.4.1-1"), Some("12.4")),
            ("cuda-toolkit-12", None, None),
            ("nvidia-driver-535", None, None),
        ];
        for (name, version, cuda) in cases {
            assert!(is_cuda_in_system(name), "{name}");
            assert_eq!(cuda_of_system(name, version).map(|cuda| cuda.to_string()).as_deref(), cuda, "{name}");
        }
        assert!(!is_cuda_in_system("libcurl4"));
    }

    #[test]
    fn only_packages_versioned_like_cuda_determine_its_version() {
        let cases = [
            ("cuda-version", "=12.4", Some("12.4")),
            ("cudatoolkit", "11.8.0", Some("11.8")),
            ("pytorch-cuda", "=12.1", Some("12.1")),
            ("cuda-nvcc", "12.4.*", Some("12.4")),
            ("cuda-version", ">=12.4", None),
            ("cuda-version", "=12", None),
            ("cudnn", "=8.9", None),
        ];
        for (name, version, cuda) in cases {
            assert!(is_cuda_in_conda(name), "{name}");
            assert_eq!(cuda_of_conda(name, version).map(|cuda| cuda.to_string()).as_deref(), cuda, "{name}");
        }
        assert!(!is_cuda_in_conda("cuda-python"));
    }
}
