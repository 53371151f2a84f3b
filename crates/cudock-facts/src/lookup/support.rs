//! Whether a service has a size somewhere, and with which driver.

use crate::store::Facts;
use crate::tables::{AzureDriver, Lifecycle, Region, SeriesRegions, Services, Size, Support, SupportValue};
use crate::version::{Date, DriverVersion};

impl Services {
    /// What the sources say about a series on a service, or on a part of one such as `ml-cluster`.
    pub fn support_of(&self, service: &str, series: &str) -> Option<&Support> {
        self.support.iter().find(|row| row.service == service && row.series == series)
    }

    /// The same as one value: what no row names is not listed.
    pub fn support_value(&self, service: &str, series: Option<&str>) -> SupportValue {
        let row = series.and_then(|series| self.support_of(service, series));
        row.map_or(SupportValue::NotListed, |row| row.value)
    }

    /// A region by its name.
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.region.iter().find(|row| row.name == name)
    }

    /// The regions of a series that only some have.
    pub fn regions_of_series(&self, series: &str) -> Option<&SeriesRegions> {
        self.series_region.iter().find(|row| row.series == series)
    }

    /// The driver that a service brings on a size: the first row that names its series, else the first for all, as far
    /// as a version or branch is known.
    pub fn driver_on(&self, service: &str, size: &Size) -> Option<&AzureDriver> {
        let known = |row: &&AzureDriver| {
            row.service == service
                && size.driver.is_none_or(|kind| kind == row.kind)
                && (row.version.is_some() || row.branch.is_some())
        };
        let of_series = |row: &&AzureDriver| row.series.iter().any(|name| Some(name) == size.series.as_ref());
        let rows = || self.driver.iter().filter(known);
        rows().find(of_series).or_else(|| rows().find(|row| row.series.is_empty()))
    }
}

impl AzureDriver {
    /// The version; of a branch, its newest release in the tables.
    pub fn release(&self, facts: &Facts) -> Option<DriverVersion> {
        self.version.or_else(|| {
            let branch = self.branch?;
            let row = facts.drivers().branch.iter().find(|row| row.branch == branch);
            Some(row.and_then(|row| row.latest_linux).unwrap_or(DriverVersion::of_branch(branch)))
        })
    }
}

impl Facts {
    /// Whether anybody can order a size in a region, as far as the tables tell: a public region without access on
    /// request, that has the series.
    pub fn is_open(&self, size: &Size, region: &str) -> bool {
        let services = self.services();
        let open = services.region(region).is_none_or(|row| row.listed && !row.restricted);
        let sold = size.series.as_deref().and_then(|series| services.regions_of_series(series));
        open && sold.is_none_or(|row| !row.complete || row.regions.iter().any(|name| name == region))
    }

    /// Whether a size can be ordered on a day in some public region, as far as the tables tell. `check --all-skus` and
    /// `plan` both ask this, so that they consider the same sizes.
    pub fn is_orderable(&self, size: &Size, day: Date) -> bool {
        let public = |region: &str| self.services().region(region).is_some_and(|row| row.listed);
        let longer = || size.retired_on_by_region.iter().any(|(region, end)| day < *end && public(region));
        let ended = size.retired_on.or(size.retires_on).is_some_and(|end| end <= day);
        match size.lifecycle {
            Lifecycle::Available => size.documented && (!ended || longer()),
            Lifecycle::Retired => size.documented && longer(),
            _ => false,
        }
    }
}
