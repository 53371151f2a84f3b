use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::runtime::context::tests::{machine, put};

const SITE: &str = "lib/python3.12/site-packages/onnxruntime/capi";
const GPU: [&str; 3] =
    ["libonnxruntime.so.1.31.1", "libonnxruntime_providers_cuda.so", "libonnxruntime_providers_shared.so"];

fn library(found: Option<RuntimeLibrary>) -> Option<String> {
    found.map(|found| found.library.display().to_string())
}

#[test]
fn locations_are_searched_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let variables = [
        ("HOME", "/her"),
        ("VIRTUAL_ENV", "/venv"),
        ("CONDA_PREFIX", "/conda"),
        ("CUDOCK_ONNXRUNTIME", "/a/libonnxruntime.so"),
    ];
    // From the lowest to the highest precedence: each is found once it exists.
    for below in [
        "usr/lib/x86_64-linux-gnu",
        &format!("her/.local/{SITE}"),
        &format!("usr/{SITE}"),
        &format!("project/.venv/{SITE}"),
        "conda/lib",
        &format!("venv/{SITE}"),
        "cache/runtimes/onnxruntime-1.31.1-x86_64",
    ] {
        if below.starts_with("usr/lib/python3") {
            put(directory.path(), "usr/bin", &["python3"]);
            let program = directory.path().join("usr/bin/python3");
            fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        put(directory.path(), below, &["libonnxruntime.so.1.31.1"]);
        let found = find(Package::Onnxruntime, &machine(directory.path(), &variables[..3])).unwrap();
        assert_eq!(library(found), Some(format!("/{below}/libonnxruntime.so.1.31.1")));
    }
    put(directory.path(), "a", &["libonnxruntime.so"]);
    let found = find(Package::Onnxruntime, &machine(directory.path(), &variables)).unwrap();
    assert_eq!(library(found), Some("/a/libonnxruntime.so".to_owned()));
    let all = find_all(&machine(directory.path(), &variables)).unwrap();
    assert_eq!(all.len(), 8, "{all:#?}");
}

#[test]
fn the_gpu_build_serves_both_and_the_other_only_the_cpu() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), &format!("venv/{SITE}"), &["libonnxruntime.so.1.31.1"]);
    let variables = [("VIRTUAL_ENV", "/venv")];
    assert_eq!(find(Package::OnnxruntimeGpu, &machine(directory.path(), &variables)).unwrap(), None);
    put(directory.path(), &format!("venv/{SITE}"), &GPU);
    let found = find(Package::OnnxruntimeGpu, &machine(directory.path(), &variables)).unwrap().unwrap();
    assert_eq!((found.package, found.providers.clone()), (Package::OnnxruntimeGpu, vec!["cuda".to_owned()]));
    assert_eq!(find(Package::Onnxruntime, &machine(directory.path(), &variables)).unwrap(), Some(found));
}

#[test]
fn a_library_that_is_too_old_is_listed_and_not_used() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), &format!("venv/{SITE}"), &["libonnxruntime.so.1.16.3"]);
    let machine = machine(directory.path(), &[("VIRTUAL_ENV", "/venv")]);
    assert_eq!(find(Package::Onnxruntime, &machine).unwrap(), None);
    let all = find_all(&machine).unwrap();
    assert_eq!((all.len(), all[0].usable, all[0].version.as_deref()), (1, false, Some("1.16.3")));
}

#[test]
fn the_newest_installation_is_used_and_unfinished_ones_are_not() {
    let directory = tempfile::tempdir().unwrap();
    for version in ["1.9.0", "1.31.1", "1.30.2"] {
        let below = format!("cache/runtimes/onnxruntime-{version}-x86_64");
        put(directory.path(), &below, &[&format!("libonnxruntime.so.{version}")]);
    }
    put(directory.path(), "cache/runtimes/.onnxruntime-1.99.0-x86_64.new", &["libonnxruntime.so.1.99.0"]);
    let found = find(Package::Onnxruntime, &machine(directory.path(), &[])).unwrap().unwrap();
    assert_eq!(found.version.as_deref(), Some("1.31.1"));
}

#[test]
fn a_version_comes_from_the_name_the_link_or_the_metadata() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "opt/ort", &["libonnxruntime.so.1.20.1", "libonnxruntime_providers_cuda.so"]);
    symlink("libonnxruntime.so.1.20.1", directory.path().join("opt/ort/libonnxruntime.so")).unwrap();
    for named in ["/opt/ort", "/opt/ort/libonnxruntime.so"] {
        let found = find(Package::Onnxruntime, &machine(directory.path(), &[("ORT_DYLIB_PATH", named)]))
            .unwrap()
            .unwrap();
        assert_eq!(found.version.as_deref(), Some("1.20.1"), "{named}");
        assert_eq!(found.package, Package::OnnxruntimeGpu);
        assert_eq!(found.found_by, FoundBy::Variable { name: "ORT_DYLIB_PATH" });
    }
    put(directory.path(), &format!("venv/{SITE}"), &["libonnxruntime.so"]);
    put(directory.path(), "venv/lib/python3.12/site-packages/onnxruntime-1.18.0.dist-info", &[]);
    let found =
        find(Package::Onnxruntime, &machine(directory.path(), &[("VIRTUAL_ENV", "/venv")])).unwrap().unwrap();
    assert_eq!(found.version.as_deref(), Some("1.18.0"));
}

#[test]
fn a_variable_that_names_no_library_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "empty", &["other.so", "libonnxruntime.so.old"]);
    for (path, error) in [
        (
            "/nowhere/libonnxruntime.so",
            "CUDOCK_ONNXRUNTIME is /nowhere/libonnxruntime.so, which does not exist",
        ),
        ("/empty", "CUDOCK_ONNXRUNTIME is /empty, which contains no libonnxruntime.so"),
    ] {
        let machine = machine(directory.path(), &[("CUDOCK_ONNXRUNTIME", path)]);
        assert_eq!(find(Package::Onnxruntime, &machine).unwrap_err().to_string(), error);
    }
}
