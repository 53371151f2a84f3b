//! How long linting takes: the promise is 20 ms for a Dockerfile of 5,000 lines.
#![allow(clippy::unwrap_used, reason = "a measurement that fails panics")]

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cudock_base::Date;
use cudock_facts::Facts;
use cudock_lint::{LintFlags, LintOptions, LintTarget, Linter, RULES, lint};
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
    let of_text = |text: &str| lint("Dockerfile", text, &options).unwrap().len();
    measure("all examples with their stages", &repeated("", &stages), of_text);
    let in_one_stage = repeated("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n", &steps);
    measure("all examples in one stage", &in_one_stage, of_text);
    let command = " && \\\n  apt-get install -y libfoo-dev && \\\n  pip install torch==2.5.1";
    let head = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN apt-get update";
    measure("one RUN", &repeated(head, command), of_text);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("Dockerfile");
    let flags = LintFlags { target: Some("H100".to_owned()), ..LintFlags::default() };
    let mut linter = Linter::new(&facts, today, flags, None);
    let settings = linter.settings(&path).unwrap();
    let of_file = |text: &str| linter.lint(&settings, &path, "Dockerfile", text).len();
    let text = ordinary();
    measure("no findings, no files", &text, of_file);
    fs::create_dir(directory.path().join("src")).unwrap();
    for number in 0..LINES / ORDINARY.len() {
        fs::write(directory.path().join(format!("src/{number}.py")), "print()").unwrap();
    }
    measure("no findings, every file exists", &text, of_file);
}

/// Lines of an ordinary Dockerfile; `#` is a number.
const ORDINARY: [&str; 5] = [
    "ENV APP_#=value-#",
    "COPY --chown=app:app src/#.py /app/#.py",
    "RUN mkdir -p /data/# \\",
    "    && echo item # > /data/#/name \\",
    "    && chmod 0644 /data/#/name",
];

fn ordinary() -> String {
    let mut text = "FROM nvidia/cuda:12.9.1-runtime-ubuntu24.04\n".to_owned();
    for number in 0..LINES / ORDINARY.len() {
        let lines = ORDINARY.iter().map(|line| line.replace('#', &number.to_string()) + "\n");
        text.extend(lines);
    }
    text
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

/// Measures a function that returns the number of findings.
fn measure(name: &str, text: &str, find: impl Fn(&str) -> usize) {
    let findings = find(text);
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(find(black_box(text)));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let median = times.get(RUNS / 2).copied().unwrap_or_default();
    println!(
        "{name:32} {} lines, {:5} findings: {:7.2} ms, {:.0} % of what is promised",
        text.lines().count(),
        findings,
        median.as_secs_f64() * 1e3,
        median.as_secs_f64() / PROMISED.as_secs_f64() * 100.0
    );
}
