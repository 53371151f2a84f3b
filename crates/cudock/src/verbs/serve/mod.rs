//! `cudock serve`: arguments and `cudock.toml` in, a server out.

mod args;
mod devices;
mod engine;
pub(crate) mod runtime;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use cudock_serve::{ModelService, ModelSettings, ServeSettings, Server, locate_models};

pub(crate) use self::args::ServeArgs;
pub(crate) use self::engine::run as run_engine;
use crate::failure::{Failure, Outcome};
use crate::output::{BOLD, DIM, status, styled};

pub(super) fn run(args: &ServeArgs) -> Result<Outcome, Failure> {
    let settings = settings(args)?;
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    let service = Arc::new(ModelService::new(settings));
    let server = Server::bind(service)?;
    for address in server.addresses() {
        status(format!("{} {scheme}://{address}", styled(DIM, "listening on")));
    }
    let first = server.addresses().first().copied();
    let mut ready = |service: &ModelService| {
        let mut names: Vec<String> = service.models().into_iter().map(|entry| entry.name).collect();
        names.dedup();
        if let Some(address) = first {
            status(format!(
                "{} {}: open {scheme}://{address}/, or POST to {scheme}://{address}/predict",
                styled(BOLD, "ready"),
                names.join(", "),
            ));
        }
    };
    server.run(&mut ready)?;
    Ok(Outcome::Yes)
}

/// Combines the arguments with the `cudock.toml` of what is served.
fn settings(args: &ServeArgs) -> Result<ServeSettings, Failure> {
    let (models, file) = locate_models(&args.path, args.name.as_deref())?;
    let mut flags = args.options.clone();
    if let Some(port) = args.port {
        flags.listen = Some(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]);
    }
    let device = flags.device.or(file.device).unwrap_or_default().resolve(cudock_host::has_gpu);
    flags.device = Some(device);
    let onnx = if models.is_python() {
        None
    } else {
        Some(runtime::provide(Path::new(""), device.is_gpu(), args.offline)?)
    };
    let model_settings = ModelSettings::for_models(flags.clone(), file.clone(), onnx)?;
    let start_engine = engine::starter()?;
    let mut settings = ServeSettings::new(&flags.or(file), models, model_settings, start_engine);
    args.server.apply(&mut settings.server)?;
    settings.read_devices = devices::reader(device.is_gpu());
    Ok(settings)
}
