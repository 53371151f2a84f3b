use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use cudock_base::Report as _;
use cudock_inject::Edits;
use serde_json::json;

use super::argv::{exec, run};
use super::gpu::tests::driver;
use super::inputs::InputRefs;
use super::kind::EngineKind;
use crate::container::config::{
    DeviceConfig, GpuConfig, Ipc, LogConfig, MountConfig, NetworkMode, Private, Propagation, Restart, Rlimit,
    Seccomp,
};
use crate::container::exec::ExecRequest;
use crate::engine::{Pull, RunRequest};
use crate::error::RuntimeError;

/// The smallest request.
pub(super) fn request() -> RunRequest {
    let config = json!({
        "id": "0123456789abcdef", "name": "", "created": 0, "image": "team/app:1", "layers": [],
        "process": {
            "args": [], "environment": [], "given": [], "cwd": "", "user": "", "groups": [], "tty": false, "stdin": false,
        },
        "mounts": [], "gpus": null, "verify_gpu": false,
        "limits": {"memory": null, "cpu_millis": null, "cpuset": null, "pids": null, "shm": null, "rlimits": []},
        "network": {"mode": "host", "publish": [], "hostname": null, "hosts": [], "dns": []},
        "security": {
            "capabilities": [], "no_new_privileges": false, "seccomp": "default", "read_only": false, "devices": [],
        },
        "restart": "no", "stop_signal": "", "stop_seconds": 10, "remove": false, "labels": {}, "group": null,
    });
    RunRequest {
        config: serde_json::from_value(config).unwrap(),
        private: Private::default(),
        entrypoint: None,
        command: Vec::new(),
        cwd: None,
        user: None,
        detach: false,
        cidfile: None,
        publish_all: None,
        pull: None,
        platform: None,
    }
}

/// The arguments of a request that an empty one does not have.
fn added(kind: EngineKind, request: &RunRequest, gpus: Option<&Edits>, refs: &InputRefs) -> Vec<String> {
    let common = args(kind, &self::request());
    let mut args = text(run(kind, request, gpus, refs).unwrap());
    args.retain(|arg| !common.contains(arg));
    args
}

fn args(kind: EngineKind, request: &RunRequest) -> Vec<String> {
    text(run(kind, request, None, &InputRefs::default()).unwrap())
}

/// The same for a request without GPUs and files.
fn added_plain(kind: EngineKind, request: &RunRequest) -> Vec<String> {
    added(kind, request, None, &InputRefs::default())
}

fn text(args: Vec<OsString>) -> Vec<String> {
    args.into_iter().map(|arg| arg.into_string().unwrap()).collect()
}

const BOTH: [EngineKind; 2] = [EngineKind::Docker, EngineKind::Podman];

#[test]
fn a_request_for_nothing_is_confined_and_labeled() {
    for kind in BOTH {
        let expected = [
            "run",
            "--pids-limit=-1",
            "--network=host",
            "--cap-drop=ALL",
            "--stop-timeout=10",
            "--label=dev.cudock=1",
            "--",
            "team/app:1",
        ];
        assert_eq!(args(kind, &request()), expected);
    }
}

/// A change to a request, and the arguments it adds for docker and for podman.
type Case = (fn(&mut RunRequest), &'static [&'static str], &'static [&'static str]);

/// A case whose arguments are the same for both.
macro_rules! same {
    ($change:expr, $args:expr) => {
        ($change, $args, $args)
    };
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<Case> {
    vec![
        same!(|r| r.detach = true, &["--detach"]),
        same!(|r| r.config.remove = true, &["--rm"]),
        same!(|r| r.config.process.stdin = true, &["--interactive"]),
        same!(|r| r.config.process.tty = true, &["--tty"]),
        same!(|r| r.config.name = "api".into(), &["--name=api"]),
        same!(|r| r.config.limits.memory = Some(512 << 20), &["--memory=536870912b"]),
        same!(|r| r.config.limits.cpu_millis = Some(1500), &["--cpus=1.500"]),
        same!(|r| r.config.limits.cpu_millis = Some(50), &["--cpus=0.050"]),
        same!(|r| r.config.limits.cpuset = Some("0-3,8".into()), &["--cpuset-cpus=0-3,8"]),
        same!(|r| r.config.limits.pids = Some(64), &["--pids-limit=64"]),
        same!(|r| r.config.limits.shm = Some(1 << 30), &["--shm-size=1073741824b"]),
        same!(
            |r| r.config.limits.rlimits = vec![limit("nofile", 4096, 1024)],
            &["--ulimit=nofile=1024:1024"]
        ),
        same!(
            |r| r.config.limits.rlimits = vec![limit("memlock", u64::MAX, u64::MAX)],
            &["--ulimit=memlock=-1:-1"]
        ),
        same!(|r| r.config.limits.memory_swap = Some(-1), &["--memory-swap=-1"]),
        same!(|r| r.config.limits.memory_reservation = Some(4096), &["--memory-reservation=4096b"]),
        same!(|r| r.config.limits.cpu_shares = Some(512), &["--cpu-shares=512"]),
        same!(|r| r.config.limits.cpuset_mems = Some("0".into()), &["--cpuset-mems=0"]),
        same!(|r| r.config.limits.oom_score_adj = Some(-5), &["--oom-score-adj=-5"]),
        same!(|r| r.config.ipc = Ipc::Host, &["--ipc=host"]),
        same!(
            |r| {
                r.config.sysctls.insert("net.core.somaxconn".into(), "64".into());
            },
            &["--sysctl=net.core.somaxconn=64"]
        ),
        same!(|r| r.config.process.init = true, &["--init"]),
        same!(|r| r.cidfile = Some("/tmp/id".into()), &["--cidfile=/tmp/id"]),
        same!(|r| r.pull = Some(Pull::Always), &["--pull=always"]),
        same!(|r| r.platform = Some("linux/arm64".into()), &["--platform=linux/arm64"]),
        same!(|r| r.publish_all = Some(vec!["53/udp".into()]), &["--publish-all", "--expose=53/udp"]),
        same!(
            |r| {
                r.config.annotations.insert("a.b/c".into(), "d".into());
            },
            &["--annotation=a.b/c=d"]
        ),
        same!(|r| r.config.log = LogConfig::None, &["--log-driver=none"]),
        (
            |r| r.config.log = LogConfig::Kept { max_bytes: 4096, max_files: 3 },
            &["--log-opt=max-size=4096", "--log-opt=max-file=3"],
            &["--log-opt=max-size=4096"],
        ),
        same!(
            |r| {
                let (create, propagation) = (true, Propagation::Slave);
                let (source, target) = ("/mnt".into(), "/mnt".into());
                r.config.mounts =
                    vec![MountConfig::Bind { source, target, read_only: true, create, propagation }];
            },
            &["--mount=type=bind,source=/mnt,target=/mnt,readonly,bind-propagation=rslave"]
        ),
        same!(
            |r| {
                let target = "/t".into();
                r.config.mounts =
                    vec![MountConfig::Tmpfs { target, size: Some(4096), mode: None, no_exec: false }];
            },
            &["--tmpfs=/t:exec,mode=1777,size=4096"]
        ),
        (
            |r| r.config.mounts = vec![named("kept", true, true), named("kept", false, false)],
            &[
                "--mount=type=volume,source=kept,target=/v,readonly",
                "--mount=type=volume,source=kept,target=/v,volume-nocopy",
            ],
            &[
                "--mount=type=volume,source=kept,target=/v,readonly",
                "--mount=type=volume,source=kept,target=/v",
            ],
        ),
        same!(|r| r.config.network.mode = NetworkMode::None, &["--network=none"]),
        same!(
            |r| r.config.network.publish = vec!["127.0.0.1:8080:80/tcp".into()],
            &["--publish=127.0.0.1:8080:80/tcp"]
        ),
        same!(|r| r.config.network.hostname = Some("box".into()), &["--hostname=box"]),
        same!(|r| r.config.network.hosts = vec![("db".into(), "fd00::5".into())], &["--add-host=db:fd00::5"]),
        same!(|r| r.config.network.dns = vec!["10.0.0.53".into()], &["--dns=10.0.0.53"]),
        same!(
            |r| r.config.security.capabilities = vec!["CAP_CHOWN".into(), "KILL".into()],
            &["--cap-add=CHOWN", "--cap-add=KILL"]
        ),
        same!(|r| r.config.security.no_new_privileges = true, &["--security-opt=no-new-privileges"]),
        same!(|r| r.config.security.seccomp = Seccomp::Unconfined, &["--security-opt=seccomp=unconfined"]),
        (
            |r| r.config.security.read_only = true,
            &["--read-only"],
            &["--read-only", "--read-only-tmpfs=false"],
        ),
        same!(
            |r| r.config.security.devices = vec![DeviceConfig::at("/dev/fuse")],
            &["--device=/dev/fuse:/dev/fuse:rw"]
        ),
        (
            |r| r.config.security.devices = vec![DeviceConfig::at("/dev/a,b")],
            &["--device=/dev/a,b:/dev/a,b:rw"],
            &["--device=\"/dev/a,b:/dev/a,b:rw\""],
        ),
        same!(|r| r.config.restart = Restart::OnFailure { attempts: None }, &["--restart=on-failure"]),
        same!(|r| r.config.restart = Restart::OnFailure { attempts: Some(3) }, &["--restart=on-failure:3"]),
        same!(|r| r.config.restart = Restart::Always, &["--restart=unless-stopped"]),
        same!(|r| r.config.stop_signal = "SIGINT".into(), &["--stop-signal=SIGINT"]),
        same!(|r| r.config.stop_seconds = 3, &["--stop-timeout=3"]),
        same!(|r| r.user = Some("ann:video".into()), &["--user=ann:video"]),
        same!(|r| r.config.process.groups = vec!["44".into()], &["--group-add=44"]),
        same!(|r| r.cwd = Some("/work".into()), &["--workdir=/work"]),
        same!(
            |r| {
                r.config.labels.insert("team".into(), "a=b,c".into());
            },
            &["--label=team=a=b,c"]
        ),
        same!(|r| r.config.group = Some("web".into()), &["--label=dev.cudock.group=web"]),
        same!(|r| r.config.gpus = Some(gpus("0,1")), &["--label=dev.cudock.gpus=0,1"]),
        same!(|r| r.command = vec!["ls".into(), "--rm".into()], &["ls", "--rm"]),
        same!(|r| r.entrypoint = Some(vec![]), &["--entrypoint="]),
        (
            |r| r.entrypoint = Some(vec!["[".into(), "-e".into(), "/a \"b\"".into()]),
            &["--entrypoint=[", "-e", "/a \"b\""],
            &[r#"--entrypoint=["[","-e","/a \"b\""]"#],
        ),
        same!(
            |r| r.config.mounts = vec![bind("/data", "/in", false), bind("/data", "/ro", true)],
            &[
                "--mount=type=bind,source=/data,target=/in",
                "--mount=type=bind,source=/data,target=/ro,readonly"
            ]
        ),
        same!(
            |r| r.config.mounts = vec![bind("/a,\"b\"", "/c,d", false)],
            &["--mount=type=bind,\"source=/a,\"\"b\"\"\",\"target=/c,d\""]
        ),
        (
            |r| r.config.mounts = vec![tmpfs(Some(4096), Some(0o700)), tmpfs(None, None)],
            &[
                "--mount=type=tmpfs,target=/t,tmpfs-size=4096,tmpfs-mode=700",
                "--mount=type=tmpfs,target=/t,tmpfs-mode=1777",
            ],
            &[
                "--mount=type=tmpfs,target=/t,tmpfs-size=4096,tmpfs-mode=700,notmpcopyup",
                "--mount=type=tmpfs,target=/t,tmpfs-mode=1777,notmpcopyup",
            ],
        ),
    ]
}

fn limit(name: &str, soft: u64, hard: u64) -> Rlimit {
    Rlimit { name: name.to_owned(), soft, hard }
}

fn bind(source: &str, target: &str, read_only: bool) -> MountConfig {
    let (source, target) = (source.into(), target.into());
    MountConfig::Bind { source, target, read_only, create: false, propagation: Propagation::Private }
}

fn named(name: &str, read_only: bool, copy: bool) -> MountConfig {
    MountConfig::Volume {
        name: name.to_owned(),
        source: PathBuf::new(),
        target: "/v".into(),
        read_only,
        copy,
    }
}

fn tmpfs(size: Option<u64>, mode: Option<u32>) -> MountConfig {
    MountConfig::Tmpfs { target: "/t".into(), size, mode, no_exec: true }
}

fn gpus(devices: &str) -> GpuConfig {
    GpuConfig { devices: devices.to_owned(), capabilities: None, driver_root: None, device_root: None }
}

#[test]
fn every_setting_becomes_its_option() {
    for (index, (change, docker, podman)) in rows().into_iter().enumerate() {
        let mut request = self::request();
        change(&mut request);
        assert_eq!(added_plain(EngineKind::Docker, &request), docker, "docker, row {index}");
        assert_eq!(added_plain(EngineKind::Podman, &request), podman, "podman, row {index}");
    }
}

#[test]
fn options_come_before_the_image_and_the_command_after_it() {
    for (index, (change, _, _)) in rows().into_iter().enumerate() {
        let mut request = self::request();
        change(&mut request);
        let args = args(EngineKind::Podman, &request);
        let image = args.iter().position(|arg| arg == "team/app:1").unwrap();
        assert_eq!(args.get(image - 1).map(String::as_str), Some("--"), "row {index}");
        let options = args.get(1..image - 1).unwrap();
        assert!(options.iter().all(|arg| arg.starts_with("--")), "row {index}: {options:?}");
        assert!(args.ends_with(&request.command), "row {index}: {args:?}");
    }
}

#[test]
fn the_users_labels_cannot_override_ours() {
    let mut request = self::request();
    request.config.labels.insert("dev.cudock".into(), "0".into());
    let args = args(EngineKind::Docker, &request);
    let labels: Vec<&String> = args.iter().filter(|arg| arg.starts_with("--label=")).collect();
    assert_eq!(labels, ["--label=dev.cudock=0", "--label=dev.cudock=1"]);
}

#[test]
fn a_network_with_ports_or_outbound_access_is_the_engines_default() {
    for (mode, publish) in [(NetworkMode::Pasta, vec![]), (NetworkMode::None, vec!["80:80".to_owned()])] {
        let mut request = self::request();
        request.config.network.mode = mode;
        request.config.network.publish = publish;
        let args = args(EngineKind::Docker, &request);
        assert!(!args.iter().any(|arg| arg.starts_with("--network")), "{args:?}");
    }
}

#[test]
fn name_servers_are_left_out_without_a_network() {
    let mut request = self::request();
    request.config.network.mode = NetworkMode::None;
    request.config.network.dns = vec!["10.0.0.53".into()];
    assert_eq!(added_plain(EngineKind::Podman, &request), ["--network=none"]);
}

#[test]
fn variables_are_passed_by_name_only() {
    let mut request = self::request();
    request.private.environment =
        vec![("TOKEN".into(), "hunter2".into()), ("KEY".into(), "line\nhunter2".into())];
    request.config.process.given = vec!["TOKEN".into(), "KEY".into()];
    request.config.security.seccomp = Seccomp::Profile("{\"defaultAction\": \"hunter2\"}".into());
    let refs = InputRefs {
        env_file: Some(PathBuf::from("/proc/self/fd/7")),
        env_names: vec!["KEY".into()],
        seccomp_file: Some(PathBuf::from("/proc/self/fd/8")),
    };
    for kind in BOTH {
        let args = added(kind, &request, None, &refs);
        let expected = ["--security-opt=seccomp=/proc/self/fd/8", "--env-file=/proc/self/fd/7", "--env=KEY"]
            .map(str::to_owned);
        assert_eq!(args, expected);
    }
    let exec_request = ExecRequest {
        args: vec!["env".into(), "-0".into()],
        environment: request.private.environment,
        user: Some("ann".into()),
        cwd: Some("/work".into()),
        tty: true,
        stdin: true,
    };
    let expected = [
        "exec",
        "--interactive",
        "--tty",
        "--user=ann",
        "--workdir=/work",
        "--env-file=/proc/self/fd/7",
        "--env=KEY",
        "c0ffee",
        "env",
        "-0",
    ];
    assert_eq!(text(exec(EngineKind::Docker, "c0ffee", &exec_request, &refs)), expected);
}

#[test]
fn gpus_are_devices_files_and_groups() {
    let mut request = self::request();
    request.config.gpus = Some(gpus("1"));
    for kind in BOTH {
        let directory = "/usr/local/nvidia/lib64";
        let file = "--mount=type=bind,source=/tree/libcuda.so.580.1,target=";
        let expected = [
            "--device=/tree/dev/nvidia1:/dev/nvidia1:rw".to_owned(),
            format!("{file}{directory}/libcuda.so.580.1,readonly"),
            // Connecting to a socket needs write access.
            "--mount=type=bind,source=/run/nvidia/socket,target=/run/nvidia/socket".to_owned(),
            format!("{file}{directory}/gbm/x.so,readonly"),
            format!("{file}{directory}/libcuda.so,readonly"),
            format!("{file}{directory}/libcuda.so.1,readonly"),
            "--group-add=44".to_owned(),
            "--label=dev.cudock.gpus=1".to_owned(),
        ];
        assert_eq!(added(kind, &request, Some(&driver()), &InputRefs::default()), expected);
    }
}

#[test]
fn a_root_directory_is_passed_to_podman_and_not_written_to() {
    let mut request = self::request();
    request.config.image = "rootfs:/srv/debian".into();
    request.entrypoint = Some(vec!["/bin/sh".into()]);
    request.command = vec!["-c".into(), "id".into()];
    let args = args(EngineKind::Podman, &request);
    assert!(
        args.ends_with(&["--rootfs", "--", "/srv/debian:O", "/bin/sh", "-c", "id"].map(str::to_owned)),
        "{args:?}"
    );
}

#[test]
fn what_docker_cannot_do_is_an_error_with_a_hint() {
    let mut directory = request();
    directory.config.image = "rootfs:/srv/debian".into();
    let mut joining = request();
    joining.config.network.mode = NetworkMode::Join("/run/netns/web".into());
    for (request, expected) in [
        (&directory, "docker cannot run a directory in place of an image"),
        (&joining, "docker cannot join an existing network namespace"),
    ] {
        let error = run(EngineKind::Docker, request, None, &InputRefs::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(matches!(error, RuntimeError::Host { .. }) && !error.hints().is_empty());
    }
    assert_eq!(added_plain(EngineKind::Podman, &joining), ["--network=ns:/run/netns/web"]);
}

#[test]
fn paths_that_are_not_utf_8_are_passed_unchanged() {
    let path = PathBuf::from(OsString::from_vec(b"/\xff,x".to_vec()));
    let mut request = self::request();
    let (create, propagation) = (false, Propagation::Private);
    request.config.mounts =
        vec![MountConfig::Bind { source: path, target: "/in".into(), read_only: false, create, propagation }];
    let args = run(EngineKind::Docker, &request, None, &InputRefs::default()).unwrap();
    let expected = OsString::from_vec(b"--mount=type=bind,\"source=/\xff,x\",target=/in".to_vec());
    assert!(args.contains(&expected), "{args:?}");
}
