//! A fake driver library for one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The library, in its own directory, so that tests do not affect each other.
pub(crate) struct Fake {
    directory: TempDir,
    library: PathBuf,
}

impl Fake {
    /// Compiles the library with these definitions; skips the test if there is no C compiler.
    pub(crate) fn new(definitions: &[&str]) -> Option<Self> {
        Self::compile(tempfile::tempdir().unwrap(), definitions)
    }

    /// The same, with a log of all calls.
    pub(crate) fn logging(definitions: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let log = format!("LOG=\"{}\"", directory.path().join("log").display());
        Self::compile(directory, &[&[log.as_str()], definitions].concat())
    }

    fn compile(directory: TempDir, definitions: &[&str]) -> Option<Self> {
        let fake = Self { library: directory.path().join("libcuda.so.1"), directory };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_cuda.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-O2", "-shared", "-fPIC", "-o"]).arg(fake.path()).arg(source);
        compiler.args(definitions.iter().map(|definition| format!("-D{definition}")));
        let done = match compiler.output() {
            Ok(done) => done,
            Err(error) => {
                cudock_testkit::missing("cc", format_args!("no C compiler (cc: {error})"));
                return None;
            }
        };
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(fake)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.library
    }

    /// The number of calls of a function.
    pub(crate) fn called(&self, call: &str) -> usize {
        self.log().iter().filter(|(name, _)| name == call).count()
    }

    /// The number of successful calls.
    pub(crate) fn succeeded(&self, call: &str) -> usize {
        self.log().iter().filter(|(name, result)| name == call && result == "0").count()
    }

    fn log(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        text.lines()
            .filter_map(|line| {
                let mut fields = line.split(' ').map(str::to_owned);
                Some((fields.next()?, fields.nth(1)?))
            })
            .collect()
    }
}
