//! The flags of `docker container run`, and whether `cudock run` supports each.
//!
//! Every flag of docker's reference is in one of two tables, so that none is ever taken for the image: it works, or it is
//! rejected by name with an alternative. Flags that only cudock has are not in them.

use clap::{Arg, ArgAction};
use cudock_base::UsageError;
use cudock_base::text::suggest::nearest;

/// Those that are flags of `cudock run`, too, perhaps for some of docker's values only.
pub const WORKING: &[&str] = &[
    "add-host",
    "annotation",
    "cap-add",
    "cap-drop",
    "cgroupns",
    "cidfile",
    "cpu-shares",
    "cpus",
    "cpuset-cpus",
    "cpuset-mems",
    "detach",
    "device",
    "dns",
    "entrypoint",
    "env",
    "env-file",
    "expose",
    "gpus",
    "group-add",
    "help",
    "hostname",
    "init",
    "interactive",
    "ipc",
    "label",
    "log-driver",
    "log-opt",
    "memory",
    "memory-reservation",
    "memory-swap",
    "mount",
    "name",
    "network",
    "no-healthcheck",
    "oom-score-adj",
    "pids-limit",
    "platform",
    "publish",
    "publish-all",
    "pull",
    "quiet",
    "read-only",
    "restart",
    "rm",
    "runtime",
    "security-opt",
    "shm-size",
    "sig-proxy",
    "stop-signal",
    "stop-timeout",
    "sysctl",
    "tmpfs",
    "tty",
    "ulimit",
    "user",
    "userns",
    "volume",
    "workdir",
];

/// Those that are refused, and what to do instead.
pub const REFUSED: &[(&[&str], &str)] = &[
    (&["label-file"], "use --label NAME=VALUE"),
    (&["attach"], "leave it out: without -d both outputs are attached, and -i attaches the input"),
    (
        &[
            "blkio-weight",
            "blkio-weight-device",
            "device-read-bps",
            "device-read-iops",
            "device-write-bps",
            "device-write-iops",
        ],
        "limits on block I/O are not supported; leave it out",
    ),
    (&["cgroup-parent"], "set CUDOCK_CGROUP=/PATH in the environment"),
    (
        &["cpu-count", "cpu-percent", "io-maxbandwidth", "io-maxiops", "isolation"],
        "it is for Windows containers",
    ),
    (&["cpu-period", "cpu-quota"], "use --cpus NUMBER"),
    (&["cpu-rt-period", "cpu-rt-runtime"], "real-time scheduling is not supported; use --cpus NUMBER"),
    (&["detach-keys"], "attach is not supported; use `cudock logs -f NAME` and `cudock exec -it NAME sh`"),
    (&["device-cgroup-rule"], "use --device PATH for each device"),
    (&["disable-content-trust"], "leave it out: layers are checked against their digests"),
    (&["dns-option", "dns-search"], "mount a file: -v ./resolv.conf:/etc/resolv.conf:ro"),
    (&["domainname"], "use --hostname NAME.DOMAIN"),
    (
        &[
            "health-cmd",
            "health-interval",
            "health-retries",
            "health-start-interval",
            "health-start-period",
            "health-timeout",
        ],
        "write a group file with a livenessProbe or readinessProbe and run `cudock up -f`",
    ),
    (
        &["ip", "ip6", "link-local-ip"],
        "a container does not have its own address; publish a port with -p HOST:CONTAINER",
    ),
    (&["kernel-memory"], "use -m BYTES, which counts kernel memory, too"),
    (&["link", "network-alias"], "put both containers in a group: `cudock up -f` gives them one localhost"),
    (&["mac-address"], "omit it; a container has no network interface of its own"),
    (&["memory-swappiness"], "use --memory-swap BYTES; equal to -m it means no swap"),
    (&["oom-kill-disable"], "use --oom-score-adj -1000, which spares the container as long as possible"),
    (
        &["pid"],
        "a container sees its own processes only; `cudock top NAME` lists them from outside, and a monitor of the host runs on \
         the host",
    ),
    (
        &["privileged"],
        "it would give the container full access to this machine; GPUs need only --gpus all. Add what it needs: --cap-add \
         NAME, --device PATH, --security-opt seccomp=unconfined",
    ),
    (&["storage-opt"], "limits on the size of the container's root are not supported; leave it out"),
    (&["use-api-socket"], "omit it; cudock has neither a daemon nor an API socket"),
    (&["uts"], "use --hostname NAME; the host's name would be the container's to change"),
    (&["volume-driver"], "mount it on the host, then -v /PATH:/TARGET"),
    (&["volumes-from"], "name the volume in both containers: -v NAME:/PATH"),
];

pub const LETTERS: &[(char, &str)] = &[
    ('a', "attach"),
    ('c', "cpu-shares"),
    ('d', "detach"),
    ('e', "env"),
    ('h', "hostname"),
    ('i', "interactive"),
    ('l', "label"),
    ('m', "memory"),
    ('P', "publish-all"),
    ('p', "publish"),
    ('q', "quiet"),
    ('t', "tty"),
    ('u', "user"),
    ('v', "volume"),
    ('w', "workdir"),
];

/// Makes clap read a flag as docker's parser does: a switch may have a value after an equals sign (`--rm=false`, `-it=false`), and
/// any other flag takes what follows as its value, even if that begins with a dash.
pub fn read_as_docker(flag: Arg) -> Arg {
    match flag.get_action() {
        ArgAction::SetTrue => {
            let flag = if flag.get_default_values().is_empty() { flag.default_value("false") } else { flag };
            flag.action(ArgAction::Set)
                .num_args(0..=1)
                .require_equals(true)
                .value_name("BOOL")
                .default_missing_value("true")
                .hide_default_value(true)
                .value_parser(|text: &str| switch(text).ok_or("a switch is true or false"))
        }
        ArgAction::Set | ArgAction::Append if !flag.is_positional() => flag.allow_hyphen_values(true),
        _ => flag,
    }
}

/// The texts that Go reads as a truth value.
fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// The error for a flag before the image that `cudock run` does not have, as it was typed. `known` are the names and letters of those
/// that it has.
pub fn unknown_flag(flag: &str, known: &[String]) -> UsageError {
    let Some(long) = flag.strip_prefix("--") else { return unknown_letter(flag) };
    let name = long.split('=').next().unwrap_or(long);
    if let Some(instead) = instead_of(name) {
        return refused(&format!("--{name}"), instead);
    }
    let docker = WORKING.iter().chain(REFUSED.iter().flat_map(|(names, _)| *names)).copied();
    let names = docker.chain(known.iter().map(String::as_str));
    let failure = UsageError::new(format!("unknown flag --{name} before the image"));
    match nearest(name, names).first() {
        Some(near) => failure.hint(match instead_of(near) {
            Some(instead) => format!("--{near} is not supported: {instead}"),
            None => format!("did you mean --{near}?"),
        }),
        None => failure.hint(LISTED),
    }
}

const LISTED: &str = "`cudock run --help` lists the flags; the program's own come after the image";

fn unknown_letter(flag: &str) -> UsageError {
    let letter = flag.chars().nth(1);
    let docker = LETTERS.iter().find(|(known, _)| Some(*known) == letter);
    match docker.and_then(|(letter, name)| Some((letter, name, instead_of(name)?))) {
        Some((letter, name, instead)) => refused(&format!("-{letter}/--{name}"), instead),
        None => UsageError::new(format!("unknown flag {flag} before the image")).hint(LISTED),
    }
}

fn instead_of(name: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(names, _)| names.contains(&name)).map(|(_, instead)| *instead)
}

fn refused(flag: &str, instead: &str) -> UsageError {
    UsageError::new(format!("{flag} is not supported by cudock run")).hint(instead)
}

/// Values of docker's flags that are accepted since they change nothing; all others are refused.
const ACCEPTED: [(&str, &[&str], &str); 3] = [
    ("--cgroupns", &["private"], "a container sees its own control groups"),
    ("--userns", &["host"], "root gets no user namespace, other users always one"),
    ("--runtime", &["nvidia", "runc", "io.containerd.runc.v2"], "cudock is the runtime"),
];

/// Checks a flag that is accepted for what docker does by default.
pub fn check_accepted(flag: &str, value: Option<&str>) -> Result<(), UsageError> {
    let row = ACCEPTED.into_iter().find(|(name, ..)| *name == flag);
    match (row, value) {
        (Some((_, accepted, why)), Some(value)) if !accepted.contains(&value) => {
            Err(UsageError::new(format!("{flag} {value} is not supported: {why}"))
                .hint(format!("leave {flag} out")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flag_and_no_letter_is_in_the_tables_twice() {
        let refused = REFUSED.iter().flat_map(|(names, _)| *names);
        let mut seen = std::collections::HashSet::new();
        assert!(WORKING.iter().chain(refused).all(|name| seen.insert(*name)));
        assert!(LETTERS.iter().all(|(_, name)| seen.contains(name)));
        let letters: std::collections::HashSet<char> = LETTERS.iter().map(|(letter, _)| *letter).collect();
        assert_eq!(letters.len(), LETTERS.len());
    }

    #[test]
    fn flags_that_change_nothing_are_accepted_and_others_refused() {
        assert!(check_accepted("--userns", None).is_ok());
        assert!(check_accepted("--userns", Some("host")).is_ok());
        let error = check_accepted("--userns", Some("keep-id")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--userns keep-id is not supported: root gets no user namespace, other users always one"
        );
        assert!(check_accepted("--runtime", Some("kata")).is_err());
    }

    #[test]
    fn an_unknown_flag_is_refused_with_what_to_do_instead() {
        use cudock_base::Report as _;
        let known = ["name".to_owned(), "i".to_owned(), "t".to_owned()];
        let hint = |flag: &str| unknown_flag(flag, &known).hints().join("; ");
        assert_eq!(hint("--cpu-quota=5"), "use --cpus NUMBER");
        assert_eq!(hint("--entrypont"), "did you mean --entrypoint?");
        assert!(hint("-a").starts_with("leave it out"), "{}", hint("-a"));
        assert!(hint("-X").contains("--help"), "{}", hint("-X"));
    }
}
