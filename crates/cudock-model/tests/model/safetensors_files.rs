//! Safetensors files: what is counted, what is refused.

use cudock_model::{NumberFormat, Share, inspect, safetensors};

use crate::write::{safetensors as file, with_header};

#[test]
fn the_header_alone_is_counted() {
    let bytes = file(&[
        ("embed", "BF16", &[1000, 64], 128_000),
        ("norm", "F32", &[64], 256),
        ("experts", "F8_E4M3", &[10, 10], 100),
        ("packed", "F4", &[5], 3),
        ("ids", "I64", &[2], 16),
        ("new", "Q3_X", &[7], 3),
    ]);
    let tally = safetensors::read(&bytes).unwrap();
    assert_eq!(tally.by_format[&NumberFormat::BF16], Share { elements: 64_000, bytes: 128_000 });
    assert_eq!(tally.by_format[&NumberFormat::F8], Share { elements: 100, bytes: 100 });
    assert_eq!(tally.by_format[&NumberFormat::Other], Share { elements: 7, bytes: 3 });
    assert_eq!(tally.parameters(), 64_000 + 64 + 100 + 5 + 7);
    assert_eq!(tally.main_format(), Some(NumberFormat::BF16));
    assert_eq!(tally.largest.unwrap().name, "embed");
}

#[test]
fn headers_that_lie_are_refused_in_words() {
    let entry = |shape: &str, offsets: &str| {
        with_header(&format!(r#"{{"w":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#), 16)
    };
    let mut endless = u64::MAX.to_le_bytes().to_vec();
    endless.extend_from_slice(b"{}");
    let twice = r#"{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#;
    let cases = [
        (vec![1, 2, 3], "it is shorter than the length of its header"),
        (endless, "its header claims 18446744073709551615 bytes; 100000000 are the most"),
        ([&50_u64.to_le_bytes()[..], b"{}"].concat(), "its header claims 50 bytes and the file ends before"),
        (entry("[5]", "[0,16]"), "takes another number of bytes than its shape says"),
        (entry("[4]", "[0,17]"), "lies beyond the end of the file"),
        (entry("[4]", "[16,0]"), "ends before it begins"),
        (entry("[4294967296,4294967296]", "[0,16]"), "has more numbers than can be counted"),
        (entry("[-4]", "[0,16]"), "its header is broken: "),
        (with_header("[]", 0), "its header is broken: "),
        (with_header("{} {}", 0), "its header is broken: "),
        (with_header(twice, 16), "its tensors claim 32 bytes and the file holds 16"),
    ];
    for (bytes, expected) in cases {
        let wrong = safetensors::read(&bytes).unwrap_err();
        assert!(wrong.contains(expected), "{wrong}, expected {expected}");
    }
}

#[test]
fn an_empty_model_is_one() {
    let tally = safetensors::read(&with_header("{}", 0)).unwrap();
    assert_eq!((tally.parameters(), tally.largest), (0, None));
}

#[test]
fn an_index_stands_for_all_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("model.safetensors.index.json");
    let map = r#"{"metadata":{"total_size":384},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}}"#;
    std::fs::write(&index, map).unwrap();
    std::fs::write(folder.path().join("one.safetensors"), file(&[("a", "F16", &[64], 128)])).unwrap();
    let wrong = inspect(&index).unwrap_err().to_string();
    assert!(wrong.ends_with("it names 2 files, and two.safetensors is not there"), "{wrong}");
    std::fs::write(folder.path().join("two.safetensors"), file(&[("b", "F16", &[128], 256)])).unwrap();
    let model = inspect(&index).unwrap();
    assert_eq!((model.tensors.parameters(), model.files.len()), (192, 2));
    assert_eq!(model.tensors.largest.unwrap().name, "b");
    for (text, expected) in [
        (r#"{"weight_map":{"a":"../one.safetensors"}}"#, "which is not beside it"),
        (r#"{"weight_map":{}}"#, "it names no files"),
        ("[1]", "it is no index of a model"),
    ] {
        std::fs::write(&index, text).unwrap();
        let wrong = inspect(&index).unwrap_err().to_string();
        assert!(wrong.contains(expected), "{wrong}");
    }
}
