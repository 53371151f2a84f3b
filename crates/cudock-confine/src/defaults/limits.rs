//! Limits of processes.

/// A soft and a hard limit; [`INFINITE`] is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What holds now.
    pub soft: u64,
    /// How far a process may raise the soft one by itself.
    pub hard: u64,
}

/// No limit.
pub const INFINITE: u64 = u64::MAX;

impl Limit {
    /// What of a wished limit can be had by a process whose own limit is `current`.
    ///
    /// Without `CAP_SYS_RESOURCE` no hard limit can be raised, and trying makes the whole start fail; so the wish is cut
    /// to the current hard limit, and a soft limit never stands above its hard one. Lower wishes are kept.
    #[must_use]
    pub fn clamped(self, current: Self, may_raise: bool) -> Self {
        let hard = if may_raise { self.hard } else { self.hard.min(current.hard) };
        Self { soft: self.soft.min(hard), hard }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CURRENT: Limit = Limit { soft: 1024, hard: 4096 };

    #[test]
    fn a_wish_above_the_hard_limit_is_cut_to_it() {
        let wish = Limit { soft: 65_536, hard: INFINITE };
        assert_eq!(wish.clamped(CURRENT, false), Limit { soft: 4096, hard: 4096 });
        assert_eq!(wish.clamped(CURRENT, true), wish);
    }

    #[test]
    fn a_lower_wish_is_kept() {
        let wish = Limit { soft: 10, hard: 20 };
        assert_eq!(wish.clamped(CURRENT, false), wish);
    }

    proptest! {
        #[test]
        fn no_limit_is_ever_raised_and_soft_stays_below_hard(
            soft: u64, hard: u64, now_soft: u64, now_hard: u64
        ) {
            let got = Limit { soft, hard }.clamped(Limit { soft: now_soft, hard: now_hard }, false);
            prop_assert!(got.hard <= now_hard && got.hard <= hard && got.soft <= got.hard && got.soft <= soft);
        }
    }
}
