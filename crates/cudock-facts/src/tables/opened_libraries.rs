use serde::{Deserialize, Serialize};

use super::header::table_file;

table_file! {
    /// `opened_libraries.toml`: libraries that others open by name at run time, so that no ELF header lists them.
    pub struct OpenedLibraries = "opened_libraries" {
        pub opened: Vec<OpenedLibrary> by |row| format!("{} {}", row.opener, row.opens.join(" ")),
    }
}

/// What one library opens, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenedLibrary {
    /// The name of the library before `.so`.
    pub opener: String,
    /// The names of what it opens, before `.so`; a star at the end stands for anything.
    pub opens: Vec<String>,
    /// For an ONNX model: opened only if the model has one of these operators. Without any, always.
    #[serde(default)]
    pub operators: Vec<String>,
    pub reason: String,
    pub source: Vec<String>,
}

impl OpenedLibrary {
    /// Whether it opens a library of this name, which is the part before `.so`.
    pub fn opens_name(&self, name: &str) -> bool {
        self.opens.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => pattern == name,
        })
    }
}
