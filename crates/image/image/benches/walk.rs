//! Compares walking an image, with all ELF files read, to only decoding the same layers on the same cores.
//! Usage: `CUDOCK_BENCH_LAYOUT=DIR cargo bench -p cudock-image`. Without it, a synthetic image is used.
#![allow(
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that cannot run should stop"
)]

use std::cmp::Reverse;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cudock_base::Digest;
use cudock_image::{Image, ImageSource, LayerLimits, OpenOptions, ResolvedImage};
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::json;

const ROUNDS: usize = 3;
const BLOCK: usize = 512;
/// The unpacked size of the synthetic image.
const LAYERS: u64 = 8;
const FILES: u64 = 25;
const FILE: usize = 1 << 20;

fn main() {
    // `cargo test --all-targets` runs this too, in an unoptimized build.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("skipped: not started by `cargo bench`");
        return;
    }
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let given = std::env::var_os("CUDOCK_BENCH_LAYOUT").map(PathBuf::from);
    let directory = given.unwrap_or_else(|| {
        println!("CUDOCK_BENCH_LAYOUT is not set: measuring a synthetic layout");
        make_layout(scratch.path()).expect("a layout can be written");
        scratch.path().to_owned()
    });
    let options = OpenOptions {
        platform: None,
        client: None,
        sockets: Vec::new(),
        progress: None,
        scratch: scratch.path().join("scratch"),
    };
    let source = ImageSource::Layout { directory: directory.clone(), name: None };
    let found = ResolvedImage::resolve(&source, &options).expect("the layout can be read");
    let image = found.open().expect("the layout can be opened");
    let blobs = directory.join("blobs");
    let mut maps: Vec<_> = image
        .layers
        .iter()
        .map(|layer| {
            cudock_mmap::map(&blobs.join(layer.digest.replace(':', "/"))).expect("a layer can be mapped")
        })
        .collect();
    maps.sort_by_key(|map| Reverse(map.len()));
    measure(&image, &maps);
}

fn measure(image: &Image, maps: &[impl std::ops::Deref<Target = [u8]> + Sync]) {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut best = (Duration::MAX, Duration::MAX);
    let (mut unpacked, mut seen) = (0, (0, 0, 0));
    // The first round warms the page cache and is not counted.
    for round in 0..=ROUNDS {
        let start = Instant::now();
        let decoded = decode_all(maps, cores);
        let decoding = start.elapsed();
        let start = Instant::now();
        let walked = walk(image);
        let walking = start.elapsed();
        assert!(round == 0 || (decoded, walked) == (unpacked, seen), "two rounds differ");
        (unpacked, seen) = (decoded, walked);
        if round > 0 {
            best = (best.0.min(decoding), best.1.min(walking));
        }
    }
    let (nodes, elf_files, elf_bytes) = seen;
    let stored: usize = maps.iter().map(|map| map.len()).sum();
    let gigabytes = unpacked as f64 / 1e9;
    let rate = |time: Duration| gigabytes / time.as_secs_f64();
    println!(
        "{} layers, {:.2} GB stored, {gigabytes:.2} GB unpacked, {nodes} nodes, {elf_files} ELF files of {:.2} GB, {cores} cores",
        maps.len(),
        stored as f64 / 1e9,
        elf_bytes as f64 / 1e9,
    );
    println!("walk, every ELF file whole: {:.3} s, {:.2} GB/s", best.1.as_secs_f64(), rate(best.1));
    println!("plain decoding to a sink:   {:.3} s, {:.2} GB/s", best.0.as_secs_f64(), rate(best.0));
    println!(
        "walk runs at {:.0} % of plain decoding, best of {ROUNDS} rounds each",
        100.0 * best.0.as_secs_f64() / best.1.as_secs_f64()
    );
}

/// The number of entries, and the number and size of ELF files.
fn walk(image: &Image) -> (usize, u64, u64) {
    let (files, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let tree = image
        .walk(LayerLimits::default(), |_, content| {
            if !content.start()?.starts_with(b"\x7fELF") {
                return Ok(None);
            }
            let length = black_box(content.all()?).len() as u64;
            files.fetch_add(1, Ordering::Relaxed);
            bytes.fetch_add(length, Ordering::Relaxed);
            Ok(Some(length))
        })
        .expect("the image can be walked");
    (tree.iter().count(), files.into_inner(), bytes.into_inner())
}

/// Decodes the layers, largest first, and returns the decoded size.
fn decode_all(maps: &[impl std::ops::Deref<Target = [u8]> + Sync], cores: usize) -> u64 {
    let (next, total) = (AtomicUsize::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..cores.min(maps.len()) {
            scope.spawn(|| {
                while let Some(map) = maps.get(next.fetch_add(1, Ordering::Relaxed)) {
                    total.fetch_add(decode(map).expect("a layer can be decoded"), Ordering::Relaxed);
                }
            });
        }
    });
    total.into_inner()
}

fn decode(bytes: &[u8]) -> io::Result<u64> {
    match bytes {
        [0x1f, 0x8b, ..] => sink(MultiGzDecoder::new(bytes)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
            decoder.window_log_max(27)?;
            sink(decoder)
        }
        _ => Ok(touch_headers(bytes)),
    }
}

/// For uncompressed layers, only walks from header to header.
fn touch_headers(bytes: &[u8]) -> u64 {
    let mut at = 0;
    while let Some(digits) = bytes.get(at..).and_then(|rest| rest.get(124..135)) {
        let octal = |size: usize, digit: &u8| size * 8 + usize::from(digit & 7);
        let size = black_box(digits).iter().fold(0, octal);
        at = at.saturating_add(BLOCK + size.next_multiple_of(BLOCK));
    }
    bytes.len() as u64
}

fn sink(mut decoder: impl Read) -> io::Result<u64> {
    let mut buffer = vec![0; 256 << 10];
    let mut total = 0;
    loop {
        match decoder.read(&mut buffer)? {
            0 => return Ok(total),
            count => total += black_box(count) as u64,
        }
    }
}

/// An image whose files compress about as well as libraries; half of them have an ELF header.
fn make_layout(directory: &Path) -> io::Result<()> {
    let blobs = directory.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let keep = |media_type: &str, bytes: &[u8]| {
        let digest = Digest::sha256_of(bytes);
        File::create(blobs.join(digest.hex()))?.write_all(bytes)?;
        let media_type = format!("application/vnd.oci.image.{media_type}");
        io::Result::Ok(json!({"mediaType": media_type, "digest": digest.to_string(), "size": bytes.len()}))
    };
    let mut layers = Vec::new();
    for layer in 0..LAYERS {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        for file in 0..FILES {
            let mut content = text(layer * FILES + file + 1);
            if file % 2 == 0 {
                content.splice(..4, *b"\x7fELF");
            }
            encoder.write_all(&header(&format!("usr/lib/{layer}/file{file}"), content.len()))?;
            encoder.write_all(&content)?;
        }
        encoder.write_all(&[0; 2 * BLOCK])?;
        layers.push(keep("layer.v1.tar+gzip", &encoder.finish()?)?);
    }
    let config =
        json!({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}});
    let config = keep("config.v1+json", config.to_string().as_bytes())?;
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
    let manifest = keep("manifest.v1+json", manifest.to_string().as_bytes())?;
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    fs::write(directory.join("index.json"), index.to_string())
}

/// A mebibyte of repeated text with noise.
fn text(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = Vec::with_capacity(FILE + 32);
    while bytes.len() < FILE {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state.is_multiple_of(2) {
            bytes.extend_from_slice(&state.to_le_bytes());
        } else {
            let word = (state >> 8) % 256;
            let parts = (1..5).map(|part| (word * 5 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            bytes.extend(parts.flat_map(u64::to_le_bytes));
        }
    }
    bytes.truncate(FILE);
    bytes
}

fn header(name: &str, size: usize) -> Vec<u8> {
    let mut block =
        format!("{name:\0<100}0000755\x000000000\x000000000\0{size:011o}\x0000000000000\0        0")
            .into_bytes();
    block.resize(257, 0);
    block.extend_from_slice(b"ustar\x0000");
    block.resize(BLOCK, 0);
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block.splice(148..156, format!("{sum:06o}\0 ").into_bytes());
    block
}
