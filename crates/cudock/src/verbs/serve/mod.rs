//! `cudock serve`: words and `cudock.toml` in, a server out.

mod args;
mod devices;
mod engine;
mod request;
pub(crate) mod runtime;

use std::sync::Arc;

use cudock_serve::{LoadError, ModelService, Server, ServerError};
use cudock_server::ServerError as HttpServerError;

pub(crate) use self::args::ServeArgs;
pub(crate) use self::engine::run as run_engine;
use crate::failure::{Failure, Outcome, chain};
use crate::output::{BOLD, DIM, styled};

pub(super) fn run(words: &ServeArgs) -> Result<Outcome, Failure> {
    let settings = request::resolve(words)?;
    let secure = settings.server.tls.is_some();
    let service = Arc::new(ModelService::new(settings));
    let server = Server::bind(service).map_err(|error| failure(&error))?;
    for address in server.addresses() {
        let scheme = if secure { "https" } else { "http" };
        anstream::eprintln!("{} {scheme}://{address}", styled(DIM, "listening on"));
    }
    let first = server.addresses().first().copied();
    server
        .run(move |service| {
            let mut names: Vec<String> = service.models().into_iter().map(|entry| entry.name).collect();
            names.dedup();
            let scheme = if secure { "https" } else { "http" };
            if let Some(address) = first {
                anstream::eprintln!(
                    "{} {}: {scheme}://{address}/ shows it, POST {scheme}://{address}/predict asks it",
                    styled(BOLD, "ready"),
                    names.join(", "),
                );
            }
        })
        .map_err(|error| failure(&error))?;
    Ok(Outcome::Yes)
}

fn failure(error: &ServerError) -> Failure {
    let text = chain(error);
    match error {
        ServerError::Http(HttpServerError::Listen { .. }) => {
            Failure::outside(text).hint("another program may hold the port; `--port 0` takes a free one")
        }
        ServerError::Load(LoadError::Repository(_)) => {
            Failure::input(text).hint("name a model file, a folder with a cudock.toml, or a folder of models")
        }
        ServerError::Load(LoadError::None(_)) | ServerError::Http(HttpServerError::Tls(_)) => {
            Failure::input(text)
        }
        ServerError::Http(HttpServerError::System(_)) => Failure::outside(text),
    }
}
