//! Any text as an environment file of each kind, alone and with files beside it: no panic, and every span of the text's
//! own lies in the file.
#![no_main]

use cudock_base::{Arch, LineIndex};
use cudock_manifests::{FileKind, Files, read_sources, read_with_files};
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
    let arch = if choice & 128 == 0 { Arch::X86_64 } else { Arch::Aarch64 };
    FileKind::guess("file", text);
    let files = Everywhere(beside);
    read_sources(&files);
    if let Ok(file) = cudock_dockerfile::parse(text) {
        for instruction in &file.instructions {
            assert!(text.get(instruction.span.bytes()).is_some(), "{:?}", instruction.span);
            for doc in &instruction.here_docs {
                assert!(text.get(doc.span.bytes()).is_some(), "{:?}", doc.span);
            }
        }
    }
    let lines = LineIndex::new(text);
    match read_with_files(kind, "file", text, arch, "file", &files) {
        Ok(mut declared) => {
            let packages = declared.packages.iter().filter(|package| package.file.is_none());
            let notes = declared.notes.iter().filter(|note| note.file.is_none()).map(|note| note.span);
            for span in packages.map(|package| package.span).chain(notes) {
                assert!(text.get(span.bytes()).is_some(), "{span:?}");
                // In YAML a carriage return ends a line, too.
                let is_yaml = kind == FileKind::CondaEnvironment;
                assert!(is_yaml || span.line == lines.line(span.start), "{span:?}");
            }
            declared.keep_default_groups();
        }
        Err(error) => assert!(error.line >= 1 && error.column >= 1),
    }
});
