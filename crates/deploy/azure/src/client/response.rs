//! Responses of services.

use std::fmt;
use std::time::Duration;

use cudock_base::Timestamp;
use cudock_http::{HttpError, HttpErrorKind, OperationResponse, Response};
use serde_json::Value;

/// The list of all sizes of all regions is some tens of MB.
const MAX_BODY: u64 = 128 << 20;

/// The response to a request that succeeded.
#[derive(Clone, Default, PartialEq)]
pub struct AzureResponse {
    pub status: u16,
    /// JSON; a text if it is not JSON, such as the output of a task; null if there is none.
    pub body: Value,
    /// When it was sent, by the service's clock.
    pub date: Option<Timestamp>,
    /// How long the service wants to be left alone.
    pub retry_after: Option<Duration>,
    /// The id by which Azure's support finds the request.
    pub request_id: Option<String>,
}

impl AzureResponse {
    /// The response without its body.
    pub(super) fn without_body(&self) -> Self {
        let Self { status, date, retry_after, request_id, .. } = self;
        let (request_id, body) = (request_id.clone(), Value::Null);
        Self { status: *status, body, date: *date, retry_after: *retry_after, request_id }
    }
}

/// Omits the body, which may hold keys.
impl fmt::Debug for AzureResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureResponse")
            .field("status", &self.status)
            .field("date", &self.date)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// A response with the parts of its headers that describe an operation.
pub(super) struct Received {
    pub(super) response: AzureResponse,
    /// The body is in `response`.
    pub(super) operation: OperationResponse,
}

impl Received {
    pub(super) fn read(mut response: Response) -> Result<Self, HttpError> {
        let bytes = response.bytes(MAX_BODY)?;
        let body = match serde_json::from_slice(&bytes) {
            Ok(body) => body,
            Err(_) if bytes.iter().all(u8::is_ascii_whitespace) => Value::Null,
            Err(error) if error.is_eof() && is_json(&response) => {
                return Err(HttpError::new(HttpErrorKind::Transient, "the response ends early"));
            }
            Err(_) => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
        };
        let request_id = ["x-ms-request-id", "x-ms-correlation-request-id", "request-id"]
            .iter()
            .find_map(|name| response.header(name))
            .map(|id| cudock_base::text::truncate(id, 80));
        let (status, date, retry_after) = (response.status(), response.date(), response.retry_after());
        let operation = OperationResponse::new(&response, None);
        let response = AzureResponse { status, body, date, retry_after, request_id };
        Ok(Self { response, operation })
    }

    pub(super) fn into_operation(self) -> OperationResponse {
        let body = Some(self.response.body).filter(|body| !body.is_null());
        OperationResponse { body, ..self.operation }
    }
}

fn is_json(response: &Response) -> bool {
    response.media_type().is_some_and(|media_type| media_type.ends_with("json"))
}
