//! How long linting takes: the promise is 20 ms for a Dockerfile of 5,000 lines.
#![allow(clippy::unwrap_used, reason = "a measurement that fails panics")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use cudock_base::Date;
use cudock_facts::Facts;
use cudock_lint::{LintOptions, LintTarget, RULES, lint};
use cudock_target::Target;

const LINES: usize = 5000;
const RUNS: usize = 50;
const PROMISED: Duration = Duration::from_millis(20);

fn main() {
    let facts = Facts::embedded();
    let today = Date::new(2026, 11, 16).unwrap();
    let target = Target::named(&facts, "H100", None, today).unwrap().unwrap();
    let target = LintTarget::Gpu(Box::new(target));
    let options = LintOptions { target: Some(&target), ..LintOptions::new(&facts) };
    let examples = || RULES.iter().flat_map(|group| group.iter()).flat_map(|rule| [rule.bad, rule.good]);
    let stages: String = examples().collect();
    let steps: String = examples().map(without_from).collect();
    measure("all examples with their stages", &repeated("", &stages), &options);
    measure(
        "all examples in one stage",
        &repeated("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n", &steps),
        &options,
    );
    let command = " && \\\n  apt-get install -y libfoo-dev && \\\n  pip install torch==2.5.1";
    let head = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN apt-get update";
    measure("one RUN", &repeated(head, command), &options);
}

/// The lines of an example that name no stage.
fn without_from(example: &str) -> String {
    let lines = example.lines().filter(|line| !line.starts_with("FROM") && !line.contains("--from="));
    lines.map(|line| format!("{line}\n")).collect()
}

/// A text of about the number of lines.
fn repeated(head: &str, part: &str) -> String {
    let lines = part.matches('\n').count().max(1);
    format!("{head}{}\n", part.repeat(LINES.div_ceil(lines)))
}

fn measure(name: &str, text: &str, options: &LintOptions<'_>) {
    let findings = lint("Dockerfile", text, options).unwrap();
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(lint("Dockerfile", black_box(text), options).unwrap());
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let median = times.get(RUNS / 2).copied().unwrap_or_default();
    println!(
        "{name:32} {} lines, {:5} findings: {:7.2} ms, {:.0} % of what is promised",
        text.lines().count(),
        findings.len(),
        median.as_secs_f64() * 1e3,
        median.as_secs_f64() / PROMISED.as_secs_f64() * 100.0
    );
}
