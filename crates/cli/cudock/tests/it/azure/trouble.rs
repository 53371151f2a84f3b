//! Faults that happen in practice: clocks, throttling, conflicts, tokens, rights, newer services, and two commands at once.

use std::process::Output;
use std::thread;
use std::time::Duration;

use cudock_azure_testkit::{CloudSettings, Fault, Schedule};

use super::world::{JournalEntries, World};
use crate::support::{code, json, shown};

/// Each service, and the flags that it needs.
const TARGETS: [(&str, &[&str]); 5] = [
    ("vm", &[]),
    ("batch", &[]),
    ("ml", &["--workspace", "shared/workspace"]),
    ("container-apps", &[]),
    ("aci", &["--price", "0.10"]),
];

fn up(world: &mut World, target: &str, flags: &[&str]) -> Output {
    let image = world.image();
    let mut arguments =
        vec!["up", ".", "--on", target, "--name", "train", "--image", &image, "--region", "eastus"];
    arguments.extend(flags);
    arguments.extend(["--", "python", "train.py"]);
    world.run(&arguments).output
}

/// Nothing is left, and the journal has every billed second.
fn assert_clean(world: &mut World) {
    world.check_gone().unwrap_or_else(|left| panic!("{left}\n{}", world.transcript));
    let billed = world.stand_in.billed_seconds();
    let cost = world.run(&["cost", "train", "--format", "json"]).output;
    let known = JournalEntries { state: "gone".to_owned(), seconds: billed, is_exact: true };
    assert_eq!(World::journal_entries(&cost), Ok(Some(known)), "{}", world.transcript);
}

/// A job on every service in a cloud like this, with these faults at some requests. It succeeds and leaves nothing.
fn survives(settings: &CloudSettings, ahead: Duration, faults: &[(u64, Fault)]) {
    for (target, flags) in TARGETS {
        let Some(mut world) = World::new(settings.clone()) else { return };
        world.stand_in.advance(ahead);
        world.stand_in.set_schedule(Schedule { faults: faults.to_vec(), comes_back: true });
        let output = up(&mut world, target, flags);
        assert_eq!(code(&output), 0, "{target}: {}", shown(&output));
        assert_clean(&mut world);
    }
}

#[test]
fn a_clock_that_is_days_behind_does_no_harm() {
    survives(&CloudSettings::default(), Duration::from_secs(3 * 86_400), &[]);
}

#[test]
fn storms_of_429_and_conflicts_are_waited_out() {
    let storm = |at| (at, Fault::Throttle { requests: 12 });
    let faults = [storm(8), (24, Fault::Conflict), storm(28), (45, Fault::Conflict), storm(50)];
    survives(&CloudSettings::default(), Duration::ZERO, &faults);
}

#[test]
fn tokens_that_expire_after_a_minute_are_replaced() {
    let settings = CloudSettings { token_lifetime: 60, ..CloudSettings::default() };
    survives(&settings, Duration::ZERO, &[(15, Fault::ExpireTokens), (40, Fault::ExpireTokens)]);
}

#[test]
fn fields_of_newer_versions_are_ignored() {
    survives(&CloudSettings { has_newer_fields: true, ..CloudSettings::default() }, Duration::ZERO, &[]);
}

#[test]
fn without_the_right_to_assign_roles_nothing_is_created_and_a_hint_is_shown() {
    let settings = CloudSettings { may_assign_roles: false, ..CloudSettings::default() };
    let Some(mut world) = World::new(settings) else { return };
    let output = up(&mut world, "vm", &[]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(shown(&output).contains("Role Based Access Control Administrator"), "{}", shown(&output));
    assert!(!world.stand_in.requests().iter().any(|request| request.starts_with("PUT")));
}

#[test]
fn a_creation_that_azure_forbids_deletes_what_was_created() {
    let forbidden = ("AuthorizationFailed".to_owned(), "not allowed".to_owned());
    let failing = [("microsoft.compute/virtualmachines".to_owned(), forbidden)].into();
    let Some(mut world) = World::new(CloudSettings { failing, ..CloudSettings::default() }) else { return };
    let output = up(&mut world, "vm", &[]);
    assert_ne!(code(&output), 0, "{}", shown(&output));
    assert!(shown(&output).contains("step `vm` of deployment `train` failed"), "{}", shown(&output));
    assert_eq!(world.check_gone(), Ok(()));
}

#[test]
fn without_the_journal_also_what_is_outside_of_the_groups_is_deleted() {
    let cases: [(&str, &[&str]); 3] = [
        ("ml", &["--workspace", "shared/workspace"]),
        ("batch", &["--batch-account", "shared/sharedbatch"]),
        ("vm", &[]),
    ];
    for (target, flags) in cases {
        let settings = CloudSettings { job_seconds: 100_000, ..CloudSettings::default() };
        let Some(mut world) = World::new(settings) else { return };
        let output = up(&mut world, target, &[flags, &["--detach"]].concat());
        assert_eq!(code(&output), 0, "{target}: {}", shown(&output));
        assert!(!world.stand_in.billed().is_empty(), "{target}");
        let state = world.home().join("state");
        for file in ["deployments.db", "deployments.db-wal", "deployments.db-shm"] {
            let _ = std::fs::remove_file(state.join(file));
        }
        // The Resource Graph lags behind.
        world.stand_in.advance(Duration::from_secs(300));
        let collected = world.run(&["gc"]).output;
        assert_eq!(code(&collected), 0, "{target}: {}", shown(&collected));
        world.check_gone().unwrap_or_else(|left| panic!("{target}: {left}\n{}", world.transcript));
    }
}

#[test]
fn what_another_state_directory_runs_is_listed_and_deleted_only_if_it_is_named_or_expired() {
    let settings = CloudSettings { job_seconds: 100_000, ..CloudSettings::default() };
    let Some(mut world) = World::new(settings) else { return };
    let output = up(&mut world, "vm", &["--detach", "--ttl", "1h"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    world.stand_in.advance(Duration::from_secs(300));
    let billed = world.stand_in.billed();
    assert!(!billed.is_empty());
    let other = |world: &mut World, state: &str, arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("CUDOCK_STATE", world.home().join(state));
        world.run_command(&mut command, arguments).output
    };
    let listed = other(&mut world, "other", &["gc", "--format", "json"]);
    let found = json(&listed)["found"].clone();
    assert_eq!(
        (found[0]["name"].as_str(), found[0]["kept"].as_bool()),
        (Some("train"), Some(true)),
        "{found}"
    );
    assert_eq!(world.stand_in.billed(), billed, "{}", world.transcript);
    let run = found[0]["run_id"].as_str().unwrap().to_owned();
    let printed = other(&mut world, "other", &["gc"]);
    assert!(shown(&printed).contains(&format!("`cudock gc --run {run}`")), "{}", shown(&printed));
    assert_eq!(world.stand_in.billed(), billed, "{}", world.transcript);
    // The state directory that started it knows it, and leaves it alone.
    assert!(shown(&world.run(&["gc"]).output).contains("nothing was left behind"), "{}", world.transcript);
    // A lost state directory, which is the purpose of gc, counts as another one.
    std::fs::remove_dir_all(world.home().join("state")).unwrap();
    let lost = other(&mut world, "state", &["gc"]);
    assert!(shown(&lost).contains("another state directory of ada@"), "{}", shown(&lost));
    let deleted = other(&mut world, "state", &["gc", "--run", &run]);
    assert_eq!(code(&deleted), 0, "{}", shown(&deleted));
    world.check_gone().unwrap_or_else(|left| panic!("{left}\n{}", world.transcript));
}

#[test]
fn two_commands_at_once_share_the_journal_and_one_name_is_deployed_once() {
    let Some(mut world) = World::new(CloudSettings::default()) else { return };
    let image = world.image();
    let outputs: Vec<Output> = thread::scope(|scope| {
        let names = ["one", "two", "same", "same"];
        let commands = names.map(|name| {
            let arguments = [
                "up", ".", "--on", "aci", "--name", name, "--image", &image, "--region", "eastus", "--detach",
            ];
            let mut command = world.command(&arguments);
            command.envs(world.stand_in.environment());
            scope.spawn(move || command.output().unwrap())
        });
        commands.into_iter().map(|command| command.join().unwrap()).collect()
    });
    let codes: Vec<i32> = outputs.iter().map(code).collect();
    let texts = || outputs.iter().map(shown).collect::<Vec<_>>().join("\n");
    assert_eq!(codes[..2], [0, 0], "{}", texts());
    assert_eq!(codes[2..].iter().filter(|code| **code == 0).count(), 1, "{}", texts());
    assert!(texts().contains("same"), "{}", texts());
    let down = world.run(&["down", "--all"]).output;
    assert_eq!(code(&down), 0, "{}", shown(&down));
    assert_eq!(world.check_gone(), Ok(()));
}
