//! §4: cuda-compat, where the container toolkit looks for it and where the loader comes to it first.

use cudock_compat::evidence::{CompatNote, DriverCopy, Reach};
use cudock_host::host::{FoundBy, LibraryKind};

use super::support::*;

const BRANCHES_OF_12_9: &[u16] = &[535, 550, 560, 565, 570, 575];
const BRANCHES_OF_13_1: &[u16] = &[535, 550, 570, 575, 580, 590];

/// A program that only a driver of CUDA 12.4 or newer can compile.
fn needs_12_4() -> Part {
    ptx(&[("compute_80", "8.4")]).runtime("12.4")
}

// C1, C4: in its usual place, the toolkit decides.
case!(
    compat_in_its_place_is_used_on_an_older_branch,
    "C4",
    needs_12_4().in_image().libcuda(compat("550.54.15"), Reach::CompatDirectory),
    gpu("A100", "535.161.08"),
    jit().finding("CD0219").by("C4").by("C1")
);
case!(
    without_compat_the_same_program_fails,
    "P3",
    needs_12_4().in_image(),
    gpu("A100", "535.161.08"),
    fails(222)
);
case!(
    with_compat_in_use_the_limits_of_minor_compatibility_do_not_apply,
    "D4",
    sass(&["sm_80"]).runtime("12.4").in_image().libcuda(compat("550.54.15"), Reach::CompatDirectory),
    gpu("A100", "535.161.08"),
    works().no_finding("CD0217")
);
case!(
    compat_does_not_lift_the_language_beyond_its_own,
    "D4",
    ptx(&[("compute_80", "8.5")])
        .runtime("12.6")
        .in_image()
        .libcuda(compat("550.54.15"), Reach::CompatDirectory),
    gpu("A100", "535.161.08"),
    fails(222)
);
case!(
    compat_of_cuda_13_brings_cuda_13_to_570,
    "C1",
    sass(&["sm_80"]).runtime("13.0").in_image().libcuda(compat("580.65.06"), Reach::CompatDirectory),
    gpu("A100", "570.124.06"),
    works().finding("CD0219")
);
case!(
    compat_of_cuda_13_1_brings_cuda_13_to_535,
    "C1",
    sass(&["sm_90"]).runtime("13.1").in_image().libcuda(compat("590.44.01"), Reach::CompatDirectory),
    gpu("H100", "535.161.08"),
    works().finding("CD0219")
);
case!(
    compat_brings_no_code_for_the_card,
    "§9",
    sass(&["sm_75"]).runtime("13.0").in_image().libcuda(compat("580.65.06"), Reach::CompatDirectory),
    gpu("V100", "570.124.06"),
    fails(209)
);
case!(
    compat_of_the_hosts_branch_is_not_used_without_a_note,
    "C4",
    sass(&["sm_80"]).runtime("12.4").in_image().libcuda(compat("550.163.01"), Reach::CompatDirectory),
    gpu("A100", "550.54.15"),
    works().no_finding("CD0219")
);
case!(
    older_compat_in_its_place_is_not_used,
    "C3",
    sass(&["sm_80"]).runtime("12.4").in_image().libcuda(compat("550.54.15"), Reach::CompatDirectory),
    gpu("A100", "580.95.05"),
    works().no_finding("CD0219")
);
case!(
    a_note_that_lists_the_branch_puts_compat_first,
    "C2",
    ptx(&[("compute_80", "8.8")])
        .runtime("12.9")
        .in_image()
        .libcuda(noted_compat("575.57.08", "12.9", BRANCHES_OF_12_9), Reach::CompatDirectory),
    gpu("A100", "550.54.15"),
    jit().finding("CD0219").by("C4")
);
case!(
    a_note_that_does_not_list_the_branch_leaves_compat_aside,
    "C2",
    ptx(&[("compute_80", "8.8")])
        .runtime("12.9")
        .in_image()
        .libcuda(noted_compat("575.57.08", "12.9", BRANCHES_OF_12_9), Reach::CompatDirectory),
    gpu("A100", "545.29.06"),
    fails(222).no_finding("CD0219")
);
case!(
    a_note_that_does_not_list_the_branch_leaves_minor_compatibility,
    "C2",
    sass(&["sm_80"])
        .runtime("12.9")
        .in_image()
        .libcuda(noted_compat("575.57.08", "12.9", BRANCHES_OF_12_9), Reach::CompatDirectory),
    gpu("A100", "545.29.06"),
    works().no_finding("CD0219")
);
case!(
    a_note_may_put_a_newer_release_of_the_same_branch_first,
    "C2",
    sass(&["sm_80"])
        .runtime("13.1")
        .in_image()
        .libcuda(noted_compat("590.48.01", "13.1", BRANCHES_OF_13_1), Reach::CompatDirectory),
    gpu("A100", "590.44.01"),
    works().finding("CD0219")
);
case!(
    a_note_does_not_put_an_older_release_first,
    "C3",
    sass(&["sm_80"])
        .runtime("13.1")
        .in_image()
        .libcuda(noted_compat("590.44.01", "13.1", BRANCHES_OF_13_1), Reach::CompatDirectory),
    gpu("A100", "590.48.01"),
    works().no_finding("CD0219")
);
case!(
    a_note_without_branches_goes_by_the_cuda_version,
    "C2",
    ptx(&[("compute_87", "9.2")]).runtime("13.2").in_image().libcuda(
        DriverCopy {
            note: Some(CompatNote { cuda: Some("13.2".parse().unwrap()), branches: vec![] }),
            ..copy(LibraryKind::Compat)
        },
        Reach::CompatDirectory
    ),
    gpu("AGX-Orin", "580.95.05"),
    jit()
);
case!(
    a_geforce_is_given_compat_and_refuses_it,
    "C4",
    sass(&["sm_86"]).runtime("12.4").in_image().libcuda(compat("550.54.15"), Reach::CompatDirectory),
    gpu("RTX-3090", "535.161.08"),
    fails(804).finding("CD0215").by("C1").prints("cudaErrorCompatNotSupportedOnDevice")
);
case!(
    a_geforce_on_a_listed_branch_is_given_compat_too,
    "C2",
    sass(&["sm_86"])
        .runtime("12.9")
        .in_image()
        .libcuda(noted_compat("575.57.08", "12.9", BRANCHES_OF_12_9), Reach::CompatDirectory),
    gpu("RTX-3090", "535.161.08"),
    fails(804)
);
case!(
    a_geforce_with_the_newer_driver_is_not_given_compat,
    "C4",
    sass(&["sm_86"]).runtime("12.4").in_image().libcuda(compat("550.54.15"), Reach::CompatDirectory),
    gpu("RTX-3090", "550.54.15"),
    works()
);
case!(
    a_base_that_is_no_supported_pair_mismatches,
    "C1",
    sass(&["sm_80"]).runtime("12.8").in_image().libcuda(compat("570.124.06"), Reach::CompatDirectory),
    gpu("A100", "545.29.06"),
    fails(803).finding("CD0207").by("C1").prints("cudaErrorSystemDriverMismatch")
);
case!(
    compat_runs_on_a_jetson,
    "C1",
    ptx(&[("compute_87", "9.2")])
        .runtime("13.2")
        .in_image()
        .libcuda(compat("595.91.07"), Reach::CompatDirectory),
    gpu("AGX-Orin", "580.95.05"),
    jit().finding("CD0219")
);
case!(
    compat_of_cuda_12_does_not_run_cuda_13,
    "D2",
    sass(&["sm_80"]).runtime("13.0").in_image().libcuda(compat("570.124.06"), Reach::CompatDirectory),
    gpu("A100", "535.161.08"),
    fails(35)
);
case!(
    the_gate_looks_at_the_host_and_not_at_compat,
    "§6",
    sass(&["sm_80"])
        .runtime("13.0")
        .in_image()
        .env("NVIDIA_REQUIRE_CUDA", "cuda>=13.0")
        .libcuda(compat("580.65.06"), Reach::CompatDirectory),
    gpu("A100", "570.124.06"),
    refused()
);
case!(
    compat_where_nobody_looks_is_not_used,
    "C4",
    needs_12_4().in_image().libcuda(compat("550.54.15"), Reach::Loader(FoundBy::NotSearched)),
    gpu("A100", "535.161.08"),
    fails(222)
);

// C3: found first by the loader, whatever the toolkit would do.
case!(
    older_compat_on_the_library_path_mismatches,
    "C3",
    sass(&["sm_80"])
        .runtime("12.4")
        .in_image()
        .libcuda(compat("550.54.15"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "570.124.06"),
    fails(803).finding("CD0207").by("C3")
);
case!(
    older_compat_in_the_loaders_configuration_mismatches,
    "C3",
    sass(&["sm_80"])
        .runtime("12.4")
        .in_image()
        .libcuda(compat("550.54.15"), Reach::Loader(FoundBy::Configuration)),
    gpu("A100", "570.124.06"),
    fails(803).by("C3")
);
case!(
    compat_of_the_hosts_own_version_on_the_library_path_works,
    "C3",
    sass(&["sm_80"])
        .runtime("12.4")
        .in_image()
        .libcuda(compat("550.54.15"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "550.54.15"),
    works()
);
case!(
    newer_compat_on_the_library_path_is_used,
    "C1",
    needs_12_4().in_image().libcuda(compat("550.54.15"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "535.161.08"),
    jit().finding("CD0219")
);
case!(
    newer_compat_on_the_library_path_is_refused_by_a_geforce,
    "C1",
    sass(&["sm_89"])
        .runtime("12.4")
        .in_image()
        .libcuda(compat("550.54.15"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("RTX-4090", "535.161.08"),
    fails(804)
);
case!(
    compat_on_the_library_path_of_an_unsupported_pair_mismatches,
    "C1",
    sass(&["sm_80"])
        .runtime("12.8")
        .in_image()
        .libcuda(compat("570.124.06"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "545.29.06"),
    fails(803)
);
