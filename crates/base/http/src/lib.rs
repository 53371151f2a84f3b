//! An HTTP client for registries, package indexes, price lists and cloud APIs.
//!
//! It blocks, since its callers move files and wait for responses anyway. [`Client`] decides which
//! hosts may be contacted and where a redirect may lead; [`RetryPolicy`] repeats failed requests;
//! [`Download`] fills a file of a [`BlobStore`] over unreliable connections, and [`Upload`] sends
//! one in chunks; [`Polling`] waits for a long-running operation; [`WebSocket`] is a web socket
//! over the same connections. Errors describe the exchange only. The caller adds the purpose of the
//! request and a hint.
//!
//! ```no_run
//! use cudock_http::{Client, ClientOptions, HttpError, NoProgress, Request, RetryPolicy};
//!
//! fn versions(client: &Client) -> Result<Vec<String>, HttpError> {
//!     let request = Request::get("https://example.com/versions.json");
//!     RetryPolicy::default().run(&NoProgress, "versions", || client.send_for_json(&request, 1 << 20))
//! }
//!
//! let client = Client::new(&ClientOptions::default())?;
//! println!("{:?}", versions(&client));
//! # Ok::<(), cudock_http::CertificateError>(())
//! ```

mod authorization;
mod certificates;
mod client;
mod connect;
mod error;
mod operation;
mod request;
mod response;
mod retry;
mod transfer;
pub mod url;
mod websocket;

pub use authorization::{basic_authorization, bearer_authorization, redact};
pub use certificates::{CertificateError, SSL_CERT_FILE, trusted_certificates};
pub use client::{Client, ClientOptions, observe_requests};
pub use error::{HttpError, HttpErrorKind};
pub use operation::{Operation, OperationError, OperationResponse, Polling};
pub use request::Request;
pub use response::{ErrorMessage, Response, describe_read_error};
pub use retry::{Retry, RetryPolicy, Retryable, sleep_unless};
pub use transfer::download::{Download, DownloadError};
pub use transfer::partial::{Finished, PartialFile};
pub use transfer::progress::{NoProgress, Progress};
pub use transfer::store::{Blob, BlobStore};
pub use transfer::upload::{ContentRange, Upload, UploadError, UploadSession, UploadTarget};
pub use ureq::http::{Method, Uri};
pub use websocket::{SocketEvent, WebSocket};
