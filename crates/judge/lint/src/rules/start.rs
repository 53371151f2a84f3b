//! The start of an image: the user, the health check, and signals.

use std::time::Duration;

use cudock_dockerfile::{Command, StartCommand, Step, StepKind};
use cudock_facts::finding::Severity;

use crate::context::LintContext;
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0778",
        name: "server-as-root",
        severity: Severity::Note,
        also: &["DL3002"],
        is_fixable: false,
        bad: "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nCMD [\"vllm\", \"serve\", \"facebook/opt-125m\"]\n",
        good: "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nUSER 1000\nCMD [\"vllm\", \"serve\", \"facebook/opt-125m\"]\n",
        check: server_as_root,
    },
    Rule {
        code: "CD0784",
        name: "short-health-check",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "\
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
HEALTHCHECK CMD curl -f http://localhost:8000/health
USER 1000
CMD [\"vllm\", \"serve\", \"facebook/opt-125m\"]
",
        good: "\
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
HEALTHCHECK --start-period=10m CMD curl -f http://localhost:8000/health
USER 1000
CMD [\"vllm\", \"serve\", \"facebook/opt-125m\"]
",
        check: short_health_check,
    },
    Rule {
        code: "CD0785",
        name: "server-under-shell",
        severity: Severity::Warning,
        also: &["DL3025", "JSONArgsRecommended"],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nUSER 1000\nCMD uvicorn app:app --port 8000\n",
        good: "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nUSER 1000\nCMD exec uvicorn app:app --port 8000\n",
        check: server_under_shell,
    },
];

/// Servers that load a model before they answer.
const MODEL_SERVERS: [&str; 8] = [
    "vllm",
    "sglang",
    "tritonserver",
    "text-generation-launcher",
    "text-embeddings-router",
    "lmdeploy",
    "llama-server",
    "torchserve",
];

const OTHER_SERVERS: [&str; 12] = [
    "uvicorn",
    "gunicorn",
    "hypercorn",
    "fastapi",
    "flask",
    "streamlit",
    "jupyter",
    "jupyter-lab",
    "jupyter-notebook",
    "mlserver",
    "bentoml",
    "ollama",
];

/// The server that a command starts: `vllm` of `vllm serve` and of `python -m vllm.entrypoints.openai.api_server`.
fn server<'a>(command: &'a Command<'a>, known: &[&'static str]) -> Option<&'static str> {
    let module = command.program.starts_with("python").then(|| command.value_of("-m")).flatten();
    let module = module.map(|module| module.split('.').next().unwrap_or_default());
    let name: &'a str = module.unwrap_or(&command.program);
    known.iter().find(|server| **server == name).copied()
}

/// The last instruction of the image that starts a program: `ENTRYPOINT`, or else `CMD`.
fn start<'a>(context: &LintContext<'a>) -> Option<(&'a Step<'a>, &'a StartCommand<'a>)> {
    let steps = context.image_steps();
    let entrypoint = steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::Entrypoint(start) => Some((*step, start)),
        _ => None,
    });
    let command = || {
        steps.iter().rev().find_map(|step| match &step.kind {
            StepKind::Cmd(start) => Some((*step, start)),
            _ => None,
        })
    };
    entrypoint.or_else(command)
}

/// Whether the base image is known to run as root, with dash as its shell.
fn is_known_base(context: &LintContext<'_>) -> bool {
    if let Some(image) = context.image_base() {
        return image.os.starts_with("ubuntu");
    }
    let reference = context.build.base_image(context.build.last()).map(|image| &image.reference);
    let name = reference.filter(|reference| reference.unknown.is_none()).map(|reference| {
        let name = reference.text.strip_prefix("docker.io/").unwrap_or(&reference.text);
        name.strip_prefix("library/").unwrap_or(name).split([':', '@']).next().unwrap_or_default()
    });
    let is_alpine = reference.is_some_and(|reference| reference.text.contains("alpine"));
    !is_alpine && name.is_some_and(|name| ["ubuntu", "debian", "python", "pytorch/pytorch"].contains(&name))
}

fn server_as_root(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some((step, start)) = start(context).filter(|_| is_known_base(context)) else { return };
    let servers = [MODEL_SERVERS.as_slice(), OTHER_SERVERS.as_slice()].concat();
    let Some(name) = start.commands.iter().find_map(|command| server(command, &servers)) else { return };
    let steps = context.image_steps();
    let user = steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::User(user) => Some(user),
        _ => None,
    });
    let is_root = |user: &str| ["root", "0"].contains(&user.split(':').next().unwrap_or_default());
    if user.is_none_or(|user| is_root(&user.text)) {
        let message = format!(
            "`{name}` answers requests as root: GPUs need no root, their device nodes are open to all"
        );
        report.add(step.instruction.span, message, "add a user, and `USER` before it");
    }
}

fn short_health_check(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let server = start(context)
        .and_then(|(_, start)| start.commands.iter().find_map(|command| server(command, &MODEL_SERVERS)));
    let steps = context.image_steps();
    let check = steps.iter().rev().find(|step| step.instruction.keyword == "HEALTHCHECK");
    let (Some(server), Some(check)) = (server, check) else { return };
    let text = check.instruction.arguments.text.as_str();
    let flags = text.split_whitespace().take_while(|word| word.starts_with("--"));
    let flags: Vec<(&str, &str)> =
        flags.filter_map(|flag| flag.strip_prefix("--")?.split_once('=')).collect();
    let value = |name: &str| flags.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    let seconds = |name: &str, default: u64| match value(name) {
        Some(value) => duration(value),
        None => Some(Duration::from_secs(default)),
    };
    let retries = value("retries").map_or(Some(3), |retries| retries.parse::<u32>().ok());
    let (Some(first), Some(interval), Some(retries)) =
        (seconds("start-period", 0), seconds("interval", 30), retries)
    else {
        return;
    };
    let allowed = first.saturating_add(interval.saturating_mul(retries));
    if text.starts_with("NONE") || allowed > Duration::from_secs(120) {
        return;
    }
    let message = format!(
        "`{server}` is unhealthy after {} seconds, while it still loads its model",
        allowed.as_secs()
    );
    let mut finding = report.finding(check.instruction.span, message, "give it time: `--start-period=10m`");
    if value("start-period").is_none() {
        let start = check.instruction.arguments.source_range(0..1).start;
        let edit = context.insert(start, "--start-period=10m ");
        finding = finding.suggest("add a start period", vec![edit]);
    }
    report.push(finding);
}

/// A duration of Docker: `30s`, `1m30s`, `500ms`.
fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|next: char| !next.is_ascii_digit())?;
        let (number, behind) = rest.split_at_checked(digits)?;
        let number: u64 = number.parse().ok()?;
        let unit_end = behind.find(|next: char| next.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at_checked(unit_end)?;
        let seconds = match unit {
            "h" => 3600,
            "m" => 60,
            "s" => 1,
            "ms" => 0,
            _ => return None,
        };
        total = total.saturating_add(Duration::from_secs(number.saturating_mul(seconds)));
        rest = behind;
    }
    Some(total)
}

fn server_under_shell(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some((step, start)) = start(context).filter(|(_, start)| !start.is_exec) else { return };
    // bash replaces itself by the last command; dash, which is `sh` in Debian and Ubuntu, does not.
    let has_shell = context.image_steps().iter().any(|step| matches!(step.kind, StepKind::Shell(_)));
    let text = step.instruction.arguments.text.as_str();
    if has_shell || !is_known_base(context) || text.split_whitespace().any(|word| word == "exec") {
        return;
    }
    let servers = [MODEL_SERVERS.as_slice(), OTHER_SERVERS.as_slice()].concat();
    let Some(name) = start.commands.last().and_then(|command| server(command, &servers)) else { return };
    let message = format!(
        "`{name}` runs under a shell that does not pass on SIGTERM: every stop takes 10 seconds and drops requests"
    );
    let fix = "write it as a JSON list, or put `exec` before the program";
    let mut finding = report.finding(step.instruction.span, message, fix);
    let is_plain = |ch: char| ch.is_ascii_alphanumeric() || " /._-:=,@".contains(ch);
    let keeps_meaning =
        step.instruction.keyword == "CMD" && start.commands.len() == 1 && text.chars().all(is_plain);
    let is_program = text.split_whitespace().next().is_some_and(|first| !first.contains('='));
    if keeps_meaning && is_program {
        let words: Vec<String> = text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        let bytes = step.instruction.arguments.source_range(0..text.len());
        let span = context.build.lines.span(bytes);
        finding = finding
            .suggest("write it as a JSON list", vec![context.edit(span, format!("[{}]", words.join(", ")))]);
    }
    report.push(finding);
}
