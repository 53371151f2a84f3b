//! The process of a forwarder: serves the ports that its parent handed over, as the tests start it.

use std::env;
use std::error::Error;

use cudock_netns::forward::{self, Handover};

fn main() -> Result<(), Box<dyn Error>> {
    let encoded = env::args().next_back().ok_or("no handover was given")?;
    Ok(forward::serve(&Handover::decode(&encoded)?)?)
}
