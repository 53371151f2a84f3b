//! Answers that change rarely, kept in files so that looking again is fast.
//!
//! They serve `--dry-run` and reports. A decision to spend money is made on fresh answers.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use cudock_base::{Digest, Timestamp, files};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answers::{Answers, QueryResult};
use super::query::Query;

/// A file that is larger is not read.
const MAX_BYTES: u64 = 64 << 20;

/// Answers in a directory, as of a point in time.
#[derive(Debug, Clone)]
pub struct AnswerCache {
    directory: PathBuf,
    now: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct CachedAnswer {
    /// Milliseconds since 1970.
    stored: u64,
    /// The call, so that two calls with the same digest are told apart.
    call: String,
    body: Value,
}

impl AnswerCache {
    /// A cache in `directory`, which is created when something is stored.
    pub fn new(directory: impl Into<PathBuf>, now: Timestamp) -> Self {
        Self { directory: directory.into(), now }
    }

    /// The queries with a recent answer, answered, and the others.
    pub(super) fn split(&self, queries: Vec<Query>) -> (Answers, Vec<Query>) {
        let mut known = Answers::default();
        let missing = queries.into_iter().filter_map(|query| match self.load(&query) {
            Some(body) => {
                known.insert(query.topic, QueryResult::Response { status: 200, body });
                None
            }
            None => Some(query),
        });
        let missing = missing.collect();
        (known, missing)
    }

    /// Keeps the successful answers. A cache that cannot be written costs time and nothing else, so errors are dropped.
    pub(super) fn store(&self, queries: &[Query], answers: &Answers) {
        let Some(stored) = self.now.millis() else { return };
        if fs::create_dir_all(&self.directory).is_err() {
            return;
        }
        for query in queries.iter().filter(|query| query.topic.lifetime().is_some()) {
            let (Ok(body), Some((path, call))) = (answers.body(&query.topic), self.file_of(query)) else {
                continue;
            };
            let answer = CachedAnswer { stored, call, body: body.clone() };
            let Ok(bytes) = serde_json::to_vec(&answer) else { continue };
            let _ = files::write_atomically(&path, &bytes);
        }
    }

    fn load(&self, query: &Query) -> Option<Value> {
        let lifetime = query.topic.lifetime()?;
        let (path, call) = self.file_of(query)?;
        let text = files::read_optional(&path, MAX_BYTES).ok()??;
        let answer: CachedAnswer = serde_json::from_str(&text).ok()?;
        // An answer from the future was stored by a clock that was wrong.
        let age = self.now.millis()?.checked_sub(answer.stored)?;
        (Duration::from_millis(age) < lifetime && answer.call == call).then_some(answer.body)
    }

    fn file_of(&self, query: &Query) -> Option<(PathBuf, String)> {
        let call = serde_json::to_string(&query.call).ok()?;
        let name = format!("{}.json", Digest::sha256_of(call.as_bytes()).hex());
        Some((self.directory.join(name), call))
    }
}

#[cfg(test)]
mod tests {
    use cudock_http::Method;
    use serde_json::json;

    use super::*;
    use crate::call::{Call, Plane};
    use crate::preflight::Topic;

    const START: u64 = 1_794_745_805_000;
    const MINUTE: u64 = 60_000;

    fn query(topic: Topic) -> Query {
        let path = format!("/{topic:?}");
        Query { topic, call: Call { method: Method::GET, plane: Plane::ResourceManager, path, body: None } }
    }

    fn is_known(directory: &std::path::Path, topic: Topic, at: u64) -> bool {
        let cache = AnswerCache::new(directory, Timestamp::from_millis(at));
        cache.split(vec![query(topic)]).1.is_empty()
    }

    #[test]
    fn answers_are_kept_as_long_as_they_hold_and_rights_never() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("azure");
        let region = || "westus".to_owned();
        let topics = [Topic::VmUsages(region()), Topic::Skus(None), Topic::Locations, Topic::Permissions];
        let queries: Vec<Query> = topics.into_iter().map(query).collect();
        let mut answers = Answers::default();
        for query in &queries {
            answers.insert(
                query.topic.clone(),
                QueryResult::Response { status: 200, body: json!({"value": []}) },
            );
        }
        AnswerCache::new(&path, Timestamp::from_millis(START)).store(&queries, &answers);
        for (topic, minutes) in [
            (Topic::VmUsages(region()), 5),
            (Topic::Skus(None), 24 * 60),
            (Topic::Locations, 7 * 24 * 60),
            (Topic::Permissions, 0),
            (Topic::VmUsages("eastus".to_owned()), 0),
        ] {
            let end = START + minutes * MINUTE;
            assert_eq!(is_known(&path, topic.clone(), end.saturating_sub(1)), minutes > 0, "{topic:?}");
            assert!(!is_known(&path, topic.clone(), end), "{topic:?}");
            assert!(!is_known(&path, topic.clone(), START - 1), "{topic:?}");
        }
    }

    #[test]
    fn errors_and_damaged_files_are_not_answers() {
        let directory = tempfile::tempdir().unwrap();
        let cache = AnswerCache::new(directory.path(), Timestamp::from_millis(START));
        let queries = vec![query(Topic::Providers), query(Topic::Locations)];
        let mut answers = Answers::default();
        answers.insert(Topic::Providers, QueryResult::Response { status: 403, body: json!({}) });
        answers.insert(Topic::Locations, QueryResult::Response { status: 200, body: json!({}) });
        cache.store(&queries, &answers);
        let files: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1);
        fs::write(&files[0], "{\"stored\": 1").unwrap();
        assert_eq!(cache.split(queries).1.len(), 2);
    }
}
