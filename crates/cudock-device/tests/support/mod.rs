//! A driver's library made for one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The library, in a folder of its own: each test has its own copy, so that none sees what another did to it.
pub(crate) struct Fake {
    folder: TempDir,
    library: PathBuf,
}

impl Fake {
    /// Compiles the library with these definitions; none, with a word on standard error, where nothing compiles C.
    pub(crate) fn new(definitions: &[&str]) -> Option<Self> {
        Self::compile(tempfile::tempdir().unwrap(), definitions)
    }

    /// The same, keeping a log of all calls.
    pub(crate) fn logging(definitions: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let log = format!("LOG=\"{}\"", folder.path().join("log").display());
        Self::compile(folder, &[&[log.as_str()], definitions].concat())
    }

    fn compile(folder: TempDir, definitions: &[&str]) -> Option<Self> {
        let fake = Self { library: folder.path().join("libcuda.so.1"), folder };
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

    /// Where the library is.
    pub(crate) fn path(&self) -> &Path {
        &self.library
    }

    /// How often a function was called.
    pub(crate) fn called(&self, call: &str) -> usize {
        self.log().iter().filter(|(name, _)| name == call).count()
    }

    /// How often it answered success.
    pub(crate) fn succeeded(&self, call: &str) -> usize {
        self.log().iter().filter(|(name, result)| name == call && result == "0").count()
    }

    fn log(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines()
            .filter_map(|line| {
                let mut words = line.split(' ').map(str::to_owned);
                Some((words.next()?, words.nth(1)?))
            })
            .collect()
    }
}
