//! Asks everything that decides whether a deployment will succeed, before the first resource that costs money.
//!
//! [`queries`] lists the read-only calls, few of them and all independent, so that [`gather`] can send them at once.
//! [`judge`] is a pure function over the answers and the fact tables. A query that got no answer makes its rows `unknown`,
//! never `ok`.

mod answers;
pub mod codes;
mod judge;
mod query;
mod registry;
mod report;
mod request;
mod rights;
mod runner;

pub use answers::{Answers, QueryResult};
pub use judge::judge;
pub use query::{Query, Topic, queries};
pub use registry::{PullCredentials, PullQuestion, PullResult, is_azure_registry};
pub use report::{CandidateReport, PreflightReport, PreflightRow, PreflightVerdict, Question};
pub use request::{Candidate, ImageCheck, PreflightRequest, PriceQuote};
pub use runner::{CONCURRENT, ask, ask_azure, gather};
