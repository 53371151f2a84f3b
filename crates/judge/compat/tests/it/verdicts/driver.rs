//! §1 question 2, §3, §9 and §11: which driver drives which card and runs which CUDA.

use cudock_compat::TargetMachine;

use super::support::*;

// D1.
case!(
    a_driver_runs_an_older_major,
    "D1",
    sass(&["sm_80"]).runtime("11.8"),
    gpu("A100", "580.95.05"),
    works().by("D1").no_finding("CD0217")
);
case!(
    a_driver_runs_cuda_10_2,
    "D1",
    sass(&["sm_70"]).runtime("10.2"),
    gpu("V100", "450.80.02"),
    works().by("D1")
);
case!(
    a_driver_runs_its_own_cuda,
    "D1",
    sass(&["sm_80"]).runtime("12.2"),
    gpu("A100", "535.161.08"),
    works().no_finding("CD0217")
);
case!(
    cuda_11_0_runs_on_the_driver_it_shipped_with,
    "D1",
    sass(&["sm_80"]).runtime("11.0"),
    gpu("A100", "450.51.05"),
    works()
);

// D2: the floors, equal and one below.
case!(
    cuda_11_8_runs_on_450_80_02,
    "D2",
    sass(&["sm_80"]).runtime("11.8"),
    gpu("A100", "450.80.02"),
    works().finding("CD0217").by("D3")
);
case!(
    cuda_11_8_fails_on_450_80_01,
    "D2",
    sass(&["sm_80"]).runtime("11.8"),
    gpu("A100", "450.80.01"),
    fails(35).finding("CD0402").by("D2").prints("cudaErrorInsufficientDriver")
);
case!(
    cuda_12_8_runs_on_525_60_13,
    "D2",
    sass(&["sm_75"]).runtime("12.8"),
    gpu("T4", "525.60.13"),
    works().finding("CD0217").by("D3")
);
case!(
    cuda_12_8_fails_on_525_60_12,
    "D2",
    sass(&["sm_75"]).runtime("12.8"),
    gpu("T4", "525.60.12"),
    fails(35).finding("CD0402")
);
case!(cuda_12_0_fails_on_520, "D2", sass(&["sm_75"]).runtime("12.0"), gpu("T4", "520.61.05"), fails(35));
case!(cuda_12_9_runs_on_530, "D2", sass(&["sm_75"]).runtime("12.9"), gpu("T4", "530.41.03"), works());
case!(cuda_13_0_runs_on_the_floor_of_580, "D2", sass(&["sm_75"]).runtime("13.0"), gpu("T4", "580"), works());
case!(
    cuda_13_4_runs_on_580_65_06,
    "D2",
    sass(&["sm_75"]).runtime("13.4"),
    gpu("T4", "580.65.06"),
    works().finding("CD0217")
);
case!(
    cuda_13_0_fails_on_575,
    "D2",
    sass(&["sm_75"]).runtime("13.0"),
    gpu("T4", "575.57.08"),
    fails(35).finding("CD0402")
);
case!(
    cuda_10_2_fails_on_a_driver_before_440_33,
    "D2",
    torch("1.12.1", "cu102"),
    gpu("V100", "418.226.00"),
    fails(35)
);

// D3, D5.
case!(
    a_runtime_newer_than_the_driver_is_reported,
    "D3",
    sass(&["sm_90"]).runtime("12.8"),
    gpu("H100", "535.161.08"),
    works().finding("CD0217").by("D3")
);
case!(torch_2_0_runs_on_450_80_02, "D5", torch("2.0.1", "cu117"), gpu("A100", "450.80.02"), works());
case!(torch_2_0_fails_on_450_66, "D5", torch("2.0.1", "cu118"), gpu("A100", "450.66"), fails(35));
case!(torch_2_10_runs_on_525_60_13, "D5", torch("2.10.0", "cu128"), gpu("A100", "525.60.13"), works());
case!(torch_2_10_fails_on_520, "D5", torch("2.10.0", "cu128"), gpu("A100", "520.61.05"), fails(35));
case!(torch_2_11_runs_on_580, "D5", torch("2.11.0", "cu130"), gpu("A100", "580.65.06"), works());
case!(torch_2_11_fails_on_575, "D5", torch("2.11.0", "cu130"), gpu("A100", "575.57.08"), fails(35));
case!(
    a_laxer_floor_of_a_framework_does_not_lower_that_of_its_cuda,
    "D2",
    jax("jax-cuda12-plugin", "0.11.0"),
    gpu("T4", "525.53"),
    fails(35)
);

// D6: no libcuda at all.
case!(
    without_libcuda_the_runtime_says_35,
    "D6",
    sass(&["sm_80"]).runtime("12.4"),
    gpu("A100", "550.54.15").machine(TargetMachine { libcuda: None, ..healthy() }),
    fails(35).by("D6").finding("CD0203")
);
case!(
    without_libcuda_a_program_that_links_it_does_not_start,
    "D6",
    sass(&["sm_80"]).runtime("12.4").links_driver(),
    gpu("A100", "550.54.15").machine(TargetMachine { libcuda: None, ..healthy() }),
    fails_by("loader").prints("libcuda.so.1")
);
case!(
    without_libcuda_torch_is_answered_35,
    "D7",
    torch("2.5.1", "cu124"),
    gpu("A100", "550.54.15").machine(TargetMachine { libcuda: None, ..healthy() }),
    answers(35)
);

// Question 2, P6, §9: the card and the branch.
case!(
    the_k80_ends_with_470,
    "§9",
    sass(&["sm_37"]),
    gpu("K80", "495.46"),
    fails(100).finding("CD0209").by("Q2")
);
case!(the_k80_runs_with_470, "§9", sass(&["sm_37"]).runtime("11.4"), gpu("K80", "470.256.02"), works());
case!(the_m60_runs_with_580, "§9", sass(&["sm_52"]).runtime("12.9"), gpu("M60", "580.178.04"), works());
case!(the_m60_ends_with_580, "§9", sass(&["sm_52"]), gpu("M60", "590.48.01"), fails(100).finding("CD0209"));
case!(the_p100_runs_with_580, "§9", sass(&["sm_60"]).runtime("12.9"), gpu("P100", "580.178.04"), works());
case!(the_p100_ends_with_580, "§9", sass(&["sm_60"]), gpu("P100", "590.48.01"), fails(100).finding("CD0209"));
case!(the_p40_ends_with_580, "§9", sass(&["sm_61"]), gpu("P40", "595.91.07"), fails(100));
case!(the_v100_ends_with_580, "§9", sass(&["sm_70"]), gpu("V100", "590.48.01"), fails(100).finding("CD0209"));
case!(the_t4_goes_on_with_590, "§9", sass(&["sm_75"]).runtime("13.1"), gpu("T4", "590.48.01"), works());
case!(
    cuda_13_has_no_code_for_a_v100,
    "§9",
    sass(&["sm_75", "sm_80", "sm_90"]).runtime("13.0"),
    gpu("V100", "580.178.04"),
    fails(209)
);
case!(
    an_h100_is_not_known_to_515,
    "P6",
    ptx(&[("compute_80", "7.0")]),
    gpu("H100", "515.105.01"),
    fails(100).finding("CD0216").by("Q2")
);
case!(an_h100_is_known_to_520, "P6", sass(&["sm_90"]).runtime("11.8"), gpu("H100", "520.61.05"), works());
case!(an_l4_is_not_known_to_515, "P6", sass(&["sm_80"]), gpu("L4", "515.105.01"), fails(100));
case!(an_a10_is_not_known_to_450, "P6", sass(&["sm_80"]), gpu("A10", "450.80.02"), fails(100));
case!(a_b200_is_not_known_to_565, "P6", ptx(&[("compute_90", "8.0")]), gpu("B200", "565.57.01"), fails(100));
case!(a_b200_is_known_to_570, "P6", sass(&["sm_100"]).runtime("12.8"), gpu("B200", "570.124.06"), works());
case!(a_5090_is_not_known_to_565, "P6", sass(&["sm_120"]), gpu("RTX-5090", "565.57.01"), fails(100));
case!(
    a_b300_is_not_known_to_570,
    "P6",
    sass(&["sm_100"]),
    gpu("B300", "570.124.06"),
    fails(100).finding("CD0216")
);
case!(a_b300_is_known_to_575, "P6", sass(&["sm_103"]).runtime("12.9"), gpu("B300", "575.57.08"), works());
case!(a_gb10_is_not_known_to_570, "P6", sass(&["sm_120"]), gpu("GB10", "570.124.06"), fails(100));

case!(
    a_driver_later_than_the_tables_runs_older_cuda,
    "D1",
    sass(&["sm_80"]).runtime("13.4"),
    gpu("A100", "640.10"),
    works()
);
case!(
    a_driver_later_than_the_tables_does_not_drive_a_v100,
    "§9",
    sass(&["sm_70"]),
    gpu("V100", "640.10"),
    fails(100)
);
case!(
    the_doctors_word_that_the_card_is_not_driven_counts,
    "§9",
    sass(&["sm_70"]),
    gpu("V100", "590.48.01").machine(blocked(Some(100), "CD0209")),
    fails(100).finding("CD0209")
);

// §11: under WSL2 the Windows column counts.
case!(
    under_wsl_cuda_11_runs_on_452_39,
    "§11",
    sass(&["sm_80"]).runtime("11.8"),
    gpu("A100", "452.39").wsl(),
    works()
);
case!(
    under_wsl_cuda_11_fails_on_452_38,
    "§11",
    sass(&["sm_80"]).runtime("11.8"),
    gpu("A100", "452.38").wsl(),
    fails(35)
);
case!(
    under_wsl_cuda_12_runs_on_528_33,
    "§11",
    sass(&["sm_86"]).runtime("12.4"),
    gpu("RTX-3090", "528.33").wsl(),
    works()
);
case!(
    under_wsl_cuda_12_fails_on_528_32,
    "§11",
    sass(&["sm_86"]).runtime("12.4"),
    gpu("RTX-3090", "528.32").wsl(),
    fails(35)
);
case!(
    under_wsl_the_linux_floor_is_not_enough,
    "§11",
    sass(&["sm_86"]).runtime("12.4"),
    gpu("RTX-3090", "525.60.13").wsl(),
    fails(35)
);
case!(
    under_wsl_cuda_13_fails_on_576,
    "§11",
    sass(&["sm_86"]).runtime("13.0"),
    gpu("RTX-3090", "576.57").wsl(),
    fails(35)
);
