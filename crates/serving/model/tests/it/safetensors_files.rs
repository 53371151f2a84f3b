//! Safetensors files: totals and errors.

use cudock_model::{FormatStats, NumberFormat, inspect, safetensors};

use crate::write::{safetensors as file, with_header};

#[test]
fn only_the_header_is_read() {
    let bytes = file(&[
        ("embed", "BF16", &[1000, 64], 128_000),
        ("norm", "F32", &[64], 256),
        ("experts", "F8_E4M3", &[10, 10], 100),
        ("packed", "F4", &[5], 3),
        ("ids", "I64", &[2], 16),
        ("new", "Q3_X", &[7], 3),
    ]);
    let stats = safetensors::read(&bytes).unwrap();
    assert_eq!(stats.by_format[&NumberFormat::BF16], FormatStats { elements: 64_000, bytes: 128_000 });
    assert_eq!(stats.by_format[&NumberFormat::F8], FormatStats { elements: 100, bytes: 100 });
    assert_eq!(stats.by_format[&NumberFormat::Other], FormatStats { elements: 7, bytes: 3 });
    assert_eq!(stats.parameters(), 64_000 + 64 + 100 + 5 + 7);
    assert_eq!(stats.main_format(), Some(NumberFormat::BF16));
    assert_eq!(stats.largest.unwrap().name, "embed");
}

#[test]
fn false_headers_are_rejected() {
    let entry = |shape: &str, offsets: &str| {
        with_header(&format!(r#"{{"w":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#), 16)
    };
    let mut endless = u64::MAX.to_le_bytes().to_vec();
    endless.extend_from_slice(b"{}");
    let twice = r#"{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#;
    let cases = [
        (vec![1, 2, 3], "file is too short for a header"),
        (endless, "header claims 18446744073709551615 bytes, the limit is 100000000"),
        ([&50_u64.to_le_bytes()[..], b"{}"].concat(), "header claims 50 bytes, but the file is shorter"),
        (entry("[5]", "[0,16]"), "has a size that does not match its shape"),
        (entry("[4]", "[0,17]"), "extends beyond the end of the file"),
        (entry("[4]", "[16,0]"), "ends before it starts"),
        (entry("[4294967296,4294967296]", "[0,16]"), "has too many elements"),
        (entry("[-4]", "[0,16]"), "invalid header: "),
        (with_header("[]", 0), "invalid header: "),
        (with_header("{} {}", 0), "invalid header: "),
        (with_header(twice, 16), "tensors claim 32 bytes, but the file has 16"),
    ];
    for (bytes, expected) in cases {
        let error = safetensors::read(&bytes).unwrap_err();
        assert!(error.contains(expected), "{error}, expected {expected}");
    }
}

#[test]
fn an_empty_model_is_valid() {
    let stats = safetensors::read(&with_header("{}", 0)).unwrap();
    assert_eq!((stats.parameters(), stats.largest), (0, None));
}

#[test]
fn an_index_includes_all_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let index = directory.path().join("model.safetensors.index.json");
    let map = r#"{"metadata":{"total_size":384},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}}"#;
    std::fs::write(&index, map).unwrap();
    std::fs::write(directory.path().join("one.safetensors"), file(&[("a", "F16", &[64], 128)])).unwrap();
    let error = inspect(&index).unwrap_err().to_string();
    assert!(error.ends_with("two.safetensors not found, one of 2 files in the index"), "{error}");
    std::fs::write(directory.path().join("two.safetensors"), file(&[("b", "F16", &[128], 256)])).unwrap();
    let model = inspect(&index).unwrap();
    assert_eq!((model.tensors.parameters(), model.files.len()), (192, 2));
    assert_eq!(model.tensors.largest.unwrap().name, "b");
    for (text, expected) in [
        (r#"{"weight_map":{"a":"../one.safetensors"}}"#, "outside "),
        (r#"{"weight_map":{}}"#, "index lists no files"),
        ("[1]", "not a model index"),
    ] {
        std::fs::write(&index, text).unwrap();
        let error = inspect(&index).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
