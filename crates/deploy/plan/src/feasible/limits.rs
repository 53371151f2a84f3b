//! Rules about the limits of services, and about the data.

use cudock_base::text::format::binary_bytes;
use cudock_facts::tables::{DataAccess, StorageKind};

use super::{short, unless};
use crate::context::Case;
use crate::workload::Work;

/// A figure of the workload and the limit of the service.
struct ServiceLimit {
    what: &'static str,
    needed: u64,
    most: u64,
}

fn all(case: &Case) -> impl Iterator<Item = ServiceLimit> {
    let (workload, limits) = (case.workload(), case.terms.limits);
    let limit = |what, needed: Option<u64>, most: Option<u64>| {
        Some(ServiceLimit { what, needed: needed?, most: most? })
    };
    let (trials, at_once) = match workload.work {
        Work::Sweep { trials, at_once, .. } => {
            (Some(u64::from(trials)), Some(u64::from(at_once.min(trials))))
        }
        _ => (None, None),
    };
    let requests = match &workload.work {
        Work::Serve { load, .. } => load.hours.iter().map(|hour| hour.per_second_ceil()).max(),
        _ => None,
    };
    let together = (workload.gpu.instances > 1).then_some(u64::from(workload.gpu.instances));
    let alone = (!case.terms.kind.joins_instances()).then_some(1);
    let image = workload.start.image.as_ref().map(|image| image.compressed);
    [
        limit("bytes of image", image, limits.image),
        limit("instances that work together", together, limits.together.or(alone)),
        limit("GPUs per instance", Some(u64::from(workload.gpu.per_instance)), limits.gpus),
        limit("trials", trials, limits.trials),
        limit("trials at once", at_once, limits.trials_at_once),
        limit("requests per second", requests, limits.requests),
    ]
    .into_iter()
    .flatten()
}

pub(super) fn limits(case: &Case) -> Option<u64> {
    all(case).filter_map(|limit| short(limit.most, limit.needed)).max()
}

pub(super) fn describe_limits(case: &Case) -> String {
    let over = all(case).find(|limit| limit.needed > limit.most);
    let name = case.terms.kind.name();
    match over {
        Some(ServiceLimit { what: "bytes of image", needed, most }) => {
            format!("an image of {}, {name} allows at most {}", binary_bytes(needed), binary_bytes(most))
        }
        Some(ServiceLimit { what, needed, most }) => format!("{needed} {what}, {name} allows at most {most}"),
        None => format!("within the limits of {name}"),
    }
}

/// A service cannot be priced without its billing and start times, nor data without its storage.
pub(super) fn known(case: &Case) -> Option<u64> {
    unless(unknown(case).is_none())
}

pub(super) fn describe_known(case: &Case) -> String {
    unknown(case).unwrap_or_else(|| "billing and storage are in the tables".to_owned())
}

fn unknown(case: &Case) -> Option<String> {
    let name = case.terms.kind.name();
    if case.terms.billing.is_none() {
        return Some(format!("the billing of {name} is not in the tables"));
    }
    if case.terms.start.is_none() {
        return Some(format!("the start times of {name} are not in the tables"));
    }
    let data = case.workload().data.as_ref()?;
    case.context.store.is_none().then(|| format!("storage `{}` is not in the tables", data.storage))
}

/// Data that is copied to local disks or stored on them must fit.
pub(super) fn space(case: &Case) -> Option<u64> {
    let data = case.workload().data.as_ref()?;
    let local = case.context.store.is_some_and(|store| store.row.kind == StorageKind::Local);
    if data.access == DataAccess::Stage || local { short(case.machine.local_disk, data.bytes) } else { None }
}

pub(super) fn describe_space(case: &Case) -> String {
    let disk = binary_bytes(case.machine.local_disk);
    match &case.workload().data {
        Some(data) => format!("{disk} of local disk, {} of data", binary_bytes(data.bytes)),
        None => format!("{disk} of local disk, no data"),
    }
}
