//! CUDA libraries, by the names of their files.

use cudock_base::text::path::file_name;
use cudock_host::host::PythonEnvironment;

use crate::evidence::Component;

/// Libraries of NVIDIA that choose among their modules by the GPU.
const LIBRARIES: [(&str, &str); 28] = [
    ("libcudart", "cudart"),
    ("libcublasLt", "cublasLt"),
    ("libcublas", "cublas"),
    ("libcudnn", "cudnn"),
    ("libcufft", "cufft"),
    ("libcufile", "cufile"),
    ("libcupti", "cupti"),
    ("libcurand", "curand"),
    ("libcusolver", "cusolver"),
    ("libcusparseLt", "cusparseLt"),
    ("libcusparse", "cusparse"),
    ("libcutensor", "cutensor"),
    ("libnccl", "nccl"),
    ("libnpp", "npp"),
    ("libnvJitLink", "nvJitLink"),
    ("libnvToolsExt", "nvToolsExt"),
    ("libnvblas", "nvblas"),
    ("libnvcomp", "nvcomp"),
    ("libnvinfer", "tensorrt"),
    ("libnvonnxparser", "tensorrt"),
    ("libtensorrt_rtx", "tensorrt-rtx"),
    ("libnvjpeg", "nvjpeg"),
    ("libnvperf", "nvperf"),
    ("libnvptxcompiler", "nvptxcompiler"),
    ("libnvrtc", "nvrtc"),
    ("libnvshmem", "nvshmem"),
    ("libnvvm", "nvvm"),
    ("libcudss", "cudss"),
];

/// Which of NVIDIA's libraries a file is.
pub(crate) fn vendor_library(path: &str) -> Option<&'static str> {
    let (stem, _) = file_name(path).split_once(".so")?;
    LIBRARIES.iter().find(|(prefix, _)| stem.starts_with(prefix)).map(|(_, library)| *library)
}

/// Whether a file belongs to a CUDA toolkit: its tools and samples are not what an image is for.
pub(crate) fn is_toolkit_file(path: &str) -> bool {
    let top = ["/usr/local/cuda", "/opt/nvidia/", "/usr/lib/nvidia-cuda-toolkit"];
    top.iter().any(|prefix| path.starts_with(prefix))
        || path.contains("/nsight-")
        || vendor_library(path).is_some()
}

/// A library worth listing, with the version in its file's name; files with less of a version are links or wheels'.
pub(crate) fn component(path: &str) -> Option<Component> {
    let name = vendor_library(path)?;
    let (_, version) = file_name(path).split_once(".so.")?;
    Some(Component { name: name.to_owned(), version: version.to_owned(), path: path.to_owned() })
}

/// NVIDIA's distributions of an environment: their files carry less of a version than their metadata.
pub(crate) fn distributions(python: &PythonEnvironment) -> impl Iterator<Item = Component> {
    let of_nvidia = |name: &str| name.starts_with("nvidia-") || name.starts_with("tensorrt");
    python.distributions.iter().filter(move |found| of_nvidia(&found.name)).map(|found| Component {
        name: found.name.clone(),
        version: found.version.to_string(),
        path: found.path.clone(),
    })
}
