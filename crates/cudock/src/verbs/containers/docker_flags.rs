//! The flags of `docker run`, and what `cudock run` does with each.
//!
//! Every flag of docker's reference is a row, so that none is ever taken for the image or the program: it works, it is
//! accepted because nothing has to be done for it, or it is refused by its name with what to do instead. Flags that cudock
//! has and docker has not are known to clap alone.

use clap::CommandFactory;
use cudock_base::suggest::nearest;

use self::Support::{Refused, Works};
use crate::cli::Cli;
use crate::failure::Failure;

/// What `cudock run` does with a flag of docker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// It is a flag of `cudock run`, perhaps for some of docker's values only.
    Works,
    /// It is refused; what to do instead.
    Refused(&'static str),
}

/// A flag of `docker run`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DockerFlag {
    /// Its long name, without dashes.
    pub(crate) name: &'static str,
    /// Its letter.
    pub(crate) short: Option<char>,
    /// What cudock does with it.
    pub(crate) support: Support,
}

const fn row(name: &'static str, short: Option<char>, support: Support) -> DockerFlag {
    DockerFlag { name, short, support }
}

const BLOCK_IO: &str = "limits on block I/O are not supported; leave it out";
const HEALTH: &str = "write a group file with a livenessProbe or readinessProbe and run `cudock up -f`";
const WINDOWS: &str = "it is for Windows containers";
const ADDRESS: &str = "a container has no address of its own: publish a port with -p HOST:CONTAINER";
const LOCAL_NAME: &str = "put both containers in a group: `cudock up -f` gives them one localhost";

/// All flags of `docker container run`, by name.
pub(crate) const DOCKER_FLAGS: &[DockerFlag] = &[
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
        Refused("there is no attach: use `cudock logs -f NAME` and `cudock exec -it NAME sh`"),
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
    row("mac-address", None, Refused("leave it out: a container's network has no card of its own")),
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
            "it would give the container this machine; GPUs need --gpus all alone. Name what it needs: --cap-add NAME, \
             --device PATH, --security-opt seccomp=unconfined",
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
    row("use-api-socket", None, Refused("there is no daemon and no socket of one; leave it out")),
    row("user", Some('u'), Works),
    row("userns", None, Works),
    row("uts", None, Refused("use --hostname NAME; the host's name would be the container's to change")),
    row("volume", Some('v'), Works),
    row("volume-driver", None, Refused("mount it on the host, then -v /PATH:/TARGET")),
    row("volumes-from", None, Refused("name the volume in both containers: -v NAME:/PATH")),
    row("workdir", Some('w'), Works),
];

/// Refuses a word before the image that begins with a dash: clap takes only what it does not know for a positional word.
pub(super) fn refuse_unknown(word: &str) -> Result<(), Failure> {
    let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty() && word != "--") else {
        return Ok(());
    };
    let known = flags_of_run();
    let Some(long) = flag.strip_prefix('-') else { return Err(unknown_letter(flag, &known)) };
    let name = long.split('=').next().unwrap_or(long);
    if let Some(DockerFlag { support: Refused(instead), .. }) = by_name(name) {
        return Err(refused(&format!("--{name}"), instead));
    }
    let docker = DOCKER_FLAGS.iter().map(|flag| flag.name);
    let names = docker.chain(known.iter().map(String::as_str));
    let failure = Failure::input(format!("unknown flag --{name} before the image"));
    Err(match nearest(name, names).first() {
        Some(near) => match by_name(near).map(|flag| flag.support) {
            Some(Refused(instead)) => failure.hint(format!("--{near} is not supported: {instead}")),
            _ => failure.hint(format!("did you mean --{near}?")),
        },
        None => failure.hint("`cudock run --help` lists the flags; the program's own come after the image"),
    })
}

/// The names and letters of all flags of `cudock run`.
fn flags_of_run() -> Vec<String> {
    let cli = Cli::command();
    let arguments = cli.find_subcommand("run").into_iter().flat_map(clap::Command::get_arguments);
    let names = |argument: &clap::Arg| {
        let long = argument.get_long_and_visible_aliases().unwrap_or_default();
        let short = argument.get_short().map(|letter| letter.to_string());
        long.into_iter().map(str::to_owned).chain(short).collect::<Vec<_>>()
    };
    arguments.flat_map(names).collect()
}

/// The first letter of a group such as `-itP` that is not known.
fn unknown_letter(letters: &str, known: &[String]) -> Failure {
    let is_known = |letter: &char| known.iter().any(|flag| *flag == letter.to_string());
    let Some(letter) = letters.chars().find(|letter| !is_known(letter)) else {
        return Failure::input(format!("cannot read -{letters} before the image"))
            .hint("write each flag by itself");
    };
    match DOCKER_FLAGS.iter().find(|flag| flag.short == Some(letter)) {
        Some(DockerFlag { name, support: Refused(instead), .. }) => {
            refused(&format!("-{letter}/--{name}"), instead)
        }
        _ => Failure::input(format!("unknown flag -{letter} before the image"))
            .hint("`cudock run --help` lists the flags; the program's own come after the image"),
    }
}

fn by_name(name: &str) -> Option<&'static DockerFlag> {
    DOCKER_FLAGS.iter().find(|flag| flag.name == name)
}

fn refused(flag: &str, instead: &str) -> Failure {
    Failure::input(format!("{flag} is not supported by cudock run")).hint(instead)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    /// Every flag that clap knows for `run`, by its long name, its aliases and its letter.
    fn known() -> Vec<(String, Option<char>)> {
        let cli = Cli::command();
        let run = cli.find_subcommand("run").unwrap();
        let mut all = Vec::new();
        for argument in run.get_arguments() {
            let names = argument.get_long_and_visible_aliases().unwrap_or_default();
            all.extend(names.into_iter().map(|name| (name.to_owned(), argument.get_short())));
        }
        all
    }

    #[test]
    fn every_flag_of_docker_run_works_or_is_refused_by_name_with_the_alternative() {
        let known = known();
        for flag in DOCKER_FLAGS {
            let ours = known.iter().find(|(name, _)| name == flag.name);
            match flag.support {
                Works => {
                    let (_, short) = ours.unwrap_or_else(|| panic!("--{} is said to work", flag.name));
                    assert_eq!(*short, flag.short, "--{}", flag.name);
                }
                Refused(instead) => {
                    assert!(ours.is_none(), "--{} works and is said to be refused", flag.name);
                    assert!(instead.len() > 10, "--{}", flag.name);
                }
            }
        }
    }

    #[test]
    fn the_page_names_every_flag_of_run_and_every_one_that_is_refused() {
        let page = include_str!("../../../../../docs/run.md");
        let named = |flag: &str| {
            let flag = format!("--{flag}");
            let mut parts = page.split(&flag).skip(1);
            parts
                .any(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '-'))
        };
        let own = known()
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| !matches!(name.as_str(), "help" | "format" | "facts"));
        let docker = DOCKER_FLAGS.iter().map(|flag| flag.name.to_owned()).filter(|name| name != "help");
        let missing: Vec<String> = own.chain(docker).filter(|flag| !named(flag)).collect();
        assert!(missing.is_empty(), "docs/run.md does not name {missing:?}");
    }

    #[test]
    fn the_table_is_sorted_and_has_no_flag_twice() {
        assert!(DOCKER_FLAGS.windows(2).all(|pair| pair[0].name < pair[1].name));
        let mut letters: Vec<char> = DOCKER_FLAGS.iter().filter_map(|flag| flag.short).collect();
        let count = letters.len();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), count);
    }
}
