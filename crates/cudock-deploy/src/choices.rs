//! The places for a workload: what the plan ranks best, or the only one where there is nothing to rank.

use std::sync::Arc;
use std::time::Duration;

use cudock_azure::{SpecPlacement, Target};
use cudock_base::{UsageError, Usd};
use cudock_facts::Facts;
use cudock_group::Reading;
use cudock_group::restart::RestartPolicy;
use cudock_http::NoProgress;
use cudock_plan::{Catalog, Plan, ServiceKind, Work, plan};
use cudock_project::{TimeSpan, WorkloadKind};
use cudock_workload::{Notify, Resolved, WorkloadFlags};

use crate::allowed::Allowed;
use crate::error::DeployError;
use crate::names::{target_name, target_title};
use crate::placements::{DEFAULT_TTL, DeployRequest, DeploySource};

/// A place for the workload, with what the plan knows about it.
pub(crate) struct PlacedWork {
    pub(crate) placement: SpecPlacement,
    pub(crate) kind: WorkloadKind,
    /// The planned time of a job.
    pub(crate) time: Duration,
    /// Tasks of a job.
    pub(crate) items: u64,
}

/// The places for a workload, the best one first.
pub(crate) fn choices(
    facts: &Facts,
    request: &DeployRequest<'_>,
    allowed: &Allowed,
) -> Result<Vec<PlacedWork>, DeployError> {
    // The tables have sizes with GPUs only.
    let is_known = |size: &String| facts.sizes().find(size).one().is_some();
    Ok(match (request.target, allowed.sizes.as_slice()) {
        (Target::Aci, _) => vec![without_plan(request, allowed, None)?],
        (Target::Batch | Target::Ml, [size])
            if request.existing.details.sizes.is_some() && !is_known(size) =>
        {
            vec![without_plan(request, allowed, Some(size))?]
        }
        _ => ranked(facts, request, allowed)?,
    })
}

/// The best placements of the plan.
fn ranked(
    facts: &Facts,
    request: &DeployRequest<'_>,
    allowed: &Allowed,
) -> Result<Vec<PlacedWork>, DeployError> {
    let Resolved { workload, verdicts } = resolve(facts, request, allowed)?;
    let catalog = Catalog::of(facts);
    let plan = plan(&catalog, facts, &workload, &verdicts);
    let ranked = plan.ranked().iter().chain(plan.unlisted());
    let ranked = ranked.filter(|ranked| ranked.offer.service != ServiceKind::Aks);
    let choices: Vec<PlacedWork> = ranked
        .take(request.flags.placements.max(1))
        .map(|ranked| {
            let placement = plan.placement(ranked);
            let (kind, items) = match &workload.work {
                Work::Job { .. } => (WorkloadKind::Job, 0),
                Work::Items { items, .. } => (WorkloadKind::Job, *items),
                Work::Sweep { trials, .. } => (WorkloadKind::Sweep, u64::from(*trials)),
                Work::Serve { .. } => (WorkloadKind::Serve, 0),
            };
            let time = if kind == WorkloadKind::Serve { Duration::ZERO } else { placement.times.total };
            Ok(PlacedWork { placement: SpecPlacement::try_from(&placement)?, kind, time, items })
        })
        .collect::<Result<_, DeployError>>()?;
    if choices.is_empty() { Err(no_placement(request.target, allowed, &plan).into()) } else { Ok(choices) }
}

fn no_placement(target: Target, allowed: &Allowed, plan: &Plan<'_>) -> UsageError {
    let because = allowed.because.as_ref();
    let place = because.map(|because| format!(" in {}{because}", allowed.regions.join(", ")));
    let reason = plan.nearest().first().map(|rejection| format!(": {}", rejection.reason));
    UsageError::new(format!(
        "no size of {}{} fits this workload{}",
        target_title(target),
        place.unwrap_or_default(),
        reason.unwrap_or_default()
    ))
    .hint("`cudock plan` lists what fits, and `cudock plan --why SIZE` explains why a size does not")
}

/// The workload with the flags as constraints. The image is not inspected: that would download it.
fn resolve(facts: &Facts, request: &DeployRequest<'_>, allowed: &Allowed) -> Result<Resolved, DeployError> {
    let mut flags = WorkloadFlags {
        service: vec![target_name(request.target).to_owned()],
        region: allowed.regions.clone(),
        size: allowed.sizes.clone(),
        spot: request.flags.spot,
        offline: true,
        ..WorkloadFlags::default()
    };
    let mut project = request.project().clone();
    project.manifest.workload.image = None;
    flags.no_spot = !request.flags.spot && project.manifest.deploy.spot.is_none();
    if let DeploySource::Group(Reading { group, .. }, _) = request.source {
        let gpus = group.containers.iter().filter_map(|container| container.resources.as_ref()?.gpu.as_ref());
        flags.gpus = gpus.map(|gpu| gpu.count).max();
        if group.restart_policy == RestartPolicy::Always {
            flags.rate = Some("1".to_owned());
        } else {
            flags.duration = Some(TimeSpan(DEFAULT_TTL / 2));
        }
    }
    let notify = Notify { progress: Arc::new(NoProgress), on_read: &|_| {} };
    Ok(cudock_workload::resolve(facts, &project, &flags, request.today, &notify)?)
}

/// Work on processors alone, for which there is nothing to rank.
fn without_plan(
    request: &DeployRequest<'_>,
    allowed: &Allowed,
    size: Option<&String>,
) -> Result<PlacedWork, UsageError> {
    let manifest = &request.project().manifest;
    let region = allowed.regions.first().ok_or_else(|| {
        let message = format!("{} needs a region", target_title(request.target));
        UsageError::new(message).hint("--region westeurope, or `regions` under [deploy] in cudock.toml")
    })?;
    let is_job = manifest.workload.duration.is_some() || manifest.workload.kind == WorkloadKind::Job;
    Ok(PlacedWork {
        placement: SpecPlacement {
            target: request.target,
            region: region.clone(),
            size: size.cloned(),
            gpus: 0,
            instances: 1,
            is_spot: request.flags.spot,
            price_per_hour: request.flags.price.unwrap_or(Usd::ZERO),
        },
        kind: if is_job { WorkloadKind::Job } else { manifest.workload.kind },
        time: manifest.workload.duration.map_or(Duration::ZERO, |TimeSpan(time)| time),
        items: manifest.workload.items.unwrap_or(0),
    })
}
