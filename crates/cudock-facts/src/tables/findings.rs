use serde::{Deserialize, Serialize};

use super::header::{Header, row, table_file};

/// `findings.toml`: the page behind each finding code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingPages {
    /// Age and sources.
    pub table: Header,
    /// The pages.
    #[serde(default)]
    pub finding: Vec<FindingPage>,
}

/// What `cudock explain CD0304` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingPage {
    /// CD0304; never used for anything else again.
    pub code: String,
    /// What is wrong, in a few words.
    pub title: String,
    /// Why it matters and how it comes about.
    pub why: String,
    /// What to do, most likely first.
    pub fix: Vec<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// What the third and fourth character of a code stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// `CD01xx`: the machine.
    Host,
    /// `CD02xx`: the NVIDIA driver.
    Driver,
    /// `CD03xx`: the NVIDIA Container Toolkit and container engines.
    Toolkit,
    /// `CD04xx`: PyTorch, TensorFlow and the like.
    Framework,
    /// `CD05xx`: machine code and PTX.
    GpuCode,
    /// `CD06xx`: images.
    Image,
    /// `CD07xx`: Dockerfiles.
    Dockerfile,
    /// `CD08xx`: Azure.
    Azure,
    /// `CD09xx`: cost.
    Cost,
}

impl FindingPage {
    /// The group the code belongs to; none if it is no code of ours.
    pub fn group(&self) -> Option<Group> {
        let digits = self.code.strip_prefix("CD").filter(|digits| digits.len() == 4)?;
        digits.parse::<u16>().ok()?;
        match digits.get(..2)? {
            "01" => Some(Group::Host),
            "02" => Some(Group::Driver),
            "03" => Some(Group::Toolkit),
            "04" => Some(Group::Framework),
            "05" => Some(Group::GpuCode),
            "06" => Some(Group::Image),
            "07" => Some(Group::Dockerfile),
            "08" => Some(Group::Azure),
            "09" => Some(Group::Cost),
            _ => None,
        }
    }
}

row!(FindingPage, |row| row.code.clone());
table_file!(FindingPages, "findings", [finding]);
