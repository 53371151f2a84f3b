//! Files that are broken, too large, or meant to do harm.

use std::io::Write;

use bytes::Bytes;
use cudock_inputs::{InputError, InputFile, read_form};
use cudock_tensor::DType;
use proptest::prelude::*;

use crate::support::{data, decode, image_input, model};

const FILES: [&str; 12] = [
    "bits.png",
    "cmyk.jpg",
    "gray.jpg",
    "gray.png",
    "lossless.webp",
    "lossy.webp",
    "palette.png",
    "photo.jpg",
    "progressive.jpg",
    "rotated.jpg",
    "small.png",
    "transparent.png",
];

fn input() -> cudock_inputs::ImageInput {
    image_input("layout = 'nchw'\nresize = 8\ncrop = 8\nmax_pixels = 200_000", &model(DType::U8, &[None; 4]))
        .unwrap()
}

fn outcome(bytes: Vec<u8>) -> Result<Vec<u8>, InputError> {
    decode(&input(), bytes)
}

/// A PNG file that claims this size.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut file = data("gray.png");
    file[16..20].copy_from_slice(&width.to_be_bytes());
    file[20..24].copy_from_slice(&height.to_be_bytes());
    let sum = png_checksum(&file[12..29]);
    file[29..33].copy_from_slice(&sum);
    file
}

/// The checksum of a PNG chunk.
fn png_checksum(bytes: &[u8]) -> [u8; 4] {
    let mut remainder = u32::MAX;
    for byte in bytes {
        remainder ^= u32::from(*byte);
        for _ in 0..8 {
            remainder = (remainder >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(remainder & 1));
        }
    }
    (!remainder).to_be_bytes()
}

/// A JPEG file that claims this size.
fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let mut file = data("photo.jpg");
    let frame = file.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    file[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    file[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    file
}

/// A JPEG file with these bytes before its other segments.
fn jpeg_with(bytes: &[u8]) -> Vec<u8> {
    let mut file = data("photo.jpg");
    file.splice(2..2, bytes.iter().copied());
    file
}

/// An extended WebP file whose canvas is small and whose lossy frame claims this size.
fn webp(width: u16, height: u16) -> Vec<u8> {
    let mut frame = data("lossy.webp").split_off(12);
    frame[14..16].copy_from_slice(&width.to_le_bytes());
    frame[16..18].copy_from_slice(&height.to_le_bytes());
    let canvas = [&b"VP8X\x0a\0\0\0"[..], &[0; 4], &[7, 0, 0], &[7, 0, 0]].concat();
    let length = u32::try_from(4 + canvas.len() + frame.len()).unwrap();
    let mut file = Vec::new();
    file.write_all(b"RIFF").unwrap();
    file.write_all(&length.to_le_bytes()).unwrap();
    file.write_all(b"WEBP").unwrap();
    file.write_all(&canvas).unwrap();
    file.write_all(&frame).unwrap();
    file
}

#[test]
fn sizes_are_checked_before_memory_is_allocated() {
    for (file, message) in [
        (
            png(50_000, 50_000),
            "image: 50000x50000 pixels are more than the 200000 of `serve.image.max_pixels`",
        ),
        (png(u32::MAX >> 1, 1), "image: 2147483647x1 pixels are more than"),
        (png(100_000, 1), "image: 100000x1 pixels are more than"),
        (jpeg(65_535, 65_535), "image: 65535x65535 pixels are more than"),
        (webp(16_383, 16_383), "image: 16383x16383 pixels are more than"),
    ] {
        let error = outcome(file).unwrap_err();
        assert!(
            matches!(error, InputError::TooLarge(_)) && error.to_string().starts_with(message),
            "{error}"
        );
    }
    for (file, message) in [
        (png(0, 5), "image: its size is 0x5"),
        (jpeg(0, 5), "image: its size is 0x5"),
        (jpeg(5, 0), "image: its size is 5x0"),
        (webp(9, 9), "image: not a valid WebP file: "),
    ] {
        let error = outcome(file).unwrap_err();
        assert!(matches!(error, InputError::Invalid(_)) && error.to_string().starts_with(message), "{error}");
    }
}

#[test]
fn headers_that_could_mislead_about_memory_or_take_long_are_rejected() {
    let comment = [0xff, 0xfe, 0, 2];
    assert!(outcome(jpeg_with(&comment.repeat(100))).is_ok());
    let error = outcome(jpeg_with(&comment.repeat(2049))).unwrap_err();
    assert!(matches!(error, InputError::TooLarge(_)), "{error}");
    // The decoder skips a segment after each of these markers, which has none.
    for marker in [0x01, 0xd0, 0xd7, 0xd8, 0xd9] {
        let error = outcome(jpeg_with(&[0xff, marker, 0, 2])).unwrap_err();
        let expected = format!("image: the JPEG file has marker 0x{marker:02x} before its first scan");
        assert_eq!(error, InputError::Invalid(expected));
    }
}

#[test]
fn files_of_other_types_are_unsupported() {
    for file in [&b"GIF89a"[..], b"hello", b"\xff\xd8", b"RIFF1234WAVE", b"\x89PNG"] {
        let error = outcome(file.to_vec()).unwrap_err();
        assert_eq!(error, InputError::Unsupported("image: not a JPEG, PNG or WebP file".to_owned()));
    }
    assert_eq!(outcome(Vec::new()).unwrap_err(), InputError::Invalid("image: the file is empty".to_owned()));
    let mut arithmetic = data("photo.jpg");
    let frame = arithmetic.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    arithmetic[frame + 1] = 0xc9;
    assert!(matches!(outcome(arithmetic), Err(InputError::Unsupported(_))));
}

#[test]
fn truncated_files_are_rejected() {
    for name in FILES {
        let whole = data(name);
        for part in [1, 3, 5, 7, 8, 9] {
            let end = whole.len() * part / 10;
            let outcome = outcome(whole[..end].to_vec());
            assert!(matches!(outcome, Err(InputError::Invalid(_))), "{name} until {end}: {outcome:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_an_image_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..4_usize) {
        let magic: &[u8] = [&b""[..], b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", b"RIFF\0\0\0\0WEBPVP8"][kind];
        match outcome([magic, &bytes].concat()) {
            Ok(row) => prop_assert_eq!(row.len(), 3 * 8 * 8),
            Err(error) => prop_assert!(error.to_string().starts_with("image: "), "{}", error),
        }
    }

    #[test]
    fn damaged_images_are_an_image_or_an_error(
        name in proptest::sample::select(&FILES[..]),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        end in any::<prop::sample::Index>(),
        is_truncated in any::<bool>(),
    ) {
        let mut file = data(name);
        for (index, byte) in damage {
            let at = index.index(file.len());
            file[at] = byte;
        }
        if is_truncated {
            file.truncate(end.index(file.len()));
        }
        if let Ok(row) = outcome(file) {
            prop_assert_eq!(row.len(), 3 * 8 * 8);
        }
    }

    #[test]
    fn any_form_is_files_or_an_error(body in "(--x|\r\n|--|[a-z :=;\"]){0,40}", start in any::<bool>()) {
        let body = Bytes::from(if start { format!("--x\r\n{body}") } else { body });
        if let Ok(files) = read_form(&body, "multipart/form-data; boundary=x") {
            let bytes: usize = files.iter().map(|InputFile { bytes, .. }| bytes.len()).sum();
            prop_assert!(!files.is_empty() && bytes < body.len());
        }
    }
}
