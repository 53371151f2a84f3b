//! Accounts, workspaces and environments that exist: their region and their own properties decide.

use std::process::Output;

use cudock_azure_testkit::CloudSettings;

use super::world::World;
use crate::support::{code, json, shown};

/// Each service with something of the user's in a region that no plan begins with.
const CASES: [(&str, &[&str], &str); 3] = [
    ("batch", &["--batch-account", "shared/sharedbatch"], "Batch account `shared/sharedbatch`"),
    ("ml", &["--workspace", "shared/workspace"], "Machine Learning workspace `shared/workspace`"),
    (
        "container-apps",
        &["--environment", "shared/environment"],
        "Container Apps environment `shared/environment`",
    ),
];

const REGION: &str = "swedencentral";

fn world(settings: CloudSettings) -> Option<World> {
    World::new(CloudSettings { shared_region: REGION, ..settings })
}

fn up(world: &mut World, target: &str, flags: &[&str]) -> Output {
    let image = world.image();
    let mut arguments = vec!["up", ".", "--on", target, "--name", "train", "--image", &image];
    arguments.extend(flags);
    arguments.extend(["--", "python", "train.py"]);
    world.run(&arguments).output
}

fn nothing_was_created(world: &World) {
    assert!(
        !world.stand_in.requests().iter().any(|request| request.starts_with("PUT")),
        "{}",
        world.transcript
    );
}

/// The region and the size of a deployment, as the journal knows them.
fn place(world: &mut World) -> (String, String) {
    let report = json(&world.run(&["cost", "train", "--offline", "--format", "json"]).output);
    let text = |field: &str| report["deployments"][0][field].as_str().unwrap_or_default().to_owned();
    (text("region"), text("size"))
}

#[test]
fn work_runs_where_the_account_workspace_or_environment_is() {
    for (target, flags, _) in CASES {
        let Some(mut world) = world(CloudSettings::default()) else { return };
        let output = up(&mut world, target, flags);
        assert_eq!(code(&output), 0, "{target}: {}", shown(&output));
        assert!(shown(&output).contains("hello from the stand-in"), "{target}: {}", shown(&output));
        assert_eq!(place(&mut world).0, REGION, "{target}");
        world.check_gone().unwrap_or_else(|left| panic!("{target}: {left}\n{}", world.transcript));
    }
}

#[test]
fn down_and_gc_use_the_host_that_was_recorded() {
    for (target, flags, _) in CASES {
        let Some(mut world) = world(CloudSettings { job_seconds: 100_000, ..CloudSettings::default() })
        else {
            return;
        };
        let output = up(&mut world, target, &[flags, &["--detach"]].concat());
        assert_eq!(code(&output), 0, "{target}: {}", shown(&output));
        let listed = world.run(&["ps"]).output;
        assert!(!shown(&listed).contains("state of the journal"), "{target}: {}", shown(&listed));
        let logs = world.run(&["logs", "train"]).output;
        assert_eq!(code(&logs), 0, "{target}: {}", shown(&logs));
        let down = world.run(&["down", "train"]).output;
        assert_eq!(code(&down), 0, "{target}: {}", shown(&down));
        world.check_gone().unwrap_or_else(|left| panic!("{target}: {left}\n{}", world.transcript));
    }
}

#[test]
fn another_region_than_that_of_the_resource_is_refused_and_both_are_named() {
    for (target, flags, description) in CASES {
        let Some(mut world) = world(CloudSettings::default()) else { return };
        let output = up(&mut world, target, &[flags, &["--region", "eastus"]].concat());
        let text = shown(&output);
        assert_eq!(code(&output), 2, "{target}: {text}");
        let expected = format!("the {description} is in {REGION}, and --region allows eastus");
        assert!(text.contains(&expected), "{target}: {text}");
        nothing_was_created(&world);
        let output = up(&mut world, target, &[flags, &["--region", "eastus,Sweden Central"]].concat());
        assert_eq!(code(&output), 0, "one of several regions is enough: {}", shown(&output));
    }
}

#[test]
fn what_does_not_exist_fails_preflight_with_what_to_do() {
    let cases = [
        ("batch", "--batch-account", "az batch account list"),
        ("ml", "--workspace", "az ml workspace list"),
        ("container-apps", "--environment", "az containerapp env list"),
    ];
    for (target, flag, command) in cases {
        for name in ["shared/missing", "missing/missing"] {
            let Some(mut world) = world(CloudSettings::default()) else { return };
            let output = up(&mut world, target, &[flag, name]);
            let text = shown(&output);
            assert_eq!(code(&output), 1, "{target}: {text}");
            assert!(text.contains("the subscription has no ") && text.contains(name), "{target}: {text}");
            assert!(text.contains(command), "{target}: {text}");
            nothing_was_created(&world);
        }
    }
}

#[test]
fn machines_that_exist_decide_the_size() {
    let nodes = "Standard_NC24ads_A100_v4";
    for (target, keys, what) in [
        ("batch", "batch_account = \"shared/sharedbatch\"\npool = \"always-on\"", "no pool `typo`"),
        ("ml", "workspace = \"shared/workspace\"\ncluster = \"gpus\"", "no cluster `typo`"),
    ] {
        let Some(mut world) = world(CloudSettings::default()) else { return };
        let manifest = format!(
            "[workload]\nkind = \"job\"\nduration = \"5m\"\n[targets.lab]\nservice = \"{target}\"\n{keys}\n"
        );
        world.write("cudock.toml", &manifest);
        let output = up(&mut world, "lab", &[]);
        assert_eq!(code(&output), 0, "{target}: {}", shown(&output));
        assert_eq!(place(&mut world), (REGION.to_owned(), nodes.to_owned()), "{target}");
        let other = up(&mut world, "lab", &["--size", "NC4as_T4_v3"]);
        assert_eq!(code(&other), 2, "{target}: {}", shown(&other));
        assert!(
            shown(&other).contains(&format!("has {nodes}, and --size allows NC4as_T4_v3")),
            "{}",
            shown(&other)
        );
        world.write("cudock.toml", &manifest.replace("always-on", "typo").replace("gpus", "typo"));
        let missing = up(&mut world, "lab", &[]);
        assert_eq!(code(&missing), 1, "{target}: {}", shown(&missing));
        assert!(shown(&missing).contains(what), "{target}: {}", shown(&missing));
    }
}

#[test]
fn trials_run_where_the_account_or_workspace_is() {
    for (target, flags, description) in &CASES[..2] {
        for metrics in ["stdout", "mlflow"] {
            if (*target, metrics) == ("batch", "mlflow") {
                continue;
            }
            let Some(mut world) = world(CloudSettings::default()) else { return };
            let manifest = format!(
                "[needs]\ngpu = [\"T4\"]\n[sweep]\ncommand = [\"python\", \"train.py\"]\nimage = \"{}\"\n\
                 objectives = [{{ metric = \"loss\", goal = \"minimize\" }}]\nmetrics = {{ from = \"{metrics}\" }}\n\
                 parameters.lr = {{ uniform = [0, 1] }}\nlimits = {{ trials = 2, concurrent = 1, trial_timeout = \"20m\" }}\n",
                world.image()
            );
            world.write("cudock.toml", &manifest);
            let sweep = |world: &mut World, more: &[&str]| {
                let start = ["sweep", ".", "--on", target, "--name", "train", "--ttl", "1h"];
                world.run(&[&start, *flags, more].concat()).output
            };
            let refused = sweep(&mut world, &["--region", "eastus"]);
            assert_eq!(code(&refused), 2, "{target}: {}", shown(&refused));
            assert!(
                shown(&refused).contains(&format!("the {description} is in {REGION}")),
                "{}",
                shown(&refused)
            );
            nothing_was_created(&world);
            let output = sweep(&mut world, &[]);
            assert_eq!(code(&output), 0, "{target} {metrics}: {}", shown(&output));
            assert_eq!(place(&mut world).0, REGION, "{target}");
            world.check_gone().unwrap_or_else(|left| panic!("{target}: {left}\n{}", world.transcript));
        }
    }
    let Some(mut world) = world(CloudSettings::default()) else { return };
    let manifest = format!(
        "[needs]\ngpu = [\"T4\"]\n[sweep]\ncommand = [\"python\"]\nimage = \"{}\"\n\
         objectives = [{{ metric = \"loss\", goal = \"minimize\" }}]\nparameters.lr = {{ uniform = [0, 1] }}\n\
         limits = {{ trials = 2, concurrent = 1 }}\n",
        world.image()
    );
    world.write("cudock.toml", &manifest);
    let sweep = ["sweep", ".", "--on", "ml", "--name", "train", "--workspace", "shared/missing"];
    let missing = world.run(&sweep).output;
    assert_eq!(code(&missing), 1, "{}", shown(&missing));
    assert!(
        shown(&missing).contains("no Machine Learning workspace `shared/missing`"),
        "{}",
        shown(&missing)
    );
    nothing_was_created(&world);
}
