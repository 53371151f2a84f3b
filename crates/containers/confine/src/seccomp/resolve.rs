//! Resolves a profile for one machine and one set of capabilities: a decision for each call number of each ABI.

use std::collections::{BTreeMap, BTreeSet};

use super::abi::{Abi, X32_BIT};
use super::profile::{Action, Comparison, FilterContext, NO_SUCH_CALL, Profile};
use super::syscalls;
use crate::ConfineError;

/// The kernel's limit for one program (`BPF_MAXINSNS`).
pub(super) const MAX_INSTRUCTIONS: usize = 4096;

/// The decision for one call: the action of the first case whose comparisons all hold, else `otherwise`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Decision {
    pub(super) cases: Vec<(Vec<Comparison>, Action)>,
    pub(super) otherwise: Action,
}

impl Decision {
    const fn plain(otherwise: Action) -> Self {
        Self { cases: Vec::new(), otherwise }
    }

    fn of(&self, arguments: &[u64; 6]) -> Action {
        let case =
            self.cases.iter().find(|(comparisons, _)| comparisons.iter().all(|one| one.holds(arguments)));
        case.map_or(self.otherwise, |&(_, action)| action)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AbiDecisions {
    pub(super) abi: Abi,
    /// The decision from each of these numbers up to the next; the first is 0, and neighbors differ.
    pub(super) ranges: Vec<(u32, Decision)>,
}

/// The decision for every call. A [`super::Filter`] is the same as a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisions {
    pub(super) tables: Vec<AbiDecisions>,
}

/// The action for calls through an ABI that the profile does not allow.
pub(super) const FOREIGN_ABI: Action = Action::KillProcess;

impl Decisions {
    /// Fails if a program cannot hold all rules on arguments.
    pub(super) fn new(profile: &Profile, context: &FilterContext) -> Result<Self, ConfineError> {
        let mut abis = vec![context.machine];
        for abi in context.machine.with_companions() {
            if profile.companions.contains(&abi) && !abis.contains(&abi) {
                abis.push(abi);
            }
        }
        let tables = abis.into_iter().map(|abi| table(profile, context, abi)).collect::<Result<_, _>>()?;
        Ok(Self { tables })
    }

    /// The action for one call. `arch` is that of the kernel's `seccomp_data`: [`Abi::audit_number`].
    pub fn of(&self, arch: u32, number: u32, arguments: &[u64; 6]) -> Action {
        let Some(table) = self.tables.iter().find(|table| table.abi.audit_number() == arch) else {
            return FOREIGN_ABI;
        };
        let after = table.ranges.partition_point(|&(first, _)| first <= number);
        let decision = after.checked_sub(1).and_then(|at| table.ranges.get(at));
        decision.map_or(FOREIGN_ABI, |(_, decision)| decision.of(arguments))
    }
}

fn table(profile: &Profile, context: &FilterContext, abi: Abi) -> Result<AbiDecisions, ConfineError> {
    let mut decisions: BTreeMap<u32, Decision> =
        syscalls::numbers(abi).values().map(|number| (*number, Decision::plain(profile.otherwise))).collect();
    let mut settled = BTreeSet::new();
    let mut cases = 0_usize;
    for rule in profile.rules.iter().filter(|rule| rule.applies(context)) {
        for number in rule.names.iter().filter_map(|name| syscalls::number(abi, name)) {
            let Some(decision) = decisions.get_mut(&number) else { continue };
            if !rule.arguments.is_empty() {
                decision.cases.push((rule.arguments.clone(), rule.action));
                cases += 1;
                // A case is at least a load, a comparison and a return.
                if cases * 3 > MAX_INSTRUCTIONS {
                    return Err(ConfineError::FilterLength { length: cases * 3, limit: MAX_INSTRUCTIONS });
                }
            } else if settled.insert(number) {
                decision.otherwise = rule.action;
            }
        }
    }
    for decision in decisions.values_mut() {
        // A last case with the default action is redundant.
        while decision.cases.last().is_some_and(|&(_, action)| action == decision.otherwise) {
            decision.cases.pop();
        }
    }
    Ok(AbiDecisions { abi, ranges: ranges(decisions, unknown_call(profile.otherwise), abi) })
}

/// The action for calls newer than our table. A program gives up after EPERM; after ENOSYS it does
/// the same as on an older kernel.
const fn unknown_call(otherwise: Action) -> Action {
    if otherwise.refuses() { NO_SUCH_CALL } else { otherwise }
}

fn ranges(decisions: BTreeMap<u32, Decision>, unknown: Action, abi: Abi) -> Vec<(u32, Decision)> {
    let mut ranges: Vec<(u32, Decision)> = vec![(0, Decision::plain(unknown))];
    let mut put = |first: u32, decision: Decision| {
        if ranges.last().is_some_and(|(at, _)| *at == first) {
            ranges.pop();
        }
        if ranges.last().is_none_or(|(_, last)| *last != decision) {
            ranges.push((first, decision));
        }
    };
    for (number, decision) in decisions {
        put(number, decision);
        put(number.saturating_add(1), Decision::plain(unknown));
    }
    if abi == Abi::X86_64 {
        put(X32_BIT, Decision::plain(NO_SUCH_CALL));
    }
    ranges
}
