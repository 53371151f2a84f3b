//! Inputs of an engine's command that must not be on its command line, where other users could read them.

use std::path::PathBuf;
use std::process::Command;

use super::kind::EngineKind;
use super::variables;
use crate::error::RuntimeError;
use crate::namespace::memfd::MemoryFile;

/// How the command line refers to the inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InputRefs {
    pub(super) env_file: Option<PathBuf>,
    /// Variables that the engine's command takes from its own environment.
    pub(super) env_names: Vec<String>,
    pub(super) seccomp_file: Option<PathBuf>,
}

pub(super) struct CommandInputs {
    pub(super) refs: InputRefs,
    environment: Vec<(String, String)>,
    /// Kept open while the command may read them.
    files: Vec<MemoryFile>,
}

impl CommandInputs {
    pub(super) fn new(kind: EngineKind, variables: &[(String, String)]) -> Result<Self, RuntimeError> {
        let sorted = variables::sort(kind.name(), variables)?;
        let env_names = sorted.environment.iter().map(|(name, _)| name.clone()).collect();
        let mut inputs = Self {
            refs: InputRefs { env_names, ..InputRefs::default() },
            environment: sorted.environment,
            files: Vec::new(),
        };
        if !sorted.lines.is_empty() {
            inputs.refs.env_file = Some(inputs.add_file(&sorted.lines)?);
        }
        Ok(inputs)
    }

    pub(super) fn add_profile(&mut self, text: &str) -> Result<(), RuntimeError> {
        self.refs.seccomp_file = Some(self.add_file(text)?);
        Ok(())
    }

    fn add_file(&mut self, text: &str) -> Result<PathBuf, RuntimeError> {
        let file = MemoryFile::new(text.as_bytes())?;
        let path = file.path();
        self.files.push(file);
        Ok(path)
    }

    /// Sets the variables of a command; it inherits the files.
    pub(super) fn apply(&self, mut command: Command) -> Command {
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}
