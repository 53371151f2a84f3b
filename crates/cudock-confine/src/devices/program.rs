//! Rules as a program the kernel runs.
//!
//! The kernel passes what is asked (the kind, the numbers, and which of reading, writing and making) and takes 1 for
//! yes. The program keeps the access that is still undecided in a register and goes through the rules from the last to
//! the first: one that refuses any of it ends with no; one that allows takes its part away, and ends with yes when
//! nothing is left. That is [`super::allowed`], without a loop.
//!
//! Before it takes a program, the kernel walks all of its ways, straight on first. So straight on is where a rule does
//! not apply: the walker then knows the rest for any device before it comes back for the device a rule names, and sees
//! that it need not walk it again. The other way round, its work would grow with the square of the rules.

use super::rule::{Kind, Rule};
use crate::Error;
use crate::bpf::Instruction;

/// The most rules one program takes: with these, it stays below the 4,096 instructions of older kernels.
pub const MOST_RULES: usize = 350;

/// The operations used here, as the kernel numbers them.
pub mod code {
    /// Loads 32 bits.
    pub const LOAD: u8 = 0x61;
    /// Moves a number into a register.
    pub const MOVE: u8 = 0xb7;
    /// Moves a register into a register.
    pub const MOVE_REGISTER: u8 = 0xbf;
    /// Masks a register.
    pub const AND: u8 = 0x57;
    /// Shifts a register to the right.
    pub const SHIFT_RIGHT: u8 = 0x77;
    /// Jumps where a register is not a number.
    pub const JUMP_NOT_EQUAL: u8 = 0x55;
    /// Jumps where a register is a number.
    pub const JUMP_EQUAL: u8 = 0x15;
    /// Jumps.
    pub const JUMP: u8 = 0x05;
    /// Ends.
    pub const EXIT: u8 = 0x95;
}

/// Where the answer goes.
const ANSWER: u8 = 0;
/// Where the kernel passes the address of what is asked.
const ASKED: u8 = 1;
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
    /// The program that says what the rules say.
    pub fn new(rules: &[Rule]) -> Result<Self, Error> {
        if rules.len() > MOST_RULES {
            return Err(Error::DeviceRules { count: rules.len(), limit: MOST_RULES });
        }
        let mut instructions = vec![
            load(ACCESS, 0),
            Instruction { code: code::MOVE_REGISTER, registers: KIND | ACCESS << 4, offset: 0, immediate: 0 },
            on(code::AND, KIND, 0xffff),
            on(code::SHIFT_RIGHT, ACCESS, 16),
            load(MAJOR, 4),
            load(MINOR, 8),
            // Nothing is asked: nothing is refused.
            jump(code::JUMP_NOT_EQUAL, ACCESS, 0, 2),
            on(code::MOVE, ANSWER, 1),
            on(code::EXIT, 0, 0),
        ];
        for rule in rules.iter().rev() {
            add(rule, &mut instructions);
        }
        instructions.extend([on(code::MOVE, ANSWER, 0), on(code::EXIT, 0, 0)]);
        Ok(Self { instructions })
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }
}

/// Numbers the kernel's devices can have; a rule about others speaks of no device.
const LARGEST_MAJOR: u32 = 0xfff;
const LARGEST_MINOR: u32 = 0xf_ffff;

fn add(rule: &Rule, instructions: &mut Vec<Instruction>) {
    let mut conditions = Vec::with_capacity(3);
    match rule.kind {
        Kind::All => {}
        Kind::Block => conditions.push((KIND, 1)),
        Kind::Char => conditions.push((KIND, 2)),
    }
    for (register, wanted, largest) in
        [(MAJOR, rule.major, LARGEST_MAJOR), (MINOR, rule.minor, LARGEST_MINOR)]
    {
        let Some(wanted) = wanted else { continue };
        match i32::try_from(wanted) {
            Ok(number) if wanted <= largest => conditions.push((register, number)),
            _ => return,
        }
    }
    let bits = i32::from(rule.access.bits());
    let body = if rule.allow {
        vec![
            on(code::AND, ACCESS, !bits),
            jump(code::JUMP_NOT_EQUAL, ACCESS, 0, 2),
            on(code::MOVE, ANSWER, 1),
            on(code::EXIT, 0, 0),
        ]
    } else {
        let copy = Instruction {
            code: code::MOVE_REGISTER,
            registers: ANSWER | ACCESS << 4,
            offset: 0,
            immediate: 0,
        };
        vec![
            copy,
            on(code::AND, ANSWER, bits),
            jump(code::JUMP_EQUAL, ANSWER, 0, 2),
            on(code::MOVE, ANSWER, 0),
            on(code::EXIT, 0, 0),
        ]
    };
    let mut ahead = body.len() + 2 * conditions.len();
    for (register, number) in conditions {
        ahead -= 2;
        instructions.push(jump(code::JUMP_EQUAL, register, number, 1));
        // At most two conditions, of two instructions each, and a body of five lie ahead.
        instructions.push(jump(code::JUMP, 0, 0, i16::try_from(ahead).unwrap_or(i16::MAX)));
    }
    instructions.extend(body);
}

const fn load(register: u8, from: i16) -> Instruction {
    Instruction { code: code::LOAD, registers: register | ASKED << 4, offset: from, immediate: 0 }
}

const fn on(code: u8, register: u8, immediate: i32) -> Instruction {
    Instruction { code, registers: register, offset: 0, immediate }
}

const fn jump(code: u8, register: u8, immediate: i32, offset: i16) -> Instruction {
    Instruction { code, registers: register, offset, immediate }
}
