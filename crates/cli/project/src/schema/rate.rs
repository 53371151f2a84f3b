//! Request rates over the day.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use cudock_base::Rate;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::QuantityError;

/// Requests per second, written as `5`, `0.2`, `"4/h"`, `"100/min"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestRate(pub Rate);

/// Requests per second over a day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayRate {
    /// The rate in each hour.
    pub hours: [RequestRate; 24],
}

/// The times in seconds that requests are counted for.
const PERIODS: &[(&str, u64)] =
    &[("s", 1), ("sec", 1), ("m", 60), ("min", 60), ("h", 3600), ("d", 86_400), ("day", 86_400)];

impl RequestRate {
    fn checked(number: f64, seconds: u64, text: &str) -> Result<Self, QuantityError> {
        if number < 0.0 {
            return Err(QuantityError::negative(text, "rates"));
        }
        let rate = Rate::nearest(number, Duration::from_secs(seconds));
        rate.map(Self).ok_or_else(|| QuantityError::unreadable(text, "rate", EXAMPLE))
    }
}

const EXAMPLE: &str = "requests per second such as 5 or 0.2, or a rate such as \"4/h\"";

impl FromStr for RequestRate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::unreadable(text, "rate", EXAMPLE);
        let (number, period) = text.split_once('/').unwrap_or((text, "s"));
        let (_, seconds) = PERIODS.iter().find(|(name, _)| *name == period.trim()).ok_or_else(wrong)?;
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        Self::checked(number, *seconds, text)
    }
}

struct RateVisitor;

impl Visitor<'_> for RateVisitor {
    type Value = RequestRate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXAMPLE)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<RequestRate, E> {
        #[allow(clippy::cast_precision_loss, reason = "no rate is near 2^52")]
        RequestRate::checked(number as f64, 1, &number.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<RequestRate, E> {
        RequestRate::checked(number, 1, &number.to_string()).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RequestRate, E> {
        text.parse().map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for RequestRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RateVisitor)
    }
}

impl DayRate {
    /// The same rate in every hour.
    pub const fn level(rate: RequestRate) -> Self {
        Self { hours: [rate; 24] }
    }

    /// `day` from the hour `from` until the hour `to`, `night` otherwise. The day may go past midnight; none if it
    /// begins when it ends.
    pub fn shaped(day: RequestRate, night: RequestRate, from: u8, to: u8) -> Option<Self> {
        let from = from % 24;
        if from == to {
            return None;
        }
        let is_day =
            |hour: u8| if from < to { (from..to).contains(&hour) } else { hour >= from || hour < to };
        let mut hours = [night; 24];
        for (number, hour) in (0_u8..).zip(&mut hours) {
            if is_day(number) {
                *hour = day;
            }
        }
        Some(Self { hours })
    }

    /// One rate for each hour, if there are 24.
    pub fn hourly(rates: &[RequestRate]) -> Option<Self> {
        Some(Self { hours: rates.try_into().ok()? })
    }
}

/// `5`, `"4/h"`, 24 rates with commas between them, or `DAY,NIGHT@FROM-TO` as `5,0@08:00-20:00`.
impl FromStr for DayRate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || {
            let example =
                "5, 4/h, 5,0@08:00-20:00 (by day, by night, from, to), or 24 rates with commas between them";
            QuantityError::unreadable(text, "rate over a day", example)
        };
        let (rates, hours) = text.split_once('@').map_or((text, None), |(rates, hours)| (rates, Some(hours)));
        let rates: Vec<RequestRate> = rates.split(',').map(str::parse).collect::<Result<_, _>>()?;
        match (rates.as_slice(), hours) {
            ([rate], None) => Ok(Self::level(*rate)),
            ([day, night], Some(hours)) => {
                let (from, to) = hours.split_once('-').ok_or_else(wrong)?;
                Self::shaped(*day, *night, hour(from)?, hour(to)?).ok_or_else(wrong)
            }
            (rates, None) => Self::hourly(rates).ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }
}

/// The hour of `08:00`; 24:00 is the end of the day.
fn hour(text: &str) -> Result<u8, QuantityError> {
    let wrong = || QuantityError::unreadable(text, "hour", "a full hour in UTC such as 08:00");
    let number = text.trim().strip_suffix(":00").ok_or_else(wrong)?;
    let digits = matches!(number.len(), 1 | 2) && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|hour| digits && *hour <= 24).ok_or_else(wrong)
}

struct Hour(u8);

impl<'de> Deserialize<'de> for Hour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        hour(&String::deserialize(deserializer)?).map(Hour).map_err(de::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DayAndNight {
    day: RequestRate,
    #[serde(default)]
    night: RequestRate,
    from: Hour,
    to: Hour,
}

struct DayVisitor;

impl<'de> Visitor<'de> for DayVisitor {
    type Value = DayRate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "requests per second, 24 of them, or { day = 5, night = 0, from = \"08:00\", to = \"20:00\" }",
        )
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<DayRate, E> {
        RateVisitor.visit_i64(number).map(DayRate::level)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<DayRate, E> {
        RateVisitor.visit_f64(number).map(DayRate::level)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<DayRate, E> {
        RateVisitor.visit_str(text).map(DayRate::level)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<DayRate, A::Error> {
        let rates: Vec<RequestRate> = Vec::deserialize(de::value::SeqAccessDeserializer::new(list))?;
        let wrong = || de::Error::custom(format!("expected 24 rates, one per hour, found {}", rates.len()));
        DayRate::hourly(&rates).ok_or_else(wrong)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DayRate, A::Error> {
        let DayAndNight { day, night, from: Hour(from), to: Hour(to) } =
            DayAndNight::deserialize(de::value::MapAccessDeserializer::new(map))?;
        DayRate::shaped(day, night, from, to)
            .ok_or_else(|| de::Error::custom("`from` and `to` are the same hour: day and night overlap"))
    }
}

impl<'de> Deserialize<'de> for DayRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DayVisitor)
    }
}
