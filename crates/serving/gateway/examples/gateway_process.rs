//! A gateway in a process of its own, which tests can stop: `gateway_process UPSTREAM`.

use std::error::Error;

use cudock_gateway::{GatewayRequest, run};
use cudock_project::GatewayOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let options =
        GatewayOptions { to: Some(std::env::args().skip(1).collect()), ..GatewayOptions::default() };
    let request = GatewayRequest { port: Some(0), options, ..GatewayRequest::default() };
    run(request, |url, _| eprintln!("listening on {url}"))?;
    Ok(())
}
