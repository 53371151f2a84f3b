//! `cudock gateway`.

use crate::failure::{Failure, Outcome};
use crate::output::{DIM, status, styled};
use crate::verbs::GatewayArgs;

pub(super) fn run(args: &GatewayArgs) -> Result<Outcome, Failure> {
    cudock_gateway::run(args, |url, upstreams| {
        status(format!("{} {url}, forwarding to {upstreams}", styled(DIM, "listening on")));
    })?;
    Ok(Outcome::Yes)
}
