//! §7: what a container is given and what a program is shown.

use cudock_compat::TargetMachine;

use super::support::*;

fn fits() -> Part {
    sass(&["sm_90"]).runtime("12.2")
}

fn h100() -> cudock_compat::Target {
    gpu("H100", "535.161.08").cards(2)
}

// V1.
case!(
    visible_devices_void_injects_nothing,
    "V1",
    fits().in_image().env("NVIDIA_VISIBLE_DEVICES", "void"),
    h100(),
    fails(35).finding("CD0604").by("V1")
);
case!(
    empty_visible_devices_inject_nothing,
    "V1",
    fits().in_image().env("NVIDIA_VISIBLE_DEVICES", ""),
    h100(),
    fails(35).finding("CD0604")
);
case!(
    visible_devices_none_injects_the_driver_alone,
    "V1",
    fits().in_image().env("NVIDIA_VISIBLE_DEVICES", "none"),
    h100(),
    fails(100).finding("CD0604").by("V1")
);
case!(
    visible_devices_all_works,
    "V1",
    fits().in_image().env("NVIDIA_VISIBLE_DEVICES", "all"),
    h100(),
    works()
);
case!(
    visible_devices_may_be_indices,
    "V1",
    fits().in_image().env("NVIDIA_VISIBLE_DEVICES", "0,1"),
    h100(),
    works()
);
case!(
    a_cdi_device_overrules_void,
    "V1",
    fits().in_image().env("NVIDIA_VISIBLE_DEVICES", "void"),
    h100().cdi(),
    works()
);
case!(
    a_cdi_device_overrules_none,
    "V1",
    fits().in_image().env("NVIDIA_VISIBLE_DEVICES", "none"),
    h100().cdi(),
    works()
);
case!(
    torch_without_injection_is_answered_35,
    "V1",
    torch("2.5.1", "cu124").in_image().env("NVIDIA_VISIBLE_DEVICES", "void"),
    h100(),
    answers(35)
);
case!(
    a_host_without_libcuda_has_none_to_inject,
    "D6",
    fits().in_image(),
    h100().machine(TargetMachine { libcuda: None, ..healthy() }),
    fails(35).by("D6")
);

// V2.
case!(
    capability_utility_alone_brings_no_cuda,
    "V2",
    fits().in_image().env("NVIDIA_DRIVER_CAPABILITIES", "utility"),
    h100(),
    fails(35).finding("CD0605").by("V2")
);
case!(
    capabilities_video_and_graphics_bring_no_cuda,
    "V2",
    fits().in_image().env("NVIDIA_DRIVER_CAPABILITIES", "video,graphics,display"),
    h100(),
    fails(35)
);
case!(
    capability_compute_brings_cuda,
    "V2",
    fits().in_image().env("NVIDIA_DRIVER_CAPABILITIES", "compute"),
    h100(),
    works()
);
case!(
    capabilities_are_a_set,
    "V2",
    fits().in_image().env("NVIDIA_DRIVER_CAPABILITIES", "utility,video,compute"),
    h100(),
    works().by("V2")
);
case!(
    capability_all_brings_cuda,
    "V2",
    fits().in_image().env("NVIDIA_DRIVER_CAPABILITIES", "all"),
    h100(),
    works()
);
case!(unset_capabilities_bring_cuda, "V2", fits().in_image(), h100(), works());
case!(
    cdi_brings_the_whole_driver_whatever_is_requested,
    "V2",
    fits().in_image().env("NVIDIA_DRIVER_CAPABILITIES", "utility"),
    h100().cdi(),
    works()
);
case!(
    capabilities_do_not_matter_outside_a_container,
    "V2",
    fits().env("NVIDIA_DRIVER_CAPABILITIES", "utility"),
    h100(),
    works()
);

// V4.
case!(
    an_empty_cuda_visible_devices_hides_all,
    "V4",
    fits().env("CUDA_VISIBLE_DEVICES", ""),
    h100(),
    fails(100).finding("CD0109").by("V4")
);
case!(minus_one_hides_all, "V4", fits().env("CUDA_VISIBLE_DEVICES", "-1"), h100(), fails(100));
case!(the_first_card_can_be_shown, "V4", fits().env("CUDA_VISIBLE_DEVICES", "0"), h100(), works().by("V4"));
case!(the_last_card_can_be_shown, "V4", fits().env("CUDA_VISIBLE_DEVICES", "1"), h100(), works());
case!(a_card_that_is_not_there_hides_all, "V4", fits().env("CUDA_VISIBLE_DEVICES", "2"), h100(), fails(100));
case!(
    what_comes_before_an_invalid_entry_stays,
    "V4",
    fits().env("CUDA_VISIBLE_DEVICES", "1,7,0"),
    h100(),
    works()
);
case!(
    an_invalid_entry_hides_what_comes_after_it,
    "V4",
    fits().env("CUDA_VISIBLE_DEVICES", "7,0,1"),
    h100(),
    fails(100)
);
case!(
    a_known_identity_is_shown,
    "V4",
    fits().env("CUDA_VISIBLE_DEVICES", "GPU-5a1c"),
    h100().machine(TargetMachine { uuids: vec!["GPU-5a1c2d3e".to_owned()], ..healthy() }),
    works()
);
case!(
    an_identity_that_is_not_there_hides_all,
    "V4",
    fits().env("CUDA_VISIBLE_DEVICES", "GPU-ffff"),
    h100().machine(TargetMachine { uuids: vec!["GPU-5a1c2d3e".to_owned()], ..healthy() }),
    fails(100)
);
case!(
    an_image_may_hide_its_cards_too,
    "V4",
    fits().in_image().env("CUDA_VISIBLE_DEVICES", ""),
    h100(),
    fails(100)
);
case!(
    a_cpu_build_does_not_mind_hidden_cards,
    "V4",
    cpu_build("torch", cudock_facts::finding::Severity::Error).env("CUDA_VISIBLE_DEVICES", ""),
    h100(),
    cpu().finding("CD0401")
);
