//! §1: what fails first is what the user sees. And what several artifacts come to together.

use cudock_compat::evidence::{Effect, Reach};
use cudock_facts::finding::Severity;
use cudock_host::host::FoundBy;

use super::support::*;

// Questions 1 and 2.
case!(
    an_image_for_another_processor_does_not_start,
    "§1.1",
    sass(&["sm_90"]).in_image().built_for("amd64"),
    gpu("GH200", "580.95.05").processor("arm64"),
    fails_by("exec format error").finding("CD0601").by("Q1")
);
case!(
    an_arm_image_does_not_start_on_an_amd64_host,
    "§1.1",
    sass(&["sm_80"]).in_image().built_for("arm64"),
    gpu("A100", "580.95.05").processor("amd64"),
    fails_by("exec format error")
);
case!(
    a_program_for_the_right_processor_runs,
    "§1.1",
    sass(&["sm_90"]).in_image().built_for("arm64"),
    gpu("GH200", "580.95.05").processor("arm64"),
    works().by("Q1")
);
case!(
    the_processor_comes_before_the_card,
    "§1",
    sass(&["sm_70"]).in_image().built_for("arm64"),
    gpu("V100", "590.48.01").processor("amd64"),
    fails_by("exec format error")
);
case!(
    the_card_comes_before_the_gate,
    "§1",
    sass(&["sm_70"]).in_image().env("NVIDIA_REQUIRE_CUDA", "cuda>=99"),
    gpu("V100", "590.48.01"),
    fails(100).finding("CD0209")
);

// Questions 3 to 6.
case!(
    what_is_not_injected_meets_no_gate,
    "§1",
    sass(&["sm_80"]).in_image().env("NVIDIA_VISIBLE_DEVICES", "void").env("NVIDIA_REQUIRE_CUDA", "cuda>=99"),
    gpu("A100", "535.161.08"),
    fails(35)
);
case!(
    with_no_card_visible_the_gate_is_still_met_first,
    "§1",
    sass(&["sm_80"]).in_image().env("NVIDIA_VISIBLE_DEVICES", "none").env("NVIDIA_REQUIRE_CUDA", "cuda>=99"),
    gpu("A100", "535.161.08"),
    refused()
);
case!(
    the_gate_comes_before_libcuda,
    "§1",
    sass(&["sm_80"])
        .in_image()
        .env("NVIDIA_REQUIRE_CUDA", "cuda>=99")
        .libcuda(compat("470.256.02"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "535.161.08"),
    refused()
);
case!(
    libcuda_comes_before_the_runtime,
    "§1",
    sass(&["sm_80"])
        .runtime("12.4")
        .in_image()
        .libcuda(compat("450.248.02"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "470.256.02"),
    fails(803)
);
case!(
    the_runtime_comes_before_the_code,
    "§1",
    sass(&["sm_90"]).runtime("12.4"),
    gpu("A100", "470.256.02"),
    fails(35)
);
case!(
    the_runtime_comes_before_the_systems_services,
    "§1",
    sass(&["sm_90"]).runtime("13.0"),
    gpu("H100", "570.124.06").machine(blocked(Some(802), "CD0110")),
    fails(35)
);
case!(
    the_systems_services_come_before_the_code,
    "§1",
    sass(&["sm_80"]).runtime("12.2"),
    gpu("H100", "535.161.08").machine(blocked(Some(802), "CD0110")),
    fails(802)
);
case!(
    the_libraries_come_before_the_code,
    "§1",
    sass(&["sm_80"]).runtime("12.2").missing("libcudart.so.12", Effect::Fails),
    gpu("H100", "535.161.08"),
    fails_by("loader")
);

// Several artifacts.
case!(
    a_cpu_onnxruntime_beside_torch_does_not_make_it_cpu,
    "2.4",
    image().with(torch("2.5.1", "cu124")).with(cpu_build("onnxruntime 1.22.0", Severity::Note)),
    gpu("H100", "550.54.15"),
    works().finding("CD0401")
);
case!(
    the_order_of_units_does_not_matter,
    "2.4",
    image().with(cpu_build("onnxruntime 1.22.0", Severity::Note)).with(torch("2.5.1", "cu124")),
    gpu("H100", "550.54.15"),
    works()
);
case!(
    an_extension_without_code_fails_the_image_its_framework_runs_in,
    "2.4",
    image().with(torch("2.5.1", "cu124")).with(extension().module(&["sm_80"], &[], 4)),
    gpu("H100", "550.54.15"),
    fails(209)
);
case!(
    an_extension_that_is_compiled_makes_the_image_wait,
    "2.4",
    image().with(torch("2.5.1", "cu124")).with(extension().module(&["sm_80"], &[("compute_80", "8.4")], 4)),
    gpu("H100", "550.54.15"),
    jit()
);
case!(
    a_framework_that_falls_back_beside_one_that_works_is_seen,
    "§10",
    image()
        .with(torch("2.5.1", "cu124"))
        .with(onnxruntime("1.22.0").missing("libcudnn.so.9", Effect::UsesCpu)),
    gpu("H100", "550.54.15"),
    cpu().finding("CD0403")
);
case!(
    two_that_work_work,
    "2.4",
    image().with(torch("2.5.1", "cu124")).with(onnxruntime("1.22.0")),
    gpu("H100", "550.54.15"),
    works()
);
case!(
    an_image_with_nothing_for_a_gpu_uses_the_cpu,
    "2.4",
    image(),
    gpu("H100", "550.54.15"),
    cpu().finding("CD0609")
);
case!(
    an_image_that_was_partly_read_is_not_known,
    "2.4",
    image().partly_read(),
    gpu("H100", "550.54.15"),
    unknown().finding("CD0610")
);
case!(
    a_cpu_build_beside_something_unread_is_unknown,
    "2.4",
    image().with(cpu_build("onnxruntime 1.22.0", Severity::Note)).partly_read(),
    gpu("H100", "550.54.15"),
    unknown().finding("CD0610")
);
case!(
    a_library_that_something_unread_may_bring_is_not_known_to_be_missing,
    "2.4",
    image().with(onnxruntime("1.22.0").missing("libcublasLt.so.12", Effect::UsesCpu)).partly_read(),
    gpu("H100", "550.54.15"),
    unknown().finding("CD0403").finding("CD0610")
);
case!(
    code_that_does_not_fit_fails_whatever_was_not_read,
    "2.4",
    image().with(sass(&["sm_80"])).partly_read(),
    gpu("V100", "550.54.15"),
    fails(209).finding("CD0501").finding("CD0610")
);
