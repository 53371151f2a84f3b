//! Any text as an environment file of each kind: no panic, and every place lies in the file.
#![no_main]

use cudock_compat::declared::{FileKind, Machine, read_for};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &str)| {
    let (choice, text) = input;
    let kind = [
        FileKind::Requirements,
        FileKind::Pyproject,
        FileKind::UvLock,
        FileKind::CondaEnvironment,
        FileKind::Dockerfile,
    ][usize::from(choice % 5)];
    let machine = if choice & 128 == 0 { Machine::X86_64 } else { Machine::Aarch64 };
    FileKind::guess("file", text);
    let lines = text.split('\n').count();
    match read_for(kind, "file", text, machine) {
        Ok(declared) => {
            let places = declared.packages.iter().map(|package| package.line);
            let places = places.chain(declared.notes.iter().map(|note| note.line));
            for line in places.chain(declared.cuda_packages.iter().map(|package| package.line)) {
                assert!((1..=lines).contains(&line), "line {line} of {lines}");
            }
        }
        Err(error) => assert!(error.line >= 1 && error.column >= 1),
    }
});
