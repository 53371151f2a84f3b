//! Compiles device rules to a BPF program.
//!
//! The kernel passes the device kind, its numbers and the requested access; a result of 1 allows. The program keeps the
//! undecided access in a register: each rule that matches removes its part, and nothing left returns 1. That is
//! [`super::allowed`], unrolled.
//!
//! The verifier explores the fall-through path first. It is the path of a rule that does not match: the verifier then
//! knows the state of the remaining program for any device and prunes it when it returns for the device that the rule
//! names. The other order would make its work grow with the square of the number of rules.

use super::rule::{DeviceKind, DeviceRule};
use crate::ConfineError;
use crate::bpf::Instruction;

/// The most rules in one program, which keep it below the 4,096 instructions of older kernels.
pub const MAX_RULES: usize = 350;

/// Opcodes.
pub mod code {
    /// Loads 32 bits.
    pub const LOAD: u8 = 0x61;
    /// Moves a constant into a register.
    pub const MOVE: u8 = 0xb7;
    pub const MOVE_REGISTER: u8 = 0xbf;
    pub const AND: u8 = 0x57;
    pub const SHIFT_RIGHT: u8 = 0x77;
    pub const JUMP_NOT_EQUAL: u8 = 0x55;
    pub const JUMP_EQUAL: u8 = 0x15;
    pub const JUMP: u8 = 0x05;
    pub const EXIT: u8 = 0x95;
}

/// The register of the return value.
const RESULT: u8 = 0;
/// The register in which the kernel passes the address of the request.
const CONTEXT: u8 = 1;
/// The access that is still undecided.
const ACCESS: u8 = 2;
const KIND: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;

/// A program for [`super::attach`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    instructions: Vec<Instruction>,
}

impl Program {
    pub fn new(rules: &[DeviceRule]) -> Result<Self, ConfineError> {
        if rules.len() > MAX_RULES {
            return Err(ConfineError::DeviceRules { count: rules.len(), limit: MAX_RULES });
        }
        let mut instructions = vec![
            load(ACCESS, 0),
            Instruction { code: code::MOVE_REGISTER, registers: KIND | ACCESS << 4, offset: 0, immediate: 0 },
            on(code::AND, KIND, 0xffff),
            on(code::SHIFT_RIGHT, ACCESS, 16),
            load(MAJOR, 4),
            load(MINOR, 8),
            // No access is requested, so none is denied.
            jump(code::JUMP_NOT_EQUAL, ACCESS, 0, 2),
            on(code::MOVE, RESULT, 1),
            on(code::EXIT, 0, 0),
        ];
        for rule in rules {
            add(rule, &mut instructions);
        }
        instructions.extend([on(code::MOVE, RESULT, 0), on(code::EXIT, 0, 0)]);
        Ok(Self { instructions })
    }

    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }
}

/// The largest numbers a device can have; a rule with larger ones matches none.
const MAX_MAJOR: u32 = 0xfff;
const MAX_MINOR: u32 = 0xf_ffff;

fn add(rule: &DeviceRule, instructions: &mut Vec<Instruction>) {
    let kind = match rule.kind {
        DeviceKind::Block => 1,
        DeviceKind::Char => 2,
    };
    let mut conditions = vec![(KIND, kind)];
    for (register, wanted, largest) in [(MAJOR, rule.major, MAX_MAJOR), (MINOR, rule.minor, MAX_MINOR)] {
        let Some(wanted) = wanted else { continue };
        match i32::try_from(wanted) {
            Ok(number) if wanted <= largest => conditions.push((register, number)),
            _ => return,
        }
    }
    let body = [
        on(code::AND, ACCESS, !i32::from(rule.access.bits())),
        jump(code::JUMP_NOT_EQUAL, ACCESS, 0, 2),
        on(code::MOVE, RESULT, 1),
        on(code::EXIT, 0, 0),
    ];
    let mut ahead = body.len() + 2 * conditions.len();
    for (register, number) in conditions {
        ahead -= 2;
        instructions.push(jump(code::JUMP_EQUAL, register, number, 1));
        // At most two conditions of two instructions each and a body of four follow.
        instructions.push(jump(code::JUMP, 0, 0, i16::try_from(ahead).unwrap_or(i16::MAX)));
    }
    instructions.extend(body);
}

const fn load(register: u8, from: i16) -> Instruction {
    Instruction { code: code::LOAD, registers: register | CONTEXT << 4, offset: from, immediate: 0 }
}

const fn on(code: u8, register: u8, immediate: i32) -> Instruction {
    Instruction { code, registers: register, offset: 0, immediate }
}

const fn jump(code: u8, register: u8, immediate: i32, offset: i16) -> Instruction {
    Instruction { code, registers: register, offset, immediate }
}
