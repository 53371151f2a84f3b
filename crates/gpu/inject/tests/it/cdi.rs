//! Specifications: written, read by others, and found to be stale.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cudock_facts::finding::Severity;
use cudock_host::Root;
use cudock_host::ld_cache::Cache;
use cudock_inject::cdi::hook::{self, HookCall, Stage};
use cudock_inject::cdi::{
    CdiOptions, CheckTarget, SpecFinding, Specification, check, check_directories, specification,
};
use cudock_inject::{Capabilities, Driver, Extras, InjectError};
use cudock_testkit::driver_tree::{DEBIAN, DriverTree, VERSION, WIDE, can_make_devices, debian};

use crate::support::DriverOf;

fn options() -> CdiOptions {
    CdiOptions::new(PathBuf::from("/usr/bin/cudock"))
}

fn written(driver: &Driver) -> Specification {
    specification(driver, &options()).unwrap_or_else(|error| panic!("{error}")).0
}

fn names(spec: &Specification) -> Vec<&str> {
    spec.devices.iter().map(|device| device.name.as_str()).collect()
}

fn nodes<'a>(spec: &'a Specification, name: &str) -> Vec<&'a str> {
    let device = spec.devices.iter().find(|device| device.name == name).unwrap();
    device.container_edits.device_nodes.iter().map(|node| node.path.as_str()).collect()
}

#[test]
fn devices_are_named_by_index_uuid_and_all() {
    if !can_make_devices() {
        return;
    }
    let spec = written(&debian().driver());
    assert_eq!(
        names(&spec),
        [
            "0",
            "GPU-aaaaaaaa-0000-0000-0000-000000000000",
            "1",
            "GPU-bbbbbbbb-0000-0000-0000-000000000000",
            "all"
        ]
    );
    assert_eq!(spec.kind, "nvidia.com/gpu");
    assert_eq!(nodes(&spec, "0"), ["/dev/nvidia1"]);
    assert_eq!(nodes(&spec, "GPU-bbbbbbbb-0000-0000-0000-000000000000"), ["/dev/nvidia0"]);
    assert_eq!(nodes(&spec, "all"), ["/dev/nvidia1", "/dev/nvidia0"]);
    let common: Vec<&str> = spec.container_edits.device_nodes.iter().map(|node| node.path.as_str()).collect();
    assert_eq!(common, ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"]);
}

#[test]
fn parts_of_gpus_are_devices() {
    if !can_make_devices() {
        return;
    }
    let spec = written(&debian().mig(1, &[(3, 0), (5, 0)]).driver());
    assert!(names(&spec).contains(&"0:0") && names(&spec).contains(&"0:1"));
    assert_eq!(
        nodes(&spec, "0:1"),
        ["/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap183", "/dev/nvidia-caps/nvidia-cap184"]
    );
    assert_eq!(nodes(&spec, "all").len(), 6);
}

#[test]
fn windows_driver_is_one_device() {
    if !can_make_devices() {
        return;
    }
    let tree = DriverTree::new()
        .device("/dev/dxg", 10, 125, 0o666)
        .file("/usr/lib/wsl/lib/libdxcore.so", WIDE)
        .file("/usr/lib/wsl/drivers/nv.inf/libcuda.so.1.1", WIDE);
    let spec = written(&tree.driver());
    assert_eq!(names(&spec), ["all"]);
    assert_eq!(nodes(&spec, "all"), ["/dev/dxg"]);
    assert_eq!(spec.cdi_version, "0.5.0", "nodes of a tree have a place of their own");
}

#[test]
fn the_version_is_the_lowest_that_has_the_fields() {
    if !can_make_devices() {
        return;
    }
    assert_eq!(written(&debian().driver()).cdi_version, "0.5.0");
    let tree = debian().without("/dev/nvidia0").device("/dev/nvidia0", 195, 0, 0o660);
    std::os::unix::fs::chown(tree.at("/dev/nvidia0"), Some(0), Some(44)).unwrap();
    let spec = written(&tree.driver());
    assert_eq!(spec.cdi_version, "0.7.0");
    let last = spec.devices.last().unwrap();
    assert_eq!(last.container_edits.additional_gids, [44]);
    assert_eq!(
        Specification { kind: "a.b/c".to_owned(), ..Specification::default() }.lowest_version(),
        "0.3.0"
    );
    assert_eq!(
        Specification { kind: "a.b/c.d".to_owned(), ..Specification::default() }.lowest_version(),
        "0.6.0"
    );
}

#[test]
fn both_forms_say_the_same_and_are_stable() {
    if !can_make_devices() {
        return;
    }
    let tree = debian();
    let spec = written(&tree.driver());
    let yaml = spec.to_yaml().unwrap();
    assert_eq!(yaml, written(&tree.driver()).to_yaml().unwrap());
    assert_eq!(cudock_yaml::from_str::<Specification>(&yaml).unwrap(), spec);
    assert_eq!(serde_json::from_str::<Specification>(&spec.to_json().unwrap()).unwrap(), spec);
    assert!(yaml.contains("- name: '0'\n"), "a number as a name must stay a text");
}

#[test]
fn numbers_of_devices_are_left_to_whoever_makes_the_container() {
    if !can_make_devices() {
        return;
    }
    let spec = written(&debian().driver());
    let mut all = spec.edits().flat_map(|edits| &edits.device_nodes);
    assert!(all.all(|node| node.major.is_none() && node.minor.is_none()));
}

#[test]
fn hooks_say_everything_they_are_called_for() {
    if !can_make_devices() {
        return;
    }
    let spec = written(&debian().dri("0000:01:00.0", 0).driver());
    let verbs: Vec<&str> = spec.container_edits.hooks.iter().map(|hook| hook.args[2].as_str()).collect();
    assert_eq!(
        verbs,
        [
            "create-symlinks",
            "update-ldcache",
            "disable-device-node-modification",
            "update-application-profile"
        ]
    );
    for hook in &spec.container_edits.hooks {
        assert_eq!((hook.hook_name.as_str(), hook.path.as_str()), ("createRuntime", "/usr/bin/cudock"));
        assert_eq!(&hook.args[..2], ["cudock", "cdi-hook"]);
        assert_eq!(hook.args.last().unwrap(), "--join");
    }
    let libraries = &spec.container_edits.hooks[1].args[3..];
    let libcuda = libraries.iter().find(|arg| arg.contains("::libcuda.so.1::")).unwrap();
    assert_eq!(hook::parse_library(libcuda).unwrap().path, PathBuf::from(format!("{DEBIAN}/libcuda.so.1")));
    let own = &spec.devices[0].container_edits.hooks[0].args;
    assert!(own.contains(&"../card0::/dev/dri/by-path/pci-0000:01:00.0-card".to_owned()), "{own:?}");
}

#[test]
fn a_kind_that_no_engine_takes_is_refused() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().driver();
    for (vendor, class) in [("", "gpu"), ("1vendor", "gpu"), ("nvidia.com", "g/pu"), ("nvidia.com", "gpu=")] {
        let options = CdiOptions { vendor: vendor.to_owned(), class: class.to_owned(), ..options() };
        let error = specification(&driver, &options).unwrap_err();
        assert!(matches!(error, InjectError::BadRequest { .. }), "{error}");
    }
}

#[test]
fn fewer_capabilities_and_extras_can_be_written() {
    if !can_make_devices() {
        return;
    }
    let driver = debian().device("/dev/gdrdrv", 510, 0, 0o666).driver();
    let options = CdiOptions {
        capabilities: Capabilities::default(),
        extras: Extras { gdrcopy: true, ..Extras::default() },
        ..options()
    };
    let (spec, _) = specification(&driver, &options).unwrap();
    assert!(spec.container_edits.device_nodes.iter().any(|node| node.path == "/dev/gdrdrv"));
    assert!(!spec.to_yaml().unwrap().contains("libEGL_nvidia"));
}

/// Names as a specification on the machine itself has them: without the tree in front.
fn on_the_machine(tree: &DriverTree, spec: &Specification) -> String {
    spec.to_yaml()
        .unwrap()
        .replace(tree.at("/").to_str().unwrap(), "/")
        .replace("hostPath: //", "hostPath: /")
}

fn findings(tree: &DriverTree, text: &str) -> Vec<SpecFinding> {
    let root = Root::tree(tree.path()).unwrap();
    let driver = tree.find().ok();
    check(&CheckTarget { root: &root, driver: driver.as_ref() }, "/etc/cdi/nvidia.yaml", text)
}

fn messages(findings: &[SpecFinding]) -> String {
    findings.iter().map(|finding| format!("{}\n", finding.message)).collect()
}

#[test]
fn a_fresh_specification_has_no_fault() {
    if !can_make_devices() {
        return;
    }
    let tree = debian().mig(1, &[(3, 0)]).program("/usr/bin/cudock");
    let text = on_the_machine(&tree, &written(&tree.driver()));
    assert_eq!(findings(&tree, &text), []);
}

#[test]
fn what_changed_since_it_was_written_is_found() {
    if !can_make_devices() {
        return;
    }
    let tree = || debian().mig(1, &[(3, 0)]).program("/usr/bin/cudock");
    let made = tree();
    let text = on_the_machine(&made, &written(&made.driver()));
    let updated =
        tree().without(&format!("{DEBIAN}/libcuda.so.{VERSION}")).library("/usr/lib64", "libcuda", "590.10");
    let updated = updated.without("/proc/driver/nvidia/version");
    let cases: [(DriverTree, &str, &str); 6] = [
        (tree().without("/usr/bin/nvidia-smi"), &text, "mounted files not found"),
        (updated, &text, "it is for driver 580.159.04, but 590.10 is running"),
        (tree().without("/proc/driver/nvidia/gpus/0000:41:00.0"), &text, "no longer exist: 1, GPU-bbbbbbbb"),
        (tree().gpu("0000:81:00.0", 2, "GPU-cc"), &text, "missing from it: 2"),
        (
            tree().without("/proc/driver/nvidia/capabilities").without("/dev/nvidia-caps/nvidia-cap165"),
            &text,
            "no longer exist: 0:0",
        ),
        (tree().without("/usr/bin/cudock"), &text, "programs of its hooks not found: /usr/bin/cudock"),
    ];
    for (tree, text, wanted) in cases {
        let found = findings(&tree, text);
        assert!(messages(&found).contains(wanted), "{wanted}:\n{}", messages(&found));
        assert!(found.iter().all(|finding| finding.fix.contains("cudock cdi --output /etc/cdi/nvidia.yaml")));
    }
    let found = findings(&tree().mig(1, &[(7, 0)]), &text);
    assert!(messages(&found).contains("missing from it: 0:1"), "{}", messages(&found));
}

#[test]
fn names_that_only_nvml_knows_are_a_note_and_no_problem() {
    if !can_make_devices() {
        return;
    }
    let tree = debian().mig(1, &[(3, 0)]);
    let text = "cdiVersion: 0.3.0\nkind: nvidia.com/gpu\ndevices:\n- name: MIG-1\n  containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia1\n- name: GPU-bbbbbbbb-0000-0000-0000-000000000000\n  containerEdits: {}\n";
    let found = findings(&tree, text);
    assert_eq!(messages(&found), "cannot check without NVML whether these still exist: MIG-1\n");
    assert_eq!(found[0].severity, Severity::Note);
}

#[test]
fn device_numbers_that_changed_are_found() {
    if !can_make_devices() {
        return;
    }
    let text = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: all\n  containerEdits:\n    deviceNodes:\n    - {path: /dev/nvidia-uvm, major: 511, minor: 0}\n    - {path: /dev/nvidia0, major: 195, minor: 0}\n";
    let found = findings(&debian(), text);
    assert_eq!(messages(&found), "device numbers have changed: /dev/nvidia-uvm is 507:0, not 511:0\n");
}

#[test]
fn what_engines_refuse_is_found() {
    if !can_make_devices() {
        return;
    }
    let tree = debian();
    for (text, wanted) in [
        ("kind: [", "cannot be parsed"),
        ("just: text", "not a CDI specification"),
        ("cdiVersion: 0.5.0\nkind: a.b/c\ndevices: []\nextra: 1\n", "unknown field `extra`"),
        (
            "cdiVersion: 0.5.0\nkind: a.b/c\ndevices:\n- name: x\n  containerEdits:\n    mounts:\n    - {hostPath: /usr, containerPath: /usr, option: []}\n",
            "unknown field `devices[0].containerEdits.mounts[0].option`",
        ),
        ("cdiVersion: 9.9.9\nkind: a.b/c\ndevices: []\n", "unknown CDI version `9.9.9`"),
        (
            "cdiVersion: 0.3.0\nkind: a.b/c\ndevices:\n- name: '0'\n  containerEdits: {}\n",
            "it declares CDI 0.3.0 but has fields of 0.5.0",
        ),
    ] {
        let found = findings(&tree, text);
        assert!(messages(&found).contains(wanted), "{wanted}: {}", messages(&found));
        assert!(found.iter().all(|finding| finding.severity == Severity::Error));
    }
}

#[test]
fn a_device_in_two_files_of_a_directory_is_found() {
    let one = "cdiVersion: 0.3.0\nkind: a.b/c\ndevices:\n- name: x\n  containerEdits: {env: [A=1]}\n";
    let tree = DriverTree::new()
        .file("/etc/cdi/a.yaml", one)
        .file("/etc/cdi/b.json", one)
        .file("/etc/cdi/c.txt", one);
    let tree = tree.file("/run/cdi/a.yaml", one).link("/var/run", "/run");
    let root = Root::tree(tree.path()).unwrap();
    let machine = CheckTarget { root: &root, driver: None };
    let (paths, findings) = check_directories(&machine, &["/etc/cdi", "/run/cdi", "/var/run/cdi"]);
    assert_eq!(
        paths,
        ["/etc/cdi/a.yaml", "/etc/cdi/b.json", "/run/cdi/a.yaml"],
        "each once, and only what engines read"
    );
    assert_eq!(messages(&findings), "a.b/c=x is also in /etc/cdi/a.yaml: engines reject duplicate devices\n");
}

fn bundle(root: &str) -> DriverTree {
    let config = format!(
        "{{\"ociVersion\": \"1.0.2\", \"root\": {{\"path\": \"{root}\"}}, \"linux\": {{\"devices\": [{{\"path\": \"/dev/nvidia3\", \"type\": \"c\"}}, {{\"path\": \"/dev/nvidiactl\"}}]}}}}"
    );
    DriverTree::new().file("/config.json", config).directory("/rootfs/usr/lib64")
}

fn state(tree: &DriverTree) -> String {
    format!(
        "{{\"ociVersion\": \"1.0.2\", \"id\": \"x\", \"status\": \"creating\", \"bundle\": \"{}\"}}",
        tree.at("/").display()
    )
}

#[test]
fn hooks_work_on_the_root_of_the_bundle() {
    for root in ["rootfs", "ABSOLUTE"] {
        let tree = bundle(root);
        let config = fs::read_to_string(tree.at("/config.json")).unwrap();
        let tree = tree.file("/config.json", "");
        fs::write(tree.at("/config.json"), config.replace("ABSOLUTE", tree.at("/rootfs").to_str().unwrap()))
            .unwrap();
        let run = |call: &HookCall| hook::run(call, Stage::Container, state(&tree).as_bytes()).unwrap();
        run(&HookCall::CreateSymlinks(vec![
            hook::parse_link("libcuda.so.1::/usr/lib64/libcuda.so").unwrap(),
        ]));
        run(&HookCall::UpdateLdcache(
            vec![hook::parse_library("64::libcuda.so.1::/usr/lib64/libcuda.so.1").unwrap()],
            None,
        ));
        run(&HookCall::UpdateApplicationProfile);
        assert_eq!(
            fs::read_link(tree.at("/rootfs/usr/lib64/libcuda.so")).unwrap(),
            Path::new("libcuda.so.1")
        );
        let cache = Cache::parse(&fs::read(tree.at("/rootfs/etc/ld.so.cache")).unwrap()).unwrap();
        assert_eq!(cache.entries[0].path, "/usr/lib64/libcuda.so.1");
        let profile = tree.at("/rootfs/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf");
        assert!(fs::read_to_string(profile).unwrap().contains("0x8"), "minor 3 is the fourth bit");
    }
}

#[test]
fn a_hook_refuses_what_is_no_state() {
    let tree = DriverTree::new();
    for text in ["", "{}", "[]", &state(&tree)] {
        let error =
            hook::run(&HookCall::UpdateApplicationProfile, Stage::Container, text.as_bytes()).unwrap_err();
        assert!(!error.to_string().is_empty());
    }
    for text in ["x", "::/a", "a::b", ""] {
        assert!(hook::parse_link(text).is_err(), "{text}");
    }
    for text in ["64::a", "16::a::/b", ""] {
        assert!(hook::parse_library(text).is_err(), "{text}");
    }
}

#[test]
fn every_path_in_a_specification_is_absolute() {
    if !can_make_devices() {
        return;
    }
    let spec = written(&debian().driver());
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for edits in spec.edits() {
        paths.extend(
            edits.mounts.iter().flat_map(|mount| [mount.host_path.as_str(), mount.container_path.as_str()]),
        );
        paths.extend(edits.device_nodes.iter().map(|node| node.path.as_str()));
    }
    assert!(paths.len() > 20 && paths.iter().all(|path| path.starts_with('/')), "{paths:?}");
}
