//! The space of a search: axes with discrete values, and which combinations are valid.

/// A combination of values: for each axis the index of its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config(pub Vec<usize>);

impl Config {
    pub fn value(&self, axis: usize) -> usize {
        self.0.get(axis).copied().unwrap_or_default()
    }

    /// The axes in which two combinations differ.
    pub(crate) fn differences<'c>(&'c self, other: &'c Self) -> impl Iterator<Item = usize> + 'c {
        (0..self.0.len()).filter(move |axis| self.value(*axis) != other.value(*axis))
    }

    pub(crate) fn with(&self, axis: usize, value: usize) -> Self {
        let mut changed = self.clone();
        if let Some(old) = changed.0.get_mut(axis) {
            *old = value;
        }
        changed
    }
}

/// The size of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisShape {
    pub values: usize,
    /// Whether neighboring values have similar effects, so that a search may stop where they no longer help.
    pub is_ordered: bool,
}

/// Axes in the order of their expected effect, and where a search starts.
pub struct Space {
    pub axes: Vec<AxisShape>,
    /// The first combination, which must work.
    pub current: Config,
    /// Combinations that are tried next, because one of them is usually good.
    pub guesses: Vec<Config>,
    pub is_valid: Box<dyn Fn(&Config) -> bool>,
}

impl Space {
    /// The combination with another value of an axis, `step` values further.
    pub(crate) fn moved(&self, config: &Config, axis: usize, step: isize) -> Option<Config> {
        let value = config.value(axis).checked_add_signed(step)?;
        let moved = config.with(axis, value);
        (value < self.axes.get(axis)?.values && (self.is_valid)(&moved)).then_some(moved)
    }

    /// Every valid combination.
    pub(crate) fn all(&self) -> Vec<Config> {
        let mut all = vec![Vec::new()];
        for axis in &self.axes {
            let longer = |config: Vec<usize>| {
                (0..axis.values).map(move |value| {
                    let mut config = config.clone();
                    config.push(value);
                    config
                })
            };
            all = all.into_iter().flat_map(longer).collect();
        }
        all.into_iter().map(Config).filter(|config| (self.is_valid)(config)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_stay_in_the_space() {
        let axis = |values| AxisShape { values, is_ordered: true };
        let space = Space {
            axes: vec![axis(3), axis(2)],
            current: Config(vec![0, 0]),
            guesses: Vec::new(),
            is_valid: Box::new(|config| config.0 != [2, 1]),
        };
        let config = Config(vec![1, 1]);
        assert_eq!(space.moved(&config, 0, -1), Some(Config(vec![0, 1])));
        assert_eq!(space.moved(&config, 0, 1), None, "invalid");
        assert_eq!(space.moved(&config, 0, -2), None, "below the first");
        assert_eq!(space.moved(&config, 1, 1), None, "beyond the last");
        assert_eq!(space.all().len(), 5);
        assert_eq!(config.differences(&Config(vec![0, 1])).collect::<Vec<_>>(), [0]);
    }
}
