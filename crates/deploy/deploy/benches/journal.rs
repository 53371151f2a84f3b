//! How long `up --dry-run` and `ps` of 1,000 entries take without network: the promises are 100 ms and 50 ms.
#![allow(clippy::unwrap_used, reason = "a measurement that fails panics")]

use cudock_facts::services::AzureService;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cudock_azure::ExistingResources;
use cudock_base::{Date, Environment, Timestamp};
use cudock_deploy::{
    DeployRequest, DeploySource, Journal, NewDeployment, PlannedDeployment, Requester, plan_deployments, ps,
    text,
};
use cudock_facts::Facts;
use cudock_project::{DeployFlags, Project};

const RUNS: u32 = 20;
const ENTRIES: usize = 1000;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cudock.toml");
    std::fs::write(
        &file,
        "name = \"train\"\n[workload]\nkind = \"job\"\nduration = \"1h\"\nimage = \"team/train:1\"\n",
    )
    .unwrap();
    let project = Project::read(&file).unwrap();
    let planned = dry_run(&project);
    let dry_run_time = time(|| {
        black_box(text::dry_run(&dry_run(&project)));
    });
    println!("up --dry-run: {:.1} ms (promised 100 ms)", millis(dry_run_time));
    let journal = Journal::open(&directory.path().join("state")).unwrap();
    for number in 0..ENTRIES {
        let mut deployment = planned.deployment.clone();
        deployment.run_id = format!("{number:012x}");
        deployment.name.clone_from(&deployment.run_id);
        let (spec, created) = (&planned.spec, Timestamp::now());
        let new =
            NewDeployment { deployment: &deployment, spec, is_attached: false, created, replaces: None };
        journal.begin(&new).unwrap();
    }
    let ps_time = time(|| {
        let journal = Journal::open_existing(&directory.path().join("state")).unwrap().unwrap();
        let (deployments, _) = ps(&journal, None, true).unwrap();
        assert_eq!(deployments.len(), ENTRIES);
        black_box(text::ps(&deployments).lines());
    });
    println!("ps of {ENTRIES} entries: {:.1} ms (promised 50 ms)", millis(ps_time));
}

/// The best placement, with the tables decoded anew as the command does.
fn dry_run(project: &Project) -> PlannedDeployment {
    let facts = Facts::embedded();
    let flags = DeployFlags { placements: 1, ..DeployFlags::default() };
    let environment = Environment::of_process();
    let existing = ExistingResources::default();
    let request = DeployRequest {
        source: DeploySource::Project(project),
        service: AzureService::Vm,
        flags: &flags,
        name: None,
        port: None,
        command: &[],
        existing: &existing,
        requester: &Requester::of_dry_run(&environment),
        today: Date::today(),
        environment: &environment,
    };
    plan_deployments(&facts, &request).unwrap().remove(0)
}

/// The median of several runs.
fn time(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
