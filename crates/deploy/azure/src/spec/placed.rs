//! The placement of a workload, as the plan or the user chose it.

use cudock_base::Usd;
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use cudock_plan::{Placement, Priority};

use crate::services::TranslationError;

/// A place for a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecPlacement {
    pub service: AzureService,
    pub region: String,
    /// The size or workload profile.
    pub size: Option<String>,
    pub gpus: u32,
    pub instances: u32,
    pub is_spot: bool,
    /// Price per hour of all instances.
    pub price_per_hour: Usd,
}

impl TryFrom<&Placement> for SpecPlacement {
    type Error = TranslationError;

    fn try_from(placement: &Placement) -> Result<Self, TranslationError> {
        let service = placement.service.service();
        if !service.is_deployable() {
            let message = format!("cudock does not deploy to {}", service.title());
            return Err(TranslationError::new(message).hint("choose another service with --on"));
        }
        Ok(Self {
            service,
            region: placement.region.clone(),
            size: Some(placement.size.clone()).filter(|_| placement.service.has_gpus()),
            gpus: placement.gpus_per_instance.div_ceil(1000),
            instances: placement.instances,
            is_spot: placement.priority == Priority::Spot,
            price_per_hour: placement.price_per_hour.times(u64::from(placement.instances)),
        })
    }
}

/// The GPU of a size or workload profile, if the tables have it.
pub(super) fn gpu<'f>(facts: &'f Facts, size: &str) -> Option<&'f str> {
    let profile = facts.services().profile.iter().find(|profile| profile.name.eq_ignore_ascii_case(size));
    match profile {
        Some(profile) => Some(profile.gpu.as_str()),
        None => facts.sizes().find(size).one()?.gpu.as_deref(),
    }
}

/// Processors and GiB of memory of a size or workload profile, if the tables have it.
pub(super) fn capacity(facts: &Facts, size: &str) -> Option<(f64, f64)> {
    let profile = facts.services().profile.iter().find(|profile| profile.name.eq_ignore_ascii_case(size));
    if let Some(profile) = profile {
        return Some((f64::from(profile.vcpu), f64::from(profile.memory_gib)));
    }
    let row = facts.sizes().find(size).one()?;
    Some((f64::from(row.vcpu?), row.ram_gib?))
}
