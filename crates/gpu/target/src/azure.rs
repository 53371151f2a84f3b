//! Targets of Azure sizes: GPU, processor and the driver that the service installs.

use cudock_base::Arch;
use cudock_base::text::suggest;
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_facts::lookup::NameMatch;
use cudock_facts::tables::{Profile, Size, SizeDriver};
use cudock_facts::version::{Date, DriverVersion};

use super::card::gpu_named;
use super::{Target, TargetError};
use crate::codes;

impl Target {
    /// An Azure size, as `SIZE` or `SERVICE/SIZE`, with the driver of the service's image if that is known. Without a
    /// service, a virtual machine is assumed.
    pub fn of_size(
        facts: &Facts,
        name: &str,
        driver: Option<DriverVersion>,
        today: Date,
    ) -> Result<Self, TargetError> {
        let (service, name) = match name.split_once('/') {
            Some((service, size)) => (Some(service_named(facts, service)?), size),
            None => (None, name),
        };
        match facts.sizes().find(name) {
            NameMatch::One(size) => Self::of_size_row(facts, size, service, driver, today),
            NameMatch::Several(sizes) => {
                let names = sizes.iter().map(|size| &size.name);
                Err(TargetError::new(format!("`{name}` matches several sizes"), names))
            }
            NameMatch::NotFound(near) => Err(TargetError::new(format!("unknown Azure size `{name}`"), near)),
        }
    }

    /// Every size that can be ordered somewhere and has a known GPU: the same sizes that `plan` considers.
    pub fn all_sizes(facts: &Facts, driver: Option<DriverVersion>, today: Date) -> Vec<Self> {
        let on_sale = facts.sizes().size.iter().filter(|size| facts.is_orderable(size, today));
        on_sale.filter_map(|size| Self::of_size_row(facts, size, None, driver, today).ok()).collect()
    }

    /// A workload profile of Container Apps, with the driver its hosts have.
    pub fn of_profile(facts: &Facts, profile: &Profile) -> Result<Self, TargetError> {
        let row = gpu_named(facts, &profile.gpu)?;
        let brought = facts.services().driver.iter().find(|driver| driver.service == profile.service);
        let driver = brought.and_then(|driver| driver.release(facts));
        let mut target = Self::of_row(facts, row, driver);
        if let Some(driver) = driver {
            target.traits.driver_assumed =
                Some(format!("{driver} is of the branch that its hosts are documented to have"));
        }
        target.sku = Some(profile.name.clone());
        target.service = Some(profile.service.clone());
        target.traits.cpu = Some(Arch::X86_64);
        Ok(target)
    }

    fn of_size_row(
        facts: &Facts,
        size: &Size,
        service: Option<&str>,
        named_driver: Option<DriverVersion>,
        today: Date,
    ) -> Result<Self, TargetError> {
        let no_gpu = || TargetError::new(format!("{} has no GPU in the tables", size.name), [""; 0]);
        let row = gpu_named(facts, size.gpu.as_deref().ok_or_else(no_gpu)?)?;
        let on = service.unwrap_or(DEFAULT_SERVICE);
        let brought = installed_driver(facts, on, size);
        let driver = named_driver.or_else(|| brought.as_ref().map(|(driver, _)| *driver));
        let mut target = Self::of_row(facts, row, driver);
        if named_driver.is_none() && target.driver.is_some() {
            let reason = match (brought, target.traits.driver_assumed.take()) {
                (Some((driver, by)), _) => format!("{driver} is the driver of {by}"),
                (None, assumed) => {
                    let newest = assumed.unwrap_or_default();
                    format!("no source gives the driver of {}; {newest}", service_name(facts, on))
                }
            };
            let choice = match service {
                Some(_) => "",
                None => "; a virtual machine is assumed; use SERVICE/SIZE for another service",
            };
            target.traits.driver_assumed = Some(format!("{reason}{choice}"));
        }
        target.service = Some(on.to_owned());
        target.sku = Some(size.name.clone());
        target.traits.cpu = Some(size.cpu_arch);
        target.traits.gpu_count = size.gpu_count.filter(|count| *count >= 1.0).map(count_of);
        if !size.is_on_sale(today) {
            target.traits.notes.push(retired(size));
        }
        if matches!(size.driver, Some(SizeDriver::Grid | SizeDriver::GridV20)) {
            let message = format!("{} takes Azure's GRID driver", size.name);
            let fix = "install the GRID driver Azure distributes, of the version its driver guide names";
            let note = Finding::new(codes::VGPU_DRIVER, Severity::Note, message, fix);
            let evidence = FindingEvidence::new(&size.name, "driver kind in the tables");
            target.traits.notes.push(note.with_evidence([evidence]));
        }
        Ok(target)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 255")]
fn count_of(count: f64) -> u32 {
    count.min(255.0) as u32
}

const DEFAULT_SERVICE: &str = "vm";

/// The id of a service by its name in the tables; `ml-cluster` is a part of `ml`.
fn service_named<'f>(facts: &'f Facts, name: &str) -> Result<&'f str, TargetError> {
    let wanted = name.trim().to_ascii_lowercase();
    let services = || facts.services().service.iter().map(|service| service.id.as_str());
    let part_of =
        |id: &str| wanted.strip_prefix(id).is_some_and(|part| part.is_empty() || part.starts_with('-'));
    services().filter(|id| part_of(id)).max_by_key(|id| id.len()).ok_or_else(|| {
        let near = suggest::nearest(&wanted, services());
        TargetError::new(format!("unknown Azure service `{name}`"), near)
    })
}

fn service_name<'f>(facts: &'f Facts, id: &'f str) -> &'f str {
    let row = facts.services().service.iter().find(|service| service.id == id);
    row.map_or(id, |service| service.name.as_str())
}

/// The driver that a service's image has on a size, and its source.
fn installed_driver(facts: &Facts, service: &str, size: &Size) -> Option<(DriverVersion, String)> {
    let row = facts.services().driver_on(service, size)?;
    let image = row.image.as_deref().unwrap_or("the image it starts from");
    let day = row.as_of.map_or_else(String::new, |day| format!(" ({day})"));
    Some((row.release(facts)?, format!("{} with {image}{day}", service_name(facts, service))))
}

fn retired(size: &Size) -> Finding {
    let when = size.retired_on.or(size.retires_on);
    let when = when.map_or_else(|| "is not on sale".to_owned(), |day| format!("ended on {day}"));
    let instead = size.replacement.as_deref().map_or_else(
        || "choose a size on sale (`cudock facts size`)".to_owned(),
        |replacement| format!("use {replacement} (`cudock facts size`)"),
    );
    Finding::new(codes::SIZE_RETIRED, Severity::Warning, format!("{} {when}", size.name), instead)
        .with_evidence(size.source.iter().map(|source| FindingEvidence::new(&size.name, source)))
}
