//! `cudock sweep --on`: sweeps on Azure.

use cudock_base::Environment;
use cudock_cli::SweepArgs;
use cudock_deploy::{
    CloudApi, DeployRequest, DeploySource, Preflight, Requester, SweepRun, plan_sweep, read_existing,
    resolve, text,
};
use cudock_facts::Facts;
use cudock_sweep::SweepPlan;
use cudock_sweep_run::{ProjectSweep, SweepObserver};

use super::DriveEnd;
use crate::failure::{Failure, Outcome};
use crate::output::{self, line, note, status};
use crate::steps::cloud;

/// How a sweep ended: with trials as jobs as here, and as a job of Machine Learning with an exit code.
pub(crate) enum AzureEnd {
    Trials(DriveEnd),
    Other(Outcome),
}

pub(crate) fn run(
    facts: &Facts,
    args: &SweepArgs,
    sweep: &ProjectSweep,
    observer: &dyn SweepObserver,
) -> Result<AzureEnd, Failure> {
    let plan = sweep.plan(&args.local.flags)?;
    if args.azure.dry_run {
        let requester = Requester::of_dry_run(&Environment::of_process());
        let run = planned(facts, args, sweep, &plan, (&requester, None))?;
        for machine in &run.machines {
            machine.note.iter().for_each(note);
            line(text::dry_run(&machine.planned));
        }
        return Ok(AzureEnd::Other(Outcome::Yes));
    }
    let session = cloud::session()?;
    let requester = session.requester(&Environment::of_process())?;
    let run = planned(facts, args, sweep, &plan, (&requester, Some(&session.interruptible)))?;
    let deployer = session.deployer(&cloud::show);
    // A sweep that has ended creates nothing.
    if !sweep.read().is_ok_and(|known| known.end().is_some()) {
        if !run.is_native() {
            deployer.delete_earlier_trials(&run)?;
        }
        let planned: Vec<_> = run.machines.iter().map(|machine| machine.planned.clone()).collect();
        let Preflight { report, placements } = cloud::asked(&session, facts, planned);
        // Trials need the machines of all sizes.
        if placements.len() < run.machines.len() {
            return Err(cloud::preflight_failed(&report));
        }
        report.findings(report.choice(usize::MAX)).iter().for_each(|finding| note(&finding.message));
    }
    for machine in &run.machines {
        status(text::announcement(&machine.planned));
        machine.note.iter().for_each(note);
        machine.planned.deployment.losses.iter().for_each(|loss| note(&loss.message));
    }
    if !run.is_native() {
        return Ok(AzureEnd::Trials(deployer.run_trials(&run, sweep, observer)?));
    }
    let ended = deployer.run_native_sweep(&run, &cloud::Printer).map(Some).or_else(cloud::interrupted)?;
    Ok(AzureEnd::Other(ended.map_or(Outcome::Program(130), |ended| cloud::report_end(&ended))))
}

fn planned(
    facts: &Facts,
    args: &SweepArgs,
    sweep: &ProjectSweep,
    plan: &SweepPlan,
    (requester, cloud): (&Requester, Option<&dyn CloudApi>),
) -> Result<SweepRun, Failure> {
    let (service, flags) = resolve(&args.azure.deploy_flags(), &sweep.project().manifest)?;
    let existing = read_existing(facts, cloud, &requester.subscription, service, &flags)?;
    let request = DeployRequest {
        source: DeploySource::Project(sweep.project()),
        service,
        flags: &flags,
        existing: &existing,
        name: Some(&plan.name),
        port: None,
        command: &plan.command,
        requester,
        today: output::today(),
        environment: &Environment::of_process(),
    };
    Ok(plan_sweep(facts, &request, sweep.project(), plan)?)
}
