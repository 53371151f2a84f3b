//! §10: libraries that are not found, and what follows.

use cudock_compat::evidence::Effect;

use super::support::*;

fn h100() -> cudock_compat::Target {
    gpu("H100", "580.95.05")
}

case!(
    a_program_without_its_runtime_does_not_start,
    "§10",
    sass(&["sm_90"]).runtime("12.4").missing("libcudart.so.12", Effect::Fails),
    h100(),
    fails_by("loader")
        .finding("CD0607")
        .by("L1")
        .prints("error while loading shared libraries: libcudart.so.12")
);
case!(
    torch_without_cudnn_fails_to_import,
    "§10",
    torch("2.5.1", "cu124").missing("libcudnn.so.9", Effect::Fails),
    h100(),
    fails_by("loader").finding("CD0607").prints("ImportError: libcudnn.so.9")
);
case!(
    an_extension_without_nccl_fails_to_import,
    "§10",
    extension().module(&["sm_90"], &[], 1).missing("libnccl.so.2", Effect::Fails),
    h100(),
    fails_by("loader").prints("ImportError")
);
case!(
    cudnn_8_is_not_replaced_by_cudnn_9,
    "§10",
    torch("2.3.1", "cu121").missing("libcudnn.so.8", Effect::Fails),
    h100(),
    fails_by("loader").prints("libcudnn.so.8")
);
case!(
    a_library_that_lacks_a_symbol_version_ends_the_import,
    "§10",
    torch("2.5.1", "cu124").missing_versions("libnvJitLink.so.12", "libnvJitLink.so.12"),
    h100(),
    fails_by("loader")
);
case!(
    a_c_library_that_is_too_old_ends_the_program,
    "§10",
    sass(&["sm_90"]).missing_versions("libc.so.6", "GLIBC_2.38"),
    h100(),
    fails_by("loader").finding("CD0608").by("L3").prints("version `GLIBC_2.38' not found")
);
case!(
    onnxruntime_without_cublas_uses_the_cpu,
    "§10",
    onnxruntime("1.22.0").missing("libcublasLt.so.12", Effect::UsesCpu),
    h100(),
    cpu().finding("CD0403").by("L2")
);
case!(
    onnxruntime_of_cuda_13_without_its_cufft_uses_the_cpu,
    "§10",
    onnxruntime("1.27.0").missing("libcufft.so.12", Effect::UsesCpu),
    h100(),
    cpu().finding("CD0403")
);
case!(
    tensorflow_without_cudnn_uses_the_cpu,
    "§10",
    tensorflow("2.21.0").missing("libcudnn.so.9", Effect::UsesCpu),
    h100(),
    cpu().finding("CD0403").by("L2")
);
case!(
    jax_without_its_libraries_uses_the_cpu,
    "§10",
    jax("jax-cuda13-plugin", "0.11.0").missing("libcudnn.so.9", Effect::UsesCpu),
    h100(),
    cpu()
);
case!(
    with_every_library_onnxruntime_works,
    "§10",
    onnxruntime("1.22.0"),
    h100(),
    works().by("L1").no_finding("CD0403")
);
case!(
    a_library_that_was_not_looked_for_on_the_target_is_noted,
    "§10",
    sass(&["sm_90"]).runtime("12.4").missing("libcudart.so.12", Effect::NotHere),
    h100(),
    works().finding("CD0607")
);
case!(
    what_is_missing_ends_it_though_something_else_may_be_on_the_target,
    "§10",
    sass(&["sm_90"]).missing("libcurand.so.10", Effect::NotHere).missing("libcusolver.so.11", Effect::Fails),
    h100(),
    fails_by("loader").prints("libcusolver.so.11")
);
case!(
    the_cuda_of_the_base_image_does_not_matter_to_a_wheel,
    "§10",
    torch("2.5.1", "cu124").in_image().env("NVIDIA_REQUIRE_CUDA", "cuda>=11.8"),
    gpu("H100", "535.161.08"),
    works()
);
