//! Amounts that are compared with quotas.

use crate::preflight::codes;
use crate::preflight::report::Question;

/// The amount that a row compares with a quota.
pub(crate) struct Need<'n> {
    pub(crate) question: Question,
    pub(crate) code: &'static str,
    /// The quota in words.
    pub(crate) what: &'n str,
    pub(crate) unit: &'n str,
    pub(crate) amount: i64,
}

impl<'n> Need<'n> {
    pub(crate) fn of_size_family(family: &'n str, amount: i64) -> Self {
        Self {
            question: Question::FamilyQuota,
            code: codes::FAMILY_QUOTA,
            what: family,
            unit: "vCPU",
            amount,
        }
    }

    pub(crate) fn of_spot(what: &'n str, amount: i64) -> Self {
        Self { question: Question::SpotQuota, code: codes::SPOT_QUOTA, what, unit: "vCPU", amount }
    }
}
