//! `grpc.health.v1.Health`, which load balancers and Kubernetes ask.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;

use super::encoding::Encoding;
use super::frames::frame;
use super::messages::{HealthCheckRequest, HealthCheckResponse, ServingStatus};
use super::outbox::Outbox;
use super::status::{Code, Status};
use crate::ServeError;
use crate::service::Service;

/// How often a watched state is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// The service asked for. The server's own health is told to everybody, that of a model only to those with a key.
pub(crate) fn asked(request: HealthCheckRequest, has_key: bool) -> Result<String, Status> {
    if has_key || matches!(&*request.service, "" | super::INFERENCE | super::HEALTH) {
        Ok(request.service)
    } else {
        Err(ServeError::Unauthorized.into())
    }
}

/// How a service is doing; none if it does not exist. The empty name stands for the server, the name of a model for
/// that model.
fn state(service: &Service, name: &str) -> Option<ServingStatus> {
    let ready = match name {
        "" | super::INFERENCE | super::HEALTH => service.is_ready(),
        model => match service.model(model, None) {
            Ok(model) => model.is_ready() && !service.is_draining(),
            Err(ServeError::NotReady { .. }) => false,
            Err(_) => return None,
        },
    };
    Some(if ready { ServingStatus::Serving } else { ServingStatus::NotServing })
}

/// `Check`.
pub(crate) fn check(service: &Service, name: &str) -> Result<HealthCheckResponse, Status> {
    match state(service, name) {
        Some(state) => Ok(HealthCheckResponse { status: state.into() }),
        None => Err(Status::new(Code::NotFound, format!("no service or model `{name}`"))),
    }
}

/// `Watch`: the state now, and whenever it changes, until the server ends.
pub(crate) async fn watch(service: Arc<Service>, name: String, outbox: Outbox) -> Status {
    let mut told = None;
    loop {
        let now = state(&service, &name).unwrap_or(ServingStatus::ServiceUnknown);
        if told != Some(now) {
            told = Some(now);
            let message = HealthCheckResponse { status: now.into() }.encode_to_vec();
            match frame(vec![message.into()], Encoding::Identity) {
                Ok(pieces) => outbox.put(pieces),
                Err(status) => return status,
            }
        }
        if service.is_draining() {
            return ServeError::Draining.into();
        }
        tokio::time::sleep(LOOK).await;
    }
}
