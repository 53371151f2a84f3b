//! The words in which cases are written.

use std::sync::OnceLock;

use cudock_facts::Facts;

pub(crate) use crate::builds::*;
pub(crate) use crate::expected::*;
pub(crate) use crate::given::*;
pub(crate) use crate::hardware::*;

/// One case: its name is the promise, the rule is where in the rules it was read.
macro_rules! case {
    ($name:ident, $rule:literal, $given:expr, $target:expr, $expected:expr) => {
        #[test]
        fn $name() {
            crate::support::check($rule, $given, &$target, &$expected);
        }
    };
}
pub(crate) use case;

pub(crate) fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(Facts::embedded)
}
