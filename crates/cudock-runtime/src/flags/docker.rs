//! The flags of `docker run`, and whether `cudock run` supports each.
//!
//! Every flag of docker's reference is a row, so that none is ever taken for the image: it works, or it is rejected by name
//! with an alternative. Flags that only cudock has are not in the table.

use cudock_base::UsageError;
use cudock_base::suggest::nearest;

use self::Support::{Refused, Works};

/// What `cudock run` does with a flag of docker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It is a flag of `cudock run`, perhaps for some of docker's values only.
    Works,
    /// It is refused; what to do instead.
    Refused(&'static str),
}

/// A flag of `docker run`.
#[derive(Debug, Clone, Copy)]
pub struct DockerFlag {
    /// Its long name, without dashes.
    pub name: &'static str,
    /// Its letter.
    pub short: Option<char>,
    /// What cudock does with it.
    pub support: Support,
}

const fn row(name: &'static str, short: Option<char>, support: Support) -> DockerFlag {
    DockerFlag { name, short, support }
}

const BLOCK_IO: &str = "limits on block I/O are not supported; leave it out";
const HEALTH: &str = "write a group file with a livenessProbe or readinessProbe and run `cudock up -f`";
const WINDOWS: &str = "it is for Windows containers";
const ADDRESS: &str = "a container does not have its own address; publish a port with -p HOST:CONTAINER";
const LOCAL_NAME: &str = "put both containers in a group: `cudock up -f` gives them one localhost";

/// All flags of `docker container run`, by name.
pub const DOCKER_FLAGS: &[DockerFlag] = &[
    row("add-host", None, Works),
    row("annotation", None, Refused("use --label NAME=VALUE")),
    row(
        "attach",
        Some('a'),
        Refused("leave it out: without -d both outputs are attached, and -i attaches the input"),
    ),
    row("blkio-weight", None, Refused(BLOCK_IO)),
    row("blkio-weight-device", None, Refused(BLOCK_IO)),
    row("cap-add", None, Works),
    row("cap-drop", None, Works),
    row("cgroup-parent", None, Refused("set CUDOCK_CGROUP=/PATH in the environment")),
    row("cgroupns", None, Works),
    row("cidfile", None, Works),
    row("cpu-count", None, Refused(WINDOWS)),
    row("cpu-percent", None, Refused(WINDOWS)),
    row("cpu-period", None, Refused("use --cpus NUMBER")),
    row("cpu-quota", None, Refused("use --cpus NUMBER")),
    row("cpu-rt-period", None, Refused("real-time scheduling is not supported; use --cpus NUMBER")),
    row("cpu-rt-runtime", None, Refused("real-time scheduling is not supported; use --cpus NUMBER")),
    row("cpu-shares", Some('c'), Works),
    row("cpus", None, Works),
    row("cpuset-cpus", None, Works),
    row("cpuset-mems", None, Works),
    row("detach", Some('d'), Works),
    row(
        "detach-keys",
        None,
        Refused("attach is not supported; use `cudock logs -f NAME` and `cudock exec -it NAME sh`"),
    ),
    row("device", None, Works),
    row("device-cgroup-rule", None, Refused("use --device PATH for each device")),
    row("device-read-bps", None, Refused(BLOCK_IO)),
    row("device-read-iops", None, Refused(BLOCK_IO)),
    row("device-write-bps", None, Refused(BLOCK_IO)),
    row("device-write-iops", None, Refused(BLOCK_IO)),
    row("disable-content-trust", None, Refused("leave it out: layers are checked against their digests")),
    row("dns", None, Works),
    row("dns-option", None, Refused("mount a file: -v ./resolv.conf:/etc/resolv.conf:ro")),
    row("dns-search", None, Refused("mount a file: -v ./resolv.conf:/etc/resolv.conf:ro")),
    row("domainname", None, Refused("use --hostname NAME.DOMAIN")),
    row("entrypoint", None, Works),
    row("env", Some('e'), Works),
    row("env-file", None, Works),
    row("expose", None, Works),
    row("gpus", None, Works),
    row("group-add", None, Works),
    row("health-cmd", None, Refused(HEALTH)),
    row("health-interval", None, Refused(HEALTH)),
    row("health-retries", None, Refused(HEALTH)),
    row("health-start-interval", None, Refused(HEALTH)),
    row("health-start-period", None, Refused(HEALTH)),
    row("health-timeout", None, Refused(HEALTH)),
    row("help", None, Works),
    row("hostname", Some('h'), Works),
    row("init", None, Works),
    row("interactive", Some('i'), Works),
    row("io-maxbandwidth", None, Refused(WINDOWS)),
    row("io-maxiops", None, Refused(WINDOWS)),
    row("ip", None, Refused(ADDRESS)),
    row("ip6", None, Refused(ADDRESS)),
    row("ipc", None, Works),
    row("isolation", None, Refused(WINDOWS)),
    row("kernel-memory", None, Refused("use -m BYTES, which counts kernel memory, too")),
    row("label", Some('l'), Works),
    row("label-file", None, Refused("use --label NAME=VALUE")),
    row("link", None, Refused(LOCAL_NAME)),
    row("link-local-ip", None, Refused(ADDRESS)),
    row("log-driver", None, Works),
    row("log-opt", None, Refused("leave it out: logs are rotated at 64 MiB; `cudock logs NAME` reads them")),
    row("mac-address", None, Refused("omit it; a container has no network interface of its own")),
    row("memory", Some('m'), Works),
    row("memory-reservation", None, Works),
    row("memory-swap", None, Works),
    row("memory-swappiness", None, Refused("use --memory-swap BYTES; equal to -m it means no swap")),
    row("mount", None, Works),
    row("name", None, Works),
    row("network", None, Works),
    row("network-alias", None, Refused(LOCAL_NAME)),
    row("no-healthcheck", None, Works),
    row(
        "oom-kill-disable",
        None,
        Refused("use --oom-score-adj -1000, which spares the container as long as possible"),
    ),
    row("oom-score-adj", None, Works),
    row(
        "pid",
        None,
        Refused("a container sees its own processes only; `cudock top NAME` lists them from outside"),
    ),
    row("pids-limit", None, Works),
    row("platform", None, Works),
    row(
        "privileged",
        None,
        Refused(
            "it would give the container full access to this machine; GPUs need only --gpus all. Add what it needs: --cap-add \
             NAME, --device PATH, --security-opt seccomp=unconfined",
        ),
    ),
    row("publish", Some('p'), Works),
    row(
        "publish-all",
        Some('P'),
        Refused("name each port: -p HOST:CONTAINER, or -p 0:CONTAINER for a free one"),
    ),
    row("pull", None, Works),
    row("quiet", Some('q'), Works),
    row("read-only", None, Works),
    row("restart", None, Works),
    row("rm", None, Works),
    row("runtime", None, Works),
    row("security-opt", None, Works),
    row("shm-size", None, Works),
    row("sig-proxy", None, Works),
    row("stop-signal", None, Works),
    row("stop-timeout", None, Works),
    row(
        "storage-opt",
        None,
        Refused("limits on the size of the container's root are not supported; leave it out"),
    ),
    row("sysctl", None, Works),
    row("tmpfs", None, Works),
    row("tty", Some('t'), Works),
    row("ulimit", None, Works),
    row("use-api-socket", None, Refused("omit it; there is no daemon and no API socket")),
    row("user", Some('u'), Works),
    row("userns", None, Works),
    row("uts", None, Refused("use --hostname NAME; the host's name would be the container's to change")),
    row("volume", Some('v'), Works),
    row("volume-driver", None, Refused("mount it on the host, then -v /PATH:/TARGET")),
    row("volumes-from", None, Refused("name the volume in both containers: -v NAME:/PATH")),
    row("workdir", Some('w'), Works),
];

/// Rejects an argument in place of the image that begins with a dash: a flag that the argument parser does not know. `known`
/// returns the names and letters of those that it knows.
pub fn refuse_unknown(argument: &str, known: &dyn Fn() -> Vec<String>) -> Result<(), UsageError> {
    let Some(flag) = argument.strip_prefix('-').filter(|flag| !flag.is_empty() && argument != "--") else {
        return Ok(());
    };
    let known = known();
    let Some(long) = flag.strip_prefix('-') else { return Err(unknown_letter(flag, &known)) };
    let name = long.split('=').next().unwrap_or(long);
    if let Some(DockerFlag { support: Refused(instead), .. }) = by_name(name) {
        return Err(refused(&format!("--{name}"), instead));
    }
    let docker = DOCKER_FLAGS.iter().map(|flag| flag.name);
    let names = docker.chain(known.iter().map(String::as_str));
    let failure = UsageError::new(format!("unknown flag --{name} before the image"));
    Err(match nearest(name, names).first() {
        Some(near) => match by_name(near).map(|flag| flag.support) {
            Some(Refused(instead)) => failure.hint(format!("--{near} is not supported: {instead}")),
            _ => failure.hint(format!("did you mean --{near}?")),
        },
        None => failure.hint("`cudock run --help` lists the flags; the program's own come after the image"),
    })
}

/// The first letter of a group such as `-itP` that is not known.
fn unknown_letter(letters: &str, known: &[String]) -> UsageError {
    let is_known = |letter: &char| known.iter().any(|flag| *flag == letter.to_string());
    let Some(letter) = letters.chars().find(|letter| !is_known(letter)) else {
        return UsageError::new(format!("cannot read -{letters} before the image"))
            .hint("write each flag separately");
    };
    match DOCKER_FLAGS.iter().find(|flag| flag.short == Some(letter)) {
        Some(DockerFlag { name, support: Refused(instead), .. }) => {
            refused(&format!("-{letter}/--{name}"), instead)
        }
        _ => UsageError::new(format!("unknown flag -{letter} before the image"))
            .hint("`cudock run --help` lists the flags; the program's own come after the image"),
    }
}

fn by_name(name: &str) -> Option<&'static DockerFlag> {
    DOCKER_FLAGS.iter().find(|flag| flag.name == name)
}

fn refused(flag: &str, instead: &str) -> UsageError {
    UsageError::new(format!("{flag} is not supported by cudock run")).hint(instead)
}

/// Values of docker's flags that are accepted since they change nothing; all others are refused.
const ACCEPTED: [(&str, &[&str], &str); 4] = [
    ("--log-driver", &["json-file", "local"], "logs are kept as json-file keeps them"),
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
    fn the_table_is_sorted_and_has_no_flag_twice() {
        assert!(DOCKER_FLAGS.windows(2).all(|pair| pair[0].name < pair[1].name));
        let mut letters: Vec<char> = DOCKER_FLAGS.iter().filter_map(|flag| flag.short).collect();
        let count = letters.len();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), count);
    }

    #[test]
    fn flags_that_change_nothing_are_accepted_and_others_refused() {
        assert!(check_accepted("--log-driver", None).is_ok());
        assert!(check_accepted("--log-driver", Some("local")).is_ok());
        let error = check_accepted("--log-driver", Some("syslog")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--log-driver syslog is not supported: logs are kept as json-file keeps them"
        );
        assert!(check_accepted("--runtime", Some("kata")).is_err());
    }

    #[test]
    fn an_unknown_flag_is_refused_with_what_to_do_instead() {
        use cudock_base::Report as _;
        let known = || vec!["name".to_owned(), "i".to_owned(), "t".to_owned()];
        assert!(refuse_unknown("ubuntu", &known).is_ok());
        let hint = |flag: &str| refuse_unknown(flag, &known).unwrap_err().hints().join("; ");
        assert_eq!(hint("--cpu-quota=5"), "use --cpus NUMBER");
        assert_eq!(hint("--entrypont"), "did you mean --entrypoint?");
        assert!(hint("-itP").starts_with("name each port"), "{}", hint("-itP"));
    }
}
