//! Which layer a wheel belongs to.

use crate::file::LayerGroup;

/// Frameworks, each larger than everything else together and changed rarely.
const FRAMEWORKS: &[&str] = &[
    "bitsandbytes",
    "cupy",
    "cupy-cuda11x",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "flash-attn",
    "flashinfer-python",
    "jax",
    "jaxlib",
    "onnxruntime",
    "onnxruntime-gpu",
    "paddlepaddle-gpu",
    "tensorflow",
    "tensorrt",
    "torch",
    "torchaudio",
    "torchvision",
    "triton",
    "vllm",
    "xformers",
];

pub(super) fn of(name: &str) -> LayerGroup {
    if name.starts_with("nvidia-") || name.starts_with("tensorrt-cu") || name == "cuda-toolkit" {
        LayerGroup::Cuda
    } else if FRAMEWORKS.contains(&name) || name.starts_with("jax-cuda") {
        LayerGroup::Framework
    } else {
        LayerGroup::Dependencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_packages_have_their_own_layers() {
        assert_eq!(of("nvidia-cudnn-cu13"), LayerGroup::Cuda);
        assert_eq!(of("torch"), LayerGroup::Framework);
        assert_eq!(of("requests"), LayerGroup::Dependencies);
    }
}
