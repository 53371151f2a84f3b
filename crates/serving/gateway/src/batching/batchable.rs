//! A request that may share a batch, and its answer.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use bytes::Bytes;
use cudock_server::Reservation;
use hyper::StatusCode;
use hyper::header::HeaderMap;

use crate::batching::batch_headers::IgnoredHeaders;
use crate::batching::rows::RequestRows;
use crate::requests::path::ConfinedPath;

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
        ignored: &IgnoredHeaders,
        hasher: &RandomState,
        rows: RequestRows,
        target: ConfinedPath,
        headers: HeaderMap,
        reservation: Reservation,
    ) -> Self {
        let mut digest = hasher.build_hasher();
        target.get().as_str().hash(&mut digest);
        rows.hash_envelope(&mut digest);
        let form = digest.finish();
        digest.write_u64(ignored.digest(&headers, hasher));
        rows.hash_shape(&mut digest);
        Self { rows, target, headers, bucket: digest.finish(), form, _reservation: reservation }
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
