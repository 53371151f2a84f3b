//! §13: the worked examples, by their numbers.

use cudock_compat::evidence::Reach;
use cudock_compat::{Target, TargetMachine};
use cudock_facts::finding::Severity;
use cudock_host::host::FoundBy;

use super::gate_images::{CUDA_12_4_1, CUDA_12_6_3};
use super::support::*;

/// A program of CUDA 12.4 in the image of its release.
fn image_12_4_1(target: &str) -> Given {
    sass(&[target]).runtime("12.4").in_image().env("NVIDIA_REQUIRE_CUDA", CUDA_12_4_1)
}

case!(
    e01_torch_2_0_1_of_pypi_has_nothing_for_an_h100,
    "1",
    torch("2.0.1", "cu117"),
    gpu("H100", "535.161.08"),
    fails(209).finding("CD0501")
);
case!(
    e02_torch_2_0_1_cu118_runs_on_an_h100,
    "2",
    torch("2.0.1", "cu118"),
    gpu("H100", "535.161.08"),
    works()
);
case!(
    e02_but_the_h100_itself_needs_a_driver_that_knows_it,
    "2",
    torch("2.0.1", "cu118"),
    gpu("H100", "450.80.02"),
    fails(100)
);
case!(e03_torch_2_5_1_fails_on_470, "3", torch("2.5.1", "cu124"), gpu("A100", "470.256.02"), fails(35));
case!(
    e03_compat_12_4_makes_470_do,
    "3",
    torch("2.5.1", "cu124").in_image().libcuda(compat("550.54.15"), Reach::CompatDirectory),
    gpu("A100", "470.256.02"),
    works().finding("CD0219")
);
case!(e04_torch_2_11_fails_on_570, "4", torch("2.11.0", "cu130"), gpu("A100", "570.124.06"), fails(35));
case!(e04_the_cu128_build_runs_on_570, "4", torch("2.11.0", "cu128"), gpu("A100", "570.124.06"), works());
case!(
    e04_compat_13_makes_570_do,
    "4",
    torch("2.11.0", "cu130").in_image().libcuda(compat("580.65.06"), Reach::CompatDirectory),
    gpu("A100", "570.124.06"),
    works()
);
case!(
    e05_torch_2_11_has_nothing_for_a_v100,
    "5",
    torch("2.11.0", "cu130"),
    gpu("V100", "580.95.05"),
    fails(209)
);
case!(e05_the_cu126_build_runs_on_a_v100, "5", torch("2.11.0", "cu126"), gpu("V100", "580.95.05"), works());
case!(e06_driver_590_ignores_a_v100, "6", torch("2.5.1", "cu124"), gpu("V100", "590.48.01"), fails(100));
case!(e07_torch_2_1_runs_on_an_l4, "7", torch("2.1.0", "cu121"), gpu("L4", "535.161.08"), works().by("S1"));
case!(
    e08_torch_2_6_has_nothing_for_a_5090,
    "8",
    torch("2.6.0", "cu124"),
    gpu("RTX-5090", "570.124.06"),
    fails(209)
);
case!(
    e08_torch_2_7_cu128_runs_on_a_5090,
    "8",
    torch("2.7.0", "cu128"),
    gpu("RTX-5090", "570.124.06"),
    works()
);
case!(e08_torch_2_8_runs_on_a_5090, "8", torch("2.8.0", "cu128"), gpu("RTX-5090", "570.124.06"), works());
case!(e09_torch_2_8_runs_on_a_b300, "9", torch("2.8.0", "cu128"), gpu("B300", "580.95.05"), works());
case!(
    e09_its_kernels_for_the_b200_alone_do_not,
    "9",
    torch_read("2.8.0", "12.8").module(&["sm_90", "sm_100", "sm_120"], &[], 476).module(
        &["sm_100a"],
        &[],
        59
    ),
    gpu("B300", "580.95.05"),
    works().finding("CD0504").by("A3")
);
case!(
    e10_onnxruntime_1_31_1_has_nothing_for_a_b200,
    "10",
    onnxruntime("1.31.1"),
    gpu("B200", "580.95.05"),
    fails(209)
);
case!(
    e11_onnxruntime_1_27_has_nothing_for_a_b300,
    "11",
    onnxruntime("1.27.0"),
    gpu("B300", "580.95.05"),
    fails(209)
);
case!(
    e12_machine_code_of_12_8_runs_on_525_60_13,
    "12",
    sass(&["sm_86"]).runtime("12.8").toolkit("12.8"),
    gpu("A10", "525.60.13"),
    works().by("D3")
);
case!(
    e13_ptx_of_12_8_does_not,
    "13",
    ptx(&[("compute_80", "8.7")]).runtime("12.8").toolkit("12.8"),
    gpu("A10", "525.60.13"),
    fails(222)
);
case!(
    e14_ptx_of_12_2_is_compiled_for_an_h100,
    "14",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "8.2")]).runtime("12.2"),
    gpu("H100", "535.161.08"),
    jit().by("P1")
);
case!(
    e15_image_12_4_1_is_refused_by_545,
    "15",
    image_12_4_1("sm_86"),
    gpu("RTX-3090", "545.29.06"),
    refused()
);
case!(
    e15_it_starts_with_the_gate_switched_off,
    "15",
    image_12_4_1("sm_86").env("NVIDIA_DISABLE_REQUIRE", "1"),
    gpu("RTX-3090", "545.29.06"),
    works().by("D3")
);
case!(
    e15_it_starts_with_cdi,
    "15",
    image_12_4_1("sm_86"),
    gpu("RTX-3090", "545.29.06").cdi(),
    works().by("G2").by("D3")
);
case!(
    e16_image_12_6_3_is_refused_by_525,
    "16",
    torch("2.7.1", "cu126").in_image().env("NVIDIA_REQUIRE_CUDA", CUDA_12_6_3),
    gpu("T4", "525.105.17"),
    refused()
);
case!(
    e16_an_image_without_a_gate_starts_and_works,
    "16",
    torch("2.7.1", "cu126").in_image(),
    gpu("T4", "525.105.17"),
    works()
);
case!(
    e17_a_4090_is_given_compat_and_refuses_it,
    "17",
    image_12_4_1("sm_89").libcuda(compat("550.54.15"), Reach::CompatDirectory),
    gpu("RTX-4090", "535.161.08"),
    fails(804)
);
case!(e17_without_compat_it_works, "17", image_12_4_1("sm_89"), gpu("RTX-4090", "535.161.08"), works());
case!(
    e18_older_compat_on_the_library_path_mismatches,
    "18",
    sass(&["sm_80"])
        .runtime("12.4")
        .in_image()
        .libcuda(compat("550.54.15"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "580.95.05"),
    fails(803).by("C3")
);
case!(
    e19_a_stopped_fabric_manager_stops_every_program,
    "19",
    sass(&["sm_90"]).runtime("12.2"),
    gpu("H100-SXM", "535.161.08").machine(blocked(Some(802), "CD0110")),
    fails(802)
);
case!(
    e20_a_container_without_a_gpu_has_no_driver,
    "20",
    sass(&["sm_90"]).runtime("12.2").in_image(),
    gpu("H100", "535.161.08").machine(TargetMachine { libcuda: None, ..healthy() }),
    fails(35).by("D6")
);
case!(
    e20_torch_in_it_is_answered_35,
    "20",
    torch("2.5.1", "cu124").in_image(),
    gpu("H100", "535.161.08").machine(TargetMachine { libcuda: None, ..healthy() }),
    answers(35)
);
case!(
    e21_torch_2_10_for_arm_is_a_cpu_build,
    "21",
    cpu_build("torch 2.10.0", Severity::Error).in_image().built_for("arm64"),
    gpu("GB200", "580.95.05").processor("arm64"),
    cpu().finding("CD0401")
);
case!(
    e22_code_of_13_0_does_not_run_on_orin,
    "22",
    sass(&["sm_80"]).runtime("13.0").toolkit("13.0"),
    gpu("AGX-Orin", "595.91.07"),
    fails(209)
);
case!(
    e22_code_of_13_2_runs_on_orin,
    "22",
    sass(&["sm_80"]).runtime("13.2").toolkit("13.2"),
    gpu("AGX-Orin", "595.91.07"),
    works().by("S2")
);
case!(
    e23_no_cuda_image_runs_on_an_mi300x,
    "23",
    torch("2.11.0", "cu130").in_image(),
    Target::of_gpu(facts(), "MI300X", None).unwrap(),
    fails_by("no CUDA device").finding("CD0105").by("N1")
);
