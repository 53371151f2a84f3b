//! Writing messages.

use bytes::Bytes;

use super::encoding::Encoding;
use super::frames::frame;
use super::status::{Code, Status};

/// Messages longer than this are compressed beside the thread that serves connections.
const PACKED_ASIDE: usize = 64 << 10;

/// A message as pieces of a body, from its parts.
pub(crate) async fn pack(parts: Vec<Bytes>, encoding: Encoding) -> Result<Vec<Bytes>, Status> {
    let length: usize = parts.iter().map(Bytes::len).sum();
    if encoding == Encoding::Identity || length <= PACKED_ASIDE {
        return frame(parts, encoding);
    }
    let packed = tokio::task::spawn_blocking(move || frame(parts, encoding));
    packed.await.unwrap_or_else(|error| Err(Status::new(Code::Internal, error.to_string())))
}
