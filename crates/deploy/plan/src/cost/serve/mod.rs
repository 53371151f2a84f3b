//! Serving requests for a month: how many instances are up, and when they are busy.

use cudock_base::{Rate, mul_div_ceil};
use cudock_facts::tables::{Billing, Rounding};

use super::billing::{BilledTime, Uptime};
use super::spot;
use super::start::Startup;
use super::usage::{MONTH, RunSetup, Unfit, Usage};
use crate::ratio::{float, round_up};
use crate::workload::DayLoad;
use cudock_facts::services::AzureOffering;

// Request rates are in billionths of a request per day here.

/// The total length of one hour of the day over a month of 730 hours.
const HOUR_OF_MONTH: u128 = MONTH / 24;

/// Milliseconds of a day.
const DAY: u128 = 24 * 3_600_000;

/// Requests and starts are counted in millionths, so that a few a year are not rounded.
pub(crate) const MILLION: u128 = 1_000_000;

pub(super) fn usage(
    setup: &RunSetup,
    load: &DayLoad,
    replica_rate: Rate,
    target_percent: u8,
) -> Result<Usage, Unfit> {
    let case = setup.case;
    let startup = Startup::of(case, setup.mode, setup.bytes());
    let replica = Replica::new(setup, replica_rate, target_percent);
    let rates = load.hours.map(Rate::nanos_per_day);
    let needed = rates.map(|rate| replica.needed(rate));
    let can_scale_to_zero =
        case.workload().constraints.cold_starts_allowed && case.terms.limits.least_instances == 0;
    let peak = needed.iter().copied().max().unwrap_or(0);
    let follows = case.terms.kind.autoscales();
    let least = u128::from(!(follows && can_scale_to_zero));
    let up_in = |hour: u128| if follows { hour.max(least) } else { peak.max(least) };
    let machines = setup.machines(peak.max(least))?;
    let cool_down = case.terms.start.and_then(|start| start.cool_down_s).map_or(0, |s| u128::from(s) * 1000);

    let mut sum = MonthTotal::default();
    // The hour before the first is the last one of the day before.
    let mut before = up_in(needed.last().copied().unwrap_or(0));
    for (rate, needed) in rates.into_iter().zip(needed) {
        let busy = replica.busy(rate);
        let up = up_in(needed);
        if case.terms.kind == AzureOffering::ContainerApps && can_scale_to_zero && needed == 1 {
            sum.add_scale_to_zero(rate, busy, cool_down, &startup);
        } else {
            sum.add_hour(up, busy);
            if follows {
                sum.add_changes(up.saturating_sub(before), cool_down, &startup);
            }
            sum.scales_to_zero |= up == 0;
        }
        before = up;
    }
    let together = u128::from(case.workload().gpu.instances);
    let total_up = sum.total().saturating_mul(together);
    let lost = setup.spot.map_or(0, |spot| spot::restarts(total_up, spot, startup.billed));
    let each = Uptime { start: sum.start, work: sum.busy, idle: sum.idle, lost: 0 };
    let mut bill = BilledTime::default();
    bill.add_exact(u64::from(case.workload().gpu.instances), each);
    bill.lost = lost;
    bill.rounding = rounding(case.terms.billing, sum.starts).saturating_mul(together);
    let waits = (sum.scales_to_zero && peak > 0) || setup.spot.is_some();
    Ok(Usage {
        mode: setup.mode,
        pace: setup.pace,
        startup,
        machines,
        bill,
        disks: total_up,
        lasts: MONTH,
        work: MONTH,
        lost: 0,
        total: if waits { startup.total() } else { 0 },
        read: setup.read(
            1,
            u64::try_from(sum.starts.div_ceil(MILLION)).unwrap_or(u64::MAX).max(u64::from(machines)),
        ),
        starts: sum.starts,
        requests: requests(&rates),
    })
}

/// The billed time that rounding adds to runs of random length: half a unit each, if units are
/// rounded up.
fn rounding(billing: Option<&Billing>, starts: u128) -> u128 {
    match billing {
        Some(billing) if billing.rounding == Rounding::Up => {
            mul_div_ceil(starts, u128::from(billing.unit_s) * 500, MILLION)
        }
        _ => 0,
    }
}

/// Requests of a month, in millionths.
fn requests(rates: &[u128; 24]) -> u128 {
    let sum = rates.iter().copied().fold(0, u128::saturating_add);
    mul_div_ceil(sum, HOUR_OF_MONTH, DAY * 1000)
}

/// The capacity of one replica on this machine: a rate over a denominator.
struct Replica {
    rate: u128,
    per: u128,
    target: u128,
}

impl Replica {
    fn new(setup: &RunSetup, rate: Rate, target_percent: u8) -> Self {
        let speed = setup.pace.speed();
        Self {
            rate: rate.nanos_per_day().saturating_mul(u128::from(speed.num)),
            per: u128::from(speed.den),
            target: u128::from(target_percent.min(100)),
        }
    }

    /// Replicas that a rate needs so that none exceeds the target utilization.
    fn needed(&self, rate: u128) -> u128 {
        if rate == 0 {
            return 0;
        }
        let full = self.rate.saturating_mul(self.target);
        mul_div_ceil(rate.saturating_mul(100), self.per, full)
    }

    /// Busy replica time of a rate in its hour over a month.
    fn busy(&self, rate: u128) -> u128 {
        if rate == 0 {
            return 0;
        }
        mul_div_ceil(HOUR_OF_MONTH.saturating_mul(rate), self.per, self.rate)
    }
}

/// Replica time over a month.
#[derive(Debug, Default)]
struct MonthTotal {
    start: u128,
    busy: u128,
    idle: u128,
    /// Number of starts, in millionths.
    starts: u128,
    scales_to_zero: bool,
}

impl MonthTotal {
    fn total(&self) -> u128 {
        self.start.saturating_add(self.busy).saturating_add(self.idle)
    }

    /// Replicas that are up for an hour of the day.
    fn add_hour(&mut self, up: u128, busy: u128) {
        let time = HOUR_OF_MONTH.saturating_mul(up);
        let busy = busy.min(time);
        self.busy = self.busy.saturating_add(busy);
        self.idle = self.idle.saturating_add(time - busy);
    }

    /// Replicas that are started each day, and released after the cool-down.
    fn add_changes(&mut self, started: u128, cool_down: u128, startup: &Startup) {
        const MONTH_HOURS: u128 = 730;
        let monthly = |time: u128| mul_div_ceil(started.saturating_mul(time), MONTH_HOURS, 24);
        self.start = self.start.saturating_add(monthly(startup.billed));
        self.idle = self.idle.saturating_add(monthly(cool_down));
        self.starts = self.starts.saturating_add(monthly(MILLION));
    }

    /// One replica that scales to zero: it is up if a request arrived within start time plus cool-down. With Poisson
    /// arrivals that is `1 - e^(-rT)` of the time, and `r e^(-rT)` requests find it down.
    fn add_scale_to_zero(&mut self, rate: u128, busy: u128, cool_down: u128, startup: &Startup) {
        let stays = startup.total().saturating_add(cool_down);
        let per_milli = float(rate) / 1e9 / float(DAY);
        let expected = per_milli * float(stays);
        let hour = float(HOUR_OF_MONTH);
        let up = round_up(-(-expected).exp_m1() * hour).min(HOUR_OF_MONTH);
        let starts = round_up(per_milli * (-expected).exp() * hour * float(MILLION));
        let starting = mul_div_ceil(starts, startup.total(), MILLION).min(up);
        let billed = mul_div_ceil(starts, startup.billed, MILLION).min(starting);
        let awake = up - starting;
        let busy = busy.min(awake);
        self.start = self.start.saturating_add(billed);
        self.busy = self.busy.saturating_add(busy);
        self.idle = self.idle.saturating_add(awake - busy);
        self.starts = self.starts.saturating_add(starts);
        self.scales_to_zero = true;
    }
}

#[cfg(test)]
mod tests;
