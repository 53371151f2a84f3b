//! The device program in force: a real cgroup, real processes that open real nodes.

use std::path::PathBuf;
use std::process::Command;

use cudock_confine::ConfineError;
use cudock_confine::devices::{Access, DeviceKind, DeviceRule, MAX_RULES, Program, attach, standard_rules};
use cudock_testkit::missing;

use crate::support::{is_root, text};

/// A cgroup that is ours, removed at the end. Processes in it have ended by then.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(name: &str) -> Option<Self> {
        if !is_root() {
            missing("root", "only root can attach a device program");
            return None;
        }
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let root = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let (path, kind) = (fields.nth(1)?, fields.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(path))
        });
        let Some(root) = root else {
            missing("cgroup-v2", "no cgroup v2 is mounted here");
            return None;
        };
        let path = root.join(format!("cudock-test-{name}-{}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                missing("cgroup-v2", format!("cannot make {}: {error}", path.display()));
                None
            }
        }
    }

    fn attach(&self, rules: &[DeviceRule]) -> bool {
        match attach(&self.0, &Program::new(rules).unwrap()) {
            Ok(()) => true,
            Err(ConfineError::DeviceLoad { source, log }) if log.is_empty() => {
                missing("bpf", format!("this kernel takes no device programs: {source}"));
                false
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Runs a script in the cgroup.
    fn run(&self, script: &str) -> String {
        let enter = format!("echo $$ > '{}/cgroup.procs' && {script}", self.0.display());
        text(&Command::new("sh").args(["-c", &enter]).output().unwrap())
    }

    fn can_read(&self, node: &str) -> bool {
        self.run(&format!("if head -c 0 < {node}; then echo yes; else echo no; fi")).contains("yes")
    }

    fn can_write(&self, node: &str) -> bool {
        self.run(&format!("if : > {node}; then echo yes; else echo no; fi")).contains("yes")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

const READ_WRITE_NULL: DeviceRule = DeviceRule::new(DeviceKind::Char, 1, 3, Access::from_bits(6));

#[test]
fn only_what_the_rules_name_can_be_opened() {
    let Some(cgroup) = Cgroup::new("open") else { return };
    assert!(cgroup.can_read("/dev/zero") && cgroup.can_read("/dev/full"), "nodes must work before");
    let rules = [READ_WRITE_NULL, DeviceRule::new(DeviceKind::Char, 1, 5, Access::READ)];
    if !cgroup.attach(&rules) {
        return;
    }
    assert!(cgroup.can_read("/dev/null") && cgroup.can_write("/dev/null"));
    assert!(cgroup.can_read("/dev/zero"));
    assert!(!cgroup.can_write("/dev/zero"));
    assert!(!cgroup.can_read("/dev/full"));
    assert!(!cgroup.can_write("/dev/full"));
}

#[test]
fn a_node_made_inside_opens_nothing_that_was_not_given() {
    let Some(cgroup) = Cgroup::new("make") else { return };
    if !cgroup.attach(&standard_rules()) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let node = directory.path().join("kmsg");
    let node = node.to_str().unwrap();
    // /dev/kmsg, the kernel's log: there on every machine, and given to no container.
    let output = cgroup.run(&format!("mknod {node} c 1 11 && echo made"));
    assert!(output.contains("made"), "{output}");
    if std::fs::File::open(node).is_err() {
        missing("device-nodes", "this directory's file system has no devices");
        return;
    }
    assert!(!cgroup.can_read(node));
    for node in ["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"] {
        assert!(cgroup.can_read(node), "{node}");
    }
}

#[test]
fn a_second_program_can_only_take_away() {
    let Some(cgroup) = Cgroup::new("second") else { return };
    if !cgroup.attach(&[READ_WRITE_NULL]) {
        return;
    }
    let any = |kind| DeviceRule { kind, major: None, minor: None, access: Access::ANY };
    assert!(cgroup.attach(&[any(DeviceKind::Char), any(DeviceKind::Block)]));
    assert!(cgroup.can_read("/dev/null"));
    assert!(!cgroup.can_read("/dev/zero"));
}

#[test]
fn the_kernel_takes_the_longest_program() {
    let Some(cgroup) = Cgroup::new("long") else { return };
    let mut rules: Vec<DeviceRule> =
        (1..).take(MAX_RULES - 1).map(|n| DeviceRule::new(DeviceKind::Char, 200, n, Access::ANY)).collect();
    rules.push(READ_WRITE_NULL);
    if !cgroup.attach(&rules) {
        return;
    }
    assert!(cgroup.can_read("/dev/null"));
    assert!(!cgroup.can_read("/dev/zero"));
}

#[test]
#[ignore = "a measurement: run it with --nocapture"]
fn what_attaching_costs() {
    let mut rules = standard_rules();
    rules.extend(
        (0..8).map(|minor| DeviceRule::new(DeviceKind::Char, 195, minor, Access::READ | Access::WRITE)),
    );
    let many = vec![rules[4]; MAX_RULES];
    for (name, rules) in [("eight GPUs", rules), ("the most rules", many)] {
        let mut times: Vec<_> = (0..20)
            .filter_map(|n| {
                let cgroup = Cgroup::new(&format!("cost{n}"))?;
                let from = std::time::Instant::now();
                cgroup.attach(&rules).then(|| from.elapsed())
            })
            .collect();
        times.sort();
        if let Some(middle) = times.get(times.len() / 2) {
            eprintln!("{name}: p50 {middle:?} of {}", times.len());
        }
    }
}

#[test]
fn a_directory_that_is_not_a_cgroup_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let error = attach(directory.path(), &Program::new(&[]).unwrap()).unwrap_err();
    match error {
        ConfineError::DeviceAttach { cgroup, .. } => assert_eq!(cgroup, directory.path()),
        ConfineError::DeviceLoad { source, .. } => {
            missing("bpf", format!("cannot load programs here: {source}"));
        }
        other => panic!("{other:?}"),
    }
}
