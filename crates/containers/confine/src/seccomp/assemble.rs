//! Compiles decisions to a classic BPF program.
//!
//! The `seccompiler` crate does not fit: its filters have one action for all matches, know one architecture and kill on
//! any other, and compare numbers one by one. Here the program branches on the ABI and then finds the number's range by
//! binary search: seven comparisons instead of three hundred. Since Linux 5.11 the kernel evaluates the part that depends
//! on the number alone in advance, so a call that is always allowed does not run the program at all.

use super::profile::{Action, Comparison, Operator};
use super::resolve::{Decision, Decisions, FOREIGN_ABI, MAX_INSTRUCTIONS};
use crate::ConfineError;

/// An instruction, laid out as the kernel's `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    pub code: u16,
    /// How many instructions to skip if the comparison holds.
    pub jump_true: u8,
    /// How many to skip if it does not.
    pub jump_false: u8,
    pub operand: u32,
}

/// Loads 32 bits at an offset of `struct seccomp_data`. The other instructions compare or mask the loaded value.
pub const LOAD: u16 = 0x20;
pub const AND: u16 = 0x54;
pub const JUMP: u16 = 0x05;
pub const JUMP_EQUAL: u16 = 0x15;
pub const JUMP_GREATER: u16 = 0x25;
pub const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
pub const RETURN: u16 = 0x06;

const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

const fn plain(code: u16, operand: u32) -> Instruction {
    Instruction { code, jump_true: 0, jump_false: 0, operand }
}

const fn ret(action: Action) -> Instruction {
    plain(RETURN, action.return_value())
}

pub(super) fn assemble(decisions: &Decisions) -> Result<Vec<Instruction>, ConfineError> {
    let mut rest = vec![ret(FOREIGN_ABI)];
    for table in decisions.tables.iter().rev() {
        let mut own = vec![plain(LOAD, NUMBER_AT)];
        own.extend(search(&table.ranges));
        rest = branch(JUMP_EQUAL, table.abi.audit_number(), rest, own);
    }
    let mut program = vec![plain(LOAD, ARCH_AT)];
    program.extend(rest);
    if program.len() > MAX_INSTRUCTIONS {
        return Err(ConfineError::FilterLength { length: program.len(), limit: MAX_INSTRUCTIONS });
    }
    Ok(program)
}

/// Runs `holds` if the comparison does, else `fails`. A conditional jump reaches 255 instructions; longer distances take an
/// unconditional one.
fn branch(code: u16, operand: u32, fails: Vec<Instruction>, holds: Vec<Instruction>) -> Vec<Instruction> {
    let over = fails.len();
    let mut made = Vec::with_capacity(over.saturating_add(holds.len()).saturating_add(2));
    if let Ok(jump_true) = u8::try_from(over) {
        made.push(Instruction { code, jump_true, jump_false: 0, operand });
    } else {
        made.push(Instruction { code, jump_true: 0, jump_false: 1, operand });
        // A program with a longer distance exceeds the limit and is rejected.
        made.push(plain(JUMP, u32::try_from(over).unwrap_or(u32::MAX)));
    }
    made.extend(fails);
    made.extend(holds);
    made
}

/// Binary search over the ranges.
fn search(ranges: &[(u32, Decision)]) -> Vec<Instruction> {
    let (low, high) = ranges.split_at(ranges.len() / 2);
    match (low, high) {
        ([], []) => vec![ret(FOREIGN_ABI)],
        ([], [(_, decision), ..]) => decision_code(decision),
        (_, [(first, _), ..]) => branch(JUMP_GREATER_OR_EQUAL, *first, search(low), search(high)),
        (_, []) => search(low),
    }
}

fn decision_code(decision: &Decision) -> Vec<Instruction> {
    let mut made: Vec<Instruction> =
        decision.cases.iter().flat_map(|(comparisons, action)| case(comparisons, *action)).collect();
    made.push(ret(decision.otherwise));
    made
}

/// The target of a jump within a case.
#[derive(Clone, Copy)]
enum JumpTarget {
    /// The next instruction.
    Next,
    /// The instruction after this comparison, which holds.
    Holds,
    /// The instruction after the case, which does not apply.
    Fails,
}

/// An instruction with symbolic jump targets.
struct Draft {
    code: u16,
    operand: u32,
    holds: JumpTarget,
    fails: JumpTarget,
}

impl Draft {
    const fn plain(code: u16, operand: u32) -> Self {
        Self { code, operand, holds: JumpTarget::Next, fails: JumpTarget::Next }
    }
}

/// Code that returns the action if all comparisons hold, and continues after its end if one does not. Conditional jumps
/// reach the end of a case with few comparisons; `long_case` handles the others.
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
            let distance = |target| {
                let target = match target {
                    JumpTarget::Next => next,
                    JumpTarget::Holds => end,
                    JumpTarget::Fails => total + 1,
                };
                u8::try_from(target - next).unwrap_or(u8::MAX)
            };
            made.push(Instruction {
                code: draft.code,
                jump_true: distance(draft.holds),
                jump_false: distance(draft.fails),
                operand: draft.operand,
            });
        }
    }
    made.push(ret(action));
    made
}

/// The same for a rule with many comparisons: each fails to an unconditional jump of its own.
fn long_case(comparisons: &[Comparison], action: Action) -> Vec<Instruction> {
    let mut made = vec![ret(action)];
    for one in comparisons.iter().rev() {
        let past = u32::try_from(made.len()).unwrap_or(u32::MAX);
        // A case of one comparison, whose return is replaced by a jump over the exit; the exit skips everything generated
        // so far.
        let mut step = case(std::slice::from_ref(one), action);
        step.pop();
        step.push(plain(JUMP, 1));
        step.push(plain(JUMP, past));
        step.extend(made);
        made = step;
    }
    made
}

/// A 64-bit comparison by 32-bit instructions: the upper half decides, or leaves it to the lower.
fn comparison(one: &Comparison) -> Vec<Draft> {
    use JumpTarget::{Fails, Holds, Next};
    // All ABIs are little-endian: the lower half comes first.
    let at = ARGUMENTS_AT + 8 * u32::from(one.argument);
    let low_at = Draft::plain(LOAD, at);
    let high_at = Draft::plain(LOAD, at + 4);
    let [high, low] = halves(one.value);
    let jump = |code, operand, holds, fails| Draft { code, operand, holds, fails };
    match one.operator {
        Operator::Equal => {
            vec![high_at, jump(JUMP_EQUAL, high, Next, Fails), low_at, jump(JUMP_EQUAL, low, Next, Fails)]
        }
        Operator::NotEqual => {
            vec![high_at, jump(JUMP_EQUAL, high, Next, Holds), low_at, jump(JUMP_EQUAL, low, Fails, Next)]
        }
        Operator::MaskedEqual { mask } => {
            let [high_mask, low_mask] = halves(mask);
            vec![
                high_at,
                Draft::plain(AND, high_mask),
                jump(JUMP_EQUAL, high, Next, Fails),
                low_at,
                Draft::plain(AND, low_mask),
                jump(JUMP_EQUAL, low, Next, Fails),
            ]
        }
        // The four order comparisons: a greater or smaller upper half decides, and for an equal one `low_code` compares
        // the lower halves.
        Operator::Greater | Operator::GreaterOrEqual | Operator::Less | Operator::LessOrEqual => {
            let upward = matches!(one.operator, Operator::Greater | Operator::GreaterOrEqual);
            let strict = matches!(one.operator, Operator::Greater | Operator::LessOrEqual);
            let low_code = if strict { JUMP_GREATER } else { JUMP_GREATER_OR_EQUAL };
            let (greater, smaller) = if upward { (Holds, Fails) } else { (Fails, Holds) };
            let (low_holds, low_fails) = if upward { (Next, Fails) } else { (Fails, Next) };
            vec![
                high_at,
                jump(JUMP_GREATER, high, greater, Next),
                jump(JUMP_EQUAL, high, Next, smaller),
                low_at,
                jump(low_code, low, low_holds, low_fails),
            ]
        }
    }
}

/// The upper and the lower 32 bits.
fn halves(value: u64) -> [u32; 2] {
    [value >> 32, value & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or(u32::MAX))
}
