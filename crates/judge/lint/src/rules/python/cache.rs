//! Caches of pip and uv: what stays in a layer, and mounts that are not used.

use std::collections::HashMap;

use cudock_base::Span;
use cudock_base::text::format::bytes;
use cudock_dockerfile::{Command, Mount, Run, StepKind};
use cudock_facts::finding::Finding;

use super::super::pip::{install_arg, is_for_gpu};
use super::packages::{by_pip, wheel_bytes};
use crate::context::{Installed, LintContext};
use crate::rule::Report;

/// The tool whose cache an installation fills: pip or uv.
fn tool(command: &Command<'_>) -> &'static str {
    if command.program == "uv" { "uv" } else { "pip" }
}

/// Options and variables that switch a cache off, and variables that move it.
struct CacheNames {
    option: &'static str,
    off: &'static str,
    moved: &'static str,
}

fn cache_names(tool: &str) -> CacheNames {
    match tool {
        "uv" => CacheNames { option: "--no-cache", off: "UV_NO_CACHE", moved: "UV_CACHE_DIR" },
        _ => CacheNames { option: "--no-cache-dir", off: "PIP_NO_CACHE_DIR", moved: "PIP_CACHE_DIR" },
    }
}

/// Whether a command has an option that switches its cache off.
fn no_cache_option(command: &Command<'_>) -> Option<Span> {
    let names: &[&str] =
        if command.program == "uv" { &["--no-cache", "--no-cache-dir", "-n"] } else { &["--no-cache-dir"] };
    command.args.iter().find(|arg| names.contains(&&*arg.text)).map(|arg| arg.span)
}

/// Whether a mount is at the cache of a tool.
fn is_cache_of(mount: &Mount, tool: &str) -> bool {
    let target = mount.target.trim_end_matches('/');
    mount.kind == "cache" && (target.split('/').any(|part| part == tool) || target.ends_with("/.cache"))
}

pub(super) fn pip_cache_in_layer(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let mut last_users: Vec<Option<String>> = Vec::new();
    for (stage, own) in context.stages() {
        let inherited = own.base.and_then(|base| last_users.get(base).cloned());
        let mut user = inherited.unwrap_or_else(|| Some("root".to_owned()));
        let is_looked_at = context.is_shipped(stage) && context.is_plain(stage);
        let downloads = if is_looked_at { gpu_downloads(context, stage) } else { HashMap::new() };
        for step in &own.steps {
            match &step.kind {
                StepKind::User(name) => {
                    let name = name
                        .unknown
                        .is_none()
                        .then(|| name.text.split(':').next().unwrap_or_default().to_owned());
                    user = name.filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()));
                }
                StepKind::Run(run) if is_looked_at => {
                    cached_by_run(context, report, run, (user.as_deref(), &downloads));
                }
                _ => {}
            }
        }
        last_users.push(user);
    }
}

/// Commands that install packages with GPU code, by the byte they start at, with the bytes of the wheel if it is known.
type Downloads = HashMap<usize, Option<u64>>;

fn gpu_downloads(context: &LintContext<'_>, stage: usize) -> Downloads {
    let mut downloads = Downloads::new();
    for Installed { package, by } in
        by_pip(context, stage).filter(|one| is_for_gpu(context, &one.package.name))
    {
        let known = downloads.entry(by.command.span.start).or_default();
        *known = wheel_bytes(context, package).max(*known);
    }
    downloads
}

fn cached_by_run(
    context: &LintContext<'_>,
    report: &mut Report<'_, '_>,
    run: &Run<'_>,
    (user, downloads): (Option<&str>, &Downloads),
) {
    let cleans = |command: &Command<'_>| {
        let has = |word: &str| command.args.iter().any(|arg| arg.text.contains(word));
        command.program == "rm" && has(".cache")
            || has("cache") && (has("purge") || has("clean") || has("prune"))
    };
    let mut installs =
        run.commands.iter().filter_map(|command| Some((command, install_arg(command)?))).peekable();
    if installs.peek().is_none() || run.commands.iter().any(cleans) {
        return;
    }
    for (command, install) in installs {
        let Some(by) = context.command_at(command.span) else { continue };
        let tool = tool(command);
        let names = cache_names(tool);
        let is_off = no_cache_option(command).is_some() || context.is_set(by, names.off);
        let home = user.map(|user| if user == "root" { "/root".to_owned() } else { format!("/home/{user}") });
        let is_moved = [names.moved, "XDG_CACHE_HOME", "HOME"].iter().any(|name| context.is_set(by, name));
        let is_mounted = run.mounts.iter().filter(|mount| mount.kind == "cache").any(|mount| {
            let is_foreign = home.as_ref().is_some_and(|home| {
                ["/root/", "/home/"].iter().any(|other| mount.target.starts_with(other))
                    && !mount.target.starts_with(home.as_str())
            });
            is_moved || is_cache_of(mount, tool) && !is_foreign
        });
        let wheel = downloads.get(&command.span.start);
        let is_large = wheel.is_some() || installs_list(command) && context.cuda_image(by.stage).is_some();
        if is_off || is_mounted || !is_large {
            continue;
        }
        let wheel = wheel.copied().flatten();
        let least = wheel.map_or_else(String::new, |wheel| format!(", {} or more", bytes(wheel)));
        let message = format!("{tool} keeps what it downloads in the layer{least}");
        let fix = format!(
            "add {}, or mount a cache: --mount=type=cache,target={}/.cache/{tool}",
            names.option,
            home.as_deref().unwrap_or("/root")
        );
        let finding = Finding { saves_bytes: wheel, ..report.finding(command.span, message, fix) };
        let edit = context.insert(install.span.end, format!(" {}", names.option));
        let is_exact = command.is_exact;
        report.push(if is_exact {
            finding.suggest(format!("add {}", names.option), vec![edit])
        } else {
            finding
        });
    }
}

/// Whether a command installs what a file lists.
fn installs_list(command: &Command<'_>) -> bool {
    let is_list = |text: &str| text.starts_with("-r") || ["--requirement", "."].contains(&text);
    command.is("uv", "sync") || command.args.iter().any(|arg| is_list(&arg.text))
}

pub(super) fn cache_mount_not_used(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, run, command) in context.commands().filter(|(_, _, command)| install_arg(command).is_some()) {
        let tool = tool(command);
        let (Some(option), Some(mount)) =
            (no_cache_option(command), run.mounts.iter().find(|mount| is_cache_of(mount, tool)))
        else {
            continue;
        };
        let message = format!(
            "a cache is mounted at {}, and {} keeps {tool} from using it: every build downloads everything",
            mount.target,
            context.source(option)
        );
        let finding = report.finding(option, message, format!("leave {} out", context.source(option)));
        let start = option.start.saturating_sub(1);
        let has_space = context.build.text().as_bytes().get(start) == Some(&b' ');
        let edit = context.edit(context.build.lines.span(start..option.end), "");
        report.push(if command.is_exact && has_space {
            finding.suggest("remove the option", vec![edit])
        } else {
            finding
        });
    }
}
