//! The loop of the server: what the client sends, and the answers.

use std::collections::HashMap;

use cudock_base::Date;
use cudock_base::text::error_chain;
use cudock_facts::Facts;
use cudock_lint::{LARGEST, LintFlags, LintSettings, Linter};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument, DidOpenTextDocument,
    DidSaveTextDocument, Notification as _, PublishDiagnostics, ShowMessage,
};
use lsp_types::request::{CodeActionRequest, HoverRequest, Request as _};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionParams, CodeActionProviderCapability,
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, HoverParams,
    HoverProviderCapability, MessageType, PublishDiagnosticsParams, ServerCapabilities, ShowMessageParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
    Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::actions::{FIX_ALL, actions};
use crate::document::OpenDocument;
use crate::hover::hover;
use crate::{ClientOptions, LspError};

pub(crate) struct LanguageServer<'a> {
    connection: &'a Connection,
    facts: &'a Facts,
    today: Date,
    flags: LintFlags,
    /// Open documents by URI.
    documents: HashMap<String, OpenDocument>,
    /// The last error that was shown, so that it is shown once.
    shown: String,
}

impl<'a> LanguageServer<'a> {
    /// Answers the `initialize` request.
    pub(crate) fn start(connection: &'a Connection, facts: &'a Facts, today: Date) -> Result<Self, LspError> {
        // The rest of the parameters is not needed, and clients are ahead of any list of them.
        let (id, mut params) = connection.initialize_start()?;
        let options =
            params.get_mut("initializationOptions").map(Value::take).filter(|options| !options.is_null());
        let server_info = json!({"name": "cudock", "version": env!("CARGO_PKG_VERSION")});
        connection
            .initialize_finish(id, json!({"capabilities": capabilities(), "serverInfo": server_info}))?;
        let mut server = Self {
            connection,
            facts,
            today,
            flags: LintFlags::default(),
            documents: HashMap::new(),
            shown: String::new(),
        };
        match options.map_or(Ok(ClientOptions::default()), serde_json::from_value) {
            Ok(options) => server.flags = options.into(),
            Err(error) => server.show(&format!("initializationOptions: {error}")),
        }
        Ok(server)
    }

    /// Handles messages until the client disconnects. Returns whether it requested the shutdown.
    pub(crate) fn run(mut self) -> Result<bool, LspError> {
        for message in &self.connection.receiver {
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request)? {
                        return Ok(true);
                    }
                    let response = self.answer(request);
                    self.send(response.into());
                }
                Message::Notification(notification) => self.take(notification),
                Message::Response(_) => {}
            }
        }
        Ok(false)
    }

    fn answer(&self, request: Request) -> Response {
        match request.method.as_str() {
            HoverRequest::METHOD => respond(request, |params: HoverParams| {
                let params = params.text_document_position_params;
                let document = self.documents.get(params.text_document.uri.as_str())?;
                hover(self.facts, document, params.position)
            }),
            CodeActionRequest::METHOD => respond(request, |params: CodeActionParams| {
                let document = self.documents.get(params.text_document.uri.as_str())?;
                Some(actions(self.facts, document, &params, || self.fixed(document)))
            }),
            method => {
                let message = format!("unsupported request `{method}`");
                Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message)
            }
        }
    }

    fn take(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        let uris: Vec<String> = match method.as_str() {
            DidOpenTextDocument::METHOD => {
                let Ok(params) = serde_json::from_value::<DidOpenTextDocumentParams>(params) else { return };
                let opened = params.text_document;
                let uri = opened.uri.as_str().to_owned();
                let document = OpenDocument {
                    uri: opened.uri,
                    version: opened.version,
                    text: opened.text,
                    findings: Vec::new(),
                };
                self.documents.insert(uri.clone(), document);
                vec![uri]
            }
            DidChangeTextDocument::METHOD => {
                let Ok(params) = serde_json::from_value::<DidChangeTextDocumentParams>(params) else {
                    return;
                };
                let uri = params.text_document.uri.as_str();
                let Some(document) = self.documents.get_mut(uri) else { return };
                document.version = params.text_document.version;
                params.content_changes.iter().for_each(|change| document.change(change));
                vec![uri.to_owned()]
            }
            DidCloseTextDocument::METHOD => {
                let Ok(params) = serde_json::from_value::<DidCloseTextDocumentParams>(params) else { return };
                self.documents.remove(params.text_document.uri.as_str());
                self.publish(none(params.text_document.uri));
                return;
            }
            // Settings and files of build contexts may be different now.
            DidSaveTextDocument::METHOD | DidChangeWatchedFiles::METHOD => {
                self.documents.keys().cloned().collect()
            }
            _ => return,
        };
        for uri in uris {
            self.lint(&uri);
        }
    }

    /// Lints a document and publishes its findings.
    fn lint(&mut self, uri: &str) {
        let Some(document) = self.documents.get(uri) else { return };
        let path = document.path();
        let mut linter = self.linter();
        let settings = linter.settings(&path);
        let mut problem = None;
        let settings = settings.unwrap_or_else(|error| {
            problem = Some(error_chain(&error));
            LintSettings::default().into()
        });
        // More is not a Dockerfile, and would keep the editor waiting.
        let is_lintable = u64::try_from(document.text.len()).is_ok_and(|length| length <= LARGEST);
        let findings = if is_lintable {
            linter.lint(&settings, &path, &path.to_string_lossy(), &document.text)
        } else {
            Vec::new()
        };
        if let Some(problem) = problem {
            self.show(&problem);
        }
        let Some(document) = self.documents.get_mut(uri) else { return };
        document.findings = findings;
        let diagnostics = document.diagnostics(self.facts);
        self.publish(diagnostics);
    }

    /// The text of a document after all fixes.
    fn fixed(&self, document: &OpenDocument) -> String {
        let path = document.path();
        let mut linter = self.linter();
        let settings = linter.settings(&path).unwrap_or_default();
        linter.fix(&settings, &path, &path.to_string_lossy(), &document.text).0.text
    }

    /// A linter that reads the settings anew.
    fn linter(&self) -> Linter<'a> {
        Linter::new(self.facts, self.today, self.flags.clone(), None)
    }

    fn publish(&self, diagnostics: PublishDiagnosticsParams) {
        self.send(Notification::new(PublishDiagnostics::METHOD.to_owned(), diagnostics).into());
    }

    /// Shows an error, unless it was the last one shown.
    fn show(&mut self, message: &str) {
        if message != self.shown {
            message.clone_into(&mut self.shown);
            let params = ShowMessageParams { typ: MessageType::ERROR, message: format!("cudock: {message}") };
            self.send(Notification::new(ShowMessage::METHOD.to_owned(), params).into());
        }
    }

    fn send(&self, message: Message) {
        // A client that is gone needs no answer; the loop ends with its input.
        let _ = self.connection.sender.send(message);
    }
}

fn none(uri: Uri) -> PublishDiagnosticsParams {
    PublishDiagnosticsParams { uri, diagnostics: Vec::new(), version: None }
}

fn respond<P: DeserializeOwned, R: Serialize>(request: Request, answer: impl FnOnce(P) -> R) -> Response {
    match serde_json::from_value(request.params) {
        Ok(params) => Response::new_ok(request.id, answer(params)),
        Err(error) => Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string()),
    }
}

fn capabilities() -> ServerCapabilities {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        save: Some(TextDocumentSyncSaveOptions::Supported(true)),
        ..TextDocumentSyncOptions::default()
    };
    let actions = CodeActionOptions {
        code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, FIX_ALL]),
        ..CodeActionOptions::default()
    };
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(actions)),
        ..ServerCapabilities::default()
    }
}
