//! Which requests fail, and how.

use crate::random::Random;

/// A fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// 500, before or after the request is carried out.
    ServerError { carried_out: bool },
    /// This many seconds of the cloud's clock pass first.
    Delay(u64),
    /// The request is carried out, and the connection closed without a response.
    DropAnswer,
    /// The connection is closed, and nothing is carried out.
    CloseBefore,
    /// 429 for this one and those that follow.
    Throttle { requests: u64 },
    /// 409: another operation is in progress.
    Conflict,
    /// All tokens have expired.
    ExpireTokens,
    /// The client is killed, before or after the request is carried out.
    Kill { carried_out: bool },
}

/// The faults of one run, and whether the client comes back after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The faults with the numbers of their requests, counted from 0.
    pub faults: Vec<(u64, Fault)>,
    /// Whether the client runs again and cleans up, or never does.
    pub comes_back: bool,
}

impl Schedule {
    /// Schedule number `index` of a seed, for a run that makes about this many requests without faults. Some in a row hit
    /// requests everywhere, and many hit all; half of the clients do not come back.
    pub fn generate(seed: u64, index: u64, requests: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(index));
        let requests = requests.max(1);
        // A Weyl sequence: any number of schedules in a row is spread evenly over all requests.
        let even =
            index.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed.wrapping_mul(0xd134_2543_de82_ef95));
        let step = u64::try_from((u128::from(even) * u128::from(requests)) >> 64).unwrap();
        let comes_back = random.below(2) == 0;
        let mut faults = vec![(step, fault(&mut random))];
        // Trouble before the one that matters.
        if random.below(3) == 0 && step > 0 {
            let earlier = random.below(step);
            faults.insert(0, (earlier, harmless(&mut random)));
        }
        // A client that never comes back must be dead.
        if !comes_back && !matches!(faults.last(), Some((_, Fault::Kill { .. }))) {
            let step = step + 1 + random.below(requests - step);
            faults.push((step, Fault::Kill { carried_out: random.below(2) == 0 }));
        }
        Self { faults, comes_back }
    }

    pub(crate) fn at(&self, request: u64) -> Option<Fault> {
        self.faults.iter().find_map(|(at, fault)| match fault {
            Fault::Throttle { requests } => (*at..at + requests).contains(&request).then_some(*fault),
            _ => (*at == request).then_some(*fault),
        })
    }
}

fn fault(random: &mut Random) -> Fault {
    match random.below(5) {
        0 => Fault::Kill { carried_out: false },
        1 | 2 => Fault::Kill { carried_out: true },
        _ => harmless(random),
    }
}

/// A fault that a client can survive.
fn harmless(random: &mut Random) -> Fault {
    match random.below(8) {
        0 => Fault::ServerError { carried_out: false },
        1 => Fault::ServerError { carried_out: true },
        2 => Fault::Delay(30 + random.below(270)),
        3 => Fault::DropAnswer,
        4 => Fault::CloseBefore,
        5 => Fault::Throttle { requests: 1 + random.below(4) },
        6 => Fault::Conflict,
        _ => Fault::ExpireTokens,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_determines_its_schedules() {
        assert_eq!(Schedule::generate(7, 3, 40), Schedule::generate(7, 3, 40));
        assert_ne!(Schedule::generate(7, 3, 40), Schedule::generate(8, 3, 40));
    }

    #[test]
    fn schedules_reach_every_request_and_kill_whoever_stays_away() {
        let schedules: Vec<Schedule> = (0..200).map(|index| Schedule::generate(1, index, 40)).collect();
        let reached: BTreeSet<u64> =
            schedules.iter().flat_map(|schedule| schedule.faults.iter().map(|(at, _)| *at)).collect();
        assert!((0..40).all(|request| reached.contains(&request)), "{reached:?}");
        let away: Vec<&Schedule> = schedules.iter().filter(|schedule| !schedule.comes_back).collect();
        assert!((70..130).contains(&away.len()), "{}", away.len());
        for schedule in away {
            assert!(
                schedule.faults.iter().any(|(_, fault)| matches!(fault, Fault::Kill { .. })),
                "{schedule:?}"
            );
        }
    }
}
