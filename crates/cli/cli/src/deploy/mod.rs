//! The verbs that plan and deploy.

mod deployments;
mod groups;
mod plan;
mod watchdog;

pub use deployments::{CostArgs, DeployArgs, ExportArgs, GcArgs, ResumeArgs, VerifyArgs};
pub use groups::{DownArgs, GpuChoice, GroupsArgs, SuperviseArgs, UpArgs};
pub use plan::PlanArgs;
pub use watchdog::WatchdogArgs;
