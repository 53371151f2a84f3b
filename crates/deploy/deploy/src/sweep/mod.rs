//! Sweeps on Azure: a sweep job of Machine Learning, or trials as tasks of Batch.

pub(crate) mod machines;
mod native;
mod service_runner;
mod trial_jobs;

use cudock_facts::services::AzureService;
use std::time::Duration;

use cudock_azure::{WorkKind, deployment, open_job, open_jobs, sweep_deployment};
use cudock_base::UsageError;
use cudock_facts::Facts;
use cudock_project::{Project, TimeSpan, WorkloadKind};
use cudock_sweep::{Inexpressible, MachineSlots, MetricSource, PassMode, SweepPlan};
use cudock_sweep_run::{DriveEnd, DriveError, ProjectSweep, SweepDriver, SweepObserver};

use self::machines::SweepMachine;
use self::service_runner::{RunnerMachine, ServiceRunner};
use self::trial_jobs::{SingleJobs, TrialJobs};
use crate::create::attached::{DeployOutput, Ended};
use crate::create::placements::plan_deployments;
use crate::create::request::{DeployRequest, DeploySource};
use crate::create::run::{Deployer, PlannedDeployment};
use crate::error::DeployError;
use crate::journal::{DeploymentRecord, RunLock};

/// Assumed time of a trial if the sweep gives none.
const TRIAL_TIME: Duration = Duration::from_secs(3600);

/// Each job takes two of the 500 actions of the Logic App that deletes it by itself, and a term of its last condition.
const MOST_JOBS: u64 = 100;

/// A sweep that can be created.
#[derive(Debug, Clone)]
pub struct SweepRun {
    pub plan: SweepPlan,
    /// The machines: one entry, or one for each size that trials choose from.
    pub machines: Vec<SweepMachine>,
}

impl SweepRun {
    /// Whether the service runs the sweep, and this machine only waits.
    pub fn is_native(&self) -> bool {
        self.machines.iter().all(|machine| machine.jobs.is_none())
    }

    /// The slots and prices of the sizes that trials choose from.
    fn machine_slots(&self) -> Vec<MachineSlots> {
        let slots = self.machines.iter().filter_map(|machine| {
            let (slots, price_per_hour) = (machine.slots(), machine.slot_price());
            Some(MachineSlots { size: machine.size.clone()?, slots, price_per_hour })
        });
        slots.collect()
    }
}

/// The best placement for a sweep, or the best for each size that trials choose from, as all of its requests.
pub fn plan_sweep(
    facts: &Facts,
    request: &DeployRequest<'_>,
    project: &Project,
    plan: &SweepPlan,
) -> Result<SweepRun, DeployError> {
    let sizes = machines::sizes(facts, request, plan)?;
    let count = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
    let total = plan.limits.concurrent.unwrap_or(count).max(count);
    let mut plan = plan.clone();
    plan.limits.concurrent = Some(total);
    let mut machines: Vec<SweepMachine> = Vec::new();
    for (index, size) in (0..).zip(sizes) {
        // The first ones have one more if the machines cannot be divided evenly.
        let slots = total / count + u32::from(index < total % count);
        let machine = machine(facts, request, project, &plan, size, (slots, count))?;
        machines::check_distinct(&machines, &machine)?;
        machines.push(machine);
    }
    Ok(SweepRun { plan, machines })
}

/// The machines of one size, or of the cheapest.
fn machine(
    facts: &Facts,
    request: &DeployRequest<'_>,
    project: &Project,
    plan: &SweepPlan,
    size: Option<String>,
    (slots, sizes): (u32, u32),
) -> Result<SweepMachine, DeployError> {
    let Some(image) = &plan.image else {
        let error = UsageError::new("a sweep on Azure needs an image for its trials");
        return Err(error.hint("set `image` under [sweep] in cudock.toml").into());
    };
    let trial_time = plan.limits.trial_timeout.unwrap_or(TRIAL_TIME);
    let mut project = project.clone();
    let workload = &mut project.manifest.workload;
    (workload.duration, workload.items, workload.item_time) = (None, None, None);
    workload.kind = WorkloadKind::Sweep;
    workload.image = Some(image.clone());
    workload.trials = Some(plan.limits.trials.map_or(slots, |trials| trials.div_ceil(sizes)));
    workload.trial_time = Some(workload.trial_time.unwrap_or(TimeSpan(trial_time)));
    workload.at_once = Some(slots);
    let name = size.as_ref().map(|size| machines::name(&plan.name, size));
    let mut flags = request.flags.clone();
    flags.size.extend(size.clone());
    let request = DeployRequest {
        source: DeploySource::Project(&project),
        flags: &flags,
        name: name.as_deref().or(request.name),
        command: &plan.command,
        ..*request
    };
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
        time_limit: plan.limits.trial_timeout.unwrap_or_else(|| spec.expires.since(request.requester.now)),
        retries: 0,
    };
    let (mut jobs, mut note) = (None, None);
    let deployment = if spec.service == AzureService::Batch {
        check_trials(plan)?;
        let (deployment, tasks) = open_job(deployment(facts, &spec)?)?;
        jobs = Some(TrialJobs::Batch(tasks));
        deployment
    } else {
        let left = spec.expires.since(request.requester.now);
        match native::job(plan, spec.size.as_deref(), spec.price_per_hour, left) {
            Ok(job) => sweep_deployment(facts, deployment(facts, &spec)?, &job)?,
            Err(reason) => {
                if let WorkKind::Job { items, .. } = &mut spec.work {
                    *items = vec![Vec::new(); single_jobs(plan, &reason)?];
                }
                let (deployment, single) = open_jobs(deployment(facts, &spec)?)?;
                jobs = Some(TrialJobs::Ml(SingleJobs::new(single)));
                note = Some(format!("each trial is a job of its own: {reason}"));
                deployment
            }
        }
    };
    Ok(SweepMachine { planned: PlannedDeployment { spec, deployment }, note, size, jobs })
}

/// How many jobs of Machine Learning the trials of a sweep take at most, if the service cannot run it as one job for this
/// reason. Each has requests that delete it from the beginning, of which the Logic App that sends them takes a limited number.
fn single_jobs(plan: &SweepPlan, reason: &Inexpressible) -> Result<usize, UsageError> {
    let refused = |problem: &str| {
        let message = format!("Machine Learning cannot run this sweep as a sweep job: {reason}");
        UsageError::new(format!("{message}; and not as single jobs: {problem}"))
            .hint("--on batch runs each trial as a task, with all samplers and policies")
    };
    check_trials(plan).map_err(|error| refused(&error.to_string()))?;
    let Some(trials) = plan.limits.trials else {
        return Err(refused("their number has to be known (`trials` in [sweep.limits])"));
    };
    let jobs = u64::from(trials) * (u64::from(plan.retries) + 1);
    if jobs > MOST_JOBS {
        return Err(refused(&format!(
            "with retries they may be {jobs} jobs, and at most {MOST_JOBS} can be deleted by Azure itself"
        )));
    }
    // A single job would have no cluster.
    Ok(usize::try_from(jobs.max(2)).unwrap_or(usize::MAX))
}

/// Refuses what does not reach a trial on Azure, or does not come back from it.
fn check_trials(plan: &SweepPlan) -> Result<(), UsageError> {
    if !matches!(plan.metrics, MetricSource::Stdout(_)) {
        return Err(UsageError::new("metrics of trials on Azure are read from their standard output only")
            .hint("print them, and remove `from` in [sweep.metrics]"));
    }
    let is_in_command = |name: &str| plan.command.iter().any(|word| word.contains(&format!("{{{name}}}")));
    let names = plan.space.parameters.iter().map(|parameter| &parameter.name);
    let mut names = names.filter(|name| plan.machine.as_ref() != Some(name));
    match names.find(|name| plan.pass != PassMode::Arguments && !is_in_command(name)) {
        Some(name) => Err(UsageError::new(format!(
            "parameter `{name}` does not reach a trial on Azure: only arguments do"
        ))
        .hint(format!("write {{{name}}} into `command`, or set `pass = \"arguments\"`"))),
        None => Ok(()),
    }
}

impl Deployer<'_> {
    /// Runs a sweep job of Machine Learning until its end, and deletes it.
    pub fn run_native_sweep(&self, run: &SweepRun, output: &dyn DeployOutput) -> Result<Ended, DeployError> {
        let planned: Vec<PlannedDeployment> =
            run.machines.iter().map(|machine| machine.planned.clone()).collect();
        self.up_attached(&planned, output)
    }

    /// Deletes the leftovers of an earlier command, before the quota that they use is needed.
    pub fn delete_earlier_trials(&self, run: &SweepRun) -> Result<(), DeployError> {
        for machine in &run.machines {
            if let Some(record) = self.journal.find(&machine.planned.deployment.name)? {
                self.down(&record.run_id)?;
            }
        }
        Ok(())
    }

    /// Runs trials as jobs of a service until the sweep is finished, paused or interrupted, and deletes everything else: what
    /// counts is in the journal of the sweep.
    pub fn run_trials(
        &self,
        run: &SweepRun,
        sweep: &ProjectSweep,
        observer: &dyn SweepObserver,
    ) -> Result<DriveEnd, DeployError> {
        let slots: u32 = run.machines.iter().map(SweepMachine::slots).sum();
        let price = run.machines.iter().map(SweepMachine::slot_price).max();
        let (log, resumed) = sweep.log(run.plan.clone(), slots, price)?;
        if let Some(end) = log.sweep().end() {
            return Ok(DriveEnd::Finished(end));
        }
        let mut created: Vec<(DeploymentRecord, RunLock)> = Vec::new();
        for machine in &run.machines {
            match self.create(&machine.planned, true, None) {
                Ok(one) => created.push(one),
                Err(error) => return Err(self.abandon_all(&created, error)),
            }
        }
        let machines = run.machines.iter().zip(&created).filter_map(|(machine, (record, _))| {
            Some(RunnerMachine::new(record.identity.clone(), machine.jobs.clone()?, machine.slots()))
        });
        let runner = ServiceRunner::new(self.cloud, self.clock, self.journal, machines.collect(), &run.plan);
        let mut driver = SweepDriver::new(log, runner, sweep.directory(), observer, self.interrupted);
        let mut begun = resumed.map_or(Ok(()), |event| driver.resume(event));
        if run.plan.machine.is_some() {
            begun = begun.and_then(|()| driver.set_machines(run.machine_slots()));
        }
        let end = begun.and_then(|()| driver.run()).map_err(|error| match error {
            DriveError::Journal(error) => DeployError::Sweep(error.into()),
            DriveError::Runner(error) => {
                DeployError::cloud(format!("cannot follow the trials of `{}`", run.plan.name), error)
            }
        });
        match end {
            Ok(end) => {
                // All of them, whatever becomes of one.
                let deleted: Vec<_> = created.iter().map(|(record, _)| self.delete(record)).collect();
                deleted.into_iter().collect::<Result<(), _>>().map(|()| end)
            }
            Err(error) => Err(self.abandon_all(&created, error)),
        }
    }

    /// Deletes deployments because of an error, which is returned.
    fn abandon_all(&self, created: &[(DeploymentRecord, RunLock)], error: DeployError) -> DeployError {
        created.iter().fold(error, |error, (record, _)| self.abandon(record, error))
    }
}
