//! What goes to an engine's command beside its words, where no list of processes shows it.

use std::process::Command;

use super::memory::MemoryFile;
use super::variables;
use super::words::{Beside, Kind};
use crate::error::RuntimeError;

/// What goes to an engine's command beside its words.
pub(super) struct Luggage {
    /// What the words call it.
    pub(super) beside: Beside,
    named: Vec<(String, String)>,
    /// They live as long as the command may read them.
    files: Vec<MemoryFile>,
}

impl Luggage {
    /// Variables, each on the way it takes.
    pub(super) fn of(kind: Kind, variables: &[(String, String)]) -> Result<Self, RuntimeError> {
        let sorted = variables::sort(kind.name(), variables)?;
        let named = sorted.named.iter().map(|(name, _)| name.clone()).collect();
        let mut luggage = Self {
            beside: Beside { variables: None, named, filter: None },
            named: sorted.named,
            files: Vec::new(),
        };
        if !sorted.lines.is_empty() {
            let file = MemoryFile::new(&sorted.lines)?;
            luggage.beside.variables = Some(file.path());
            luggage.files.push(file);
        }
        Ok(luggage)
    }

    /// Adds a filter of system calls.
    pub(super) fn add_filter(&mut self, text: &str) -> Result<(), RuntimeError> {
        let file = MemoryFile::new(text)?;
        self.beside.filter = Some(file.path());
        self.files.push(file);
        Ok(())
    }

    /// Puts the variables on a command; the files are there already, as descriptors that it inherits.
    pub(super) fn on(&self, mut command: Command) -> Command {
        command.envs(self.named.iter().map(|(name, value)| (name, value)));
        command
    }
}
