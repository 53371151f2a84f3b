//! An Azure size: its card, its processor, and the driver its service installs.

use cudock_facts::Facts;
use cudock_facts::finding::{Evidence as Seen, Finding, Severity};
use cudock_facts::lookup::Found;
use cudock_facts::tables::{Size, SizeDriver};
use cudock_facts::version::{Date, DriverVersion};

use super::card::gpu_named;
use super::{Target, TargetError, image_architecture};
use crate::codes;

impl Target {
    /// An Azure size: its card, its processor and the driver its service installs, as far as that is known.
    pub fn of_size(
        facts: &Facts,
        name: &str,
        driver: Option<DriverVersion>,
        today: Date,
    ) -> Result<Self, TargetError> {
        match facts.sizes().find(name) {
            Found::One(size) => Self::of_size_row(facts, size, driver, today),
            Found::Several(sizes) => Err(TargetError {
                message: format!("`{name}` stands for several sizes"),
                near: sizes.iter().map(|size| size.name.clone()).collect(),
            }),
            Found::Nothing(near) => Err(TargetError {
                message: format!("no Azure size is called `{name}`"),
                near: near.into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    /// Every size on sale that has a card of the tables.
    pub fn all_sizes(facts: &Facts, driver: Option<DriverVersion>, today: Date) -> Vec<Self> {
        let on_sale = facts.sizes().size.iter().filter(|size| size.is_on_sale(today));
        on_sale.filter_map(|size| Self::of_size_row(facts, size, driver, today).ok()).collect()
    }

    fn of_size_row(
        facts: &Facts,
        size: &Size,
        given: Option<DriverVersion>,
        today: Date,
    ) -> Result<Self, TargetError> {
        let no_gpu =
            || TargetError { message: format!("{} has no GPU in the tables", size.name), near: Vec::new() };
        let row = gpu_named(facts, size.gpu.as_deref().ok_or_else(no_gpu)?)?;
        let installed = installed_driver(facts, size);
        let driver = given.or_else(|| installed.as_ref().map(|(driver, _)| *driver));
        let mut target = Self::of_row(facts, row, driver);
        if given.is_none()
            && let Some((driver, why)) = installed
        {
            target.traits.driver_assumed =
                Some(format!("{driver} is what Azure documents for this series: {why}"));
        }
        target.sku = Some(size.name.clone());
        target.traits.cpu = Some(image_architecture(&size.cpu_arch).to_owned());
        target.traits.gpu_count = size
            .gpu_count
            .filter(|count| *count >= 1.0)
            .map(|count| if count >= 255.0 { 255 } else { count_of(count) });
        if !size.is_on_sale(today) {
            target.traits.notes.push(retired(size));
        }
        if matches!(size.driver, Some(SizeDriver::Grid | SizeDriver::GridV20)) {
            target.traits.notes.push(Finding {
                code: codes::VGPU_DRIVER,
                severity: Severity::Note,
                message: format!("{} takes Azure's GRID driver", size.name),
                evidence: vec![Seen::new(&size.name, "driver kind in the tables")],
                fix: "install the GRID driver Azure distributes, of the version its driver guide names"
                    .to_owned(),
            });
        }
        Ok(target)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 255")]
fn count_of(count: f64) -> u32 {
    count as u32
}

/// What Azure documents for a series, the newest first.
fn installed_driver(facts: &Facts, size: &Size) -> Option<(DriverVersion, String)> {
    let series = size.series.as_deref()?;
    let rows = facts.services().driver.iter().filter(|row| row.service == "vm" && row.applies_to == series);
    let rows = rows.filter(|row| size.driver.is_none_or(|kind| kind == row.kind));
    let newest = rows
        .filter_map(|row| Some((row.version?, row)))
        .max_by_key(|(version, row)| (row.as_of, *version))?;
    Some((
        newest.0,
        newest.1.note.clone().unwrap_or_else(|| "the driver of the virtual machine extension".to_owned()),
    ))
}

fn retired(size: &Size) -> Finding {
    let when = size.retired_on.or(size.retires_on);
    let when = when.map_or_else(|| "is not on sale".to_owned(), |day| format!("ended on {day}"));
    let instead = size.replacement.as_deref().map_or_else(
        || "choose a size on sale (`cudock facts size`)".to_owned(),
        |replacement| format!("use {replacement} (`cudock facts size`)"),
    );
    Finding {
        code: codes::SIZE_RETIRED,
        severity: Severity::Warning,
        message: format!("{} {when}", size.name),
        evidence: size.source.iter().map(|source| Seen::new(&size.name, source)).collect(),
        fix: instead,
    }
}
