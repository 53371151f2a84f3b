//! Findings about a placement.

use cudock_base::Usd;
use cudock_base::text::format::bytes;
use cudock_facts::STALE_AFTER_DAYS;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_facts::tables::{SizeDriver, StartFigure};

use super::{PlacementView, time};
use crate::catalog::availability::{Proof, RegionStatus};
use crate::codes;
use crate::cost::data;
use crate::cost::region::RegionCosts;
use crate::cost::storage::DataStore;
use crate::plan::evaluate::usage_of;
use crate::plan::placement::PartKind;
use crate::report::format::dollars;
use crate::workload::Priority;
use cudock_facts::services::AzureOffering;

impl PlacementView<'_, '_, '_> {
    pub(super) fn warnings(&self) -> Vec<Finding> {
        [
            self.not_listed(),
            self.restricted(),
            self.own_driver(),
            self.retires_soon(),
            self.grid_driver(),
            self.quota_at_zero(),
            self.spot_saves_nothing(),
            self.evictions_outweigh(),
            self.spot_serves(),
            self.data_bound(),
            self.old_price(),
            self.cold_start(),
            self.tied(),
            self.assumed(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn finding(
        &self,
        (code, severity): (&'static str, Severity),
        message: impl Into<String>,
        fix: impl Into<String>,
        evidence: impl IntoIterator<Item = String>,
    ) -> Finding {
        let name = &self.case.machine.name;
        let evidence = evidence.into_iter().map(|detail| FindingEvidence::new(name, detail));
        Finding::new(code, severity, message, fix).with_evidence(evidence)
    }

    fn not_listed(&self) -> Option<Finding> {
        if self.ranked.proof != Proof::NotListed {
            return None;
        }
        let (kind, context) = (self.case.terms.kind, self.case.context);
        let region = context.catalog.region_name(self.ranked.offer.region);
        let message = format!("no source lists this size for {} in {region}", kind.name());
        let list = match kind.service().id() {
            "ml" => "az ml compute list-sizes",
            "batch" => "az batch location list-skus",
            _ => "az vm list-skus",
        };
        let fix = format!("verify before relying on it: {list} --location {region}");
        let row = self.case.support();
        let note = row.map(|row| {
            let note = row.note.as_deref().unwrap_or("its documentation does not name the series");
            format!("{note} (source of {})", row.as_of)
        });
        Some(self.finding((codes::NOT_LISTED, Severity::Warning), message, fix, note))
    }

    fn restricted(&self) -> Option<Finding> {
        let region = self.ranked.offer.region;
        let catalog = self.case.context.catalog;
        if catalog.status(region) != RegionStatus::Restricted {
            return None;
        }
        let name = catalog.region_name(region);
        let message = format!("{name} requires an access request");
        let fix = "request access to the region, or exclude it";
        Some(self.finding((codes::RESTRICTED_REGION, Severity::Warning), message, fix, []))
    }

    fn own_driver(&self) -> Option<Finding> {
        let row = self.case.support().filter(|row| row.own_driver)?;
        let name = self.case.terms.kind.name();
        let message = format!("{name} does not install a driver on this size");
        let note = row.note.clone();
        let fix = "install the driver yourself, for example with the NVIDIA GPU Operator";
        Some(self.finding((codes::OWN_DRIVER, Severity::Warning), message, fix, note))
    }

    fn tied(&self) -> Option<Finding> {
        if !self.ranked.tied {
            return None;
        }
        let assumed = dollars(self.ranked.uncertainty);
        let message =
            "costs the same as others within the uncertainty; ordered by time, evidence and management";
        let evidence = format!("{assumed} of the cost rests on assumptions (start, disk, fees)");
        let fix = "choose by other criteria than cost";
        Some(self.finding((codes::WITHIN_UNCERTAINTY, Severity::Note), message, fix, [evidence]))
    }

    fn retires_soon(&self) -> Option<Finding> {
        let day = self.case.machine.ends_on(self.ranked.offer.region)?;
        let message =
            format!("Azure retires this size on {day} in this region: no machine can be created after that");
        let fix = match &self.case.machine.replacement {
            Some(other) => format!("plan to move to {other}"),
            None => "plan to move to another size".to_owned(),
        };
        Some(self.finding((codes::ENDS_TOO_SOON, Severity::Warning), message, fix, []))
    }

    fn grid_driver(&self) -> Option<Finding> {
        let kind =
            self.case.machine.driver.filter(|kind| matches!(kind, SizeDriver::Grid | SizeDriver::GridV20))?;
        let name = if kind == SizeDriver::Grid { "GRID" } else { "GRID 20" };
        let message = format!("requires the {name} driver: the CUDA driver does not install on it");
        let own = self.case.terms.kind == AzureOffering::Vm;
        let (severity, fix) = if own {
            (Severity::Warning, "install Azure's GRID driver of the branch that the size requires")
        } else {
            (Severity::Note, "let the service install the driver")
        };
        Some(self.finding((codes::GRID_DRIVER, severity), message, fix, [format!("driver {name}")]))
    }

    fn quota_at_zero(&self) -> Option<Finding> {
        let kind = self.case.terms.kind;
        if matches!(kind, AzureOffering::ContainerApps | AzureOffering::ContainerAppsDedicated) {
            return None;
        }
        let quota = self.quota()?;
        let message = "the default quota of GPU families is zero";
        let fix = "request the quota before ordering";
        let mut evidence = vec![quota];
        let default = self.case.terms.limits.instances_by_default;
        if let Some(most) = default.filter(|most| u64::from(self.usage.machines) > *most) {
            let name = kind.name();
            evidence.push(format!("{name} allows {most} instances by default; support can raise the limit"));
        }
        Some(self.finding((codes::QUOTA, Severity::Note), message, fix, evidence))
    }

    fn spot_saves_nothing(&self) -> Option<Finding> {
        let offer = &self.ranked.offer;
        if offer.priority != Priority::Spot {
            return None;
        }
        let regular = self.regular_offer()?.rate;
        if offer.rate < regular {
            return None;
        }
        let message = "Spot is not cheaper than the regular price there, and can be evicted";
        let evidence = format!("{} and {} per hour", dollars(offer.rate), dollars(regular));
        let fix = "use the regular priority";
        Some(self.finding((codes::SPOT_SAVES_NOTHING, Severity::Warning), message, fix, [evidence]))
    }

    /// The regular priority, if evictions make Spot more expensive.
    fn evictions_outweigh(&self) -> Option<Finding> {
        let spot = &self.ranked.offer;
        let regular = self.regular_offer().filter(|_| spot.priority == Priority::Spot)?;
        let (usage, parts) = usage_of(self.case, regular, self.ranked.mode)?;
        if parts.total() > self.parts.total() || regular.rate <= spot.rate {
            return None;
        }
        let message = "evictions cost more than Spot saves";
        let evidence =
            format!("{} and {} at the regular priority", dollars(parts.total()), time(usage.total));
        let fix = "use the regular priority, or write checkpoints more often";
        Some(self.finding((codes::EVICTIONS, Severity::Warning), message, fix, [evidence]))
    }

    fn spot_serves(&self) -> Option<Finding> {
        if self.ranked.offer.priority != Priority::Spot || !self.case.context.serves() {
            return None;
        }
        let wait = time(self.usage.startup.total());
        let message = format!("each eviction takes an instance down for about {wait}, with its requests");
        let fix = "add a regular instance, or do not use Spot";
        Some(self.finding((codes::EVICTIONS, Severity::Warning), message, fix, []))
    }

    fn data_bound(&self) -> Option<Finding> {
        if !self.usage.pace.is_data_bound {
            return None;
        }
        let (demand, supply) = (data::demand(self.case)?, data::supply(self.case)?);
        let store = self.case.context.store.map_or("", |store| store.row.name.as_str());
        let supply = bytes(supply);
        let message =
            format!("the GPU waits for data: {store} delivers {supply}/s here, less than the work reads");
        let fix = "copy the data to the local disk first, or use a faster storage or size";
        let evidence = format!("{}/s read at full speed", bytes(demand));
        Some(self.finding((codes::DATA_BOUND, Severity::Warning), message, fix, [evidence]))
    }

    fn old_price(&self) -> Option<Finding> {
        let age = self.case.workload().begins.days_since(self.ranked.offer.date);
        if age <= STALE_AFTER_DAYS {
            return None;
        }
        let message =
            format!("the price was read on {}, {age} days before the work begins", self.ranked.offer.date);
        Some(self.finding((codes::OLD_PRICE, Severity::Note), message, "run `cudock prices refresh`", []))
    }

    fn cold_start(&self) -> Option<Finding> {
        let (start, total) = (self.parts.of(PartKind::ColdStart), self.parts.total());
        if start.times(2) <= total || total == Usd::ZERO {
            return None;
        }
        let message = format!("{} of {} is spent on starting", dollars(start), dollars(total));
        let fix = "use a smaller image, store weights in the same region, or do more work per start";
        let evidence = format!("{} per start", time(self.usage.startup.total()));
        Some(self.finding((codes::COLD_START, Severity::Warning), message, fix, [evidence]))
    }

    fn assumed(&self) -> Option<Finding> {
        let evidence = self.assumptions();
        if evidence.is_empty() {
            return None;
        }
        let message = "a part of the cost is assumed, or has the price of another region";
        let fix = "measure the values that matter, and give them";
        Some(self.finding((codes::PRICED_FROM_ELSEWHERE, Severity::Note), message, fix, evidence))
    }

    fn assumptions(&self) -> Vec<String> {
        let context = self.case.context;
        let unknown = RegionCosts::default();
        let costs = context.region_costs.of(context, self.ranked.offer.region).unwrap_or(&unknown);
        let terms = &self.case.terms;
        let start = terms.start.and_then(|start| {
            let figures = [
                (StartFigure::Provision, "provisioning time", self.usage.startup.provision),
                (StartFigure::GpuDriver, "driver installation time", self.usage.startup.driver),
                (StartFigure::Pull, "pull rate", self.usage.startup.pull),
                (StartFigure::Unpack, "unpack rate", self.usage.startup.unpack),
                (StartFigure::BilledFrom, "billed part of a start", self.usage.startup.total()),
            ];
            let used = figures.into_iter().filter(|(figure, _, time)| *time > 0 && start.assumes(*figure));
            let named: Vec<&str> = used.map(|(_, name, _)| name).collect();
            (!named.is_empty()).then(|| format!("no source for the {}", named.join(", ")))
        });
        let disk = terms.kind.bills_disk();
        let store = context.store.filter(DataStore::rate_is_assumed);
        let stores = || [context.store, context.weights_store].into_iter().flatten();
        let network_assumed = stores().next().is_some() && self.case.machine.network_assumed;
        let unknown_rate = stores().any(|store| store.supply(self.case.machine, 1).is_none());
        let billing_assumed = terms.billing.is_some_and(|billing| billing.assumed);
        let has_store = context.store.is_some();
        let detail = |holds: bool, text: &str| holds.then(|| text.to_owned());
        [
            detail(self.ranked.offer.assumed, "the price is derived from others"),
            detail(costs.fees(terms.kind).assumed, "a fee of the service is derived from other prices"),
            detail(costs.moving_assumed, "the price of moving data is derived from other prices"),
            start,
            detail(billing_assumed, "the billing granularity of the service is assumed"),
            detail(disk && costs.disk_elsewhere, "the disk has the price of westeurope"),
            detail(disk && costs.disk_month.is_none(), "the disk has no known price and is not included"),
            detail(has_store && costs.store.elsewhere, "the storage of the data has the price of westeurope"),
            detail(
                has_store && costs.store.month.is_none(),
                "storing the data has no known price and is not included",
            ),
            store.map(|store| format!("no source for the throughput of {}", store.row.name)),
            detail(network_assumed, "the network rate is that of the size with the same GPU and memory"),
            detail(unknown_rate, "the rate of reading storage is unknown and assumed to be the pull rate"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
