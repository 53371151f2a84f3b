//! §2.1, §2.2 and §2.4: machine code, `a` and `f` targets, which module decides.

use cudock_compat::evidence::Role;

use super::support::*;

// S1 and its table, S4.
case!(
    an_sm_70_binary_runs_on_its_own_card,
    "S1",
    sass(&["sm_70"]),
    gpu("V100", "535.161.08"),
    works().by("S1")
);
case!(an_sm_70_binary_runs_on_a_t4, "S4", sass(&["sm_70"]), gpu("T4", "535.161.08"), works().by("S1"));
case!(
    an_sm_70_binary_does_not_run_on_an_a100,
    "S4",
    sass(&["sm_70"]),
    gpu("A100", "535.161.08"),
    fails(209).finding("CD0501")
);
case!(an_sm_80_binary_runs_on_an_a30, "S4", sass(&["sm_80"]), gpu("A30", "535.161.08"), works());
case!(an_sm_80_binary_runs_on_an_a10, "S4", sass(&["sm_80"]), gpu("A10", "535.161.08"), works().by("S1"));
case!(an_sm_80_binary_runs_on_an_l4, "S4", sass(&["sm_80"]), gpu("L4", "535.161.08"), works().by("S1"));
case!(
    an_sm_80_binary_does_not_run_on_an_h100,
    "S4",
    sass(&["sm_80"]),
    gpu("H100", "535.161.08"),
    fails(209).prints("cudaErrorNoKernelImageForDevice").by("R1")
);
case!(an_sm_86_binary_runs_on_an_l40s, "S4", sass(&["sm_86"]), gpu("L40S", "535.161.08"), works());
case!(an_sm_86_binary_does_not_run_on_an_a100, "S4", sass(&["sm_86"]), gpu("A100", "535.161.08"), fails(209));
case!(an_sm_89_binary_runs_on_a_4090, "S4", sass(&["sm_89"]), gpu("RTX-4090", "535.161.08"), works());
case!(an_sm_89_binary_does_not_run_on_an_a10, "S4", sass(&["sm_89"]), gpu("A10", "535.161.08"), fails(209));
case!(an_sm_89_binary_does_not_run_on_an_a100, "S4", sass(&["sm_89"]), gpu("A100", "535.161.08"), fails(209));
case!(an_sm_90_binary_runs_on_an_h200, "S4", sass(&["sm_90"]), gpu("H200", "580.95.05"), works());
case!(an_sm_90_binary_runs_on_a_gh200, "S4", sass(&["sm_90"]), gpu("GH200", "580.95.05"), works());
case!(an_sm_90_binary_does_not_run_on_a_b200, "S4", sass(&["sm_90"]), gpu("B200", "580.95.05"), fails(209));
case!(an_sm_100_binary_runs_on_a_gb200, "S4", sass(&["sm_100"]), gpu("GB200", "580.95.05"), works());
case!(an_sm_100_binary_runs_on_a_b300, "S4", sass(&["sm_100"]), gpu("B300", "580.95.05"), works().by("S1"));
case!(an_sm_100_binary_runs_on_capability_10_7, "S4", sass(&["sm_100"]), gpu("Rubin", "615.31"), works());
case!(
    an_sm_100_binary_does_not_run_on_a_5090,
    "S4",
    sass(&["sm_100"]),
    gpu("RTX-5090", "580.95.05"),
    fails(209)
);
case!(
    an_sm_100_binary_does_not_run_on_thor,
    "S4",
    sass(&["sm_100"]),
    gpu("Thor-T5000", "580.95.05"),
    fails(209)
);
case!(an_sm_103_binary_does_not_run_on_a_b200, "S1", sass(&["sm_103"]), gpu("B200", "580.95.05"), fails(209));
case!(an_sm_120_binary_runs_on_a_gb10, "S4", sass(&["sm_120"]), gpu("GB10", "580.95.05"), works());
case!(an_sm_120_binary_does_not_run_on_a_b200, "S4", sass(&["sm_120"]), gpu("B200", "580.95.05"), fails(209));
case!(an_sm_120_binary_does_not_run_on_a_b300, "S4", sass(&["sm_120"]), gpu("B300", "580.95.05"), fails(209));
case!(
    an_sm_121_binary_does_not_run_on_a_5090,
    "S1",
    sass(&["sm_121"]),
    gpu("RTX-5090", "580.95.05"),
    fails(209)
);
case!(
    machine_code_never_runs_on_an_older_major,
    "S1",
    sass(&["sm_90", "sm_100", "sm_120"]),
    gpu("A100", "580.95.05"),
    fails(209)
);
case!(
    one_fitting_target_of_many_is_enough,
    "2.4",
    sass(&["sm_70", "sm_80", "sm_90"]),
    gpu("H100", "535.161.08"),
    works()
);

// S2: integrated cards.
case!(
    orin_refuses_desktop_code_of_cuda_13_0,
    "S2",
    sass(&["sm_80"]).toolkit("13.0"),
    gpu("AGX-Orin", "595.91.07"),
    fails(209)
);
case!(
    orin_refuses_desktop_code_of_cuda_13_1,
    "S2",
    sass(&["sm_86"]).toolkit("13.1"),
    gpu("AGX-Orin", "595.91.07"),
    fails(209)
);
case!(
    orin_takes_desktop_code_of_cuda_13_2,
    "S2",
    sass(&["sm_80"]).toolkit("13.2"),
    gpu("AGX-Orin", "595.91.07"),
    works().by("S2")
);
case!(
    orin_takes_a_later_minor_than_8_0_of_cuda_13_2,
    "S2",
    sass(&["sm_86"]).toolkit("13.2"),
    gpu("Orin-NX", "595.91.07"),
    works().by("S2")
);
case!(
    orin_takes_its_own_code_of_any_toolkit,
    "S2",
    sass(&["sm_87"]).toolkit("11.4"),
    gpu("Orin-Nano", "580.95.05"),
    works().by("S2")
);
case!(
    orin_never_takes_code_of_a_later_minor,
    "S1",
    sass(&["sm_89"]).toolkit("13.2"),
    gpu("AGX-Orin", "595.91.07"),
    fails(209)
);
case!(
    desktop_cards_refuse_orin_code,
    "S2",
    sass(&["sm_87"]).toolkit("12.6"),
    gpu("L4", "570.124.06"),
    fails(209)
);
case!(
    capability_7_2_refuses_sm_70_of_cuda_12,
    "S2",
    sass(&["sm_70"]).toolkit("12.2"),
    gpu("V100", "535.161.08").capability("7.2"),
    fails(209)
);
case!(
    capability_7_2_takes_its_own_code,
    "S2",
    sass(&["sm_72"]).toolkit("11.4"),
    gpu("V100", "535.161.08").capability("7.2"),
    works().by("S2")
);
case!(a_t4_refuses_sm_72, "S2", sass(&["sm_72"]).toolkit("11.4"), gpu("T4", "535.161.08"), fails(209));
case!(
    capability_6_2_refuses_sm_61,
    "S2",
    sass(&["sm_61"]),
    gpu("P40", "535.161.08").capability("6.2"),
    fails(209)
);
case!(
    capability_5_3_refuses_sm_52_of_any_toolkit,
    "S2",
    sass(&["sm_52"]).toolkit("13.2"),
    gpu("M60", "535.161.08").capability("5.3"),
    fails(209)
);
case!(
    capability_10_1_refuses_sm_100,
    "S2",
    sass(&["sm_100"]),
    gpu("Thor-T5000", "580.95.05").capability("10.1"),
    fails(209)
);

// S3: Thor under two numbers.
case!(sm_101_runs_on_thor_as_11_0, "S3", sass(&["sm_101"]), gpu("Thor-T5000", "580.95.05"), works().by("S3"));
case!(
    sm_110_runs_on_thor_as_10_1,
    "S3",
    sass(&["sm_110"]),
    gpu("Thor-T5000", "580.95.05").capability("10.1"),
    works().by("S3")
);
case!(sm_110_runs_on_thor_as_11_0, "S1", sass(&["sm_110"]), gpu("Thor-T4000", "580.95.05"), works());
case!(sm_101_does_not_run_on_a_b300, "S3", sass(&["sm_101"]), gpu("B300", "580.95.05"), fails(209));
case!(sm_101f_is_sm_110f, "F1", sass(&["sm_101f"]), gpu("Thor-T5000", "580.95.05"), works());

// A1: architecture-specific targets.
case!(sm_90a_runs_on_an_h100, "A1", sass(&["sm_90a"]), gpu("H100", "535.161.08"), works().by("A1"));
case!(sm_90a_does_not_run_on_a_b200, "A1", sass(&["sm_90a"]), gpu("B200", "580.95.05"), fails(209));
case!(sm_100a_runs_on_a_b200, "A1", sass(&["sm_100a"]), gpu("B200", "580.95.05"), works().by("A1"));
case!(sm_100a_does_not_run_on_a_b300, "A1", sass(&["sm_100a"]), gpu("B300", "580.95.05"), fails(209));
case!(sm_103a_does_not_run_on_a_b200, "A1", sass(&["sm_103a"]), gpu("B200", "580.95.05"), fails(209));
case!(sm_120a_does_not_run_on_a_gb10, "A1", sass(&["sm_120a"]), gpu("GB10", "580.95.05"), fails(209));

// F1: family targets as machine code.
case!(sm_100f_runs_on_a_b200, "F1", sass(&["sm_100f"]), gpu("B200", "580.95.05"), works());
case!(sm_100f_runs_on_a_b300, "F1", sass(&["sm_100f"]), gpu("B300", "580.95.05"), works());
case!(sm_103f_runs_on_capability_10_7, "F1", sass(&["sm_103f"]), gpu("Rubin", "615.31"), works());
case!(sm_103f_does_not_run_on_a_b200, "F1", sass(&["sm_103f"]), gpu("B200", "580.95.05"), fails(209));
case!(sm_100f_does_not_run_on_a_5090, "F1", sass(&["sm_100f"]), gpu("RTX-5090", "580.95.05"), fails(209));
case!(sm_120f_runs_on_a_gb10, "F1", sass(&["sm_120f"]), gpu("GB10", "580.95.05"), works());
case!(sm_121f_does_not_run_on_a_5090, "F1", sass(&["sm_121f"]), gpu("RTX-5090", "580.95.05"), fails(209));

// 2.4: which module decides.
case!(
    a_program_fails_by_its_one_module_without_code,
    "2.4",
    app().module(&["sm_80"], &[], 3).module(&["sm_90"], &[], 1),
    gpu("A100", "535.161.08"),
    fails(209)
);
case!(
    a_program_whose_modules_all_load_works,
    "2.4",
    app().module(&["sm_80"], &[], 3).module(&["sm_80", "sm_90"], &[], 1),
    gpu("A100", "535.161.08"),
    works()
);
case!(
    a_second_file_without_code_fails_the_program,
    "2.4",
    sass(&["sm_80"]).file("/opt/plugin.so", Role::Program).module(&["sm_90"], &[], 1),
    gpu("A100", "535.161.08"),
    fails(209)
);
case!(
    a_module_that_must_be_compiled_makes_the_program_wait,
    "2.4",
    app().module(&["sm_80"], &[], 3).module(&["sm_70"], &[("compute_70", "8.0")], 1),
    gpu("A100", "535.161.08"),
    jit()
);
case!(
    a_device_linked_program_misses_a_symbol_instead,
    "2.4",
    sass(&["sm_80"]).device_linked(),
    gpu("H100", "535.161.08"),
    fails(500).prints("named symbol not found")
);
case!(
    a_vendor_library_without_code_for_the_card_is_named,
    "2.4",
    sass(&["sm_120"]).file("/opt/lib/libcudnn_ops.so.9", Role::Vendor).module(&["sm_80", "sm_90"], &[], 40),
    gpu("RTX-5090", "580.95.05"),
    says("CD0506")
);
case!(
    a_vendor_library_that_has_code_for_the_card_among_other_modules_is_not_named,
    "2.4",
    sass(&["sm_120"]).file("/opt/lib/libcublas.so.12", Role::Vendor).module(&["sm_80"], &[], 40).module(
        &["sm_120"],
        &[],
        40
    ),
    gpu("RTX-5090", "580.95.05"),
    works().no_finding("CD0506")
);

// §5: lazy loading moves the error, not the verdict.
case!(
    lazy_loading_does_not_save_a_program_without_code,
    "§5",
    sass(&["sm_80"]).runtime("12.2").env("CUDA_MODULE_LOADING", "LAZY"),
    gpu("H100", "535.161.08"),
    fails(209)
);
case!(
    eager_loading_does_not_harm_a_program_with_code,
    "§5",
    sass(&["sm_90"]).runtime("12.2").env("CUDA_MODULE_LOADING", "EAGER"),
    gpu("H100", "535.161.08"),
    works()
);
