//! `cudock gateway`.

use cudock_cli::GatewayArgs;
use cudock_gateway::GatewayRequest;

use crate::failure::{Failure, Outcome};
use crate::output::{DIM, status, styled};

pub(crate) fn run(args: &GatewayArgs) -> Result<Outcome, Failure> {
    let request =
        GatewayRequest { port: args.port, options: args.options.clone(), server: args.server.options() };
    cudock_gateway::run(request, |url, upstreams| {
        status(format!("{} {url}, forwarding to {upstreams}", styled(DIM, "listening on")));
    })?;
    Ok(Outcome::Yes)
}
