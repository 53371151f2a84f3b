//! Exec probes of groups, which join a container, and members of groups, which are started beside one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::super::machine::until;
use super::Scene;
use crate::join_trace::{CAPABILITIES, Hold, Join, Spy, Tracer, assert_looked_at, attempts};
use crate::support::{code, json, shown};

/// Number of containers that are probed at a time for each set of capabilities, each at most twice a second.
const PROBED: usize = 3;

/// Number of members that are restarted at a time.
const MEMBERS: usize = 20;

const PROBES: &str = "      livenessProbe: {exec: {command: ['true']}, periodSeconds: 1, timeoutSeconds: 60}
      readinessProbe: {exec: {command: ['true']}, periodSeconds: 1, timeoutSeconds: 60}
";

/// A group that runs until this is dropped.
struct Group<'s> {
    scene: &'s Scene,
    name: &'static str,
}

impl<'s> Group<'s> {
    fn up(scene: &'s Scene, name: &'static str, containers: &str, volumes: &[String]) -> Self {
        let root = scene.machine().root();
        let volumes: String =
            volumes.iter().map(|name| format!("  - {{name: {name}, emptyDir: {{}}}}\n")).collect();
        let text = format!("name: {name}\nproperties:\n  containers:\n{containers}  volumes:\n{volumes}");
        let file =
            scene.machine().write("group.yaml", text.replace("ROOT", &format!("rootfs:{}", root.display())));
        let group = Self { scene, name };
        scene.good(&["up", "-f", file.to_str().unwrap(), "--detach", "--network", "none"]);
        group
    }

    /// The path of a volume of the group on the host.
    fn volume(&self, name: &str) -> PathBuf {
        let data =
            self.scene.command(&[]).get_envs().find_map(|(variable, value)| {
                (variable == "CUDOCK_DATA").then(|| PathBuf::from(value.unwrap()))
            });
        data.unwrap().join("groups").join(self.name).join("volumes").join(name)
    }

    fn spy(&self, volume: &str) -> Spy {
        self.scene.secrets.write_to(&self.volume(volume));
        Spy::connect(&self.volume(volume))
    }

    /// The process that supervises it.
    fn supervisor(&self) -> i32 {
        let status = json(&self.scene.output(&["groups", self.name, "--format", "json"]));
        let pid = status["groups"][0]["supervisor"].as_i64();
        i32::try_from(pid.unwrap_or_else(|| panic!("{status}"))).unwrap()
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        let output = self.scene.output(&["down", self.name, "--time", "0"]);
        assert!(std::thread::panicking() || output.status.success(), "{}", shown(&output));
    }
}

/// A container with a spy, which has the volume of its own name.
fn spy(name: &str, added: &str, more: &str) -> String {
    let added = if added.is_empty() { String::new() } else { format!("add: [{added}]") };
    format!(
        "  - name: {name}\n    properties:\n      image: ROOT\n      command: [spy, /watch]\n      \
         volumeMounts: [{{name: {name}, mountPath: /watch}}]\n      \
         securityContext: {{capabilities: {{{added}}}}}\n{more}"
    )
}

/// Has probes join containers that watch them, and fails if one saw anything of the host.
fn attack_probes(mut scene: Scene) {
    // Known to the supervisor, and to another member of the group.
    let secret = scene.secrets.add();
    let names: Vec<String> = (0..CAPABILITIES.len() * PROBED).map(|number| format!("spy{number}")).collect();
    let added = |spy: usize| CAPABILITIES[spy / PROBED];
    let mut containers = format!(
        "  - name: keeper\n    properties:\n      image: ROOT\n      command: [sleep, '100000']\n      \
         environmentVariables: [{{name: TOKEN, secureValue: '{secret}'}}]\n"
    );
    for (number, name) in names.iter().enumerate() {
        containers += &spy(name, added(number), PROBES);
    }
    let group = Group::up(&scene, "probed", &containers, &names);
    let mut spies: Vec<Spy> = names.iter().map(|name| group.spy(name)).collect();
    let done = |joins: &[Join], set: &str| {
        joins.iter().filter(|join| join.executed && added(join.spy) == set).count()
    };
    let trace = Tracer::follow(
        group.supervisor(),
        &mut spies,
        Hold::Joining,
        || {},
        |trace| CAPABILITIES.iter().all(|set| done(&trace.joins, set) >= attempts()),
    );
    for join in trace.joins.iter().filter(|join| join.executed) {
        assert_looked_at(join, added(join.spy));
    }
    for set in CAPABILITIES {
        let looks: usize =
            trace.joins.iter().filter(|join| added(join.spy) == set).map(|join| join.looks).sum();
        eprintln!(
            "probes, capabilities `{set}`: {} joins, {looks} looks before their programs",
            done(&trace.joins, set)
        );
    }
    for (number, spy) in spies.iter().enumerate() {
        assert_eq!(spy.leaks(), "", "capabilities `{}`", added(number));
    }
}

#[test]
fn a_probe_that_joins_shows_nothing_of_this_machine() {
    if let Some(scene) = Scene::of_root() {
        attack_probes(scene);
    }
}

#[test]
fn a_probe_that_joins_a_users_container_shows_nothing_of_that_user() {
    if let Some(scene) = Scene::of_user() {
        attack_probes(scene);
    }
}

/// Starts members of a group beside others that watch, and fails if one of those ever saw anything of it.
fn attack_members(scene: &Scene) {
    let mut left = attempts();
    while left > 0 {
        let members = left.min(MEMBERS);
        left -= members;
        start_members(scene, members);
    }
}

fn start_members(scene: &Scene, members: usize) {
    let names: Vec<String> = (0..CAPABILITIES.len()).map(|number| format!("spy{number}")).collect();
    let mut containers = String::new();
    for (name, added) in names.iter().zip(CAPABILITIES) {
        containers += &spy(name, added, "");
    }
    for number in 0..members {
        // It exits once, on the signal of the test, and is restarted immediately.
        let script = format!(
            "[ -e /go/{number} ] && exec sleep 100000; touch /go/{number}; until [ -e /go/go ]; do sleep 0.1; done"
        );
        let command = serde_json::to_string(&["sh", "-c", &script]).unwrap();
        write!(
            containers,
            "  - name: member{number}\n    properties:\n      image: ROOT\n      command: {command}\n      \
             volumeMounts: [{{name: go, mountPath: /go}}]\n"
        )
        .unwrap();
    }
    let volumes = [names.as_slice(), &["go".to_owned()]].concat();
    let group = Group::up(scene, "members", &containers, &volumes);
    let go = group.volume("go");
    until("all members run", || (0..members).all(|number| go.join(number.to_string()).exists()));
    let mut spies: Vec<Spy> = names.iter().map(|name| group.spy(name)).collect();
    let trace = Tracer::follow(
        group.supervisor(),
        &mut spies,
        Hold::Everything,
        || fs::write(go.join("go"), "").unwrap(),
        |trace| {
            let in_container = |(program, _): &&(PathBuf, String)| program.ends_with("bin/busybox");
            let started = trace.programs.iter().filter(in_container).map(|(_, namespace)| namespace);
            started.collect::<BTreeSet<_>>().len() >= members
        },
    );
    assert_eq!(trace.joins.len(), 0, "a process of a member was in a spy's pid namespace: {trace:?}");
    assert_eq!(trace.seen, 0, "a spy saw a process of a member");
    // Each start makes a watcher, which executes our program, and a first process, which executes the member's.
    assert!(trace.looks >= members * spies.len() * 4, "{} looks", trace.looks);
    eprintln!("members: {members} starts, {} processes, {} looks", trace.births.len(), trace.looks);
    for (spy, added) in spies.iter().zip(CAPABILITIES) {
        assert_eq!(spy.leaks(), "", "capabilities `{added}`");
    }
}

#[test]
fn a_member_that_is_started_is_never_in_the_pid_namespace_of_another() {
    if let Some(scene) = Scene::of_root() {
        attack_members(&scene);
    }
}

#[test]
fn a_member_of_a_users_group_is_never_in_the_pid_namespace_of_another() {
    if let Some(scene) = Scene::of_user() {
        attack_members(&scene);
    }
}

#[test]
fn a_pid_namespace_cannot_be_shared() {
    let Some(scene) = Scene::of_root() else { return };
    let output = scene.output(&[
        "run",
        "--rm",
        "--network",
        "none",
        "--pid",
        "container:spy",
        "--rootfs",
        "root",
        "true",
    ]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(shown(&output).contains("--pid"), "{}", shown(&output));
    let text = "name: g\nproperties:\n  shareProcessNamespace: true\n  containers:\n  - name: a\n    \
                properties: {image: x, command: ['true']}\n";
    let file = scene.machine().write("shared.yaml", text);
    let output = scene.output(&["up", "-f", file.to_str().unwrap(), "--detach"]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(shown(&output).contains("shareProcessNamespace"), "{}", shown(&output));
}
