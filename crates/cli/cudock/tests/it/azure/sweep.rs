//! Sweeps whose trials are jobs of a service.

use cudock_azure_testkit::CloudSettings;
use serde_json::Value;

use super::world::World;
use crate::support::{code, json, shown};

/// A sweep of four trials, two on each of two sizes. The stand-in's jobs report losses of 0.5 and 0.25.
fn manifest(image: &str) -> String {
    format!(
        "[sweep]\ncommand = [\"python\", \"train.py\"]\nimage = \"{image}\"\nsampler = \"grid\"\n\
         objectives = [{{ metric = \"loss\", goal = \"minimize\", target = 0.25 }}]\n\
         limits = {{ concurrent = 2, trial_timeout = \"20m\" }}\n\
         [sweep.parameters]\nlr = {{ choice = [0.1, 0.2] }}\n\
         node = {{ sizes = [\"NC4as_T4_v3\", \"Standard_NC24ads_A100_v4\"] }}\n"
    )
}

fn sweep(world: &mut World, further: &[&str]) -> std::process::Output {
    let mut arguments = vec!["sweep", ".", "--name", "sizes", "--ttl", "1h", "--region", "eastus"];
    arguments.extend(["--format", "json"].iter().chain(further));
    world.run(&arguments).output
}

/// Four trials succeeded, each at the price of its size, and nothing is left.
fn check(world: &World, output: &std::process::Output) {
    assert_eq!(code(output), 0, "{}", world.transcript);
    let report = json(output);
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 4, "{report}");
    let price = |trial: &Value| trial["cost"].as_f64().unwrap() / trial["seconds"].as_f64().unwrap() * 3600.0;
    for trial in trials {
        assert_eq!(trial["state"], "succeeded", "{trial}");
        let is_large = trial["parameters"]["node"] == "Standard_NC24ads_A100_v4";
        assert_eq!(price(trial) > 2.0, is_large, "{trial}");
    }
    let cheapest = report["cheapest"].as_array().unwrap();
    assert_eq!(cheapest.len(), 2, "{report}");
    assert_eq!(cheapest[0]["size"], "NC4as_T4_v3", "{report}");
    // By the clock of the service, on which each request takes five seconds.
    for one in cheapest {
        assert!(one["seconds"].as_f64() >= Some(5.0), "{report}");
    }
    world.check_gone().unwrap_or_else(|left| panic!("{left}\n{}", world.transcript));
}

#[test]
fn trials_on_batch_run_on_the_size_that_they_choose() {
    let Some(mut world) = World::new(CloudSettings::default()) else { return };
    let image = world.image();
    world.write("cudock.toml", &manifest(&image));
    let output = sweep(&mut world, &["--on", "batch"]);
    check(&world, &output);
    // This machine has no sizes to choose from.
    let local = world.run(&["sweep", ".", "--name", "sizes"]).output;
    assert_eq!(code(&local), 2, "{}", shown(&local));
    assert!(shown(&local).contains("parameter `node` chooses sizes of Azure"), "{}", shown(&local));
}

#[test]
fn trials_that_the_service_cannot_run_as_a_sweep_are_jobs_of_their_own() {
    let Some(mut world) = World::new(CloudSettings::default()) else { return };
    let image = world.image();
    let limited = manifest(&image).replace("limits = {", "retries = 0\nlimits = { trials = 4,");
    world.write("cudock.toml", &limited);
    let output = sweep(&mut world, &["--on", "ml", "--workspace", "shared/workspace"]);
    check(&world, &output);
    let reason = "each trial is a job of its own: parameter `node` chooses sizes";
    assert!(shown(&output).contains(reason), "{}", shown(&output));
}
