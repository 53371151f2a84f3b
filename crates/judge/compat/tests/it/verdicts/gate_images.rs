//! The requirements of real images, written out: those of nvidia/cuda 12.4.1 and 12.6.3, and an 11.0-era one.

use super::support::*;

/// 12.4.1: branches 470, 525 and 535, GeForce and Titan among the brands.
pub(crate) const CUDA_12_4_1: &str = "cuda>=12.4 \
    brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471 \
    brand=nvidia,driver>=470,driver<471 brand=nvidiartx,driver>=470,driver<471 \
    brand=geforce,driver>=470,driver<471 brand=geforcertx,driver>=470,driver<471 \
    brand=quadro,driver>=470,driver<471 brand=quadrortx,driver>=470,driver<471 \
    brand=titan,driver>=470,driver<471 brand=titanrtx,driver>=470,driver<471 \
    brand=tesla,driver>=525,driver<526 brand=unknown,driver>=525,driver<526 \
    brand=nvidia,driver>=525,driver<526 brand=nvidiartx,driver>=525,driver<526 \
    brand=geforce,driver>=525,driver<526 brand=geforcertx,driver>=525,driver<526 \
    brand=quadro,driver>=525,driver<526 brand=quadrortx,driver>=525,driver<526 \
    brand=titan,driver>=525,driver<526 brand=titanrtx,driver>=525,driver<526 \
    brand=tesla,driver>=535,driver<536 brand=unknown,driver>=535,driver<536 \
    brand=nvidia,driver>=535,driver<536 brand=nvidiartx,driver>=535,driver<536 \
    brand=geforce,driver>=535,driver<536 brand=geforcertx,driver>=535,driver<536 \
    brand=quadro,driver>=535,driver<536 brand=quadrortx,driver>=535,driver<536 \
    brand=titan,driver>=535,driver<536 brand=titanrtx,driver>=535,driver<536";

/// 12.6.3: branches 470, 535 and 550, neither GeForce nor Titan.
pub(crate) const CUDA_12_6_3: &str = "cuda>=12.6 \
    brand=unknown,driver>=470,driver<471 brand=grid,driver>=470,driver<471 \
    brand=tesla,driver>=470,driver<471 brand=nvidia,driver>=470,driver<471 \
    brand=quadro,driver>=470,driver<471 brand=quadrortx,driver>=470,driver<471 \
    brand=nvidiartx,driver>=470,driver<471 brand=vapps,driver>=470,driver<471 \
    brand=vpc,driver>=470,driver<471 brand=vcs,driver>=470,driver<471 brand=vws,driver>=470,driver<471 \
    brand=cloudgaming,driver>=470,driver<471 brand=unknown,driver>=535,driver<536 \
    brand=grid,driver>=535,driver<536 brand=tesla,driver>=535,driver<536 \
    brand=nvidia,driver>=535,driver<536 brand=quadro,driver>=535,driver<536 \
    brand=quadrortx,driver>=535,driver<536 brand=nvidiartx,driver>=535,driver<536 \
    brand=vapps,driver>=535,driver<536 brand=vpc,driver>=535,driver<536 \
    brand=vcs,driver>=535,driver<536 brand=vws,driver>=535,driver<536 \
    brand=cloudgaming,driver>=535,driver<536 brand=unknown,driver>=550,driver<551 \
    brand=grid,driver>=550,driver<551 brand=tesla,driver>=550,driver<551 \
    brand=nvidia,driver>=550,driver<551 brand=quadro,driver>=550,driver<551 \
    brand=quadrortx,driver>=550,driver<551 brand=nvidiartx,driver>=550,driver<551 \
    brand=vapps,driver>=550,driver<551 brand=vpc,driver>=550,driver<551 \
    brand=vcs,driver>=550,driver<551 brand=vws,driver>=550,driver<551 \
    brand=cloudgaming,driver>=550,driver<551";

/// 11.0.3: one branch, for Tesla.
const CUDA_11_0_3: &str = "cuda>=11.0 brand=tesla,driver>=418,driver<419";

fn of_12_4_1() -> Given {
    sass(&["sm_75", "sm_80", "sm_86", "sm_90"])
        .runtime("12.4")
        .in_image()
        .env("NVIDIA_REQUIRE_CUDA", CUDA_12_4_1)
}

fn of_12_6_3() -> Given {
    sass(&["sm_75", "sm_80", "sm_86", "sm_90"])
        .runtime("12.6")
        .in_image()
        .env("NVIDIA_REQUIRE_CUDA", CUDA_12_6_3)
}

case!(image_12_4_1_starts_on_its_own_driver, "§6", of_12_4_1(), gpu("H100", "550.54.15"), works().by("G1"));
case!(image_12_4_1_starts_on_a_later_driver, "§6", of_12_4_1(), gpu("H100", "580.95.05"), works());
case!(image_12_4_1_starts_on_535, "§6", of_12_4_1(), gpu("H100", "535.309.01"), works());
case!(image_12_4_1_starts_on_525, "§6", of_12_4_1(), gpu("T4", "525.105.17"), works());
case!(
    image_12_4_1_is_refused_by_545_though_minor_compatibility_would_do,
    "§6",
    of_12_4_1(),
    gpu("H100", "545.23.08"),
    refused().finding("CD0602").by("G1")
);
case!(
    the_refusal_shows_the_first_alternative_and_asks_for_a_driver,
    "§6",
    of_12_4_1(),
    gpu("H100", "545.23.08"),
    refused().prints("unsatisfied condition: cuda>=12.4, please update your driver")
);
case!(image_12_4_1_is_refused_by_530, "§6", of_12_4_1(), gpu("T4", "530.41.03"), refused());
case!(image_12_4_1_is_refused_by_536, "§6", of_12_4_1(), gpu("T4", "536"), refused());
case!(image_12_4_1_starts_on_a_geforce_with_535, "§6", of_12_4_1(), gpu("RTX-3090", "535.161.08"), works());
case!(
    image_12_4_1_passes_470_and_the_program_then_fails,
    "§6",
    of_12_4_1(),
    gpu("T4", "470.256.02"),
    fails(35).finding("CD0402")
);
case!(
    image_12_4_1_is_refused_to_a_virtual_workstation_on_535,
    "§8",
    of_12_4_1(),
    gpu("A10", "535.161.08").brand("vws"),
    refused()
);
case!(image_12_6_3_starts_on_a_tesla_with_535, "§6", of_12_6_3(), gpu("T4", "535.161.08"), works());
case!(image_12_6_3_starts_on_an_a100_with_550, "§6", of_12_6_3(), gpu("A100", "550.54.15"), works());
case!(
    image_12_6_3_starts_on_a_workstation_card_with_535,
    "§6",
    of_12_6_3(),
    gpu("RTX-A6000", "535.161.08"),
    works()
);
case!(
    image_12_6_3_starts_on_a_virtual_workstation_with_535,
    "§8",
    of_12_6_3(),
    gpu("A10", "535.161.08").brand("vws"),
    works()
);
case!(
    image_12_6_3_is_refused_by_525_though_that_is_the_floor_of_cuda_12,
    "§6",
    of_12_6_3(),
    gpu("T4", "525.105.17"),
    refused().finding("CD0602").prints("cuda>=12.6")
);
case!(
    image_12_6_3_is_refused_to_a_geforce_with_535,
    "§6",
    of_12_6_3(),
    gpu("RTX-3090", "535.161.08"),
    refused()
);
case!(
    image_12_6_3_is_refused_to_a_geforce_with_550,
    "§6",
    of_12_6_3(),
    gpu("RTX-4090", "550.54.15"),
    refused()
);
case!(image_12_6_3_starts_on_a_geforce_with_560, "§6", of_12_6_3(), gpu("RTX-4090", "560.35.03"), works());
case!(image_12_6_3_is_refused_by_555, "§6", of_12_6_3(), gpu("A100", "555.58.02"), refused());
case!(
    passing_the_gate_of_an_11_0_image_proves_nothing,
    "§6",
    sass(&["sm_75"]).runtime("11.0").in_image().env("NVIDIA_REQUIRE_CUDA", CUDA_11_0_3),
    gpu("T4", "418.226.00"),
    fails(35)
);
