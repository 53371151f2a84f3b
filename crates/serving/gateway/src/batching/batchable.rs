//! A request that may share a batch, and its answer.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use cudock_server::Reservation;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};

use crate::batching::rows::RequestRows;
use crate::requests::path::ConfinedPath;
use crate::requests::response_body::GatewayBody;
use crate::state::GatewayState;

/// A request that may share a batch.
pub(crate) struct BatchableRequest {
    pub(crate) rows: RequestRows,
    pub(crate) target: ConfinedPath,
    pub(crate) headers: HeaderMap,
    /// A digest of everything that requests of a batch have in common.
    pub(crate) bucket: u64,
    /// A digest of what decides how its answer looks: the query and the text around the rows.
    pub(crate) form: u64,
    _reservation: Reservation,
}

impl BatchableRequest {
    pub(crate) fn new(
        state: &GatewayState,
        rows: RequestRows,
        target: ConfinedPath,
        headers: HeaderMap,
        reservation: Reservation,
    ) -> Self {
        let mut hasher = state.hasher.build_hasher();
        target.get().as_str().hash(&mut hasher);
        rows.hash_envelope(&mut hasher);
        let form = hasher.finish();
        hasher.write_u64(state.settings.ignored_headers.digest(&headers, &state.hasher));
        rows.hash_shape(&mut hasher);
        Self { rows, target, headers, bucket: hasher.finish(), form, _reservation: reservation }
    }

    /// The body as the client sent it. It keeps the memory of the request reserved.
    pub(crate) fn body(request: &Arc<Self>) -> Bytes {
        struct HeldBody(Arc<BatchableRequest>);
        impl AsRef<[u8]> for HeldBody {
            fn as_ref(&self) -> &[u8] {
                self.0.rows.body()
            }
        }
        Bytes::from_owner(HeldBody(Arc::clone(request)))
    }
}

/// The answer to one request of a batch.
#[derive(Clone)]
pub(crate) struct BatchAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) pieces: Vec<Bytes>,
}

impl BatchAnswer {
    pub(crate) fn into_response(self) -> Response<GatewayBody> {
        let mut response = Response::new(GatewayBody::pieces(self.pieces));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}
