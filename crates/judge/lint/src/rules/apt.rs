//! apt: what it installs unasked, and what it leaves in layers.

use std::collections::HashSet;

use cudock_dockerfile::{Command, Run, StepKind};
use cudock_facts::finding::Severity;

use super::packages::{does, installed, is_apt};
use crate::context::LintContext;
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0775",
        name: "recommended-packages",
        severity: Severity::Warning,
        also: &["DL3015"],
        is_fixable: true,
        bad: "FROM ubuntu:22.04\nRUN apt-get update && apt-get install -y nvidia-cuda-toolkit\n",
        good: "FROM ubuntu:22.04\nRUN apt-get update && apt-get install -y --no-install-recommends nvidia-cuda-toolkit\n",
        check: recommended_packages,
    },
    Rule {
        code: "CD0776",
        name: "package-lists-kept",
        severity: Severity::Note,
        also: &["DL3009"],
        is_fixable: true,
        bad: "FROM ubuntu:22.04\nRUN apt-get update && apt-get install -y git\n",
        good: "FROM ubuntu:22.04\nRUN --mount=type=cache,target=/var/lib/apt apt-get update && apt-get install -y git\n",
        check: package_lists_kept,
    },
];

/// The runs of the image with their position among its steps.
fn image_runs<'a>(context: &LintContext<'a>) -> impl Iterator<Item = (usize, &'a Run<'a>)> {
    context.image_steps().iter().enumerate().filter_map(|(at, step)| match &step.kind {
        StepKind::Run(run) => Some((at, run)),
        _ => None,
    })
}

/// Sizes of the recommended packages of a package, in megabytes, on top of a Debian 12 image
/// (bookworm with contrib and non-free, sizes of `Installed-Size`, 2026-11-16), and whether builds
/// may rely on them.
const RECOMMENDED: [(&str, u64, bool); 6] = [
    ("nvidia-cuda-toolkit", 2177, false),
    ("nvidia-cuda-dev", 344, false),
    ("python3-pip", 429, true),
    ("libopencv-dev", 274, false),
    ("python3-opencv", 252, false),
    ("ffmpeg", 203, false),
];

fn recommended_packages(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let mentions = |command: &Command<'_>| {
        let texts = command.args.iter().map(|arg| &*arg.text);
        texts
            .chain(command.outputs.iter().map(String::as_str))
            .any(|text| text.contains("Install-Recommends"))
    };
    // One search in the file is faster than one in each argument.
    let is_mentioned = context.build.text().contains("Install-Recommends");
    if is_mentioned && context.image_commands().any(|(_, command)| mentions(command)) {
        return;
    }
    // A compiler is most of what python3-pip recommends.
    let has_compiler = context.image_base().is_some_and(|image| image.flavor.contains("devel"))
        || context
            .image_commands()
            .flat_map(|(_, command)| installed(command))
            .any(|(_, name)| ["build-essential", "gcc", "g++"].contains(&name));
    for (_, command) in context.image_commands().filter(|(_, command)| is_apt(command)) {
        if command.has("--no-install-recommends") {
            continue;
        }
        let row = |name: &str| RECOMMENDED.iter().find(|(known, _, _)| *known == name);
        let known = installed(command).filter_map(|(_, name)| row(name));
        let known = known.filter(|(_, _, is_relied_on)| !(*is_relied_on && has_compiler));
        let Some((name, megabytes, _)) = known.max_by_key(|(_, megabytes, _)| *megabytes) else { continue };
        let message = format!("`{name}` brings recommended packages of {megabytes} MB (as of Debian 12)");
        let mut finding = report.finding(command.span, message, "add `--no-install-recommends`");
        finding.saves_bytes = Some(megabytes * 1_000_000);
        // Builds may rely on what other packages recommend, such as the certificates that git does.
        let is_safe = |name: &str| row(name).is_some_and(|(_, _, is_relied_on)| !is_relied_on);
        let can_edit = command.is_exact && installed(command).all(|(_, name)| is_safe(name));
        let install = command.args.iter().find(|arg| arg.text == "install");
        if let Some(install) = install.filter(|_| can_edit) {
            let edit = context.insert(install.span.end, " --no-install-recommends");
            finding = finding.suggest("leave recommended packages out", vec![edit]);
        }
        report.push(finding);
    }
}

fn package_lists_kept(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    const CLEAN: &str = "rm -rf /var/lib/apt/lists/*";
    let needs_lists = later_runs_need_lists(context);
    for (at, run) in image_runs(context) {
        let update = run.commands.iter().find(|command| is_apt(command) && does(command, &["update"]));
        let is_mounted = run.mounts.iter().any(|mount| {
            ["cache", "tmpfs"].contains(&mount.kind.as_str())
                && mount.target.trim_end_matches('/').starts_with("/var/lib/apt")
        });
        let cleans = |command: &Command<'_>| {
            let removes = ["rm", "find"].contains(&&*command.program)
                && command
                    .args
                    .iter()
                    .any(|arg| arg.text.starts_with("/var/lib/apt") || arg.text == "/var/lib/*");
            removes || is_apt(command) && does(command, &["distclean", "dist-clean"])
        };
        let Some(update) = update.filter(|_| !is_mounted && !run.commands.iter().any(cleans)) else {
            continue;
        };
        let message = "the package lists stay in the layer";
        let mut finding = report.finding(update.span, message, format!("end the RUN with `&& {CLEAN}`"));
        let ends_script =
            |last: &Command<'_>| last.is_exact && last.operator.is_empty() && last.span.end == run.script.end;
        if run.commands.last().is_some_and(ends_script) && !needs_lists.contains(&at) {
            let edit = context.insert(run.script.end, format!(" && {CLEAN}"));
            finding = finding.suggest("remove the lists", vec![edit]);
        }
        report.push(finding);
    }
}

/// The steps after which something may install packages without reading the lists again.
fn later_runs_need_lists(context: &LintContext<'_>) -> HashSet<usize> {
    let mut needed = HashSet::new();
    let mut is_needed = false;
    let runs: Vec<(usize, &Run<'_>)> = image_runs(context).collect();
    for (at, run) in runs.into_iter().rev() {
        if is_needed {
            needed.insert(at);
        }
        let updates = run.commands.iter().any(|command| is_apt(command) && does(command, &["update"]));
        let installs = run.commands.iter().any(|command| {
            let is_script = |text: &str| text.ends_with(".sh");
            is_apt(command) && installed(command).next().is_some()
                || is_script(&command.program)
                || command.args.iter().any(|arg| is_script(&arg.text))
        });
        is_needed = !updates && (installs || is_needed);
    }
    needed
}
