//! What a candidate is judged by.

use cudock_facts::Facts;

use crate::preflight::codes;
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::preflight::request::{Candidate, PreflightRequest};
use crate::preflight::results::{Gap, QueryResults};

/// Everything that a row is judged by.
pub(crate) struct JudgeContext<'a> {
    pub(crate) request: &'a PreflightRequest,
    pub(crate) results: &'a QueryResults,
    pub(crate) facts: &'a Facts,
}

/// A candidate with what all of them have in common.
pub(crate) struct CandidateContext<'a> {
    pub(crate) context: &'a JudgeContext<'a>,
    pub(crate) candidate: &'a Candidate,
}

/// The row of a question without a response from Azure.
pub(crate) fn unanswered(question: Question, gap: &Gap) -> PreflightRow {
    let reason = gap.describe();
    let fix = match gap {
        Gap::NotSignedIn => "az login",
        Gap::Denied => "ask for the role Reader on the subscription, or check it in the portal",
        Gap::NotFound | Gap::Failed(_) => "run it again",
    };
    let message = format!("the question about {} got no answer: {reason}", question.name());
    PreflightRow::new(question, PreflightVerdict::Unknown, reason).because(codes::NO_RESPONSE, message, fix)
}
