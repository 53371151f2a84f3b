//! What the rules promise, and holding a judgement to it.

use cudock_compat::{Target, Verdict, judge};

use super::given::Given;
use super::support::facts;

enum Failure {
    /// The rules do not say.
    Any,
    None,
    Cuda(u16),
    /// Of the loader, the kernel or the container tools.
    Named(&'static str),
}

/// What the rules promise; what they leave open is not looked at.
pub(crate) struct Expected {
    verdict: Option<Verdict>,
    failure: Failure,
    findings: Vec<&'static str>,
    absent: Vec<&'static str>,
    rules: Vec<&'static str>,
    printed: Vec<&'static str>,
}

fn expected(verdict: Option<Verdict>, failure: Failure) -> Expected {
    let (findings, absent) = (Vec::new(), Vec::new());
    Expected { verdict, failure, findings, absent, rules: Vec::new(), printed: Vec::new() }
}

pub(crate) fn works() -> Expected {
    expected(Some(Verdict::Works), Failure::None)
}

/// Runs after the driver compiled its PTX.
pub(crate) fn jit() -> Expected {
    expected(Some(Verdict::Jit), Failure::None)
}

pub(crate) fn unknown() -> Expected {
    expected(Some(Verdict::Unknown), Failure::None)
}

/// Starts and uses the CPU.
pub(crate) fn cpu() -> Expected {
    expected(Some(Verdict::Cpu), Failure::None)
}

/// Fails with an error of CUDA.
pub(crate) fn fails(error: u16) -> Expected {
    expected(Some(Verdict::Fails), Failure::Cuda(error))
}

/// Fails with an error of something else.
pub(crate) fn fails_by(name: &'static str) -> Expected {
    expected(Some(Verdict::Fails), Failure::Named(name))
}

/// Fails, with what is not fixed.
pub(crate) fn fails_somehow() -> Expected {
    expected(Some(Verdict::Fails), Failure::Any)
}

/// CUDA answers with this error; whether the program ends or goes on with the CPU is its own affair.
pub(crate) fn answers(error: u16) -> Expected {
    expected(None, Failure::Cuda(error))
}

/// There is a finding; what the program does is not fixed.
pub(crate) fn says(finding: &'static str) -> Expected {
    expected(None, Failure::Any).finding(finding)
}

/// What the container tools say where requirements do not hold.
pub(crate) fn refused() -> Expected {
    fails_by("nvidia-container-cli: requirement error")
}

impl Expected {
    pub(crate) fn finding(mut self, code: &'static str) -> Self {
        self.findings.push(code);
        self
    }

    pub(crate) fn no_finding(mut self, code: &'static str) -> Self {
        self.absent.push(code);
        self
    }

    /// The rule is among those applied.
    pub(crate) fn by(mut self, rule: &'static str) -> Self {
        self.rules.push(rule);
        self
    }

    /// The error's name or message contains this.
    pub(crate) fn prints(mut self, part: &'static str) -> Self {
        self.printed.push(part);
        self
    }
}

/// Judges, and holds the judgement to what is expected.
pub(crate) fn check(rule: &str, given: impl Into<Given>, target: &Target, expected: &Expected) {
    let Given(evidence) = given.into();
    let judgement = judge(&evidence, target, facts());
    let context = format!("rule {rule}, on {target}: {judgement:#?}");
    if let Some(verdict) = expected.verdict {
        assert_eq!(judgement.verdict, verdict, "{context}");
    }
    let error = judgement.error.as_ref();
    match expected.failure {
        Failure::Any => {}
        Failure::None => assert_eq!(error, None, "{context}"),
        Failure::Cuda(code) => assert_eq!(error.and_then(|error| error.code), Some(code), "{context}"),
        Failure::Named(name) => {
            assert_eq!(error.map(|error| (error.code, error.name.as_str())), Some((None, name)), "{context}");
        }
    }
    for code in &expected.findings {
        assert!(
            judgement.findings.iter().any(|finding| finding.code == *code),
            "no finding {code}; {context}"
        );
    }
    for code in &expected.absent {
        assert!(judgement.findings.iter().all(|finding| finding.code != *code), "finding {code}; {context}");
    }
    for id in &expected.rules {
        assert!(judgement.rules.iter().any(|applied| applied.rule == *id), "{id} not applied; {context}");
    }
    for part in &expected.printed {
        let printed = error.map(|error| format!("{}: {}", error.name, error.message)).unwrap_or_default();
        assert!(printed.contains(part), "`{part}` is not printed; {context}");
    }
}
