//! Parses and evaluates one condition, such as `driver>=525.60.13`.

use std::cmp::Ordering;
use std::fmt;

/// The property that a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// The CUDA version of the host's driver, not of compat libraries in the image.
    Cuda,
    /// The driver's full version.
    Driver,
    /// The GPU's compute capability.
    Arch,
    /// The GPU's brand, as NVML names it.
    Brand,
}

impl Property {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Driver => "driver",
            Self::Arch => "arch",
            Self::Brand => "brand",
        }
    }

    /// Whether another driver can change it.
    pub const fn follows_the_driver(self) -> bool {
        matches!(self, Self::Cuda | Self::Driver)
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Cuda, Self::Driver, Self::Arch, Self::Brand]
            .into_iter()
            .find(|property| property.name().eq_ignore_ascii_case(name))
    }
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Op {
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    /// libnvidia-container compares only as many characters as were written, so a lone `!` passes as `!=`.
    fn of(sign: &str) -> Option<Self> {
        let sign = if sign == "!" { "!=" } else { sign };
        [Self::Equal, Self::NotEqual, Self::Less, Self::LessEqual, Self::Greater, Self::GreaterEqual]
            .into_iter()
            .find(|op| op.sign() == sign)
    }

    const fn admits(self, found: Ordering) -> bool {
        match self {
            Self::Equal => found.is_eq(),
            Self::NotEqual => found.is_ne(),
            Self::Less => found.is_lt(),
            Self::LessEqual => found.is_le(),
            Self::Greater => found.is_gt(),
            Self::GreaterEqual => found.is_ge(),
        }
    }
}

/// One condition. Its value is not parsed before it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    pub property: Property,
    pub op: Op,
    pub value: String,
    /// Where the term starts in the variable's value, in bytes.
    pub position: usize,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.property.name(), self.op.sign(), self.value)
    }
}

/// An invalid condition. Like an unsatisfied one, it keeps the container from starting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {message} in `{text}` at byte {position}")]
pub struct GrammarError {
    pub variable: String,
    /// The condition as written.
    pub text: String,
    /// Where in the variable's value it starts, in bytes.
    pub position: usize,
    pub message: &'static str,
}

impl GrammarError {
    pub(super) fn new(variable: &str, text: &str, position: usize, message: &'static str) -> Self {
        Self { variable: variable.to_owned(), text: text.to_owned(), position, message }
    }
}

/// libnvidia-container formats an unmet condition into 128 bytes and calls it invalid if it does not fit.
const LONGEST_UNMET: usize = 127;

impl Term {
    pub(super) fn parse(text: &str, position: usize) -> Result<Self, &'static str> {
        const SIGNS: [char; 4] = ['<', '>', '=', '!'];
        let Some((name, rest)) = text.find(SIGNS).and_then(|end| text.split_at_checked(end)) else {
            return Err("no comparison");
        };
        let value = rest.trim_start_matches(SIGNS);
        let sign = rest.strip_suffix(value).unwrap_or(rest);
        if name.is_empty() {
            return Err("nothing before the comparison");
        }
        let op = Op::of(sign).ok_or("no such comparison")?;
        if value.is_empty() {
            return Err("nothing after the comparison");
        }
        let property = Property::of(name).ok_or("no such property (cuda, driver, arch, brand)")?;
        Ok(Self { property, op, value: value.to_owned(), position })
    }

    /// Whether `brand` meets the condition.
    pub(super) fn holds_for_brand(&self, brand: &str) -> Result<bool, &'static str> {
        let same = self.value.eq_ignore_ascii_case(brand);
        match self.op {
            Op::Equal => self.fits_if_unmet(same),
            Op::NotEqual => self.fits_if_unmet(!same),
            _ => Err("a brand is equal or not, never more or less"),
        }
    }

    /// Whether the version `found` meets the condition.
    pub(super) fn holds_for_version(&self, found: &Numbers) -> Result<bool, &'static str> {
        let wanted = Numbers::parse(&self.value)?;
        self.fits_if_unmet(self.op.admits(found.compare(&wanted)?))
    }

    /// Whether some version of branch `branch` meets the condition, if they all agree.
    pub(super) fn holds_for_branch(&self, branch: u16) -> Result<Option<bool>, &'static str> {
        let branch = u64::from(branch);
        let lowest = self.holds_for_version(&Numbers(vec![Some(branch)]))?;
        let highest = self.holds_for_version(&Numbers(vec![Some(branch), Some(u64::MAX - 1)]))?;
        let wanted = Numbers::parse(&self.value)?;
        let inside = wanted.0.first() == Some(&Some(branch));
        let by_equality = matches!(self.op, Op::Equal | Op::NotEqual);
        Ok((lowest == highest && !(inside && by_equality)).then_some(lowest))
    }

    fn fits_if_unmet(&self, met: bool) -> Result<bool, &'static str> {
        let formatted = self.property.name().len() + self.op.sign().len() + self.value.len() + 2;
        if !met && formatted > LONGEST_UNMET {
            return Err("an unmet condition longer than the container tool can report");
        }
        Ok(met)
    }

    /// The distance of `found` from the value: a difference further to the right, or a smaller one, is closer.
    pub(super) fn distance(&self, found: &Numbers) -> Distance {
        let Ok(wanted) = Numbers::parse(&self.value) else { return Distance::MAX };
        let length = found.0.len().max(wanted.0.len());
        let part = |numbers: &Numbers, at: usize| numbers.0.get(at).copied().flatten().unwrap_or(0);
        (0..length)
            .map(|at| (at, part(found, at).abs_diff(part(&wanted, at))))
            .find(|(_, difference)| *difference > 0)
            .map_or(Distance::MAX, |(at, difference)| Distance(usize::MAX - at, difference))
    }
}

/// How far to the left the first different part is, and its difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Distance(usize, u64);

impl Distance {
    pub(super) const MAX: Self = Self(usize::MAX, u64::MAX);
}

/// A version of any number of parts. A part that is too large for libnvidia-container is `None`: that is an error
/// only if the comparison gets that far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numbers(Vec<Option<u64>>);

impl Numbers {
    /// Digits and dots. Dots may repeat or trail, as libnvidia-container skips them, but not lead.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.starts_with('.') || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err("not a version");
        }
        let part = |digits: &str| digits.parse().ok().filter(|number| *number != u64::MAX);
        Ok(Self(text.split('.').filter(|digits| !digits.is_empty()).map(part).collect()))
    }

    /// Part by part as numbers; what one side lacks is 0.
    fn compare(&self, other: &Self) -> Result<Ordering, &'static str> {
        for (own, others) in self.0.iter().zip(&other.0) {
            let (Some(own), Some(others)) = (own, others) else { return Err("a number too large") };
            if own != others {
                return Ok(own.cmp(others));
            }
        }
        let rest = |numbers: &Self, shorter: &Self| {
            numbers.0.iter().skip(shorter.0.len()).any(|part| *part != Some(0))
        };
        Ok(rest(self, other).cmp(&rest(other, self)))
    }
}
