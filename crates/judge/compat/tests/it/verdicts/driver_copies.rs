//! V6: libcuda belongs to the host. Stubs, empty files and drivers baked into images, and on a machine itself.

use cudock_compat::evidence::{DriverCopy, Reach};
use cudock_host::host::{FoundBy, LibraryKind};

use super::support::*;

fn fits() -> Part {
    sass(&["sm_80"]).runtime("12.2")
}

fn baked_in(version: &str) -> DriverCopy {
    DriverCopy { version: Some(version.parse().unwrap()), ..copy(LibraryKind::Driver) }
}

case!(
    a_stub_on_the_library_path_answers_34,
    "V6",
    fits().in_image().libcuda(copy(LibraryKind::Stub), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "535.161.08"),
    fails(34).finding("CD0205").prints("cudaErrorStubLibrary")
);
case!(
    a_stub_in_the_loaders_configuration_answers_34,
    "V6",
    fits().in_image().libcuda(copy(LibraryKind::Stub), Reach::Loader(FoundBy::Configuration)),
    gpu("A100", "535.161.08"),
    fails(34)
);
case!(
    a_stub_where_nobody_looks_does_no_harm,
    "V6",
    fits().in_image().libcuda(copy(LibraryKind::Stub), Reach::Loader(FoundBy::NotSearched)),
    gpu("A100", "535.161.08"),
    works().no_finding("CD0205")
);
case!(
    an_empty_libcuda_that_comes_first_is_no_libcuda,
    "D6",
    fits().in_image().libcuda(copy(LibraryKind::Empty), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "535.161.08"),
    fails(35).finding("CD0206")
);
case!(
    an_empty_libcuda_ends_a_program_that_links_it,
    "V6",
    fits().links_driver().in_image().libcuda(copy(LibraryKind::Empty), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "535.161.08"),
    fails_by("loader").prints("file too short")
);
case!(
    an_empty_libcuda_where_the_hosts_is_put_is_named,
    "V6",
    fits().in_image().libcuda(copy(LibraryKind::Empty), Reach::Loader(FoundBy::Default)),
    gpu("A100", "535.161.08"),
    says("CD0606")
);
case!(
    a_driver_of_another_version_that_comes_first_mismatches,
    "V6",
    fits().in_image().libcuda(baked_in("550.54.15"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "535.161.08"),
    fails(803).finding("CD0606").by("V6")
);
case!(
    a_driver_of_an_older_version_that_comes_first_mismatches,
    "V6",
    fits().in_image().libcuda(baked_in("535.104.05"), Reach::Loader(FoundBy::Configuration)),
    gpu("A100", "535.161.08"),
    fails(803)
);
case!(
    a_driver_of_the_hosts_version_is_named,
    "V6",
    fits().in_image().libcuda(baked_in("535.161.08"), Reach::Loader(FoundBy::LibraryPath)),
    gpu("A100", "535.161.08"),
    says("CD0606")
);
case!(
    a_driver_where_the_hosts_is_put_is_named,
    "V6",
    fits().in_image().libcuda(baked_in("550.54.15"), Reach::Loader(FoundBy::Default)),
    gpu("A100", "535.161.08"),
    says("CD0606")
);
case!(
    under_wsl_an_image_with_a_driver_collides_with_the_mounts,
    "§11",
    sass(&["sm_86"])
        .runtime("12.2")
        .in_image()
        .libcuda(baked_in("535.161.08"), Reach::Loader(FoundBy::Default)),
    gpu("RTX-3090", "537.13").wsl(),
    fails_somehow().finding("CD0606")
);

// On the machine itself the loader decides.
case!(
    a_stub_found_first_on_the_machine_answers_34,
    "V6",
    fits(),
    gpu("A100", "535.161.08").machine(finding_first(LibraryKind::Stub, None)),
    fails(34).finding("CD0205")
);
case!(
    a_link_that_leads_nowhere_is_no_libcuda,
    "D6",
    fits(),
    gpu("A100", "535.161.08").machine(finding_first(LibraryKind::Dangling, None)),
    fails(35)
);
case!(
    older_compat_found_first_on_the_machine_mismatches,
    "C3",
    fits(),
    gpu("A100", "580.95.05").machine(finding_first(LibraryKind::Compat, Some("550.54.15"))),
    fails(803).by("C3")
);
case!(
    newer_compat_found_first_on_the_machine_is_used,
    "C1",
    ptx(&[("compute_80", "8.4")]).runtime("12.4"),
    gpu("A100", "535.161.08").machine(finding_first(LibraryKind::Compat, Some("550.54.15"))),
    jit().finding("CD0219")
);
case!(the_machines_own_driver_works, "V6", fits(), gpu("A100", "535.161.08").machine(healthy()), works());
