//! Rules about services, whatever the size.

use cudock_facts::tables::ServiceGpu;

use super::{FitRule, unless};
use crate::codes;
use crate::context::Case;
use crate::workload::{Management, Work};

pub(super) const RULES: [FitRule; 4] = [
    FitRule { code: codes::SERVICE_WITHOUT_GPUS, gap: has_gpus, describe: describe_gpus },
    FitRule { code: codes::OTHER_KIND_OF_WORK, gap: fits_work, describe: describe_work },
    FitRule { code: codes::NOT_WANTED, gap: allowed, describe: describe_allowed },
    FitRule { code: codes::SERVICE_LIMIT, gap: possible, describe: describe_possible },
];

fn has_gpus(case: &Case) -> Option<u64> {
    unless(case.terms.row.is_some_and(|row| row.gpu == ServiceGpu::Available))
}

fn describe_gpus(case: &Case) -> String {
    let name = case.terms.kind.name();
    let Some(row) = case.terms.row else { return format!("{name} is not in the tables") };
    if row.gpu == ServiceGpu::Available {
        return format!("{name} has GPUs");
    }
    let since = row.gpu_retired_on.map(|day| format!(" since {day}")).unwrap_or_default();
    let instead = row.replacement.as_ref().map(|other| format!("; {other} replaces it")).unwrap_or_default();
    format!("{name} has no GPUs{since}{instead}")
}

fn fits_work(case: &Case) -> Option<u64> {
    let kind = case.terms.kind;
    unless(if case.context.serves() { kind.serves() } else { kind.runs_jobs() })
}

fn describe_work(case: &Case) -> String {
    let name = case.terms.kind.name();
    match (case.context.serves(), fits_work(case)) {
        (true, None) => format!("{name} serves requests"),
        (true, Some(_)) => format!("{name} runs jobs and does not serve requests"),
        (false, None) => format!("{name} runs jobs"),
        (false, Some(_)) => format!("{name} serves requests and does not run jobs"),
    }
}

fn allowed(case: &Case) -> Option<u64> {
    let constraints = &case.workload().constraints;
    let kind = case.terms.kind;
    let named = constraints.services.is_empty()
        || constraints.services.iter().any(|id| id == kind.id() || id == kind.table_id());
    unless(named && kind.management() >= constraints.management)
}

fn describe_allowed(case: &Case) -> String {
    let (constraints, kind) = (&case.workload().constraints, case.terms.kind);
    let level = |management| match management {
        Management::Own => "user-managed machines",
        Management::Managed => "machines managed by the service",
        Management::Serverless => "no machines to manage",
    };
    if kind.management() < constraints.management {
        let (has, wants) = (level(kind.management()), level(constraints.management));
        return format!("{} has {has}; required: {wants}", kind.name());
    }
    if constraints.services.is_empty() {
        return "any service is allowed".to_owned();
    }
    format!("service {}; allowed: {}", kind.id(), constraints.services.join(", "))
}

fn possible(case: &Case) -> Option<u64> {
    unless(impossible(case).is_none())
}

fn describe_possible(case: &Case) -> String {
    impossible(case).unwrap_or("the workload is possible").to_owned()
}

fn impossible(case: &Case) -> Option<&'static str> {
    let workload = case.workload();
    if workload.gpu.instances == 0 {
        return Some("the workload needs 0 instances; ask for 1 or more");
    }
    match &workload.work {
        Work::Serve { load, replica_rate, target_percent } => {
            let asked = load.hours.iter().any(|hour| hour.millis > 0);
            if asked && replica_rate.millis == 0 {
                return Some("an instance that answers 0 requests per second cannot serve the load");
            }
            (asked && *target_percent == 0)
                .then_some("instances at 0 % utilization cannot serve the load; use a target of 1 to 100 %")
        }
        Work::Sweep { trials, at_once: 0, .. } if *trials > 0 => {
            Some("0 trials at a time never finish; use 1 or more")
        }
        Work::Items { items, at_once: Some(0), .. } if *items > 0 => {
            Some("items on 0 instances never finish; use 1 or more")
        }
        _ => None,
    }
}
