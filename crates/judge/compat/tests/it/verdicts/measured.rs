//! What the rules leave open and an H200 with driver 580.159.04 (CUDA 13.0, PTX 9.0) has answered, 2026-11-15:
//! `scripts/truth-check`, bench/results/history.md.

use super::support::*;

const DRIVER: &str = "580.159.04";

case!(
    a_group_is_not_opened_by_a_driver_of_cuda_13_0,
    "measured",
    sass(&["sm_80", "sm_90"]).grouped().runtime("13.0"),
    gpu("H200", DRIVER),
    fails(209).finding("CD0501")
);
case!(
    device_linked_code_without_ptx_misses_a_symbol,
    "measured",
    sass(&["sm_80"]).device_linked(),
    gpu("H200", DRIVER),
    fails(500)
);
case!(
    device_linked_code_with_ptx_is_linked_anew,
    "measured",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "9.0")]).device_linked(),
    gpu("H200", DRIVER),
    jit()
);
case!(
    device_linked_code_with_newer_ptx_is_error_222,
    "measured",
    sass(&["sm_80"]).and_ptx(&[("compute_80", "9.4")]).device_linked(),
    gpu("H200", DRIVER),
    fails(222)
);
case!(
    ptx_text_for_a_later_card_is_invalid,
    "measured",
    ptx(&[("compute_100", "9.0")]).loose(),
    gpu("H200", DRIVER),
    fails(218)
);
case!(
    a_loose_cubin_for_another_card_has_no_image,
    "measured",
    sass(&["sm_80"]).loose(),
    gpu("H200", DRIVER),
    fails(209)
);
case!(
    a_card_named_twice_is_error_101,
    "measured",
    sass(&["sm_90"]).env("CUDA_VISIBLE_DEVICES", "0,0"),
    gpu("H200", DRIVER),
    fails(101).finding("CD0109")
);
case!(
    cuda_disable_jit_is_error_223_too,
    "measured",
    ptx(&[("compute_80", "9.0")]).env("CUDA_DISABLE_JIT", "1"),
    gpu("H200", DRIVER),
    fails(223)
);
case!(
    a_file_that_may_not_be_executed_is_not_started,
    "measured",
    sass(&["sm_90"]).barred(),
    gpu("H200", DRIVER),
    fails_by("permission denied").finding("CD0612")
);
case!(
    an_empty_library_that_comes_first_ends_the_program,
    "measured",
    sass(&["sm_90"]).broken("libcudart.so.13"),
    gpu("H200", DRIVER),
    fails_by("loader").prints("file too short").finding("CD0607")
);
