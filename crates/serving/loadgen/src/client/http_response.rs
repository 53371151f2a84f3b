//! A whole response.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    pub body: Vec<u8>,
    /// Where its JSON ends and its binary part starts, if it has one.
    pub json_length: Option<usize>,
}

impl HttpResponse {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The message of the response, in one line: its `error`, `detail` or `message` if it is JSON.
    pub fn message(&self) -> String {
        let text = match serde_json::from_slice::<serde_json::Value>(&self.body) {
            Ok(value) => {
                let message = ["error", "detail", "message"].iter().find_map(|name| value.get(name));
                match message.unwrap_or(&value) {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                }
            }
            Err(_) => String::from_utf8_lossy(&self.body).into_owned(),
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.chars().filter(|ch| !ch.is_control()).take(400).collect()
    }
}
