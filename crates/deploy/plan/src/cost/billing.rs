//! Converts the time that instances are up into billed time.

use std::time::Duration;

use cudock_facts::tables::Billing;

/// The activities of an instance while it is up, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Uptime {
    pub(crate) start: u128,
    pub(crate) work: u128,
    pub(crate) idle: u128,
    pub(crate) lost: u128,
}

/// Billed milliseconds of instances, by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BilledTime {
    pub(crate) start: u128,
    pub(crate) work: u128,
    pub(crate) idle: u128,
    pub(crate) lost: u128,
    pub(crate) rounding: u128,
}

impl Uptime {
    fn total(&self) -> u128 {
        [self.start, self.work, self.idle, self.lost].into_iter().fold(0, u128::saturating_add)
    }
}

impl BilledTime {
    /// Adds instances with the same uptime. A part of a billing unit that is not billed reduces the
    /// work; the part that rounding adds is counted separately.
    pub(crate) fn add(&mut self, billing: Option<&Billing>, count: u64, up: Uptime) {
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
        self.add_exact(count, Uptime { start, work, idle, lost });
        let rounding = billed.saturating_sub(total).saturating_mul(u128::from(count));
        self.rounding = self.rounding.saturating_add(rounding);
    }

    /// Adds instances without rounding: those that never stop, or whose time is a mean.
    pub(crate) fn add_exact(&mut self, count: u64, up: Uptime) {
        let count = u128::from(count);
        let add = |sum: &mut u128, each: u128| *sum = sum.saturating_add(each.saturating_mul(count));
        add(&mut self.start, up.start);
        add(&mut self.work, up.work);
        add(&mut self.idle, up.idle);
        add(&mut self.lost, up.lost);
    }
}

/// Milliseconds as a duration, saturating.
pub(crate) fn duration(millis: u128) -> Duration {
    match u64::try_from(millis / 1000) {
        #[allow(clippy::cast_possible_truncation, reason = "a remainder of a thousand")]
        Ok(seconds) => Duration::new(seconds, (millis % 1000) as u32 * 1_000_000),
        Err(_) => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use cudock_facts::tables::Rounding;

    use super::*;

    /// The billed time of instances with this uptime.
    fn billed(unit_s: u32, rounding: Rounding, count: u64, up: Uptime) -> BilledTime {
        let (service, source) = ("vm".into(), vec!["a page".into()]);
        let billing = Billing { service, unit_s, rounding, minimum_s: 0, assumed: false, note: None, source };
        let mut bill = BilledTime::default();
        bill.add(Some(&billing), count, up);
        bill
    }

    #[test]
    fn a_part_of_a_minute_is_taken_off_the_work_where_it_does_not_count() {
        // 100 s of start and 50 s of work are 150 s: two minutes are billed, so 30 s of work are not.
        let up = Uptime { start: 100_000, work: 50_000, ..Uptime::default() };
        let expected = BilledTime { start: 300_000, work: 60_000, ..BilledTime::default() };
        assert_eq!(billed(60, Rounding::Down, 3, up), expected);
    }

    #[test]
    fn what_rounding_up_adds_stands_apart() {
        // 1.2 s of work are billed as 2 s: 0.8 s each, twice.
        let up = Uptime { work: 1_200, ..Uptime::default() };
        let expected = BilledTime { work: 2_400, rounding: 1_600, ..BilledTime::default() };
        assert_eq!(billed(1, Rounding::Up, 2, up), expected);
    }

    #[test]
    fn less_than_a_unit_that_rounds_down_costs_nothing() {
        let up = Uptime { start: 20_000, work: 30_000, ..Uptime::default() };
        assert_eq!(billed(60, Rounding::Down, 1, up), BilledTime::default());
    }

    #[test]
    fn the_longest_time_stays_a_time() {
        assert_eq!(duration(u128::MAX), Duration::MAX);
        assert_eq!(duration(1_500), Duration::from_millis(1_500));
    }
}
