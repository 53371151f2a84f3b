//! Deployments as a user types them, without a network.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{code, cudock, json, shown};

/// A command whose journal and project are in a directory, and that cannot sign in anywhere.
fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = cudock(arguments);
    command
        .current_dir(directory)
        .env("CUDOCK_STATE", directory.join("state"))
        .env("CUDOCK_DATA", directory.join("data"))
        .env("CUDOCK_AZURE_RESOURCE_MANAGER", "http://127.0.0.1:9")
        .env_remove("AZURE_SUBSCRIPTION_ID")
        .env("AZURE_CONFIG_DIR", directory.join("az"));
    command
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments).output().unwrap()
}

fn project() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let text = "name = \"train\"\n[workload]\nkind = \"job\"\nduration = \"1h\"\nimage = \"team.azurecr.io/train:1\"\n\
                [needs]\ngpu = \"T4\"\n[deploy]\nregions = [\"westeurope\"]\n\
                [targets.lab]\nservice = \"batch\"\nbatch_account = \"shared/gpubatch\"\npool = \"always-on\"\n";
    std::fs::write(directory.path().join("cudock.toml"), text).unwrap();
    directory
}

/// Tables with the size of a T4 and its prices under another name, which no other table knows.
fn overlay_with_size(name: &str) -> tempfile::TempDir {
    const KNOWN: &str = "Standard_NC4as_T4_v3";
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../facts/facts/data");
    let directory = tempfile::tempdir().unwrap();
    let sizes = std::fs::read_to_string(tables.join("azure_sizes.toml")).unwrap();
    let (header, rows) = sizes.split_once("[[size]]").unwrap();
    let row = rows.split("[[size]]").find(|row| row.contains(&format!("name = \"{KNOWN}\""))).unwrap();
    let row = row.replace(KNOWN, name);
    std::fs::write(directory.path().join("azure_sizes.toml"), format!("{header}[[size]]{row}")).unwrap();
    let prices = std::fs::read_to_string(tables.join("azure_prices.csv")).unwrap();
    let is_kept = |line: &&str| line.starts_with('#') || line.starts_with("size,") || line.starts_with(KNOWN);
    let prices: Vec<String> = prices.lines().filter(is_kept).map(|line| line.replace(KNOWN, name)).collect();
    std::fs::write(directory.path().join("azure_prices.csv"), prices.join("\n") + "\n").unwrap();
    directory
}

#[test]
fn a_size_that_only_the_users_tables_have_is_ranked_and_deployed() {
    let name = "Standard_NC4as_T4_v9";
    let (directory, tables) = (project(), overlay_with_size(name));
    for service in ["vm", "batch"] {
        let arguments = ["up", ".", "--on", service, "--size", name, "--dry-run", "--", "python", "train.py"];
        let output = run(directory.path(), &arguments);
        assert_eq!(code(&output), 2, "without the tables: {}", shown(&output));
        let overlaid = [&["--facts", tables.path().to_str().unwrap()][..], &arguments].concat();
        let output = run(directory.path(), &overlaid);
        let text = shown(&output);
        assert_eq!(code(&output), 0, "{service}: {text}");
        assert!(text.contains(&format!("\"{name}\"")), "{service}: {text}");
    }
}

#[test]
fn a_dry_run_prints_every_request_and_sends_none() {
    let directory = project();
    for target in ["vm", "batch", "container-apps"] {
        let secret = format!("{}-{}", "word", "of-honor");
        let arguments = [
            "up",
            ".",
            "--on",
            target,
            "--dry-run",
            "--env",
            "TOKEN",
            "--env",
            "MODE=fast",
            "--",
            "python",
            "train.py",
        ];
        let output = command(directory.path(), &arguments).env("TOKEN", &secret).output().unwrap();
        let text = shown(&output);
        assert_eq!(code(&output), 0, "{target}: {text}");
        assert!(
            text.contains(
                "PUT /subscriptions/SUBSCRIPTION/providers/Microsoft.Resources/deployments/cudock-"
            ),
            "{text}"
        );
        assert!(text.contains("DELETE /subscriptions/SUBSCRIPTION/resourceGroups/cudock-"), "{text}");
        assert!(text.contains("billed from here on"), "{text}");
        assert!(!text.contains(&secret), "{target}");
        assert!(!directory.path().join("state").exists());
    }
}

#[test]
fn a_named_target_is_a_service_and_what_exists_there() {
    let directory = project();
    let output = run(directory.path(), &["up", ".", "--on", "lab", "--dry-run", "--", "python"]);
    let text = shown(&output);
    assert_eq!(code(&output), 0, "{text}");
    assert!(text.contains("\"poolId\": \"always-on\"") && text.contains("on Batch in westeurope"), "{text}");
    assert!(!text.contains("autoPoolSpecification"), "{text}");
}

#[test]
fn wrong_input_is_refused_before_any_request() {
    let directory = project();
    for (arguments, message) in [
        (
            vec!["up", ".", "--on", "mars", "--dry-run"],
            "expected one of vm, batch, ml, container-apps, aci, lab",
        ),
        (vec!["up", ".", "--on", "vm", "--dry-run", "--ttl", "1m"], "too short"),
        (vec!["up", ".", "--on", "vm", "--dry-run", "--budget", "0.01"], "the budget is enough for"),
        (
            vec!["up", ".", "--on", "aci", "--dry-run", "--region", "westeurope", "--budget", "5"],
            "the price is unknown",
        ),
        (vec!["up", ".", "--on", "batch", "--dry-run", "--idle", "15m"], "the program that it ends"),
        (vec!["up", ".", "--on", "vm", "--dry-run", "--env", "NOT_SET_ANYWHERE"], "is not set here"),
        (
            vec!["up", ".", "--on", "vm", "--dry-run", "--size", "Standard_NC24ads_A100_v4"],
            "no size of Virtual Machine fits",
        ),
        (
            vec!["up", ".", "--on", "aci", "--dry-run", "--region", "westeurope", "--image", "oci:here"],
            "Azure cannot pull it",
        ),
        (vec!["up", ".", "--dry-run"], "--on"),
        (vec!["down"], "NAME"),
        (vec!["cost", "--offline"], "nothing was deployed yet"),
    ] {
        let output = run(directory.path(), &arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", shown(&output));
        assert!(shown(&output).contains(message), "{arguments:?}: {}", shown(&output));
    }
}

const GROUP: &str = "
name: api
location: West Europe
properties:
  osType: Linux
  restartPolicy: Never
  containers:
  - name: work
    properties:
      image: team.azurecr.io/work:1
      command: [python]
      resources: {requests: {cpu: 1, memoryInGB: 1.5}}
";

fn group() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("group.yaml"), GROUP).unwrap();
    directory
}

#[test]
fn a_group_is_deployed_to_its_location() {
    let directory = group();
    for target in ["aci", "vm", "batch", "container-apps"] {
        let up = ["up", "-f", "group.yaml", "--on", target, "--dry-run"];
        let text = shown(&run(directory.path(), &up));
        assert!(text.contains("\"location\": \"westeurope\""), "{target}: {text}");
        assert!(!text.contains("\"location\": \"eastus\""), "{target}: {text}");
        let other = [&up[..], &["--region", "swedencentral"]].concat();
        let text = shown(&run(directory.path(), &other));
        assert!(text.contains("\"location\": \"swedencentral\""), "a flag wins: {target}: {text}");
        assert!(!text.contains("westeurope"), "{target}: {text}");
    }
}

#[test]
fn a_location_without_what_the_group_needs_is_refused_and_named() {
    let directory = group();
    for location in ["eastus2", "atlantis"] {
        std::fs::write(directory.path().join("group.yaml"), GROUP.replace("West Europe", location)).unwrap();
        let output =
            run(directory.path(), &["up", "-f", "group.yaml", "--on", "container-apps", "--dry-run"]);
        assert_eq!(code(&output), 2, "{location}: {}", shown(&output));
        assert!(shown(&output).contains(location), "{location}: {}", shown(&output));
    }
}

#[test]
fn memory_is_rounded_up_to_what_container_instances_take() {
    let directory = project();
    for (memory, sent) in [("2GB", "1.9"), ("2GiB", "2.0"), ("100MB", "0.1"), ("1500MiB", "1.5")] {
        let up = ["up", ".", "--on", "aci", "--memory", memory, "--dry-run"];
        let text = shown(&run(directory.path(), &up));
        assert!(text.contains(&format!("\"memoryInGB\": {sent}\n")), "{memory}: {text}");
    }
}

#[test]
fn requests_that_are_only_shown_are_for_the_subscription_of_the_environment() {
    let directory = project();
    let manifest = "[sweep]\ncommand = [\"python\"]\nimage = \"team.azurecr.io/x:1\"\nmetrics = { from = \"mlflow\" }\n\
                    objectives = [{ metric = \"loss\", goal = \"minimize\" }]\nparameters.lr = { uniform = [0, 1] }\n\
                    limits = { trials = 2, concurrent = 1 }\n";
    let sweep = tempfile::tempdir().unwrap();
    std::fs::write(sweep.path().join("cudock.toml"), manifest).unwrap();
    let cases: [(&Path, &[&str]); 3] = [
        (directory.path(), &["up", ".", "--on", "vm", "--dry-run"]),
        (sweep.path(), &["sweep", ".", "--name", "x", "--on", "ml", "--workspace", "team/lab", "--dry-run"]),
        (sweep.path(), &["sweep", ".", "--name", "x", "--on", "batch", "--dry-run"]),
    ];
    for (directory, arguments) in cases {
        let manifest = directory.join("cudock.toml");
        if arguments.contains(&"batch") {
            let text = std::fs::read_to_string(&manifest).unwrap();
            std::fs::write(&manifest, text.replace("mlflow", "stdout")).unwrap();
        }
        let output =
            command(directory, arguments).env("AZURE_SUBSCRIPTION_ID", "1234-abcd").output().unwrap();
        let text = shown(&output);
        assert_eq!(code(&output), 0, "{arguments:?}: {text}");
        assert!(
            text.contains("/subscriptions/1234-abcd/") && !text.contains("SUBSCRIPTION"),
            "{arguments:?}: {text}"
        );
    }
}

#[test]
fn the_region_of_existing_resources_is_assumed_and_reported_only_without_a_request() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = "[workload]\nkind = \"job\"\nduration = \"1h\"\nimage = \"team.azurecr.io/x:1\"\n";
    std::fs::write(directory.path().join("cudock.toml"), manifest).unwrap();
    let up = ["up", ".", "--on", "batch", "--batch-account", "shared/gpubatch", "--dry-run"];
    let text = shown(&run(directory.path(), &up));
    assert!(text.contains("the region of the Batch account `shared/gpubatch` was not read"), "{text}");
    let text = shown(&run(directory.path(), &[&up[..], &["--region", "westeurope"]].concat()));
    assert!(!text.contains("was not read") && text.contains("on Batch in westeurope"), "{text}");
}

#[test]
fn a_service_that_does_not_do_the_work_is_the_reason_and_not_a_size() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = "[workload]\nkind = \"serve\"\nrate = 1\nimage = \"team.azurecr.io/x:1\"\n";
    std::fs::write(directory.path().join("cudock.toml"), manifest).unwrap();
    for target in ["vm", "container-apps", "ml", "batch"] {
        let up =
            ["up", ".", "--on", target, "--workspace", "team/lab", "--ready-path", "/health", "--dry-run"];
        let output = run(directory.path(), &up);
        let text = shown(&output);
        if target != "batch" {
            assert_eq!(code(&output), 0, "{target}: {text}");
            continue;
        }
        assert_eq!(code(&output), 2, "{text}");
        assert!(
            text.contains("cannot deploy to Batch: Batch runs jobs and does not serve requests"),
            "{text}"
        );
        assert!(text.contains("hint: --on container-apps, or --on ml, or --on vm"), "{text}");
    }
}

#[test]
fn the_reason_why_nothing_fits_is_that_of_a_size_that_could_be_had() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = "[workload]\nkind = \"job\"\nduration = \"1h\"\nimage = \"team.azurecr.io/x:1\"\n";
    std::fs::write(directory.path().join("cudock.toml"), manifest).unwrap();
    let cases: [(&[&str], &str); 2] = [
        (&["--on", "batch", "--region", "norwaywest"], "no known price in norwaywest"),
        (&["--on", "vm", "--size", "Standard_NC6"], "Standard_NC6: retired on 2023-09-06"),
    ];
    for (flags, expected) in cases {
        let output = run(directory.path(), &[&["up", ".", "--dry-run"], flags].concat());
        assert_eq!(code(&output), 2, "{flags:?}: {}", shown(&output));
        assert!(shown(&output).contains(expected), "{flags:?}: {}", shown(&output));
    }
}

#[test]
fn a_sweep_is_neither_deployed_nor_exported_as_a_job() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = "[sweep]\ncommand = [\"python\"]\nimage = \"team.azurecr.io/x:1\"\nparameters.lr = { uniform = [0, 1] }\n\
                    objectives = [{ metric = \"loss\", goal = \"minimize\" }]\n";
    std::fs::write(directory.path().join("cudock.toml"), manifest).unwrap();
    let ml = ["--on", "ml", "--workspace", "team/lab"];
    for verb in [&["export", "aml", ".", "-o", "x"][..], &["up", ".", "--dry-run"]] {
        let output = run(directory.path(), &[verb, &ml].concat());
        assert_eq!(code(&output), 2, "{verb:?}: {}", shown(&output));
        assert!(shown(&output).contains("the project is a sweep"), "{verb:?}: {}", shown(&output));
        assert!(shown(&output).contains("cudock sweep --on ml"), "{verb:?}: {}", shown(&output));
    }
}

#[test]
fn a_state_directory_that_cannot_be_created_is_reported_once() {
    let directory = project();
    std::fs::write(directory.path().join("state"), "a file").unwrap();
    let output = run(directory.path(), &["up", ".", "--on", "vm"]);
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains("cannot create directory "), "{}", shown(&output));
    assert!(!shown(&output).contains("cannot cannot"), "{}", shown(&output));
}

#[test]
fn ps_lists_deployments_beside_containers() {
    let directory = tempfile::tempdir().unwrap();
    let report = json(&run(directory.path(), &["ps", "--format", "json"]));
    assert_eq!(report, serde_json::json!({"schema": 1, "deployments": [], "containers": []}));
}

#[test]
fn a_damaged_journal_starts_nothing() {
    let directory = project();
    let state = directory.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("deployments.db"), "not a database".repeat(1000)).unwrap();
    for arguments in
        [&["up", ".", "--on", "vm"][..], &["ps"], &["gc"], &["cost"], &["down", "--all"], &["resume", "x"]]
    {
        let output = run(directory.path(), arguments);
        assert_eq!(code(&output), 3, "{arguments:?}: {}", shown(&output));
        assert!(shown(&output).contains("is damaged"), "{arguments:?}: {}", shown(&output));
        assert!(shown(&output).contains("cudock gc"), "{arguments:?}: {}", shown(&output));
    }
}

#[test]
fn a_disk_that_takes_no_more_bytes_starts_nothing() {
    let directory = project();
    // The limit of file sizes is the full disk of everyone. Its signal is ignored, so that the write fails.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" up . --on vm";
    let program = env!("CARGO_BIN_EXE_cudock");
    let mut shell = Command::new("sh");
    shell.args(["-c", script, program]).current_dir(directory.path());
    let output = shell.env("CUDOCK_STATE", directory.path().join("state")).output().unwrap();
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains("journal"), "{}", shown(&output));
}

#[test]
fn an_export_writes_files_without_secrets_and_sends_nothing() {
    let directory = project();
    let secret = format!("{}-{}", "word", "of-honor");
    let languages =
        [("arm", "main.json"), ("bicep", "main.bicep"), ("terraform", "main.tf"), ("az", "up.sh")];
    for (language, first) in languages {
        let arguments = [
            "export",
            language,
            ".",
            "--on",
            "container-apps",
            "--env",
            "TOKEN",
            "-o",
            language,
            "--",
            "python",
        ];
        let output = command(directory.path(), &arguments).env("TOKEN", &secret).output().unwrap();
        assert_eq!(code(&output), 0, "{language}: {}", shown(&output));
        assert!(shown(&output).contains(&format!("{language}/{first}")), "{}", shown(&output));
        let text = std::fs::read_to_string(directory.path().join(language).join(first)).unwrap();
        assert!(text.contains("Generated by cudock export for `train`"), "{text}");
        assert!(text.contains("TOKEN") && !text.contains(&secret), "{text}");
        assert!(directory.path().join(language).join("down.sh").exists());
    }
}

#[test]
fn an_export_that_makes_no_sense_is_refused() {
    let directory = project();
    let cases: [(&[&str], &str); 4] = [
        (&["export", "bicep", ".", "-o", "x"], "--on SERVICE"),
        (&["export", "yaml", ".", "--on", "vm", "-o", "x"], "expected one of bicep, arm, terraform, az, aml"),
        (&["export", "aml", ".", "--on", "batch", "-o", "x", "--", "python"], "use `--on ml`"),
        (
            &["export", "az", ".", "--on", "vm", "--env", "TOKEN", "-o", "x", "--", "python"],
            "--pull-identity",
        ),
    ];
    for (arguments, expected) in cases {
        let output = command(directory.path(), arguments).env("TOKEN", "word").output().unwrap();
        assert_eq!(code(&output), 2, "{arguments:?}: {}", shown(&output));
        assert!(shown(&output).contains(expected), "{arguments:?}: {}", shown(&output));
        assert!(!directory.path().join("x").exists());
    }
}
