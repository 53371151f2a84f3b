use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::table_file;

table_file! {
    /// `findings.toml`: the page behind each finding code.
    pub struct FindingPages = "findings" {
        pub finding: Vec<FindingPage> by |row| row.code.clone(),
    }
}

/// What `cudock explain CD0304` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindingPage {
    /// CD0304; codes are never reused.
    pub code: String,
    pub title: String,
    /// The cause, and why it matters.
    pub why: String,
    pub fix: Vec<String>,
    pub source: Vec<String>,
}

impl FindingPage {
    /// Whether the code is `CD` and four digits, the first two of which are a known group: `01` host, `02` driver, `03`
    /// container toolkit, `04` framework, `05` GPU code, `06` image, `07` Dockerfile, `08` Azure, `09` cost.
    pub fn has_valid_code(&self) -> bool {
        let digits = self.code.strip_prefix("CD").filter(|digits| digits.len() == 4);
        digits.and_then(|digits| digits.parse::<u16>().ok()).is_some_and(|code| (100..1000).contains(&code))
    }
}
