//! The verbs that check, look up and start projects.

mod check;
mod diagnose;
mod facts;
mod init;
mod lint;
mod migrate;
mod prices;

pub use check::{CheckArgs, Start};
pub use diagnose::{DoctorArgs, ExplainArgs, InspectArgs};
pub use facts::{FactKind, FactsArgs};
pub use init::InitArgs;
pub use lint::{LintArgs, LspArgs};
pub use migrate::MigrateArgs;
pub use prices::{PricesArgs, PricesVerb, RefreshArgs};
