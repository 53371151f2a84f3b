//! Prints the result of a query as text, or as JSON with `--json`. A path selects that library instead of the one the
//! loader finds. With `--steps`, each step is printed to standard error before it starts.
//!
//! Exits with code 0 if every GPU computes, 1 if one does not, and 2 if there is no report.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use cudock_gpu_test::{DeviceReport, QueryStep, prepare, query, query_library};

fn main() -> ExitCode {
    let (flags, paths): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let has_flag = |flag: &str| flags.iter().any(|argument| argument == flag);
    let start = Instant::now();
    let mut progress = |step: QueryStep| {
        if has_flag("--steps") {
            eprintln!("{:9.3} ms  {step}", start.elapsed().as_secs_f64() * 1e3);
        }
    };
    prepare();
    let result = match paths.first().map(PathBuf::from) {
        Some(path) => query_library(&path, &mut progress),
        None => query(&mut progress),
    };
    match result {
        Ok(report) => print(&report, has_flag("--json")),
        Err(error) => {
            eprintln!("error: {error}");
            hints(&error.hints());
            ExitCode::from(2)
        }
    }
}

fn print(report: &DeviceReport, json: bool) -> ExitCode {
    if json {
        match serde_json::to_string_pretty(report) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("error: {error}"),
        }
    } else {
        print!("{}", report.text());
    }
    hints(&report.hints());
    if report.all_compute() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn hints(hints: &[String]) {
    for hint in hints {
        eprintln!("hint: {hint}");
    }
}
