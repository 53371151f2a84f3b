//! Kills a sweep, its workers and its trials at random moments: every result counts once, and nothing is left.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cudock_base::Rng;
use cudock_sweep::{Event, TrialStatus};
use rustix::process::{Pid, Signal, kill_process};

use super::local_support::{TestSweep, wait_until};

/// Trials of each sweep.
const TRIALS: usize = 6;

/// Prints its score, and leaves a daemon in every other trial, which ignores polite signals.
const SCRIPT: &str = r#"
x=$CUDOCK_PARAM_X
case $x in *[02468]) (trap '' TERM; exec setsid sleep 1000) & ;; esac
echo "step=1 score=0"
sleep 0.0$((x % 4 + 1))
echo "step=2 score=$x"
"#;

fn kill(pid: i32) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

/// Whose process it is: the sweep's, a worker's or a trial's.
fn is_trial(pid: i32) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(b"CUDOCK_TRIAL_DIR="))
}

/// Runs a sweep through some kills, and then to its end. Returns what was killed.
fn schedule(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let keys = "parameters = { X = { choice = [1, 2, 3, 4, 5, 6] } }\nsampler = \"grid\"\nretries = 1000";
    let sweep = TestSweep::new(SCRIPT, keys);
    let flags = ["--concurrent", "3", "--grace", "50ms"];
    let mut history = String::new();
    for _ in 0..=rng.below(3) {
        let mut process = sweep.start(&flags);
        let own = i32::try_from(process.id()).unwrap();
        let wait = rng.below(120);
        std::thread::sleep(Duration::from_millis(wait));
        let all = sweep.processes();
        let others: Vec<i32> = all.iter().copied().filter(|pid| *pid != own).collect();
        let (trials, workers): (Vec<i32>, Vec<i32>) = others.iter().partition(|pid| is_trial(**pid));
        let one =
            |from: &[i32], rng: &mut Rng| from.get(rng.below(from.len().max(1) as u64) as usize).copied();
        let kind = rng.below(7);
        let _ = write!(history, "after {wait} ms kind {kind}; ");
        match kind {
            0 => kill(own),
            1 => one(&workers, &mut rng).into_iter().for_each(kill),
            2 => one(&trials, &mut rng).into_iter().for_each(kill),
            3 => workers.iter().copied().chain([own]).for_each(kill),
            4 => {
                [own].into_iter().chain(workers.iter().copied()).chain(trials.iter().copied()).for_each(kill);
            }
            5 => one(&trials, &mut rng).into_iter().chain([own]).for_each(kill),
            _ => one(&workers, &mut rng).into_iter().chain([own]).for_each(kill),
        }
        if matches!(kind, 1 | 2) {
            std::thread::sleep(Duration::from_millis(rng.below(60)));
            kill(own);
        }
        process.wait().unwrap();
    }
    let output = sweep.run(&flags);
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "seed {seed}: {history}\n{shown}");

    let mut ends: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for record in sweep.records() {
        if let Event::Ended { trial, attempt, .. } = record.event {
            *ends.entry((trial.0, attempt)).or_default() += 1;
        }
    }
    assert!(ends.values().all(|count| *count == 1), "seed {seed}: {history}\n{ends:?}");
    let replayed = sweep.sweep();
    assert_eq!(replayed.trials().len(), TRIALS, "seed {seed}: {history}");
    for trial in replayed.trials() {
        assert_eq!(trial.status, TrialStatus::Succeeded, "seed {seed}: {history}\n{trial:?}\n{shown}");
        let expected: f64 = trial.parameters["X"].to_string().parse().unwrap();
        assert_eq!(trial.result, Some(vec![expected]), "seed {seed}: {history}");
        let last = trial.attempt().unwrap();
        assert_eq!(last.curves["score"].len(), 2, "seed {seed}: {history}\n{trial:?}");
        assert_eq!(ends.keys().filter(|(id, _)| *id == trial.id.0).count(), trial.attempts.len());
    }
    // A worker that was started just before its sweep was killed ends by itself.
    wait_until(&format!("seed {seed}: {history} no process is left"), || sweep.processes().is_empty());
    history
}

/// Runs schedules on some threads. The seed of the first is printed, and `CUDOCK_SWEEP_SEED` repeats them.
fn schedules(count: u64) {
    let seed = std::env::var("CUDOCK_SWEEP_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = seed.unwrap_or_else(|| u64::from(std::process::id()) * 1_000_000);
    println!("CUDOCK_SWEEP_SEED={first}");
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    schedule(first + index);
                }
            });
        }
    });
}

#[test]
fn results_count_once_and_nothing_is_left_whoever_is_killed() {
    schedules(60);
}

#[test]
#[ignore = "takes minutes: cargo test -p cudock-sweep-run -- --ignored 500"]
fn results_count_once_in_500_schedules() {
    schedules(500);
}
