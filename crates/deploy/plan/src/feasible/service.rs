//! Rules about services, whatever the size.

use cudock_facts::tables::ServiceGpu;

use super::unless;
use crate::context::Case;
use crate::workload::Work;
use cudock_facts::services::Management;

pub(super) fn has_gpus(case: &Case) -> Option<u64> {
    unless(case.terms.row.is_some_and(|row| row.gpu == ServiceGpu::Available))
}

pub(super) fn describe_gpus(case: &Case) -> String {
    let name = case.terms.kind.name();
    let Some(row) = case.terms.row else { return format!("{name} is not in the tables") };
    if row.gpu == ServiceGpu::Available {
        return format!("{name} has GPUs");
    }
    let since = row.gpu_retired_on.map(|day| format!(" since {day}")).unwrap_or_default();
    let instead = row.replacement.as_ref().map(|other| format!("; {other} replaces it")).unwrap_or_default();
    format!("{name} has no GPUs{since}{instead}")
}

pub(super) fn fits_work(case: &Case) -> Option<u64> {
    let kind = case.terms.kind;
    unless(if case.context.serves() { kind.serves() } else { kind.runs_jobs() })
}

pub(super) fn describe_work(case: &Case) -> String {
    let name = case.terms.kind.name();
    match (case.context.serves(), fits_work(case)) {
        (true, None) => format!("{name} serves requests"),
        (true, Some(_)) => format!("{name} runs jobs and does not serve requests"),
        (false, None) => format!("{name} runs jobs"),
        (false, Some(_)) => format!("{name} serves requests and does not run jobs"),
    }
}

pub(super) fn allowed(case: &Case) -> Option<u64> {
    let constraints = &case.workload().constraints;
    let kind = case.terms.kind;
    let named = constraints.services.is_empty()
        || constraints.services.iter().any(|id| id == kind.id() || id == kind.service().id());
    unless(named && kind.management() >= constraints.management)
}

pub(super) fn describe_allowed(case: &Case) -> String {
    let (constraints, kind) = (&case.workload().constraints, case.terms.kind);
    let level = |management| match management {
        Management::Own => "user-managed machines",
        Management::Managed => "machines managed by the service",
        Management::Serverless => "no machines to manage",
    };
    if kind.management() < constraints.management {
        let (has, needs) = (level(kind.management()), level(constraints.management));
        return format!("{} has {has}; required: {needs}", kind.name());
    }
    if constraints.services.is_empty() {
        return "any service is allowed".to_owned();
    }
    format!("service {}; allowed: {}", kind.id(), constraints.services.join(", "))
}

pub(super) fn possible(case: &Case) -> Option<u64> {
    unless(impossible(case).is_none())
}

pub(super) fn describe_possible(case: &Case) -> String {
    impossible(case).unwrap_or("the workload is possible").to_owned()
}

fn impossible(case: &Case) -> Option<&'static str> {
    let workload = case.workload();
    if workload.gpu.instances == 0 {
        return Some("the workload needs 0 instances; ask for 1 or more");
    }
    match &workload.work {
        Work::Serve { load, replica_rate, target_percent } => {
            let has_requests = load.hours.iter().any(|hour| !hour.is_zero());
            if has_requests && replica_rate.is_zero() {
                return Some("an instance that answers 0 requests per second cannot serve the load");
            }
            (has_requests && *target_percent == 0)
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
