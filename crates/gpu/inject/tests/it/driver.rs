//! Drivers where distributions, clouds and Windows put them.

use cudock_base::Report as _;
use cudock_host::Root;
use cudock_inject::driver::DriverKind;
use cudock_inject::{Driver, DriverGpu, DriverRoots, ElfClass, InjectError, MigDevice};
use cudock_testkit::driver_tree::{
    DEBIAN, DriverTree, NARROW, UTILITY, VERSION, WIDE, can_make_devices, debian, two_gpus,
};

use crate::support::DriverOf;

fn directories(driver: &Driver) -> Vec<&str> {
    let mut directories: Vec<&str> =
        driver.libraries.iter().map(|library| library.directory.as_str()).collect();
    directories.dedup();
    directories
}

#[test]
fn debians_driver_is_found_with_its_version_gpus_and_nodes() {
    if !can_make_devices() {
        return;
    }
    let tree = debian();
    let driver = tree.driver();
    assert_eq!(driver.suffix, VERSION);
    assert_eq!(driver.version.unwrap().to_string(), VERSION);
    assert_eq!(directories(&driver), [DEBIAN]);
    let gpus: Vec<(u32, u32, &str)> =
        driver.gpus.iter().map(|gpu| (gpu.index, gpu.minor, gpu.bus.as_str())).collect();
    assert_eq!(gpus, [(0, 1, "0000:01:00.0"), (1, 0, "0000:41:00.0")], "by bus, and not by minor");
    let node = &driver.nodes["/dev/nvidia-uvm"];
    assert_eq!((node.major, node.minor, node.mode), (507, 0, 0o666), "numbers come from stat");
    let libcuda = driver.libraries.iter().find(|library| library.stem() == "libcuda").unwrap();
    assert_eq!(libcuda.soname.as_deref(), Some("libcuda.so.1"));
    assert_eq!(libcuda.host, tree.at(&format!("{DEBIAN}/libcuda.so.{VERSION}")));
    assert!(driver.notes.is_empty(), "{:?}", driver.notes);
}

#[test]
fn the_32_bit_directory_of_red_hat_is_distinguished_from_the_64_bit_one() {
    if !can_make_devices() {
        return;
    }
    let tree = two_gpus()
        .library_of("/usr/lib64", "libcuda", VERSION, WIDE)
        .library_of("/usr/lib", "libcuda", VERSION, NARROW);
    let driver = tree.driver();
    let classes: Vec<(&str, ElfClass)> =
        driver.libraries.iter().map(|library| (library.directory.as_str(), library.class)).collect();
    assert_eq!(classes, [("/usr/lib64", ElfClass::Bits64), ("/usr/lib", ElfClass::Bits32)]);
}

#[test]
fn odd_places_are_found() {
    if !can_make_devices() {
        return;
    }
    for directory in [
        "/usr/local/nvidia/lib64",
        "/usr/lib/x86_64-linux-gnu/nvidia/current",
        "/usr/lib64/nvidia",
        "/opt/nvidia/lib64",
        "/home/kubernetes/bin/nvidia/lib64",
    ] {
        let tree = two_gpus()
            .directory(DEBIAN)
            .directory("/usr/lib64")
            .libraries(directory, &["libcuda", "libnvidia-ml"]);
        assert_eq!(directories(&tree.driver()), [directory]);
    }
}

#[test]
fn a_directory_of_the_loaders_configuration_is_found() {
    if !can_make_devices() {
        return;
    }
    let tree = two_gpus()
        .file("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        .file("/etc/ld.so.conf.d/driver.conf", "/srv/driver/lib\n")
        .libraries("/srv/driver/lib", &["libcuda"]);
    assert_eq!(directories(&tree.driver()), ["/srv/driver/lib"]);
}

#[test]
fn a_driver_container_is_a_root_of_its_own() {
    if !can_make_devices() {
        return;
    }
    let tree = two_gpus()
        .libraries("/run/nvidia/driver/usr/lib64", &["libcuda", "libnvidia-ml"])
        // A link that is absolute inside the driver's root.
        .link("/run/nvidia/driver/usr/lib/x86_64-linux-gnu", "/usr/lib64")
        .program("/run/nvidia/driver/usr/bin/nvidia-smi");
    let driver = tree.driver();
    assert_eq!(driver.root, tree.at("/run/nvidia/driver"));
    assert_eq!(directories(&driver), ["/usr/lib64"], "paths are those of the driver's root");
    assert_eq!(
        driver.libraries[0].host,
        tree.at(&format!("/run/nvidia/driver/usr/lib64/libcuda.so.{VERSION}"))
    );
    assert_eq!(driver.gpus.len(), 2, "devices are the machine's");
    assert!(driver.files.iter().any(|file| file.inside == "/usr/bin/nvidia-smi"));
}

#[test]
fn files_and_devices_may_come_from_two_roots() {
    if !can_make_devices() {
        return;
    }
    let files = DriverTree::new().libraries("/usr/lib64", &["libcuda"]);
    let devices = two_gpus();
    let places = DriverRoots::two(Root::tree(files.path()).unwrap(), Root::tree(devices.path()).unwrap());
    let driver = Driver::find(&places).unwrap();
    assert_eq!(driver.root, files.at("/"));
    assert_eq!(driver.nodes["/dev/nvidia0"].host, devices.at("/dev/nvidia0"));
}

#[test]
fn a_nix_store_is_found_through_its_links() {
    if !can_make_devices() {
        return;
    }
    let store = "/nix/store/abc-nvidia-x11/lib";
    let tree = two_gpus()
        .libraries(store, &["libcuda", "libnvidia-ml"])
        .link("/run/opengl-driver/lib/libcuda.so.1", &format!("{store}/libcuda.so.1"))
        .link("/run/opengl-driver/lib/libnvidia-ml.so.1", &format!("{store}/libnvidia-ml.so.1"))
        .program("/nix/store/abc-nvidia-x11/bin/nvidia-smi");
    let driver = tree.driver();
    assert_eq!(directories(&driver), [store]);
    assert!(driver.files.iter().any(|file| file.inside.ends_with("abc-nvidia-x11/bin/nvidia-smi")));
}

#[test]
fn windows_driver_is_found_in_its_store() {
    if !can_make_devices() {
        return;
    }
    let driver = wsl().driver();
    assert_eq!(driver.kind, DriverKind::Wsl);
    assert!(driver.libraries.iter().all(|library| library.directory.starts_with("/usr/lib/wsl/")));
    assert!(driver.libraries.iter().any(|library| library.file == "libdxcore.so"));
    assert_eq!(driver.nodes.keys().collect::<Vec<_>>(), ["/dev/dxg"]);
}

fn wsl() -> DriverTree {
    let store = "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1";
    DriverTree::new()
        .device("/dev/dxg", 10, 125, 0o666)
        .file("/usr/lib/wsl/lib/libdxcore.so", WIDE)
        .file(&format!("{store}/libcuda.so.1.1"), WIDE)
        .file(&format!("{store}/libnvidia-ml.so.1"), WIDE)
        .file(&format!("{store}/nvcubins.bin"), "cubins")
        .directory("/usr/lib/wsl/drivers/other.inf_amd64_2")
}

#[test]
fn a_new_library_beside_an_old_module_is_reported_and_the_modules_version_is_preferred() {
    if !can_make_devices() {
        return;
    }
    let both = two_gpus().library(DEBIAN, "libcuda", "590.10").library("/usr/lib64", "libcuda", VERSION);
    assert_eq!(both.driver().suffix, VERSION);
    let other = two_gpus().library(DEBIAN, "libcuda", "590.10").driver();
    assert_eq!(other.suffix, "590.10");
    assert!(
        other.notes[0].contains("module is of driver 580.159.04 and the libraries are of 590.10"),
        "{:?}",
        other.notes
    );
}

#[test]
fn stubs_compat_copies_and_empty_files_are_no_driver() {
    if !can_make_devices() {
        return;
    }
    let tree = two_gpus()
        .library("/usr/local/cuda/compat", "libcuda", "550.54.14")
        .library("/usr/local/cuda/lib64/stubs", "libcuda", "550.54.14")
        .file("/etc/ld.so.conf", "/usr/local/cuda/compat\n/usr/local/cuda/lib64/stubs\n")
        .file(&format!("{DEBIAN}/libcuda.so.{VERSION}"), "");
    let error = tree.find().unwrap_err();
    assert!(matches!(error, InjectError::NoDriver { .. }), "{error}");
    assert!(error.hints()[0].contains("/run/nvidia/driver"));
}

#[test]
fn nvml_alone_gives_the_version() {
    if !can_make_devices() {
        return;
    }
    assert_eq!(two_gpus().libraries(DEBIAN, &UTILITY).driver().suffix, VERSION);
}

#[test]
fn mig_devices_are_those_the_module_shows_and_not_all_that_could_be() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().mig(1, &[(3, 0), (5, 0), (5, 1)]).driver();
    let parts: Vec<(u32, u32, u32)> =
        driver.gpus[0].mig.iter().map(|mig| (mig.index, mig.gpu_instance, mig.compute_instance)).collect();
    assert_eq!(parts, [(0, 3, 0), (1, 5, 0), (2, 5, 1)]);
    assert!(driver.gpus[1].mig.is_empty());
    assert_eq!(driver.mig_minors["gpu1/gi3/ci0/access"], 135 + 27 + 4);
}

#[test]
fn nvmls_order_and_names_are_taken_over() {
    if !can_make_devices() {
        return;
    }
    let mig = vec![MigDevice { uuid: Some("MIG-1".to_owned()), gpu_instance: 7, ..MigDevice::default() }];
    let by_nvml = [
        DriverGpu {
            uuid: Some("GPU-bbbbbbbb-0000-0000-0000-000000000000".to_owned()),
            ..DriverGpu::default()
        },
        DriverGpu { bus: "00000000:01:00.0".to_owned(), mig: mig.clone(), ..DriverGpu::default() },
    ];
    let driver = debian().driver().numbered_by(&by_nvml);
    assert_eq!((driver.gpus[0].index, driver.gpus[0].minor), (0, 0));
    assert_eq!((driver.gpus[1].index, driver.gpus[1].minor), (1, 1));
    assert_eq!(driver.gpus[1].mig, mig);
}

#[test]
fn a_card_that_was_never_used_has_no_name_yet() {
    if !can_make_devices() {
        return;
    }
    let tree = DriverTree::new()
        .module(VERSION)
        .gpu("0000:01:00.0", 0, "GPU-????????-????-????-????-????????????")
        .libraries(DEBIAN, &["libcuda"]);
    assert_eq!(tree.driver().gpus[0].uuid, None);
}

#[test]
fn a_program_is_preferred_to_a_script_of_its_name() {
    if !can_make_devices() {
        return;
    }
    let tree = two_gpus()
        .libraries("/usr/local/nvidia/lib64", &["libcuda"])
        .program("/usr/bin/nvidia-smi")
        .program("/usr/local/nvidia/bin/nvidia-smi");
    let smi = |tree: &DriverTree| {
        let driver = tree.driver();
        driver.files.iter().find(|file| file.inside.ends_with("/nvidia-smi")).unwrap().inside.clone()
    };
    assert_eq!(smi(&tree), "/usr/bin/nvidia-smi", "of two scripts the first");
    std::fs::write(tree.at("/usr/local/nvidia/bin/nvidia-smi"), WIDE).unwrap();
    assert_eq!(smi(&tree), "/usr/local/nvidia/bin/nvidia-smi");
}
