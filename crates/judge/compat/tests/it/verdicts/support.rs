//! Helpers that make cases short.

use std::sync::OnceLock;

use cudock_facts::Facts;

pub(crate) use super::builds::*;
pub(crate) use super::expected::*;
pub(crate) use super::given::*;
pub(crate) use super::hardware::*;

/// One case: its name is the promise, the rule is where in the rules it was read.
macro_rules! case {
    ($name:ident, $rule:literal, $given:expr, $target:expr, $expected:expr) => {
        #[test]
        fn $name() {
            $crate::verdicts::support::check($rule, $given, &$target, &$expected);
        }
    };
}
pub(crate) use case;

pub(crate) fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(Facts::embedded)
}
