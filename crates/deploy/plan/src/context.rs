//! Everything that evaluating and pricing offers needs to know about a workload, looked up once.

use cudock_facts::Facts;
use cudock_facts::tables::{Billing, BoundKey, DataAccess, SizeDriver, StartTimes, Support};
use cudock_facts::version::Date;

use crate::catalog::Catalog;
use crate::catalog::availability::{Proof, RegionStatus};
use crate::catalog::machine::MachineType;
use crate::catalog::offer::{RegionId, SizeId};
use crate::cost::region::RegionCostCache;
use crate::cost::storage::DataStore;
use crate::verdict::{SizeVerdict, Verdicts};
use crate::workload::{Work, Workload};
use cudock_facts::services::AzureOffering;

/// A workload with the tables it is planned against. Building it takes dozens of look-ups by name; using it takes none.
pub(crate) struct PlanContext<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) facts: &'a Facts,
    pub(crate) workload: &'a Workload,
    pub(crate) verdicts: &'a Verdicts,
    /// The storage of the data; none without data, or if the storage is unknown.
    pub(crate) store: Option<DataStore<'a>>,
    pub(crate) weights_store: Option<DataStore<'a>>,
    pub(crate) region_costs: RegionCostCache<'a>,
    /// Published throughput of the GPU that was measured.
    pub(crate) measured_gflops: Option<u64>,
    terms: Vec<Terms<'a>>,
    allowed: Vec<bool>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) kind: AzureOffering,
    pub(crate) billing: Option<&'a Billing>,
    pub(crate) start: Option<&'a StartTimes>,
    pub(crate) row: Option<&'a cudock_facts::tables::Service>,
    pub(crate) limits: Limits,
    /// Whether the service provides each of [`DRIVERS`].
    drivers: [bool; 3],
}

const DRIVERS: [SizeDriver; 3] = [SizeDriver::Cuda, SizeDriver::Grid, SizeDriver::GridV20];

/// Limits that cannot be raised, and quota that is reserved.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) lifetime: Option<u64>,
    pub(crate) lifetime_spot: Option<u64>,
    pub(crate) image: Option<u64>,
    pub(crate) instances: Option<u64>,
    pub(crate) instances_by_default: Option<u64>,
    pub(crate) together: Option<u64>,
    pub(crate) gpus: Option<u64>,
    pub(crate) trials: Option<u64>,
    pub(crate) trials_at_once: Option<u64>,
    pub(crate) requests: Option<u64>,
    pub(crate) least_instances: u64,
    pub(crate) reserve_percent: u64,
}

impl<'a> PlanContext<'a> {
    pub(crate) fn new(
        catalog: &'a Catalog,
        facts: &'a Facts,
        workload: &'a Workload,
        verdicts: &'a Verdicts,
    ) -> Self {
        let store = workload.data.as_ref().and_then(|data| DataStore::find(facts, &data.storage, data.bytes));
        let weights = (workload.start.weights > 0).then(|| match &store {
            Some(store) => Some(*store),
            None => DataStore::find(facts, "blob-hot", workload.start.weights),
        });
        let measured = workload.gpu.measured_on.as_deref();
        let row = facts.gpus().gpu.iter().find(|row| Some(row.id.as_str()) == measured);
        let wanted = &workload.constraints.regions;
        let allowed = catalog
            .regions()
            .map(|region| wanted.is_empty() || wanted.iter().any(|name| name == catalog.region_name(region)));
        Self {
            catalog,
            facts,
            workload,
            verdicts,
            region_costs: RegionCostCache::new(catalog, facts, workload),
            store,
            weights_store: weights.flatten(),
            measured_gflops: row.and_then(|row| row.fp16_tflops).map(crate::catalog::machine::gflops),
            terms: AzureOffering::ALL.map(|kind| Terms::of(facts, kind)).to_vec(),
            allowed: allowed.collect(),
        }
    }

    pub(crate) fn terms(&self, kind: AzureOffering) -> Terms<'a> {
        let known = self.terms.get(usize::from(kind.index())).copied();
        known.unwrap_or_else(|| Terms::of(self.facts, kind))
    }

    pub(crate) fn allows(&self, region: RegionId) -> bool {
        self.allowed.get(region.index()).copied().unwrap_or(false)
    }

    pub(crate) fn serves(&self) -> bool {
        matches!(self.workload.work, Work::Serve { .. })
    }

    /// How the data may be read; one mode, which reads nothing, without data.
    pub(crate) fn read_modes(&self) -> &'static [ReadMode] {
        match self.workload.data.as_ref().map(|data| data.access) {
            None | Some(DataAccess::Stream) => &[ReadMode::Stream],
            Some(DataAccess::Stage) => &[ReadMode::Stage],
            Some(DataAccess::Either) => &[ReadMode::Stream, ReadMode::Stage],
        }
    }

    /// How often the data is read from its storage.
    pub(crate) fn passes(&self) -> u64 {
        match &self.workload.data {
            Some(data) if data.access != DataAccess::Stage => u64::from(data.passes),
            _ => 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Read from its storage.
    Stream,
    /// Copied to the local disk first.
    Stage,
}

impl<'a> Terms<'a> {
    fn of(facts: &'a Facts, kind: AzureOffering) -> Self {
        let meters = facts.meters();
        let row = facts.services().service.iter().find(|row| row.id == kind.service().id());
        let has = |wanted: SizeDriver| {
            let mut rows = facts.services().driver.iter();
            rows.any(|row| row.service == kind.service().id() && row.kind == wanted)
        };
        // A limit that support raises on request does not reject a service.
        let firm =
            |key| meters.bound(kind.id(), key).filter(|bound| !bound.can_be_raised).map(|bound| bound.value);
        let figure = |key| meters.bound(kind.id(), key).map(|bound| bound.value);
        Self {
            kind,
            billing: meters.billing_of(kind.id()),
            start: meters.start_of(kind.id()),
            row,
            limits: Limits {
                lifetime: firm(BoundKey::JobLifetime),
                lifetime_spot: firm(BoundKey::JobLifetimeSpot),
                image: firm(BoundKey::ImageSize),
                instances: firm(BoundKey::Instances).or_else(|| figure(BoundKey::InstancesMost)),
                instances_by_default: figure(BoundKey::Instances),
                together: firm(BoundKey::InstancesTogether),
                gpus: firm(BoundKey::GpusPerInstance),
                trials: firm(BoundKey::Trials),
                trials_at_once: firm(BoundKey::TrialsAtOnce),
                requests: firm(BoundKey::RequestsPerSecond),
                least_instances: figure(BoundKey::LeastInstances).unwrap_or(0),
                reserve_percent: figure(BoundKey::QuotaReserve).unwrap_or(0),
            },
            drivers: DRIVERS.map(has),
        }
    }

    /// Whether the service provides a driver; a service without any documented driver is assumed to provide all.
    pub(crate) fn provides(&self, driver: SizeDriver) -> bool {
        let mut provided = DRIVERS.into_iter().zip(self.drivers);
        let all = self.drivers == [false; 3];
        provided.any(|(known, provided)| known == driver && (provided || all))
    }

    /// The longest a job may run, in milliseconds.
    pub(crate) fn lifetime(&self, spot: bool) -> Option<u128> {
        let seconds =
            if spot { self.limits.lifetime_spot.or(self.limits.lifetime) } else { self.limits.lifetime };
        seconds.map(|seconds| u128::from(seconds) * 1000)
    }
}

/// A machine type on a service, which the rules and costs of a plan are about.
pub(crate) struct Case<'q, 'a> {
    pub(crate) context: &'q PlanContext<'a>,
    pub(crate) terms: Terms<'a>,
    pub(crate) size: SizeId,
    pub(crate) machine: &'a MachineType,
}

impl<'q, 'a> Case<'q, 'a> {
    pub(crate) fn new(context: &'q PlanContext<'a>, service: AzureOffering, size: SizeId) -> Option<Self> {
        let machine = context.catalog.machine(size)?;
        Some(Self { context, terms: context.terms(service), size, machine })
    }

    pub(crate) fn workload(&self) -> &'a Workload {
        self.context.workload
    }

    /// The last day the size is available in a region that the workload may use: one that it names, or else a public one.
    pub(crate) fn last_day(&self) -> Option<Date> {
        let (context, named) = (self.context, !self.workload().constraints.regions.is_empty());
        let is_usable = |region: RegionId| {
            if named {
                context.allows(region)
            } else {
                context.catalog.status(region) != RegionStatus::NotPublic
            }
        };
        let there = self.machine.ends_in.iter().filter(|(region, _)| is_usable(*region));
        there.map(|(_, day)| *day).chain(self.machine.ends).max()
    }

    pub(crate) fn verdict(&self) -> Option<&'a SizeVerdict> {
        self.context.verdicts.of(&self.machine.name)
    }

    /// How the service supports the size; none if it does not.
    pub(crate) fn series_support(&self) -> Option<Proof> {
        // A workload profile exists on its service only.
        if self.machine.profile.is_some() {
            return Some(Proof::Documented);
        }
        let known = self.machine.series_support.get(usize::from(self.terms.kind.index()));
        known.copied().unwrap_or(Some(Proof::NotListed))
    }

    /// The row of the table about the series on the service.
    pub(crate) fn support(&self) -> Option<&'a Support> {
        let series = self.machine.series.as_deref()?;
        self.context.facts.services().support_of(self.terms.kind.id(), series)
    }
}
