//! From time that instances are up to time that is paid for.

use std::time::Duration;

use cudock_facts::tables::Billing;

/// What instances of one kind do while they are up, in milliseconds each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Up {
    pub(crate) start: u128,
    pub(crate) work: u128,
    pub(crate) idle: u128,
    pub(crate) lost: u128,
}

/// Milliseconds of instances that are paid for, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bill {
    pub(crate) start: u128,
    pub(crate) work: u128,
    pub(crate) idle: u128,
    pub(crate) lost: u128,
    pub(crate) rounding: u128,
}

impl Up {
    fn total(&self) -> u128 {
        [self.start, self.work, self.idle, self.lost].into_iter().fold(0, u128::saturating_add)
    }
}

impl Bill {
    /// Adds instances that are each up so long, once. A part of a unit that is not counted is taken off the work, what
    /// rounding adds stands apart.
    pub(crate) fn add(&mut self, billing: Option<&Billing>, count: u64, up: Up) {
        let total = up.total();
        let billed = billing.map_or(total, |billing| billing.billed(duration(total)).as_millis());
        let mut parts = [up.work, up.lost, up.idle, up.start];
        let mut cut = total.saturating_sub(billed);
        for part in &mut parts {
            let taken = cut.min(*part);
            *part -= taken;
            cut -= taken;
        }
        let [work, lost, idle, start] = parts;
        self.add_exact(count, Up { start, work, idle, lost });
        let rounding = billed.saturating_sub(total).saturating_mul(u128::from(count));
        self.rounding = self.rounding.saturating_add(rounding);
    }

    /// Adds instances that are up for good or whose time is a mean: rounding says nothing there.
    pub(crate) fn add_exact(&mut self, count: u64, up: Up) {
        let count = u128::from(count);
        let add = |sum: &mut u128, each: u128| *sum = sum.saturating_add(each.saturating_mul(count));
        add(&mut self.start, up.start);
        add(&mut self.work, up.work);
        add(&mut self.idle, up.idle);
        add(&mut self.lost, up.lost);
    }
}

/// Milliseconds as a time; what is longer than any stays the longest.
pub(crate) fn duration(millis: u128) -> Duration {
    match u64::try_from(millis / 1000) {
        #[allow(clippy::cast_possible_truncation, reason = "a rest of a thousand is below it")]
        Ok(seconds) => Duration::new(seconds, (millis % 1000) as u32 * 1_000_000),
        Err(_) => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use cudock_facts::tables::Rounding;

    use super::*;

    fn billing(unit_s: u32, rounding: Rounding) -> Billing {
        Billing {
            service: "vm".into(),
            unit_s,
            rounding,
            minimum_s: 0,
            assumed: false,
            note: None,
            source: vec!["a page".into()],
        }
    }

    #[test]
    fn a_part_of_a_minute_is_taken_off_the_work_where_it_does_not_count() {
        // 100 s of start and 50 s of work are 150 s: two minutes are billed, so 30 s of work are not.
        let mut bill = Bill::default();
        bill.add(Some(&billing(60, Rounding::Down)), 3, Up { start: 100_000, work: 50_000, ..Up::default() });
        assert_eq!(bill, Bill { start: 300_000, work: 60_000, ..Bill::default() });
    }

    #[test]
    fn what_rounding_up_adds_stands_apart() {
        // 1.2 s of work are billed as 2 s: 0.8 s each, twice.
        let mut bill = Bill::default();
        bill.add(Some(&billing(1, Rounding::Up)), 2, Up { work: 1_200, ..Up::default() });
        assert_eq!(bill, Bill { work: 2_400, rounding: 1_600, ..Bill::default() });
    }

    #[test]
    fn less_than_a_unit_that_rounds_down_costs_nothing() {
        let mut bill = Bill::default();
        bill.add(Some(&billing(60, Rounding::Down)), 1, Up { start: 20_000, work: 30_000, ..Up::default() });
        assert_eq!(bill, Bill::default());
    }

    #[test]
    fn the_longest_time_stays_a_time() {
        assert_eq!(duration(u128::MAX), Duration::MAX);
        assert_eq!(duration(1_500), Duration::from_millis(1_500));
    }
}
