//! §2.3: PTX, its language, and compiling it.

use cudock_compat::TargetMachine;

use super::support::*;

// P1, P5.
case!(ptx_compiles_for_its_own_card, "P1", ptx(&[("compute_80", "8.2")]), gpu("A100", "535.161.08"), jit());
case!(
    ptx_compiles_for_a_later_major,
    "P1",
    ptx(&[("compute_52", "8.0")]),
    gpu("H100", "535.161.08"),
    jit().by("P1").finding("CD0502")
);
case!(
    plain_ptx_compiles_for_blackwell,
    "P1",
    ptx(&[("compute_70", "8.7")]),
    gpu("RTX-5090", "570.124.06"),
    jit()
);
case!(
    plain_hopper_ptx_compiles_for_thor,
    "P1",
    ptx(&[("compute_90", "8.0")]),
    gpu("Thor-T5000", "580.95.05"),
    jit()
);
case!(
    desktop_ptx_compiles_for_orin,
    "P1",
    ptx(&[("compute_80", "8.0")]),
    gpu("AGX-Orin", "580.95.05"),
    jit()
);
case!(
    ptx_never_helps_an_older_card,
    "P5",
    ptx(&[("compute_80", "8.0")]),
    gpu("T4", "535.161.08"),
    fails(209)
);
case!(
    ptx_for_an_older_card_is_refused_by_p5,
    "P5",
    ptx(&[("compute_80", "8.0")]),
    gpu("T4", "535.161.08"),
    fails(209).by("P5")
);
case!(
    ptx_of_a_later_minor_does_not_help_an_a100,
    "P5",
    ptx(&[("compute_86", "8.0")]),
    gpu("A100", "535.161.08"),
    fails(209)
);
case!(
    ptx_12_0_does_not_help_a_b300,
    "P5",
    ptx(&[("compute_120", "9.0")]),
    gpu("B300", "580.95.05"),
    fails(209)
);
case!(
    machine_code_is_taken_before_ptx,
    "2.4",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "8.2")]),
    gpu("A100", "535.161.08"),
    works().no_finding("CD0502")
);
case!(
    ptx_stands_in_where_machine_code_does_not_fit,
    "2.4",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "8.2")]),
    gpu("H100", "535.161.08"),
    jit()
);

// P2: the language.
case!(ptx_7_7_compiles_on_515, "P2", ptx(&[("compute_80", "7.7")]), gpu("A100", "515.105.01"), jit());
case!(
    ptx_of_cuda_11_8_fails_on_515,
    "P2",
    ptx(&[("compute_80", "7.8")]).runtime("11.8"),
    gpu("A100", "515.105.01"),
    fails(222).by("P2").finding("CD0503").prints("cudaErrorUnsupportedPtxVersion")
);
case!(ptx_8_0_compiles_on_525, "P2", ptx(&[("compute_70", "8.0")]), gpu("T4", "525.60.13"), jit());
case!(ptx_8_1_fails_on_525, "P2", ptx(&[("compute_70", "8.1")]), gpu("T4", "525.60.13"), fails(222));
case!(ptx_8_2_compiles_on_535, "P2", ptx(&[("compute_80", "8.2")]), gpu("H100", "535.309.01"), jit());
case!(ptx_8_3_fails_on_535, "P2", ptx(&[("compute_80", "8.3")]), gpu("H100", "535.309.01"), fails(222));
case!(
    ptx_8_5_of_cuda_12_6_compiles_on_555,
    "P2",
    ptx(&[("compute_80", "8.5")]),
    gpu("L4", "555.58.02"),
    jit()
);
case!(ptx_8_6_fails_on_560, "P2", ptx(&[("compute_80", "8.6")]), gpu("L4", "560.35.03"), fails(222));
case!(ptx_8_7_compiles_on_570, "P2", ptx(&[("compute_90", "8.7")]), gpu("B200", "570.124.06"), jit());
case!(ptx_8_8_fails_on_570, "P2", ptx(&[("compute_90", "8.8")]), gpu("B200", "570.124.06"), fails(222));
case!(ptx_9_0_compiles_on_580, "P2", ptx(&[("compute_75", "9.0")]), gpu("T4", "580.65.06"), jit());
case!(ptx_9_1_fails_on_580, "P2", ptx(&[("compute_75", "9.1")]), gpu("T4", "580.65.06"), fails(222));
case!(ptx_9_5_fails_on_615, "P2", ptx(&[("compute_75", "9.5")]), gpu("T4", "615.31"), fails(222));
case!(
    an_old_target_in_a_new_language_is_too_new,
    "P2",
    ptx(&[("compute_70", "8.7")]).runtime("12.8"),
    gpu("H100", "535.161.08"),
    fails(222)
);

// P3: inside minor-version compatibility.
case!(
    machine_code_beside_ptx_that_is_too_new_runs,
    "P3",
    sass(&["sm_86"]).and_ptx(&[("compute_86", "8.7")]).runtime("12.8"),
    gpu("A10", "525.60.13"),
    works()
);
case!(
    ptx_alone_fails_inside_minor_version_compatibility,
    "P3",
    ptx(&[("compute_86", "8.7")]).runtime("12.8"),
    gpu("A10", "525.60.13"),
    fails(222)
);
case!(
    ptx_of_cuda_13_2_beside_machine_code_for_another_card_fails_on_580,
    "P3",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "9.2")]).runtime("13.2"),
    gpu("H100", "580.95.05"),
    fails(222)
);

// P4: the compiler.
case!(
    without_the_compiler_library_ptx_fails,
    "P4",
    ptx(&[("compute_80", "8.0")]),
    gpu("A100", "535.161.08").machine(TargetMachine { has_jit: false, ..healthy() }),
    fails(221).by("P4").finding("CD0505").prints("cudaErrorJitCompilerNotFound")
);
case!(
    without_the_compiler_library_machine_code_runs,
    "P4",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "8.0")]),
    gpu("A100", "535.161.08").machine(TargetMachine { has_jit: false, ..healthy() }),
    works()
);
case!(
    with_the_compiler_library_ptx_compiles,
    "P4",
    ptx(&[("compute_80", "8.0")]),
    gpu("A100", "535.161.08").machine(healthy()),
    jit()
);
case!(
    with_compiling_switched_off_ptx_fails,
    "P4",
    ptx(&[("compute_80", "8.0")]).env("CUDA_DISABLE_PTX_JIT", "1"),
    gpu("A100", "535.161.08"),
    fails(223).by("P4").finding("CD0505").prints("cudaErrorJitCompilationDisabled")
);
case!(
    with_compiling_switched_off_machine_code_runs,
    "P4",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "8.0")]).env("CUDA_DISABLE_PTX_JIT", "1"),
    gpu("L4", "535.161.08"),
    works()
);
case!(
    zero_does_not_switch_compiling_off,
    "P4",
    ptx(&[("compute_80", "8.0")]).env("CUDA_DISABLE_PTX_JIT", "0"),
    gpu("A100", "535.161.08"),
    jit()
);
case!(
    forced_compiling_passes_machine_code_over,
    "2.4",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "8.0")]).env("CUDA_FORCE_PTX_JIT", "1"),
    gpu("A100", "535.161.08"),
    jit()
);
case!(
    forced_compiling_fails_without_ptx,
    "2.4",
    sass(&["sm_80"]).env("CUDA_FORCE_PTX_JIT", "1"),
    gpu("A100", "535.161.08"),
    fails(209).finding("CD0505")
);
case!(
    forced_compiling_meets_the_language_rule,
    "P2",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "8.4")]).env("CUDA_FORCE_PTX_JIT", "1"),
    gpu("A100", "535.161.08"),
    fails(222)
);

// A1, A2, F1: special targets as PTX.
case!(
    compute_90a_compiles_for_an_h100,
    "A1",
    ptx(&[("compute_90a", "8.0")]),
    gpu("H100", "535.161.08"),
    jit()
);
case!(
    compute_90a_does_not_compile_for_a_b200,
    "A1",
    ptx(&[("compute_90a", "8.0")]),
    gpu("B200", "580.95.05"),
    fails(209)
);
case!(
    compute_100a_does_not_compile_for_a_b300,
    "A1",
    ptx(&[("compute_100a", "8.7")]),
    gpu("B300", "580.95.05"),
    fails(209)
);
case!(
    compute_100f_compiles_for_a_b300,
    "F1",
    ptx(&[("compute_100f", "8.8")]),
    gpu("B300", "580.95.05"),
    jit()
);
case!(
    family_ptx_is_judged_by_the_family_rule,
    "F1",
    ptx(&[("compute_100f", "8.8")]),
    gpu("B300", "580.95.05"),
    jit().by("F1")
);
case!(
    compute_100f_compiles_for_capability_10_7,
    "F1",
    ptx(&[("compute_100f", "8.8")]),
    gpu("Rubin", "615.31"),
    jit()
);
case!(
    compute_100f_does_not_compile_for_a_5090,
    "F1",
    ptx(&[("compute_100f", "8.8")]),
    gpu("RTX-5090", "580.95.05"),
    fails(209)
);
case!(
    compute_100f_does_not_compile_for_thor,
    "F1",
    ptx(&[("compute_100f", "8.8")]),
    gpu("Thor-T5000", "580.95.05"),
    fails(209)
);
case!(
    compute_103f_does_not_compile_for_a_b200,
    "F1",
    ptx(&[("compute_103f", "8.8")]),
    gpu("B200", "580.95.05"),
    fails(209)
);
case!(
    compute_120f_compiles_for_a_gb10,
    "F1",
    ptx(&[("compute_120f", "8.8")]),
    gpu("GB10", "580.95.05"),
    jit()
);
case!(
    compute_121f_does_not_compile_for_a_5090,
    "F1",
    ptx(&[("compute_121f", "8.8")]),
    gpu("RTX-5090", "580.95.05"),
    fails(209)
);
case!(
    compute_101f_compiles_for_thor,
    "F1",
    ptx(&[("compute_101f", "8.8")]),
    gpu("Thor-T5000", "580.95.05"),
    jit()
);
case!(
    family_ptx_meets_the_language_rule,
    "P2",
    ptx(&[("compute_120f", "8.8")]),
    gpu("RTX-5090", "570.124.06"),
    fails(222)
);
