//! Money without floats.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::time::Duration;

use cudock_facts::tables::Usd;
use serde::{Serialize, Serializer};

use crate::ratio::mul_div_ceil;

/// An amount in billionths of a US dollar. Never negative; sums are exact, and too much stays the largest amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money {
    nanos: u128,
}

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0 };

    /// From billionths of a dollar.
    pub const fn from_nanos(nanos: u128) -> Self {
        Self { nanos }
    }

    /// From cents.
    pub const fn from_cents(cents: u64) -> Self {
        Self { nanos: cents as u128 * 10_000_000 }
    }

    /// Billionths of a dollar.
    pub const fn nanos(self) -> u128 {
        self.nanos
    }

    /// So many of it.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self { nanos: self.nanos.saturating_mul(count as u128) }
    }

    /// `numerator / denominator` of it, rounded up to a billionth; nothing if the denominator is zero.
    #[must_use]
    pub fn share(self, numerator: u128, denominator: u128) -> Self {
        if denominator == 0 {
            return Self::ZERO;
        }
        Self { nanos: mul_div_ceil(self.nanos, numerator, denominator) }
    }

    /// What is left without `other`; nothing if that is more.
    #[must_use]
    pub(crate) const fn less(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos) }
    }

    /// In cents, rounded half up.
    pub const fn cents(self) -> u128 {
        self.nanos.saturating_add(5_000_000) / 10_000_000
    }
}

impl From<Usd> for Money {
    fn from(usd: Usd) -> Self {
        Self { nanos: u128::from(usd.micros()) * 1000 }
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos) }
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Two decimals from a cent on, as many as it takes to show two digits below.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos >= 10_000_000 || self.nanos == 0 {
            let cents = self.cents();
            return write!(f, "{}.{:02}", cents / 100, cents % 100);
        }
        let digits = format!("{:09}", self.nanos);
        let first = digits.find(|digit| digit != '0').unwrap_or(0);
        write!(f, "0.{}", digits.get(..(first + 2).min(digits.len())).unwrap_or(&digits))
    }
}

/// A decimal number of dollars. Programs that add these up should add the parts in cents or less.
impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[allow(clippy::cast_precision_loss, reason = "exact below nine million dollars, 15 digits above")]
        serializer.serialize_f64(self.nanos as f64 / 1e9)
    }
}

/// What something costs an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    nanos_per_hour: u128,
}

impl Rate {
    /// A price an hour.
    pub fn per_hour(usd: Usd) -> Self {
        Self { nanos_per_hour: Money::from(usd).nanos }
    }

    /// A rate in billionths of a dollar an hour.
    pub const fn from_nanos_per_hour(nanos_per_hour: u128) -> Self {
        Self { nanos_per_hour }
    }

    /// What an hour costs.
    pub const fn hour(self) -> Money {
        Money { nanos: self.nanos_per_hour }
    }

    /// What so long costs, rounded up to a billionth.
    pub fn during(self, time: Duration) -> Money {
        const MILLIS_PER_HOUR: u128 = 3_600_000;
        self.hour().share(time.as_millis(), MILLIS_PER_HOUR)
    }

    /// So many of it at once.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self { nanos_per_hour: self.nanos_per_hour.saturating_mul(count as u128) }
    }
}

impl Add for Rate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { nanos_per_hour: self.nanos_per_hour.saturating_add(other.nanos_per_hour) }
    }
}
