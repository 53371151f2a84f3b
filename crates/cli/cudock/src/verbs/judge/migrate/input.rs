//! Reads files, standard input, and command lines.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use cudock_migrate::{MAX_FILE_SIZE, MigrateError, decode};

use crate::failure::Failure;

pub(crate) struct MigrateInput {
    pub(super) name: String,
    pub(super) text: String,
}

impl MigrateInput {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        if name == "-" {
            return Self::of("standard input".to_owned(), std::io::stdin().lock());
        }
        if name.starts_with("az ") && !path.exists() {
            return Ok(Self { name: "command line".to_owned(), text: name });
        }
        let failed = |error: std::io::Error| {
            let failure = Failure::input(format!("cannot read {name}: {error}"));
            if path.is_dir() { failure.hint("name the files in it") } else { failure }
        };
        let file = File::open(path).map_err(failed)?;
        if path.is_dir() {
            return Err(Failure::input(format!("{name} is a directory")).hint("name the files in it"));
        }
        Self::of(name, file)
    }

    /// Reads at most one byte more than the limit.
    fn of(name: String, from: impl Read) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        from.take(MAX_FILE_SIZE + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
        let failed = |error: MigrateError| {
            let hint = match error {
                MigrateError::TooLarge { .. } => "pass the script or template alone",
                MigrateError::Binary { .. } => "pass scripts, templates, programs or notes",
            };
            Failure::input(format!("cannot read {name}: {error}")).hint(hint)
        };
        let text = decode(&bytes).map_err(failed)?.into_owned();
        Ok(Self { name, text })
    }
}
