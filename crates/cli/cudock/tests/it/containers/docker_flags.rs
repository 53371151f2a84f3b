//! Flags of `docker run`: each works, or is refused by its name with an alternative.

use super::images::Image;
use super::machine::{Machine, machine, run_arguments, until};
use crate::support::{code, cudock, run, shown};

/// The flags of docker's reference of `docker container run` that people use most, with a value where they take one.
const COMMON: [(&str, Option<&str>); 64] = [
    ("--attach", Some("stdout")),
    ("-a", Some("stdout")),
    ("--add-host", Some("db:10.0.0.5")),
    ("--annotation", Some("a=b")),
    ("--blkio-weight", Some("300")),
    ("--cap-add", Some("NET_ADMIN")),
    ("--cap-drop", Some("CHOWN")),
    ("--cgroup-parent", Some("/x")),
    ("--cgroupns", Some("private")),
    ("--cidfile", Some("id")),
    ("--cpus", Some("1")),
    ("--cpu-shares", Some("512")),
    ("--cpuset-cpus", Some("0")),
    ("--detach-keys", Some("ctrl-p")),
    ("--device", Some("/dev/null")),
    ("--dns", Some("10.0.0.1")),
    ("--entrypoint", Some("/bin/true")),
    ("-e", Some("A=b")),
    ("--expose", Some("80")),
    ("--gpus", Some("none")),
    ("--group-add", Some("44")),
    ("--health-cmd", Some("true")),
    ("--health-interval", Some("5s")),
    ("-h", Some("inner")),
    ("--hostname", Some("inner")),
    ("--init", None),
    ("-i", None),
    ("--ipc", Some("host")),
    ("--label", Some("a=b")),
    ("--link", Some("db")),
    ("--log-driver", Some("json-file")),
    ("--log-driver", Some("none")),
    ("--log-opt", Some("max-size=1m")),
    ("--mac-address", Some("02:42:ac:11:00:02")),
    ("-m", Some("64m")),
    ("--memory-reservation", Some("32m")),
    ("--mount", Some("type=tmpfs,target=/scratch")),
    ("--name", Some("named")),
    ("--net", Some("none")),
    ("--oom-score-adj", Some("100")),
    ("--pid", Some("host")),
    ("--pids-limit", Some("100")),
    ("--platform", Some("linux/amd64")),
    ("--privileged", None),
    ("-p", Some("127.0.0.1:0:80")),
    ("-P", None),
    ("--pull", Some("missing")),
    ("-q", None),
    ("--read-only", None),
    ("--restart", Some("no")),
    ("--runtime", Some("runc")),
    ("--security-opt", Some("label=disable")),
    ("--shm-size", Some("1m")),
    ("--stop-signal", Some("RTMIN+3")),
    ("--stop-timeout", Some("1")),
    ("--sysctl", Some("net.core.somaxconn=64")),
    ("--tmpfs", Some("/scratch")),
    ("--ulimit", Some("nofile=64")),
    ("-u", Some("1000")),
    ("--userns", Some("host")),
    ("--uts", Some("host")),
    ("-v", Some("./data:/data:cached")),
    ("--volumes-from", Some("other")),
    ("-w", Some("/tmp")),
];

/// The refused ones, and a word of the alternative.
const REFUSED: [(&str, &str); 13] = [
    ("--attach", "leave it out"),
    ("-a", "leave it out"),
    ("--blkio-weight", "leave it out"),
    ("--cgroup-parent", "CUDOCK_CGROUP"),
    ("--detach-keys", "cudock exec -it"),
    ("--health-cmd", "livenessProbe"),
    ("--health-interval", "livenessProbe"),
    ("--link", "cudock up -f"),
    ("--mac-address", "omit it"),
    ("--pid", "cudock top"),
    ("--privileged", "--cap-add"),
    ("--uts", "--hostname"),
    ("--volumes-from", "-v NAME:/PATH"),
];

#[test]
fn common_flags_of_docker_run_work_or_are_refused_by_name() {
    let Some(machine) = machine() else { return };
    machine.write("data/x", "");
    for (flag, value) in COMMON {
        let arguments: Vec<&str> = [flag].into_iter().chain(value).collect();
        // A flag of our own before it must not change how it is read.
        let rest = ["--rootfs", "root", "true"];
        let network = if matches!(flag, "--net" | "--sysctl") { &[][..] } else { &["--network", "none"][..] };
        let output = machine.call(&[&["run", "--rm"][..], network, &arguments, &rest].concat());
        let text = shown(&output);
        match REFUSED.iter().find(|(refused, _)| *refused == flag) {
            None => assert_eq!(code(&output), 0, "{flag}: {text}"),
            Some((_, instead)) => {
                assert_eq!(code(&output), 2, "{flag}: {text}");
                let first = text.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
                assert!(first.contains(flag), "{flag} is not named: {text}");
                let hint = text.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default();
                assert!(hint.contains(instead), "{flag} has no alternative: {text}");
            }
        }
    }
    assert_eq!(machine.list().len(), 0, "no refused flag left a container");
}

#[test]
fn an_unknown_flag_is_never_taken_for_the_image_or_the_program() {
    for (arguments, named, hint) in [
        (&["--gpu", "all", "app"][..], "--gpu", "--gpus"),
        (&["--init2", "app"], "--init2", "--init"),
        (&["--detatch", "app"], "--detatch", "--detach"),
        (&["--priviledged", "app"], "--priviledged", "--privileged is not supported"),
        (&["--no-such-thing", "app"], "--no-such-thing", "--help"),
        (&["--rm", "--no-such-thing=5", "app"], "--no-such-thing", "--help"),
        (&["-ita", "stdout", "app"], "-a/--attach", "leave it out"),
        (&["--no-such-thing", "-X", "app"], "--no-such-thing", "--help"),
        (&["-X", "app"], "-X", "--help"),
        (&["--rootfs", "/", "--no-such-thing", "sh"], "--no-such-thing", "--help"),
    ] {
        let output = run(&[&["run"], arguments].concat());
        let text = shown(&output);
        assert_eq!(code(&output), 2, "{arguments:?}: {text}");
        let first = text.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(first.contains(named), "{arguments:?}: {text}");
        assert!(text.contains(hint), "{arguments:?}: {text}");
    }
}

#[test]
fn flags_after_the_image_are_the_programs() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).write("app");
    let arguments =
        ["run", "--rm", "--network", "none", "--entrypoint", "echo", "oci:app", "--privileged", "-d", "--rm"];
    assert_eq!(machine.good(&arguments), "--privileged -d --rm\n");
}

#[test]
fn values_that_docker_accepts_and_cudock_cannot_honor_are_refused_by_name() {
    for (flag, value) in [
        ("--log-driver", "syslog"),
        ("--cgroupns", "host"),
        ("--userns", "keep-id"),
        ("--runtime", "kata"),
        ("--security-opt", "label=type:container_t"),
        ("--security-opt", "apparmor=profile"),
        ("--security-opt", "systempaths=unconfined"),
        ("--ipc", "container:other"),
        ("--network", "container:other"),
        ("--sysctl", "vm.swappiness=1"),
        ("--sysctl", "kernel.core_pattern=x"),
        ("--device", "vendor.com/nic=all"),
        ("--device", "/dev/null:/etc/null"),
        ("--mount", "type=npipe,source=a,target=/a"),
        ("--pull", "sometimes"),
        ("--oom-score-adj", "2000"),
        ("--stop-signal", "SIGNOPE"),
    ] {
        let output = run(&["run", "--network", "none", flag, value, "--rootfs", "/", "true"]);
        let text = shown(&output);
        assert_eq!(code(&output), 2, "{flag} {value}: {text}");
        assert!(
            text.contains(flag.trim_start_matches("--stop-")) || text.contains(value),
            "{flag} {value}: {text}"
        );
        assert!(
            text.to_lowercase().contains("hint")
                || text.contains("possible values")
                || text.contains("error: "),
            "{text}"
        );
    }
    let mounting = ["run", "--cap-add", "SYS_ADMIN", "-v", "/tmp:/tmp:rshared", "--rootfs", "/", "true"];
    let output = run(&mounting);
    assert!(shown(&output).contains("use rslave"), "{}", shown(&output));
    let output =
        cudock(&["run", "-m", "1g", "--memory-swap", "512m", "--rootfs", "/", "true"]).output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("--memory-swap is less than --memory"), "{}", shown(&output));
}

#[test]
fn a_letter_has_its_value_in_the_same_word_or_the_next() {
    let Some(machine) = machine() else { return };
    machine.write("models/in", "seen");
    let volume = format!("-v{}:/models:ro", machine.path().join("models").display());
    let script = "echo $A $(id -u) $PWD $(cat /models/in) $(cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null)";
    for options in [
        &["-eA=b", "-u1000", "-w/tmp", "-m64m", &volume][..],
        &["-e=A=b", "-u=1000", "-w=/tmp", "-m=64m", &volume],
        &["-e", "A=b", "-u", "1000", "-w", "/tmp", "-m", "64m", &volume],
        // As in docker, a switch may have a value, and any other flag takes the next argument.
        &["-e", "-A=b", "-ieA=b", "--rm=true", "-t=false", "--init=0", "-u1000", "-w/tmp", "-m64m", &volume],
    ] {
        let arguments =
            [&["run", "--rm", "--network", "none"], options, &["--rootfs", "root", "sh", "-c", script]]
                .concat();
        assert_eq!(machine.good(&arguments), "b 1000 /tmp seen 67108864\n", "{options:?}");
    }
    machine.good(&[
        "run",
        "-itd=false",
        "-i=false",
        "--network=none",
        "-p127.0.0.1:0:80",
        "--name=kept",
        "--rm=false",
        "--rootfs=root",
        "true",
    ]);
    assert_eq!(machine.list()[0]["name"], "kept");
    let message = machine.bad(2, &["run", "--rm=perhaps", "--rootfs", "root", "true"]);
    assert!(message.contains("perhaps") && message.contains("true or false"), "{message}");
}

#[test]
fn what_follows_the_image_is_the_programs_as_docker_reads_it() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).entrypoint(&["echo"]).write("app");
    for rest in [&["-p", "80", "--name", "x"][..], &["--", "-d"], &["-X"], &["--rm=false"]] {
        let arguments = [&["run", "--rm", "--network", "none", "oci:app"], rest].concat();
        assert_eq!(machine.good(&arguments), format!("{}\n", rest.join(" ")));
    }
}

#[test]
fn a_missing_directory_is_created_for_v_and_refused_for_mount_as_in_docker() {
    let Some(machine) = machine() else { return };
    let output = machine.sh(&["-v", "./new/deep:/data"], "echo written > /data/file");
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(shown(&output).contains("note: ") && shown(&output).contains("is created"), "{}", shown(&output));
    assert_eq!(std::fs::read_to_string(machine.path().join("new/deep/file")).unwrap(), "written\n");
    let message = machine
        .bad(2, &run_arguments(&["--rm", "--mount", "type=bind,source=./absent,target=/data"], &["true"]));
    assert!(message.contains("not found") && message.contains("hint: "), "{message}");
    machine.bad(2, &run_arguments(&["--rm", "-v", "./never:/data", "--memory", "much"], &["true"]));
    let no_image = ["run", "--rm", "-v", "./never:/data", "oci:./no-such-layout"];
    assert_ne!(code(&machine.call(&no_image)), 0);
    for absent in ["absent", "never", "~"] {
        assert!(!machine.path().join(absent).exists(), "{absent}");
    }
    let message = machine.bad(2, &run_arguments(&["--rm", "-v", "~:/data"], &["true"]));
    assert!(message.contains("cannot mount `~`"), "{message}");
}

#[test]
fn an_empty_file_of_variables_is_one() {
    let Some(machine) = machine() else { return };
    assert_eq!(machine.says(&["--env-file", "/dev/null", "-e", "A=b"], "echo $A"), "b\n");
}

#[test]
fn annotations_are_in_the_description_of_a_container() {
    let Some(machine) = machine() else { return };
    machine.start("noted", &["--annotation", "com.example/team=a", "--annotation=alone"], "sleep 1000");
    let annotations = machine.inspect("noted")["config"]["annotations"].clone();
    assert_eq!(annotations, serde_json::json!({"com.example/team": "a", "alone": ""}));
}

#[test]
fn a_tmpfs_runs_no_program_without_the_option_exec_as_in_docker() {
    let Some(machine) = machine() else { return };
    let script = "cp /bin/busybox /scratch/echo && /scratch/echo ran || echo refused";
    assert_eq!(inside(&machine, &["--tmpfs", "/scratch"], &format!("({script}) 2>/dev/null")), "refused");
    assert_eq!(inside(&machine, &["--tmpfs", "/scratch:exec,size=16m"], script), "ran");
    assert_eq!(
        inside(&machine, &["--mount", "type=tmpfs,target=/scratch"], &format!("({script}) 2>/dev/null")),
        "refused"
    );
}

fn inside(machine: &Machine, options: &[&str], script: &str) -> String {
    machine.says(options, script).trim().to_owned()
}

#[test]
fn ipc_of_the_host_is_the_hosts_and_private_is_not() {
    let Some(machine) = machine() else { return };
    let host = std::fs::read_link("/proc/self/ns/ipc").unwrap().display().to_string();
    let own = inside(&machine, &[], "readlink /proc/self/ns/ipc");
    assert_ne!(own, host);
    assert_ne!(inside(&machine, &["--ipc", "private"], "readlink /proc/self/ns/ipc"), host);
    assert_eq!(inside(&machine, &["--ipc=host"], "readlink /proc/self/ns/ipc"), host);
    let mark = format!("/dev/shm/cudock-test-{}", std::process::id());
    std::fs::write(&mark, "shared").unwrap();
    let seen = machine.sh(&["--ipc", "host"], &format!("cat {mark}"));
    let hidden = machine.sh(&[], &format!("cat {mark}"));
    std::fs::remove_file(&mark).unwrap();
    assert_eq!(String::from_utf8_lossy(&seen.stdout), "shared", "{}", shown(&seen));
    assert_ne!(code(&hidden), 0, "{}", shown(&hidden));
}

#[test]
fn sysctls_of_the_containers_namespaces_are_set() {
    let Some(machine) = machine() else { return };
    let options = ["--sysctl", "kernel.shmmni=123", "--sysctl", "net.ipv4.ip_unprivileged_port_start=81"];
    let script = "cat /proc/sys/kernel/shmmni /proc/sys/net/ipv4/ip_unprivileged_port_start";
    assert_eq!(inside(&machine, &options, script), "123\n81");
    let ours = std::fs::read_to_string("/proc/sys/kernel/shmmni").unwrap();
    assert_ne!(ours.trim(), "123", "the host's is as it was");
    let message =
        machine.bad(2, &run_arguments(&["--rm", "--ipc", "host", "--sysctl", "kernel.shmmni=9"], &["true"]));
    assert!(message.contains("--sysctl kernel.shmmni"), "{message}");
}

#[test]
fn limits_on_memory_with_swap_shares_and_oom_score_are_set() {
    let Some(machine) = machine() else { return };
    let options = [
        "-m",
        "64m",
        "--memory-swap",
        "64m",
        "--memory-reservation",
        "32m",
        "--cpu-shares",
        "512",
        "--oom-score-adj",
        "500",
    ];
    let id = machine.start("limited", &options, "sleep 1000");
    let first = |files: &[&str]| files.iter().find_map(|file| machine.in_cgroup(&id, file));
    assert_eq!(first(&["memory.limit_in_bytes", "memory.max"]).as_deref(), Some("67108864"));
    let swap = first(&["memory.memsw.limit_in_bytes", "memory.swap.max"]);
    assert!(matches!(swap.as_deref(), Some("67108864" | "0")), "{swap:?}");
    assert_eq!(first(&["memory.soft_limit_in_bytes", "memory.low"]).as_deref(), Some("33554432"));
    assert!(matches!(first(&["cpu.shares", "cpu.weight"]).as_deref(), Some("512" | "20")));
    assert_eq!(machine.good(&["exec", "limited", "cat", "/proc/1/oom_score_adj"]), "500\n");
    let watcher = machine.status("limited")["watcher"].as_u64().unwrap();
    let score = std::fs::read_to_string(format!("/proc/{watcher}/oom_score_adj")).unwrap();
    assert_ne!(score.trim(), "500", "the watcher itself is not the first to be killed");
}

#[test]
fn a_device_can_have_another_name_and_be_for_reading_alone() {
    let Some(machine) = machine() else { return };
    let options = ["--device", "/dev/null:/dev/nothing:r", "--device", "/dev/zero:/dev/more"];
    let script = "cat /dev/nothing; echo read; (echo x > /dev/more) && echo wrote";
    assert_eq!(inside(&machine, &options, script), "read\nwrote");
    let message = machine.bad(2, &run_arguments(&["--rm", "--device", "/dev/no-such-node"], &["true"]));
    assert!(message.contains("--device: cannot read /dev/no-such-node"), "{message}");
}

#[test]
fn mounts_of_the_long_form_are_those_of_the_short_one() {
    let Some(machine) = machine() else { return };
    machine.write("data/in", "seen\n");
    let options = [
        "--mount",
        "type=bind,source=./data,target=/mnt/deep,readonly",
        "--mount",
        "type=tmpfs,target=/scratch,tmpfs-size=1m,tmpfs-mode=700",
        "--mount",
        "type=volume,source=kept,target=/kept",
    ];
    let script = "cat /mnt/deep/in; touch /mnt/deep/x 2>/dev/null || echo read-only; stat -c %a /scratch; echo y > /kept/y";
    assert_eq!(inside(&machine, &options, script), "seen\nread-only\n700");
    assert_eq!(inside(&machine, &["-v", "kept:/again:ro"], "cat /again/y"), "y");
    machine.good(&["volume", "rm", "kept"]);
}

#[test]
fn the_id_is_written_to_a_file_that_must_not_exist() {
    let Some(machine) = machine() else { return };
    let arguments = run_arguments(&["-d", "--name", "known", "--cidfile", "id"], &["sleep", "1000"]);
    let id = machine.good(&arguments);
    assert_eq!(std::fs::read_to_string(machine.path().join("id")).unwrap(), id.trim());
    let message = machine.bad(2, &run_arguments(&["--rm", "--cidfile", "id"], &["true"]));
    assert!(message.contains("--cidfile") && message.contains("exists"), "{message}");
    assert_eq!(machine.list().len(), 1);
}

#[test]
fn an_images_stop_signal_may_be_any_and_nonsense_is_term_with_a_warning() {
    let Some(machine) = machine() else { return };
    // Busybox's shell has no name for real-time signals, but a number for them.
    let script = "trap 'exit 51' TERM; trap 'exit 52' 37; trap 'exit 53' QUIT; echo ready; while :; do sleep 0.05; done";
    for (index, (signal, expected, warns)) in [
        ("SIGRTMIN+3", 52, false),
        ("37", 52, false),
        ("sigquit", 53, false),
        ("SIGNONSENSE", 51, true),
        ("\u{1b}[2J", 51, true),
    ]
    .into_iter()
    .enumerate()
    {
        let layout = format!("app{index}");
        Image::of(&machine).stop_signal(signal).write(&layout);
        let name = format!("by-{index}");
        let image = format!("oci:{layout}");
        let arguments = ["run", "-d", "--network", "none", "--name", &name, &image, "sh", "-c", script];
        let output = machine.call(&arguments);
        assert_eq!(code(&output), 0, "{signal}: {}", shown(&output));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(stderr.contains("warning: unknown StopSignal"), warns, "{signal}: {stderr}");
        assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
        machine.until_logged(&name, "ready");
        machine.good(&["stop", &name]);
        assert_eq!(machine.status(&name)["exit_code"], expected, "{signal}");
    }
}

#[test]
fn timeout_ends_a_container_whose_first_process_has_no_handler() {
    let Some(machine) = machine() else { return };
    let mut child = machine.spawn(&["--rm", "--name", "plain"], "exec sleep 1000");
    until("it runs", || machine.call(&["exec", "plain", "true"]).status.success());
    super::machine::send(child.id().into(), rustix::process::Signal::TERM);
    until("it ends", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 137, "{}", shown(&output));
    assert!(shown(&output).contains("--init"), "{}", shown(&output));
}

#[test]
fn an_init_forwards_signals_reaps_and_ends_with_the_programs_code() {
    let Some(machine) = machine() else { return };
    assert_eq!(code(&machine.sh(&["--init"], "exit 7")), 7);
    assert_eq!(code(&machine.sh(&["--init"], "kill -9 $$")), 137);
    let output = machine.call(&run_arguments(&["--rm", "--init"], &["no-such-program"]));
    assert_eq!(code(&output), 127, "{}", shown(&output));
    // A plain program ends by TERM, since it is not PID 1.
    let mut child = machine.spawn(&["--init", "--name", "plain"], "echo ready; exec sleep 1000");
    machine.until_logged("plain", "ready");
    until("it is asleep", || machine.good(&["exec", "plain", "ps"]).contains("sleep 1000"));
    super::machine::send(child.id().into(), rustix::process::Signal::TERM);
    until("it ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(143));
    // Orphaned processes do not stay as zombies.
    machine.start("parent", &["--init"], "(sleep 0.1 & ); (sleep 0.1 &); echo left; sleep 1000");
    machine.until_logged("parent", "left");
    until("both are reaped", || {
        let listed = machine.good(&["exec", "parent", "ps", "-o", "stat,args"]);
        !listed.contains("sleep 0.1") && !listed.lines().any(|line| line.trim_start().starts_with('Z'))
    });
}

#[test]
fn an_init_shows_the_container_nothing_of_the_host() {
    let Some(machine) = machine() else { return };
    let script =
        "cat /proc/1/cmdline /proc/1/environ /proc/1/comm 2>&1 | tr '\\0' ' '; ls /proc/1/fd 2>&1 | wc -l";
    let arguments = run_arguments(&["--rm", "--init", "--cap-add", "SYS_PTRACE"], &["sh", "-c", script]);
    let output = machine.command(&arguments).env("HOST_CANARY", "host-canary-value").output().unwrap();
    let text = shown(&output);
    assert_eq!(code(&output), 0, "{text}");
    assert!(text.contains("cudock-init"), "{text}");
    for secret in ["host-canary-value", "monitor", machine.path().to_str().unwrap()] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let plain = run_arguments(&["--rm", "--init"], &["cat", "/proc/1/environ"]);
    let output = machine.command(&plain).env("HOST_CANARY", "host-canary-value").output().unwrap();
    assert!(!shown(&output).contains("host-canary-value"), "{}", shown(&output));
}
