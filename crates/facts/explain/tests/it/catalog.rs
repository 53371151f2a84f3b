//! The catalog finds its messages wherever they stand, and nothing where there is nothing.

use std::sync::LazyLock;

use cudock_explain::Catalog;
use cudock_facts::Facts;
use cudock_facts::tables::{Layer, Message};
use proptest::prelude::*;

const NOISE: &str = include_str!("../noise.txt");

static FACTS: LazyLock<Facts> = LazyLock::new(Facts::embedded);
static CATALOG: LazyLock<Catalog<'static>> = LazyLock::new(|| Catalog::new(FACTS.messages()).unwrap());

fn ids(report: &cudock_explain::LogReport<'_>) -> Vec<String> {
    report.hits.iter().map(|hit| hit.message.id.clone()).collect()
}

fn samples(message: &Message) -> impl Iterator<Item = &String> {
    std::iter::once(&message.sample).chain(&message.samples)
}

#[test]
fn there_are_at_least_sixty_messages_and_all_layers_have_some() {
    let messages = &FACTS.messages().message;
    assert!(messages.len() >= 60, "{}", messages.len());
    for layer in [Layer::Driver, Layer::Toolkit, Layer::Image, Layer::Framework, Layer::Device, Layer::Azure]
    {
        assert!(messages.iter().any(|message| message.layer == layer), "{layer:?} has no message");
    }
}

#[test]
fn each_sample_names_its_own_message_first() {
    let catalog = &*CATALOG;
    for message in &FACTS.messages().message {
        for sample in samples(message) {
            let found = ids(&catalog.explain(sample));
            assert_eq!(found.first(), Some(&message.id), "{sample:?} gave {found:?}");
        }
    }
}

#[test]
fn clean_logs_give_nothing() {
    let catalog = &*CATALOG;
    let logs_directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clean");
    let mut logs = 0;
    for entry in std::fs::read_dir(logs_directory).unwrap() {
        let path = entry.unwrap().path();
        let report = catalog.scan(std::fs::File::open(&path).unwrap(), |_| ()).unwrap();
        assert!(report.hits.is_empty(), "{} gave {:?}", path.display(), ids(&report));
        assert!(report.lines > 50, "{} is too short to prove anything", path.display());
        logs += 1;
    }
    assert!(logs >= 8);
    assert!(catalog.explain(NOISE).hits.is_empty());
}

#[test]
fn the_most_telling_message_comes_first() {
    let catalog = &*CATALOG;
    let log = "torch.cuda.is_available() returns False\n\
               2026-11-14 10:00:00 something else\n\
               Failed to initialize NVML: Driver/library version mismatch\n";
    let found = ids(&catalog.explain(log));
    assert_eq!(found, ["nvml-mismatch", "torch-available-false"]);
}

#[test]
fn a_message_in_a_json_log_is_found() {
    let catalog = &*CATALOG;
    let log = r#"{"log":"unable to start container process: exec: \"nvidia-smi\": executable file not found in $PATH: unknown\n","stream":"stderr"}"#;
    assert_eq!(ids(&catalog.explain(log)), ["smi-not-in-container"]);
}

#[test]
fn a_message_with_colors_in_it_is_found() {
    let catalog = &*CATALOG;
    let log =
        "\x1b[1;31mRuntimeError\x1b[0m: CUDA error: no kernel image is available for execution on the device";
    assert_eq!(ids(&catalog.explain(log)), ["cuda-209-no-kernel"]);
}

#[test]
fn a_message_wrapped_over_two_lines_is_found() {
    let catalog = &*CATALOG;
    let log = "ERROR: This container was built for NVIDIA Driver Release 535.86 or later, but\n   version 470.57 was detected and \
               compatibility mode is UNAVAILABLE.\n";
    assert_eq!(ids(&catalog.explain(log)), ["ngc-driver-banner"]);
}

#[test]
fn repeats_are_counted_and_the_first_line_is_named() {
    let catalog = &*CATALOG;
    let line = "RuntimeError: No CUDA GPUs are available\n";
    let log = format!("first\nsecond\n{line}between\n{line}{line}");
    let report = catalog.explain(&log);
    assert_eq!((report.hits[0].line, report.hits[0].count, report.lines), (3, 3, 6));
    assert_eq!(report.hits[0].excerpt, "RuntimeError: No CUDA GPUs are available");
}

#[test]
fn a_line_without_an_end_takes_bounded_memory_and_is_searched() {
    let catalog = &*CATALOG;
    let mut log = vec![b'x'; 5 << 20];
    log.extend(b" RuntimeError: No CUDA GPUs are available ");
    log.extend(vec![b'y'; 3 << 20]);
    let report = catalog.scan(&log[..], |_| ()).unwrap();
    assert_eq!(ids(&report), ["torch-no-gpus"]);
    assert_eq!((report.bytes, report.lines), (log.len() as u64, 1));
    assert!(report.hits[0].excerpt.len() < 1000);
}

/// A reader that hands out a few bytes at a time, as pipes do.
struct Trickle<'a>(&'a [u8], usize);

impl std::io::Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.1.min(buffer.len()).min(self.0.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// A megabyte of other lines with a message at a place from 0 to 1.
fn log_with(sample: &str, place: f64) -> String {
    const SIZE: usize = 1 << 20;
    let mut log = String::with_capacity(SIZE + sample.len() + 4000);
    let mut noise = NOISE.lines().cycle();
    let mut planted = false;
    while log.len() < SIZE || !planted {
        if !planted && log.len() as f64 >= place * SIZE as f64 {
            log.push_str(sample);
            log.push('\n');
            planted = true;
        }
        log.push_str(noise.next().unwrap());
        log.push('\n');
    }
    log
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1))]

    /// The promise of `explain`: each message of the catalog, at any place among a megabyte of other lines.
    #[test]
    fn each_message_anywhere_in_a_megabyte_of_log_is_named(places in prop::collection::vec(0.0..1.0_f64, 400)) {
        let catalog = &*CATALOG;
        let all = FACTS.messages().message.iter().flat_map(|message| samples(message).map(move |sample| (message, sample)));
        for ((message, sample), place) in all.zip(places.iter().cycle()) {
            let log = log_with(sample, *place);
            let found = ids(&catalog.scan(log.as_bytes(), |_| ()).unwrap());
            prop_assert_eq!(found.first(), Some(&message.id), "at {}: {:?}", place, &found);
        }
    }
}

proptest! {
    /// Where blocks are cut must not matter.
    #[test]
    fn the_seams_between_blocks_lose_nothing(at in 0..40_000_usize, step in 1..70_000_usize) {
        let catalog = &*CATALOG;
        // Around the first seam: blocks are a mebibyte and two reaches long.
        let before = (1 << 20) - 20_000 + at;
        let mut log = "ordinary line of the log\n".repeat(before / 25);
        log.push_str("Failed to initialize NVML: Unknown Error\n");
        log.push_str(&"ordinary line of the log\n".repeat(2000));
        let report = catalog.scan(Trickle(log.as_bytes(), step), |_| ()).unwrap();
        prop_assert_eq!(ids(&report), ["nvml-unknown-error"]);
        prop_assert_eq!(report.hits[0].line, (before / 25 + 1) as u64);
        prop_assert_eq!(report.hits[0].count, 1);
        prop_assert_eq!(report.lines, (before / 25 + 2001) as u64);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        let catalog = &*CATALOG;
        catalog.scan(&bytes[..], |_| ()).ok();
    }
}
