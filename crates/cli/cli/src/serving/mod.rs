//! The verbs for servers.

mod bench;
mod gateway;
mod models;
mod runtime;
mod serve;
mod server;

pub use bench::{BenchArgs, EngineArgs as BenchEngineArgs, TuneArgs};
pub use gateway::GatewayArgs;
pub use models::{ModelsArgs, ModelsVerb};
pub use runtime::{RuntimeArgs, RuntimeInstallArgs, RuntimeVerb};
pub use serve::ServeArgs;
pub use server::ServerArgs;
