//! Frameworks by the tables and by their files: A3, A4, and builds that cannot use the card.

use cudock_compat::evidence::Code;
use cudock_facts::finding::Severity;
use cudock_host::frameworks::Support;

use super::support::*;

/// torch with general kernels beside a few for one kind of card, as 2.15 is.
fn torch_with_special_kernels() -> Part {
    torch_read("2.15.0", "13.2")
        .module(&["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"], &[], 476)
        .module(&["sm_100a"], &[], 59)
        .module(&["sm_103f"], &[], 59)
}

/// A release later than the tables.
fn not_in_the_tables() -> Part {
    torch_read("9.9.0", "13.4").support(Support::NotInTables { fix: String::new() })
}

// torch.
case!(
    torch_2_7_runs_on_an_l4_by_sm_86,
    "S1",
    torch("2.7.1", "cu126"),
    gpu("L4", "535.161.08"),
    works().by("S1")
);
case!(torch_2_7_has_nothing_for_a_b200, "S1", torch("2.7.1", "cu126"), gpu("B200", "570.124.06"), fails(209));
case!(torch_2_7_cu128_runs_on_a_b200, "S1", torch("2.7.1", "cu128"), gpu("B200", "570.124.06"), works());
case!(
    torch_2_11_cu128_has_a_gap_at_no_card_of_7_x,
    "S1",
    torch("2.11.0", "cu128"),
    gpu("T4", "570.124.06"),
    works()
);
case!(torch_2_8_runs_on_a_gb10, "S1", torch("2.8.0", "cu128"), gpu("GB10", "580.95.05"), works());
case!(torch_2_12_cu126_keeps_the_v100, "§9", torch("2.12.1", "cu126"), gpu("V100", "580.95.05"), works());
case!(torch_2_8_cu126_keeps_the_m60, "§9", torch("2.8.0", "cu126"), gpu("M60", "580.95.05"), works());
case!(torch_2_8_cu128_drops_the_m60, "§9", torch("2.8.0", "cu128"), gpu("M60", "580.95.05"), fails(209));
case!(torch_for_arm_runs_on_a_gh200, "2.4", torch_for_arm("2.11.0"), gpu("GH200", "580.95.05"), works());
case!(torch_for_arm_runs_on_thor, "S1", torch_for_arm("2.11.0"), gpu("Thor-T5000", "580.95.05"), works());
case!(
    torch_2_13_for_arm_refuses_orin,
    "S2",
    torch_for_arm("2.13.0"),
    gpu("AGX-Orin", "595.91.07"),
    fails(209)
);
case!(torch_2_15_for_arm_runs_on_orin, "S2", torch_for_arm("2.15.0"), gpu("AGX-Orin", "595.91.07"), works());
case!(
    a_wheel_whose_ptx_is_not_in_the_tables_is_not_judged_by_its_machine_code_alone,
    "2.4",
    torch("2.14.1", "cu134"),
    gpu("Thor-T5000", "615.31"),
    unknown().finding("CD0408")
);
case!(
    a_wheel_whose_code_is_not_in_the_tables_is_not_known,
    "2.4",
    torch("2.11.0", "cu129"),
    gpu("A100", "580.95.05"),
    unknown().finding("CD0408")
);
case!(
    a_wheel_whose_code_is_not_in_the_tables_still_needs_its_driver,
    "D2",
    torch("2.11.0", "cu129"),
    gpu("A100", "470.256.02"),
    fails(35)
);

// A3: the general kernels decide.
case!(
    special_kernels_do_not_keep_torch_from_a_b300,
    "A3",
    torch_read("2.8.0", "12.8").module(&["sm_90", "sm_100", "sm_120"], &[], 476).module(
        &["sm_100a"],
        &[],
        59
    ),
    gpu("B300", "580.95.05"),
    works().finding("CD0504").by("A3")
);
case!(
    special_kernels_do_not_keep_torch_from_an_h100,
    "A3",
    torch_with_special_kernels(),
    gpu("H100", "580.95.05"),
    works().finding("CD0504")
);
case!(
    special_kernels_do_not_make_torch_run_where_the_general_do_not,
    "A3",
    torch_read("2.6.0", "12.4").module(&["sm_80", "sm_90"], &[], 476).module(&["sm_100a"], &[], 59),
    gpu("B200", "570.124.06"),
    fails(209)
);
case!(
    where_all_kernels_load_no_gap_is_named,
    "A3",
    torch_read("2.8.0", "12.8").module(&["sm_90", "sm_100", "sm_120"], &[], 476).module(
        &["sm_100a"],
        &[],
        59
    ),
    gpu("B200", "580.95.05"),
    works().no_finding("CD0504")
);

// A4: onnxruntime and its exact targets.
case!(
    onnxruntime_1_31_runs_on_an_h100,
    "A4",
    onnxruntime("1.31.1"),
    gpu("H100", "580.95.05"),
    works().by("A1")
);
case!(
    onnxruntime_1_31_runs_on_an_rtx_pro_6000,
    "A4",
    onnxruntime("1.31.1"),
    gpu("RTX-PRO-6000-SE", "580.95.05"),
    works().by("A1")
);
case!(
    onnxruntime_1_29_has_nothing_for_a_b300,
    "A4",
    onnxruntime("1.29.0"),
    gpu("B300", "580.95.05"),
    fails(209)
);
case!(
    onnxruntime_1_30_has_nothing_for_a_gb10,
    "A4",
    onnxruntime("1.30.0"),
    gpu("GB10", "580.95.05"),
    fails(209)
);
case!(onnxruntime_1_27_runs_on_a_b200, "A1", onnxruntime("1.27.0"), gpu("B200", "580.95.05"), works());
case!(onnxruntime_1_27_is_compiled_for_a_gb10, "P1", onnxruntime("1.27.0"), gpu("GB10", "580.95.05"), jit());
case!(onnxruntime_1_22_is_compiled_for_a_b200, "P1", onnxruntime("1.22.0"), gpu("B200", "570.124.06"), jit());
case!(
    onnxruntime_1_26_runs_on_an_a10_with_525,
    "D2",
    onnxruntime("1.26.0"),
    gpu("A10", "525.60.13"),
    works()
);
case!(onnxruntime_1_27_needs_580, "D2", onnxruntime("1.27.0"), gpu("A100", "575.57.08"), fails(35));
case!(
    onnxruntime_1_20_is_compiled_for_an_h100,
    "P1",
    onnxruntime("1.20.2"),
    gpu("H100", "535.161.08"),
    jit()
);
case!(
    onnxruntime_1_20_is_too_new_for_525_on_an_h100,
    "P2",
    onnxruntime("1.20.2"),
    gpu("H100", "525.147.05"),
    fails(222)
);

// TensorFlow and JAX.
case!(tensorflow_2_21_is_compiled_for_a_b200, "P1", tensorflow("2.21.0"), gpu("B200", "570.124.06"), jit());
case!(
    tensorflow_2_21_is_compiled_for_a_5090,
    "P1",
    tensorflow("2.21.0"),
    gpu("RTX-5090", "570.124.06"),
    jit()
);
case!(
    tensorflow_2_20_has_ptx_for_hopper_alone,
    "A1",
    tensorflow("2.20.0"),
    gpu("RTX-5090", "580.95.05"),
    fails(209).finding("CD0501")
);
case!(tensorflow_2_20_is_compiled_for_an_h100, "P1", tensorflow("2.20.0"), gpu("H100", "580.95.05"), jit());
case!(
    tensorflow_2_18_is_compiled_for_an_h100_by_550,
    "P2",
    tensorflow("2.18.0"),
    gpu("H100", "550.54.15"),
    jit()
);
case!(
    tensorflow_2_16_is_compiled_for_an_h100_by_535,
    "P2",
    tensorflow("2.16.1"),
    gpu("H100", "535.161.08"),
    jit()
);
case!(tensorflow_2_21_runs_on_a_t4_by_sm_70, "S1", tensorflow("2.21.0"), gpu("T4", "535.161.08"), works());
case!(tensorflow_2_15_is_compiled_for_an_h100, "P1", tensorflow("2.15.1"), gpu("H100", "535.161.08"), jit());
case!(
    tensorflow_2_15_is_too_new_for_525_on_an_h100,
    "P2",
    tensorflow("2.15.1"),
    gpu("H100", "525.147.05"),
    fails(222)
);
case!(jax_of_cuda_13_runs_on_a_t4, "S1", jax("jax-cuda13-plugin", "0.11.0"), gpu("T4", "580.95.05"), works());
case!(
    jax_of_cuda_13_runs_on_thor,
    "S1",
    jax("jax-cuda13-plugin", "0.11.0"),
    gpu("Thor-T5000", "580.95.05"),
    works()
);
case!(
    jax_of_cuda_12_runs_on_thor_by_sm_101,
    "S3",
    jax("jax-cuda12-plugin", "0.11.0"),
    gpu("Thor-T5000", "580.95.05"),
    works()
);
case!(
    jax_of_cuda_13_fails_on_575,
    "D2",
    jax("jax-cuda13-plugin", "0.11.0"),
    gpu("A100", "575.57.08"),
    fails(35)
);
case!(
    jax_of_cuda_13_has_nothing_for_a_v100,
    "§9",
    jax("jax-cuda13-plugin", "0.11.0"),
    gpu("V100", "580.95.05"),
    fails(209)
);

// Builds that cannot use the card, or are not known.
case!(
    a_cpu_build_uses_the_cpu,
    "§13.21",
    cpu_build("torch 2.10.0", Severity::Error),
    gpu("GH200", "580.95.05"),
    cpu().finding("CD0401")
);
case!(
    a_rocm_build_uses_no_nvidia_card,
    "§13.23",
    rocm_build("torch 2.10.0"),
    gpu("H100", "580.95.05"),
    cpu().finding("CD0409")
);
case!(
    a_release_that_is_not_in_the_tables_is_not_known,
    "2.4",
    not_in_the_tables().code(Code::Unknown("not in the tables".to_owned())),
    gpu("H100", "580.95.05"),
    unknown().finding("CD0408")
);
case!(
    a_package_without_a_version_is_not_known,
    "2.4",
    app()
        .support(Support::NotInTables { fix: String::new() })
        .code(Code::Unknown("no version is named".to_owned())),
    gpu("H100", "580.95.05"),
    unknown().finding("CD0410")
);
case!(
    the_files_of_a_release_that_is_not_in_the_tables_decide_against_it,
    "2.4",
    not_in_the_tables().module(&["sm_80"], &[], 10),
    gpu("H100", "580.95.05"),
    fails(209)
);
case!(
    the_files_of_a_release_that_is_not_in_the_tables_decide_for_it,
    "2.4",
    not_in_the_tables().module(&["sm_90"], &[], 10),
    gpu("H100", "580.95.05"),
    works()
);
