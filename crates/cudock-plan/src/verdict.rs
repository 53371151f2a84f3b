//! What `cudock check` says about the workload's image on each size.

use std::collections::HashMap;

use crate::catalog::bare;

/// Judged by the caller, who has the image. By default nothing is known, and nothing is rejected for it.
#[derive(Debug, Clone, Default)]
pub struct Verdicts {
    by_size: HashMap<String, Verdict>,
}

/// Whether an image runs on a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it runs.
    pub runs: bool,
    /// Whether the driver compiles code at first use.
    pub jit: bool,
    /// Why.
    pub reason: String,
    /// The finding's code.
    pub code: &'static str,
}

impl Verdicts {
    /// Adds the verdict of a size or profile; a later one takes the place of an earlier.
    pub fn insert(&mut self, size: impl AsRef<str>, verdict: Verdict) {
        self.by_size.insert(folded(size.as_ref()), verdict);
    }

    /// The verdict of a size or profile.
    pub fn of(&self, size: &str) -> Option<&Verdict> {
        if self.by_size.is_empty() {
            return None;
        }
        self.by_size.get(&folded(size))
    }
}

fn folded(name: &str) -> String {
    bare(name.trim()).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_found_however_it_is_written() {
        let mut verdicts = Verdicts::default();
        let verdict = Verdict { runs: false, jit: false, reason: "no code for 7.5".into(), code: "CD0203" };
        verdicts.insert("Standard_NC4as_T4_v3", verdict.clone());
        assert_eq!(verdicts.of("nc4as_t4_v3"), Some(&verdict));
        assert_eq!(verdicts.of("NC8as_T4_v3"), None);
    }
}
