use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::header::table_file;

table_file! {
    /// `opened_libraries.toml`: libraries that others open by name at run time, so that no ELF header lists them.
    pub struct OpenedLibraries = "opened_libraries" {
        pub opened: Vec<OpenedLibrary> by |row| format!("{} {}", row.opener, row.opens.join(" ")),
    }
}

/// Libraries that one library opens, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenedLibrary {
    /// The name of the library before `.so`.
    pub opener: String,
    /// The names of what it opens, before `.so`; a star at the end stands for anything.
    pub opens: Vec<String>,
    /// Operators of an ONNX model that cause the library to be opened; if empty, it is always opened.
    #[serde(default)]
    pub operators: Vec<String>,
    /// Whether no ONNX model needs it.
    #[serde(default)]
    pub not_for_models: bool,
    pub reason: String,
    pub source: Vec<String>,
}

impl OpenedLibrary {
    /// Whether a process that serves an ONNX model with these operators needs it; every other process does.
    pub fn is_needed(&self, operators: Option<&BTreeSet<String>>) -> bool {
        operators.is_none_or(|operators| {
            let has_any = || self.operators.iter().any(|name| operators.contains(name));
            !self.not_for_models && (self.operators.is_empty() || has_any())
        })
    }

    /// Whether it opens a library of this name, which is the part before `.so`.
    pub fn opens_name(&self, name: &str) -> bool {
        self.opens.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => pattern == name,
        })
    }
}
