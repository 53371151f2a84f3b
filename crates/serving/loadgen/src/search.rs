//! Search for the highest rate within a latency target.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSearch {
    pub start: f64,
    pub ceiling: f64,
    pub floor: f64,
    /// The search ends when the bracket is narrower than this share of the rate.
    pub tolerance: f64,
    /// Attempts before a rate counts as too high, since a machine may have a hiccup.
    pub attempts: usize,
}

impl RateSearch {
    /// The share of the offered requests that must be answered for a rate to count.
    pub const GOODPUT: f64 = 0.99;

    /// A search that begins below the rate that a closed loop reached.
    pub fn around(estimate: f64) -> Self {
        Self {
            start: (estimate / 2.0).max(1.0),
            ceiling: (estimate * 8.0).max(100.0),
            floor: 1.0,
            tolerance: 0.03,
            attempts: 2,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct SearchStep {
    pub rate: f64,
    /// Whether the server kept up.
    pub met: bool,
}

/// Finds the highest rate at which `holds` returns true: brackets by doubling and halving, then bisects. `None` if even
/// the lowest rate is too high. Also returns the steps in order.
pub fn highest_rate<E>(
    search: &RateSearch,
    mut holds: impl FnMut(f64) -> Result<bool, E>,
) -> Result<(Option<f64>, Vec<SearchStep>), E> {
    let mut steps = Vec::new();
    let mut attempt = |rate: f64| {
        for _ in 0..search.attempts.max(1) {
            let met = holds(rate)?;
            steps.push(SearchStep { rate, met });
            if met {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let (mut low, mut high) = (None, None);
    let mut rate = search.start.clamp(search.floor, search.ceiling);
    let bracket = loop {
        if attempt(rate)? {
            low = Some(rate);
            if rate >= search.ceiling {
                break None;
            }
        } else {
            high = Some(rate);
            if rate <= search.floor {
                break None;
            }
        }
        rate = match (low, high) {
            (Some(low), Some(high)) => break Some((low, high)),
            (Some(low), None) => (low * 2.0).min(search.ceiling),
            (None, _) => (rate / 2.0).max(search.floor),
        };
    };
    if let Some((mut below, mut above)) = bracket {
        while above / below > 1.0 + search.tolerance.max(1e-3) {
            let middle = (below * above).sqrt();
            if attempt(middle)? {
                below = middle;
            } else {
                above = middle;
            }
        }
        low = Some(below);
    }
    Ok((low, steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: RateSearch =
        RateSearch { start: 100.0, ceiling: 1e6, floor: 1.0, tolerance: 0.02, attempts: 1 };

    fn find(search: &RateSearch, limit: f64) -> (Option<f64>, Vec<SearchStep>) {
        highest_rate(search, |rate| Ok::<_, ()>(rate <= limit)).unwrap()
    }

    #[test]
    fn a_limit_is_found_from_either_side() {
        for limit in [1.5, 37.0, 99.0, 100.0, 101.0, 5_432.1, 900_000.0] {
            let (found, steps) = find(&SEARCH, limit);
            let found = found.unwrap();
            assert!(found <= limit && found >= limit / 1.03, "{limit}: {found}");
            assert!(steps.len() < 30, "{limit}: {} steps", steps.len());
        }
    }

    #[test]
    fn a_limit_out_of_reach_is_reported() {
        assert_eq!(find(&SEARCH, 0.5).0, None);
        assert_eq!(find(&SEARCH, 1e9).0, Some(1e6));
    }

    #[test]
    fn one_bad_moment_does_not_count() {
        let search = RateSearch { attempts: 2, ..SEARCH };
        let mut attempts_made = 0;
        let (found, _) = highest_rate(&search, |rate| {
            attempts_made += 1;
            Ok::<_, ()>(attempts_made % 2 == 0 && rate <= 1000.0)
        })
        .unwrap();
        assert!(found.unwrap() > 970.0, "{found:?}");
    }

    #[test]
    fn an_error_ends_the_search() {
        assert_eq!(highest_rate(&SEARCH, |_| Err::<bool, _>("gone")), Err("gone"));
    }
}
