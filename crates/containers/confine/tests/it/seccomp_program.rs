//! The program says what the profile says: each is run on the same calls.

use cudock_confine::seccomp::{
    AND, Abi, Action, Comparison, Condition, Filter, FilterContext, Instruction, JUMP, JUMP_EQUAL,
    JUMP_GREATER, JUMP_GREATER_OR_EQUAL, KernelVersion, LOAD, Operator, Profile, RETURN, SyscallRule,
};
use cudock_confine::{Capability, ConfineError};
use proptest::prelude::*;

use crate::support::here;

/// The kernel's classic machine, as far as filters use it. Anything it does not know, and running past the end, panics.
fn run(program: &[Instruction], arch: u32, number: u32, arguments: &[u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend(number.to_le_bytes());
    data.extend(arch.to_le_bytes());
    data.extend(0x7f00_dead_beef_u64.to_le_bytes());
    for argument in arguments {
        data.extend(argument.to_le_bytes());
    }
    let (mut at, mut held) = (0, 0_u32);
    loop {
        let one = program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { one.jump_true } else { one.jump_false });
        match one.code {
            LOAD => {
                let from = one.operand as usize;
                held = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
            }
            AND => held &= one.operand,
            JUMP => at += one.operand as usize,
            JUMP_EQUAL => at += jump(held == one.operand),
            JUMP_GREATER => at += jump(held > one.operand),
            JUMP_GREATER_OR_EQUAL => at += jump(held >= one.operand),
            RETURN => return one.operand,
            other => panic!("no such instruction: {other:#x}"),
        }
    }
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 0_u32..480,
        1 => prop::sample::select(vec![41, 56, 97, 102, 135, 136, 165, 198, 220, 359, 435]),
        1 => (0_u32..480).prop_map(|number| number + 0x4000_0000),
        1 => any::<u32>(),
    ]
}

fn arch() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => Just(Abi::X86_64.audit_number()),
        4 => Just(Abi::X86.audit_number()),
        4 => Just(Abi::Aarch64.audit_number()),
        1 => any::<u32>(),
    ]
}

/// Values around those that rules speak of, and around the halves' edges.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0_u64..50),
        any::<u64>(),
        any::<u32>().prop_map(u64::from),
        (0_u32..64).prop_map(|bit| 1 << bit),
        prop::sample::select(vec![
            0xffff_ffff,
            0x1_0000_0000,
            0xffff_fffe,
            0x1_0000_0028,
            u64::MAX,
            0x20008,
            0x7e02_0000,
            0x11
        ]),
    ]
}

fn capabilities() -> impl Strategy<Value = Vec<Capability>> {
    prop::sample::subsequence(Capability::ALL.to_vec(), 0..=Capability::ALL.len())
}

fn surroundings() -> impl Strategy<Value = FilterContext> {
    (prop::sample::select(vec![Abi::X86_64, Abi::Aarch64]), 3_u32..7, 0_u32..20, capabilities()).prop_map(
        |(machine, major, minor, capabilities)| FilterContext {
            machine,
            kernel: KernelVersion { major, minor },
            capabilities,
        },
    )
}

fn comparison() -> impl Strategy<Value = Comparison> {
    let operator = prop_oneof![
        Just(Operator::NotEqual),
        Just(Operator::Less),
        Just(Operator::LessOrEqual),
        Just(Operator::Equal),
        Just(Operator::GreaterOrEqual),
        Just(Operator::Greater),
        value().prop_map(|mask| Operator::MaskedEqual { mask }),
    ];
    (0_u8..6, operator, value()).prop_map(|(argument, operator, value)| Comparison {
        argument,
        operator,
        value,
    })
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Allow),
        Just(Action::Log),
        Just(Action::Trap),
        Just(Action::KillThread),
        Just(Action::KillProcess),
        (0_u16..4096).prop_map(Action::Errno),
        any::<u16>().prop_map(Action::Trace),
    ]
}

/// Neighbors and strangers, so that spans are both joined and cut.
const NAMES: [&str; 12] = [
    "read",
    "write",
    "open",
    "close",
    "stat",
    "clone",
    "socket",
    "personality",
    "mount",
    "clone3",
    "listns",
    "ptrace",
];

fn rule() -> impl Strategy<Value = SyscallRule> {
    let names = prop::sample::subsequence(NAMES.to_vec(), 1..5);
    let condition = || {
        prop_oneof![
            4 => Just(Condition::default()),
            1 => prop::sample::select(vec![Capability::SysAdmin, Capability::Chown])
                .prop_map(|one| Condition { capabilities: vec![one], ..Condition::default() }),
            1 => (3_u32..7).prop_map(|major| Condition {
                kernel: Some(KernelVersion { major, minor: 5 }),
                ..Condition::default()
            }),
            1 => Just(Condition { architectures: vec!["amd64".to_owned()], ..Condition::default() }),
        ]
    };
    let arguments = prop_oneof![
        9 => prop::collection::vec(comparison(), 0..4),
        1 => prop::collection::vec(comparison(), 20..30),
    ];
    (names, action(), arguments, condition(), condition()).prop_map(
        |(names, action, arguments, only, except)| SyscallRule { names, action, arguments, only, except },
    )
}

fn profile() -> impl Strategy<Value = Profile> {
    let companions = prop_oneof![Just(vec![]), Just(vec![Abi::X86]), Just(vec![Abi::X86_64, Abi::X86])];
    (action(), companions, prop::collection::vec(rule(), 0..12))
        .prop_map(|(otherwise, companions, rules)| Profile { otherwise, companions, rules })
}

fn check(
    profile: &Profile,
    there: &FilterContext,
    calls: &[(u32, u32, [u64; 6])],
) -> Result<(), TestCaseError> {
    let filter = match Filter::new(profile, there) {
        // Some random profiles are longer than the kernel allows.
        Err(error @ ConfineError::FilterLength { .. }) => {
            return Err(TestCaseError::reject(error.to_string()));
        }
        filter => filter.unwrap(),
    };
    let decisions = profile.decisions(there).unwrap();
    for (arch, number, arguments) in calls {
        let wanted = decisions.of(*arch, *number, arguments);
        let got = run(filter.instructions(), *arch, *number, arguments);
        prop_assert_eq!(got, wanted.return_value(), "{:#x} {} {:x?}", arch, number, arguments);
    }
    Ok(())
}

fn calls() -> impl Strategy<Value = Vec<(u32, u32, [u64; 6])>> {
    prop::collection::vec((arch(), number(), prop::array::uniform6(value())), 1..60)
}

proptest! {
    #[test]
    fn the_default_profiles_program_says_what_the_profile_says(there in surroundings(), calls in calls()) {
        check(&Profile::standard(), &there, &calls)?;
    }

    #[test]
    fn any_profiles_program_says_what_the_profile_says(
        profile in profile(), there in surroundings(), calls in calls()
    ) {
        check(&profile, &there, &calls)?;
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For every call of every way in, not only for those that were drawn.
    #[test]
    fn every_number_is_answered(profile in profile(), there in surroundings(), arguments in prop::array::uniform6(value())) {
        let calls: Vec<_> = [Abi::X86_64, Abi::X86, Abi::Aarch64]
            .iter()
            .flat_map(|abi| (0..500).map(|number| (abi.audit_number(), number, arguments)))
            .collect();
        check(&profile, &there, &calls)?;
    }
}

#[test]
fn the_default_program_is_short_and_a_call_meets_few_of_its_instructions() {
    let filter = Filter::new(&Profile::standard(), &here(&[])).unwrap();
    let program = filter.instructions();
    assert!(program.len() < 1000, "{}", program.len());
    // `read`, by the machine's own way: the arch, the number, and one comparison for each halving.
    let (mut at, mut steps) = (0, 0);
    while program[at].code != RETURN {
        let one = program[at];
        let holds = match one.code {
            JUMP_EQUAL => one.operand == Abi::X86_64.audit_number(),
            JUMP_GREATER_OR_EQUAL => false,
            _ => true,
        };
        let over = match one.code {
            JUMP => one.operand as usize,
            LOAD => 0,
            _ => usize::from(if holds { one.jump_true } else { one.jump_false }),
        };
        at += 1 + over;
        steps += 1;
    }
    assert!(steps <= 14, "{steps}");
    eprintln!("{} instructions, {steps} for a read", program.len());
}

#[test]
#[ignore = "a measurement: run it in a release build with --nocapture"]
fn what_making_a_filter_costs() {
    let mut times: Vec<_> = (0..500)
        .map(|_| {
            let from = std::time::Instant::now();
            Filter::for_capabilities(&[Capability::Chown]).unwrap();
            from.elapsed()
        })
        .collect();
    times.sort();
    eprintln!("a filter is made in {:?} (p50 of 500; fastest {:?})", times[250], times[0]);
}

#[test]
fn through_a_foreign_way_every_call_kills() {
    let arm = 0x4000_0028;
    let profile = Profile::standard();
    for number in [0, 1, 20, 41] {
        let action = profile.decisions(&here(&[])).unwrap().of(arm, number, &[0; 6]);
        assert_eq!(action, Action::KillProcess);
    }
    let on_arm = FilterContext { machine: Abi::Aarch64, ..here(&[]) };
    assert_eq!(profile.decisions(&on_arm).unwrap().of(arm, 1, &[0; 6]), Action::KillProcess);
    assert_eq!(
        profile.decisions(&on_arm).unwrap().of(Abi::Aarch64.audit_number(), 63, &[0; 6]),
        Action::Allow
    );
}

#[test]
fn before_linux_4_8_nobody_traces_without_the_capability() {
    let old = FilterContext { kernel: KernelVersion { major: 4, minor: 7 }, ..here(&[]) };
    let ptrace = u32::try_from(libc::SYS_ptrace).unwrap();
    let arch = Abi::native().audit_number();
    let there = |there: FilterContext| FilterContext { machine: Abi::native(), ..there };
    let decide =
        |there: &FilterContext| Profile::standard().decisions(there).unwrap().of(arch, ptrace, &[0; 6]);
    assert_eq!(decide(&there(old.clone())), Action::Errno(1));
    assert_eq!(decide(&there(here(&[]))), Action::Allow);
    let with = FilterContext { capabilities: vec![Capability::SysPtrace], ..old };
    assert_eq!(decide(&there(with)), Action::Allow);
}

#[test]
fn a_rule_on_arguments_is_stronger_than_one_without_wherever_it_stands() {
    let narrow = SyscallRule {
        names: vec!["clone"],
        action: Action::Errno(1),
        arguments: vec![Comparison {
            argument: 0,
            operator: Operator::MaskedEqual { mask: 0x1000_0000 },
            value: 0x1000_0000,
        }],
        only: Condition::default(),
        except: Condition::default(),
    };
    let wide = SyscallRule { action: Action::Allow, arguments: vec![], ..narrow.clone() };
    for rules in [vec![narrow.clone(), wide.clone()], vec![wide, narrow]] {
        let profile = Profile { otherwise: Action::KillProcess, companions: vec![], rules };
        let clone = |flags| {
            profile.decisions(&here(&[])).unwrap().of(Abi::X86_64.audit_number(), 56, &[flags, 0, 0, 0, 0, 0])
        };
        assert_eq!(clone(0x1000_0011), Action::Errno(1));
        assert_eq!(clone(0x11), Action::Allow);
    }
}

#[test]
fn kernel_versions_are_read_as_the_kernel_writes_them() {
    for (release, wanted) in [
        ("6.18.44-generic", Some((6, 18))),
        ("4.8", Some((4, 8))),
        ("5.15.0-1051-azure", Some((5, 15))),
        ("6", None),
        ("", None),
        ("x.y", None),
    ] {
        let got = KernelVersion::from_release(release).map(|version| (version.major, version.minor));
        assert_eq!(got, wanted, "{release}");
    }
}
