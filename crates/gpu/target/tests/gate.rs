//! The start gate, held to what libnvidia-container does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use cudock_target::gate::{Gate, GateGpu, GateHost, GateVerdict, Property};

/// The value of an image for CUDA 12.4, shortened to three branches.
const CUDA_12_4: &str = "cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=geforce,driver>=470,driver<471 \
                         brand=tesla,driver>=535,driver<536 brand=geforce,driver>=535,driver<536";

fn gate(variables: &[(&str, &str)]) -> Gate {
    let owned: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Gate::from_env(&owned)
}

fn host(cuda: &str, driver: &str, cards: &[(&str, &str)]) -> GateHost {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let card = |(capability, brand): &(&str, &str)| GateGpu {
        capability: known(capability).map(|text| text.parse().unwrap()),
        brand: known(brand),
    };
    GateHost {
        cuda: known(cuda).map(|text| text.parse().unwrap()),
        driver: known(driver).map(|text| text.parse().unwrap()),
        gpus: cards.iter().map(card).collect(),
    }
}

fn t4(cuda: &str, driver: &str) -> GateHost {
    host(cuda, driver, &[("7.5", "Tesla")])
}

fn judge(value: &str, host: &GateHost) -> GateVerdict {
    gate(&[("NVIDIA_REQUIRE_CUDA", value)]).judge(host)
}

/// In one letter: open, refused, unknown, malformed.
fn letter(verdict: &GateVerdict) -> char {
    match verdict {
        GateVerdict::Open | GateVerdict::Disabled => 'o',
        GateVerdict::Refused { .. } => 'r',
        GateVerdict::Unknown { .. } => 'u',
        GateVerdict::Malformed(_) => 'm',
    }
}

#[test]
fn values_come_out_as_the_container_tool_has_them() {
    let host = host("12.4", "550.54.15", &[("7.5", "Tesla")]);
    let cases = [
        ("cuda>=12.4", 'o'),
        ("cuda>12.4", 'r'),
        ("cuda>=12.4.0", 'o'),
        ("cuda=12.4.0.0", 'o'),
        ("cuda!=12.4", 'r'),
        ("cuda!12.4", 'r'),
        ("cuda!12.5", 'o'),
        ("cuda<=12", 'r'),
        ("cuda>=12", 'o'),
        ("cuda<13", 'o'),
        ("cuda>=9.2", 'o'),
        ("driver>=550.54.14,driver<551", 'o'),
        ("driver<550", 'r'),
        ("driver>=550.054.015", 'o'),
        ("driver>=550..54..15.", 'o'),
        ("arch>=7.5", 'o'),
        ("arch>=10.0", 'r'),
        ("brand=tesla", 'o'),
        ("BRAND=TESLA,Cuda>=1", 'o'),
        ("brand!=tesla", 'r'),
        ("", 'o'),
        ("   ", 'o'),
        (",", 'o'),
        ("cuda>=12.4,,driver>=1,", 'o'),
        ("  cuda>=99  cuda>=12 ", 'o'),
        // Only commas: the last condition counts, whatever follows.
        ("cuda>=99 , cuda>=12", 'r'),
        (", cuda>=99", 'o'),
        ("cuda=>12", 'm'),
        ("cuda==12", 'm'),
        ("cuda", 'm'),
        ("cuda>=", 'm'),
        (">=12", 'm'),
        ("cuda>=twelve", 'm'),
        ("cuda>=.5", 'm'),
        ("cuda>=12.4\n", 'm'),
        ("cuda>= 12.4", 'm'),
        ("brand>tesla", 'm'),
        ("gpu>=7", 'm'),
        ("cuda>=18446744073709551615", 'm'),
        ("cuda>=13.18446744073709551615", 'r'),
        // A mistake counts only where evaluation gets to it.
        ("cuda>=12 nonsense", 'o'),
        ("cuda>=99 nonsense", 'm'),
        ("cuda>=99,nonsense cuda>=12", 'o'),
        ("nonsense cuda>=12", 'm'),
    ];
    for (value, expected) in cases {
        let verdict = judge(value, &host);
        assert_eq!(letter(&verdict), expected, "{value:?}: {verdict:?}");
    }
}

#[test]
fn an_unmet_condition_too_long_to_report_is_an_invalid_expression() {
    // "brand = " and the name must stay below 128 bytes.
    assert_eq!(letter(&judge(&format!("brand={}", "x".repeat(119)), &t4("12.4", "550.54.15"))), 'r');
    assert_eq!(letter(&judge(&format!("brand={}", "x".repeat(120)), &t4("12.4", "550.54.15"))), 'm');
    assert_eq!(letter(&judge(&format!("brand!={}", "x".repeat(500)), &t4("12.4", "550.54.15"))), 'o');
}

#[test]
fn a_driver_between_the_listed_branches_is_refused() {
    let verdict = judge(CUDA_12_4, &t4("12.3", "545.23.08"));
    let GateVerdict::Refused { variable, first_alternative, closest, gpu } = &verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!((variable.as_str(), first_alternative.as_str()), ("NVIDIA_REQUIRE_CUDA", "cuda>=12.4"));
    assert_eq!(closest.alternative, "brand=tesla,driver>=535,driver<536");
    assert_eq!(closest.failed.to_string(), "driver<536");
    assert_eq!(*gpu, Some(0));
    assert_eq!(letter(&judge(CUDA_12_4, &t4("12.2", "535.161.08"))), 'o');
}

#[test]
fn of_alternatives_equally_near_a_newer_driver_is_aimed_for() {
    let verdict = judge(
        "brand=tesla,driver>=535,driver<536 brand=tesla,driver>=550,driver<551",
        &t4("12.3", "545.23.08"),
    );
    let GateVerdict::Refused { closest, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(closest.failed.to_string(), "driver>=550");
}

#[test]
fn another_driver_is_aimed_for_before_another_card() {
    let value = "cuda>=12.6 brand=tesla,driver>=535,driver<536";
    let verdict = judge(value, &host("12.2", "535.161.08", &[("8.9", "GeForce")]));
    let GateVerdict::Refused { closest, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(closest.alternative, "cuda>=12.6");
}

#[test]
fn the_messages_are_those_of_the_container_tool() {
    let host = t4("12.2", "530.30.02");
    let cases = [
        (
            CUDA_12_4,
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver to \
             a newer version, or use an earlier cuda container",
        ),
        (
            "brand=geforce,driver>=535 cuda>=12.4",
            "nvidia-container-cli: requirement error: unsatisfied condition: brand=geforce,driver>=535",
        ),
        ("CUDA>=12.4", "nvidia-container-cli: requirement error: unsatisfied condition: CUDA>=12.4"),
        (" cuda>=12.4", "nvidia-container-cli: requirement error: unsatisfied condition: "),
        ("cuda~12", "nvidia-container-cli: requirement error: invalid expression"),
    ];
    for (value, message) in cases {
        assert_eq!(judge(value, &host).refusal_message().as_deref(), Some(message));
    }
    assert_eq!(judge("cuda>=12.2", &host).refusal_message(), None);
}

#[test]
fn every_card_must_pass() {
    let value = "brand=tesla";
    let verdict = judge(value, &host("12.4", "550.54.15", &[("7.5", "Tesla"), ("8.9", "GeForce")]));
    assert!(matches!(verdict, GateVerdict::Refused { gpu: Some(1), .. }), "{verdict:?}");
}

#[test]
fn without_a_card_conditions_on_cards_are_met_and_not_even_read() {
    let none = host("12.4", "550.54.15", &[]);
    for value in ["brand=geforce", "arch>=99", "arch>=x", "brand<tesla"] {
        assert_eq!(judge(value, &none), GateVerdict::Open, "{value}");
    }
    assert!(matches!(judge("cuda>=99", &none), GateVerdict::Refused { gpu: None, .. }));
}

#[test]
fn unknown_properties_leave_the_gate_open_but_are_reported() {
    let unknown = host("", "", &[("7.5", "Tesla")]);
    let verdict = judge("cuda>=99,driver>=1", &unknown);
    let GateVerdict::Unknown { alternative, missing, gpu, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(
        (alternative.as_str(), missing, gpu),
        ("cuda>=99,driver>=1", vec![Property::Cuda, Property::Driver], Some(0))
    );
    assert_eq!(letter(&judge("cuda>=99 arch>=7.5", &unknown)), 'o');
    assert_eq!(letter(&judge("cuda>=99,arch>=9", &unknown)), 'r');
    assert_eq!(letter(&judge("cuda>=99 nonsense", &unknown)), 'u');
}

#[test]
fn a_branch_alone_decides_what_all_its_versions_agree_on() {
    let branch = host("", "535", &[]);
    let cases = [
        ("driver>=535", 'o'),
        ("driver<536", 'o'),
        ("driver<535", 'r'),
        ("driver>=536", 'r'),
        ("driver>=535.54.03", 'u'),
        ("driver>535", 'u'),
        ("driver=535.54", 'u'),
        ("driver!=535.54", 'u'),
        ("driver=470", 'r'),
        ("driver!=470", 'o'),
    ];
    for (value, expected) in cases {
        assert_eq!(letter(&judge(value, &branch)), expected, "{value}");
    }
}

#[test]
fn all_variables_must_hold_but_jetpacks_are_left_out() {
    let host = t4("12.4", "550.54.15");
    let held = ("NVIDIA_REQUIRE_CUDA", "cuda>=12");
    assert_eq!(letter(&gate(&[held, ("NVIDIA_REQUIRE_ARCH", "arch>=8.0")]).judge(&host)), 'r');
    assert_eq!(letter(&gate(&[held, ("NVIDIA_REQUIRE_JETPACK", "csv-mounts=all")]).judge(&host)), 'o');
    assert_eq!(letter(&gate(&[held, ("NVIDIA_REQUIRE_JETPACK_HOST_MOUNTS", "x")]).judge(&host)), 'o');
    assert_eq!(
        letter(&gate(&[held, ("NVIDIA_REQUIREMENT", "x"), ("NVIDIA_REQUIRE", "x")]).judge(&host)),
        'o'
    );
}

#[test]
fn the_gate_can_be_turned_off() {
    let host = t4("12.4", "550.54.15");
    for (value, expected) in
        [("true", true), ("1", true), ("T", true), ("yes", false), ("tRUE", false), ("", false)]
    {
        let verdict =
            gate(&[("NVIDIA_REQUIRE_CUDA", "cuda>=99"), ("NVIDIA_DISABLE_REQUIRE", value)]).judge(&host);
        assert_eq!(verdict == GateVerdict::Disabled, expected, "{value}");
    }
}

#[test]
fn the_version_of_an_old_image_stands_for_a_requirement() {
    let host = t4("10.1", "418.40.04");
    let cases = [
        ("10.1.243", 'o'),
        ("10.2.89", 'r'),
        ("v10.0", 'o'),
        ("11", 'r'),
        ("10", 'o'),
        ("10.1.105-rc.1+build", 'o'),
        ("10.1.105.3", 'm'),
        ("10.01.0", 'm'),
        ("10.1-rc", 'm'),
        ("ten", 'm'),
        ("", 'o'),
    ];
    for (version, expected) in cases {
        let verdict = gate(&[("CUDA_VERSION", version)]).judge(&host);
        assert_eq!(letter(&verdict), expected, "{version}: {verdict:?}");
    }
    let message = gate(&[("CUDA_VERSION", "10.2.89")]).judge(&host).refusal_message().unwrap();
    assert!(message.contains("unsatisfied condition: cuda>=10.2, please update"), "{message}");
    // An empty requirement is none; one that is filled takes its place.
    let both = |value| gate(&[("CUDA_VERSION", "10.2.89"), ("NVIDIA_REQUIRE_CUDA", value)]).judge(&host);
    assert_eq!(letter(&both("")), 'r');
    assert_eq!(letter(&both("cuda>=9.0")), 'o');
}

#[test]
fn more_requirements_than_the_container_tool_takes_are_refused() {
    let variables = |count: usize| -> BTreeMap<String, String> {
        (0..count).map(|number| (format!("NVIDIA_REQUIRE_{number}"), "cuda>=1".to_owned())).collect()
    };
    let host = t4("12.4", "550.54.15");
    assert_eq!(Gate::from_env(&variables(32)).judge(&host), GateVerdict::Open);
    let message = Gate::from_env(&variables(33)).judge(&host).refusal_message();
    assert_eq!(message.as_deref(), Some("nvidia-container-cli: input error: too many requirements"));
}

#[test]
fn a_mistake_is_shown_with_its_place() {
    let GateVerdict::Malformed(error) = judge("cuda>=99 brand=tesla,gpu>=7", &t4("12.4", "550.54.15")) else {
        panic!("`gpu` is not a property");
    };
    assert_eq!(
        (error.variable.as_str(), error.text.as_str(), error.position),
        ("NVIDIA_REQUIRE_CUDA", "gpu>=7", 21)
    );
    assert_eq!(
        error.to_string(),
        "NVIDIA_REQUIRE_CUDA: no such property (cuda, driver, arch, brand) in `gpu>=7` at byte 21"
    );
}
