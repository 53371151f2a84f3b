//! Determines the status of a size on a day.

use std::collections::BTreeMap;

use cudock_facts::tables::{Lifecycle, Size};
use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Status {
    Retired {
        on: Option<Date>,
        /// Regions where it ends later.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        later_in: BTreeMap<String, Date>,
    },
    Retiring {
        on: Date,
    },
    NoSuchSize {
        /// Similar names.
        near: Vec<String>,
    },
    /// Only a price, an announcement or a preview is known.
    Undocumented,
    OnSale,
    /// The service, library or option has ended.
    Ended {
        on: Option<Date>,
    },
    Outdated,
    /// It was never valid.
    Wrong,
}

pub(super) fn of(size: &Size, day: Date, region: Option<&str>) -> Status {
    let here = region.and_then(|region| size.retired_on_by_region.get(region)).copied();
    let end = here.or(size.retired_on).or(size.retires_on);
    match (size.lifecycle, end) {
        (Lifecycle::Retired | Lifecycle::PreviewEnded, Some(end)) if day < end => {
            Status::Retiring { on: end }
        }
        (Lifecycle::Retired | Lifecycle::PreviewEnded, end) => {
            let later = size.retired_on_by_region.iter().filter(|(_, end)| day < **end);
            let later_in = later.map(|(region, end)| (region.clone(), *end)).collect();
            Status::Retired { on: end, later_in }
        }
        (Lifecycle::Available | Lifecycle::Preview, Some(end)) if end <= day => {
            Status::Retired { on: Some(end), later_in: BTreeMap::new() }
        }
        (Lifecycle::Available | Lifecycle::Preview, Some(end)) => Status::Retiring { on: end },
        (Lifecycle::Available | Lifecycle::Preview, None) => Status::OnSale,
        (Lifecycle::Unknown | Lifecycle::Announced, _) => Status::Undocumented,
    }
}
