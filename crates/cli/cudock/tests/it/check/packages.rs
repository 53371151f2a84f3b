//! Packages in wheels, directories and environments: extensions, NVIDIA's own, and those that compile when they run.

use super::workdir::{Directory, codes, fixture};
use crate::support::{json, run, zip};

const H100: [&str; 4] = ["--gpu", "H100", "--driver", "580"];
const WHEEL: &str = "package-1.0-py3-none-manylinux_2_28_x86_64.whl";

fn wheel(members: &[(&str, &[u8])]) -> Directory {
    Directory::with(WHEEL, zip(members))
}

/// An ELF library without GPU code whose read-only data holds these texts, in a section as lld names it.
fn library_that_names(texts: &str) -> Vec<u8> {
    let names = b"\0.rodata.str1.1\0.shstrtab\0";
    let mut bytes = vec![0_u8; 64];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[16] = 3;
    bytes[18] = 62;
    bytes[20] = 1;
    let data = format!("\0{texts}\0");
    let sections = [(1_u32, 1_u32, 2_u64, 64, data.len()), (16, 3, 0, 64 + data.len(), names.len())];
    bytes.extend(data.as_bytes());
    bytes.extend(names);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table = bytes.len() as u64;
    bytes.extend([0; 64]);
    for (name, kind, flags, offset, size) in sections {
        let offset = offset as u64;
        bytes.extend([name.to_le_bytes(), kind.to_le_bytes()].concat());
        bytes.extend([flags, offset, offset, size as u64, 0, 1, 0].map(u64::to_le_bytes).concat());
    }
    bytes[40..48].copy_from_slice(&table.to_le_bytes());
    bytes[52] = 64;
    bytes[58] = 64;
    bytes[60] = 3;
    bytes[62] = 2;
    bytes
}

#[test]
fn a_library_without_code_for_the_card_is_optional_where_another_covers_it() {
    let (core, feature) = (fixture("library.so"), fixture("device-linked.so"));
    // The core has sm_75 and sm_90; sm_90a code alone is a feature of Hopper.
    let special = fixture("sm_90a.cubin");
    let directory = wheel(&[
        ("package/_C.so", &core),
        ("package/_flash.so", &feature),
        ("package/hopper.cubin", &special),
    ]);
    let result = directory.result(&[WHEEL, "--gpu", "T4", "--driver", "580"]);
    assert_eq!(result["verdict"], "works", "{result:#}");
    assert!(codes(&result).contains(&"CD0508"), "{result:#}");
}

#[test]
fn all_files_of_a_wheel_are_one_package_wherever_they_lie() {
    let record = "package/_C.so,sha256=x,1\nlib/helper.so,sha256=x,1\npackage-1.0.dist-info/RECORD,,\n";
    let (core, helper) = (fixture("library.so"), fixture("device-linked-ptx.so"));
    let directory = wheel(&[
        ("package/_C.so", &core),
        ("lib/helper.so", &helper),
        ("package-1.0.dist-info/RECORD", record.as_bytes()),
    ]);
    let result = directory.result(&[WHEEL, "--gpu", "H100", "--driver", "615"]);
    let units: Vec<&str> =
        result["artifacts"].as_array().unwrap().iter().map(|unit| unit["name"].as_str().unwrap()).collect();
    assert_eq!(units, ["package 1.0"], "{result:#}");
}

#[test]
fn nvidias_own_libraries_are_judged_in_any_directory() {
    let library = fixture("library.so");
    for path in [
        "nvidia/dali/libdali.so",
        "nvidia/nccl/lib/libnccl.so.2",
        "tensorrt_libs/libnvinfer.so.10",
        "tensorrt_rtx_libs/libtensorrt_rtx.so.1",
        "x/libnccl.so.2",
    ] {
        let directory = wheel(&[(path, &library)]);
        let works = directory.result(&[&[WHEEL], H100.as_slice()].concat());
        assert_eq!(works["verdict"], "works", "{path}: {works:#}");
        let fails = directory.result(&[WHEEL, "--gpu", "B200", "--driver", "580"]);
        assert_eq!(
            (&fails["verdict"], &fails["error"]["code"]),
            (&"fails".into(), &209.into()),
            "{path}: {fails:#}"
        );
    }
    let directory = Directory::new();
    directory.write("libraries/libnccl.so.2", &library);
    let result = directory.result(&[&["libraries"], H100.as_slice()].concat());
    assert_eq!(result["verdict"], "works", "{result:#}");
}

#[test]
fn what_opens_the_driver_and_holds_no_code_is_unknown_and_never_cpu() {
    let library = library_that_names("libcuda.so.1");
    let source = b"names = ['libcuda.so', 'libcuda.so.1']\n".as_slice();
    for (path, contents) in [
        ("taichi/_lib/core.so", library.as_slice()),
        ("cumm/core_cc.so", &library_that_names("libnvrtc.so.12")),
        ("numba_cuda/cudadrv/driver.py", source),
        ("nvidia/cuda_runtime/lib/libcudart.so.12", &library),
    ] {
        let result = wheel(&[(path, contents)]).result(&[&[WHEEL], H100.as_slice()].concat());
        assert_eq!(
            (&result["verdict"], codes(&result)),
            (&"unknown".into(), vec!["CD0510"]),
            "{path}: {result:#}"
        );
    }
    // The same, installed, and as a file by itself.
    let directory = Directory::new();
    directory.write("site/numba_cuda-0.30.4.dist-info/RECORD", "numba_cuda/driver.py,,\n");
    directory.write("site/numba_cuda/driver.py", source);
    directory.write("core.so", &library);
    for subject in ["site", "core.so"] {
        let result = directory.result(&[&[subject], H100.as_slice()].concat());
        assert_eq!(
            (&result["verdict"], codes(&result)),
            (&"unknown".into(), vec!["CD0510"]),
            "{subject}: {result:#}"
        );
    }
    let plain = wheel(&[("plain/x.py", b"import os\n"), ("plain/x.so", &library_that_names("libm.so.6"))]);
    assert_eq!(plain.result(&[&[WHEEL], H100.as_slice()].concat())["verdict"], "cpu");
}

#[test]
fn code_made_at_run_time_is_no_matter_beside_code_that_can_be_read() {
    let code = fixture("library.so");
    let directory = wheel(&[("core/_C.so", &code), ("triton/driver.py", b"lib = 'libcuda.so.1'\n")]);
    let result = directory.result(&[WHEEL, "--gpu", "H100", "--driver", "615"]);
    assert_eq!((&result["verdict"], codes(&result)), (&"works".into(), Vec::new()), "{result:#}");
}

#[test]
fn inspect_and_check_agree_on_the_ptx_of_device_linked_parts() {
    for (name, verdict, sentence) in [
        ("device-linked.so", "fails", "no PTX"),
        ("device-linked-ptx.so", "jit", "newer GPUs compile its compute_75 PTX"),
        // The driver can link one of its two modules again, and the other has no PTX at all.
        ("partly-device-linked.so", "fails", "1 of 2 modules have none"),
    ] {
        let directory = Directory::with_fixture(name);
        let result = directory.result(&[name, "--gpu", "B200", "--driver", "615"]);
        assert_eq!(result["verdict"], verdict, "{name}: {result:#}");
        let path = directory.path().join(name);
        let report = json(&run(&["inspect", path.to_str().unwrap(), "--format", "json"]));
        let covers = report["files"][0]["gpu_code"]["covers"].as_str().unwrap();
        assert!(covers.contains(sentence), "{name}: {covers}");
    }
}
