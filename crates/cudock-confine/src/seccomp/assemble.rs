//! From decisions to a program for the kernel's classic packet-filter machine.
//!
//! The crate `seccompiler` does not fit: its filters have one action for all matches, know one architecture and kill on
//! any other, and compare numbers one after the other. Here a program branches on the way into the kernel, then finds
//! the number's span by halving: seven comparisons instead of three hundred. Jumps go forward only, and the kernel can
//! run the number's part beforehand, so since Linux 5.11 a call that is always allowed does not run the program at all.

use super::profile::{Action, Comparison, Operator};
use super::resolve::{Decisions, FOREIGN, Verdict};
use crate::Error;

/// One instruction, laid out as the kernel's `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// How many instructions to pass over where a comparison holds.
    pub jump_true: u8,
    /// How many where it does not.
    pub jump_false: u8,
    /// The number it works with.
    pub operand: u32,
}

/// The most instructions the kernel takes in one program (`BPF_MAXINSNS`).
pub(super) const LONGEST: usize = 4096;

/// Loads the 32 bits at a place of `struct seccomp_data`.
pub const LOAD: u16 = 0x20;
/// Masks what was loaded.
pub const AND: u16 = 0x54;
/// Passes over as many instructions as the operand says.
pub const JUMP: u16 = 0x05;
/// Compares what was loaded with the operand: `==`.
pub const JUMP_EQUAL: u16 = 0x15;
/// The same: `>`.
pub const JUMP_GREATER: u16 = 0x25;
/// The same: `>=`.
pub const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
/// Ends with the operand as the answer.
pub const RETURN: u16 = 0x06;

const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

const fn plain(code: u16, operand: u32) -> Instruction {
    Instruction { code, jump_true: 0, jump_false: 0, operand }
}

const fn answer(action: Action) -> Instruction {
    plain(RETURN, action.return_value())
}

/// The whole program.
pub(super) fn assemble(decisions: &Decisions) -> Result<Vec<Instruction>, Error> {
    let mut rest = vec![answer(FOREIGN)];
    for table in decisions.tables.iter().rev() {
        let mut own = vec![plain(LOAD, NUMBER_AT)];
        own.extend(search(&table.spans));
        rest = branch(JUMP_EQUAL, table.abi.audit_number(), rest, own);
    }
    let mut program = vec![plain(LOAD, ARCH_AT)];
    program.extend(rest);
    if program.len() > LONGEST {
        return Err(Error::FilterLength { length: program.len(), limit: LONGEST });
    }
    Ok(program)
}

/// `holds` where the comparison does, else `fails`. A conditional jump reaches 255 instructions; a longer way is taken
/// by an unconditional one.
fn branch(code: u16, operand: u32, fails: Vec<Instruction>, holds: Vec<Instruction>) -> Vec<Instruction> {
    let over = fails.len();
    let mut made = Vec::with_capacity(over.saturating_add(holds.len()).saturating_add(2));
    if let Ok(jump_true) = u8::try_from(over) {
        made.push(Instruction { code, jump_true, jump_false: 0, operand });
    } else {
        made.push(Instruction { code, jump_true: 0, jump_false: 1, operand });
        // A program this long is refused as a whole before its jumps could be too long to write down.
        made.push(plain(JUMP, u32::try_from(over).unwrap_or(u32::MAX)));
    }
    made.extend(fails);
    made.extend(holds);
    made
}

/// Halves the spans until one is left.
fn search(spans: &[(u32, Verdict)]) -> Vec<Instruction> {
    let (low, high) = spans.split_at(spans.len() / 2);
    match (low, high) {
        ([], []) => vec![answer(FOREIGN)],
        ([], [(_, verdict), ..]) => verdict_code(verdict),
        (_, [(first, _), ..]) => branch(JUMP_GREATER_OR_EQUAL, *first, search(low), search(high)),
        (_, []) => search(low),
    }
}

fn verdict_code(verdict: &Verdict) -> Vec<Instruction> {
    let mut made: Vec<Instruction> =
        verdict.cases.iter().flat_map(|(comparisons, action)| case(comparisons, *action)).collect();
    made.push(answer(verdict.otherwise));
    made
}

/// Where a jump within a case goes.
#[derive(Clone, Copy)]
enum Way {
    /// To the next instruction.
    On,
    /// Past the end of this comparison, which holds.
    Holds,
    /// Past the end of the case, which does not apply.
    Fails,
}

/// An instruction whose jumps are still names.
struct Draft {
    code: u16,
    operand: u32,
    holds: Way,
    fails: Way,
}

impl Draft {
    const fn plain(code: u16, operand: u32) -> Self {
        Self { code, operand, holds: Way::On, fails: Way::On }
    }
}

/// Code that ends with the action where all comparisons hold and runs past its end where one does not. At most six
/// arguments, each compared at most twice in a case, keep it far shorter than a conditional jump reaches; a case that is
/// longer all the same is cut into steps of one comparison by `long_case`.
fn case(comparisons: &[Comparison], action: Action) -> Vec<Instruction> {
    const SHORT: usize = 24;
    if comparisons.len() > SHORT {
        return long_case(comparisons, action);
    }
    let drafts: Vec<Vec<Draft>> = comparisons.iter().map(comparison).collect();
    let total: usize = drafts.iter().map(Vec::len).sum();
    let mut made = Vec::with_capacity(total.saturating_add(1));
    let mut end = 0;
    for one in drafts {
        end += one.len();
        for draft in one {
            let next = made.len() + 1;
            let to = |way| {
                let target = match way {
                    Way::On => next,
                    Way::Holds => end,
                    Way::Fails => total + 1,
                };
                u8::try_from(target - next).unwrap_or(u8::MAX)
            };
            made.push(Instruction {
                code: draft.code,
                jump_true: to(draft.holds),
                jump_false: to(draft.fails),
                operand: draft.operand,
            });
        }
    }
    made.push(answer(action));
    made
}

/// The same for a rule with very many comparisons: each fails to an unconditional jump of its own.
fn long_case(comparisons: &[Comparison], action: Action) -> Vec<Instruction> {
    let mut made = vec![answer(action)];
    for one in comparisons.iter().rev() {
        let past = u32::try_from(made.len()).unwrap_or(u32::MAX);
        // The case of one comparison "answers" by falling into what follows: its answer is replaced by a jump over the
        // way out, and the way out passes over all that was made so far.
        let mut step = case(std::slice::from_ref(one), action);
        step.pop();
        step.push(plain(JUMP, 1));
        step.push(plain(JUMP, past));
        step.extend(made);
        made = step;
    }
    made
}

/// A comparison of 64 bits on a machine of 32: the upper half decides, or leaves it to the lower.
fn comparison(one: &Comparison) -> Vec<Draft> {
    use Way::{Fails, Holds, On};
    // Both architectures are little-endian: the lower half comes first.
    let at = ARGUMENTS_AT + 8 * u32::from(one.argument);
    let low_at = Draft::plain(LOAD, at);
    let high_at = Draft::plain(LOAD, at + 4);
    let [high, low] = halves(one.value);
    let jump = |code, operand, holds, fails| Draft { code, operand, holds, fails };
    match one.operator {
        Operator::Equal => {
            vec![high_at, jump(JUMP_EQUAL, high, On, Fails), low_at, jump(JUMP_EQUAL, low, On, Fails)]
        }
        Operator::NotEqual => {
            vec![high_at, jump(JUMP_EQUAL, high, On, Holds), low_at, jump(JUMP_EQUAL, low, Fails, On)]
        }
        Operator::MaskedEqual { mask } => {
            let [high_mask, low_mask] = halves(mask);
            vec![
                high_at,
                Draft::plain(AND, high_mask),
                jump(JUMP_EQUAL, high, On, Fails),
                low_at,
                Draft::plain(AND, low_mask),
                jump(JUMP_EQUAL, low, On, Fails),
            ]
        }
        Operator::Greater => ordered(high_at, low_at, [high, low], JUMP_GREATER, [Holds, Fails], [On, Fails]),
        Operator::GreaterOrEqual => {
            ordered(high_at, low_at, [high, low], JUMP_GREATER_OR_EQUAL, [Holds, Fails], [On, Fails])
        }
        Operator::Less => {
            ordered(high_at, low_at, [high, low], JUMP_GREATER_OR_EQUAL, [Fails, Holds], [Fails, On])
        }
        Operator::LessOrEqual => {
            ordered(high_at, low_at, [high, low], JUMP_GREATER, [Fails, Holds], [Fails, On])
        }
    }
}

/// The four orders have one shape: a greater upper half settles it one way, a smaller one the other way, and between
/// equal ones `low_code` compares the lower halves.
fn ordered(
    high_at: Draft,
    low_at: Draft,
    [high, low]: [u32; 2],
    low_code: u16,
    [if_greater, if_smaller]: [Way; 2],
    [low_holds, low_fails]: [Way; 2],
) -> Vec<Draft> {
    vec![
        high_at,
        Draft { code: JUMP_GREATER, operand: high, holds: if_greater, fails: Way::On },
        Draft { code: JUMP_EQUAL, operand: high, holds: Way::On, fails: if_smaller },
        low_at,
        Draft { code: low_code, operand: low, holds: low_holds, fails: low_fails },
    ]
}

/// The upper and the lower 32 bits.
fn halves(value: u64) -> [u32; 2] {
    [value >> 32, value & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or(u32::MAX))
}
