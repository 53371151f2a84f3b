//! Nothing leaks: requests fail and the program is killed at every step, and in half of the schedules it never comes back.
//!
//! Each schedule is one run of `up`, alone or followed by `down`, with its own journal. If the client comes back, it runs
//! `gc`; then nothing is left and its bill is that of the cloud, to the second. If it does not, the cloud has deleted
//! everything after the time to live.

use std::env;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cudock_azure_testkit::{ClientRun, CloudSettings, Schedule, StandIn};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{cudock, shown};

/// How many schedules run, and the seed that they are made from.
const SCHEDULES: &str = "CUDOCK_TEST_SCHEDULES";
const SEED: &str = "CUDOCK_TEST_SEED";

/// Each service, and the flags that it needs besides those of all.
const TARGETS: [(&str, &[&str]); 7] = [
    ("vm", &[]),
    ("batch", &[]),
    ("ml", &["--workspace", "shared/workspace"]),
    ("container-apps", &[]),
    ("aci", &["--price", "0.10"]),
    (SWEEP_BATCH, &[]),
    (SWEEP_ML, &["--workspace", "shared/workspace"]),
];
/// Trials as tasks, and as a job of the service.
const SWEEP_BATCH: &str = "sweep --on batch";
const SWEEP_ML: &str = "sweep --on ml";
const TTL: Duration = Duration::from_secs(3600);
/// The reaper fires every 15 minutes, and takes itself away when it is sure that everything else is gone.
const REAPER_ALLOWANCE: Duration = Duration::from_secs(2 * 3600);
const NAME: &str = "leak-check";
/// A return that a fault disturbs again is repeated.
const MOST_RETURNS: usize = 4;

/// What the user types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    /// `up` of a job: create, wait, fetch the output, delete.
    Attached,
    /// `up --detach`, then `down`.
    DetachedThenDown,
}

/// A cloud and a user's machine.
struct World {
    stand_in: StandIn,
    home: TempDir,
    /// What was run and what it printed.
    transcript: String,
}

impl World {
    fn new(seed: u64) -> Option<Self> {
        let stand_in = StandIn::start(CloudSettings { seed, ..CloudSettings::default() })?;
        let home = tempfile::tempdir().unwrap();
        let manifest = "[workload]\nkind = \"job\"\nduration = \"5m\"\n\n[needs]\ngpu = [\"T4\"]\n";
        std::fs::write(home.path().join("cudock.toml"), manifest).unwrap();
        for (name, metrics) in [(SWEEP_BATCH, "stdout"), (SWEEP_ML, "mlflow")] {
            let directory = home.path().join(name);
            std::fs::create_dir(&directory).unwrap();
            let manifest = format!(
                "[needs]\ngpu = [\"T4\"]\n\n[sweep]\ncommand = [\"python\", \"train.py\"]\nimage = \"team/app:1\"\n\
                 objectives = [{{ metric = \"loss\", goal = \"minimize\" }}]\nmetrics = {{ from = \"{metrics}\" }}\n\
                 parameters.lr = {{ uniform = [0, 1] }}\nlimits = {{ trials = 3, concurrent = 2, trial_timeout = \"20m\" }}\n"
            );
            std::fs::write(directory.join("cudock.toml"), manifest).unwrap();
        }
        Some(Self { stand_in, home, transcript: String::new() })
    }

    fn run(&mut self, arguments: &[&str]) -> ClientRun {
        let home: &Path = self.home.path();
        let mut command = cudock(arguments);
        command
            .current_dir(home)
            .env("HOME", home)
            .env("CUDOCK_STATE", home.join("state"))
            .env("CUDOCK_CACHE", home.join("cache"))
            .env("USER", "ada");
        let run = self.stand_in.run(&mut command);
        let end = if run.was_killed { "killed".to_owned() } else { shown(&run.output) };
        let _ = writeln!(self.transcript, "$ cudock {}\n{end}", arguments.join(" "));
        run
    }

    /// Runs a scenario until its end or death; whether it was killed.
    fn play(&mut self, target: usize, scenario: Scenario) -> bool {
        let (name, flags) = TARGETS[target];
        if let Some(service) = name.strip_prefix("sweep --on ") {
            let mut sweep = vec!["sweep", name, "--on", service, "--name", NAME, "--ttl", "1h"];
            sweep.extend(["--region", "eastus"].iter().chain(flags));
            return self.run(&sweep).was_killed;
        }
        let mut up = vec!["up", ".", "--on", name, "--name", NAME, "--image", "team/app:1", "--ttl", "1h"];
        up.extend(["--region", "eastus"].iter().chain(flags));
        if scenario == Scenario::DetachedThenDown {
            up.push("--detach");
        }
        up.extend(["--", "python", "train.py"]);
        let first = self.run(&up);
        if first.was_killed || scenario == Scenario::Attached || !first.output.status.success() {
            return first.was_killed;
        }
        self.run(&["down", NAME]).was_killed
    }

    /// The client comes back and cleans up.
    fn return_and_clean(&mut self) -> Result<(), String> {
        for _ in 0..MOST_RETURNS {
            let run = self.run(&["gc"]);
            if run.output.status.success() {
                return self.check_clean();
            }
        }
        Err("gc does not succeed".to_owned())
    }

    /// Nothing is left, and the journal says so.
    fn check_clean(&mut self) -> Result<(), String> {
        self.check_gone()?;
        let records = self.stand_in.records();
        if !records.is_empty() {
            return Err(format!("records are left: {records:?}"));
        }
        let billed = self.stand_in.billed_seconds();
        let cost = self.run(&["cost", NAME, "--format", "json"]).output;
        let known = Self::journal_entry(&cost)?;
        match known {
            // It was killed before it knew what it was going to do.
            None if billed == 0 => Ok(()),
            None => Err(format!("{billed} s were billed, and the journal does not know of it")),
            Some((state, _)) if state != "gone" => Err(format!("the journal says {state}")),
            Some((_, seconds)) if seconds != billed => {
                Err(format!("cost says {seconds} s, and {billed} s were billed"))
            }
            Some(_) => Ok(()),
        }
    }

    /// State and billed seconds by `cudock cost`; none if it does not know the deployment.
    fn journal_entry(cost: &Output) -> Result<Option<(String, u64)>, String> {
        let Ok(report) = serde_json::from_slice::<Value>(&cost.stdout) else {
            let is_unknown = cost.status.code() == Some(2);
            return if is_unknown { Ok(None) } else { Err(format!("cost failed: {}", shown(cost))) };
        };
        let entry = &report["deployments"][0];
        match (entry["state"].as_str(), entry["billed_seconds"].as_u64()) {
            (Some(state), Some(seconds)) => Ok(Some((state.to_owned(), seconds))),
            _ => Err(format!("cost has no deployment: {report}")),
        }
    }

    fn check_gone(&self) -> Result<(), String> {
        let (left, billed) = (self.stand_in.leftovers(), self.stand_in.billed());
        if left.is_empty() && billed.is_empty() {
            return Ok(());
        }
        Err(format!("left: {left:#?}\nbilled: {billed:?}\nreaper: {:?}", self.stand_in.workflow_runs()))
    }
}

/// How a schedule ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Survived,
    /// It was killed, and came back.
    CameBack,
    /// It was killed, and the cloud cleaned up.
    StayedAway,
}

/// Runs one schedule. An error tells what is wrong and everything that led to it.
fn check_schedule(seed: u64, index: u64, requests: &[[u64; 2]]) -> Option<Result<Ending, String>> {
    let mut world = World::new(seed.wrapping_add(index))?;
    let target = usize::try_from(index).unwrap() % TARGETS.len();
    let turn = index / TARGETS.len() as u64;
    let scenario = if turn.is_multiple_of(2) { Scenario::Attached } else { Scenario::DetachedThenDown };
    let schedule = Schedule::generate(seed, turn / 2, requests[target][scenario as usize]);
    world.stand_in.set_schedule(schedule.clone());
    let was_killed = world.play(target, scenario);
    let (ending, result) = match (was_killed, schedule.comes_back) {
        (false, _) => (Ending::Survived, world.return_and_clean()),
        (true, true) => (Ending::CameBack, world.return_and_clean()),
        (true, false) => {
            world.stand_in.advance(TTL + REAPER_ALLOWANCE);
            (Ending::StayedAway, world.check_gone())
        }
    };
    Some(result.map(|()| ending).map_err(|reason| {
        let (name, _) = TARGETS[target];
        let requests = world.stand_in.requests();
        format!(
            "seed {seed}, schedule {index}: {name}, {scenario:?}, {schedule:?}\n{reason}\n{}\nrequests:\n  {}",
            world.transcript,
            requests.join("\n  ")
        )
    }))
}

/// Runs without faults, which succeed and leave nothing; returns how many requests each makes.
fn requests_without_faults(seed: u64) -> Option<Vec<[u64; 2]>> {
    let count = |target: usize, scenario: Scenario| {
        let mut world = World::new(seed)?;
        world.play(target, scenario);
        let requests = world.stand_in.requests().len() as u64;
        let (name, _) = TARGETS[target];
        assert!(
            !world.transcript.contains("exit code 2") && !world.transcript.contains("exit code 3"),
            "{}",
            world.transcript
        );
        if let Err(reason) = world.check_clean() {
            panic!(
                "{name}, {scenario:?}, without faults: {reason}\n{}\n{:#?}",
                world.transcript,
                world.stand_in.requests()
            );
        }
        assert!(world.stand_in.billed_seconds() > 0, "{name} was never billed\n{}", world.transcript);
        Some(requests)
    };
    (0..TARGETS.len())
        .map(|target| Some([count(target, Scenario::Attached)?, count(target, Scenario::DetachedThenDown)?]))
        .collect()
}

fn setting(name: &str, default: u64) -> u64 {
    env::var(name)
        .map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

#[test]
fn nothing_is_left_and_every_billed_second_is_known_whatever_fails() {
    let (schedules, seed) = (setting(SCHEDULES, 60), setting(SEED, 1));
    println!("{schedules} schedules of seed {seed}: {SCHEDULES} and {SEED} select others");
    let Some(requests) = requests_without_faults(seed) else { return };
    println!("requests without faults, attached and detached: {requests:?}");
    let (next, endings, failures) = (AtomicU64::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= schedules {
                        return;
                    }
                    match check_schedule(seed, index, &requests) {
                        Some(Ok(ending)) => endings.lock().unwrap().push(ending),
                        Some(Err(failure)) => failures.lock().unwrap().push(failure),
                        None => return,
                    }
                }
            });
        }
    });
    let (endings, failures) = (endings.into_inner().unwrap(), failures.into_inner().unwrap());
    let count = |ending: Ending| endings.iter().filter(|other| **other == ending).count() as u64;
    let [survived, came_back, stayed_away] =
        [Ending::Survived, Ending::CameBack, Ending::StayedAway].map(count);
    println!("{survived} survived, {came_back} were killed and came back, {stayed_away} never came back");
    let first: Vec<&str> = failures.iter().take(5).map(String::as_str).collect();
    assert!(
        failures.is_empty(),
        "{} of {schedules} schedules fail:\n\n{}",
        failures.len(),
        first.join("\n\n")
    );
    assert!(came_back * 10 >= schedules && stayed_away * 4 >= schedules, "too few clients were killed");
}
