//! Long-running operations, in the styles of the services.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::random::Random;
use crate::state::operation::{Operation, OperationStyle, Progress};
use crate::wire::answer::Answer;

impl Cloud {
    /// Begins an operation on a resource. Its path is where the service of that style has it.
    pub(crate) fn begin(&mut self, style: OperationStyle, key: &str, location: &str) -> String {
        let id = self.random.uuid();
        let subscription = format!("/subscriptions/{}", crate::resources::target::SUBSCRIPTION);
        let resource = self.find(key).map_or_else(|| key.to_owned(), |resource| resource.target.id.clone());
        let provider = resource
            .rsplit_once("/providers/")
            .map_or("Microsoft.Resources", |(_, last)| last.split('/').next().unwrap_or_default());
        let in_region = format!("{subscription}/providers/{provider}/locations/{location}");
        let path = match style {
            OperationStyle::Deployment => format!("{resource}/operationStatuses/{id}"),
            OperationStyle::Compute | OperationStyle::Network | OperationStyle::ContainerGroup => {
                format!("{in_region}/operations/{id}")
            }
            OperationStyle::ContainerApps => format!("{in_region}/containerappOperationStatuses/{id}"),
            OperationStyle::MlCompute => format!("{in_region}/computeOperationsStatus/{id}"),
            OperationStyle::MlEndpoint => format!("{in_region}/mfeOperationsStatus/{id}"),
            OperationStyle::Location => format!("{subscription}/operationresults/{id}"),
        };
        let operation = Operation {
            path: path.clone(),
            style,
            resource: key.to_owned(),
            started: self.now,
            ended: None,
            progress: Progress::Running,
            result: None,
            signatures: Vec::new(),
        };
        self.operations.insert(path.to_ascii_lowercase(), operation);
        path
    }

    /// Ends an operation.
    pub(crate) fn end(&mut self, path: &str, progress: Progress) {
        let now = self.now;
        let operation = self.operations.get_mut(&path.to_ascii_lowercase()).unwrap();
        if operation.progress == Progress::Running {
            operation.progress = progress;
            operation.ended = Some(now);
        }
    }

    /// Sets the result that an operation returns in place of the resource.
    pub(crate) fn set_result(&mut self, path: &str, result: Value) {
        self.operations.get_mut(&path.to_ascii_lowercase()).unwrap().result = Some(result);
    }

    /// The address of an operation with a new signature.
    pub(crate) fn signed(&mut self, path: &str) -> String {
        let signature = signature(&mut self.random);
        let operation = self.operations.get_mut(&path.to_ascii_lowercase()).unwrap();
        operation.signatures.push(signature.clone());
        format!("{}{path}?api-version=2021-04-01&{signature}", self.base)
    }

    /// The response to a poll; none if the operation does not exist.
    pub(crate) fn poll(&mut self, path: &str, query: &str) -> Option<Answer> {
        let operation = self.operations.get(&path.to_ascii_lowercase())?.clone();
        if !operation.signatures.iter().any(|signature| query.ends_with(signature.as_str())) {
            return Some(Answer::error(
                403,
                "InvalidSignature",
                "The signature of the operation is not valid.",
            ));
        }
        let resource = self.find(&operation.resource).cloned();
        if operation.style != OperationStyle::Location {
            let events =
                resource.as_ref().map_or_else(|| json!([]), |resource| self.container_events(resource));
            let id = resource.map_or_else(String::new, |resource| resource.target.id);
            return Some(Answer::json(200, operation.document(&events, &id)));
        }
        Some(match operation.progress {
            Progress::Running => {
                let location = self.signed(path);
                Answer::empty(202).with("Location", location)
            }
            Progress::Failed(error) => Answer::json(409, json!({"error": error})),
            _ if operation.result.is_some() => Answer { body: operation.result, ..Answer::empty(200) },
            Progress::Succeeded | Progress::Canceled => {
                match resource.filter(|resource| !resource.is_deleting) {
                    Some(resource) => {
                        let etag = format!("\"0x{:X}\"", resource.serial);
                        Answer::json(200, self.render(&resource, false)).with("ETag", etag)
                    }
                    None => Answer::empty(200),
                }
            }
        })
    }
}

/// A signature as long as a real one, which is a certificate in base64.
fn signature(random: &mut Random) -> String {
    let certificate: String = (0..140).map(|_| format!("{:016x}", random.next())).collect();
    format!("t={}&c={certificate}&s={:032x}&h={:016x}", random.next(), random.next(), random.next())
}
