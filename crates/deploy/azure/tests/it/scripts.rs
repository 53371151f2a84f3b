//! What machines and nodes run, by a real shell with a stand-in for Docker.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_azure::{DeploymentSpec, deployment};
use serde_json::Value;

use crate::specs;

fn decode(text: &str) -> String {
    String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
}

/// The bodies of all requests, as they are sent.
fn bodies(spec: &DeploymentSpec) -> Vec<Value> {
    let steps = deployment(&Facts::embedded(), spec).map(|deployment| deployment.steps).unwrap_or_default();
    steps.iter().filter_map(|step| Some(step.call.body.as_ref()?.expose())).collect()
}

/// The scripts of a machine.
pub(crate) fn machine_scripts(spec: &DeploymentSpec) -> Vec<String> {
    let bodies = bodies(spec);
    let data = bodies.iter().find_map(|body| body.pointer("/properties/parameters/customData/value"));
    let Some(data) = data.map(|data| decode(data.as_str().unwrap())) else { return Vec::new() };
    assert!(data.starts_with("#cloud-config\n"), "{data}");
    data.lines().filter_map(|line| line.trim().strip_prefix("content: ")).map(decode).collect()
}

/// The command on all nodes and that on the first, as scripts.
fn node_scripts(spec: &DeploymentSpec, bash: &Path) -> Vec<String> {
    let bodies = bodies(spec);
    let task = bodies
        .iter()
        .find_map(|body| body.pointer("/value/0").filter(|task| task.get("multiInstanceSettings").is_some()));
    let Some(task) = task else { return Vec::new() };
    // The command line is `/bin/bash -c SCRIPT`, and the script is one word of it.
    let script = |line: &Value| {
        let line = line.as_str().unwrap().replacen("/bin/bash -c", "printf %s", 1);
        String::from_utf8(Command::new(bash).args(["-c", &line]).output().unwrap().stdout).unwrap()
    };
    vec![script(&task["multiInstanceSettings"]["coordinationCommandLine"]), script(&task["commandLine"])]
}

#[test]
fn all_scripts_are_valid() {
    let Some(bash) = cudock_testkit::require_program("bash") else { return };
    let mut count = 0;
    for spec in specs::all() {
        let scripts = match spec.service {
            AzureService::Vm => machine_scripts(&spec),
            AzureService::Batch => node_scripts(&spec, &bash),
            _ => Vec::new(),
        };
        for script in scripts {
            let output = Command::new(&bash).args(["-n", "-c", &script]).output().unwrap();
            assert!(output.status.success(), "{}\n{script}", String::from_utf8_lossy(&output.stderr));
            count += 1;
        }
    }
    assert!(count >= 20, "{count}");
}

/// Puts a program of this name before all others.
pub(crate) fn stub(directory: &Path, name: &str, script: &str) {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn run(bash: &Path, script: &str, programs: &Path, variables: &[(&str, &str)]) -> Output {
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(bash);
    command.args(["-c", script]).env("PATH", path).env("CALLS", programs.join("calls"));
    command.envs(variables.iter().copied()).output().unwrap()
}

/// The arguments of each `docker run`, with `|` between them.
fn calls(programs: &Path) -> Vec<String> {
    let calls = fs::read_to_string(programs.join("calls")).unwrap_or_default();
    calls.lines().filter(|line| line.starts_with("run|")).map(str::to_owned).collect()
}

pub(crate) const RECORD: &str = r#"printf '%s|' "$@" >> "$CALLS"; echo >> "$CALLS""#;

#[test]
fn a_machine_runs_every_item_with_its_retries_and_keeps_the_first_failure() {
    let Some(bash) = cudock_testkit::require_program("bash") else { return };
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    stub(
        root,
        "docker",
        &format!("{RECORD}\ncase \"$*\" in run*\"it's 1\") exit 4;; run*\"it's 2\") exit 5;; esac"),
    );
    let mut spec = specs::spec(AzureService::Vm, specs::job(4));
    (spec.size, spec.gpus) = (Some("Standard_D4s_v5".to_owned()), 0);
    spec.variables = specs::variables();
    let [script] = &machine_scripts(&spec)[..] else { panic!("one script") };
    let state = root.join("state");
    let script = script
        .replace("/var/lib/cudock", state.to_str().unwrap())
        .replace("/dev/ttyS0", root.join("console").to_str().unwrap());
    let output = run(&bash, &script, root, &[]);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(fs::read_to_string(state.join("result")).unwrap(), "4\n");

    let calls = calls(root);
    let items: Vec<&str> = calls.iter().map(|call| call.rsplit('|').nth(1).unwrap()).collect();
    assert_eq!(items, ["it's 0", "it's 1", "it's 1", "it's 2", "it's 2", "it's 3"]);
    let first = &calls[0];
    for arguments in [
        "|--entrypoint|python|",
        "|--env|EPOCHS=3 or 4|",
        &format!("|--env|HF_TOKEN={}|", specs::password()),
        "|registry.example.com/team/digits:1.0|run.py|--name|a b|--item|",
    ] {
        assert!(first.contains(arguments), "{arguments} is not in {first}");
    }
}

/// A machine on which others hold the locks of packages: those of lists and archives make `apt-get` fail at once, that of
/// packages does so unless it has to wait.
const BUSY_APT: &str = r#"printf '%s|' "$@" >> "$CALLS"; echo >> "$CALLS"
count=$(cat "$COUNT" 2> /dev/null || echo 0); echo $((count + 1)) > "$COUNT"
case "$*" in
*update*) [ "$count" -ge 2 ] || { echo 'E: Could not get lock /var/lib/apt/lists/lock' >&2; exit 100; } ;;
*install*) case "$*" in *DPkg::Lock::Timeout=*) ;; *) echo 'E: Could not get lock /var/lib/dpkg/lock-frontend' >&2; exit 100 ;; esac ;;
esac"#;

#[test]
fn a_machine_waits_for_whoever_else_installs_packages() {
    let Some(bash) = cudock_testkit::require_program("bash") else { return };
    let mut spec = specs::spec(AzureService::Vm, specs::job(0));
    spec.idle = Some(Duration::from_secs(20));
    let scripts = machine_scripts(&spec);
    for (script, packages) in scripts.iter().zip(["nvidia-container-toolkit", "python3-venv"]) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        stub(root, "apt-get", BUSY_APT);
        for name in ["docker", "gpg", "nvidia-ctk", "systemctl", "sleep", "timeout"] {
            stub(root, name, "");
        }
        stub(
            root,
            "nvidia-smi",
            "case $* in *query*) echo 0;; *) echo 'GPU 0: Tesla T4 (UUID: GPU-1)';; esac",
        );
        stub(root, "curl", "echo '{\"access_token\": \"t\"}'");
        stub(root, "python3", "case $1 in -m) exit 0;; esac; cat > /dev/null; echo token");
        let (state, count) = (root.join("state"), root.join("count"));
        fs::create_dir(&state).unwrap();
        let script = script
            .replace("/var/lib/cudock", state.to_str().unwrap())
            .replace("/dev/ttyS0", root.join("console").to_str().unwrap())
            .replace("/opt/cudock/environment", root.join("environment").to_str().unwrap())
            .replace("/usr/share/keyrings/", &format!("{}/", root.display()))
            .replace("/etc/apt/sources.list.d/", &format!("{}/", root.display()));
        run(&bash, &script, root, &[("COUNT", count.to_str().unwrap())]);
        let calls = fs::read_to_string(root.join("calls")).unwrap();
        let installed = calls.lines().find(|call| call.contains("|install|") && call.contains(packages));
        assert!(installed.is_some_and(|call| call.contains("DPkg::Lock::Timeout=")), "{packages}: {calls}");
        if packages == "nvidia-container-toolkit" {
            let updates = calls.lines().filter(|call| call.contains("|update|")).count();
            assert_eq!(updates, 3, "two of them met the lock of the lists: {calls}");
            assert_eq!(fs::read_to_string(state.join("result")).unwrap(), "0\n");
        }
    }
}

#[test]
fn processes_of_several_nodes_know_their_rank() {
    let Some(bash) = cudock_testkit::require_program("bash") else { return };
    let mut spec = specs::spec(AzureService::Batch, specs::multi_node());
    spec.variables = specs::variables();
    for (own, node) in [("10.0.0.5", 0), ("10.0.0.4", 1)] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let variables = r#"echo "env|$MASTER_ADDR|$WORLD_SIZE|$NODE_RANK|$LOCAL_WORLD_SIZE" >> "$CALLS""#;
        stub(root, "docker", &format!("{RECORD}\n{variables}\n[ $1 != wait ] || echo 3"));
        stub(root, "hostname", &format!("echo '172.17.0.1 {own} '"));
        let [start, wait] = &node_scripts(&spec, &bash)[..] else { panic!("two scripts") };
        let batch = [("AZ_BATCH_MASTER_NODE", "10.0.0.5:6000"), ("AZ_BATCH_HOST_LIST", "10.0.0.4,10.0.0.5")];
        let output = run(&bash, start, root, &batch);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let calls = calls(root);
        assert_eq!(calls.len(), 4);
        for (local, call) in calls.iter().enumerate() {
            let rank = format!("|--env|LOCAL_RANK={local}|--env|RANK={}|", node * 4 + local);
            assert!(call.contains(&rank) && call.contains("|--env|HF_TOKEN|"), "{rank}: {call}");
            assert!(
                call.ends_with(
                    "|--entrypoint|python|registry.example.com/team/digits:1.0|run.py|--name|a b|"
                ),
                "{call}"
            );
        }
        let all = fs::read_to_string(root.join("calls")).unwrap();
        assert!(all.contains(&format!("env|10.0.0.5|8|{node}|4\n")), "{all}");
        assert_eq!(run(&bash, wait, root, &batch).status.code(), Some(3));
    }
}

/// The options of Docker for a task without other nodes.
fn run_options(spec: &DeploymentSpec) -> String {
    let bodies = bodies(spec);
    let options = "/value/0/containerSettings/containerRunOptions";
    bodies.iter().find_map(|body| body.pointer(options)?.as_str()).unwrap().to_owned()
}

#[test]
fn containers_on_nodes_with_infiniband_have_its_devices_and_may_lock_memory() {
    let Some(bash) = cudock_testkit::require_program("bash") else { return };
    for (size, has_infiniband) in [("Standard_ND96isr_H100_v5", true), ("Standard_NC4as_T4_v3", false)] {
        let on =
            |work| DeploymentSpec { size: Some(size.to_owned()), ..specs::spec(AzureService::Batch, work) };
        let options = run_options(&on(specs::job(0)));
        assert_eq!(options.contains("--device=/dev/infiniband"), has_infiniband, "{options}");
        assert_eq!(options.contains("--ulimit memlock=-1"), has_infiniband, "{options}");
        let mut in_pool = on(specs::job(0));
        in_pool.existing.batch_account = Some("shared/gpubatch".to_owned());
        in_pool.existing.pool = Some("always-on".to_owned());
        let options = run_options(&in_pool);
        assert!(!options.contains("--device"), "nobody knows whether its image has the driver: {options}");

        let [start, _] = &node_scripts(&on(specs::multi_node()), &bash)[..] else { panic!("two scripts") };
        for has_devices in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path();
            stub(root, "docker", RECORD);
            stub(root, "hostname", "echo 10.0.0.5");
            let devices = root.join("infiniband");
            if has_devices {
                fs::create_dir(&devices).unwrap();
            }
            let script = start.replace("-d /dev/infiniband", &format!("-d {}", devices.display()));
            let batch = [("AZ_BATCH_MASTER_NODE", "10.0.0.5:6000"), ("AZ_BATCH_HOST_LIST", "10.0.0.5")];
            let output = run(&bash, &script, root, &batch);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let calls = calls(root);
            assert_eq!(calls.len(), 4);
            for call in calls {
                assert!(call.contains("|--ulimit|memlock=-1|"), "{call}");
                let expected = has_infiniband && has_devices;
                assert_eq!(call.contains("|--device=/dev/infiniband|"), expected, "{size}: {call}");
            }
        }
    }
}

/// The command of a job that is ended when its GPUs are idle, as Container Apps start it.
fn watched_command(program: &[&str]) -> Vec<String> {
    let mut spec = specs::spec(AzureService::ContainerApps, specs::job(0));
    spec.idle = Some(Duration::from_secs(20));
    spec.command = program.iter().map(|word| (*word).to_owned()).collect();
    let bodies = bodies(&spec);
    let container = bodies.iter().find_map(|body| body.pointer("/properties/template/containers/0")).unwrap();
    let strings = |name: &str| container[name].as_array().unwrap().clone();
    strings("command").iter().chain(&strings("args")).map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_program_whose_gpus_are_idle_is_ended_and_others_keep_their_exit_code() {
    // Ten seconds pass at once, and the thirty that a program has to end are five.
    const SLEEP: &str = "[ $1 != 30 ] || exec /bin/sleep 5";
    for (gpus, program, code, is_ended) in [
        ("echo 0; echo 3", "trap 'exit 9' TERM; while :; do /bin/sleep 0.05; done", 9, true),
        ("echo 0; echo 90", "/bin/sleep 1; exit 4", 4, false),
        ("exit 1", "/bin/sleep 1; exit 4", 4, false),
        ("echo '[N/A]'", "/bin/sleep 1; exit 4", 4, false),
        ("echo 0", "[ \"$*\" = \"a b it's\" ] && exit 7", 7, false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        stub(root, "nvidia-smi", gpus);
        stub(root, "sleep", SLEEP);
        stub(root, "work", program);
        let [shell, arguments @ ..] = &watched_command(&["work", "a b", "it's"])[..] else { panic!("empty") };
        let path = format!("{}:{}", root.display(), std::env::var("PATH").unwrap());
        let output = Command::new(shell).args(arguments).env("PATH", path).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{gpus}: {text}");
        assert_eq!(text.contains("the GPUs were idle for 20 s"), is_ended, "{gpus}: {text}");
    }
}

#[test]
fn an_idle_machine_starts_the_watchdog_or_watches_its_gpus_and_runs_the_reaper() {
    let Some(bash) = cudock_testkit::require_program("bash") else { return };
    let mut spec = specs::spec(AzureService::Vm, specs::serve());
    spec.idle = Some(Duration::from_secs(20));
    let scripts = machine_scripts(&spec);
    for is_installed in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let script = scripts[1].replace("/var/lib/cudock", root.to_str().unwrap());
        let script = script.replace("/opt/cudock/environment", root.join("environment").to_str().unwrap());
        fs::create_dir_all(root.join("environment/bin")).unwrap();
        for name in ["docker", "apt-get", "sleep"] {
            stub(root, name, "");
        }
        stub(root, "nvidia-smi", "echo 0");
        stub(root, "curl", &format!("{RECORD}\necho '{{\"access_token\": \"t\"}}'"));
        stub(&root.join("environment/bin"), "pip", if is_installed { "" } else { "exit 1" });
        stub(&root.join("environment/bin"), "cudock", &format!("printf 'run|' >> \"$CALLS\"; {RECORD}"));
        stub(root, "python3", "case $1 in -m) exit 0;; esac; cat > /dev/null; echo token");
        let output = run(&bash, &script, root, &[]);
        let calls = fs::read_to_string(root.join("calls")).unwrap();
        assert!(output.status.success(), "{calls}");
        let watchdog = "run|watchdog|--subscription|11111111-2222-3333-4444-555555555555|--run|0123456789ab|--vm|main|--idle|20s|--port|8000|";
        assert_eq!(calls.contains(watchdog), is_installed, "{calls}");
        let reaper = "/workflows/reaper/triggers/At_the_deadline/run?api-version=";
        assert_eq!(calls.contains(reaper), !is_installed, "{calls}");
    }
}
