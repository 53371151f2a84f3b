//! The places for a workload: what the plan ranks best, or the only one where there is nothing to rank.

use cudock_facts::services::AzureOffering;
use cudock_facts::services::AzureService;
use std::sync::Arc;
use std::time::Duration;

use cudock_azure::SpecPlacement;
use cudock_base::{UsageError, Usd};
use cudock_facts::Facts;
use cudock_group::Reading;
use cudock_group::restart::RestartPolicy;
use cudock_http::NoProgress;
use cudock_plan::{Catalog, Plan, Rejection, Work, codes, plan};
use cudock_project::WorkloadFlags;
use cudock_project::{Project, TimeSpan, WorkloadKind};
use cudock_workload::{Notify, Resolved};

use crate::create::allowed::Allowed;
use crate::create::request::{DEFAULT_TTL, DeployRequest, DeploySource};
use crate::error::DeployError;

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
    let offered = AzureOffering::ALL.into_iter().filter(|offering| offering.service() == request.service);
    Ok(match allowed.sizes.as_slice() {
        _ if !offered.into_iter().any(AzureOffering::has_gpus) => vec![without_plan(request, allowed, None)?],
        [size] if request.existing.has_nodes(request.service) && !is_known(size) => {
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
    let ranked = ranked.filter(|ranked| ranked.offer.service.service().is_deployable());
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
    if choices.is_empty() { Err(no_placement(request.service, allowed, &plan).into()) } else { Ok(choices) }
}

/// Why nothing fits: what the service does not do at all, or else what the size lacks that is nearest to fitting.
fn no_placement(service: AzureService, allowed: &Allowed, plan: &Plan<'_>) -> UsageError {
    let kinds = AzureOffering::named(service.id());
    let whole = |kind: &AzureOffering| {
        let mut rejected = plan.rejected().iter();
        rejected.find(|rejection| rejection.service == Some(*kind) && rejection.size.is_none())
    };
    if let Some(rejections) = kinds.iter().map(whole).collect::<Option<Vec<_>>>()
        && let Some(first) = rejections.first()
    {
        let error = UsageError::new(format!("cannot deploy to {}: {}", service.title(), first.reason));
        let is_other_work = rejections.iter().all(|rejection| rejection.code == codes::OTHER_KIND_OF_WORK);
        return if is_other_work { error.hint(services_for(plan)) } else { error };
    }
    let because = allowed.because.as_ref();
    let place = because.map(|because| format!(" in {}{because}", allowed.regions.join(", ")));
    let reason = nearest(plan, &kinds).map(|rejection| {
        format!(": {}: {}", rejection.size.as_deref().unwrap_or_default(), rejection.reason)
    });
    UsageError::new(format!(
        "no size of {}{} fits this workload{}",
        service.title(),
        place.unwrap_or_default(),
        reason.unwrap_or_default()
    ))
    .hint("`cudock plan` lists what fits, and `cudock plan --why SIZE` explains why a size does not")
}

/// The most helpful rejection: of an offer that is available, else of one that is retired, else of
/// one that was not requested.
fn nearest<'p>(plan: &'p Plan<'_>, kinds: &[AzureOffering]) -> Option<&'p Rejection> {
    let rank = |rejection: &Rejection| match rejection.code {
        codes::NOT_WANTED => 2,
        codes::SIZE_RETIRED | codes::UNDOCUMENTED_SIZE | codes::NOT_NVIDIA => 1,
        _ => 0,
    };
    let of_service = plan.rejected().iter().filter(|rejection| {
        rejection.size.is_some() && rejection.service.is_none_or(|service| kinds.contains(&service))
    });
    of_service.min_by_key(|rejection| (rank(rejection), rejection.distance))
}

/// The services that do this kind of work and have GPUs.
fn services_for(plan: &Plan<'_>) -> String {
    let suits = |kind: &AzureOffering| if plan.serves() { kind.serves() } else { kind.runs_jobs() };
    let others = AzureOffering::ALL.into_iter().filter(suits);
    let services = others.filter(|offering| offering.has_gpus()).map(AzureOffering::service);
    let mut names: Vec<&str> =
        services.filter(|service| service.is_deployable()).map(AzureService::id).collect();
    names.sort_unstable();
    names.dedup();
    format!("--on {}", names.join(", or --on "))
}

/// The workload with the flags as constraints. The image is not inspected: that would download it.
fn resolve(facts: &Facts, request: &DeployRequest<'_>, allowed: &Allowed) -> Result<Resolved, DeployError> {
    let mut flags = WorkloadFlags {
        service: vec![request.service.id().to_owned()],
        region: allowed.regions.clone(),
        size: allowed.sizes.clone(),
        spot: request.flags.spot,
        offline: true,
        ..WorkloadFlags::default()
    };
    let mut project = request.project().clone();
    if is_sweep_only(&project) {
        let error = UsageError::new("the project is a sweep, and neither a job nor a service");
        return Err(error
            .hint("`cudock sweep --on ml` runs it, and with --dry-run prints its requests")
            .into());
    }
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

/// Whether the project describes a sweep and no other work.
fn is_sweep_only(project: &Project) -> bool {
    let work = &project.manifest.workload;
    let is_job = work.duration.is_some() || work.items.is_some() || work.trials.is_some();
    let is_service = work.rate.is_some() || work.replica_rate.is_some() || work.model.is_some();
    project.manifest.sweep.is_some() && !is_job && !is_service && !project.text.has("workload.kind")
}

/// Work on processors alone, for which there is nothing to rank.
fn without_plan(
    request: &DeployRequest<'_>,
    allowed: &Allowed,
    size: Option<&String>,
) -> Result<PlacedWork, UsageError> {
    let manifest = &request.project().manifest;
    let region = allowed.regions.first().ok_or_else(|| {
        let message = format!("{} needs a region", request.service.title());
        UsageError::new(message).hint("--region westeurope, or `regions` under [deploy] in cudock.toml")
    })?;
    let is_job = manifest.workload.duration.is_some() || manifest.workload.kind == WorkloadKind::Job;
    Ok(PlacedWork {
        placement: SpecPlacement {
            service: request.service,
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
