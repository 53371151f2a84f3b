//! The device program and the rules decide the same for the same access.

use cudock_confine::ConfineError;
use cudock_confine::devices::{
    Access, DeviceKind, DeviceRule, Instruction, MAX_RULES, Program, allowed, code,
};
use proptest::prelude::*;

/// The kernel's machine, as far as device programs use it.
fn run(program: &[Instruction], kind: DeviceKind, major: u32, minor: u32, access: Access) -> u64 {
    let kind = if kind == DeviceKind::Block { 1 } else { 2 };
    let context = [u32::from(access.bits()) << 16 | kind, major, minor];
    // Registers hold nothing until something is put there, and reading nothing is what the kernel's verifier refuses.
    let mut registers: [Option<u64>; 11] = [None; 11];
    let mut at = 0_i64;
    loop {
        let one = program[usize::try_from(at).unwrap()];
        at += 1;
        let (to, from) = (usize::from(one.registers & 15), usize::from(one.registers >> 4));
        // Numbers of 32 bits are extended with their sign.
        let immediate = i64::from(one.immediate).cast_unsigned();
        let held = || registers[to].expect("a register is read before it is written");
        match one.code {
            code::LOAD => {
                assert_eq!(from, 1, "only the context can be loaded");
                registers[to] = Some(u64::from(context[usize::try_from(one.offset).unwrap() / 4]));
            }
            code::MOVE => registers[to] = Some(immediate),
            code::MOVE_REGISTER => registers[to] = Some(registers[from].expect("read before written")),
            code::AND => registers[to] = Some(held() & immediate),
            code::SHIFT_RIGHT => registers[to] = Some(held() >> immediate),
            code::JUMP => at += i64::from(one.offset),
            code::JUMP_EQUAL if held() == immediate => at += i64::from(one.offset),
            code::JUMP_NOT_EQUAL if held() != immediate => at += i64::from(one.offset),
            code::JUMP_EQUAL | code::JUMP_NOT_EQUAL => {}
            code::EXIT => return registers[0].expect("an answer"),
            other => panic!("no such instruction: {other:#x}"),
        }
    }
}

/// Few numbers, so that rules and questions meet; and some no device can have.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0_u32..4, 1 => Just(195_u32), 1 => Just(0xf_ffff_u32)]
}

fn rule() -> impl Strategy<Value = DeviceRule> {
    let kind = prop::sample::select(vec![DeviceKind::Char, DeviceKind::Block]);
    let wanted = || prop::option::of(prop_oneof![9 => number(), 1 => any::<u32>()]);
    (kind, wanted(), wanted(), 0_u8..8).prop_map(|(kind, major, minor, access)| DeviceRule {
        kind,
        major,
        minor,
        access: Access::from_bits(access),
    })
}

proptest! {
    #[test]
    fn the_program_says_what_the_rules_say(
        rules in prop::collection::vec(rule(), 0..12),
        questions in prop::collection::vec((any::<bool>(), 0_u32..4, number(), 0_u8..8), 1..40),
    ) {
        let program = Program::new(&rules).unwrap();
        for (block, major, minor, access) in questions {
            let kind = if block { DeviceKind::Block } else { DeviceKind::Char };
            let access = Access::from_bits(access);
            let wanted = allowed(&rules, kind, major, minor, access);
            let got = run(program.instructions(), kind, major, minor, access);
            prop_assert_eq!(got, u64::from(wanted), "{:?} {}:{} {:?}", kind, major, minor, access);
        }
    }
}

#[test]
fn the_longest_program_fits_older_kernels_and_more_rules_are_refused() {
    let rule = DeviceRule::new(DeviceKind::Char, 1, 1, Access::READ);
    let program = Program::new(&vec![rule; MAX_RULES]).unwrap();
    assert!(program.instructions().len() <= 4096, "{}", program.instructions().len());
    let error = Program::new(&vec![rule; MAX_RULES + 1]).unwrap_err();
    assert!(matches!(error, ConfineError::DeviceRules { .. }));
}
