//! Any text as requirements: no panic, and a gate with nothing unmet is open.
#![no_main]

use std::collections::BTreeMap;

use cudock_target::gate::{Gate, GateGpu, GateHost, GateVerdict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // Lines are variables, so that one input can have several.
    let environment: BTreeMap<String, String> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let gate = Gate::from_env(&environment);
    let card = GateGpu { capability: "7.5".parse().ok(), brand: Some("Tesla".to_owned()) };
    let known = GateHost { cuda: "12.2".parse().ok(), driver: "535.161.08".parse().ok(), gpus: vec![card] };
    let branch = GateHost { driver: "535".parse().ok(), ..known.clone() };
    let verdict = gate.judge(&known);
    assert!(!matches!(verdict, GateVerdict::Unknown { .. }), "all is known");
    verdict.refusal_message();
    // What is refused or open for the branch is so for each of its versions.
    match gate.judge(&branch) {
        GateVerdict::Open => assert_eq!(verdict, GateVerdict::Open),
        GateVerdict::Refused { .. } => assert!(!matches!(verdict, GateVerdict::Open)),
        _ => {}
    }
    assert!(!matches!(gate.judge(&GateHost::default()), GateVerdict::Refused { .. }), "nothing is known");
});
