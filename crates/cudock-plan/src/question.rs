//! A workload held against a catalogue: all that judging and pricing look at, looked up once.

use cudock_facts::Facts;
use cudock_facts::tables::{Billing, BoundKey, SizeDriver, StartTimes};

use crate::catalog::Catalog;
use crate::cost::places::Places;
use crate::cost::storage::Store;
use crate::machine::Machine;
use crate::offer::{RegionId, SizeId};
use crate::service::ServiceKind;
use crate::verdict::{Verdict, Verdicts};
use crate::workload::{Access, Work, Workload};

/// One question. Making it costs some dozens of look-ups by name; nothing behind it looks up names.
pub(crate) struct Question<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) facts: &'a Facts,
    pub(crate) workload: &'a Workload,
    pub(crate) verdicts: &'a Verdicts,
    /// Where the data lies; none if there is none, or no such storage.
    pub(crate) store: Option<Store<'a>>,
    /// Where weights are fetched from.
    pub(crate) weights_store: Option<Store<'a>>,
    /// What a region asks for beside the machines.
    pub(crate) places: Places<'a>,
    /// Thousandths of the load that are served: a load of thousandths a second is too coarse to be scaled itself.
    pub(crate) load_scale: u64,
    /// Published throughput of the GPU the times hold on.
    pub(crate) measured_gflops: Option<u64>,
    terms: Vec<Terms<'a>>,
    allowed: Vec<bool>,
}

/// How a service counts, starts and limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) kind: ServiceKind,
    pub(crate) billing: Option<&'a Billing>,
    pub(crate) start: Option<&'a StartTimes>,
    pub(crate) row: Option<&'a cudock_facts::tables::Service>,
    pub(crate) limits: Limits,
    /// The kinds of driver the service is known to bring: CUDA, GRID, GRID 20.
    drivers: [bool; 3],
}

/// Limits that hold whatever support says, and what is kept back.
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

impl<'a> Question<'a> {
    pub(crate) fn new(
        catalog: &'a Catalog,
        facts: &'a Facts,
        workload: &'a Workload,
        verdicts: &'a Verdicts,
    ) -> Self {
        let store = workload.data.as_ref().and_then(|data| Store::find(facts, &data.storage, data.bytes));
        let weights = (workload.start.weights > 0).then(|| match &store {
            Some(store) => Some(*store),
            None => Store::find(facts, "blob-hot", workload.start.weights),
        });
        let measured = workload.gpu.measured_on.as_deref();
        let row = facts.gpus().gpu.iter().find(|row| Some(row.id.as_str()) == measured);
        let wanted = &workload.wishes.regions;
        let allowed = catalog
            .regions()
            .map(|region| wanted.is_empty() || wanted.iter().any(|name| name == catalog.region_name(region)));
        Self {
            catalog,
            facts,
            workload,
            verdicts,
            places: Places::new(catalog, facts, workload),
            store,
            weights_store: weights.flatten(),
            load_scale: 1000,
            measured_gflops: row.and_then(|row| row.fp16_tflops).map(crate::machine::gflops),
            terms: ServiceKind::ALL.map(|kind| Terms::of(facts, kind)).to_vec(),
            allowed: allowed.collect(),
        }
    }

    pub(crate) fn terms(&self, kind: ServiceKind) -> Terms<'a> {
        let known = self.terms.get(usize::from(kind.place())).copied();
        known.unwrap_or_else(|| Terms::of(self.facts, kind))
    }

    pub(crate) fn allows(&self, region: RegionId) -> bool {
        self.allowed.get(region.index()).copied().unwrap_or(false)
    }

    pub(crate) fn serves(&self) -> bool {
        matches!(self.workload.work, Work::Serve { .. })
    }

    /// The ways the data may be read; without data one, which reads nothing.
    pub(crate) fn ways(&self) -> &'static [Way] {
        match self.workload.data.as_ref().map(|data| data.access) {
            None | Some(Access::Stream { .. }) => &[Way::Stream],
            Some(Access::Stage) => &[Way::Stage],
            Some(Access::Either { .. }) => &[Way::Stream, Way::Stage],
        }
    }

    /// How often the data is read from where it lies.
    pub(crate) fn passes(&self) -> u64 {
        match self.workload.data.as_ref().map(|data| data.access) {
            Some(Access::Stream { passes } | Access::Either { passes }) => u64::from(passes),
            _ => 1,
        }
    }
}

/// How data gets to the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Read from where it lies.
    Stream,
    /// Copied to the machine first.
    Stage,
}

impl<'a> Terms<'a> {
    fn of(facts: &'a Facts, kind: ServiceKind) -> Self {
        let meters = facts.meters();
        let row = facts.services().service.iter().find(|row| row.id == kind.table_id());
        let has = |wanted: SizeDriver| {
            let mut rows = facts.services().driver.iter();
            rows.any(|row| row.service == kind.table_id() && row.kind == wanted)
        };
        // What support raises on request is no reason against a service.
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
            drivers: [has(SizeDriver::Cuda), has(SizeDriver::Grid), has(SizeDriver::GridV20)],
        }
    }

    /// Whether the service brings a kind of driver; a service whose drivers nobody tells is trusted with all.
    pub(crate) fn brings(&self, driver: SizeDriver) -> bool {
        let place = match driver {
            SizeDriver::Cuda => 0,
            SizeDriver::Grid => 1,
            SizeDriver::GridV20 => 2,
            _ => return false,
        };
        self.drivers == [false; 3] || self.drivers.get(place).copied().unwrap_or(false)
    }

    /// The lifetime of a job, in milliseconds.
    pub(crate) fn lifetime(&self, spot: bool) -> Option<u128> {
        let seconds =
            if spot { self.limits.lifetime_spot.or(self.limits.lifetime) } else { self.limits.lifetime };
        seconds.map(|seconds| u128::from(seconds) * 1000)
    }
}

/// A size on a service, as the question sees it.
pub(crate) struct Case<'q, 'a> {
    pub(crate) question: &'q Question<'a>,
    pub(crate) terms: Terms<'a>,
    pub(crate) size: SizeId,
    pub(crate) machine: &'a Machine,
}

impl<'q, 'a> Case<'q, 'a> {
    pub(crate) fn new(question: &'q Question<'a>, service: ServiceKind, size: SizeId) -> Option<Self> {
        let machine = question.catalog.machine(size)?;
        Some(Self { question, terms: question.terms(service), size, machine })
    }

    pub(crate) fn workload(&self) -> &'a Workload {
        self.question.workload
    }

    pub(crate) fn verdict(&self) -> Option<&'a Verdict> {
        self.question.verdicts.of(&self.machine.name)
    }
}
