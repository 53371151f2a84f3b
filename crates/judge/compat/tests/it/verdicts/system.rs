//! §8 and §9: the state of the machine, and the Azure sizes that bring one.

use cudock_compat::Target;
use cudock_facts::version::Date;

use super::support::*;

fn fits() -> Part {
    sass(&["sm_80", "sm_86", "sm_90"]).runtime("12.2")
}

fn size(name: &str) -> Target {
    let driver = Some("580.95.05".parse().unwrap());
    Target::of_size(facts(), name, driver, Date::new(2026, 11, 15).unwrap()).unwrap()
}

case!(
    without_a_fabric_manager_cuda_is_not_ready,
    "§8",
    fits(),
    gpu("H100-SXM", "535.161.08").machine(blocked(Some(802), "CD0110")),
    fails(802).finding("CD0110").by("M1").prints("cudaErrorSystemNotReady")
);
case!(
    without_a_fabric_manager_a_framework_fails_likewise,
    "§8",
    torch("2.5.1", "cu124"),
    gpu("A100", "535.161.08").machine(blocked(Some(802), "CD0110")),
    answers(802)
);
case!(
    mig_without_an_instance_offers_no_device,
    "§8",
    fits(),
    gpu("A100", "535.161.08").machine(blocked(Some(100), "CD0111")),
    fails(100).finding("CD0111").by("M1")
);
case!(
    compute_mode_keeps_programs_out,
    "§8",
    fits(),
    gpu("A100", "535.161.08").machine(blocked(Some(46), "CD0113")),
    fails(46).prints("cudaErrorDevicesUnavailable")
);
case!(
    a_module_of_another_version_mismatches,
    "§9",
    fits(),
    gpu("A100", "535.161.08").machine(blocked(Some(803), "CD0202")),
    fails(803).finding("CD0202")
);
case!(
    a_changed_device_number_is_an_unknown_error,
    "V8",
    fits(),
    gpu("A100", "535.161.08").machine(blocked(Some(999), "CD0214")),
    fails(999)
);
case!(
    a_machine_without_a_cuda_card_has_no_cuda_device,
    "§1.2",
    fits(),
    gpu("A100", "535.161.08").machine(blocked(None, "CD0103")),
    fails_by("no CUDA device")
);
case!(
    what_blocks_the_machine_blocks_containers_on_it,
    "§8",
    fits().in_image(),
    gpu("H100-SXM", "535.161.08").machine(blocked(Some(802), "CD0110")),
    fails(802)
);
case!(
    a_cpu_build_does_not_mind_a_stopped_fabric_manager,
    "§8",
    cpu_build("torch", cudock_facts::finding::Severity::Error),
    gpu("H100-SXM", "535.161.08").machine(blocked(Some(802), "CD0110")),
    cpu()
);
case!(
    with_nothing_against_it_the_machine_runs_the_program,
    "§8",
    fits(),
    gpu("H100-SXM", "535.161.08").machine(healthy()),
    works()
);

// Azure sizes.
case!(
    a_virtual_gpu_needs_azures_driver,
    "§8",
    fits(),
    size("Standard_NV36ads_A10_v5"),
    works().finding("CD0802")
);
case!(
    a_whole_gpu_needs_no_such_driver,
    "§8",
    fits(),
    size("Standard_ND96isr_H100_v5"),
    works().no_finding("CD0802")
);
case!(
    an_amd64_image_does_not_start_on_a_gb200_size,
    "§1.1",
    sass(&["sm_100"]).in_image().built_for("amd64"),
    size("Standard_ND128isr_NDR_GB200_v6"),
    fails_by("exec format error")
);
case!(
    an_arm64_image_starts_on_a_gb200_size,
    "§1.1",
    sass(&["sm_100"]).in_image().built_for("arm64"),
    size("Standard_ND128isr_NDR_GB200_v6"),
    works()
);
case!(
    a_size_of_four_cards_has_no_fifth,
    "V4",
    fits().env("CUDA_VISIBLE_DEVICES", "4"),
    size("Standard_NC96ads_A100_v4"),
    fails(100)
);
case!(
    a_size_of_four_cards_has_a_fourth,
    "V4",
    fits().env("CUDA_VISIBLE_DEVICES", "3"),
    size("Standard_NC96ads_A100_v4"),
    works()
);
case!(
    an_amd_size_runs_no_cuda,
    "§13.23",
    fits(),
    size("Standard_ND96isr_MI300X_v5"),
    fails_by("no CUDA device")
);
case!(a_size_that_is_retired_is_named, "sizes", fits(), size("Standard_NC24rs_v3"), says("CD0801"));
case!(
    a_size_on_sale_is_not_called_retired,
    "sizes",
    fits(),
    size("Standard_NC96ads_A100_v4"),
    works().no_finding("CD0801")
);

// A card without a driver named.
case!(
    a_driver_that_was_not_named_is_reported_as_assumed,
    "D1",
    sass(&["sm_90"]),
    Target::of_gpu(facts(), "H200", None).unwrap(),
    works().finding("CD0218")
);
case!(
    the_driver_assumed_for_a_v100_is_one_that_drives_it,
    "§9",
    sass(&["sm_70"]),
    Target::of_gpu(facts(), "V100", None).unwrap(),
    works().finding("CD0218")
);

fn on_service(name: &str) -> Target {
    Target::of_size(facts(), name, None, Date::new(2026, 11, 15).unwrap()).unwrap()
}

#[test]
fn a_size_brings_the_driver_of_the_services_image_and_says_which() {
    for (name, driver, expected) in [
        ("Standard_NC4as_T4_v3", "580.126.16", "ubuntu-hpc:2204 (2026-07-17); a virtual machine is assumed"),
        ("vm/Standard_ND40rs_v2", "580.126.16", "ubuntu-hpc:2204-v100"),
        ("batch/Standard_NC4as_T4_v3", "580.126.16", "Azure Batch with microsoft-dsvm:ubuntu-hpc:2204"),
        ("aks/Standard_NC4as_T4_v3", "580.159.04", "Azure Kubernetes Service with Ubuntu node image"),
        ("AKS/nv36ads_a10_v5", "570.211.01", "node image 202606.08.1 or later"),
        ("Standard_NC72ds_xl_RTXPRO6000BSE_v6", "595.58.03", "NvidiaGpuDriverLinux"),
    ] {
        let target = on_service(name);
        assert_eq!(target.driver.unwrap().to_string(), driver, "{name}");
        let assumed = target.traits.driver_assumed.unwrap();
        assert!(assumed.contains(expected), "{name}: {assumed}");
    }
    let unknown = on_service("ml-cluster/Standard_NC4as_T4_v3");
    let assumed = unknown.traits.driver_assumed.unwrap();
    assert!(assumed.contains("no source gives the driver of Azure Machine Learning"), "{assumed}");
    let wrong = Target::of_size(facts(), "aksx/Standard_NC4as_T4_v3", None, Date::new(2026, 11, 15).unwrap());
    assert_eq!(wrong.unwrap_err().near, ["aks"]);
}

case!(
    a_program_for_a_newer_toolkit_than_the_services_driver_fails_on_that_size,
    "A19",
    ptx(&[("compute_90", "9.2")]),
    on_service("Standard_NC40ads_H100_v5"),
    answers(222)
);
