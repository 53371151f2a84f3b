//! What a size is on a day.

use std::collections::BTreeMap;

use cudock_facts::tables::{Lifecycle, Size};
use cudock_facts::version::Date;
use serde::Serialize;

use super::price::Place;

/// What became of a choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Status {
    /// It has ended.
    Retired {
        /// When, if known.
        on: Option<Date>,
        /// Where it goes on for a while.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        later_in: BTreeMap<String, Date>,
    },
    /// It will end.
    Retiring {
        /// When.
        on: Date,
    },
    /// There is no such size.
    NoSuchSize {
        /// Names that are near.
        near: Vec<String>,
    },
    /// Only a price, an announcement or a preview is known of it.
    Undocumented,
    /// It can be had.
    OnSale,
    /// The service, library or option has ended.
    Ended {
        /// When, if known.
        on: Option<Date>,
    },
    /// It has another name now.
    Outdated,
    /// It was never right.
    Wrong,
}

/// What a size is, in a region if one is meant.
pub(super) fn of(size: &Size, day: Date, place: &Place<'_>) -> Status {
    let here = place.region.and_then(|region| size.retired_on_by_region.get(region)).copied();
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
