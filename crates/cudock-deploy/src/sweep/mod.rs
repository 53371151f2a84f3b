//! Sweeps on Azure: a sweep job of Machine Learning, or trials as tasks of Batch.

mod batch_runner;
mod native;

use std::time::Duration;

use clap::Args;
use cudock_azure::{BatchTasks, Target, WorkKind, deployment, open_job, sweep_deployment};
use cudock_base::{UsageError, Usd};
use cudock_facts::Facts;
use cudock_project::{Project, TimeSpan, WorkloadKind};
use cudock_sweep::SweepPlan;
use cudock_sweep::local::{DriveEnd, DriveError, ProjectSweep, SweepDriver, SweepObserver};

use self::batch_runner::BatchRunner;
use crate::attached::{DeployOutput, Ended};
use crate::error::DeployError;
use crate::flags::DeployFlags;
use crate::names::target_named;
use crate::placements::{DeployRequest, DeploySource, plan_deployments};
use crate::run::{Deployer, PlannedDeployment};

/// What a trial is planned to take if the sweep does not say.
const TRIAL_TIME: Duration = Duration::from_secs(3600);

const AZURE: &str = "Azure (with --on)";

// Not a doc comment, because clap would show it in the help of the verb.
//
// Where a sweep runs.
#[derive(Debug, Clone, Default, Args)]
pub struct SweepDeployFlags {
    /// Run trials on this service of Azure: ml, batch
    #[arg(long, value_name = "SERVICE", help_heading = AZURE, value_parser = parse_target)]
    pub on: Option<Target>,

    /// Print all requests, and send none
    #[arg(long, help_heading = AZURE, requires = "on")]
    pub dry_run: bool,

    /// Let Azure delete everything after this time, whatever happens here
    #[arg(long, value_name = "TIME", help_heading = AZURE, requires = "on")]
    pub ttl: Option<TimeSpan>,

    /// Use only these regions
    #[arg(long, value_name = "REGION,REGION", value_delimiter = ',', help_heading = AZURE, requires = "on")]
    pub region: Vec<String>,

    /// Use only these sizes
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', help_heading = AZURE, requires = "on")]
    pub size: Vec<String>,

    /// Use this Machine Learning workspace
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub workspace: Option<String>,

    /// Use this Batch account
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub batch_account: Option<String>,
}

impl SweepDeployFlags {
    /// The same as flags of a deployment.
    pub fn deploy_flags(&self) -> DeployFlags {
        DeployFlags {
            on: self.on,
            dry_run: self.dry_run,
            ttl: self.ttl,
            region: self.region.clone(),
            size: self.size.clone(),
            placements: 1,
            workspace: self.workspace.clone(),
            batch_account: self.batch_account.clone(),
            ..DeployFlags::default()
        }
    }
}

fn parse_target(text: &str) -> Result<Target, String> {
    target_named(text)
        .filter(|target| matches!(target, Target::Ml | Target::Batch))
        .ok_or_else(|| "expected ml or batch".to_owned())
}

/// A sweep that can be created.
#[derive(Debug, Clone)]
pub struct SweepRun {
    pub planned: PlannedDeployment,
    pub plan: SweepPlan,
    /// Of Batch, to which trials are added while it runs.
    tasks: Option<BatchTasks>,
}

impl SweepRun {
    /// Trials at the same time.
    fn slots(&self) -> u32 {
        self.planned.spec.instances.max(1)
    }

    /// The price of one slot for an hour.
    fn slot_price(&self) -> Usd {
        self.planned.spec.price_per_hour.share(1, u128::from(self.slots()))
    }
}

/// The best placement for a sweep, as all of its requests.
pub fn plan_sweep(
    facts: &Facts,
    request: &DeployRequest<'_>,
    project: &Project,
    plan: &SweepPlan,
) -> Result<SweepRun, DeployError> {
    let Some(image) = &plan.image else {
        let error = UsageError::new("a sweep on Azure needs an image for its trials");
        return Err(error.hint("set `image` under [sweep] in cudock.toml").into());
    };
    let slots = plan.limits.concurrent.unwrap_or(1).max(1);
    let trial_time = plan.limits.trial_timeout.unwrap_or(TRIAL_TIME);
    let mut project = project.clone();
    let workload = &mut project.manifest.workload;
    (workload.duration, workload.items, workload.item_time) = (None, None, None);
    workload.kind = WorkloadKind::Sweep;
    workload.image = Some(image.clone());
    workload.trials = Some(plan.limits.trials.unwrap_or(slots));
    workload.trial_time = Some(workload.trial_time.unwrap_or(TimeSpan(trial_time)));
    workload.at_once = Some(slots);
    let request =
        DeployRequest { source: DeploySource::Project(&project), command: &plan.command, ..*request };
    let planned = plan_deployments(facts, &request)?.into_iter().next();
    let Some(PlannedDeployment { mut spec, .. }) = planned else {
        return Err(UsageError::new("no placement fits this sweep").into());
    };
    // The plan prices all machines that the trials need; the sweep has as many as trials at the same time.
    let each = spec.price_per_hour.share(1, u128::from(spec.instances.max(1)));
    spec.instances = slots;
    spec.price_per_hour = each.times(u64::from(slots));
    spec.work = WorkKind::Job {
        items: Vec::new(),
        concurrent: slots,
        time_limit: plan.limits.trial_timeout.unwrap_or_else(|| spec.expires.since(request.now)),
        retries: 0,
    };
    let mut plan = plan.clone();
    plan.limits.concurrent = Some(slots);
    let (deployment, tasks) = if spec.target == Target::Ml {
        let left = spec.expires.since(request.now);
        let job = native::job(&plan, spec.size.as_deref(), spec.price_per_hour, left)?;
        (sweep_deployment(deployment(&spec)?, &job)?, None)
    } else {
        let (deployment, tasks) = open_job(deployment(&spec)?)?;
        (deployment, Some(tasks))
    };
    Ok(SweepRun { planned: PlannedDeployment { spec, deployment }, plan, tasks })
}

impl Deployer<'_> {
    /// Runs a sweep job of Machine Learning until its end, and deletes it.
    pub fn run_native_sweep(&self, run: &SweepRun, output: &dyn DeployOutput) -> Result<Ended, DeployError> {
        self.up_attached(std::slice::from_ref(&run.planned), output)
    }

    /// Runs trials as tasks of Batch until the sweep is finished, paused or interrupted, and deletes everything else: what
    /// counts is in the journal of the sweep. What an earlier command left behind is deleted first.
    pub fn run_batch_sweep(
        &self,
        run: &SweepRun,
        sweep: &ProjectSweep,
        observer: &dyn SweepObserver,
    ) -> Result<DriveEnd, DeployError> {
        let tasks = run.tasks.clone().ok_or_else(|| UsageError::new("the sweep does not run on Batch"))?;
        let (log, resumed) = sweep.log(run.plan.clone(), run.slots(), Some(run.slot_price()))?;
        if let Some(end) = log.sweep().end() {
            return Ok(DriveEnd::Finished(end));
        }
        if let Some(record) = self.journal.find(&run.planned.deployment.name)? {
            self.down(&record.run_id)?;
        }
        let (record, _lock) = self.create(&run.planned, true, None)?;
        let runner = BatchRunner::new(self.cloud, self.clock, tasks, &run.plan);
        let mut driver = SweepDriver::new(log, runner, sweep.directory(), observer, self.interrupted);
        let resumed = resumed.map_or(Ok(()), |event| driver.resume(event));
        let end = resumed.and_then(|()| driver.run());
        let end = end.map_err(|error| match error {
            DriveError::Journal(error) => DeployError::Sweep(error.into()),
            DriveError::Runner(error) => {
                DeployError::cloud(format!("cannot follow the trials of `{}`", record.name), error)
            }
        });
        match end {
            Ok(end) => self.delete(&record).map(|()| end),
            Err(error) => Err(self.abandon(&record, error)),
        }
    }
}
