//! Checks everything that decides whether a deployment will succeed, before the first resource that
//! costs money.
//!
//! [`queries`] lists the read-only calls, few of them and all independent, so that [`gather`] can
//! send them at once. [`judge`] is a pure function over the results and the fact tables. A query
//! that got no response makes its rows `unknown`, never `ok`.

pub mod codes;
pub(crate) mod judge;
mod queries;
pub(crate) mod query;
mod registry;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod results;
mod rights;
mod runner;

pub(crate) use judge::context::CandidateContext;
pub use judge::judge;
pub use queries::queries;
pub use query::{Query, Topic};
pub use registry::{PullCredentials, PullQuestion, PullResult, is_azure_registry};
pub use report::{CandidateReport, PreflightReport, PreflightRow, PreflightVerdict, Question};
pub use request::{Candidate, ImageCheck, PreflightRequest, PriceQuote};
pub use results::{QueryResult, QueryResults};
pub use runner::{CONCURRENT, ask, ask_azure, gather};
