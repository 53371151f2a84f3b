//! Reads and diagnoses the machine that a tree represents.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::version::Date;
use cudock_host::{Diagnosis, Host, Root, examine, probe};
use cudock_testkit::host_tree::HostTree;

pub(crate) fn day() -> Date {
    "2026-11-15".parse().unwrap()
}

pub(crate) fn read(tree: &HostTree) -> Host {
    probe::read(&Root::tree(tree.path()).unwrap(), &|_| panic!("a tree has no NVML"))
}

pub(crate) fn diagnose(tree: &HostTree) -> Diagnosis {
    examine(&read(tree), &Facts::embedded(), day())
}

pub(crate) fn codes(diagnosis: &Diagnosis, severity: Severity) -> Vec<&'static str> {
    diagnosis
        .checks
        .iter()
        .filter(|check| check.severity == Some(severity))
        .filter_map(|check| check.code)
        .collect()
}

pub(crate) fn problems(tree: &HostTree) -> Vec<&'static str> {
    codes(&diagnose(tree), Severity::Error)
}

pub(crate) fn warnings(tree: &HostTree) -> Vec<&'static str> {
    codes(&diagnose(tree), Severity::Warning)
}

pub(crate) fn message(tree: &HostTree, code: &str) -> String {
    let diagnosis = diagnose(tree);
    diagnosis.checks.iter().find(|check| check.code == Some(code)).map(|check| check.message.clone()).unwrap()
}
