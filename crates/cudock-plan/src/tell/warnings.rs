//! What to know before choosing a placement.

use cudock_facts::STALE_AFTER_DAYS;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_facts::tables::{SizeDriver, StartFigure};

use super::Told;
use crate::availability::{Proof, RegionStatus};
use crate::codes;
use crate::cost::data;
use crate::cost::places::Place;
use crate::money::Money;
use crate::placement::PartKind;
use crate::service::ServiceKind;
use crate::sift::usage_of;
use crate::words::{gb, span, usd};
use crate::workload::Priority;

impl Told<'_, '_, '_> {
    pub(super) fn warnings(&self) -> Vec<Finding> {
        [
            self.not_listed(),
            self.restricted(),
            self.own_driver(),
            self.ends(),
            self.grid(),
            self.quota_at_zero(),
            self.spot_saves_nothing(),
            self.evictions_outweigh(),
            self.spot_serves(),
            self.starved(),
            self.stale(),
            self.cold(),
            self.tied(),
            self.assumed(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn finding(
        &self,
        code: &'static str,
        severity: Severity,
        message: String,
        fix: &str,
        evidence: Vec<String>,
    ) -> Finding {
        let name = &self.case.machine.name;
        let evidence = evidence.into_iter().map(|detail| FindingEvidence::new(name, detail));
        Finding::new(code, severity, message, fix).with_evidence(evidence)
    }

    fn not_listed(&self) -> Option<Finding> {
        if self.ranked.proof != Proof::NotListed {
            return None;
        }
        let (kind, question) = (self.case.terms.kind, self.case.question);
        let region = question.catalog.region_name(self.ranked.offer.region);
        let message = format!("no source says that {} has this size in {region}", kind.name());
        let fix = match kind.table_id() {
            "ml" => format!("ask before relying on it: az ml compute list-sizes --location {region}"),
            "batch" => format!("ask before relying on it: az batch location list-skus --location {region}"),
            _ => format!("ask before relying on it: az vm list-skus --location {region}"),
        };
        let row = self.case.support();
        let note = row.map(|row| {
            let note = row.note.as_deref().unwrap_or("its pages do not name the series");
            format!("{note} (source of {})", row.as_of)
        });
        let evidence = note.into_iter().collect();
        Some(self.finding(codes::NOT_LISTED, Severity::Warning, message, &fix, evidence))
    }

    fn restricted(&self) -> Option<Finding> {
        let region = self.ranked.offer.region;
        let catalog = self.case.question.catalog;
        if catalog.status(region) != RegionStatus::Restricted {
            return None;
        }
        let name = catalog.region_name(region);
        let message = format!("{name} gives access on request only");
        let fix = "request access to the region, or leave it out";
        Some(self.finding(codes::RESTRICTED_REGION, Severity::Warning, message, fix, Vec::new()))
    }

    fn own_driver(&self) -> Option<Finding> {
        let row = self.case.support().filter(|row| row.own_driver)?;
        let name = self.case.terms.kind.name();
        let message = format!("{name} installs no driver on this size");
        let note = row.note.clone().into_iter().collect();
        let fix = "install the driver yourself, as with the NVIDIA GPU Operator";
        Some(self.finding(codes::OWN_DRIVER, Severity::Warning, message, fix, note))
    }

    fn tied(&self) -> Option<Finding> {
        if !self.ranked.tied {
            return None;
        }
        let assumed = usd(self.ranked.uncertainty);
        let message =
            "costs the same as others within what is assumed; evidence, management and time order them";
        let evidence = format!("{assumed} of its cost rest on assumptions (start, disk, fees)");
        let fix = "choose by what suits you, not by the cents";
        Some(self.finding(codes::WITHIN_UNCERTAINTY, Severity::Note, message.to_owned(), fix, vec![evidence]))
    }

    fn ends(&self) -> Option<Finding> {
        let day = self.case.machine.ends_on(self.ranked.offer.region)?;
        let message =
            format!("Azure ends this size on {day} in this region: no machine of it can be made then");
        let fix = match &self.case.machine.replacement {
            Some(other) => format!("plan the move to {other}"),
            None => "plan the move to another size".to_owned(),
        };
        Some(self.finding(codes::ENDS_TOO_SOON, Severity::Warning, message, &fix, Vec::new()))
    }

    fn grid(&self) -> Option<Finding> {
        let kind =
            self.case.machine.driver.filter(|kind| matches!(kind, SizeDriver::Grid | SizeDriver::GridV20))?;
        let name = if kind == SizeDriver::Grid { "GRID" } else { "GRID 20" };
        let message = format!("takes the {name} driver: the CUDA driver does not install on it");
        let own = self.case.terms.kind == ServiceKind::Vm;
        let (severity, fix) = if own {
            (Severity::Warning, "install Azure's GRID driver, from the line the size asks for")
        } else {
            (Severity::Note, "let the service install the driver")
        };
        Some(self.finding(codes::GRID_DRIVER, severity, message, fix, vec![format!("driver {name}")]))
    }

    fn quota_at_zero(&self) -> Option<Finding> {
        let kind = self.case.terms.kind;
        if matches!(kind, ServiceKind::ContainerApps | ServiceKind::ContainerAppsDedicated) {
            return None;
        }
        let quota = self.quota()?;
        let message = "the quota of GPU families starts at zero".to_owned();
        let fix = "ask for the quota named before ordering";
        let mut evidence = vec![quota];
        let default = self.case.terms.limits.instances_by_default;
        if let Some(most) = default.filter(|most| u64::from(self.usage.machines) > *most) {
            evidence.push(format!("{} has {most} instances by default; support raises that", kind.name()));
        }
        Some(self.finding(codes::QUOTA, Severity::Note, message, fix, evidence))
    }

    fn spot_saves_nothing(&self) -> Option<Finding> {
        let offer = &self.ranked.offer;
        if offer.priority != Priority::Spot {
            return None;
        }
        let regular = self.regular_offer()?.rate.hour();
        if offer.rate.hour() < regular {
            return None;
        }
        let message = "Spot costs as much as the regular price there, and can be taken away".to_owned();
        let evidence = format!("{} and {} an hour", usd(offer.rate.hour()), usd(regular));
        Some(self.finding(
            codes::SPOT_SAVES_NOTHING,
            Severity::Warning,
            message,
            "take the regular priority",
            vec![evidence],
        ))
    }

    /// What the regular priority costs there, where that is less.
    fn evictions_outweigh(&self) -> Option<Finding> {
        let spot = &self.ranked.offer;
        let regular = self.regular_offer().filter(|_| spot.priority == Priority::Spot)?;
        let (usage, parts) = usage_of(self.case, regular, self.ranked.way)?;
        if parts.total() > self.parts.total() || regular.rate <= spot.rate {
            return None;
        }
        let message = "evictions cost more than Spot saves".to_owned();
        let evidence = format!("{} and {} at the regular priority", usd(parts.total()), span(usage.total));
        let fix = "take the regular priority, or write checkpoints more often";
        Some(self.finding(codes::EVICTIONS, Severity::Warning, message, fix, vec![evidence]))
    }

    fn spot_serves(&self) -> Option<Finding> {
        if self.ranked.offer.priority != Priority::Spot || !self.case.question.serves() {
            return None;
        }
        let wait = span(self.usage.startup.total());
        let message =
            format!("each eviction takes an instance away for about {wait}, and its answers with it");
        let fix = "keep one regular instance beside Spot, or leave Spot";
        Some(self.finding(codes::EVICTIONS, Severity::Warning, message, fix, Vec::new()))
    }

    fn starved(&self) -> Option<Finding> {
        if !self.usage.pace.starves() {
            return None;
        }
        let (demand, supply) = (data::demand(self.case)?, data::supply(self.case)?);
        let store = self.case.question.store.map(|store| store.name).unwrap_or_default();
        let message =
            format!("the GPU waits for data: {store} gives {}/s here, the work could use more", gb(supply));
        let fix = "copy the data to the machine first, or take a storage or size that reads faster";
        let evidence = format!("{}/s used at the speed the times hold for", gb(demand));
        Some(self.finding(codes::DATA_BOUND, Severity::Warning, message, fix, vec![evidence]))
    }

    fn stale(&self) -> Option<Finding> {
        let age = self.case.workload().begins.days_since(self.ranked.offer.date);
        if age <= STALE_AFTER_DAYS {
            return None;
        }
        let message =
            format!("its price was read on {}, {age} days before the work begins", self.ranked.offer.date);
        Some(self.finding(
            codes::OLD_PRICE,
            Severity::Note,
            message,
            "run `cudock prices refresh`",
            Vec::new(),
        ))
    }

    fn cold(&self) -> Option<Finding> {
        let (start, total) = (self.parts.of(PartKind::ColdStart), self.parts.total());
        if start.times(2) <= total || total == Money::ZERO {
            return None;
        }
        let message = format!("{} of {} are spent on starting", usd(start), usd(total));
        let fix = "make the image smaller, keep weights near, or do more in one start";
        let evidence = format!("{} for each start", span(self.usage.startup.total()));
        Some(self.finding(codes::COLD_START, Severity::Warning, message, fix, vec![evidence]))
    }

    fn assumed(&self) -> Option<Finding> {
        let evidence = self.assumptions();
        if evidence.is_empty() {
            return None;
        }
        let message = "a part is assumed, or priced as in another region".to_owned();
        Some(self.finding(
            codes::PRICED_FROM_ELSEWHERE,
            Severity::Note,
            message,
            "measure what decides, and give it",
            evidence,
        ))
    }

    fn assumptions(&self) -> Vec<String> {
        let question = self.case.question;
        let nowhere = Place::default();
        let place = question.places.of(question, self.ranked.offer.region).unwrap_or(&nowhere);
        let terms = &self.case.terms;
        let mut told = Vec::new();
        if self.ranked.offer.assumed {
            told.push("its price is worked out from others".to_owned());
        }
        if place.fees(terms.kind).assumed {
            told.push("a fee of the service is worked out from other prices".to_owned());
        }
        if place.moving_assumed {
            told.push("what moving data costs is worked out from other prices".to_owned());
        }
        if let Some(start) = terms.start {
            let figures = [
                (StartFigure::Provision, "time to a machine", self.usage.startup.provision),
                (StartFigure::GpuDriver, "time of the driver's installation", self.usage.startup.driver),
                (StartFigure::Pull, "rate of the pull", self.usage.startup.pull),
                (StartFigure::Unpack, "rate of unpacking", self.usage.startup.unpack),
                (StartFigure::BilledFrom, "what of a start is billed", self.usage.startup.total()),
            ];
            let used = figures.into_iter().filter(|(figure, _, time)| *time > 0 && start.assumes(*figure));
            let named: Vec<&str> = used.map(|(_, name, _)| name).collect();
            if !named.is_empty() {
                told.push(format!("no source gives the {}", named.join(", ")));
            }
        }
        if terms.billing.is_some_and(|billing| billing.assumed) {
            told.push("how the service counts time is assumed".to_owned());
        }
        if terms.kind.bills_disk() && place.disk_elsewhere {
            told.push("the disk is priced as in westeurope".to_owned());
        }
        if terms.kind.bills_disk() && place.disk_month.is_none() {
            told.push("the disk has no known price and is not counted".to_owned());
        }
        if let Some(store) = question.store {
            if place.store.elsewhere {
                told.push("the data's storage is priced as in westeurope".to_owned());
            }
            if place.store.month.is_none() {
                told.push("keeping the data has no known price and is not counted".to_owned());
            }
            if store.rate_is_assumed() {
                told.push(format!("no source gives the rate of {}", store.name));
            }
        }
        let mut stores = [question.store, question.weights_store].into_iter().flatten().peekable();
        if stores.peek().is_some() && self.case.machine.network_assumed {
            told.push("its network is taken to be that of the size with the same GPU and memory".to_owned());
        }
        if stores.any(|store| store.supply(self.case.machine, 1).is_none()) {
            told.push("how fast it reads storage is not known; taken as the rate of the pull".to_owned());
        }
        told
    }
}
