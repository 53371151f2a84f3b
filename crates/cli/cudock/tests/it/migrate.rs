//! `cudock migrate` as a user types it.

use std::path::Path;
use std::process::Output;

use crate::support::{code, cudock, json, run, run_with_input, schema, shown};

const SCRIPT: &str = "\
#!/usr/bin/env bash
# rents one V100 for the night
LOCATION=westeurope
SIZE=\"Standard_NC6s_v3\"
az group create --name night --location \"$LOCATION\"
az vm create --resource-group night --name trainer \\
    --image Canonical:UbuntuServer \\
    --size \"$SIZE\"
az vm create --resource-group night --name second --size Standard_NC6s_v3
az vm create --resource-group night --name big --size Standard_NC24ads_A100_v4
";

const GROUP: &str = "\
apiVersion: '2021-09-01'
location: eastus
name: gpu-group
properties:
  containers:
  - name: trainer
    properties:
      image: registry.example/trainer:1.4
      resources:
        requests: {cpu: 1.0, memoryInGB: 1.5, gpu: {count: 1, sku: K80}}
  osType: Linux
type: Microsoft.ContainerInstance/containerGroups
";

const PROGRAM: &str = "\
from azureml.core.compute import AmlCompute
config = AmlCompute.provisioning_configuration(vm_size=\"STANDARD_NC6\", max_nodes=4)
";

const HYPERDRIVE: &str = include_str!("../../../../judge/migrate/tests/inputs/mnist_sweep.py");
const OLD_GROUP: &str = include_str!("../../../../judge/migrate/tests/inputs/group.yaml");
const BATCH_14: &str = include_str!("../../../../judge/migrate/tests/inputs/batch_quickstart.py");

/// Runs it in a directory with these files.
fn migrate(files: &[(&str, &[u8])], arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    in_directory(directory.path(), arguments)
}

fn in_directory(directory: &Path, arguments: &[&str]) -> Output {
    let command_line: Vec<&str> = std::iter::once("migrate").chain(arguments.iter().copied()).collect();
    schema::output(cudock(&command_line).current_dir(directory))
}

#[test]
fn a_script_is_checked_for_what_has_ended_and_what_replaces_it() {
    insta::assert_snapshot!(shown(&migrate(&[("night.sh", SCRIPT.as_bytes())], &["night.sh"])));
}

#[test]
fn a_container_group_with_a_gpu_is_sent_to_container_apps() {
    insta::assert_snapshot!(shown(&migrate(&[("group.yaml", GROUP.as_bytes())], &["group.yaml"])));
}

#[test]
fn a_program_of_the_first_sdk_is_reported_as_retired() {
    let output = migrate(&[("train.py", PROGRAM.as_bytes())], &["train.py", "--region", "West Europe"]);
    insta::assert_snapshot!(shown(&output));
}

#[test]
fn a_command_line_is_read_as_it_is() {
    let output = run(&["migrate", "az batch pool create --vm-size Standard_NC12 -l northeurope"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("command line:1:32: error: Standard_NC12 was retired on 2023-09-06  CD0801"),
        "{text}"
    );
}

#[test]
fn standard_input_is_read() {
    let output = run_with_input(&["migrate", "-", "--format", "json"], GROUP.as_bytes());
    assert_eq!(code(&output), 1, "{}", shown(&output));
    let report = json(&output);
    assert_eq!(report["files"][0]["path"], "standard input");
    assert_eq!(report["files"][0]["findings"][0]["code"], "CD0803");
}

#[test]
fn json_has_places_prices_and_what_must_change() {
    let output = migrate(
        &[("a.sh", SCRIPT.as_bytes()), ("g.yaml", GROUP.as_bytes())],
        &["a.sh", "g.yaml", "--format", "json"],
    );
    assert_eq!(code(&output), 1);
    let report = json(&output);
    assert_eq!((&report["schema"], &report["over"]), (&1.into(), &4.into()));
    let first = &report["files"][0]["findings"][0];
    assert_eq!((&first["line"], &first["column"], &first["end_column"]), (&4.into(), &7.into(), &23.into()));
    assert_eq!((&first["kind"], &first["name"]), (&"size".into(), &"Standard_NC6s_v3".into()));
    assert_eq!((&first["service"], &first["region"]), (&"vm".into(), &"westeurope".into()));
    assert_eq!((&first["status"]["is"], &first["status"]["on"]), (&"retired".into(), &"2025-09-30".into()));
    assert_eq!(first["old"]["gpu"]["id"], "V100");
    let t4 = &first["replacements"][0];
    assert_eq!(t4["name"], "Standard_NC4as_T4_v3");
    assert_eq!((&t4["price"]["region"], &t4["price"]["usd"]), (&"westeurope".into(), &0.658.into()));
    assert_eq!(t4["against"]["percent"], -83);
    assert!(first["replacements"].as_array().unwrap().iter().all(|one| one["changes"].is_array()));
    assert_eq!(report["tables"][0]["name"], "azure_sizes");
}

#[test]
fn sarif_points_at_the_text() {
    let text = "größe: x\r\npool:\r\n  vmSize: Standard_NC6\r\n  # µ\r\n";
    let output = migrate(&[("a b.yaml", text.as_bytes())], &["a b.yaml", "--format", "sarif"]);
    assert_eq!(code(&output), 1);
    let report = json(&output);
    assert_eq!(report["version"], "2.1.0");
    let result = &report["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "CD0801");
    assert_eq!(result["level"], "error");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b.yaml");
    assert_eq!(place["region"], serde_json::json!({"startLine": 3, "startColumn": 11, "endColumn": 23}));
    assert_eq!(report["runs"][0]["columnKind"], "unicodeCodePoints");
}

/// The structure of `fixes` in SARIF 2.1.0, section 3.55 on.
#[test]
fn sarif_has_a_fix_for_each_size_that_replaces_another() {
    let text = "größe: x\r\npool:\r\n  vmSize: Standard_NC6\r\n  other: NC6\r\n";
    let report = json(&migrate(&[("a b.yaml", text.as_bytes())], &["a b.yaml", "--format", "sarif"]));
    let fixes = report["runs"][0]["results"][0]["fixes"].as_array().unwrap();
    assert_eq!(fixes[0]["description"]["text"], "use Standard_NC4as_T4_v3");
    for fix in fixes {
        let changes = fix["artifactChanges"].as_array().unwrap();
        assert_eq!(changes.len(), 1, "{fix}");
        assert_eq!(changes[0]["artifactLocation"]["uri"], "a%20b.yaml");
        let replacements = changes[0]["replacements"].as_array().unwrap();
        assert_eq!(replacements.len(), 1, "{fix}");
        let region = serde_json::json!({"startLine": 3, "startColumn": 11, "endColumn": 23});
        assert_eq!(replacements[0]["deletedRegion"], region);
        let inserted = replacements[0]["insertedContent"]["text"].as_str().unwrap();
        assert!(inserted.starts_with("Standard_N"), "{fix}");
    }
}

#[test]
fn github_annotations_point_at_the_lines() {
    let output = migrate(&[("a,b.sh", SCRIPT.as_bytes())], &["a,b.sh", "--format", "github"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    insta::assert_snapshot!(shown(&output));
}

#[test]
fn what_is_on_sale_or_no_choice_at_all_is_fine() {
    let output = run(&["migrate", "az vm create --size Standard_NC24ads_A100_v4"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let output = migrate(&[("notes.txt", b"nothing to see\n")], &["notes.txt"]);
    assert_eq!(code(&output), 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("no Azure GPU size or service found"));
}

#[test]
fn what_will_end_is_a_warning_until_it_has() {
    let line = "az vm create --size Standard_NV6 -l westeurope";
    let on = |day: &str| code(&cudock(&["migrate", line]).env("CUDOCK_TODAY", day).output().unwrap());
    assert_eq!((on("2023-09-05"), on("2023-09-06")), (0, 1));
}

#[test]
fn files_that_cannot_be_read_are_bad_input() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("program"), b"\x7fELF\x02\x01\x01\0\0\0").unwrap();
    std::fs::File::create(directory.path().join("huge.sh")).unwrap().set_len((16 << 20) + 1).unwrap();
    for (file, expected) in [
        ("program", "not a text file"),
        ("huge.sh", "exceeds the limit of 16 MiB"),
        (".", "is a directory"),
        ("missing.sh", "cannot read missing.sh"),
    ] {
        let output = in_directory(directory.path(), &[file]);
        assert_eq!(code(&output), 2, "{file}: {}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{file}: {}", shown(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_region_that_does_not_exist_is_bad_input() {
    let output = run(&["migrate", "az vm create --size Standard_NC6", "--region", "westeurop"]);
    assert_eq!(code(&output), 2);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("did you mean `westeurope`"),
        "{}",
        shown(&output)
    );
}

/// Translates a file in a directory into `new`.
fn translate(directory: &Path, name: &str, content: &str, further: &[&str]) -> Output {
    std::fs::write(directory.join(name), content).unwrap();
    let arguments: Vec<&str> = [name, "-o", "new"].iter().chain(further).copied().collect();
    in_directory(directory, &arguments)
}

#[test]
fn a_hyperdrive_program_becomes_a_sweep_that_runs_on_the_service() {
    let directory = tempfile::tempdir().unwrap();
    let output = translate(directory.path(), "mnist_sweep.py", HYPERDRIVE, &[]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    for expected in ["new/cudock.toml\n", "new/sweep.yml\n", "mnist_sweep.py:29", "CD0830"] {
        assert!(shown(&output).contains(expected), "{expected}: {}", shown(&output));
    }
    let job = std::fs::read_to_string(directory.path().join("new/sweep.yml")).unwrap();
    assert!(job.contains("\ntype: sweep\n") && job.contains("max_total_trials: 27"), "{job}");

    // The next command reads the written files, and makes the same job of them.
    let sweep =
        ["sweep", "new", "--on", "ml", "--dry-run", "--workspace", "shared/lab", "--region", "westeurope"];
    let output = cudock(&sweep).current_dir(directory.path()).output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    for expected in ["\"jobType\": \"Sweep\"", "\"maxTotalTrials\": 27", "\"slackFactor\": 0.2", "\"PT4H\""] {
        assert!(shown(&output).contains(expected), "{expected}: {}", shown(&output));
    }
}

#[test]
fn translated_files_replace_nothing_without_force() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("new")).unwrap();
    let kept = directory.path().join("new/sweep.yml");
    std::fs::write(&kept, "mine").unwrap();
    let output = translate(directory.path(), "mnist_sweep.py", HYPERDRIVE, &[]);
    assert_ne!(code(&output), 0, "{}", shown(&output));
    assert!(shown(&output).contains("--force"), "{}", shown(&output));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "mine");
    assert!(!directory.path().join("new/cudock.toml").exists(), "all or nothing");
    let output = translate(directory.path(), "mnist_sweep.py", HYPERDRIVE, &["--force"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(std::fs::read_to_string(&kept).unwrap().contains("type: sweep"));
}

#[test]
fn a_container_group_becomes_an_app_without_its_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let output = translate(directory.path(), "group.yaml", OLD_GROUP, &["--format", "json"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let report = json(&output);
    assert_eq!(report["directory"], "new");
    let file = &report["translations"][0]["files"][0];
    assert_eq!(file["name"], "containerapp.yaml");
    let text = std::fs::read_to_string(directory.path().join("new/containerapp.yaml")).unwrap();
    assert_eq!(file["text"], *text);
    assert!(text.contains("workloadProfileName: Consumption-GPU-NC8as-T4"), "{text}");
    for secret in ["hunter2", "swordfish", "c2VjcmV0"] {
        assert!(!text.contains(secret) && !shown(&output).contains(secret), "{secret}: {text}");
    }
}

#[test]
fn a_batch_program_is_rewritten_and_the_old_one_stays() {
    let directory = tempfile::tempdir().unwrap();
    let output = translate(directory.path(), "batch_quickstart.py", BATCH_14, &[]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(shown(&output).contains("`task_list_options` is gone"), "{}", shown(&output));
    let new = std::fs::read_to_string(directory.path().join("new/batch_quickstart.py")).unwrap();
    assert!(new.contains("from azure.batch import BatchClient\n"), "{new}");
    assert!(
        new.contains("batch_client.create_job(") && !new.contains("batch_service_client.pool.add"),
        "{new}"
    );
    assert_eq!(std::fs::read_to_string(directory.path().join("batch_quickstart.py")).unwrap(), BATCH_14);
}

#[test]
fn a_file_without_anything_to_translate_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let output = translate(directory.path(), "night.sh", SCRIPT, &[]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(shown(&output).contains("night.sh: nothing to translate"), "{}", shown(&output));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no directory is created");
}
