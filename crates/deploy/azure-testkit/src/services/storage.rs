//! Blob storage: one container, which a signature gives access to.

use cudock_base::text::percent;

use crate::cloud::Cloud;
use crate::state::storage::CONTAINER;
use crate::time::http_date;
use crate::wire::answer::Answer;

impl Cloud {
    /// A request to the container, if it is one.
    pub(crate) fn blob_service(&self, method: &str, path: &str, query: &str) -> Option<Answer> {
        let rest = path.strip_prefix(CONTAINER)?;
        let refuse = |status: u16, code: &str| {
            let body =
                format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code></Error>");
            Some(Answer { status, ..Answer::text(body) }.with("x-ms-error-code", code))
        };
        if !self.storage.is_signed(query) {
            return refuse(403, "AuthenticationFailed");
        }
        let blobs = &self.storage.blobs;
        match (method, rest.strip_prefix('/')) {
            ("GET", None) if query.contains("comp=list") => {
                let written = http_date(self.now);
                let blob = |name: &String| {
                    format!(
                        "<Blob><Name>{name}</Name><Properties><Last-Modified>{written}</Last-Modified></Properties></Blob>"
                    )
                };
                let list: String = blobs.keys().map(blob).collect();
                Some(Answer::text(format!("<EnumerationResults><Blobs>{list}</Blobs></EnumerationResults>")))
            }
            ("GET", Some(name)) => {
                let text = percent::decode(name).and_then(|name| blobs.get(&name));
                text.map_or_else(|| refuse(404, "BlobNotFound"), |text| Some(Answer::text(text.clone())))
            }
            _ => refuse(405, "UnsupportedHttpVerb"),
        }
    }
}
