//! Output of Batch tasks whose nodes are gone.

use std::time::Duration;

use cudock_azure_testkit::CloudSettings;

use super::world::World;
use crate::support::{code, shown};

const UP: [&str; 8] = ["up", ".", "--on", "batch", "--name", "train", "--region", "eastus"];

/// The arguments of a job with these flags.
fn up<'a>(image: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    [&UP[..], &["--image", image], flags, &["--", "python", "train.py"]].concat()
}

/// The output of `logs` for a job whose pool is gone.
fn logs_without_nodes(keeps_outputs: bool) -> Option<(World, String)> {
    let mut world = World::new(CloudSettings::default())?;
    world.keeps_outputs = keeps_outputs;
    let image = world.image();
    let output = world.run(&up(&image, &["--detach"])).output;
    assert_eq!(code(&output), 0, "{}", shown(&output));
    world.stand_in.advance(Duration::from_secs(600));
    // The job ends when it is looked at, and then its pool is deleted.
    let listed = world.run(&["ps"]).output;
    assert_eq!(code(&listed), 0, "{}", shown(&listed));
    world.stand_in.advance(Duration::from_secs(600));
    let logs = world.run(&["logs", "train"]).output;
    assert_eq!(code(&logs), 0, "{}", shown(&logs));
    Some((world, String::from_utf8(logs.stdout).unwrap()))
}

#[test]
fn logs_outlive_the_pool_where_outputs_are_kept() {
    let Some((world, logs)) = logs_without_nodes(true) else { return };
    assert!(logs.starts_with("hello from the stand-in\n"), "{logs:?}");
    let kept = world.stand_in.blobs();
    assert!(kept.len() == 2 && kept.iter().all(|name| name.contains("/main/std")), "{kept:?}");
    let Some((world, logs)) = logs_without_nodes(false) else { return };
    assert_eq!((logs.as_str(), world.stand_in.blobs().len()), ("", 0), "they are on the nodes only");
}

#[test]
fn files_that_match_are_uploaded_and_their_address_is_shown() {
    let Some(mut world) = World::new(CloudSettings::default()) else { return };
    world.keeps_outputs = true;
    let image = world.image();
    let output = world.run(&up(&image, &["--outputs", "results/*"])).output;
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(shown(&output).contains("hello from the stand-in"), "{}", shown(&output));
    let storage = world.stand_in.storage();
    let storage = storage.split_once('?').unwrap().0;
    assert!(shown(&output).contains(&format!("outputs in {storage}/")), "{}", shown(&output));
    let kept = world.stand_in.blobs();
    assert!(kept.iter().any(|name| name.ends_with("/main/files/results/loss.txt")), "{kept:?}");
    assert_eq!(kept.len(), 3, "and both logs: {kept:?}");
    world.check_gone().unwrap();
}

#[test]
fn a_signature_that_is_refused_fails_the_task() {
    let Some(mut world) = World::new(CloudSettings::default()) else { return };
    let image = world.image();
    let arguments = up(&image, &[]);
    let mut command = world.command(&arguments);
    let storage = world.stand_in.storage();
    let url = storage.split_once("sig=").unwrap().0;
    command.env("CUDOCK_OUTPUTS", format!("{url}sig=other"));
    let output = world.run_command(&mut command, &arguments).output;
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(world.stand_in.blobs().is_empty());
    world.check_gone().unwrap();
}

#[test]
fn outputs_need_storage_and_batch() {
    let Some(mut world) = World::new(CloudSettings::default()) else { return };
    let image = world.image();
    let output = world.run(&up(&image, &["--outputs", "results/*", "--dry-run"])).output;
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(shown(&output).contains("set CUDOCK_OUTPUTS"), "{}", shown(&output));
    world.keeps_outputs = true;
    let arguments =
        ["up", ".", "--on", "vm", "--image", &image, "--outputs", "results/*", "--dry-run", "--", "python"];
    let output = world.run(&arguments).output;
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(shown(&output).contains("--checkpoints DIR"), "{}", shown(&output));
    let output = world.run(&up(&image, &["--dry-run"])).output;
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(shown(&output).contains("\"filePattern\": \"../stdout.txt\""), "{}", shown(&output));
    let storage = world.stand_in.storage();
    let signature = storage.split_once("sig=").unwrap().1;
    assert!(!shown(&output).contains(signature), "it is a secret");
}
