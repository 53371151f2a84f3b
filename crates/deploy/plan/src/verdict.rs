//! Whether the image of a workload runs on each size, as `cudock check` judged it.

use std::collections::HashMap;

use crate::catalog::bare;

/// Verdicts by size, from the caller. A size without one is not rejected.
#[derive(Debug, Clone, Default)]
pub struct Verdicts {
    by_size: HashMap<String, SizeVerdict>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeVerdict {
    pub runs: bool,
    /// Whether the driver compiles code at first use.
    pub jit: bool,
    pub reason: String,
    pub code: &'static str,
}

impl Verdicts {
    /// Adds the verdict of a size or profile, replacing an earlier one.
    pub fn insert(&mut self, size: impl AsRef<str>, verdict: SizeVerdict) {
        self.by_size.insert(normalize(size.as_ref()), verdict);
    }

    pub fn of(&self, size: &str) -> Option<&SizeVerdict> {
        if self.by_size.is_empty() {
            return None;
        }
        self.by_size.get(&normalize(size))
    }
}

fn normalize(name: &str) -> String {
    bare(name.trim()).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_found_however_it_is_written() {
        let mut verdicts = Verdicts::default();
        let verdict =
            SizeVerdict { runs: false, jit: false, reason: "no code for 7.5".into(), code: "CD0203" };
        verdicts.insert("Standard_NC4as_T4_v3", verdict.clone());
        assert_eq!(verdicts.of("nc4as_t4_v3"), Some(&verdict));
        assert_eq!(verdicts.of("NC8as_T4_v3"), None);
    }
}
