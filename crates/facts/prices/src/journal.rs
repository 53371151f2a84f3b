//! The regions that an unfinished run has read, so that the next run can resume.

use std::path::{Path, PathBuf};

use cudock_base::FileError;
use cudock_base::files::remove_optional;
use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::endpoint::Endpoint;
use crate::error::PricesError;
use crate::files;
use crate::region::RegionPrices;
use crate::rules::Sizes;

const FILE: &str = "azure_prices.unfinished";
const FORM: u32 = 1;

/// The regions that were read, in a file next to the table whose extension is not that of a table.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    pub(crate) run: Run,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    form: u32,
    /// The day it began.
    day: Date,
    pub(crate) endpoint: String,
    /// The requested sizes; empty for all that the tables know.
    pub(crate) sizes: Vec<String>,
    pub(crate) regions: Vec<RegionPrices>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unfinished {
    /// The day it began.
    pub day: Date,
    pub regions: Vec<String>,
    /// Whether a run can resume it: it began today or yesterday.
    pub usable: bool,
}

impl Journal {
    /// Resumes an unfinished run of today or yesterday with the same endpoint and sizes, or begins a new one. A recent run
    /// with another endpoint or other sizes is also returned: its prices are valid, and its file will be overwritten. A
    /// file that cannot be read is ignored.
    pub(crate) fn open(
        directory: &Path,
        endpoint: &Endpoint,
        sizes: &Sizes,
        today: Date,
    ) -> Result<(Self, Option<Run>), PricesError> {
        let path = directory.join(FILE);
        let new = Run {
            form: FORM,
            day: today,
            endpoint: endpoint.to_string(),
            sizes: if sizes.all { Vec::new() } else { sizes.names().map(str::to_owned).collect() },
            regions: Vec::new(),
        };
        let left = read(&path)?.filter(|run| is_usable(run.day, today));
        Ok(match left {
            Some(run) if (&run.endpoint, &run.sizes) == (&new.endpoint, &new.sizes) => {
                (Self { path, run }, None)
            }
            other => (Self { path, run: new }, other.filter(|run| !run.regions.is_empty())),
        })
    }

    pub(crate) fn has(&self, region: &str) -> bool {
        self.run.regions.iter().any(|done| done.region == region)
    }

    /// Adds a region and writes it to disk.
    pub(crate) fn add(&mut self, region: RegionPrices) -> Result<(), PricesError> {
        self.run.regions.push(region);
        let text = serde_json::to_vec(&self.run)
            .map_err(|error| PricesError::Check { path: self.path.clone(), reason: error.to_string() })?;
        files::write(&self.path, &text)
    }

    /// Removes the journal, once the table contains what it read.
    pub(crate) fn close(self) -> Result<Run, PricesError> {
        remove_optional(&self.path).map_err(FileError::at("remove", &self.path))?;
        Ok(self.run)
    }
}

/// The run that was left unfinished in a directory, if any.
pub fn unfinished(directory: &Path, today: Date) -> Result<Option<Unfinished>, PricesError> {
    Ok(read(&directory.join(FILE))?.map(|run| Unfinished {
        day: run.day,
        usable: is_usable(run.day, today),
        regions: run.regions.into_iter().map(|region| region.region).collect(),
    }))
}

fn read(path: &Path) -> Result<Option<Run>, PricesError> {
    let run: Option<Run> = files::read(path)?.and_then(|text| serde_json::from_str(&text).ok());
    Ok(run.filter(|run| run.form == FORM))
}

/// A run may continue past midnight.
fn is_usable(day: Date, today: Date) -> bool {
    (0..=1).contains(&today.days_since(day))
}
