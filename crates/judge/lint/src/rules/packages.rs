//! Commands of the package managers of distributions.

use cudock_dockerfile::{Command, CommandArg};

const MANAGERS: [&str; 8] = ["apt-get", "apt", "aptitude", "dnf", "yum", "microdnf", "zypper", "apk"];

pub(super) fn is_apt(command: &Command<'_>) -> bool {
    ["apt-get", "apt", "aptitude"].contains(&&*command.program)
}

/// Whether a package manager is asked to do one of these.
pub(super) fn does(command: &Command<'_>, actions: &[&str]) -> bool {
    MANAGERS.contains(&&*command.program) && command.args.iter().any(|arg| actions.contains(&&*arg.text))
}

/// The packages that a command installs, with their names without versions.
pub(super) fn installed<'c>(command: &'c Command<'_>) -> impl Iterator<Item = (&'c CommandArg<'c>, &'c str)> {
    named(command, &["install", "add"])
}

/// The packages that a command removes.
pub(super) fn removed<'c>(command: &'c Command<'_>) -> impl Iterator<Item = (&'c CommandArg<'c>, &'c str)> {
    named(command, &["remove", "purge", "autoremove", "erase", "del"])
}

fn named<'c>(
    command: &'c Command<'c>,
    actions: &[&str],
) -> impl Iterator<Item = (&'c CommandArg<'c>, &'c str)> {
    let at = MANAGERS
        .contains(&&*command.program)
        .then(|| command.args.iter().position(|arg| actions.contains(&&*arg.text)))
        .flatten();
    let args = at.and_then(|at| command.args.get(at + 1..)).unwrap_or_default();
    args.iter().filter(|arg| !arg.text.starts_with('-')).map(|arg| (arg, name(&arg.text)))
}

/// `cuda` of `cuda=12.4.1-1` and of `cuda:amd64`.
fn name(written: &str) -> &str {
    written.split(['=', ':']).next().unwrap_or_default()
}
