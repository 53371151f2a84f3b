//! Behaviors that the test suites of runc, youki and runtime-tools require of a container runtime, tested with `cudock run` and
//! `cudock exec`. Each case names the case it mirrors.

mod exec;
mod lifecycle;
mod run;

use std::process::Output;

use crate::support::{code, shown};

/// The expected result of a command.
#[derive(Debug, Clone, Copy)]
pub(super) enum Want {
    /// Exit code 0, and this output, except for surrounding blanks.
    Says(&'static str),
    /// Exit code 0, and output that contains this.
    Holds(&'static str),
    /// This exit code.
    Ends(i32),
    /// This exit code, and output that contains this.
    Fails(i32, &'static str),
}

/// One case: the case it mirrors, options, a script for the container's shell, and the expected result.
pub(super) type Case = (&'static str, &'static [&'static str], &'static str, Want);

impl Want {
    fn is_met(self, output: &Output) -> bool {
        let stdout = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        match self {
            Self::Says(text) => code(output) == 0 && stdout.trim() == text,
            Self::Holds(text) => code(output) == 0 && stdout.contains(text),
            Self::Ends(expected) => code(output) == expected,
            Self::Fails(expected, text) => code(output) == expected && shown(output).contains(text),
        }
    }
}

/// Runs a table; fails with all cases that do not hold.
pub(super) fn check(cases: &[Case], call: impl Fn(&[&str], &str) -> Output) {
    let broken: Vec<String> = cases
        .iter()
        .filter_map(|(upstream, options, script, want)| {
            let output = call(options, script);
            (!want.is_met(&output)).then(|| {
                format!("{upstream}\n  {options:?} {script}\n  wanted {want:?}, got {}", shown(&output))
            })
        })
        .collect();
    assert!(
        broken.is_empty(),
        "{} of {} cases do not hold:\n{}",
        broken.len(),
        cases.len(),
        broken.join("\n")
    );
}

#[test]
fn at_least_ninety_cases_are_mirrored_and_each_names_its_origin() {
    let tables =
        run::CASES.iter().chain(exec::CASES).map(|case| case.0).chain(lifecycle::CASES.iter().copied());
    let names: Vec<&str> = tables.collect();
    assert!(names.len() >= 90, "{} cases", names.len());
    for name in names {
        let origin = name.split(' ').next().unwrap();
        assert!(matches!(origin, "runc" | "youki" | "runtime-tools"), "{name}");
    }
}
