//! Rules about limits of services, and about the data.

use cudock_facts::tables::StorageKind;

use super::{Rule, short, unless};
use crate::codes;
use crate::question::Case;
use crate::words::bytes;
use crate::workload::{Access, Work};

pub(super) const RULES: [Rule; 3] = [
    Rule { code: codes::SERVICE_LIMIT, gap: limits, words: limits_words },
    Rule { code: codes::NO_PRICE, gap: known, words: known_words },
    Rule { code: codes::MACHINE_TOO_SMALL, gap: space, words: space_words },
];

/// A figure of the workload and the limit it is held against.
struct Limit {
    what: &'static str,
    asked: u64,
    most: u64,
}

fn all(case: &Case) -> impl Iterator<Item = Limit> {
    let (workload, limits) = (case.workload(), case.terms.limits);
    let limit =
        |what, asked: Option<u64>, most: Option<u64>| Some(Limit { what, asked: asked?, most: most? });
    let (trials, at_once) = match workload.work {
        Work::Sweep { trials, at_once, .. } => {
            (Some(u64::from(trials)), Some(u64::from(at_once.min(trials))))
        }
        _ => (None, None),
    };
    let requests = match &workload.work {
        Work::Serve { load, .. } => load.hours.iter().map(|hour| hour.millis.div_ceil(1000)).max(),
        _ => None,
    };
    let together = (workload.gpu.instances > 1).then_some(u64::from(workload.gpu.instances));
    let alone = (!case.terms.kind.joins_instances()).then_some(1);
    let image = workload.start.image.as_ref().map(|image| image.compressed);
    [
        limit("bytes of image", image, limits.image),
        limit("instances that work together", together, limits.together.or(alone)),
        limit("GPUs in an instance", Some(u64::from(workload.gpu.per_instance)), limits.gpus),
        limit("trials", trials, limits.trials),
        limit("trials at once", at_once, limits.trials_at_once),
        limit("requests a second", requests, limits.requests),
    ]
    .into_iter()
    .flatten()
}

fn limits(case: &Case) -> Option<u64> {
    all(case).filter_map(|limit| short(limit.most, limit.asked)).max()
}

fn limits_words(case: &Case) -> String {
    let over = all(case).find(|limit| limit.asked > limit.most);
    let name = case.terms.kind.name();
    match over {
        Some(Limit { what: "bytes of image", asked, most }) => {
            format!("an image of {}, {name} takes {} at most", bytes(asked), bytes(most))
        }
        Some(Limit { what, asked, most }) => format!("{asked} {what}, {name} takes {most} at most"),
        None => format!("within the limits of {name}"),
    }
}

/// Without its rules of counting and starting a service cannot be priced, nor can data without its storage.
fn known(case: &Case) -> Option<u64> {
    unless(unknown(case).is_none())
}

fn known_words(case: &Case) -> String {
    unknown(case).unwrap_or_else(|| "all that makes the price is in the tables".to_owned())
}

fn unknown(case: &Case) -> Option<String> {
    let name = case.terms.kind.name();
    if case.terms.billing.is_none() {
        return Some(format!("how {name} counts time is not in the tables"));
    }
    if case.terms.start.is_none() {
        return Some(format!("how {name} starts is not in the tables"));
    }
    let data = case.workload().data.as_ref()?;
    case.question.store.is_none().then(|| format!("no storage `{}` is in the tables", data.storage))
}

/// Data that is copied, or lies on the machine's own disks, must fit there.
fn space(case: &Case) -> Option<u64> {
    let data = case.workload().data.as_ref()?;
    let local = case.question.store.is_some_and(|store| store.kind == StorageKind::Local);
    if data.access == Access::Stage || local { short(case.machine.local_disk, data.bytes) } else { None }
}

fn space_words(case: &Case) -> String {
    let disk = bytes(case.machine.local_disk);
    match &case.workload().data {
        Some(data) => format!("{disk} of local disk, {} of data", bytes(data.bytes)),
        None => format!("{disk} of local disk, no data to hold"),
    }
}
