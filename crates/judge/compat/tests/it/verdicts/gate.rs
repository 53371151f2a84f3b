//! §6: the start gate, its grammar and where it is evaluated.

use super::support::*;

/// A program that runs on the card below, in an image that asks for this.
fn asks(value: &str) -> Given {
    sass(&["sm_75"]).runtime("12.2").in_image().env("NVIDIA_REQUIRE_CUDA", value)
}

/// A T4 with driver 535.161.08, which carries CUDA 12.2; its brand is Tesla.
fn t4() -> cudock_compat::Target {
    gpu("T4", "535.161.08")
}

// Properties and operators.
case!(an_equal_cuda_is_at_least_itself, "§6", asks("cuda>=12.2"), t4(), works().by("G1"));
case!(a_newer_cuda_is_refused, "§6", asks("cuda>=12.3"), t4(), refused().finding("CD0602"));
case!(an_equal_cuda_is_not_above_itself, "§6", asks("cuda>12.2"), t4(), refused());
case!(an_equal_cuda_is_not_below_itself, "§6", asks("cuda<12.2"), t4(), refused());
case!(an_equal_cuda_is_at_most_itself, "§6", asks("cuda<=12.2"), t4(), works());
case!(an_unequal_cuda_is_refused_by_not_equal_to_itself, "§6", asks("cuda!=12.2"), t4(), refused());
case!(cuda_compares_as_numbers, "§6", asks("cuda>=9.2"), t4(), works());
case!(missing_parts_count_as_zero, "§6", asks("cuda>=12"), t4(), works());
case!(a_bare_branch_is_its_beginning, "§6", asks("driver>=535,driver<536"), t4(), works());
case!(a_branch_above_the_bound_is_refused, "§6", asks("driver<535"), t4(), refused());
case!(the_whole_driver_version_counts, "§6", asks("driver>=535.161.08"), t4(), works());
case!(one_patch_above_the_driver_is_refused, "§6", asks("driver>=535.161.09"), t4(), refused());
case!(the_capability_counts_as_arch, "§6", asks("arch>=7.5"), t4(), works());
case!(a_higher_arch_is_refused, "§6", asks("arch>=8.0"), t4(), refused());
case!(arch_compares_as_numbers, "§6", asks("arch>=10.0"), t4(), refused());
case!(the_brand_counts, "§6", asks("brand=tesla"), t4(), works());
case!(another_brand_is_refused, "§6", asks("brand=geforce"), t4(), refused());
case!(brands_and_properties_are_read_in_any_case, "§6", asks("BRAND=Tesla,CUDA>=12.2"), t4(), works());

// AND and OR.
case!(every_condition_of_an_alternative_must_hold, "§6", asks("cuda>=12.2,brand=geforce"), t4(), refused());
case!(one_alternative_is_enough, "§6", asks("cuda>=13.0 brand=tesla,driver>=535,driver<536"), t4(), works());
case!(
    no_alternative_is_refused,
    "§6",
    asks("cuda>=13.0 brand=geforce brand=tesla,driver<535"),
    t4(),
    refused()
);
case!(
    only_the_first_alternative_is_printed,
    "§6",
    asks("brand=geforce cuda>=13.0"),
    t4(),
    refused().prints("unsatisfied condition: brand=geforce")
);
case!(
    several_variables_must_all_hold,
    "§6",
    asks("cuda>=12.2").env("NVIDIA_REQUIRE_DRIVER", "driver>=550"),
    t4(),
    refused()
);
case!(
    several_variables_that_hold_let_it_start,
    "§6",
    asks("cuda>=12.2").env("NVIDIA_REQUIRE_DRIVER", "driver>=535"),
    t4(),
    works()
);
case!(
    a_jetpack_requirement_is_not_evaluated_here,
    "§6",
    asks("cuda>=12.2").env("NVIDIA_REQUIRE_JETPACK", "csv-mounts=all"),
    t4(),
    works()
);
case!(
    an_unreadable_condition_keeps_it_from_starting,
    "§6",
    asks("cuda>=twelve"),
    t4(),
    refused().finding("CD0603")
);

// What is not known counts as met.
case!(
    an_unknown_driver_counts_as_met,
    "§6",
    asks("driver>=600"),
    {
        let mut target = t4();
        target.driver = None;
        target.cuda = None;
        target
    },
    works()
);

// Switched off, or on a path that does not evaluate it.
case!(
    the_gate_is_switched_off_by_true,
    "§6",
    asks("cuda>=13.0").env("NVIDIA_DISABLE_REQUIRE", "true"),
    t4(),
    works()
);
case!(
    the_gate_is_switched_off_by_1,
    "§6",
    asks("cuda>=13.0").env("NVIDIA_DISABLE_REQUIRE", "1"),
    t4(),
    works()
);
case!(
    the_gate_is_not_switched_off_by_false,
    "§6",
    asks("cuda>=13.0").env("NVIDIA_DISABLE_REQUIRE", "false"),
    t4(),
    refused()
);
case!(
    cdi_does_not_evaluate_the_gate,
    "§6",
    asks("cuda>=13.0"),
    t4().cdi(),
    works().finding("CD0611").by("G2")
);
case!(
    a_program_outside_a_container_meets_no_gate,
    "§6",
    sass(&["sm_75"]).runtime("12.2").env("NVIDIA_REQUIRE_CUDA", "cuda>=13.0"),
    t4(),
    works()
);
case!(
    behind_the_gate_the_program_is_judged,
    "§6",
    sass(&["sm_80"]).runtime("12.2").in_image().env("NVIDIA_REQUIRE_CUDA", "cuda>=12.0"),
    t4(),
    fails(209)
);

// Legacy images.
case!(
    a_legacy_image_asks_for_its_cuda,
    "§6",
    sass(&["sm_75"]).runtime("12.4").in_image().env("CUDA_VERSION", "12.4.1"),
    t4(),
    refused().prints("cuda>=12.4")
);
case!(
    a_legacy_image_of_an_older_cuda_starts,
    "§6",
    sass(&["sm_75"]).runtime("12.2").in_image().env("CUDA_VERSION", "12.2.2"),
    t4(),
    works()
);
case!(
    an_image_with_a_requirement_is_no_legacy_image,
    "§6",
    asks("cuda>=12.0").env("CUDA_VERSION", "13.0.0"),
    t4(),
    works()
);
case!(
    a_legacy_image_can_be_let_through,
    "§6",
    sass(&["sm_75"])
        .runtime("12.4")
        .in_image()
        .env("CUDA_VERSION", "12.4.1")
        .env("NVIDIA_DISABLE_REQUIRE", "1"),
    t4(),
    works()
);
