//! `cudock sweep --on`: sweeps on Azure.

use clap::Args;
use cudock_azure::Target;
use cudock_base::{Environment, Timestamp};
use cudock_deploy::{DeployRequest, DeploySource, SweepDeployFlags, SweepRun, plan_sweep, text};
use cudock_facts::Facts;
use cudock_sweep::SweepPlan;
use cudock_sweep::local::{DriveEnd, ProjectSweep, SweepArgs, SweepObserver};

use super::super::deploy;
use crate::failure::{Failure, Outcome};
use crate::output::{self, line, note, status};

// Not a doc comment, because clap would show it instead of that of the flags.
//
// Where and how a sweep runs.
#[derive(Debug, Args)]
pub(crate) struct SweepVerbArgs {
    #[command(flatten)]
    pub(crate) sweep: SweepArgs,

    #[command(flatten)]
    pub(crate) azure: SweepDeployFlags,
}

/// How a sweep ended: on Batch as here, and as a job of Machine Learning with an exit code.
pub(super) enum AzureEnd {
    Batch(DriveEnd),
    Other(Outcome),
}

pub(super) fn run(
    facts: &Facts,
    args: &SweepVerbArgs,
    target: Target,
    sweep: &ProjectSweep,
    observer: &dyn SweepObserver,
) -> Result<AzureEnd, Failure> {
    let plan = sweep.plan(&args.sweep.flags)?;
    if args.azure.dry_run {
        let run = planned(facts, args, target, sweep, &plan, ("SUBSCRIPTION", Timestamp::now()))?;
        line(text::dry_run(&run.planned));
        return Ok(AzureEnd::Other(Outcome::Yes));
    }
    let session = deploy::session()?;
    let subscription = session.subscription()?;
    let run = planned(facts, args, target, sweep, &plan, (&subscription, session.client.now()))?;
    status(text::announcement(&run.planned));
    run.planned.deployment.losses.iter().for_each(|loss| note(&loss.message));
    let deployer = session.deployer(&deploy::show);
    if target == Target::Batch {
        return Ok(AzureEnd::Batch(deployer.run_batch_sweep(&run, sweep, observer)?));
    }
    let ended = deployer.run_native_sweep(&run, &deploy::Printer).map(Some).or_else(deploy::interrupted)?;
    Ok(AzureEnd::Other(ended.map_or(Outcome::Program(130), |ended| deploy::report_end(&ended))))
}

fn planned(
    facts: &Facts,
    args: &SweepVerbArgs,
    target: Target,
    sweep: &ProjectSweep,
    plan: &SweepPlan,
    (subscription, now): (&str, Timestamp),
) -> Result<SweepRun, Failure> {
    let environment = Environment::of_process();
    let request = DeployRequest {
        source: DeploySource::Project(sweep.project()),
        target,
        flags: &args.azure.deploy_flags(),
        name: Some(&plan.name),
        port: None,
        command: &plan.command,
        subscription,
        owner: &cudock_deploy::owner(&environment),
        now,
        today: output::today(),
        environment: &environment,
    };
    Ok(plan_sweep(facts, &request, sweep.project(), plan)?)
}
