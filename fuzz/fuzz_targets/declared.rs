//! Any text as an environment file of each kind, alone and with files beside it: no panic, and every place of the text's
//! own lies in the file.
#![no_main]

use cudock_declared::{FileKind, Files, Machine, read_beside, read_sources};
use libfuzzer_sys::fuzz_target;

/// A context in which every file has the same text.
struct Everywhere<'a>(&'a str);

impl Files for Everywhere<'_> {
    fn text(&self, _: &str) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn below(&self, path: &str) -> Vec<String> {
        ["requirements.txt", "pyproject.toml", "uv.lock", "poetry.lock", "Makefile", "CMakeLists.txt", "a.cu", "run.sh"]
            .map(|name| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") })
            .to_vec()
    }
}

fuzz_target!(|input: (u8, &str, &str)| {
    let (choice, text, beside) = input;
    let kind = [
        FileKind::Requirements,
        FileKind::Pyproject,
        FileKind::UvLock,
        FileKind::CondaEnvironment,
        FileKind::Dockerfile,
    ][usize::from(choice % 5)];
    let machine = if choice & 128 == 0 { Machine::X86_64 } else { Machine::Aarch64 };
    FileKind::guess("file", text);
    let files = Everywhere(beside);
    read_sources(&files);
    let lines = text.split('\n').count();
    match read_beside(kind, "file", text, machine, "file", &files) {
        Ok(mut declared) => {
            let packages = declared.packages.iter().filter(|package| package.file.is_none());
            let notes = declared.notes.iter().filter(|note| note.file.is_none()).map(|note| note.line);
            for line in packages.map(|package| package.line).chain(notes) {
                assert!((1..=lines).contains(&line), "line {line} of {lines}");
            }
            declared.keep_default_groups();
        }
        Err(error) => assert!(error.line >= 1 && error.column >= 1),
    }
});
