//! Prints what the driver shows this process: as text, or as JSON with `--json`. A path asks that library instead of
//! the one the loader finds. With `--steps` each step is told on standard error before it is taken.
//!
//! Ends with 0 where every GPU computes, with 1 where one does not, with 2 where there is no report.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use cudock_device::{Report, Step, prepare, query, query_library};

fn main() -> ExitCode {
    let (flags, paths): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let asked = |flag: &str| flags.iter().any(|given| given == flag);
    let start = Instant::now();
    let mut progress = |step: Step| {
        if asked("--steps") {
            eprintln!("{:9.3} ms  {step}", start.elapsed().as_secs_f64() * 1e3);
        }
    };
    prepare();
    let answer = match paths.first().map(PathBuf::from) {
        Some(path) => query_library(&path, &mut progress),
        None => query(&mut progress),
    };
    match answer {
        Ok(report) => print(&report, asked("--json")),
        Err(error) => {
            eprintln!("error: {error}");
            hints(&error.way_out());
            ExitCode::from(2)
        }
    }
}

fn print(report: &Report, json: bool) -> ExitCode {
    if json {
        match serde_json::to_string_pretty(report) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("error: {error}"),
        }
    } else {
        print!("{}", report.text());
    }
    hints(&report.way_out());
    if report.all_compute() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn hints(ways: &[String]) {
    for way in ways {
        eprintln!("hint: {way}");
    }
}
