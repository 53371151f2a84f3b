//! `grpc.health.v1.Health`, used by load balancers and Kubernetes.

use std::sync::Arc;
use std::time::Duration;

use cudock_server::HttpRejection;
use prost::Message;

use super::encoding::GrpcEncoding;
use super::frames::frame;
use super::messages::{HealthCheckRequest, HealthCheckResponse, ServingStatus};
use super::services::{HEALTH, INFERENCE};
use super::status::{GrpcCode, GrpcStatus};
use super::stream_body::MessageSink;
use crate::ServeError;
use crate::service::ModelService;

/// Interval at which a watched state is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The requested service. The server's own health is public, that of a model requires an API key.
pub(crate) fn requested_service(request: HealthCheckRequest, has_key: bool) -> Result<String, GrpcStatus> {
    if has_key || matches!(&*request.service, "" | INFERENCE | HEALTH) {
        Ok(request.service)
    } else {
        Err(HttpRejection::Unauthorized.into())
    }
}

/// The state of a service; `None` if it does not exist. The empty name means the server, a model name that model.
fn state(service: &ModelService, name: &str) -> Option<ServingStatus> {
    let ready = match name {
        "" | INFERENCE | HEALTH => service.is_ready(),
        model => match service.find(model, None) {
            Ok(served) => service.is_model_ready(&served),
            Err(ServeError::NotReady { .. }) => false,
            Err(_) => return None,
        },
    };
    Some(if ready { ServingStatus::Serving } else { ServingStatus::NotServing })
}

/// `Check`.
pub(crate) fn check(service: &ModelService, name: &str) -> Result<HealthCheckResponse, GrpcStatus> {
    match state(service, name) {
        Some(state) => Ok(HealthCheckResponse { status: state.into() }),
        None => Err(GrpcStatus::new(GrpcCode::NotFound, format!("service or model `{name}` not found"))),
    }
}

/// `Watch`: the current state, and every change, until the server shuts down.
pub(crate) async fn watch(service: Arc<ModelService>, name: String, sink: MessageSink) -> GrpcStatus {
    let mut sent = None;
    loop {
        let now = state(&service, &name).unwrap_or(ServingStatus::ServiceUnknown);
        if sent != Some(now) {
            sent = Some(now);
            let message = HealthCheckResponse { status: now.into() }.encode_to_vec();
            match frame(vec![message.into()], GrpcEncoding::Identity) {
                Ok(pieces) => sink.put(pieces),
                Err(status) => return status,
            }
        }
        if service.is_draining() {
            return ServeError::Draining.into();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
