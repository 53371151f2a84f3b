//! Nothing leaks: requests fail and the program is killed at every step, and in half of the schedules it never comes back.
//!
//! Each schedule is one case with its own cloud and journal. If the client comes back, it runs `gc`; then nothing is left
//! and its bill is that of the cloud, to the second. If it does not, the cloud has deleted everything after the time to live.
//! The journal then has a bill that is exact, or one that is marked as an upper bound, and is one.

use std::cmp::Ordering as CmpOrdering;
use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cudock_azure_testkit::{CloudSettings, Schedule};

use super::world::{JournalEntries, World};

/// How many schedules run, and the seed that they are made from.
const SCHEDULES: &str = "CUDOCK_TEST_SCHEDULES";
const SEED: &str = "CUDOCK_TEST_SEED";

const TTL: Duration = Duration::from_secs(3600);
/// The reaper fires every 15 minutes, and takes itself away when it is sure that everything else is gone.
const REAPER_ALLOWANCE: Duration = Duration::from_secs(2 * 3600);
const NAME: &str = "leak-check";
/// A return that a fault disturbs again is repeated.
const MOST_RETURNS: usize = 4;

/// The commands of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    /// `up` of a job: create, wait, fetch the output, delete.
    Attached,
    /// `up --detach`, then `down`.
    DetachedThenDown,
    /// `up` of a job, then `resume` if the command was killed.
    Resumed,
    /// `up --detach` of a service, then `down`.
    Service,
    /// `up` of a job on Spot machines, all of which are evicted.
    Evicted,
    /// `sweep`: trials as tasks of Batch, or as a job of Machine Learning.
    Sweep,
    /// `sweep`: trials as single jobs of Machine Learning.
    SingleJobs,
}

/// A service, the flags that it needs besides those of all, and what is done with it.
#[derive(Debug, Clone, Copy)]
struct Case {
    target: &'static str,
    flags: &'static [&'static str],
    scenario: Scenario,
}

const fn case(target: &'static str, flags: &'static [&'static str], scenario: Scenario) -> Case {
    Case { target, flags, scenario }
}

const REAPER: &str = "/subscriptions/11111111-2222-4333-8444-555555555555/resourceGroups/shared/providers/Microsoft.ManagedIdentity/userAssignedIdentities/reaper";
const ENDPOINT: &[&str] = &["--workspace", "shared/workspace", "--ready-path", "/health"];
const WORKSPACE: &[&str] = &["--workspace", "shared/workspace"];
const PRICE: &[&str] = &["--price", "0.10"];
const OUTPUTS: &[&str] = &["--outputs", "results/*"];

const CASES: [Case; 24] = [
    case("vm", &[], Scenario::Attached),
    case("batch", &[], Scenario::Attached),
    case("ml", WORKSPACE, Scenario::Attached),
    case("container-apps", &[], Scenario::Attached),
    case("aci", PRICE, Scenario::Attached),
    case("vm", &[], Scenario::DetachedThenDown),
    case("batch", &[], Scenario::DetachedThenDown),
    case("ml", WORKSPACE, Scenario::DetachedThenDown),
    case("container-apps", &[], Scenario::DetachedThenDown),
    case("aci", PRICE, Scenario::DetachedThenDown),
    case("vm", &[], Scenario::Resumed),
    case("batch", &[], Scenario::Resumed),
    case("container-apps", &[], Scenario::Resumed),
    case("vm", &[], Scenario::Service),
    case("ml", ENDPOINT, Scenario::Service),
    case("container-apps", &["--public"], Scenario::Service),
    case("vm", &["--spot", "--try", "2"], Scenario::Evicted),
    case("batch", &["--batch-account", "shared/sharedbatch"], Scenario::Attached),
    case("container-apps", &["--environment", "shared/environment"], Scenario::DetachedThenDown),
    case("vm", &["--reaper-identity", REAPER], Scenario::Attached),
    case("batch", OUTPUTS, Scenario::Attached),
    case("batch", &[], Scenario::Sweep),
    case("ml", WORKSPACE, Scenario::Sweep),
    case("ml", WORKSPACE, Scenario::SingleJobs),
];

impl Case {
    fn world(&self, seed: u64) -> Option<World> {
        let evict_after = (self.scenario == Scenario::Evicted).then_some(60);
        let shared_region = "swedencentral";
        let settings = CloudSettings { seed, evict_after, shared_region, ..CloudSettings::default() };
        let mut world = World::new(settings)?;
        world.keeps_outputs = self.flags == OUTPUTS;
        if self.scenario == Scenario::Service {
            world.write("cudock.toml", "[workload]\nkind = \"serve\"\nrate = 1\n\n[needs]\ngpu = [\"T4\"]\n");
        }
        if self.is_sweep() {
            let is_native = self.target == "ml" && self.scenario == Scenario::Sweep;
            let metrics = if is_native { "mlflow" } else { "stdout" };
            let manifest = format!(
                "[needs]\ngpu = [\"T4\"]\n\n[sweep]\ncommand = [\"python\", \"train.py\"]\nimage = \"{}\"\n\
                 objectives = [{{ metric = \"loss\", goal = \"minimize\" }}]\nmetrics = {{ from = \"{metrics}\" }}\n\
                 parameters.lr = {{ uniform = [0, 1] }}\nlimits = {{ trials = 3, concurrent = 1, trial_timeout = \"20m\" }}\n",
                world.image()
            );
            world.write("cudock.toml", &manifest);
        }
        Some(world)
    }

    /// The flag of the region, unless an existing resource decides it.
    fn region(&self) -> &'static [&'static str] {
        let is_shared = self.flags.iter().any(|flag| flag.starts_with("shared/"));
        if is_shared { &[] } else { &["--region", "eastus"] }
    }

    fn is_sweep(&self) -> bool {
        matches!(self.scenario, Scenario::Sweep | Scenario::SingleJobs)
    }

    /// Runs it until its end or death; whether it was killed.
    fn play(&self, world: &mut World) -> bool {
        if self.is_sweep() {
            let mut sweep = vec!["sweep", ".", "--on", self.target, "--name", NAME, "--ttl", "1h"];
            sweep.extend(self.region().iter().chain(self.flags));
            return world.run(&sweep).was_killed;
        }
        let image = world.image();
        let mut up = vec!["up", ".", "--on", self.target, "--name", NAME, "--image", &image, "--ttl", "1h"];
        up.extend(self.region().iter().chain(self.flags));
        let is_detached = matches!(self.scenario, Scenario::DetachedThenDown | Scenario::Service);
        if is_detached {
            up.push("--detach");
        }
        if self.scenario != Scenario::Service {
            up.extend(["--", "python", "train.py"]);
        }
        let first = world.run(&up);
        if first.was_killed || !is_detached || !first.output.status.success() {
            return first.was_killed;
        }
        world.run(&["down", NAME]).was_killed
    }
}

/// The report of `cudock cost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bill {
    Exact,
    /// Less was billed, or the same.
    AtMost,
}

/// The bill of somebody who has seen everything.
fn exact(bill: Result<Bill, String>) -> Result<(), String> {
    match bill? {
        Bill::Exact => Ok(()),
        Bill::AtMost => Err("cost says that the bill is not exact".to_owned()),
    }
}

/// The client comes back and cleans up.
fn return_and_clean(world: &mut World) -> Result<Bill, String> {
    for _ in 0..MOST_RETURNS {
        if world.run(&["gc"]).output.status.success() {
            return check_clean(world);
        }
    }
    Err("gc does not succeed".to_owned())
}

/// Nothing is left, and the journal agrees.
fn check_clean(world: &mut World) -> Result<Bill, String> {
    world.check_gone()?;
    let records = world.stand_in.records();
    if !records.is_empty() {
        return Err(format!("records are left: {records:?}"));
    }
    let billed = world.stand_in.billed_seconds();
    let cost = world.run(&["cost", NAME, "--format", "json"]).output;
    match World::journal_entries(&cost)? {
        // It was killed before it knew what it was going to do.
        None if billed == 0 => Ok(Bill::Exact),
        None => Err(format!("{billed} s were billed, and the journal does not know of it")),
        Some(entry) if entry.state != "gone" => Err(format!("the journal says {}", entry.state)),
        Some(JournalEntries { seconds, is_exact, .. }) => match seconds.cmp(&billed) {
            CmpOrdering::Equal => Ok(if is_exact { Bill::Exact } else { Bill::AtMost }),
            CmpOrdering::Greater if !is_exact => Ok(Bill::AtMost),
            _ => Err(format!("cost says {seconds} s (exact: {is_exact}), and {billed} s were billed")),
        },
    }
}

/// How a schedule ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Survived,
    /// It was killed, and came back.
    CameBack,
    /// It was killed, and the cloud cleaned up.
    StayedAway {
        bill: Bill,
    },
}

/// Runs one schedule. An error describes the fault and everything that led to it.
fn check_schedule(seed: u64, index: u64, requests: &[u64]) -> Option<Result<Ending, String>> {
    let number = usize::try_from(index).unwrap() % CASES.len();
    let case = CASES[number];
    let mut world = case.world(seed.wrapping_add(index))?;
    let schedule = Schedule::generate(seed, index / CASES.len() as u64, requests[number]);
    world.stand_in.set_schedule(schedule.clone());
    let was_killed = case.play(&mut world);
    let result = match (was_killed, schedule.comes_back) {
        (false, _) => exact(return_and_clean(&mut world)).map(|()| Ending::Survived),
        (true, true) => {
            if case.scenario == Scenario::Resumed {
                world.run(&["resume", NAME]);
            }
            exact(return_and_clean(&mut world)).map(|()| Ending::CameBack)
        }
        (true, false) => {
            world.stand_in.advance(TTL + REAPER_ALLOWANCE);
            let bill = world.check_gone().and_then(|()| return_and_clean(&mut world));
            bill.map(|bill| Ending::StayedAway { bill })
        }
    };
    Some(result.map_err(|reason| {
        format!(
            "seed {seed}, schedule {index}: {case:?}, {schedule:?}\n{reason}\n{}\nrequests:\n  {}",
            world.transcript,
            world.stand_in.requests().join("\n  ")
        )
    }))
}

/// Runs without faults, which succeed and leave nothing; returns how many requests each makes.
fn requests_without_faults(seed: u64) -> Option<Vec<u64>> {
    let count = |case: &Case| {
        let mut world = case.world(seed)?;
        case.play(&mut world);
        let requests = world.stand_in.requests().len() as u64;
        let is_evicted = world.transcript.contains("was evicted, and no other placement is left");
        assert_eq!(is_evicted, case.scenario == Scenario::Evicted, "{case:?}\n{}", world.transcript);
        assert!(
            is_evicted
                || !world.transcript.contains("exit code 2") && !world.transcript.contains("exit code 3"),
            "{case:?}\n{}",
            world.transcript
        );
        if let Err(reason) = exact(check_clean(&mut world)) {
            let requests = world.stand_in.requests();
            panic!("{case:?}, without faults: {reason}\n{}\n{requests:#?}", world.transcript);
        }
        let kept = world.stand_in.blobs();
        assert_eq!(kept.len(), if case.flags == OUTPUTS { 3 } else { 0 }, "{case:?}: {kept:?}");
        assert!(world.stand_in.billed_seconds() > 0, "{case:?} was never billed\n{}", world.transcript);
        Some(requests)
    };
    CASES.iter().map(count).collect()
}

fn setting(name: &str, default: u64) -> u64 {
    env::var(name)
        .map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

#[test]
fn nothing_is_left_and_every_billed_second_is_known_whatever_fails() {
    let (schedules, seed) = (setting(SCHEDULES, 60), setting(SEED, 1));
    println!("{schedules} schedules of seed {seed}: {SCHEDULES} and {SEED} select others");
    let Some(requests) = requests_without_faults(seed) else { return };
    println!("requests of each case without faults: {requests:?}");
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
    let [survived, came_back] = [Ending::Survived, Ending::CameBack].map(count);
    let [exact, at_most] = [Bill::Exact, Bill::AtMost].map(|bill| count(Ending::StayedAway { bill }));
    let stayed_away = exact + at_most;
    println!(
        "{survived} survived, {came_back} were killed and came back, {stayed_away} never came back; of these, \
         {exact} bills are exact, and {at_most} are what was billed at most"
    );
    let first: Vec<&str> = failures.iter().take(5).map(String::as_str).collect();
    assert!(
        failures.is_empty(),
        "{} of {schedules} schedules fail:\n\n{}",
        failures.len(),
        first.join("\n\n")
    );
    assert!(came_back * 10 >= schedules && stayed_away * 4 >= schedules, "too few clients were killed");
}
