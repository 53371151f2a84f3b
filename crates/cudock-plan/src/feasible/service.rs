//! Rules that say the same of every size of a service.

use cudock_facts::tables::ServiceGpu;

use super::{Rule, unless};
use crate::codes;
use crate::question::Case;
use crate::workload::{Management, Work};

pub(super) const RULES: [Rule; 4] = [
    Rule { code: codes::SERVICE_WITHOUT_GPUS, gap: has_gpus, words: gpu_words },
    Rule { code: codes::OTHER_KIND_OF_WORK, gap: fits_work, words: work_words },
    Rule { code: codes::NOT_WANTED, gap: wanted, words: wanted_words },
    Rule { code: codes::SERVICE_LIMIT, gap: possible, words: possible_words },
];

fn has_gpus(case: &Case) -> Option<u64> {
    unless(case.terms.row.is_some_and(|row| row.gpu == ServiceGpu::Available))
}

fn gpu_words(case: &Case) -> String {
    let name = case.terms.kind.name();
    let Some(row) = case.terms.row else { return format!("{name} is not in the tables") };
    if row.gpu == ServiceGpu::Available {
        return format!("{name} has GPUs");
    }
    let since = row.gpu_retired_on.map(|day| format!(" since {day}")).unwrap_or_default();
    let instead =
        row.replacement.as_ref().map(|other| format!("; {other} takes its place")).unwrap_or_default();
    format!("{name} has no GPUs{since}{instead}")
}

fn fits_work(case: &Case) -> Option<u64> {
    let kind = case.terms.kind;
    unless(if case.question.serves() { kind.serves() } else { kind.runs_jobs() })
}

fn work_words(case: &Case) -> String {
    let name = case.terms.kind.name();
    match (case.question.serves(), fits_work(case)) {
        (true, None) => format!("{name} answers requests"),
        (true, Some(_)) => format!("{name} runs work that ends and answers no requests"),
        (false, None) => format!("{name} runs work that ends"),
        (false, Some(_)) => format!("{name} answers requests and runs no work that ends"),
    }
}

fn wanted(case: &Case) -> Option<u64> {
    let wishes = &case.workload().wishes;
    let kind = case.terms.kind;
    let named = wishes.services.is_empty()
        || wishes.services.iter().any(|id| id == kind.id() || id == kind.table_id());
    unless(named && kind.management() >= wishes.management)
}

fn wanted_words(case: &Case) -> String {
    let (wishes, kind) = (&case.workload().wishes, case.terms.kind);
    let level = |management| match management {
        Management::Own => "machines of one's own",
        Management::Managed => "machines that the service manages",
        Management::Serverless => "no machines to look after",
    };
    if kind.management() < wishes.management {
        let (has, wants) = (level(kind.management()), level(wishes.management));
        return format!("{} means {has}; {wants} are wanted", kind.name());
    }
    if wishes.services.is_empty() {
        return "any service will do".to_owned();
    }
    format!("wanted are {}; this is {}", wishes.services.join(", "), kind.id())
}

/// What no service can do: it is told once for each, so that nothing is left without a reason.
fn possible(case: &Case) -> Option<u64> {
    unless(impossible(case).is_none())
}

fn possible_words(case: &Case) -> String {
    impossible(case).unwrap_or("the work can be done").to_owned()
}

fn impossible(case: &Case) -> Option<&'static str> {
    let workload = case.workload();
    if workload.gpu.instances == 0 {
        return Some("the work asks for 0 instances; ask for 1 or more");
    }
    match &workload.work {
        Work::Serve { load, replica_rate, target_percent } => {
            let asked = load.hours.iter().any(|hour| hour.millis > 0);
            if asked && replica_rate.millis == 0 {
                return Some("an instance that answers 0 requests a second never meets the load");
            }
            (asked && *target_percent == 0)
                .then_some("instances kept 0 % full never meet the load; a target is between 1 and 100 %")
        }
        Work::Sweep { trials, at_once: 0, .. } if *trials > 0 => {
            Some("0 trials at a time never end; ask for 1 or more")
        }
        Work::Items { items, at_once: Some(0), .. } if *items > 0 => {
            Some("items on 0 instances never end; ask for 1 or more")
        }
        _ => None,
    }
}
