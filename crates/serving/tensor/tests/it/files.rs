//! `.npy` and raw bytes; tensors by name.

use bytes::Bytes;
use cudock_tensor::{
    DType, InferenceRequest, InferenceResponse, RequestLimits, RequestedOutput, Signature, Tensor, check,
    npy, raw,
};
use proptest::prelude::*;

use crate::support::{dtypes, f32s, one, spec, strings, tensors, two};

/// A file as numpy lays it out.
fn file(version: u8, header: &str, data: &[u8]) -> Bytes {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend_from_slice(&[version, 0]);
    let length = u32::try_from(header.len()).unwrap().to_le_bytes();
    file.extend_from_slice(&length[..if version == 1 { 2 } else { 4 }]);
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    Bytes::from(file)
}

fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}   \n")
}

fn load(file: &Bytes) -> Result<Tensor, String> {
    npy::tensor(file, &RequestLimits::default()).map_err(|error| error.to_string())
}

#[test]
fn files_of_every_version_are_read_without_copying() {
    let data = f32s(&[2, 1], &[1.5, -2.0]);
    for version in 1..=3 {
        let file = file(version, &header("<f4", "(2, 1)"), data.data());
        let tensor = load(&file).unwrap();
        assert_eq!(tensor, data);
        assert_eq!(tensor.data().as_ptr(), file[file.len() - 8..].as_ptr());
    }
    assert_eq!(load(&file(1, &header("|u1", "()"), &[7])).unwrap().shape(), [0; 0]);
    assert_eq!(load(&file(1, &header("|b1", "(3,)"), &[0, 1, 1])).unwrap().dtype(), DType::Bool);
    assert_eq!(load(&file(1, &header("<V2", "(1,)"), &[0, 1])).unwrap().dtype(), DType::BF16);
    let double_quotes = r#"{"shape": (1,), "fortran_order": False, "descr": "<i8"}"#;
    assert_eq!(load(&file(1, double_quotes, &[0; 8])).unwrap().dtype(), DType::I64);
}

#[test]
fn fixed_width_strings_are_converted() {
    let bytes = file(1, &header("|S3", "(3,)"), b"abcd\0\0\0\0\0");
    assert_eq!(load(&bytes).unwrap(), strings(&[3], &[b"abc", b"d", b""]));
    let text: Vec<u8> =
        "aé€\0😀\0".chars().flat_map(|character| u32::from(character).to_le_bytes()).collect();
    assert_eq!(
        load(&file(1, &header("<U3", "(2,)"), &text)).unwrap(),
        strings(&[2], &["aé€".as_bytes(), "\0😀".as_bytes()])
    );
    let wrong = file(1, &header("<U1", "(1,)"), &[0, 0xd8, 0, 0]);
    assert_eq!(load(&wrong).unwrap_err(), ".npy: string 0 is not Unicode");
}

#[test]
fn unsupported_files_are_rejected_with_a_hint() {
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }";
    for (file, expected) in [
        (Bytes::from_static(b"PK\x03\x04"), ".npy: not a .npy file (at byte 0)"),
        (file(4, "", b""), ".npy: version 4 of the format is not known (at byte 6)"),
        (
            file(1, fortran, &[0; 16]),
            ".npy: the array is in Fortran order; save numpy.ascontiguousarray(array) instead (at byte 10)",
        ),
        (
            file(1, &header(">f4", "(1,)"), &[0; 4]),
            ".npy: '>f4' is big endian; save array.astype('<f4') (at byte 20)",
        ),
        (file(1, &header("<c8", "(1,)"), &[0; 8]), ".npy: elements of type '<c8' fit no model (at byte 20)"),
        (file(1, &header("|O", "(1,)"), &[0; 8]), ".npy: elements of type '|O' fit no model (at byte 20)"),
        (
            file(1, "{'descr': [('a', '<f4')], ", b""),
            ".npy: an array of records; save one field of it (at byte 20)",
        ),
        (file(1, &header("|S0", "(60000000,)"), b""), ".npy: strings without length (at byte 20)"),
        (file(1, &header("<f4", "(3,)"), &[0; 8]), ".npy: FP32 [3] takes 12 bytes, not 8"),
        (
            file(1, &header("<f4", "(9999999999, 99999999999)"), b""),
            ".npy: more than the 67108864 elements allowed",
        ),
        (file(1, &header("<f4", "(-1,)"), b""), ".npy: expected a size (at byte 61)"),
        (
            file(1, "{'descr': '<f4', 'shape': (1,)}", b""),
            ".npy: the header lacks 'fortran_order' (at byte 10)",
        ),
        (file(2, "", b"").slice(..9), ".npy: not a .npy file (at byte 0)"),
        (file(1, &header("<f4", "(3,)"), b"").slice(..40), ".npy: the header is cut short (at byte 40)"),
    ] {
        assert_eq!(load(&file).unwrap_err(), expected);
    }
}

#[test]
fn a_file_is_one_row_or_many() {
    let signature = one(DType::F32, &[None, Some(2)]);
    let read = |file: &Bytes| {
        npy::read(file, &signature, &RequestLimits::default()).map_err(|error| error.to_string())
    };
    let single = read(&file(1, &header("<f4", "(2,)"), &[0; 8])).unwrap();
    assert_eq!((single.rows, single.single, single.inputs[0].shape()), (1, true, &[1, 2][..]));
    assert_eq!(read(&file(1, &header("<f4", "(3, 2)"), &[0; 24])).unwrap().rows, 3);
    let wrong = file(1, &header("<f8", "(3, 2)"), &[0; 48]);
    assert_eq!(
        read(&wrong).unwrap_err(),
        "x: FP64, but the model expects FP32; convert it with .astype(numpy.float32)"
    );
    let wrong = file(1, &header("<f4", "(3, 1)"), &[0; 12]);
    assert_eq!(read(&wrong).unwrap_err(), "x: shape [3, 1], but the model expects [any, 2]");
    let error = npy::read(&wrong, &two(), &RequestLimits::default()).unwrap_err().to_string();
    assert_eq!(error, ".npy holds one input, and the model has 2; send JSON or the Open Inference Protocol");
}

#[test]
fn a_truncated_or_changed_file_never_panics() {
    let whole = file(1, &header("<U2", "(2, 1)"), &[b'a', 0, 0, 0].repeat(4));
    assert!(load(&whole).is_ok());
    for end in 0..whole.len() {
        assert!(load(&whole.slice(..end)).is_err());
    }
    for path in 0..whole.len() {
        for byte in 0..=255 {
            let mut changed = whole.to_vec();
            changed[path] = byte;
            _ = load(&Bytes::from(changed));
        }
    }
}

#[test]
fn headers_are_written_as_numpy_writes_them() {
    for (shape, text) in [(&[1, 2][..], "(1, 2)"), (&[2], "(2,)"), (&[], "()")] {
        let count: usize = shape.iter().product();
        let response = InferenceResponse { outputs: vec![f32s(shape, &vec![0.5; count])] };
        let mut out = Vec::new();
        npy::write(&response, &one(DType::F32, &[None]), &[], &mut out).unwrap();
        assert_eq!(out.len(), 128 + 4 * count);
        let expected = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {text}, }}");
        assert_eq!(std::str::from_utf8(&out[10..128]).unwrap(), format!("{expected:<117}\n"));
    }
}

#[test]
fn bfloats_are_widened_for_numpy_and_strings_rejected() {
    let bfloat = Tensor::new(DType::BF16, vec![1], Bytes::from_static(&[0xc0, 0x3f])).unwrap();
    let mut out = Vec::new();
    npy::write(&InferenceResponse { outputs: vec![bfloat] }, &one(DType::BF16, &[None]), &[], &mut out)
        .unwrap();
    assert_eq!(load(&Bytes::from(out)).unwrap(), f32s(&[1], &[1.5]));
    let response = InferenceResponse { outputs: vec![f32s(&[1, 2], &[1.0, 2.0]), strings(&[1], &[b"a"])] };
    let write = |requested: &[RequestedOutput]| npy::write(&response, &two(), requested, &mut Vec::new());
    let error = write(&[RequestedOutput { index: 1, binary: false }]).unwrap_err().to_string();
    assert_eq!(error, "output `label`: .npy cannot hold strings; request JSON");
    let error = write(&[]).unwrap_err().to_string();
    assert_eq!(error, ".npy holds one output, not 2; request a single output, or JSON");
    assert!(write(&[RequestedOutput { index: 0, binary: false }]).is_ok());
}

#[test]
fn the_number_of_rows_follows_from_the_raw_bytes() {
    let read = |body: &'static [u8], signature: &Signature| {
        raw::read(&Bytes::from_static(body), signature, &RequestLimits::default())
            .map_err(|error| error.to_string())
    };
    let pair = one(DType::F32, &[None, Some(2)]);
    let inference = read(&[0; 24], &pair).unwrap();
    assert_eq!((inference.rows, inference.inputs[0].shape()), (3, &[3, 2][..]));
    assert_eq!(read(&[0; 12], &pair).unwrap_err(), "x: 12 bytes are not a multiple of the row size 8");
    assert_eq!(read(&[], &pair).unwrap_err(), "x: 0 bytes are not a multiple of the row size 8");
    assert_eq!(
        read(&[0; 12], &one(DType::F32, &[None, None])).unwrap_err(),
        "x: raw bytes have no shape, and the model expects FP32 [any, any]; send .npy or the Open Inference Protocol"
    );
    assert!(read(&[0; 12], &one(DType::String, &[None])).is_err());
    assert!(read(&[0; 12], &one(DType::F32, &[None, Some(0)])).is_err());
    assert!(read(&[0; 12], &two()).unwrap_err().starts_with("raw bytes are one input, and the model has 2"));
    let fixed = Signature { batched: false, ..one(DType::F32, &[Some(1), Some(2)]) };
    assert_eq!(read(&[0; 8], &fixed).unwrap().inputs[0].shape(), [1, 2]);
    assert_eq!(read(&[0; 16], &fixed).unwrap_err(), "x: FP32 [1, 2] takes 8 bytes, not 16");
    assert_eq!(read(&[3], &one(DType::Bool, &[None])).unwrap_err(), "x: boolean 0 is neither 0 nor 1");
}

#[test]
fn raw_responses_are_the_bytes_of_one_output() {
    let response = InferenceResponse { outputs: vec![f32s(&[1, 2], &[1.0, 2.0]), strings(&[1], &[b"a"])] };
    let bytes = raw::write(&response, &two(), &[RequestedOutput { index: 0, binary: true }]).unwrap();
    assert_eq!(bytes, response.outputs[0].data());
    assert!(raw::write(&response, &two(), &[]).is_err());
}

#[test]
fn named_tensors_are_sorted() {
    let (a, words) = (f32s(&[1, 2], &[1.0, 2.0]), strings(&[1], &[b"a"]));
    let named = |tensors: &[(&str, &Tensor)]| {
        let tensors = tensors.iter().map(|(name, tensor)| ((*name).to_owned(), (*tensor).clone())).collect();
        InferenceRequest::from_tensors(tensors, &two()).map_err(|error| error.to_string())
    };
    assert_eq!(named(&[("words", &words), ("a", &a)]).unwrap().inputs, [a.clone(), words.clone()]);
    for (tensors, expected) in [
        (vec![("a", &a)], "input `words` is missing"),
        (vec![("a", &a), ("a", &a)], "input `a` is given twice"),
        (vec![("a", &a), ("worts", &words)], "the model has no input `worts`; did you mean `words`?"),
        (vec![("a", &words), ("words", &words)], "a: BYTES, but the model expects FP32"),
    ] {
        assert_eq!(named(&tensors).unwrap_err(), expected);
    }
    assert_eq!(check([&a, &words], &two()), Ok(1));
    assert!(check([&a], &two()).is_err() && check([&a, &words, &a], &two()).is_err());
}

proptest! {
    #[test]
    fn a_file_round_trips(
        tensor in (dtypes(), proptest::collection::vec(0..5_usize, 0..4))
            .prop_filter("what numpy has", |(dtype, _)| !matches!(dtype, DType::String | DType::BF16))
            .prop_flat_map(|(dtype, shape)| tensors(dtype, shape)),
    ) {
        let signature = Signature {
            inputs: Vec::new(),
            outputs: vec![spec("y", tensor.dtype(), &vec![None; tensor.shape().len()])],
            batched: false,
        };
        let mut out = Vec::new();
        npy::write(&InferenceResponse { outputs: vec![tensor.clone()] }, &signature, &[], &mut out).unwrap();
        prop_assert_eq!(load(&Bytes::from(out)), Ok(tensor));
    }
}
