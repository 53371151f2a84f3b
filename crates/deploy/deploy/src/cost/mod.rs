//! The past, present and future cost of deployments.

pub(crate) mod billing;

use cudock_facts::services::AzureOffering;
use std::collections::BTreeMap;
use std::time::Duration;

use cudock_azure::{DeploymentState, WorkShape};
use cudock_base::{Date, Timestamp, Usd};
use cudock_facts::Facts;
use cudock_plan::{Catalog, Constraints, GpuNeeds, MachineNeeds, Start, Verdicts, Work, Workload, plan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cloud::CloudApi;
use crate::cost::billing::whole_seconds;
use crate::create::run::Deployer;
use crate::error::DeployError;
use crate::journal::{DeploymentRecord, Journal};
use crate::names::phase_name;
use crate::observe::{DeploymentName, refresh};

/// The report of `cudock cost`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CostReport {
    /// Cost per hour of everything that is billed now.
    pub per_hour: Usd,
    /// Cost so far of everything that exists now.
    pub so_far: Usd,
    /// Cost of everything that exists now if each is deleted at the end of its time to live.
    pub until_expiry: Usd,
    /// The month that `workloads` is about, as `2026-11`.
    pub month: String,
    /// Workloads by name, the most expensive first.
    pub workloads: Vec<WorkloadCost>,
    /// Cost of all workloads of this month.
    pub this_month: Usd,
    pub deployments: Vec<DeploymentCost>,
}

/// All deployments with the same name in a month.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkloadCost {
    pub name: String,
    pub deployments: u32,
    pub billed_seconds: u64,
    pub cost: Usd,
    /// Whether both are what was billed. If not, they are the most that it can have been.
    pub exact: bool,
    /// Seconds of work that evictions have cost.
    pub lost_seconds: u64,
}

/// One deployment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeploymentCost {
    #[serde(flatten)]
    pub deployment: DeploymentName,
    pub price_per_hour: Usd,
    pub billed_from: Option<String>,
    /// None while it is billed.
    pub billed_until: Option<String>,
    /// Seconds of all machines together; of each machine, if they are nodes of an own cluster that
    /// come and go.
    pub billed_seconds: u64,
    pub cost: Usd,
    /// Whether both are what was billed. If not, they are upper bounds: the cloud deleted it by
    /// itself, and its end was not observed.
    pub exact: bool,
    /// Cost at the end of its time to live; none if it is not billed anymore.
    pub until_expiry: Option<Usd>,
    pub phases: Vec<PhaseCost>,
    /// The cheapest other placement for the same time on the same GPUs.
    pub alternative: Option<Alternative>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhaseCost {
    pub phase: &'static str,
    pub seconds: u64,
    pub billed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Alternative {
    pub service: &'static str,
    pub size: String,
    pub region: String,
    pub priority: &'static str,
    pub cost: Usd,
}

/// The deployments that a report covers.
#[derive(Debug, Clone, Copy)]
pub struct CostQuery<'a> {
    /// A deployment by name or run id; all if absent.
    pub name: Option<&'a str>,
    /// The day of the report, whose month it is about.
    pub today: Date,
    /// Compares with other placements.
    pub facts: Option<&'a Facts>,
}

impl Deployer<'_> {
    /// Reads from the cloud what the journal does not know about billing: of what exists, and of what was deleted without
    /// this machine.
    pub fn update_costs(&self) -> Result<Vec<String>, DeployError> {
        let mut records = self.journal.existing()?;
        let notes = refresh(self.cloud, self.journal, &mut records)?;
        for record in self.journal.all()? {
            let vanished = records
                .iter()
                .any(|known| known.run_id == record.run_id && known.state == DeploymentState::Gone);
            let is_deleted = vanished || record.state == DeploymentState::Gone;
            if is_deleted && !record.billed.is_final() {
                self.mark_deleted_by_cloud(&record)?;
                self.bill_deleted(&self.known(&record.run_id)?)?;
            }
        }
        Ok(notes)
    }
}

/// The costs that the journal knows.
pub fn cost(
    journal: &Journal,
    cloud: Option<&dyn CloudApi>,
    query: &CostQuery<'_>,
) -> Result<CostReport, DeployError> {
    let now = cloud.map_or_else(Timestamp::now, CloudApi::now);
    let mut records = journal.all()?;
    if let Some(name) = query.name {
        let found = crate::create::run::find_deployment(journal, name)?;
        records.retain(|record| {
            record.run_id == found.run_id || (record.name == found.name && name == found.name)
        });
    }
    let month = month_of(query.today);
    let mut workloads: BTreeMap<&str, WorkloadCost> = BTreeMap::new();
    for record in records.iter().filter(|record| record.billed.from.is_some()) {
        let in_month = month.part_of(record, now);
        if in_month.is_zero() {
            continue;
        }
        let entry = workloads.entry(&record.name).or_insert_with(|| WorkloadCost::new(&record.name));
        entry.deployments += 1;
        entry.billed_seconds += whole_seconds(in_month);
        entry.cost += record.cost_of(in_month);
        entry.exact &= !record.billed.is_at_most;
        entry.lost_seconds += record.lost.as_secs();
    }
    let mut workloads: Vec<WorkloadCost> = workloads.into_values().collect();
    workloads.sort_by(|a, b| b.cost.cmp(&a.cost).then_with(|| a.name.cmp(&b.name)));
    let alternatives = query.facts.map(|facts| (facts, Catalog::of(facts)));
    let deployments = records
        .iter()
        .filter(|record| query.name.is_some() || record.state != DeploymentState::Gone)
        .map(|record| {
            let mut cost = DeploymentCost::new(record, now);
            cost.phases = phase_costs(journal, record, now)?;
            cost.alternative = alternatives
                .as_ref()
                .and_then(|(facts, catalog)| alternative(facts, catalog, record, query.today, now));
            Ok(cost)
        })
        .collect::<Result<Vec<_>, DeployError>>()?;
    let billed = || records.iter().filter(|record| record.is_billed());
    Ok(CostReport {
        per_hour: billed().map(|record| record.price_per_hour).sum(),
        so_far: billed().map(|record| record.billed_cost(now)).sum(),
        until_expiry: billed().map(|record| cost_until_expiry(record, now)).sum(),
        month: month.name,
        this_month: workloads.iter().map(|workload| workload.cost).sum(),
        workloads,
        deployments,
    })
}

fn cost_until_expiry(record: &DeploymentRecord, now: Timestamp) -> Usd {
    record.billed_cost(record.expires.max(now))
}

impl WorkloadCost {
    fn new(name: &str) -> Self {
        let (deployments, billed_seconds, cost, lost_seconds) = (0, 0, Usd::ZERO, 0);
        Self { name: name.to_owned(), deployments, billed_seconds, cost, exact: true, lost_seconds }
    }
}

impl DeploymentCost {
    fn new(record: &DeploymentRecord, now: Timestamp) -> Self {
        Self {
            deployment: DeploymentName::of(record),
            price_per_hour: record.price_per_hour,
            billed_from: record.billed.from.map(|time| time.to_string()),
            billed_until: record.billed.until.map(|time| time.to_string()),
            billed_seconds: whole_seconds(record.billed_length(now)),
            cost: record.billed_cost(now),
            exact: !record.billed.is_at_most,
            until_expiry: record.is_billed().then(|| cost_until_expiry(record, now)),
            phases: Vec::new(),
            alternative: None,
        }
    }
}

fn phase_costs(
    journal: &Journal,
    record: &DeploymentRecord,
    now: Timestamp,
) -> Result<Vec<PhaseCost>, DeployError> {
    let phases = journal.phases(&record.run_id)?;
    Ok(phases
        .into_iter()
        .map(|entry| PhaseCost {
            phase: phase_name(entry.phase),
            seconds: entry.ended.unwrap_or(now).since(entry.began).as_secs(),
            billed: entry.is_billed,
        })
        .collect())
}

/// A calendar month in UTC, as invoices have them.
struct Month {
    name: String,
    begin: Timestamp,
    end: Timestamp,
}

fn month_of(day: Date) -> Month {
    let text = day.to_string();
    let name = text.get(..7).unwrap_or_default().to_owned();
    let first = format!("{name}-01").parse().unwrap_or(day);
    let begin = Timestamp::start_of(first);
    // The first day of the next month is at most 31 days later.
    let next = (28..=31)
        .map(|days| begin.plus(Duration::from_secs(days * 86_400)))
        .find(|time| !time.to_string().starts_with(&name));
    Month { name, begin, end: next.unwrap_or(begin) }
}

impl Month {
    /// How long a deployment was billed in it.
    fn part_of(&self, record: &DeploymentRecord, now: Timestamp) -> Duration {
        let spans = record.billed_spans(now);
        spans.iter().map(|(from, until)| (*until).min(self.end).since((*from).max(self.begin))).sum()
    }
}

/// The lowest cost of the same time on the same GPUs elsewhere.
fn alternative(
    facts: &Facts,
    catalog: &Catalog,
    record: &DeploymentRecord,
    today: Date,
    now: Timestamp,
) -> Option<Alternative> {
    let size = facts.sizes().find(record.size.as_deref()?).one()?;
    let length = record.billed_length(now);
    if length.is_zero() || record.gpus == 0 {
        return None;
    }
    let gpu = size.gpu.clone()?;
    let workload = Workload {
        work: Work::Job { duration: length },
        gpu: GpuNeeds {
            per_instance: record.gpus,
            instances: match record.identity.work {
                WorkShape::MultiNode { nodes } => nodes,
                _ => 1,
            },
            models: vec![gpu.clone()],
            measured_on: Some(gpu),
            ..GpuNeeds::default()
        },
        machine: MachineNeeds::default(),
        data: None,
        start: Start::default(),
        spot: None,
        constraints: Constraints::default(),
        begins: today,
        assumptions: Vec::new(),
    };
    let verdicts = Verdicts::default();
    let plan = plan(catalog, facts, &workload, &verdicts);
    let own = |kind: AzureOffering| kind.service().id() == record.identity.service.id();
    let other = plan.ranked().iter().map(|ranked| plan.placement(ranked)).find(|placement| {
        !(own(placement.service)
            && placement.size.eq_ignore_ascii_case(&size.name)
            && placement.region.eq_ignore_ascii_case(&record.identity.region))
    })?;
    Some(Alternative {
        service: other.service.id(),
        size: other.size,
        region: other.region,
        priority: other.priority.name(),
        cost: other.cost.total,
    })
}
