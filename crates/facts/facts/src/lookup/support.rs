//! Looks up which services have a size, where, and with which driver.

use crate::store::Facts;
use crate::tables::{AzureDriver, Lifecycle, Region, SeriesRegions, Services, Size, Support};
use crate::version::{Date, DriverVersion};

impl Services {
    /// The support for a series on a service, or on a part of one such as `ml-cluster`.
    pub fn support_of(&self, service: &str, series: &str) -> Option<&Support> {
        self.support.iter().find(|row| row.service == service && row.series == series)
    }

    pub fn region(&self, name: &str) -> Option<&Region> {
        self.region.iter().find(|row| row.name == name)
    }

    /// The regions of a series, if not all regions have it.
    pub fn regions_of_series(&self, series: &str) -> Option<&SeriesRegions> {
        self.series_region.iter().find(|row| row.series == series)
    }

    /// The driver that a service installs on a size: the first row for its series, else the first for all, that has a
    /// version or branch.
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
    /// The version; for a branch, its newest release in the tables.
    pub fn release(&self, facts: &Facts) -> Option<DriverVersion> {
        self.version.or_else(|| {
            let branch = self.branch?;
            let row = facts.drivers().branch.iter().find(|row| row.branch == branch);
            Some(row.and_then(|row| row.latest_linux).unwrap_or(DriverVersion::of_branch(branch)))
        })
    }
}

impl Facts {
    /// Whether a size can be ordered in a region without a request for access: a public region that has the series.
    pub fn is_open(&self, size: &Size, region: &str) -> bool {
        let services = self.services();
        let open = services.region(region).is_none_or(|row| row.listed && !row.restricted);
        let sold = size.series.as_deref().and_then(|series| services.regions_of_series(series));
        open && sold.is_none_or(|row| !row.complete || row.regions.iter().any(|name| name == region))
    }

    /// Whether a size can be ordered on a day in some public region. `check --all-skus` and `plan` both use this, so that
    /// they consider the same sizes.
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
