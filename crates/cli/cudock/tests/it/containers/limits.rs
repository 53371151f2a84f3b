//! Limits of a container, and what happens to one that exceeds them.

use super::machine::{machine, run_arguments, until};
use crate::support::{code, shown};

#[test]
fn a_program_that_takes_more_memory_than_it_may_is_killed_and_reported_as_such() {
    let Some(machine) = machine() else { return };
    let arguments = run_arguments(
        &["--memory", "32m", "--name", "hog"],
        &["dd", "if=/dev/zero", "of=/dev/null", "bs=256M", "count=1"],
    );
    let output = machine.call(&arguments);
    assert_eq!(code(&output), 137, "{}", shown(&output));
    assert!(shown(&output).contains("out of memory"), "{}", shown(&output));
    let listed = machine.good(&["ps", "--all"]);
    assert!(listed.contains("exited (out of memory)"), "{listed}");
    let status = machine.status("hog");
    assert_eq!((&status["out_of_memory"], &status["exit_code"]), (&true.into(), &137.into()), "{status:#}");
}

#[test]
fn a_container_whose_child_was_killed_for_memory_reports_it_and_goes_on() {
    let Some(machine) = machine() else { return };
    let script = "dd if=/dev/zero of=/dev/null bs=256M count=1; echo dd: $?; exit 5";
    let output = machine.call(&run_arguments(&["--memory", "32m", "--name", "shell"], &["sh", "-c", script]));
    assert_eq!(code(&output), 5, "{}", shown(&output));
    assert!(shown(&output).contains("dd: 137"), "{}", shown(&output));
    assert_eq!(machine.status("shell")["out_of_memory"], true);
}

#[test]
fn memory_that_is_enough_is_enough() {
    let Some(machine) = machine() else { return };
    let script = "dd if=/dev/zero of=/dev/null bs=32M count=1 2>/dev/null && echo fits";
    assert_eq!(machine.says(&["--memory", "128m"], script), "fits\n");
    let message = machine.bad(2, &run_arguments(&["--memory", "1m"], &["true"]));
    assert!(message.contains("6 MiB"), "{message}");
}

#[test]
fn a_fork_bomb_stays_below_the_limit_and_can_be_stopped() {
    let Some(machine) = machine() else { return };
    // The first process does not fork again: a shell that cannot would end, and the container with it.
    let script = "echo ready; bomb() { bomb | bomb & }; (bomb) & exec sleep 1000";
    let id = machine.start("bomb", &["--pids-limit", "40"], script);
    machine.until_logged("bomb", "ready");
    until("it has used what it may", || {
        let text = machine.in_cgroup(&id, "pids.current").unwrap_or_default();
        let count: u64 = text.parse().unwrap_or_default();
        assert!(count <= 40, "{count} processes");
        machine.in_cgroup(&id, "pids.events").is_some_and(|events| !events.starts_with("max 0"))
    });
    assert_eq!(machine.in_cgroup(&id, "pids.max").as_deref(), Some("40"));
    machine.good(&["stop", "--time", "0", "bomb"]);
    assert_eq!(machine.in_cgroup(&id, "pids.current"), None, "the control group is gone");
}

#[test]
fn limits_are_in_the_control_group() {
    let Some(machine) = machine() else { return };
    let options = ["--cpus", "0.5", "--cpuset-cpus", "0", "--memory", "256m", "--pids-limit", "77"];
    let id = machine.start("limited", &options, "sleep 1000");
    let read =
        |first: &str, second: &str| machine.in_cgroup(&id, first).or_else(|| machine.in_cgroup(&id, second));
    let quota = read("cpu.cfs_quota_us", "cpu.max").unwrap();
    assert!(matches!(quota.as_str(), "50000" | "50000 100000"), "{quota}");
    assert_eq!(read("memory.limit_in_bytes", "memory.max").unwrap(), (256 << 20).to_string());
    assert_eq!(read("cpuset.cpus", "cpuset.cpus.effective").unwrap(), "0");
    assert_eq!(read("pids.max", "pids.max").unwrap(), "77");
    let seen = machine.good(&["exec", "limited", "grep", "Cpus_allowed_list", "/proc/self/status"]);
    assert_eq!(seen, "Cpus_allowed_list:\t0\n", "exec is in the same control groups");
}

#[test]
fn a_container_cannot_raise_its_own_limits() {
    let Some(machine) = machine() else { return };
    let script = "cd /sys/fs/cgroup; for file in $(find . -name 'memory.limit_in_bytes' -o -name 'memory.max' -o -name pids.max -o -name cpu.cfs_quota_us)
do echo 999999999 > $file && echo raised $file; done; mkdir */new new 2>/dev/null && echo made; true";
    let stdout = machine.says(&["--memory", "64m", "--cpus", "0.5", "--pids-limit", "50"], script);
    assert!(!stdout.contains("raised"), "{stdout}");
    let groups = machine.says(&["--memory", "64m"], "find /sys/fs/cgroup -name new");
    assert_eq!(groups, "");
}

#[test]
fn resource_limits_are_set_and_cut_down_to_ours() {
    let Some(machine) = machine() else { return };
    let script = "ulimit -Sn; ulimit -Hn; ulimit -Sc";
    assert_eq!(machine.says(&["--ulimit", "nofile=64:128", "--ulimit", "core=0"], script), "64\n128\n0\n");
}

#[test]
fn a_limit_above_ours_is_raised_or_refused_and_never_cut_silently() {
    let Some(machine) = machine() else { return };
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let ours = limits.lines().find_map(|line| line.strip_prefix("Max locked memory")).unwrap();
    let hard = ours.split_whitespace().nth(1).unwrap();
    let output = machine.sh(&["--ulimit", "memlock=-1"], "ulimit -Hl; ulimit -Sl");
    let text = shown(&output);
    if output.status.success() {
        assert_eq!(output.stdout, b"unlimited\nunlimited\n", "{text}");
    } else {
        assert_eq!(code(&output), 3, "{text}");
        assert!(text.contains("cannot raise the hard limit of memlock to unlimited"), "{text}");
        assert!(text.contains(hard) && text.contains("hint: "), "{text}");
        let fits = format!("memlock={hard}");
        assert_eq!(code(&machine.sh(&["--ulimit", &fits], "true")), 0);
        // No process may have more descriptors than the machine allows, whatever rights it has.
        let message = machine.bad(3, &run_arguments(&["--rm", "--ulimit", "nofile=-1"], &["true"]));
        assert!(message.contains("hard limit of nofile"), "{message}");
    }
}

#[test]
fn a_process_that_joins_has_the_limits_of_the_container() {
    let Some(machine) = machine() else { return };
    machine.start("limited", &["--ulimit", "nofile=64:128"], "sleep 1000");
    assert_eq!(machine.good(&["exec", "limited", "sh", "-c", "ulimit -Sn; ulimit -Hn"]), "64\n128\n");
}

#[test]
fn a_missing_processor_is_reported() {
    let Some(machine) = machine() else { return };
    let message = machine.bad(3, &run_arguments(&["--rm", "--cpuset-cpus", "4000"], &["true"]));
    assert!(message.contains("error: ") && message.contains("cpuset"), "{message}");
}
