//! Reads the files that a workload names, before anything is decided.
//!
//! A file that cannot be read is an error only if it is needed, so results are kept as they are.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cudock_model::{Model, ModelError, inspect};
use cudock_project::{Project, WorkloadFlags};

use crate::origin::Origin;

/// Reports of `cudock bench` have a few kilobytes.
const MAX_REPORT: u64 = 64 << 20;

#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) model: Option<InputFile<Model, ModelError>>,
    pub(crate) bench_report: Option<InputFile<Vec<u8>, io::Error>>,
}

#[derive(Debug)]
pub(crate) struct InputFile<T, E> {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) content: Result<T, E>,
}

impl Inputs {
    /// Reads the files that flags name, or else those that the project's file names.
    pub(crate) fn read(project: &Project, flags: &WorkloadFlags) -> Self {
        let workload = &project.manifest.workload;
        let named = |flag: Option<&PathBuf>, flag_name, key: Option<&PathBuf>, key_name| {
            flag.map(|path| (path.clone(), Origin::Flag(flag_name)))
                // A path in the file is relative to it.
                .or_else(|| key.map(|path| (project.directory.join(path), Origin::Key(key_name))))
        };
        let model = named(flags.model.as_ref(), "--model", workload.model.as_ref(), "workload.model");
        let report = named(flags.bench.as_ref(), "--bench", workload.bench.as_ref(), "workload.bench");
        Self {
            model: model.map(|(path, origin)| InputFile { content: inspect(&path), path, origin }),
            bench_report: report.map(|(path, origin)| InputFile {
                content: read_report(&path),
                path,
                origin,
            }),
        }
    }
}

fn read_report(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_REPORT).read_to_end(&mut bytes)?;
    Ok(bytes)
}
