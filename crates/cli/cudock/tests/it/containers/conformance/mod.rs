//! Behaviors that the test suites of runc, youki and runtime-tools ask of a container runtime, asked of `cudock run` and
//! `cudock exec`. Each case names the case it mirrors.

mod exec;
mod lifecycle;
mod run;

use std::process::Output;

use crate::support::{code, shown};

/// What a command must come to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Want {
    /// It ends with 0 and writes this, but for blanks around it.
    Says(&'static str),
    /// It ends with 0 and this is in what it writes.
    Holds(&'static str),
    /// It ends with this code.
    Ends(i32),
    /// It ends with this code, and this is in what is shown.
    Fails(i32, &'static str),
}

/// One case: the case it mirrors, options, a script for the container's shell, and what it must come to.
pub(super) type Case = (&'static str, &'static [&'static str], &'static str, Want);

impl Want {
    fn is_met(self, output: &Output) -> bool {
        let said = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        match self {
            Self::Says(text) => code(output) == 0 && said.trim() == text,
            Self::Holds(text) => code(output) == 0 && said.contains(text),
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
