//! A profile in given surroundings: for each number of each way into the kernel, what becomes of it.

use std::collections::{BTreeMap, BTreeSet};

use super::abi::{Abi, X32_BIT};
use super::assemble::LONGEST;
use super::calls;
use super::profile::{Action, Comparison, NO_SUCH_CALL, Profile, Surroundings};
use crate::Error;

/// What becomes of one call: the first of the `cases` whose comparisons all hold, `otherwise` where none does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Verdict {
    pub(super) cases: Vec<(Vec<Comparison>, Action)>,
    pub(super) otherwise: Action,
}

impl Verdict {
    const fn plain(otherwise: Action) -> Self {
        Self { cases: Vec::new(), otherwise }
    }

    fn of(&self, arguments: &[u64; 6]) -> Action {
        let case =
            self.cases.iter().find(|(comparisons, _)| comparisons.iter().all(|one| one.holds(arguments)));
        case.map_or(self.otherwise, |&(_, action)| action)
    }
}

/// The decisions for one way into the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) abi: Abi,
    /// The verdict from each of these numbers on, up to the next; the first is 0, and neighbours differ.
    pub(super) spans: Vec<(u32, Verdict)>,
}

/// A profile in given surroundings: what becomes of every call. A [`super::Filter`] is the same as a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisions {
    pub(super) tables: Vec<Table>,
}

/// What becomes of a call through a way the profile does not open.
pub(super) const FOREIGN: Action = Action::KillProcess;

impl Decisions {
    /// Fails where there are more rules on arguments than any program can hold.
    pub(super) fn new(profile: &Profile, there: &Surroundings) -> Result<Self, Error> {
        let mut ways = vec![there.machine];
        for abi in there.machine.with_companions() {
            if profile.companions.contains(&abi) && !ways.contains(&abi) {
                ways.push(abi);
            }
        }
        let tables = ways.into_iter().map(|abi| table(profile, there, abi)).collect::<Result<_, _>>()?;
        Ok(Self { tables })
    }

    /// What becomes of one call. `arch` is as in the kernel's `seccomp_data`: [`Abi::audit_number`].
    pub fn of(&self, arch: u32, number: u32, arguments: &[u64; 6]) -> Action {
        let Some(table) = self.tables.iter().find(|table| table.abi.audit_number() == arch) else {
            return FOREIGN;
        };
        let after = table.spans.partition_point(|&(first, _)| first <= number);
        let verdict = after.checked_sub(1).and_then(|at| table.spans.get(at));
        verdict.map_or(FOREIGN, |(_, verdict)| verdict.of(arguments))
    }
}

fn table(profile: &Profile, there: &Surroundings, abi: Abi) -> Result<Table, Error> {
    let mut verdicts: BTreeMap<u32, Verdict> =
        calls::all(abi).map(|(number, _)| (number, Verdict::plain(profile.otherwise))).collect();
    let mut settled = BTreeSet::new();
    let mut cases = 0_usize;
    for rule in profile.rules.iter().filter(|rule| rule.is_in_force(there)) {
        for number in rule.names.iter().filter_map(|name| calls::number(abi, name)) {
            let Some(verdict) = verdicts.get_mut(&number) else { continue };
            if !rule.arguments.is_empty() {
                verdict.cases.push((rule.arguments.clone(), rule.action));
                cases += 1;
                // A case is a load, a comparison and an answer at least.
                if cases * 3 > LONGEST {
                    return Err(Error::FilterLength { length: cases * 3, limit: LONGEST });
                }
            } else if settled.insert(number) {
                verdict.otherwise = rule.action;
            }
        }
    }
    for verdict in verdicts.values_mut() {
        // A case at the end that says what is said without it is a comparison for nothing.
        while verdict.cases.last().is_some_and(|&(_, action)| action == verdict.otherwise) {
            verdict.cases.pop();
        }
    }
    Ok(Table { abi, spans: spans(verdicts, unheard_of(profile.otherwise), abi) })
}

/// What becomes of a call that is newer than our table. A program that is told "not permitted" gives up; one that is
/// told "no such call" does what it does on an older kernel, so this is what it is told.
const fn unheard_of(otherwise: Action) -> Action {
    if otherwise.refuses() { NO_SUCH_CALL } else { otherwise }
}

fn spans(verdicts: BTreeMap<u32, Verdict>, unheard_of: Action, abi: Abi) -> Vec<(u32, Verdict)> {
    let mut spans: Vec<(u32, Verdict)> = vec![(0, Verdict::plain(unheard_of))];
    let mut put = |first: u32, verdict: Verdict| {
        if spans.last().is_some_and(|(at, _)| *at == first) {
            spans.pop();
        }
        if spans.last().is_none_or(|(_, last)| *last != verdict) {
            spans.push((first, verdict));
        }
    };
    for (number, verdict) in verdicts {
        put(number, verdict);
        put(number.saturating_add(1), Verdict::plain(unheard_of));
    }
    if abi == Abi::X86_64 {
        put(X32_BIT, Verdict::plain(NO_SUCH_CALL));
    }
    spans
}
