//! Compares unpacking with `tar -x` and `umoci unpack` of the same image on the same disk.
//! Usage: `CUDOCK_BENCH_LAYOUT=DIR cargo bench -p cudock-image --bench unpack`. Without it, a synthetic image is used.
#![allow(
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that cannot run should stop"
)]

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cudock_base::Digest;
use cudock_http::Progress;
use cudock_image::unpack::LayerStore;
use cudock_image::{ImageSource, OpenOptions, ResolvedImage};
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::json;

const ROUNDS: usize = 3;
const BLOCK: usize = 512;
/// The synthetic image: many small files and a few large ones, as in real images.
const LAYERS: u64 = 4;
const SMALL_FILES: u64 = 5_000;
const SMALL: usize = 6 << 10;
const LARGE_FILES: u64 = 3;
const LARGE: usize = 32 << 20;

struct Silent;

impl Progress for Silent {}

fn main() {
    // `cargo test --all-targets` runs this too, in an unoptimized build.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("skipped: not started by `cargo bench`");
        return;
    }
    let scratch = tempfile::tempdir().expect("a temporary directory");
    if let Some(given) = std::env::var_os("CUDOCK_BENCH_LAYOUT").map(PathBuf::from) {
        measure("the given layout", &given, scratch.path());
        return;
    }
    println!("CUDOCK_BENCH_LAYOUT is not set: measuring two synthetic layouts");
    for (name, compressed) in [("plain layers", false), ("gzip layers", true)] {
        let directory = scratch.path().join(name.replace(' ', "-"));
        make_layout(&directory, compressed).expect("a layout can be written");
        measure(name, &directory, scratch.path());
        fs::remove_dir_all(&directory).expect("a layout can be removed");
    }
}

fn measure(name: &str, layout: &Path, scratch: &Path) {
    let options = OpenOptions {
        platform: None,
        client: None,
        sockets: Vec::new(),
        progress: None,
        scratch: scratch.join("scratch"),
    };
    let source = ImageSource::Layout { directory: layout.to_owned(), name: None };
    let found = ResolvedImage::resolve(&source, &options).expect("the layout can be read");
    let image = found.open().expect("the layout can be opened");
    let blobs: Vec<PathBuf> =
        image.layers.iter().map(|layer| layout.join("blobs").join(layer.digest.replace(':', "/"))).collect();
    let store = scratch.join("store");
    let ours = best(&store, || {
        let store = LayerStore::open(&store).expect("a store can be made");
        store.unpack(&image, &Silent).expect("the image can be unpacked");
    });
    let opened = LayerStore::open(&store).expect("a store can be opened");
    opened.unpack(&image, &Silent).expect("the image can be unpacked");
    let start = Instant::now();
    opened.unpack(&image, &Silent).expect("the image is there");
    let warm = start.elapsed();
    let bytes = size_of_files(&store);
    fs::remove_dir_all(&store).expect("the store can be removed");
    println!(
        "{name}: {} layers, {:.2} GB of files; {:.3} s, {:.2} GB/s; again, when all is there: {:.0} us",
        blobs.len(),
        bytes as f64 / 1e9,
        ours.as_secs_f64(),
        bytes as f64 / 1e9 / ours.as_secs_f64(),
        warm.as_secs_f64() * 1e6,
    );
    let to = scratch.join("tar");
    let tar = best(&to, || blobs.iter().enumerate().for_each(|(number, blob)| extract(blob, &to, number)));
    let _ = fs::remove_dir_all(&to);
    report("tar -x, one layer after the other", tar, ours);
    let to = scratch.join("umoci");
    if Command::new("umoci").arg("--version").output().is_ok() {
        let umoci = best(&to, || {
            let image = format!("{}:latest", layout.display());
            let status = Command::new("umoci").args(["unpack", "--image", &image]).arg(&to).status();
            assert!(status.is_ok_and(|status| status.success()), "umoci cannot unpack it");
        });
        let _ = fs::remove_dir_all(&to);
        report("umoci unpack, which also writes a list of all files", umoci, ours);
    } else {
        println!("  umoci: not installed");
    }
}

fn report(what: &str, theirs: Duration, ours: Duration) {
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!("  {what}: {:.3} s; we take 1/{ratio:.2} of that", theirs.as_secs_f64());
}

/// The best of several rounds, each into a new directory.
fn best(directory: &Path, mut run: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    // The first round warms the page cache and is not counted.
    for round in 0..=ROUNDS {
        let _ = fs::remove_dir_all(directory);
        let start = Instant::now();
        run();
        if round > 0 {
            best = best.min(start.elapsed());
        }
    }
    best
}

/// Runs `tar -x`.
fn extract(blob: &Path, to: &Path, number: usize) {
    let to = to.join(number.to_string());
    fs::create_dir_all(&to).expect("a directory can be created");
    let mut start = [0; 2];
    let gzip =
        File::open(blob).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == [0x1f, 0x8b];
    let flags = if gzip { "-xzpf" } else { "-xpf" };
    let status = Command::new("tar").arg(flags).arg(blob).arg("-C").arg(&to).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "tar cannot unpack it");
}

fn make_layout(directory: &Path, compressed: bool) -> io::Result<()> {
    let blobs = directory.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let keep = |media_type: &str, bytes: &[u8]| {
        let digest = Digest::sha256_of(bytes);
        fs::write(blobs.join(digest.hex()), bytes)?;
        let media_type = format!("application/vnd.oci.image.{media_type}");
        io::Result::Ok(json!({"mediaType": media_type, "digest": digest.to_string(), "size": bytes.len()}))
    };
    let (mut layers, mut diffs) = (Vec::new(), Vec::new());
    for layer in 0..LAYERS {
        let mut bytes = Vec::new();
        write_layer(layer, &mut bytes)?;
        if compressed {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&bytes)?;
            bytes = encoder.finish()?;
        }
        layers.push(keep(if compressed { "layer.v1.tar+gzip" } else { "layer.v1.tar" }, &bytes)?);
        diffs.push(diff_id(&bytes)?);
    }
    let config =
        json!({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": diffs}});
    let config = keep("config.v1+json", config.to_string().as_bytes())?;
    let manifest = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": layers});
    let mut manifest = keep("manifest.v1+json", manifest.to_string().as_bytes())?;
    if let Some(fields) = manifest.as_object_mut() {
        fields.insert("annotations".into(), json!({"org.opencontainers.image.ref.name": "latest"}));
    }
    fs::write(directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    fs::write(directory.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string())
}

fn diff_id(bytes: &[u8]) -> io::Result<String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(Digest::sha256_of(bytes).to_string());
    }
    let mut plain = Vec::new();
    MultiGzDecoder::new(bytes).read_to_end(&mut plain)?;
    Ok(Digest::sha256_of(&plain).to_string())
}

fn write_layer(layer: u64, to: &mut Vec<u8>) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    let noise = text(layer + 1, LARGE);
    to.write_all(&header("usr/", b'5', 0))?;
    to.write_all(&header("usr/lib/", b'5', 0))?;
    for directory in 0..SMALL_FILES / 50 {
        to.write_all(&header(&format!("usr/lib/d{layer}-{directory}/"), b'5', 0))?;
        for file in 0..50 {
            let at = usize::try_from((directory * 50 + file) * 512).unwrap_or(0);
            let size = SMALL / 4 + usize::try_from(file).unwrap_or(0) * SMALL / 33;
            let content = noise.get(at..at + size).unwrap_or_default();
            to.write_all(&header(&format!("usr/lib/d{layer}-{directory}/f{file}"), b'0', content.len()))?;
            to.write_all(content)?;
            to.write_all(&vec![0; content.len().next_multiple_of(BLOCK) - content.len()])?;
        }
    }
    for file in 0..LARGE_FILES {
        to.write_all(&header(&format!("usr/lib/large{layer}-{file}.so"), b'0', noise.len()))?;
        to.write_all(&noise)?;
    }
    to.write_all(&[0; 2 * BLOCK])
}

/// Repeated text with noise, which compresses about as well as libraries.
fn text(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = Vec::with_capacity(length + 32);
    while bytes.len() < length {
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
    bytes.truncate(length);
    bytes
}

fn header(name: &str, kind: u8, size: usize) -> Vec<u8> {
    let kind = char::from(kind);
    let mut block =
        format!("{name:\0<100}0000755\x000000000\x000000000\0{size:011o}\x0014000000000\0        {kind}")
            .into_bytes();
    block.resize(257, 0);
    block.extend_from_slice(b"ustar\x0000");
    block.resize(BLOCK, 0);
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block.splice(148..156, format!("{sum:06o}\0 ").into_bytes());
    block
}

/// The total size of the regular files below a directory.
fn size_of_files(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).expect("the directory can be read");
    entries
        .map(|entry| {
            let path = entry.expect("the directory can be read").path();
            let metadata = fs::symlink_metadata(&path).expect("the file is there");
            if metadata.is_dir() { size_of_files(&path) } else { metadata.len() }
        })
        .sum()
}
