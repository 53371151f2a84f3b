//! Copies of libcuda in an image that come before the host's.

use cudock_testkit::tar::Tar;
use serde_json::Value;

use super::layout::{Image, directory_with, torch};
use super::workdir::{codes, finding};

/// An image with torch for CUDA 12.6, `layer` on top, and a search path.
fn result(layer: Tar, library_path: Option<&str>, gpu: &str, driver: &str) -> Value {
    let image = Image::new().layer(torch("2.6.0", Some("12.6"))).layer(layer);
    let image = library_path.into_iter().fold(image, |image, path| image.variable("LD_LIBRARY_PATH", path));
    directory_with(image).result(&["oci:image", "--gpu", gpu, "--driver", driver])
}

/// The smallest shared library there is: a header for 64-bit x86, and nothing behind it.
fn library() -> Vec<u8> {
    let mut bytes = vec![0; 128];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (bytes[16], bytes[18], bytes[20], bytes[52]) = (3, 62, 1, 64);
    bytes
}

fn stub() -> Tar {
    Tar::default().file("usr/local/cuda/lib64/stubs/libcuda.so.1", library())
}

/// cuda-compat as its package lays it out, of the driver with that version.
fn compat(version: &str) -> Tar {
    Tar::default()
        .file(&format!("usr/local/cuda-12.6/compat/libcuda.so.{version}"), library())
        .symlink("usr/local/cuda-12.6/compat/libcuda.so.1", &format!("libcuda.so.{version}"))
        .symlink("usr/local/cuda", "cuda-12.6")
}

#[test]
fn a_stub_on_the_search_path_is_error_34() {
    let result = result(stub(), Some("/usr/local/cuda/lib64/stubs"), "T4", "580");
    assert_eq!((&result["verdict"], &result["error"]["code"]), (&"fails".into(), &34.into()), "{result:#}");
    let seen = &finding(&result, "CD0205")["evidence"][0];
    assert_eq!(seen["path"], "/usr/local/cuda/lib64/stubs/libcuda.so.1");
}

#[test]
fn a_stub_that_nothing_leads_to_does_no_harm() {
    let result = result(stub(), None, "T4", "580");
    assert_eq!((&result["verdict"], codes(&result)), (&"works".into(), Vec::new()), "{result:#}");
}

#[test]
fn a_stub_that_only_the_start_leads_to_is_found_too() {
    let image = Image::new().layer(torch("2.6.0", Some("12.6"))).layer(stub());
    let arguments = ["oci:image", "--gpu", "T4", "--driver", "580"];
    let start = ["--env", "LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs"];
    let result = directory_with(image).result(&[arguments.as_slice(), &start].concat());
    assert_eq!(codes(&result), ["CD0205"], "{result:#}");
}

#[test]
fn an_empty_libcuda_on_the_search_path_keeps_torch_from_the_card() {
    let layer = Tar::default().file("opt/driver/libcuda.so.1", "");
    let result = result(layer, Some("/opt/driver"), "T4", "580");
    assert_eq!((&result["verdict"], &result["error"]["code"]), (&"fails".into(), &35.into()), "{result:#}");
    assert_eq!(finding(&result, "CD0206")["evidence"][0]["path"], "/opt/driver/libcuda.so.1");
}

#[test]
fn an_empty_libcuda_where_the_host_s_is_put_is_a_warning() {
    let layer = Tar::default().file("usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
    let result = result(layer, None, "T4", "580");
    assert_eq!(result["verdict"], "works", "{result:#}");
    assert_eq!(finding(&result, "CD0606")["severity"], "warning");
}

#[test]
fn compat_that_is_older_than_the_driver_is_error_803_where_it_is_forced() {
    let result = result(compat("560.35.05"), Some("/usr/local/cuda/compat"), "T4", "580.95.05");
    assert_eq!((&result["verdict"], &result["error"]["code"]), (&"fails".into(), &803.into()), "{result:#}");
    assert_eq!(codes(&result), ["CD0207"]);
}

#[test]
fn compat_that_is_older_than_the_driver_is_passed_over_in_its_own_place() {
    let result = result(compat("560.35.05"), None, "T4", "580.95.05");
    assert_eq!((&result["verdict"], codes(&result)), (&"works".into(), Vec::new()), "{result:#}");
}

#[test]
fn compat_serves_data_center_cards_on_an_older_driver() {
    let result = result(compat("560.35.05"), None, "T4", "535.161.08");
    assert_eq!(result["verdict"], "works", "{result:#}");
    assert_eq!(finding(&result, "CD0219")["severity"], "note");
}

#[test]
fn compat_on_a_card_for_games_is_error_804() {
    let result = result(compat("560.35.05"), None, "RTX 4090", "535.161.08");
    assert_eq!((&result["verdict"], &result["error"]["code"]), (&"fails".into(), &804.into()), "{result:#}");
    assert_eq!(finding(&result, "CD0215")["severity"], "error");
}

#[test]
fn a_driver_of_another_version_on_the_search_path_is_error_803() {
    let layer = Tar::default()
        .file("opt/driver/libcuda.so.550.54.15", library())
        .symlink("opt/driver/libcuda.so.1", "libcuda.so.550.54.15");
    let result = result(layer, Some("/opt/driver"), "T4", "580.95.05");
    assert_eq!(result["error"]["code"], 803, "{result:#}");
    assert_eq!(codes(&result), ["CD0606"]);
}
