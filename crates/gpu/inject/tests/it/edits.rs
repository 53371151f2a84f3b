//! What a container gets, for every kind of request and driver.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cudock_base::Report as _;
use cudock_inject::{
    Capabilities, Driver, DriverRoots, Edits, ElfClass, Extras, GpuRequest, InjectError, Placement, edits,
};
use cudock_testkit::driver_tree::{
    COMPUTE, DEBIAN, DriverTree, NARROW, UTILITY, VERSION, WIDE, can_make_devices, debian, two_gpus,
    with_everything,
};

use crate::support::DriverOf;

/// The request of `--gpus` alone.
fn resolve(flag: &str) -> Result<GpuRequest, InjectError> {
    GpuRequest::resolve(Some(flag), &BTreeMap::new(), false).map(Option::unwrap_or_default)
}

fn request(flag: &str) -> GpuRequest {
    resolve(flag).unwrap()
}

fn with(capabilities: &str) -> GpuRequest {
    GpuRequest { capabilities: Capabilities::parse(capabilities, "test").unwrap(), ..GpuRequest::default() }
}

fn image() -> Placement {
    Placement::Directory(PathBuf::from("/usr/lib64"))
}

fn given(driver: &Driver, request: &GpuRequest) -> Edits {
    edits(driver, request, &image()).unwrap_or_else(|error| panic!("{error}"))
}

fn nodes(edits: &Edits) -> Vec<String> {
    edits.devices.iter().map(|node| node.container.display().to_string()).collect()
}

/// Names of the mounted libraries, without version.
fn libraries(edits: &Edits) -> BTreeSet<String> {
    let names = edits.mounts.iter().filter_map(|mount| mount.container.file_name()?.to_str());
    names.filter_map(|name| name.split_once(".so")).map(|(stem, _)| stem.to_owned()).collect()
}

fn link<'a>(edits: &'a Edits, path: &str) -> Option<&'a Path> {
    edits.links.iter().find(|link| link.path == Path::new(path)).map(|link| link.target.as_path())
}

fn mounted(edits: &Edits, path: &str) -> bool {
    edits.mounts.iter().any(|mount| mount.container == Path::new(path))
}

#[test]
fn compute_and_utility_are_what_a_container_gets_by_default() {
    if !can_make_devices() {
        return;
    }
    let tree = debian();
    let edits = given(&tree.driver(), &request("all"));
    assert_eq!(
        nodes(&edits),
        ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia1", "/dev/nvidia0"]
    );
    let wanted: BTreeSet<String> = COMPUTE.iter().chain(&UTILITY).map(|stem| (*stem).to_owned()).collect();
    assert_eq!(libraries(&edits), wanted);
    let uvm = &edits.devices[1];
    assert_eq!((uvm.major, uvm.minor, uvm.mode), (507, 0, 0o666));
    assert_eq!(uvm.host, tree.at("/dev/nvidia-uvm"));
    assert!(mounted(&edits, "/usr/bin/nvidia-smi"));
    assert!(mounted(&edits, "/usr/bin/nvidia-cuda-mps-control"));
    assert!(!mounted(&edits, "/usr/bin/nvidia-imex"));
    assert!(mounted(&edits, &format!("/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin")));
    assert!(mounted(&edits, "/etc/OpenCL/vendors/nvidia.icd"));
    assert!(!mounted(&edits, "/etc/vulkan/icd.d/nvidia_icd.json"));
    assert!(edits.warnings.is_empty(), "{:?}", edits.warnings);
}

#[test]
fn files_are_read_only_and_sockets_are_not() {
    if !can_make_devices() {
        return;
    }
    let edits = given(&debian().driver(), &request("all"));
    for mount in &edits.mounts {
        let socket = mount.container == Path::new("/run/nvidia-persistenced/socket");
        assert_eq!(mount.options.contains(&"ro".to_owned()), !socket, "{mount:?}");
        assert_eq!(mount.options.contains(&"noexec".to_owned()), socket, "{mount:?}");
        for option in ["nosuid", "nodev", "rbind", "rprivate"] {
            assert!(mount.options.contains(&option.to_owned()), "{mount:?}");
        }
    }
    assert!(mounted(&edits, "/run/nvidia-persistenced/socket"));
}

#[test]
fn links_lead_from_the_names_programs_use_to_the_files() {
    if !can_make_devices() {
        return;
    }
    let edits = given(&debian().driver(), &with("all"));
    let file = format!("libcuda.so.{VERSION}");
    assert_eq!(link(&edits, "/usr/lib64/libcuda.so.1"), Some(Path::new(&file)));
    assert_eq!(link(&edits, "/usr/lib64/libcuda.so"), Some(Path::new("libcuda.so.1")));
    assert_eq!(
        link(&edits, "/usr/lib64/libnvidia-opticalflow.so"),
        Some(Path::new("libnvidia-opticalflow.so.1"))
    );
    assert_eq!(link(&edits, "/usr/lib64/libGLX_indirect.so.0"), Some(Path::new("libGLX_nvidia.so.0")));
    assert_eq!(
        link(&edits, "/usr/lib64/gbm/nvidia-drm_gbm.so"),
        Some(Path::new("../libnvidia-allocator.so.1"))
    );
    let vdpau = format!("libvdpau_nvidia.so.{VERSION}");
    assert_eq!(link(&edits, "/usr/lib64/vdpau/libvdpau_nvidia.so.1"), Some(Path::new(&vdpau)));
    let known = edits.libraries.iter().find(|library| library.soname == "libcuda.so.1").unwrap();
    assert_eq!(known.path, Path::new("/usr/lib64/libcuda.so.1"));
    let core =
        edits.libraries.iter().find(|library| library.soname.starts_with("libnvidia-eglcore")).unwrap();
    assert_eq!(core.path, PathBuf::from(format!("/usr/lib64/libnvidia-eglcore.so.{VERSION}")));
}

#[test]
fn each_capability_brings_its_own() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().dri("0000:01:00.0", 0).driver();
    let brings = |capability: &str, stem: &str| libraries(&given(&driver, &with(capability))).contains(stem);
    for (capability, stem) in [
        ("compute", "libcuda"),
        ("utility", "libnvidia-ml"),
        ("video", "libnvcuvid"),
        ("video", "libvdpau_nvidia"),
        ("graphics", "libEGL_nvidia"),
        ("display", "libGLX_nvidia"),
        ("ngx", "libnvidia-ngx"),
        ("all", "libnvidia-present"),
    ] {
        assert!(brings(capability, stem), "{capability} must bring {stem}");
    }
    for (capability, stem) in [
        ("utility", "libcuda"),
        ("compute", "libnvidia-ml"),
        ("compute", "libEGL_nvidia"),
        ("graphics", "libcuda"),
        ("compute,compat32,graphics,utility,video,display,ngx", "libnvidia-present"),
    ] {
        assert!(!brings(capability, stem), "{capability} must not bring {stem}");
    }
}

#[test]
fn utility_alone_needs_neither_uvm_nor_libcuda() {
    if !can_make_devices() {
        return;
    }
    let tree =
        two_gpus().libraries(DEBIAN, &UTILITY).program("/usr/bin/nvidia-smi").without("/dev/nvidia-uvm");
    let edits = given(&tree.driver(), &with("utility"));
    assert_eq!(nodes(&edits), ["/dev/nvidiactl", "/dev/nvidia1", "/dev/nvidia0"]);
}

#[test]
fn graphics_brings_the_cards_nodes_links_settings_and_profile() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().dri("0000:01:00.0", 0).dri("0000:41:00.0", 1).driver();
    let edits = given(&driver, &request("device=0,capabilities=graphics"));
    let nodes = nodes(&edits);
    assert!(
        nodes.contains(&"/dev/dri/card0".to_owned()) && nodes.contains(&"/dev/dri/renderD128".to_owned())
    );
    assert!(!nodes.contains(&"/dev/dri/card1".to_owned()), "that is the other card's");
    assert_eq!(link(&edits, "/dev/dri/by-path/pci-0000:01:00.0-card"), Some(Path::new("../card0")));
    assert_eq!(link(&edits, "/dev/dri/by-path/pci-0000:01:00.0-render"), Some(Path::new("../renderD128")));
    assert!(mounted(&edits, "/usr/share/glvnd/egl_vendor.d/10_nvidia.json"));
    assert!(mounted(&edits, "/etc/vulkan/icd.d/nvidia_icd.json"));
    let profile = edits.texts.iter().find(|text| text.path.ends_with("10-container.conf")).unwrap();
    assert!(profile.contents.contains("0x2"), "minor 1 is the second bit: {}", profile.contents);
}

#[test]
fn display_brings_the_modeset_node() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().driver();
    assert!(nodes(&given(&driver, &with("display"))).contains(&"/dev/nvidia-modeset".to_owned()));
    assert!(!nodes(&given(&driver, &with("graphics"))).contains(&"/dev/nvidia-modeset".to_owned()));
}

#[test]
fn narrow_libraries_come_with_compat32_into_a_directory_of_their_own() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().library_of("/usr/lib/i386-linux-gnu", "libcuda", VERSION, NARROW).driver();
    let placement = Placement::Directory(PathBuf::from(DEBIAN));
    let both = edits(&driver, &with("compute,compat32"), &placement).unwrap();
    assert!(mounted(&both, &format!("{DEBIAN}/libcuda.so.{VERSION}")));
    assert!(mounted(&both, &format!("/usr/lib/i386-linux-gnu/libcuda.so.{VERSION}")));
    let classes: Vec<ElfClass> = both
        .libraries
        .iter()
        .filter(|library| library.soname == "libcuda.so.1")
        .map(|library| library.class)
        .collect();
    assert_eq!(classes.len(), 2);
    let wide = edits(&driver, &with("compute"), &placement).unwrap();
    assert!(wide.libraries.iter().all(|library| library.class == ElfClass::Bits64));
    let none = edits(&debian().driver(), &with("compute,compat32"), &placement).unwrap();
    assert!(none.warnings[0].contains("no 32-bit libraries"), "{:?}", none.warnings);
}

#[test]
fn without_a_gpu_the_driver_is_there_and_no_card_is() {
    if !can_make_devices() {
        return;
    }
    let edits = given(&debian().driver(), &request("none"));
    assert_eq!(nodes(&edits), ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]);
    assert!(libraries(&edits).contains("libcuda"));
}

#[test]
fn gpus_are_chosen_by_every_kind_of_name() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().driver();
    let cards = |flag: &str| -> Vec<String> {
        let is_card = |node: &String| node.trim_start_matches("/dev/nvidia").parse::<u32>().is_ok();
        nodes(&given(&driver, &request(flag))).into_iter().filter(is_card).collect()
    };
    assert_eq!(cards("device=0"), ["/dev/nvidia1"]);
    assert_eq!(cards("1"), ["/dev/nvidia1"], "one GPU, the first");
    assert_eq!(cards("2"), ["/dev/nvidia1", "/dev/nvidia0"]);
    assert_eq!(cards("0,1,0"), ["/dev/nvidia1", "/dev/nvidia0"]);
    assert_eq!(cards("GPU-bbbbbbbb-0000-0000-0000-000000000000"), ["/dev/nvidia0"]);
    assert_eq!(cards("GPU-bbbb"), ["/dev/nvidia0"]);
    assert_eq!(cards("00000000:41:00.0"), ["/dev/nvidia0"]);
}

#[test]
fn a_gpu_that_is_not_here_is_refused_with_those_that_are() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().driver();
    for flag in ["device=2", "GPU-cccc", "GPU-", "0:0", "MIG-1"] {
        let Ok(request) = resolve(flag) else { continue };
        let error = edits(&driver, &request, &image()).unwrap_err();
        assert!(matches!(error, InjectError::UnknownGpu { .. }), "{flag}: {error}");
        assert!(error.hints()[0].starts_with("there are: 0 (GPU-aaaaaaaa"), "{:?}", error.hints());
    }
    let error = edits(&driver, &request("3"), &image()).unwrap_err();
    assert_eq!(error.to_string(), "3 GPUs requested, 2 available");
}

#[test]
fn a_beginning_that_two_uuids_share_names_neither() {
    if !can_make_devices() {
        return;
    }
    let tree =
        DriverTree::new().module(VERSION).gpu("0000:01:00.0", 0, "GPU-aa1").gpu("0000:02:00.0", 1, "GPU-aa2");
    let driver = tree.libraries(DEBIAN, &COMPUTE).driver();
    assert!(edits(&driver, &request("GPU-aa"), &image()).is_err());
    assert!(edits(&driver, &request("GPU-aa2"), &image()).is_ok());
}

#[test]
fn a_part_of_a_gpu_comes_with_its_card_and_two_capabilities() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().mig(1, &[(3, 0), (5, 0)]).driver();
    let part = given(&driver, &request("0:1"));
    let caps = |edits: &Edits| -> Vec<String> {
        nodes(edits).into_iter().filter(|node| node.contains("nvidia-cap")).collect()
    };
    assert_eq!(caps(&part), ["/dev/nvidia-caps/nvidia-cap183", "/dev/nvidia-caps/nvidia-cap184"]);
    assert!(nodes(&part).contains(&"/dev/nvidia1".to_owned()));
    assert!(!nodes(&part).contains(&"/dev/nvidia0".to_owned()));
    assert_eq!(caps(&given(&driver, &request("device=0"))).len(), 4, "a whole card comes with all its parts");
    assert_eq!(caps(&given(&driver, &request("0:0,0:1"))).len(), 4);
    let old = "MIG-GPU-aaaaaaaa-0000-0000-0000-000000000000/5/0";
    assert_eq!(given(&driver, &request(old)).devices, part.devices);
    assert!(part.additional_gids.is_empty());
}

#[test]
fn mig_administration_is_given_only_when_requested() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().mig(1, &[]).device("/dev/nvidia-caps/nvidia-cap1", 234, 1, 0o400).driver();
    let config =
        GpuRequest { extras: Extras { mig_config: true, ..Extras::default() }, ..GpuRequest::default() };
    assert!(nodes(&given(&driver, &config)).contains(&"/dev/nvidia-caps/nvidia-cap1".to_owned()));
    assert!(!nodes(&given(&driver, &request("all"))).contains(&"/dev/nvidia-caps/nvidia-cap1".to_owned()));
    let monitor =
        GpuRequest { extras: Extras { mig_monitor: true, ..Extras::default() }, ..GpuRequest::default() };
    let error = edits(&driver, &monitor, &image()).unwrap_err();
    assert_eq!(error.to_string(), "/dev/nvidia-caps/nvidia-cap2 is missing");
}

#[test]
fn channels_and_extras_are_given_when_requested() {
    if !can_make_devices() {
        return;
    }
    let driver = debian()
        .device("/dev/nvidia-caps-imex-channels/channel0", 235, 0, 0o666)
        .device("/dev/nvidia-fs0", 511, 0, 0o666)
        .device("/dev/gdrdrv", 510, 0, 0o666)
        .device("/dev/infiniband/uverbs0", 231, 192, 0o666)
        .device("/dev/infiniband/rdma_cm", 10, 123, 0o666)
        .device("/dev/nvidia-nvswitchctl", 509, 255, 0o666)
        .device("/dev/nvidia-nvswitch0", 509, 0, 0o666)
        .file("/etc/cufile.json", "{}")
        .directory("/run/udev")
        .driver();
    let plain = given(&driver, &request("all"));
    assert_eq!(plain.devices.len(), 5, "{:?}", nodes(&plain));
    let extras = Extras { gds: true, gdrcopy: true, mofed: true, nvswitch: true, ..Extras::default() };
    let request_with_extras = GpuRequest { imex_channels: vec![0], extras, ..GpuRequest::default() };
    let edits = given(&driver, &request_with_extras);
    assert_eq!(edits.devices.len(), 12, "{:?}", nodes(&edits));
    assert!(mounted(&edits, "/etc/cufile.json") && mounted(&edits, "/run/udev"));
    assert!(!mounted(&plain, "/run/udev"));
    assert!(edits.warnings.is_empty());
    let missing = given(&debian().driver(), &GpuRequest { extras, ..GpuRequest::default() });
    assert_eq!(missing.warnings.len(), 4, "{:?}", missing.warnings);
    let channel = GpuRequest { imex_channels: vec![7], ..GpuRequest::default() };
    let error = cudock_inject::edits(&driver, &channel, &image()).unwrap_err();
    assert_eq!(error.to_string(), "/dev/nvidia-caps-imex-channels/channel7 is missing");
}

#[test]
fn a_group_that_alone_may_use_a_node_becomes_the_containers() {
    if !can_make_devices() {
        return;
    }
    let tree = debian().without("/dev/nvidia0").device("/dev/nvidia0", 195, 0, 0o660);
    std::os::unix::fs::chown(tree.at("/dev/nvidia0"), Some(0), Some(44)).unwrap();
    let edits = given(&tree.driver(), &request("all"));
    assert_eq!(edits.additional_gids, [44]);
    assert_eq!(edits.devices.last().unwrap().gid, 44);
}

#[test]
fn the_driver_inside_may_not_make_nodes() {
    if !can_make_devices() {
        return;
    }
    let edits = given(&debian().driver(), &request("all"));
    let params =
        edits.texts.iter().find(|text| text.path == Path::new("/proc/driver/nvidia/params")).unwrap();
    assert!(params.contents.contains("ModifyDeviceFiles: 0\n"));
    assert!(params.contents.contains("DeviceFileMode: 438\n"), "the rest stays");
    assert!(edits.environment.contains(&("NVIDIA_VISIBLE_DEVICES".to_owned(), "void".to_owned())));
    assert!(edits.environment.contains(&("NVIDIA_CTK_LIBCUDA_DIR".to_owned(), "/usr/lib64".to_owned())));
}

#[test]
fn in_cdi_files_stay_where_the_host_has_them() {
    if !can_make_devices() {
        return;
    }
    let driver = with_everything(two_gpus(), "/usr/local/nvidia/lib64").driver();
    let edits = edits(&driver, &with("all"), &Placement::SameAsHost).unwrap();
    assert!(mounted(&edits, &format!("/usr/local/nvidia/lib64/libcuda.so.{VERSION}")));
    assert_eq!(link(&edits, "/usr/local/nvidia/lib64/libcuda.so"), Some(Path::new("libcuda.so.1")));
}

#[test]
fn a_driver_containers_files_lose_its_root_inside() {
    if !can_make_devices() {
        return;
    }
    let tree = two_gpus()
        .libraries("/run/nvidia/driver/usr/lib64", &COMPUTE)
        .libraries("/run/nvidia/driver/usr/lib64", &UTILITY);
    let edits = edits(&tree.driver(), &request("all"), &Placement::SameAsHost).unwrap();
    let libcuda =
        edits.mounts.iter().find(|mount| mount.container.to_string_lossy().contains("libcuda.so")).unwrap();
    assert_eq!(libcuda.container, PathBuf::from(format!("/usr/lib64/libcuda.so.{VERSION}")));
    assert_eq!(libcuda.host, tree.at(&format!("/run/nvidia/driver/usr/lib64/libcuda.so.{VERSION}")));
}

#[test]
fn windows_driver_stays_in_its_store_and_has_one_node() {
    if !can_make_devices() {
        return;
    }
    let store = "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1";
    let tree = DriverTree::new()
        .device("/dev/dxg", 10, 125, 0o666)
        .file("/usr/lib/wsl/lib/libdxcore.so", WIDE)
        .file(&format!("{store}/libcuda.so.1.1"), WIDE)
        .file(&format!("{store}/libnvidia-ml.so.1"), WIDE)
        .file(&format!("{store}/nvcubins.bin"), "cubins")
        .file(&format!("{store}/readme.txt"), "no")
        .program(&format!("{store}/nvidia-smi"));
    let driver = tree.driver();
    let edits = given(&driver, &request("all"));
    assert_eq!(nodes(&edits), ["/dev/dxg"]);
    assert!(mounted(&edits, &format!("{store}/libcuda.so.1.1")));
    assert!(mounted(&edits, &format!("{store}/nvcubins.bin")));
    assert!(!mounted(&edits, &format!("{store}/readme.txt")));
    assert!(mounted(&edits, "/usr/lib/wsl/lib/libdxcore.so"));
    assert_eq!(link(&edits, &format!("{store}/libcuda.so.1")), Some(Path::new("libcuda.so.1.1")));
    assert_eq!(link(&edits, "/usr/bin/nvidia-smi"), Some(Path::new(&format!("{store}/nvidia-smi"))));
    assert!(nodes(&given(&driver, &request("none"))).is_empty());
    let gone = tree.without("/dev/dxg").file("/dev/dxg", "").driver();
    let error = cudock_inject::edits(&gone, &request("all"), &image()).unwrap_err();
    assert_eq!(error.to_string(), "/dev/dxg is missing: not a device node");
}

#[test]
fn what_makes_a_container_useless_is_an_error_with_a_way_out() {
    if !can_make_devices() {
        return;
    }
    let refused = |tree: DriverTree, flag: &str| edits(&tree.driver(), &request(flag), &image()).unwrap_err();
    for (tree, flag, message) in [
        (debian().without("/dev/nvidiactl"), "all", "/dev/nvidiactl is missing"),
        (debian().without("/dev/nvidia-uvm"), "all", "/dev/nvidia-uvm is missing"),
        (debian().without("/dev/nvidia0"), "all", "/dev/nvidia0 is missing"),
        (
            debian().without("/dev/nvidia0").file("/dev/nvidia0", ""),
            "all",
            "/dev/nvidia0 is missing: not a device node",
        ),
        (debian().without("/proc/driver/nvidia/gpus"), "all", "no GPU: the driver's module holds none"),
        (
            debian().mig(1, &[(3, 0)]).without("/dev/nvidia-caps/nvidia-cap165"),
            "0:0",
            "/dev/nvidia-caps/nvidia-cap165 is missing",
        ),
    ] {
        let error = refused(tree, flag);
        assert_eq!(error.to_string(), message);
        assert!(error.hints().iter().any(|hint| !hint.is_empty()), "{message}");
    }
    let error = refused(two_gpus().libraries(DEBIAN, &UTILITY), "all");
    assert_eq!(
        error.to_string(),
        format!("driver {VERSION} has no libcuda.so.{VERSION}, which compute needs")
    );
}

#[test]
fn what_is_merely_missed_is_a_warning() {
    if !can_make_devices() {
        return;
    }
    let edits = given(&two_gpus().libraries(DEBIAN, &["libcuda"]).driver(), &request("all"));
    for name in ["libnvidia-ptxjitcompiler", "libnvidia-ml", "nvidia-smi"] {
        assert!(edits.warnings.iter().any(|warning| warning.contains(name)), "{name}: {:?}", edits.warnings);
    }
}

#[test]
fn the_multi_process_service_is_reached_where_it_listens() {
    if !can_make_devices() {
        return;
    }
    let tree = debian().directory("/tmp/nvidia-mps").directory("/srv/mps");
    let usual = given(&tree.driver(), &request("all"));
    let mount = usual.mounts.iter().find(|mount| mount.container == Path::new("/tmp/nvidia-mps")).unwrap();
    assert!(!mount.options.contains(&"ro".to_owned()));
    assert!(usual.environment.iter().all(|(name, _)| name != "CUDA_MPS_PIPE_DIRECTORY"));
    let elsewhere = DriverRoots { mps: "/srv/mps".to_owned(), ..tree.places() };
    let edits = given(&Driver::find(&elsewhere).unwrap(), &request("all"));
    assert!(mounted(&edits, "/srv/mps") && !mounted(&edits, "/tmp/nvidia-mps"));
    assert!(edits.environment.contains(&("CUDA_MPS_PIPE_DIRECTORY".to_owned(), "/srv/mps".to_owned())));
    assert!(!mounted(&given(&tree.driver(), &with("utility")), "/tmp/nvidia-mps"));
}
